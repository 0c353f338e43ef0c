"""Escape text for Markdown, so that a reader sees the markup in it as text."""

from __future__ import annotations

import re

from tollbar.core.errors import one_line

# Markup, the start of a named character, and the end of a table cell.
_SPECIAL = re.compile(r"([\\*_<>|#]|(?<=\])[(\[:]|~(?=~)|&(?=\w))")
# In code only the end of a table cell is special, and a backslash before it.
_SPECIAL_IN_CODE = re.compile(r"(\\*)\|")


def escaped(text: str) -> str:
    """Return the text without Markdown markup, except code in single backticks."""
    text = one_line(text)
    parts = text.split("`")
    # Several backticks in a row begin code that ends at the same number, so text between single ones may not be code.
    if len(parts) % 2 == 0 or "``" in text:
        return _SPECIAL.sub(r"\\\1", text.replace("`", "'"))
    return "`".join(
        _SPECIAL_IN_CODE.sub(r"\1\1\\|", part) if number % 2 else _SPECIAL.sub(r"\\\1", part)
        for number, part in enumerate(parts)
    )
