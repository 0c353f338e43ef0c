"""Escape text for Markdown, so that a reader sees the markup in it as text."""

from __future__ import annotations

import re

from tollbar.core.errors import one_line

# What Markdown would take for markup, for a character by its name, or for the end of a cell.
_SPECIAL = re.compile(r"([\\*_<>|#]|(?<=\])[(\[:]|~(?=~)|&(?=\w))")
# In code nothing is special but the end of a cell, and a backslash before that.
_SPECIAL_IN_CODE = re.compile(r"(\\*)\|")


def escaped(text: str) -> str:
    """The text with nothing in it that Markdown would take for markup, but for code in single backticks."""
    text = one_line(text)
    parts = text.split("`")
    # Several backticks in a row begin code that only as many end: what is between single ones may be outside of it.
    if len(parts) % 2 == 0 or "``" in text:
        return _SPECIAL.sub(r"\\\1", text.replace("`", "'"))
    return "`".join(
        _SPECIAL_IN_CODE.sub(r"\1\1\\|", part) if number % 2 else _SPECIAL.sub(r"\\\1", part)
        for number, part in enumerate(parts)
    )
