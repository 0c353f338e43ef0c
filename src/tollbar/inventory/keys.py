"""Keys that an object of JSON has twice: readers differ in which of the two counts, so that neither may."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

# Strings with the colon that makes one a key, and where objects begin and end. Nothing that matched is tried again: a
# string may be as long as the file.
_TOKENS = re.compile(rb'"((?:[^"\\]++|\\.)*+)"(\s*+:)?|[{}]', re.DOTALL)


def twice(content: bytes, keys: Iterable[str]) -> str | None:
    """Return the first of these keys that an object of a JSON text has twice; None: there is none.

    Of each object that is open no more is kept than a bit for each key.
    """
    bits = {key.encode(): 1 << place for place, key in enumerate(keys)}
    open_: list[int] = []
    for token in _TOKENS.finditer(content):
        if token[2] is None:
            if token[0] == b"{":
                open_.append(0)
            elif token[0] == b"}" and open_:
                open_.pop()
            continue
        key = token[1] if b"\\" not in token[1] else str(msgspec.json.decode(b'"%b"' % token[1])).encode()
        if (bit := bits.get(key)) and open_:
            if open_[-1] & bit:
                return key.decode()
            open_[-1] |= bit
    return None
