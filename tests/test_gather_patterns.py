"""Flags that go with verdicts: reported only if chance rarely gives as much, and always compared with chance."""

from __future__ import annotations

from random import Random

import pytest

from tollbar.analysis import Verdict
from tollbar.catalog.families import Standing
from tollbar.decide.compare import Machine, TollRow
from tollbar.decide.compare.found_runs import Fingerprint
from tollbar.decide.compare.patterns import BY_CHANCE, MOST_SHUFFLES, Patterns, find_patterns

BOTH = (Verdict.COSTS, Verdict.SAVES)


def _machines(*flags: str) -> list[Machine]:
    """Return a machine for each word of flags, each with its own processor."""
    return [Machine(Fingerprint(cpu=f"CPU {n}", flags=one.split())) for n, one in enumerate(flags)]


def _row(verdicts: dict[int, Verdict], number: int = 0) -> TollRow:
    row = TollRow("digest", "cpu", "", {}, 0.03, {"choice": f"c{number}"}, {}, Standing.ACCEPTABLE)
    row.__dict__["verdicts"] = verdicts
    return row


def _coins(chance: Random, processors: int, rows: int) -> Patterns:
    """Return random verdicts on processors with six flags that half of them have."""
    halves = [chance.sample(range(processors), processors // 2) for _ in range(6)]
    machines = _machines(*(" ".join(f"f{n}" for n, half in enumerate(halves) if p in half) for p in range(processors)))
    made = [_row({p: chance.choice(BOTH) for p in range(processors)}, n) for n in range(rows)]
    return find_patterns(made, machines)


@pytest.mark.parametrize(("with_", "without", "is_told"), [(2, 2, False), (3, 3, False), (3, 4, True), (4, 4, True)])
def test_a_pattern_needs_processors_enough(with_: int, without: int, is_told: bool) -> None:
    """Ten assignments are possible with six processors, three of them with a flag, and 35 with seven: one separates."""
    machines = _machines(*["aes sha"] * with_, *["aes"] * without)
    verdicts = {n: BOTH[n >= with_] for n in range(with_ + without)}
    found = find_patterns([_row(verdicts, n) for n in range(3)], machines)
    assert (3, is_told, not is_told) == (found.tolls, bool(found.told), bool(found.not_told))
    for one in found.told:
        assert (("sha",), *BOTH, (with_, without)) == (one.flags, one.have, one.lack, one.processors)
        assert 3 == len(one.rows)
        assert one.by_chance < BY_CHANCE


def test_what_is_decided_on_one_processor_of_a_side_is_none() -> None:
    machines = _machines("sha", "", "", "", "", "", "")
    assert Patterns() == find_patterns([_row({n: BOTH[n > 0] for n in range(7)})], machines)


def test_machines_of_one_processor_are_dealt_out_together() -> None:
    """Eight machines of four processors count as four: one of three assignments separates as well."""
    machines = [Machine(one.fingerprint) for one in _machines("sha", "sha", "", "") for _ in range(2)]
    found = find_patterns([_row({n: BOTH[n >= 4] for n in range(8)})], machines)
    assert (1, 0, 1, 24) == (found.tolls, len(found.told), found.not_told, found.shuffles)


@pytest.mark.parametrize("repetitions", [60, pytest.param(600, marks=pytest.mark.coverage)])
@pytest.mark.parametrize(("processors", "rows"), [(6, 30), (8, 30), (8, 1)])
def test_coins_seldom_make_a_pattern(
    monkeypatch: pytest.MonkeyPatch, processors: int, rows: int, repetitions: int
) -> None:
    """If every separating flag was reported, 30 random tolls on six processors made a pattern in 98 of 100 runs."""
    monkeypatch.setattr("tollbar.decide.compare.patterns.MOST_SHUFFLES", 200)
    chance, told, separated = Random(5), 0, 0
    for _ in range(repetitions):
        found = _coins(chance, processors, rows)
        told += bool(found.told)
        separated += found.tolls > 0
    assert told <= 0.05 * repetitions + (2 if repetitions < 100 else 0)
    if (processors, rows) == (6, 30):
        assert separated >= 0.8 * repetitions


def test_what_is_so_is_found_among_coins() -> None:
    """A flag decides twelve of forty tolls on ten processors; the others are random."""
    chance = Random(3)
    machines = _machines(*(("sha " if n < 5 else "") + ("odd" if n % 2 else "") for n in range(10)))
    rows = [_row({p: BOTH[p >= 5] if n < 12 else chance.choice(BOTH) for p in range(10)}, n) for n in range(40)]
    found = find_patterns(rows, machines)
    (one,) = found.told
    assert ("sha",) == one.flags
    assert 12 == len(one.rows)
    assert MOST_SHUFFLES == found.shuffles
    assert found.usual <= found.most < 12 <= found.tolls
    assert found == find_patterns(rows, machines)
