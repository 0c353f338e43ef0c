"""Counted rounds: those between quick probes, whatever their chunks cost; and reports without any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

import builders
from builders import row, study_run, trial
from tollbar.analysis import Verdict, judge_study
from tollbar.analysis.decisions import Terms
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.probes import readings
from tollbar.core.intervals import Moments
from tollbar.core.moments import quickness_of
from tollbar.core.records import Trial
from tollbar.report.page import how
from tollbar.report.sections.trust import noisy_words
from tollbar.report.sections.warnings import warnings
from tollbar.results import Row

TERMS = Terms(0.03, 1)


def noisy(block: int, times: float) -> Trial:
    """Return two chunks between quiet probes, and two at a multiple of the cost between slow ones."""
    quiet = [builders.chunk(number, 100.0 + number / 10, block=block) for number in range(2)]
    busy = [builders.chunk(n, 100.0 * times, block=block, probes_ns=(37_000.0, 36_000.0)) for n in (2, 3)]
    return replace(trial(100.0, block=block), chunks=(*quiet, *busy))


def disturbed_repeats(trials: Sequence[Trial]) -> list[Trial]:
    return [replace(trial, repeat=True) for trial in trials]


def test_quiet_and_all_samples_stand_side_by_side() -> None:
    base, cell = ([noisy(block, times) for block in range(12)] for times in (1.1, 1.5))
    rows = [
        replace(row({"choice": "none"}, against="none"), trials=tuple(base), repeats=tuple(disturbed_repeats(base))),
        replace(row({"choice": "x"}, against="none"), trials=tuple(cell)),
    ]
    judged = judge_study(study_run(rows, (12,)))
    toll = judged.tolls[1]
    assert toll.ratio is not None
    assert toll.all_samples is not None
    assert pytest.approx(1.0, rel=0.01) == toll.ratio.estimate
    assert 1.1 < toll.all_samples.estimate
    assert (Verdict.FREE, "more") == (toll.verdict, toll.suffers)
    assert any(
        "neighbours slowed 1 of 1 cell more than their baseline and 0 less" in warning.lower()
        for warning in warnings(judged)
    )


def test_a_chunk_between_slow_probes_is_disturbed_whatever_it_cost() -> None:
    rows = [row({"choice": "none"}, against="none"), row({"choice": "x"}, against="none")]
    for place, (quick, slow) in enumerate(((100.0, 80.0), (100.0, 160.0))):
        trials = []
        for block in range(8):
            chunks = [builders.chunk(n, quick, block=block) for n in range(2)]
            chunks += [builders.chunk(n, slow, block=block, probes_ns=(25_000.0, 40_000.0)) for n in (2, 3)]
            trials.append(replace(trial(1.0, block=block), chunks=tuple(chunks)))
        rows[place] = replace(rows[place], trials=tuple(trials))
    ledger = Ledger(rows, TERMS)
    toll = ledger.compare(rows[1], rows[0])
    ratio, all_samples = toll.ratio, toll.all_samples
    assert ratio is not None
    assert all_samples is not None
    assert (pytest.approx(1.0), Moments.QUIET) == (ratio.estimate, ratio.moments)
    assert (pytest.approx(130 / 90, rel=1e-4), Moments.ALL) == (all_samples.estimate, all_samples.moments)


@pytest.mark.parametrize("best_ns", [None, 18_000.0])
def test_a_core_that_was_never_quiet_gives_ratios_as_disturbed(best_ns: float | None) -> None:
    rows = [
        row({"choice": "none"}, [100.0] * 8, repeats_ns=[100.0] * 8),
        row({"choice": "x"}, [210.0] * 8, against="none"),
    ]
    if best_ns is None:
        # Three quiet blocks of eight.
        rows = [replace(r, trials=tuple(t if t.block < 3 else slowed(t) for t in r.trials)) for r in rows]
    judged = judge_study(study_run(rows, (8,)), quickness_of(readings(rows), best_ns))
    toll = judged.tolls[1]
    assert toll.ratio is not None
    assert (Moments.ALL, pytest.approx(2.1), None) == (toll.ratio.moments, toll.ratio.estimate, toll.suffers)
    assert toll.ratio.half_width < 0.01
    assert (3 if best_ns is None else 8) == toll.quiet_blocks
    why = (
        "its core was quiet in too few blocks, or for too short"
        if best_ns is None
        else "always measured next to a busy neighbour"
    )
    assert f"noisy: {why}" == noisy_words(judged, toll.ratio)
    assert any(warning.startswith("Noisy: ") for warning in warnings(judged))
    shares = (share for share in (0.3, 0.99) if judged.trust.quiet_share is not None)
    told = ["; ".join(warnings(replace(judged, trust=replace(judged.trust, quiet_share=share)))) for share in shares]
    # A core that was nearly always quiet is not named as the cause.
    assert all("99 %" not in words for words in told)
    assert best_ns is not None or "Noisy: the core was quiet 30 % of the time" in told[0]


def test_a_core_that_no_probe_shares_is_said_once() -> None:
    rows = [
        row({"choice": "none"}, [100.0] * 8, repeats_ns=[100.0] * 8),
        row({"choice": "x"}, [210.0] * 8, against="none"),
    ]
    judged = judge_study(study_run([unprobed(r) for r in rows], (8,)))
    (said,) = [warning for warning in warnings(judged) if "noisy" in warning]
    assert said.startswith("Noise cannot be detected: no probe runs on the measured core")
    assert {"noisy: no probe runs on the measured core"} == {
        noisy_words(judged, toll.ratio) for toll in judged.tolls if toll.ratio
    }
    assert Verdict.COSTS == judged.tolls[1].verdict
    assert "CPU time per operation, noisy, against none" in how(judged)


def unprobed(of: Row) -> Row:
    """Return the row as measured where no probe could run."""
    trials, repeats = (
        tuple(replace(t, chunks=tuple(replace(c, probes_ns=None) for c in t.chunks)) for t in some)
        for some in (of.trials, of.repeats)
    )
    return replace(of, trials=trials, repeats=repeats)


def slowed(of: Trial) -> Trial:
    """Return the trial between slow probes."""
    return replace(of, chunks=tuple(replace(chunk, probes_ns=(38_000.0, 38_000.0)) for chunk in of.chunks))


def test_the_difference_has_the_sign_of_the_ratio() -> None:
    """The difference is the ratio at the baseline's cost, whatever other batches the baseline was in."""
    blocks = range(8)
    base = tuple(trial(100.0 if batch else 300.0, block=b, batch=batch) for b in blocks for batch in (0, 1))
    rows = [
        replace(row({"choice": "none"}, against="none"), trials=base),
        replace(row({"choice": "x"}, against="none"), trials=tuple(trial(110.0, block=b, batch=1) for b in blocks)),
    ]
    toll = judge_study(study_run(rows, (8,))).tolls[1]
    assert toll.ratio is not None
    assert pytest.approx(1.1) == toll.ratio.estimate
    assert pytest.approx(20.0, rel=1e-3) == toll.difference


def test_a_cost_is_the_mean_over_operations() -> None:
    """Occasional expensive operations count towards the mean."""
    blocks = range(8)
    dear = tuple(trial([100.0, 100.0, 100.0, 150.0], block=block) for block in blocks)
    rows = [row({"choice": "none"}, [100.0] * 8), replace(row({"choice": "x"}), trials=dear)]
    ratio = Ledger(rows, TERMS).best_ratio(rows[1], rows[0])
    assert ratio is not None
    assert pytest.approx(1.125, rel=1e-4) == ratio.estimate
