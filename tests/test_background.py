"""CPU time of a runtime between chunks: part of the cost, and listed separately."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import example, study_run
from tollbar.analysis import judge_study


def test_what_a_runtime_does_between_chunks_is_shared_out_among_all_operations() -> None:
    base, cell, same = example()
    trials = tuple(
        replace(
            trial,
            chunks=(
                replace(trial.chunks[0], observed={("", "background"): 0.25 * trial.operations}),
                *trial.chunks[1:],
            ),
        )
        for trial in cell.trials
    )
    judged = judge_study(study_run([base, replace(cell, trials=trials), same]))
    found = {m.row.key: m for m in judged.measurements if m.metric == "background"}
    assert {cell.key: pytest.approx(0.25, rel=1e-4)} == {key: one.value for key, one in found.items()}
    assert {"ns/op"} == {one.unit for one in found.values()}
