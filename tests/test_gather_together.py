"""Several runs of one machine: one verdict from a joint interval, and more decisions with more runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from math import exp
from pathlib import Path
from random import Random

import pytest
from bench.fleet import fingerprint, run_of

from gather_lab import cost, told
from tollbar.analysis import Verdict
from tollbar.analysis.decisions import Terms, decide
from tollbar.analysis.kept import KeptCell, KeptNoise, KeptStudy, KeptToll
from tollbar.catalog.families import Standing
from tollbar.core.intervals import Interval, student
from tollbar.decide.compare import MachineToll, Observation
from tollbar.decide.compare.combining import combined
from tollbar.decide.compare.document import document
from tollbar.decide.compare.words import gather_answer

TERMS = Terms(0.03, 1)
CELL = KeptCell({"choice": "x"}, "p 1", None, Standing.ACCEPTABLE)
# Spread within a run, of the logarithm: with twelve blocks one run finds a true ×1.05 in some 93 of 100.
WITHIN, FREEDOM = 0.0051, 11
_quantile = cache(student)


def _run(chance: Random, ratio: float, between: float = 0.0, within: float = WITHIN) -> Interval:
    """Return a run's ratio: its true one differs between runs, and its interval covers the spread within it alone."""
    log = math.log(ratio) + chance.gauss(0, between) + chance.gauss(0, within)
    half = _quantile(FREEDOM, 0.96) * within * math.sqrt(chance.gammavariate(FREEDOM / 2, 2) / FREEDOM)
    return Interval(exp(log), exp(log - half), exp(log + half), 0.96, FREEDOM + 1, freedom=FREEDOM)


def _place(runs: Sequence[Interval], repeats: Sequence[Interval] = (), noisy: Sequence[int] = ()) -> MachineToll:
    seen = []
    for number, one in enumerate(runs):
        noise = repeats[number] if repeats else None
        kept = noise and KeptNoise(noise.estimate, noise.low, noise.high, noise.freedom, noise.n)
        floor = max(noise.high, 1 / noise.low) if noise else None
        verdict = decide(one, floor, TERMS)
        toll = KeptToll(
            1,
            0,
            one.estimate,
            one.low,
            one.high,
            verdict,
            one.n,
            None,
            number in noisy,
            FREEDOM,
            0 if kept else None,
        )
        study = KeptStudy(
            name="s", question="?", family="digest", cost="cpu", load="", threshold=0.03, confidence=0.96,
            noise_floor=1.0,
            quiet_share=1.0, cells_measured=2, never_quiet=0, wrong_claims=[], parameters={},
            noises=[kept] if kept else [], cells=[CELL, CELL], tolls=[toll],
        )  # fmt: skip
        seen.append(Observation(number, study, toll))
    return MachineToll(seen)


def _shares(chance: Random, repetitions: int, runs: int, ratio: float, between: float = 0.0) -> dict[str, float]:
    """Return how often the joint interval gives each result, and how often every single run gives *costs*."""
    found = dict.fromkeys(["costs", "free", "covers", "each"], 0.0)
    for _ in range(repetitions):
        place = _place(
            [_run(chance, ratio, between) for _ in range(runs)], [_run(chance, 1.0, between) for _ in range(runs)]
        )
        assert place.ratio
        found["costs"] += place.verdict is Verdict.COSTS
        found["free"] += place.verdict is Verdict.FREE
        found["covers"] += place.ratio.low <= ratio <= place.ratio.high
        found["each"] += all(one.toll.verdict is Verdict.COSTS for one in place.seen)
    return {name: number / repetitions for name, number in found.items()}


REPETITIONS = [100, pytest.param(2000, marks=pytest.mark.coverage)]


@pytest.mark.parametrize("repetitions", REPETITIONS)
def test_more_runs_decide_more(repetitions: int) -> None:
    """With a required agreement of all runs, a true ×1.05 is decided in 90, 65 and 16 of 100 by 1, 5 and 20 runs."""
    by_runs = {runs: _shares(Random(runs), repetitions, runs, 1.05) for runs in (1, 2, 5, 20)}
    power = [one["costs"] for one in by_runs.values()]
    assert power == sorted(power)
    assert power[2] >= 0.99
    assert by_runs[20]["each"] <= 0.5 < by_runs[5]["each"] <= 0.9


@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("runs", [2, 5, 20])
def test_seldom_is_a_decision_false(repetitions: int, runs: int) -> None:
    """A true ×1.03, the border, has no right verdict; runs also differ by as much again as the error of each."""
    chance, more = Random(runs), 1.0 if repetitions > 500 else 2.0
    for between in (0.0, WITHIN):
        found = _shares(chance, repetitions, runs, 1.03, between)
        assert max(found["costs"], found["free"]) <= 0.05 * more
        assert found["covers"] >= 0.93 - 0.03 * (more - 1)


def test_what_each_run_leaves_open_all_of_them_decide() -> None:
    runs = [Interval(1.05, 1.02, 1.081, 0.96, 6, freedom=5) for _ in range(6)]
    repeats = [Interval(1.0, 0.98, 1.02, 0.96, 6, freedom=5) for _ in range(6)]
    place = _place(runs, repeats)
    assert {Verdict.UNCLEAR} == {one.toll.verdict for one in place.seen}
    assert Verdict.COSTS is place.verdict
    assert place.ratio
    assert 1.03 < place.ratio.low < 1.05 < place.ratio.high < 1.07
    assert place.ratio.estimate == pytest.approx(1.05)


def test_runs_that_differ_have_a_wide_interval() -> None:
    """Five runs that are 4 % apart, each known within 0.4 %: their mean is not known within 0.4 % / √5."""
    ends = [Interval(r, r / 1.004, r * 1.004, 0.96, 12, freedom=11) for r in (1.0, 1.02, 1.04, 1.06, 1.08)]
    found = combined(tuple(ends))
    assert found
    assert math.log(found.high / found.low) / 2 > 0.025
    assert 7 == found.freedom


def test_noise_that_all_repeats_share_decides_nothing() -> None:
    """A/A pairs that differ by 5 % in each run: equal cells may differ by as much, whatever the number of runs."""
    chance = Random(1)
    both = [[_run(chance, 1.05) for _ in range(20)] for _ in range(2)]
    assert Verdict.UNCLEAR is _place(*both).verdict
    assert Verdict.COSTS is _place(both[0], [_run(chance, 1.0) for _ in range(20)]).verdict
    assert Verdict.UNCLEAR is _place(both[0]).verdict


def test_decided_runs_that_contradict_are_never_one_verdict() -> None:
    chance = Random(1)
    runs = [*(_run(chance, 1.2) for _ in range(9)), _run(chance, 0.8)]
    place = _place(runs, [_run(chance, 1.0) for _ in runs])
    assert place.verdict is None
    assert place.ratio


def test_ratios_as_disturbed_are_not_combined_with_others() -> None:
    chance = Random(1)
    runs, repeats = [_run(chance, 1.2), _run(chance, 1.1), _run(chance, 1.1)], [_run(chance, 1.0) for _ in range(3)]
    place = _place(runs, repeats, noisy=[0])
    assert place.ratio == combined(tuple(one for one in runs[1:]))
    assert [1, 2] == [one.run for one in place.combined]
    alone = _place(runs[:1], repeats[:1], noisy=[0])
    assert alone.ratio
    assert alone.ratio.estimate == runs[0].estimate
    assert alone.seen[0].toll.verdict is alone.verdict


@pytest.mark.parametrize(
    ("low", "high", "confidence", "freedom"),
    [(5e-324, 9e14, 0.96, 0.1), (1.0, 1.0, 0.96, 11.0), (0.9, 1.1, 0.0, 11.0), (0.9, 1.1, 1.0, 0.1)],
)
def test_whatever_others_sent_has_an_answer(low: float, high: float, confidence: float, freedom: float) -> None:
    """A sender may write any interval: the result is a number, or no interval."""
    sent = Interval(1.0, low, high, confidence, 5, freedom=freedom)
    for several in ((sent, sent), (sent, _run(Random(1), 1.0), sent)):
        found = combined(several)
        assert found is None or 0 <= found.low <= found.estimate <= found.high


def test_all_forms_say_what_runs_are_together(one_run: Path, tmp_path: Path) -> None:
    run_of(tmp_path, fingerprint("Example CPU 1"), cost(sha_512=1600.0), seed=2)
    found = told(one_run, tmp_path)
    (toll, *_) = [one for one in document(found).tolls if one.cell["choice"] == "sha-512" and one.on[0].together]
    together = toll.on[0].together
    assert together
    assert [0, 1] == sorted(together.runs)
    assert together.ratio == pytest.approx(math.sqrt(1.5 * 1.6), rel=0.01)
    assert "1.55 [" in str(gather_answer(found, everything=True))
    assert "(2 runs: 1.50 to 1.60)" in str(gather_answer(found, everything=True))
