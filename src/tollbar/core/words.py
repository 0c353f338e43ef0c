"""Words for counts and lists: `3 cells`, `a, b and c`, `a, b and 4 more`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 cell`, `2 cells`, `2 batches`."""
    plural = f"{noun}es" if noun.endswith(("ch", "s", "x")) else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def enumeration(words: Sequence[str], joint: str = "and") -> str:
    """Return a list in words: `a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {joint} {words[-1]}"


def more(number: int, noun: str = "") -> str:
    """Return the number of things that are not shown: `1 more row`, `3 more rows`, `3 more`."""
    return counted(number, f"more {noun}") if noun else f"{number:,} more"


def few(names: Iterable[str], most: int, noun: str = "", *, spare: int = 0) -> list[str]:
    """Return the first `most` names, and last the number of those left out: `["a", "b", "3 more rows"]`.

    Up to `spare` names beyond `most` are included, because their number takes as much room.
    """
    found = list(names)
    left = len(found) - most
    return found if left <= spare else [*found[:most], more(left, noun)]


def left_out(number: int, noun: str, where: str, which: str = "") -> list[str]:
    """Return the note that rows are not shown, which ones, and where they are; none where all are shown."""
    return [f"… {more(number, noun)}{which}: {where}"] if number > 0 else []


def quoted(name: str) -> str:
    """Return a name for a sentence: in quotation marks if its own comma or phrase would confuse."""
    phrase = " " in name and name[0].islower()
    return f"“{name}”" if "," in name or phrase else name


def capitalised(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def slug(text: str) -> str:
    """Return the text as part of a link: `every-result`, `key-fresh-aes-128-gcm`."""
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")
