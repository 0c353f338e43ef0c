"""Equal is equal: forty cells that differ in nothing that costs anything, twenty of nginx and twenty of a hash."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bench.figures import Figure
from bench.studies import SERVED, Unmeasured, measured

CELLS = 20
MEDIAN_GOAL = 0.004
WRONG_GOAL = 2

# A message one byte longer has as many blocks of SHA-256, and an answer one byte longer as many records and packets.
SIZES = ", ".join(f'"{4096 + number} B"' for number in range(CELLS + 1))

HASHES = f"""
question  = "Does the same hash cost the same?"
family    = "digest"
choices   = ["sha-256"]
providers = ["libcrypto"]
baseline  = {{ choice = "sha-256", bytes = "4096 B" }}

[vary]
bytes = [{SIZES}]
"""
HANDSHAKES = f"""
question  = "Does the same handshake cost the same?"
family    = "tls"
beds      = ["nginx"]
providers = ["libcrypto"]
choices   = ["tls-1.3"]
baseline  = {{ choice = "tls-1.3", bytes = "4096 B" }}

[vary]
op           = ["connect"]
certificate  = ["ecdsa-p256"]
key-exchange = ["x25519"]
bytes        = [{SIZES}]
{SERVED}
"""


def figures() -> Iterator[Figure]:
    """How far from ×1 they come out, and how many are called dearer or cheaper."""
    off: list[float] = []
    wrong = 0
    for text in (HASHES, HANDSHAKES):
        try:
            study = measured(text)
        except Unmeasured as error:
            yield Figure("equal: 40 equal cells", "(not measured)", str(error), False)
            return
        tolls = [toll for toll in study["tolls"] if not toll["twin"]]
        off += [abs(toll["ratio"] - 1) for toll in tolls if toll["ratio"] is not None]
        wrong += sum(toll["verdict"] in ("costs", "saves") for toll in tolls)
        free = sum(toll["verdict"] == "free" for toll in tolls)
        yield Figure(
            f"equal: {study['question'] if 'question' in study else study['family']}",
            "(for comparison)",
            f"{free} of {len(tolls)} called free, noise floor ×{study['noise_floor']:.4f}",
            None,
        )
    yield Figure(
        f"equal: {len(off)} equal cells, median of |ratio - 1|",
        f"at most {MEDIAN_GOAL:.1%}",
        f"{median(off):.2%}",
        median(off) <= MEDIAN_GOAL and len(off) == 2 * CELLS,
    )
    yield Figure(
        f"equal: of {len(off)} called costs or saves", f"at most {WRONG_GOAL}", f"{wrong}", wrong <= WRONG_GOAL
    )
