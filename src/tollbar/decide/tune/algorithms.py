"""Password hashes by their parameters: the work of parameters, and parameters for an amount of work.

Time is in proportion to the work while memory is equally fast; the deviation is measured, not assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Parameters = Mapping[str, int]

# Accepted work of parameters as a share of the requested work, where their grain is fine enough.
BELOW, ABOVE = 0.98, 1.01
# r below 8 makes scrypt's blocks smaller than is usual; beyond these there is nothing that smaller ones do not reach.
R_FROM, R_TO = 8, 64
MOST_PASSES = 1000
KIB = 1024


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Password hash by its parameters."""

    work: Callable[[Parameters], float]
    """In units of its own."""
    rule: str
    """Quantity to which the work is proportional, in words."""
    near: Callable[[float, float], Iterator[Parameters]]
    """Parameters of about this work and at most these bytes of memory each, in order of preference."""
    moved: Callable[[Parameters], float] | None = None
    """Bytes that a guess reads and writes of memory; None: it needs none that caches have not."""
    shape: Callable[[Parameters], int] = lambda _: 0
    """Shape of parameters: within one shape more work takes longer; between two shapes less work may take longer."""


def _argon2id(work: float, most_bytes: float) -> Iterator[Parameters]:
    """Yield parameters by RFC 9106, section 4: as much memory as possible, then as many passes as the time allows."""
    for passes in range(1, MOST_PASSES + 1):
        memory_kib = int(ABOVE * work / passes / KIB)
        # Round numbers, within the precision that is asked for.
        grain_kib = 1 << max(0, (memory_kib // 128).bit_length() - 1)
        memory = memory_kib // grain_kib * grain_kib * KIB
        if 8 * KIB <= memory <= most_bytes:
            yield {"memory": memory, "passes": passes, "lanes": 1}


def _scrypt(work: float, most_bytes: float) -> Iterator[Parameters]:
    """Yield parameters near the work, with the most memory first, then with r nearest to 8; then smaller work."""
    found = [
        {"n": 1 << power, "r": r, "p": p}
        for power in range(1, 25)
        for r in range(R_FROM, R_TO + 1)
        if (p := int(ABOVE * work) // (r << power)) and 128 * (r << power) <= most_bytes
    ]
    near = [one for one in found if _scrypt_work(one) >= BELOW * work]
    yield from sorted(near, key=lambda one: (-one["n"] * one["r"], one["r"]))
    yield from sorted((one for one in found if one["r"] == R_FROM), key=_scrypt_work, reverse=True)


def _scrypt_work(one: Parameters) -> float:
    return one["n"] * one["r"] * one["p"]


def _bcrypt(work: float, _: float) -> Iterator[Parameters]:
    # Its grain is a factor of two, so a cost slightly above is left to the measurement.
    yield {"cost": max(1, int(ABOVE * work).bit_length() - 1)}


def _pbkdf2(work: float, _: float) -> Iterator[Parameters]:
    grain = 10 ** max(0, len(str(int(work))) - 3)
    yield {"iterations": max(1, int(work) // grain * grain)}


_PBKDF2 = Algorithm(lambda one: one["iterations"], "iterations", _pbkdf2)
ALGORITHMS: Mapping[str, Algorithm] = {
    "argon2id": Algorithm(
        lambda one: one["memory"] * one["passes"],
        "memory × passes",
        _argon2id,
        lambda one: one["memory"] * (3 * one["passes"] - 1),
        shape=lambda one: one["passes"],
    ),
    "scrypt": Algorithm(_scrypt_work, "N × r × p", _scrypt, lambda one: 1.25 * 128 * _scrypt_work(one)),
    "bcrypt": Algorithm(lambda one: 2 ** one["cost"], "2^cost", _bcrypt),
    "pbkdf2-sha-256": _PBKDF2,
    "pbkdf2-sha-512": _PBKDF2,
    "pbkdf2-sha-1": _PBKDF2,
}
"""By the choice of the family `password-hash` whose parameters are a study's."""
