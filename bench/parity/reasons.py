"""Where choices of a family differ in what they do, and why: by the family, by what it is, and by the choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from bench.parity.counting import Row

# Less than this is what happens now and then: a page that is full, a batch that ends.
MORE = 0.5


@dataclass(frozen=True, slots=True)
class Kind:
    """Choices of a family that go about it in the same steps, and are compared with each other alone."""

    name: str
    choices: str
    """Patterns, with spaces between them."""
    does: str
    """What it does that others do not."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why some choices do more of something than the one of their kind that does least of it."""

    family: str
    what: str
    """Patterns of what it is, with spaces between them; `_` stands for a space in it."""
    choices: str
    """Patterns of the choices that it speaks of, with spaces between them: a choice, then its settings after `+`."""
    why: str

    def explains(self, family: str, difference: Difference) -> bool:
        """Whether it is about this."""
        what, label = difference.what.replace(" ", "_"), difference.row.label.replace(" ", "+")
        label = f"{label}+op={difference.row.operation}+by={difference.row.by.partition(',')[0]}"
        return self.family == family and _fits(what, self.what) and _fits(label, self.choices)


@dataclass(frozen=True, slots=True)
class Difference:
    """What a row does more of than the row of its kind that does least of it."""

    row: Row
    what: str
    count: float
    least: float

    def __str__(self) -> str:
        row = self.row
        return f"{row.label} ({row.operation}, {row.by}): {self.what} {self.count:g}, elsewhere {self.least:g}"


# What is not compared, as it varies by itself.
VARYING: Mapping[str, str] = {
    "epoll_wait epoll_pwait *:_epoll_wait": "how often a server waits depends on how it and who asks it take turns",
    "getpid": "a library looks whether the process has forked, each time it draws from its random numbers",
    "futex *:_futex": "threads wait for each other as it happens",
    "directory:_*": "a directory's processes have work of their own, which goes on meanwhile",
}

KINDS: Mapping[str, Sequence[Kind]] = {
    "key-exchange": (
        Kind("finite fields", "ffdhe*", "a key pair of a named group, and a secret from the other side's public key"),
        Kind("curves", "ecdh-* x25519 x448", "a key pair on a curve, and a secret from the other side's public key"),
        Kind("RSA", "rsa-*", "no key pair of its own: the client encrypts a secret, and the server decrypts it"),
        Kind("ML-KEM", "ml-kem-*", "the client makes a key pair and decapsulates, the server encapsulates"),
        Kind("hybrid", "x25519mlkem768", "as ML-KEM, for both halves in one call of the library"),
    ),
    "rsa-api": (
        Kind("key kept", "key-cached key-pooled", "the key is there, and one signature or check is made with it"),
        Kind("key made anew", "key-from-*", "the key is made for each call, and freed after it"),
    ),
    "tls": (
        Kind("in clear", "plaintext", "no handshake, and no records"),
        Kind("TLS 1.2", "tls-1.2", "two flights of the server in a full handshake, one in a resumed one"),
        Kind("TLS 1.3", "tls-1.3", "one flight of the server, and tickets only where they are asked for"),
    ),
}  # fmt: skip

REASONS: Sequence[Reason] = ()


def kind_of(family: str, row: Row) -> str:
    """The name of a row's kind; empty where all of its family are of one."""
    return next((kind.name for kind in KINDS.get(family, ()) if _fits(row.choice, kind.choices)), "")


def differences(family: str, rows: Iterable[Row]) -> Iterator[Difference]:
    """Where rows do more of something than another one of the same kind, operation, and library or server.

    A choice `none` does nothing, and is none of them.
    """
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row.choice != "none":
            groups.setdefault((row.operation, row.by, kind_of(family, row)), []).append(row)
    for group in groups.values():
        for what in dict.fromkeys(name for row in group for name in row.does):
            if varies(what):
                continue
            least = min(row.does.get(what, 0.0) for row in group)
            for row in group:
                if (count := row.does.get(what, 0.0)) - least > MORE:
                    yield Difference(row, what, count, least)


def reason(family: str, difference: Difference) -> Reason | None:
    """Why it is so; None where that is not known."""
    return next((one for one in REASONS if one.explains(family, difference)), None)


def unused(parts: Mapping[str, Iterable[Row]]) -> list[Reason]:
    """Reasons that explain nothing any more."""
    used = {reason(family, difference) for family, rows in parts.items() for difference in differences(family, rows)}
    return [one for one in REASONS if one not in used]


def varies(what: str) -> bool:
    """Whether how often it is done says nothing of a choice."""
    return any(_fits(what.replace(" ", "_"), patterns) for patterns in VARYING)


def _fits(text: str, patterns: str) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns.split())
