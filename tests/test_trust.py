"""Drift and warnings: what a reader should know before believing a run."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from builders import example, row, study, study_run, trial, trials
from tollbar.judge import judge_study
from tollbar.measure import Outcome
from tollbar.results import Row
from tollbar.runner import ComponentRecord, LoadRecord


def test_drift_is_the_last_third_over_the_first() -> None:
    """A cost that doubles half way has drifted to ×2.00, and the warning says what to do."""
    costs = [100.0] * 9 + [200.0] * 9
    judged = judge_study(study_run([row({"choice": "none"}, costs, twins_ns=costs)], (18,)))
    assert pytest.approx(2.0) == judged.drift
    assert ["rose by 100%"] == [re.findall("rose by [0-9]+%", w)[0] for w in judged.warnings]


def held_up(share: float) -> LoadRecord:
    """A load whose server stood for this share of the time while others had its core."""
    component = ComponentRecord(cpu_ns=500, held_up_ns=round(1000 * share))
    return LoadRecord(requests=1, wall_ns=1000, components={"web": component})


@pytest.mark.parametrize(
    ("rows", "looks", "expected"),
    [
        ([row({"choice": "x"}, outcome=Outcome.FAILED, reason="no")], (20,), "Nothing was measured"),
        (example(5), (5,), "5 blocks cannot carry an interval"),
        (example(12), (20,), "cut short: 12 of 20 blocks are whole"),
        (
            [replace(r, trials=r.trials[:-1] if r.choice == "same" else r.trials) for r in example()],
            (20,),
            "19 of 20",
        ),
        ([replace(r, twins=()) for r in example()], (20,), "No baseline was measured twice"),
        (
            [replace(r, trials=tuple(replace(t, steal_ns=t.wall_ns) for t in r.trials)) for r in example()],
            (20,),
            "In 60 of 80 trials",
        ),
        (
            [
                row({"choice": "none"}, [100.0] * 20),
                replace(
                    row({"choice": "x"}),
                    trials=tuple(replace(trial(1.0, block=n), load=held_up(0.2 if n < 5 else 0.1)) for n in range(20)),
                ),
            ],
            (20,),
            "In 5 of 20 trials the server or its client stood",
        ),
        (
            [row({"choice": "none"}, [100.0] * 20, twins_ns=[110.0] * 20)],
            (20,),
            "nothing held against it can be called free",
        ),
        (
            [
                replace(
                    row({"choice": "x"}, [1.0] * 7),
                    trials=(*trials([1.0] * 7), trial(1.0, block=7, outcome=Outcome.FAILED)),
                )
            ],
            (8,),
            "1 trial of cells that otherwise went well left no cost (the runner fell over)",
        ),
    ],
    ids=["nothing", "few", "cut", "cut-within", "twinless", "steal", "contention", "noise", "failures"],
)
def test_warnings(rows: list[Row], looks: tuple[int, ...], expected: str) -> None:
    """Whatever shakes the verdicts is said in a sentence."""
    warnings = judge_study(study_run(rows, looks, study(blocks=looks[-1]))).warnings
    assert 1 == sum(expected in warning for warning in warnings)
