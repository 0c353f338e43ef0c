"""Swaps: judged by the study's threshold and noise like any toll, in an order that does not favour the luckiest."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from size_lab import HANDSHAKE_TERM, HASH_TERM, handshakes, hashes, mix, sized
from tollbar.analysis import Verdict
from tollbar.catalog import families
from tollbar.core.intervals import Interval
from tollbar.core.records import Chunk
from tollbar.decide.size.swapping import Swap, in_order
from tollbar.decide.size.words import size_answer
from tollbar.results import Row, StudyRun

FEW_SEEDS, MANY_SEEDS = range(60), range(400)


@pytest.fixture
def swap(tmp_path: Path) -> Swap:
    return sized(mix(tmp_path, HASH_TERM.format(rate=100, choice="sha-256")), _equals(1, 0, 0.0)).terms[0].swaps[0]


def _equals(others: int, seed: int, noise: float) -> StudyRun:
    names = [name for name in families.family("digest").choices if name not in ("sha-256", "none")][:others]
    return hashes(dict.fromkeys(["sha-256", *names], 8000.0), seed, noise)


def _with_noisy_repeats(one: StudyRun) -> StudyRun:
    def slower(chunk: Chunk) -> Chunk:
        return replace(chunk, cpu_ns={name: round(1.08 * ns) for name, ns in chunk.cpu_ns.items()})

    def noisy(row: Row) -> Row:
        return replace(row, repeats=tuple(replace(t, chunks=tuple(map(slower, t.chunks))) for t in row.repeats))

    return replace(one, rows=tuple(map(noisy, one.rows)))


def test_the_first_line_is_the_surest_saving(swap: Swap) -> None:
    """A large uncertain saving comes after a small certain one; undecided swaps keep their study's order."""

    def made(name: str, verdict: Verdict, low: float, estimate: float, high: float) -> Swap:
        saved = Interval(estimate, low, high, 0.96, 12)
        return replace(swap, value=name, verdict=verdict, saved=saved)

    given = [
        made("a great loss", Verdict.COSTS, -9.0, -8.0, -7.0),
        made("unclear", Verdict.UNCLEAR, -1.0, 0.1, 1.2),
        made("a loss", Verdict.COSTS, -9.0, -5.0, -1.0),
        made("no interval", Verdict.UNCLEAR, -inf, 3.0, inf),
        made("lucky", Verdict.SAVES, 0.5, 4.0, 7.5),
        made("free", Verdict.FREE, -0.01, 0.0, 0.01),
        made("free and lucky", Verdict.FREE, 0.01, 0.02, 0.03),
        made("sure", Verdict.SAVES, 1.5, 2.0, 2.5),
    ]
    expected = ["sure", "lucky", "free", "free and lucky", "unclear", "no interval", "a loss", "a great loss"]
    assert expected == [one.value for one in in_order(given)]


@pytest.mark.parametrize("seeds", [FEW_SEEDS, pytest.param(MANY_SEEDS, marks=pytest.mark.coverage)])
def test_the_first_of_ten_equal_swaps_is_not_the_one_that_missed(tmp_path: Path, seeds: range) -> None:
    """Sorted by estimates, the first line's interval excluded zero in 9 of 100 runs."""
    of = mix(tmp_path, HASH_TERM.format(rate=30_000, choice="sha-256"))
    missed = 0
    for seed in seeds:
        (first, *_) = sized(of, _equals(10, seed, 0.02)).terms[0].swaps
        assert first.verdict is not Verdict.SAVES
        missed += first.saved.low > 0
    assert missed <= len(seeds) / 20


@pytest.mark.parametrize("studies", [1, 2])
def test_a_saving_within_the_noise_is_not_told_apart(tmp_path: Path, studies: int) -> None:
    """With A/A pairs 8 % apart, a swap of 6 % may save nothing, in one study and over several."""
    costs = {"full": 300.0, "rsa": 282.0, "bare": 30.0}
    resumed = {"resumed": 100.0, "rsa resumed": 94.0, "bare": 30.0}
    both = [handshakes(costs), handshakes(resumed, seed=5)] if studies == 2 else [handshakes({**costs, **resumed})]
    of = mix(tmp_path, HANDSHAKE_TERM.format(rate=1000, resumed=50))
    assert [Verdict.SAVES] == [one.verdict for one in sized(of, *both).terms[0].swaps]
    found = sized(of, *map(_with_noisy_repeats, both))
    assert [Verdict.UNCLEAR] == [one.verdict for one in found.terms[0].swaps]
    assert "cannot tell" in str(size_answer(found).listings)
