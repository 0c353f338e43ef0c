"""Names of algorithms as sequences of known words: each word gives facts, and the rest is left over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from tollbar.core import wire

_TABLE = Path(__file__).with_name("names.toml")
# Texts are from elsewhere, and no name of an algorithm is longer.
MOST_LETTERS = 120
_SHOWN = 20
_MOST_REMEMBERED = 2**16
ALGORITHM = "algorithm"
DIGEST = "digest"
MOST = "most"
"""The largest number that a name allows: 2047 of `RSA <2048`."""
CLASSES = (
    "cipher", "mac", "kdf", "password", "sign-on", "rsa", "signature", "exchange", "key", "drbg", "other",
)  # fmt: skip
"""Groups of algorithms, as the vocabulary has them."""
PLAIN_FACTS = (
    DIGEST,
    "mode",
    "padding",
    "curve",
    "group",
    "use",
    "purpose",
    "made",
    "parameter",
    "curve-set",
    "group-set",
    "export",
)
"""Facts that a table of names gives under the name of the fact."""
# The hash of the mask of RSA-PSS and RSA-OAEP is not the hash of the message, and any of SHA's is as good.
_MASK = "mgf1"
_OF_MASKS = ("sha-", "sha3-", "shake")
# A compared number is not a number of the name: `RSA <2048`.
_COMPARED = re.compile(r"[<>\u2264\u2265~\u2248]=?\s*[0-9]+")
# Entry of a list of suites that leaves some out: `!aNULL`.
_LEFT_OUT = re.compile(r"(?<![A-Za-z0-9])![A-Za-z][A-Za-z0-9-]*")
_LESS = re.compile(r"<\s*([1-9][0-9]{1,4})(?![0-9])")
_KEYED = re.compile(
    r"(?<![A-Za-z0-9])"
    r"((?i:(?:tag|nonce|iv|block|mac|digest|hash|salt|output|key|bit|modulus) (?:length|len|size))"
    r"|[A-Za-z][A-Za-z_-]{0,19})"
    r"(?:=|(:) ?)(2\^)?(0x[0-9A-Fa-f]{1,12}|[0-9]{1,10})"
    r"(?: ?([KMG]iB))?(?![0-9A-Za-z])"
)
_UNITS = {"": 1, "KiB": 1, "MiB": 1 << 10, "GiB": 1 << 20}
"""In KiB, as numbers of memory without a unit are."""
_MOST_POWER = 63
# `600,000`, and `600k` of iterations.
_THOUSANDS = re.compile(r"(?<![0-9,])([0-9]{1,3})((?:,[0-9]{3})+)(?![0-9,])")
_THOUSAND = re.compile(r"(?<![0-9A-Za-z])([0-9]{1,5})k(?![0-9A-Za-z])")
_OF_ITERATIONS = "pbkdf2"
# The hash that `htpasswd -B` and crypt(3) write: `$2y$12$`.
_CRYPT = re.compile(r"\$2[abxy]?\$([0-9]{2})\$?")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9\u0080-\U0010ffff]+")


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that a text gives."""

    name: str
    value: str
    written: str
    """The text's own spelling."""


@dataclass(frozen=True, slots=True)
class Name:
    """A text as it was read."""

    facts: tuple[Fact, ...] = ()
    numbers: tuple[int, ...] = ()
    """Numbers that no spelling covers, in their order."""
    keyed: tuple[tuple[str, str, str], ...] = ()
    """Numbers with a key, `m=65536`, and the key's own words where a colon follows them: `key length: 256`."""
    left: tuple[str, ...] = ()
    """Words that the vocabulary does not have."""
    begins_with_pair: bool = False
    """True if nothing is between the first number and the second: `256/128`."""

    def values(self, fact: str) -> tuple[str, ...]:
        """Return the values of one fact, each once."""
        return tuple(dict.fromkeys(one.value for one in self.facts if one.name == fact))


@lru_cache(_MOST_REMEMBERED)
def read(text: str) -> Name:
    """Read a text word by word, the longest known spelling first."""
    text = _less_constant(text)
    plain = _plain_numbers(text[:MOST_LETTERS])
    keyed: list[tuple[str, str, str]] = []

    def take(match: re.Match[str]) -> str:
        key = re.sub("[_ -]", "", match[1].lower())
        if match[2] and key not in _keys():
            # `RSA: 2048` has no key.
            return match[0]
        keyed.append((key, _number(match[3], match[4], match[5]), match[1] if match[2] else ""))
        return " "

    text = _KEYED.sub(take, plain) + text[MOST_LETTERS:]
    squeezed, places = _squeezed(text)
    written = text[:MOST_LETTERS]
    found: list[tuple[int, Fact]] = []
    numbers: list[tuple[int, int]] = []
    ends_of_numbers: list[int] = []
    left: list[str] = []
    known, longest = _spellings()
    at = start = 0
    left.extend(_COMPARED.findall(written))
    left.extend(_LEFT_OUT.findall(written))
    found.extend((0, Fact(MOST, str(int(one) - 1), f"<{one}")) for one in _LESS.findall(written))
    if len(text) > MOST_LETTERS:
        # The rest of a long text is not read.
        left.append(f"{text[MOST_LETTERS : 2 * MOST_LETTERS].strip()[:_SHOWN]}…")
    while at < len(squeezed):
        if at == 0 or places[at] - places[at - 1] > 1:
            start = at
        ends = range(min(len(squeezed), at + longest), at, -1)
        end = next((to for to in ends if _fits(known.get(squeezed[at:to]), squeezed, places, at, to)), None)
        if end is not None and not _splits(squeezed, places, at):
            spelled = written[places[at] : places[end - 1] + 1]
            found.extend((at, Fact(name, value, spelled)) for name, value in known[squeezed[at:end]].facts)
            # A spelling may cover several words, and the rest of the last one begins there.
            start = next((one for one in range(end - 1, at, -1) if places[one] - places[one - 1] > 1), start)
            at = end
        elif _is_digit(squeezed[at]):
            end = _end_of_number(squeezed, places, at)
            numbers.append((at, int(squeezed[at:end])))
            ends_of_numbers.append(end)
            at = end
        else:
            end = next(
                (one for one in range(at + 1, len(squeezed)) if places[one] - places[one - 1] > 1), len(squeezed)
            )
            left.append(written[places[start] : places[end - 1] + 1])
            found = [one for one in found if one[0] < start]
            numbers = [one for one in numbers if one[0] < start]
            at = end
    is_pair = len(numbers) > 1 and numbers[1][0] == ends_of_numbers[0]
    return Name(
        tuple(_of_message([one for _, one in found])),
        tuple(one for _, one in numbers),
        tuple(keyed),
        tuple(left),
        is_pair,
    )


def _less_constant(text: str) -> str:
    """Return the name that a constant of a library has in it; any other text is returned unchanged."""
    for pattern, instead in _constants():
        changed, found = pattern.subn(instead, text, count=1)
        if found:
            return changed
    return text


def _plain_numbers(text: str) -> str:
    """Return a text whose numbers have digits alone: `600000` for `600,000`, and `bcrypt 12` for `$2y$12$`."""
    text = _CRYPT.sub(r" bcrypt \1 ", text) if "$" in text else text
    text = _THOUSANDS.sub(lambda match: match[1] + match[2].replace(",", ""), text) if "," in text else text
    return _THOUSAND.sub(r"\g<1>000", text) if _OF_ITERATIONS in text.lower() else text


def _number(power: str | None, digits: str, unit: str | None) -> str:
    """Return a number that has a key: `2^17` is 131072, and `64MiB` is 65536, of KiB."""
    if digits.startswith("0x"):
        return str(int(digits, 16))
    if power:
        return str(1 << int(digits)) if int(digits) <= _MOST_POWER else f"2^{digits}"
    return str(int(digits) * _UNITS[unit or ""])


def is_name(text: str) -> bool:
    """Return whether a text is the whole name of something that the vocabulary has."""
    found = read(text)
    return bool(found.facts) and not found.left and not found.numbers


def _fits(one: _Spelling | None, squeezed: str, places: list[int], at: int, to: int) -> bool:
    """Return whether a spelling is at this place, and takes no half of a number and no half of a word after another."""
    if one is None or _splits(squeezed, places, to) or not one.spans(places[at:to]):
        return False
    is_whole = places[to - 1] - places[at] == to - 1 - at or to == len(squeezed) or places[to] - places[to - 1] > 1
    return is_whole or not (squeezed[to - 1].isalpha() and squeezed[to].isalpha())


def _of_message(facts: list[Fact]) -> Iterator[Fact]:
    """Yield the facts; a hash after a mask generation function becomes the hash of the mask."""
    is_mask = False
    for one in facts:
        if is_mask and one.name == DIGEST:
            is_mask = False
            if not (one.value == "sha" or one.value.startswith(_OF_MASKS)):
                yield Fact("mask", one.value, one.written)
            continue
        is_mask = is_mask or one.value == _MASK
        yield one


def _squeezed(text: str) -> tuple[str, list[int]]:
    """Return the letters and digits of a text in lower case, each with its place in the text."""
    letters, places = [], []
    for place, letter in enumerate(text[:MOST_LETTERS]):
        lower = letter.lower()
        if len(lower) == 1 and not _NOT_IN_NAMES.match(lower):
            letters.append(lower)
            places.append(place)
    return "".join(letters), places


def _splits(squeezed: str, places: list[int], at: int) -> bool:
    """Return true if the end or beginning of a word here would divide a number."""
    inside = 0 < at < len(squeezed) and places[at] - places[at - 1] == 1
    return inside and _is_digit(squeezed[at - 1]) and _is_digit(squeezed[at])


def _is_digit(letter: str) -> bool:
    return "0" <= letter <= "9"


def _end_of_number(squeezed: str, places: list[int], at: int) -> int:
    end = at + 1
    while end < len(squeezed) and _splits(squeezed, places, end):
        end += 1
    return end


def class_of(algorithm: str) -> str:
    """Return the group of an algorithm; empty for one that only the mapping makes."""
    return _classes().get(algorithm, "")


def fill(slots: str, numbers: tuple[int, ...]) -> tuple[dict[str, str], tuple[int, ...]]:
    """Give each number the next slot that takes it. Return the facts, and the numbers that no slot takes."""
    given: dict[str, str] = {}
    left = []
    ahead = list(_vocabulary().numbers.get(_same_numbers(slots), ()))
    for number in numbers:
        place = next((place for place, (_, takes) in enumerate(ahead) if takes_number(takes, number)), None)
        if place is None:
            left.append(number)
            continue
        if name := ahead[place][0]:
            given[name] = str(number)
        del ahead[: place + 1]
    return given, tuple(left)


def fact_of_key(algorithm: str, key: str) -> str | None:
    """Return the fact of a number with a key; empty: the number gives no fact; None: the key is not known there.

    The key is in lower case, without separators.
    """
    keyed, algorithm = _vocabulary().keyed, _same_numbers(algorithm)
    return keyed.get(algorithm, keyed.get(class_of(algorithm), {})).get(key)


def has_slots(slots: str) -> bool:
    """Return true if the vocabulary defines numbers there."""
    return _same_numbers(slots) in _vocabulary().numbers


def _same_numbers(algorithm: str) -> str:
    return _vocabulary().same_numbers.get(algorithm, algorithm)


def takes_number(takes: str, number: int) -> bool:
    """Return whether a number is among these spans: `1-15 17`."""
    spans = (one.partition("-") for one in takes.split())
    return any(int(low) <= number <= int(high or low) for low, _, high in spans)


_Words = Annotated[
    tuple[str, ...], BeforeValidator(lambda said: tuple(said.split()) if isinstance(said, str) else said)
]
_Group = dict[str, _Words]


class _Vocabulary(wire.Wire):
    filler: _Words
    constants: dict[str, tuple[tuple[str, str], ...]]
    digest: _Group
    cipher: _Group
    mac: _Group
    kdf: _Group
    password: _Group
    sign_on: _Group = Field(alias="sign-on")
    rsa: _Group
    signature: _Group
    exchange: _Group
    key: _Group
    drbg: _Group
    other: _Group
    mode: _Group
    padding: _Group
    curve: _Group
    group: _Group
    use: _Group
    purpose: _Group
    made: _Group
    curve_set: _Group = Field(alias="curve-set")
    group_set: _Group = Field(alias="group-set")
    export: _Group
    parameter: _Group
    whole: dict[str, dict[str, str]]
    keyed: dict[str, dict[str, str]]
    same_numbers: dict[str, str] = Field(alias="same-numbers")
    numbers: dict[str, tuple[tuple[str, str], ...]]


@cache
def _vocabulary() -> _Vocabulary:
    return wire.read(_TABLE, _Vocabulary)


@cache
def _keys() -> frozenset[str]:
    return frozenset(key for some in _vocabulary().keyed.values() for key in some)


@cache
def _constants() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), instead) for pattern, instead in _vocabulary().constants["instead"])


@cache
def _classes() -> Mapping[str, str]:
    table = _vocabulary()
    return {name: kind for kind in CLASSES for name in getattr(table, kind.replace("-", "_"))}


@dataclass(frozen=True, slots=True)
class _Spelling:
    """A spelling without its separators."""

    facts: tuple[tuple[str, str], ...]
    parts: frozenset[int]
    """The places before which a separator may be: where the spelling has one, and between letters and digits."""

    def spans(self, places: list[int]) -> bool:
        """Return whether the letters at these places of a text have separators in the spelling's places alone."""
        return all(at in self.parts for at in range(1, len(places)) if places[at] - places[at - 1] > 1)


@cache
def _spellings() -> tuple[Mapping[str, _Spelling], int]:
    """Return the facts of each spelling without its separators, and the length of the longest."""
    table = _vocabulary()
    found: dict[str, _Spelling] = {}

    def add(word: str, facts: tuple[tuple[str, str], ...]) -> None:
        plain = word.replace("-", "")
        ends = {len(word[:at].replace("-", "")) for at, letter in enumerate(word) if letter == "-"}
        ends |= {at for at in range(1, len(plain)) if _is_digit(plain[at]) is not _is_digit(plain[at - 1])}
        ends |= found[plain].parts if plain in found else set()
        found[plain] = _Spelling(facts, frozenset(ends))

    for word in table.filler:
        add(word, ())
    groups = [(kind, ALGORITHM) for kind in CLASSES] + [(name, name) for name in PLAIN_FACTS]
    for group, fact in groups:
        for value, words in getattr(table, group.replace("-", "_")).items():
            for word in words:
                add(word, ((fact, value),))
    for word, facts in table.whole.items():
        add(word, tuple(facts.items()))
    return found, max(map(len, found))
