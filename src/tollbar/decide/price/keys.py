"""Keys that an object of JSON has twice: readers differ in which of the two counts, so that neither may."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

import msgspec

from tollbar.decide.price import limits

# The time of a key with an escape, which is decoded, in those of other keys.
_OF_ESCAPED = 4


class TooManyError(ValueError):
    """A text has more objects and keys than the limit."""


@cache
def _tokens(keys: tuple[str, ...]) -> re.Pattern[bytes]:
    """Return the pattern of a key that may be one of these, and of where an object that has some begins or ends.

    Python takes 1 µs for each, and passes over all else in one step: strings, and objects that have no other object
    and at most two such keys, if they differ. Nothing is tried more than twice, because a string may be as long as the
    file.
    """
    names = b"|".join(re.escape(key.encode()) for key in keys)
    string = rb'"(?:[^"\\]++|\\.)*+"'
    # A key with an escape may be any of them.
    may_be = rb'"(?:(?:%b)"|[^"\\]*+\\)' % names
    other = rb'(?:[^"{}]++|(?!(?=%b)%b\s*+:)%b)*+' % (may_be, string, string)
    two = rb'"(%b)"\s*+:%b(?:"(?!\1")(?:%b)"\s*+:%b)?+' % (names, other, names, other)
    small = rb"\{%b(?:%b)?+\}" % (other, two)
    key = rb'(?=%b)"((?:[^"\\]++|\\.)*+)"\s*+:' % may_be
    # The last part is for texts that are no JSON.
    return re.compile(rb"%b(?:%b%b)*+(?:%b|([{}])|\Z|.)" % (other, small, other, key), re.DOTALL)


def twice(content: bytes, keys: Iterable[str]) -> str | None:
    """Return the first of these keys that an object of a JSON text has twice; None: none is repeated.

    Each open object keeps only a bit for each key. Raises TooManyError.
    """
    wanted = tuple(keys)
    bits = {key.encode(): 1 << place for place, key in enumerate(wanted)}
    open_: list[int] = []
    count = 0
    for token in _tokens(wanted).finditer(content):
        _, key, end = token.groups()
        count += 1
        if count > limits.MOST_KEYS:
            raise TooManyError
        if end == b"{":
            open_.append(0)
        elif end and open_:
            open_.pop()
        if key is None or not open_:
            continue
        if b"\\" in key:
            count += _OF_ESCAPED
            key = str(msgspec.json.decode(b'"%b"' % key)).encode()
        bit = bits.get(key, 0)
        if open_[-1] & bit:
            return key.decode()
        open_[-1] |= bit
    return None
