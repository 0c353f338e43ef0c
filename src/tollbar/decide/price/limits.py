"""Limits of an inventory: each count ends the reading at once, because the file is data from elsewhere."""

from __future__ import annotations

MOST_BYTES = 32 * 1024 * 1024
"""Limit of a file: ten thousand assets have some 7 MB. All limits together keep an answer below 5 s of CPU time."""
MOST_ASSETS = 50_000
MOST_COMPONENTS = 250_000
MOST_PLACES = 250_000
"""Limit of the places of all assets. Each cipher suite of a protocol has all of the protocol's places."""
MOST_REFERENCES = 1_000_000
"""Limit of the references that assets have to others, all together."""
MOST_OF_ASSET = 4 * 1024 * 1024
"""Limit of the properties of an asset, and of its evidence, in bytes: a protocol of ten thousand cipher suites."""
MOST_OF_SCALAR = 64 * 1024
"""Limit of a component's name and reference in bytes."""
MOST_LETTERS = 80
"""Limit of a name in a line: a longer one tells a reader no more, and would push all else off the line."""
MOST_OF_PLACE = 240
"""Limit of a path, which is of no use without its end."""
MOST_OF_PROPERTY = 400
"""Limit of a text: a hundred thousand assets may have one each."""
MOST_KEYS = 900_000
"""Limit of the keys that are read here, and of the braces around them: 50,000 assets have some 750,000."""
MOST_RULED = 150_000
"""Limit of the pairs of a different asset and a rule on its family: 2,000 assets and 75 rules. Each takes some
15 µs."""
