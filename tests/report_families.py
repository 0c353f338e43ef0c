"""Two hand-made families for the report's tests: hash functions and password hashes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from tollbar.catalog.families import Authority, Choice, Family, Setting, Standing

SEEN = date(2026, 11, 21)


def choice_of(
    name: str,
    title: str,
    standing: Standing,
    strength: int | None,
    authority: str = "NIST | SP 800-57 part 1 revision 5, table 3 | approved",
    checked: bool = True,
) -> Choice:
    by, where, says = authority.split(" | ")
    return Choice(
        name=name,
        title=title,
        spec="FIPS 180-4",
        year=2001,
        strength=strength,
        strength_from=None if strength is None else "half the output, against collisions",
        standing=standing,
        authority=() if standing is Standing.NULL else (Authority(by, where, says, SEEN, checked),),
        answers=(),
        setting={},
        inputs={},
        note=None,
    )


def family_of(
    name: str, title: str, strength_means: str | None, settings: Sequence[Setting], choices: Sequence[Choice]
) -> Family:
    return Family(
        name=name,
        title=title,
        operations=("hash",),
        strength_means=strength_means,
        settings={setting.name: setting for setting in settings},
        choices={choice.name: choice for choice in choices},
    )


_IETF_MD5 = "IETF | RFC 6151 section 2 | not where collision resistance is required"
_NIST_SHA_1 = "NIST | SP 800-131A revision 2, section 9 | not for generating signatures"
_OWASP = "OWASP | Password Storage Cheat Sheet | "

DIGESTS = family_of(
    "digest",
    "Hash function",
    "bits against the best known collision attack",
    [Setting("bytes", "message size", None, "bytes", 4096, {})],
    [
        choice_of("none", "No hash", Standing.NULL, None),
        choice_of("md5", "MD5", Standing.BROKEN, 0, _IETF_MD5),
        choice_of("sha-1", "SHA-1", Standing.DISALLOWED, 61, _NIST_SHA_1, checked=False),
        choice_of("sha-256", "SHA-256", Standing.ACCEPTABLE, 128),
        choice_of("sha-512", "SHA-512", Standing.ACCEPTABLE, 256),
        choice_of("sha3-256", "SHA3-256", Standing.RECOMMENDED, 128, "NIST | FIPS 202 | approved"),
        choice_of("blake2b", "BLAKE2b-512", Standing.ACCEPTABLE, 256, "IETF | RFC 7693 | specified"),
        choice_of("blake3", "BLAKE3", Standing.ACCEPTABLE, 128, "its authors | section 1 | 128 bits", False),
    ],
)

PASSWORDS = family_of(
    "password-hash",
    "Password hash",
    None,
    [],
    [
        choice_of("sha-256", "One SHA-256, salted", Standing.DISALLOWED, None, _OWASP + "not a password hash"),
        choice_of("bcrypt-10", "bcrypt, cost 10", Standing.DEPRECATED, None, _OWASP + "for legacy systems"),
        choice_of("pbkdf2", "PBKDF2-SHA256, 600,000", Standing.ACCEPTABLE, None, _OWASP + "where FIPS rules"),
        choice_of("scrypt", "scrypt, N = 2^17, r = 8", Standing.ACCEPTABLE, None, _OWASP + "second choice"),
        choice_of("argon2id", "Argon2id, 19 MiB, 2 passes", Standing.RECOMMENDED, None, _OWASP + "first choice"),
    ],
)
