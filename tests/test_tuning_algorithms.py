"""Facts about each password hash: parameters for any work, published guessing rates, and text to paste."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import argon2
import pytest

from tollbar.catalog import families
from tollbar.decide import tune
from tollbar.decide.tune import ALGORITHMS, Parameters, attackers

FAMILY = families.family("password-hash")
MIB = 1024**2


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("work", [1.3e6, 7.77e6, 1.23e8, 9.87e8])
def test_there_are_parameters_of_about_any_work(name: str, work: float) -> None:
    """Within a few percent, except bcrypt, which has steps of a factor of two; never beyond the memory."""
    algorithm, most = ALGORITHMS[name], 256 * MIB
    one = next(iter(algorithm.near(work, most)))
    assert algorithm.work(one) <= 1.011 * work
    assert algorithm.work(one) >= (0.49 if name == "bcrypt" else 0.975) * work
    assert FAMILY.choices[name].memory_bytes(one) <= most


def test_memory_comes_before_passes() -> None:
    """RFC 9106: as much memory as possible, then passes."""
    near = ALGORITHMS["argon2id"].near
    assert 1 == next(iter(near(100 * MIB, 200 * MIB)))["passes"]
    assert 4 == next(iter(near(100 * MIB, 30 * MIB)))["passes"]


def test_every_rate_names_its_source_and_scales_by_the_work() -> None:
    """Half of the guesses at twice the work; memory bounds the rate of an algorithm that needs it."""
    for name, algorithm in ALGORITHMS.items():
        rates = [rate for rate in attackers().rate if rate.choice == name]
        assert rates
        assert all(rate.source and rate.tool and rate.parameters for rate in rates)
        one = next(iter(algorithm.near(5e8, 1e9)))
        twice = next(
            p for p in algorithm.near(2 * algorithm.work(one), 1e9) if p["passes" if "passes" in p else next(iter(p))]
        )
        found, less = (tune.guesses(FAMILY, name, p, "rtx-4090") for p in (one, twice))
        assert found.published
        assert less.published
        ratio = algorithm.work(twice) / algorithm.work(one)
        assert found.published / less.published == pytest.approx(ratio)
        if found.by_memory:
            assert found.published < found.by_memory


def test_the_fastest_published_rate_counts() -> None:
    """An attacker has the faster tool, even if its source was not read for Tollbar."""
    found = tune.guesses(FAMILY, "scrypt", {"n": 2**14, "r": 8, "p": 1}, "rtx-4090")
    assert 7126 == found.published
    assert found.rate
    assert not found.rate.checked


def test_a_rate_is_never_made_up() -> None:
    assert tune.guesses(FAMILY, "bcrypt", {"cost": 10}, "rtx-4090").by_memory is None


SETS: Mapping[str, Parameters] = {
    "argon2id": {"memory": 46 * MIB, "passes": 2, "lanes": 1},
    "scrypt": {"n": 2**16, "r": 10, "p": 2},
    "bcrypt": {"cost": 9},
    "pbkdf2-sha-1": {"iterations": 1_400_000},
    "pbkdf2-sha-256": {"iterations": 601_000},
    "pbkdf2-sha-512": {"iterations": 221_000},
}
# The attributes of Django 5.2's classes.
DJANGO = {
    "Argon2PasswordHasher": {"memory_cost", "time_cost", "parallelism"},
    "ScryptPasswordHasher": {"work_factor", "block_size", "parallelism", "maxmem"},
    "BCryptSHA256PasswordHasher": {"rounds"},
    "PBKDF2PasswordHasher": {"iterations", "digest", "algorithm"},
    "PBKDF2SHA1PasswordHasher": {"iterations", "digest", "algorithm"},
}
SPRING = re.compile(r"new (Argon2|SCrypt|BCrypt|Pbkdf2)PasswordEncoder\([\w.\", ]+\)")
# The identifier, an optional version, and parameters, by the format's specification.
PHC = re.compile(r"\$[a-z0-9-]{1,32}(\$v=[0-9]+)?\$[a-z0-9-]{1,32}=[0-9]+(,[a-z0-9-]{1,32}=[0-9]+)*")


@pytest.mark.parametrize("name", SETS)
def test_what_is_pasted_has_the_form_of_its_place(name: str) -> None:
    text = tune.pasted(name, SETS[name])
    assert tune.PLACES == tuple(text)
    phc, django, spring, keycloak = text.values()
    assert phc
    assert re.fullmatch(r"\$2b\$\d\d\$", phc) if name == "bcrypt" else PHC.fullmatch(phc)
    space: dict[str, Any] = {base: type(base, (), {}) for base in DJANGO} | {"hashlib": __import__("hashlib")}
    assert django
    exec(django, space)
    made = space["Tuned"]
    assert {one for one in vars(made) if not one.startswith("__")} <= DJANGO[made.__base__.__name__]
    assert spring
    assert SPRING.fullmatch(spring)
    assert keycloak is None or keycloak.startswith(("--spi-password-hashing--argon2--", "hashAlgorithm(pbkdf2"))


@pytest.mark.parametrize(
    ("choice", "bytes_", "longer"), [("pbkdf2-sha-1", 20, 4), ("pbkdf2-sha-256", 32, 2), ("pbkdf2-sha-512", 32, 1)]
)
def test_a_hash_of_pbkdf2_is_one_block(choice: str, bytes_: int, longer: int) -> None:
    """At most as long as the digest; Keycloak's has 64 bytes, and its longer time is printed."""
    text = tune.pasted(choice, {"iterations": 1000})
    assert str(text["PHC string"]).endswith(f"i=1000,l={bytes_}")
    assert (f"takes {longer} times as long there" in str(text["Keycloak"])) == (longer > 1)


def test_the_phc_string_is_what_argon2_reads() -> None:
    """By the reference implementation's own reader, with salt and hash appended."""
    text = tune.pasted("argon2id", SETS["argon2id"])["PHC string"]
    found = argon2.extract_parameters(f"{text}$c2FsdHNhbHRzYWx0c2FsdA${'A' * 43}")
    assert (46 * 1024, 2, 1) == (found.memory_cost, found.time_cost, found.parallelism)
