"""Parameters as other programs take them, to be pasted there.

The names are those of Django 5.2 (`django.contrib.auth.hashers`), Spring Security's crypto module (6.0 on, for PBKDF2's
last argument), and Keycloak (`--spi-…` with two dashes from 26.3 on, with one before), as their sources and manuals
have them on 2026-11-23. PHC is the string format of the Password Hashing Competition; bcrypt keeps to its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from tollbar.decide.tune.algorithms import Parameters

PLACES = ("PHC string", "Django", "Spring Security", "Keycloak")

# Usual bytes of salt and hash; a longer one of SHA-1 would be a second block, and twice the work.
_SALT, _HASH, _HASH_OF_SHA_1 = 16, 32, 20
# Keycloak derives 64 bytes whatever the digest (`Pbkdf2PasswordHashProvider`): the number of blocks of each.
_BLOCKS_OF_KEYCLOAK = {"pbkdf2-sha-1": 4, "pbkdf2-sha-256": 2, "pbkdf2-sha-512": 1}
_PBKDF2 = {
    "pbkdf2-sha-1": ("pbkdf2-sha1", "PBKDF2SHA1PasswordHasher", "PBKDF2WithHmacSHA1", "pbkdf2"),
    "pbkdf2-sha-256": ("pbkdf2-sha256", "PBKDF2PasswordHasher", "PBKDF2WithHmacSHA256", "pbkdf2-sha256"),
    "pbkdf2-sha-512": ("pbkdf2-sha512", "PBKDF2PasswordHasher", "PBKDF2WithHmacSHA512", "pbkdf2-sha512"),
}


def pasted(choice: str, parameters: Parameters) -> Mapping[str, str | None]:
    """Return the text to paste in each of `PLACES`; None: the place does not support the hash."""
    if choice in _PBKDF2:
        texts = _pbkdf2(choice, parameters["iterations"])
    else:
        texts = {"argon2id": _argon2id, "scrypt": _scrypt, "bcrypt": _bcrypt}[choice](parameters)
    return dict(zip(PLACES, texts, strict=True))


def _argon2id(one: Parameters) -> tuple[str | None, ...]:
    memory_kib, passes, lanes = one["memory"] // 1024, one["passes"], one["lanes"]
    option = "--spi-password-hashing--argon2--"
    return (
        f"$argon2id$v=19$m={memory_kib},t={passes},p={lanes}",
        _django("Argon2PasswordHasher", memory_cost=memory_kib, time_cost=passes, parallelism=lanes),
        f"new Argon2PasswordEncoder({_SALT}, {_HASH}, {lanes}, {memory_kib}, {passes})",
        f"{option}memory={memory_kib} {option}iterations={passes} {option}parallelism={lanes}",
    )


def _scrypt(one: Parameters) -> tuple[str | None, ...]:
    n, r, p = one["n"], one["r"], one["p"]
    # OpenSSL refuses more than 32 MiB unless a limit is passed.
    most = 128 * r * (n + p + 2)
    return (
        f"$scrypt$ln={n.bit_length() - 1},r={r},p={p}",
        _django("ScryptPasswordHasher", work_factor=n, block_size=r, parallelism=p, maxmem=most),
        f"new SCryptPasswordEncoder({n}, {r}, {p}, {_HASH}, {_SALT})",
        None,
    )


def _bcrypt(one: Parameters) -> tuple[str | None, ...]:
    cost = one["cost"]
    # The one that hashes the password by SHA-256 first, so that nothing of a long one is cut off.
    return (
        f"$2b${cost:02}$",
        _django("BCryptSHA256PasswordHasher", rounds=cost),
        f"new BCryptPasswordEncoder({cost})",
        None,
    )


def _pbkdf2(choice: str, iterations: int) -> tuple[str | None, ...]:
    phc, base, factory, keycloak = _PBKDF2[choice]
    # Django has two digests of its own, and a third needs a name of its own.
    other = {"algorithm": '"pbkdf2_sha512"', "digest": "hashlib.sha512"} if choice == "pbkdf2-sha-512" else {}
    django = _django(base, **other, iterations=iterations)
    spring = f"Pbkdf2PasswordEncoder.SecretKeyFactoryAlgorithm.{factory}"
    bytes_ = _HASH_OF_SHA_1 if choice == "pbkdf2-sha-1" else _HASH
    blocks = _BLOCKS_OF_KEYCLOAK[choice]
    longer = f", which takes {blocks} times as long there: it derives 64 bytes" if blocks > 1 else ""
    return (
        f"${phc}$i={iterations},l={bytes_}",
        django,
        f'new Pbkdf2PasswordEncoder("", {_SALT}, {iterations}, {spring})',
        f"hashAlgorithm({keycloak}) and hashIterations({iterations}){longer}",
    )


def _django(base: str, **settings: int | str) -> str:
    return f"class Tuned({base}): {'; '.join(f'{name} = {value}' for name, value in settings.items())}"
