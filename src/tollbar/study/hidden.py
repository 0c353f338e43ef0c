"""Secrets of recorded requests, and the references that replace them wherever they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tollbar.core.errors import TollbarError
from tollbar.study.recorded_parts import Origin, RecordedRequest, Text

LEAST_INSIDE = 4
"""Letters of a secret that is also replaced inside other texts; a shorter one would replace parts of words."""
LEAST_CAPTURED = 8
"""Letters of a value without a secret's name that is captured: a shorter one is in an answer by chance."""
MOST_SECRETS = 1000
MOST_LETTERS = 200_000
"""Limit of the letters of all secrets together. One that has several spellings counts for ten, because its expression
takes as long to compile."""
MOST_SEARCHED = 5_000_000
"""Limit of the letters in which secrets are looked for, each of which takes up to a microsecond."""

_LONGEST_NAME = 40


@dataclass
class Hidden:
    """Secrets with their references."""

    secrets: dict[str, Text] = field(default_factory=dict)
    """First text of each value."""
    references: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    """Kind of each value of the environment."""
    captures: dict[int, dict[str, Mapping[str, str]]] = field(default_factory=dict)
    """Captures of each answer by its number."""

    def variable(self, name: str, kind: str) -> str:
        """Return the reference of a new value of the environment."""
        wanted = self._free(name)
        self.variables[wanted] = kind
        return f"${{{wanted}}}"

    def reference(self, value: str, text: Text) -> str:
        """Return the reference of a secret, which is a value of the environment unless it is captured."""
        if value not in self.references:
            self.references[value] = self.variable(text.name, text.kind)
        return self.references[value]

    def capture(self, value: str, origin: Origin) -> None:
        name = self._free(origin.name)
        self.captures.setdefault(origin.place, {})[name] = origin.capture
        self.references[value] = f"${{{name}}}"

    def is_named_in(self, origin: Origin) -> bool:
        """Return whether the place of a value contains a secret, for example as a key of JSON."""
        return any(self._pattern.search(word) for word in (origin.name, *origin.capture.values()))

    def values_in(self, text: Text) -> Iterable[str]:
        """Return the secrets in a text."""
        if self._is_whole(text):
            return (text.value,)
        return {self._ordered[found.lastindex - 1] for found in self._pattern.finditer(text.value) if found.lastindex}

    def compile(self) -> None:
        """Make the expression of all secrets, which cannot change afterwards. Raises RecursionError."""
        self._pattern  # noqa: B018

    def replaced(self, text: Text) -> str:
        """Return a text with references in the place of its secrets."""
        if self._is_whole(text):
            return text.prefix + self.reference(text.value, self.secrets[text.value])
        return _plain(text.prefix) + self.inside(text.value)

    def inside(self, value: str) -> str:
        parts, end = [], 0
        for found in self._pattern.finditer(value):
            if found.lastindex:
                secret = self._ordered[found.lastindex - 1]
                parts += [_plain(value[end : found.start()]), self.reference(secret, self.secrets[secret])]
                end = found.end()
        return "".join([*parts, _plain(value[end:])])

    def _is_whole(self, text: Text) -> bool:
        return text.value in self.secrets and (text.is_secret or len(text.value) >= LEAST_INSIDE)

    @cached_property
    def _ordered(self) -> Sequence[str]:
        """Secrets in the order of their groups in the pattern."""
        return self._tree[1]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._tree[0] or r"(?!)")

    @cached_property
    def _tree(self) -> tuple[str, Sequence[str]]:
        longest_first = sorted((one for one in self.secrets if len(one) >= LEAST_INSIDE), key=len, reverse=True)
        found: list[str] = []
        return "".join(_tree_of(longest_first, 0, found)), found

    def _free(self, name: str) -> str:
        name = "value" if self._pattern.search(name) else name
        text = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower()[:_LONGEST_NAME]
        wanted = text if text[:1].isalpha() else f"value_{text}".rstrip("_")
        taken = {*self.variables, *(one for captures in self.captures.values() for one in captures)}
        return next(one for one in (wanted, *(f"{wanted}_{n}" for n in range(2, len(taken) + 3))) if one not in taken)


def hidden_of(requests: Sequence[RecordedRequest], known: Mapping[str, Origin], where: str) -> Hidden:
    """Return the secrets of requests, and the values that an earlier answer brings, with their captures.

    `known`: first place of each value of an answer. Raises TollbarError for too many.
    """
    hidden = Hidden()
    texts = [(place, text) for place, request in enumerate(requests) for text in request.texts]
    if sum(len(text.value) for _, text in texts) > MOST_SEARCHED:
        what = f"has more than {MOST_SEARCHED:,} letters in its requests, in which secrets are looked for"
        raise TollbarError(what, where=where, hint="record fewer pages")
    for text in (text for request in requests for text in request.credentials):
        hidden.secrets.setdefault(text.value, text)
    for place, text in texts:
        origin = known.get(text.value)
        is_brought = origin is not None and origin.place < place and len(text.value) >= LEAST_CAPTURED
        if text.is_secret or is_brought:
            hidden.secrets.setdefault(text.value, text)
    # A secret of an answer may be a part of a later text, for example a session in a path.
    for value in _brought_inside([text.value for _, text in texts], known):
        hidden.secrets.setdefault(value, Text(known[value].name, value, "value of an answer", is_secret=True))
    hidden.secrets.pop("", None)
    letters = sum(1 if _is_simple(letter) else 10 for one in hidden.secrets for letter in one)
    if len(hidden.secrets) > MOST_SECRETS or letters > MOST_LETTERS:
        what = f"has more than {MOST_SECRETS:,} secrets, or more than {MOST_LETTERS:,} letters of them"
        raise TollbarError(what, where=where, hint="record fewer pages")
    try:
        hidden.compile()
    except RecursionError as error:
        what = "has hundreds of secrets that each begin with the one before"
        raise TollbarError(what, where=where, hint="record fewer pages") from error
    first: dict[str, int] = {}
    for place, text in texts:
        for value in hidden.values_in(text):
            first.setdefault(value, place)
    for value, place in first.items():
        origin = known.get(value)
        if origin is not None and origin.place < place and not hidden.is_named_in(origin):
            hidden.capture(value, origin)
    return hidden


def _brought_inside(texts: Sequence[str], known: Mapping[str, Origin]) -> Sequence[str]:
    """Return the secrets of answers whose beginning is in a request."""
    wanted = [value for value, origin in known.items() if origin.is_secret and len(value) >= LEAST_CAPTURED]
    heads = {value[:LEAST_CAPTURED] for value in wanted}
    present = {
        head
        for text in texts
        for start in range(len(text) - LEAST_CAPTURED + 1)
        if (head := text[start : start + LEAST_CAPTURED]) in heads
    }
    return [value for value in wanted if value[:LEAST_CAPTURED] in present]


def _plain(text: str) -> str:
    """Return a text that a scenario sends as it is."""
    return text.replace("${", "$${")


def _tree_of(secrets: Sequence[str], at: int, found: list[str]) -> Iterator[str]:
    """Yield the parts of an expression for these secrets, which have their first `at` letters in common.

    Secrets with the same beginning share it, because an alternative for each of a thousand would be tried at each
    letter of a text. An empty group marks the end of each, which is added to `found`.
    """
    begun = at
    first, last = min(secrets, default=""), max(secrets, default="")
    while first[at : at + 1] == last[at : at + 1] != "":
        at += 1
    yield from map(_spelled, first[begun:at])
    branches: dict[str, list[str]] = {}
    for secret in secrets:
        branches.setdefault(secret[at : at + 1], []).append(secret)
    for number, (letter, members) in enumerate(branches.items()):
        if len(branches) > 1:
            yield "|" if number else "(?:"
        if letter:
            yield from _tree_of(members, at, found)
        else:
            found += members
            yield "()"
    if len(branches) > 1:
        yield ")"


def _is_simple(letter: str) -> bool:
    return letter.isascii() and letter.isalnum()


def _spelled(letter: str) -> str:
    """Return the expression of a letter as it is, in a URL, in a form, and in JSON."""
    if _is_simple(letter):
        return letter
    # Encoded once, or more often in the address of a page to go on to.
    percent = "".join(f"%(?:25)*(?i:{byte:02X})" for byte in letter.encode("utf-8", "replace"))
    quoted = json.dumps(letter, ensure_ascii=False)[1:-1]
    escaped = "".join(rf"\\u(?i:{part:04x})" for part in _utf16(letter))
    ways = [re.escape(letter), percent, escaped, *([re.escape(quoted)] if quoted != letter else [])]
    ways += {" ": [r"\+"], "/": [r"\\/"]}.get(letter, [])
    return f"(?:{'|'.join(ways)})"


def _utf16(letter: str) -> Sequence[int]:
    data = letter.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[start : start + 2], "big") for start in range(0, len(data), 2)]
