"""Work of a known amount: the mean of each choice of `spin`, and its answers computed from the definition."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction
from math import isqrt

import pytest

from tollbar import study
from tollbar.catalog.families import families

WORD = 2**64
MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407
CHOICES = {name: choice for name, choice in families()["spin"].choices.items() if name != "none"}
BASELINE = "spin-1"

# Time of an operation relative to the baseline's.
MEANS = {
    "spin-1": Fraction(1),
    "spin-1-again": Fraction(1),
    "spin-2": Fraction(2),
    "spin-5": Fraction(5),
    "spin-periodic": Fraction(9, 8),
    "spin-rare": Fraction(11, 10),
    "spin-heavy-tailed": Fraction(2),
    "spin-drifting": Fraction(5, 4),
    "spin-wide-1": Fraction(10),
    "spin-wide-2": Fraction(20),
    "spin-parts": Fraction(1),
    "spin-locked": Fraction(10),
    "spin-waiting": Fraction(1000),
}


def lengths(setting: Mapping[str, object]) -> list[int]:
    """Return the steps of each operation of a whole period, or every size that may be drawn."""
    number = {name: value for name, value in setting.items() if isinstance(value, int)}
    parts = [number.get(name, 0) for name in ("first", "second", "third")]
    iterations = number["iterations"] + sum(parts) + (number.get("together", 0) if all(parts) else 0)
    if "sizes" in number:
        sizes, least = number["sizes"], number["least"]
        drawn = [isqrt(2 * sizes * least**2 // (2 * larger + 1)) for larger in range(1, sizes)]
        return [*reversed(drawn), iterations * sizes - sum(drawn)]
    span, dear = number.get("span", 1), number.get("dear", 0)
    least, most = number.get("extra-least", 0), number.get("extra-most", 0)
    cheap = span * (number.get("period", 1) - dear)
    last = span * dear
    risen = [least + (2 * k + 1) * (most - least + 1) // (2 * last) for k in range(last)]
    return [iterations] * cheap + [iterations + extra for extra in risen]


def chain(steps: int) -> int:
    """Return a chain from 1 after this number of steps, by squaring one step's multiplier and increment."""
    multiplier, increment, x = MULTIPLIER, INCREMENT, 1
    while steps:
        if steps % 2:
            x = (multiplier * x + increment) % WORD
        multiplier, increment = multiplier**2 % WORD, increment * (multiplier + 1) % WORD
        steps //= 2
    return x


def turned(value: int, by: int) -> int:
    """Return a word rotated to the left."""
    value %= WORD
    return (value << by | value >> (64 - by)) % WORD


def wide(steps: int) -> int:
    """Return eight values and a table of 2048 after this number of steps."""
    table = list(itertools.accumulate(range(2048), lambda x, _: (MULTIPLIER * x + INCREMENT) % WORD, initial=1))[1:]
    a, b, c, d, e, f, g, h = range(1, 9)
    for step in range(steps):
        start = 8 * step % 2048
        p = table[start : start + 8]
        a = turned(a + 3 * p[0], 13)
        b ^= (p[1] + a) % WORD
        c = turned(c + p[2], 7)
        d ^= 5 * p[3] % WORD
        e = turned(e + p[4], 17)
        f ^= p[5]
        g = turned(g + 7 * p[6], 5)
        h ^= p[7]
    return (a + b + c + d + e + f + g + h) % WORD


@pytest.mark.parametrize("name", CHOICES)
def test_answers_follow_the_definition(name: str) -> None:
    """An answer is the result of the work in a choice's `spec` after a whole period."""
    for answer in CHOICES[name].answers:
        setting = {**CHOICES[name].setting, **answer.setting}
        steps = sum(lengths(setting))
        assert answer.expected == f"{wide(steps) if setting.get('work') == 'wide' else chain(steps):016x}"


def test_a_jump_is_as_many_steps() -> None:
    x = 1
    for steps in range(100):
        assert chain(steps) == x
        x = (x * MULTIPLIER + INCREMENT) % WORD


@pytest.mark.parametrize("name", CHOICES)
def test_means_are_exact(name: str) -> None:
    """A mean is an exact fraction of the baseline's."""
    steps, baseline = lengths(CHOICES[name].setting), lengths(CHOICES[BASELINE].setting)
    assert MEANS[name] == Fraction(sum(steps), len(steps)) / Fraction(sum(baseline), len(baseline))


@pytest.mark.parametrize("name", ["self-test", "self-test-uneven"])
def test_self_tests_claim_the_means(name: str) -> None:
    (self_test,) = study.load([name])
    claimed = set()
    for claim in self_test.claims:
        of, over = (str(where["choice"]) for where in (claim.of, claim.over))
        assert float(MEANS[of] / MEANS[over]) == claim.one_ratio
        claimed |= {of, over}
    assert {*self_test.choices} == claimed


def test_the_self_test_with_threads_claims_what_locks_make() -> None:
    """N threads that each hold a lock for a share s take N · s times as long, if that is above 1.

    A sleeping waiter uses no CPU time.
    """
    (self_test,) = study.load(["self-test-scaling"])
    for claim in self_test.claims:
        setting, threads = CHOICES[str(claim.of["choice"])].setting, int(claim.of["threads"])
        share = Fraction(int(setting.get("locked", 0)), int(setting["iterations"]))
        takes = max(Fraction(1), threads * share)
        pays = claim.metric == "wall" or setting.get("waiting") == "spinning"
        assert float(takes if pays else 1) == claim.one_ratio
        assert {**claim.of, "threads": 1} == claim.over
