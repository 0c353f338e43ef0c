"""Families' files as text, to be changed by tests."""

from __future__ import annotations

from tollbar.catalog.families import Setting, Value
from tollbar.catalog.families.settings import IN_BYTES

A_FAMILY = """
[family]
title = "Test"
operations = ["hash"]

[choice.none]
title = "nothing"
spec = "none"
standing = "null"

[choice.md5]
title = "MD5"
spec = "RFC 1321"
standing = "broken"
"""


A_VALUE = """
[threat.collision]
title = "two messages with one hash"

[setting.length]
title = "length of the output"
values = ["short", 512]
default = 512

[setting.length.value.short]
title = "short output"
standing = "deprecated"
"""


def as_a_study_writes_it(setting: Setting, value: Value) -> Value:
    """Return a value as a study writes it: bytes and shares with their units."""
    unit = "B" if setting.unit in IN_BYTES else "%" if setting.is_share else None
    return f"{value} {unit}" if unit else value
