"""A limited time: cells for which none is left are neither proved nor measured, and the run reports their number."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import FAKE_RUNNER
from tollbar import lab, results, study
from tollbar.analysis.so_far import so_far_of
from tollbar.lab.events import NoTime
from tollbar.lab.measure.schedule import Pace
from tollbar.lab.measuring import FEWEST_COMPARED, _affordable, _slowdown
from tollbar.study import plan
from tollbar.study.plan import Plan

CHOICES = ("spin-1", "spin-5", "spin-2", "spin-1-again", "spin-periodic")
# The first choice is the baseline.
WANTED = lab.HowLong(wanted=[{"choice": name} for name in CHOICES])


@pytest.fixture
def planned() -> Plan:
    words = [*CHOICES, f"provider=runner:{FAKE_RUNNER}"]
    return plan.make([study.read(study.ASKED, study.of_words("spin", words).text(4), where=study.ASKED)], seed=1)


def names(of: Plan) -> set[str]:
    """Return the choices that are compared with the baseline."""
    return {cell.choice.name for cell in of.cells if not cell.is_baseline}


def paces(of: Plan, ready_s: float) -> dict[tuple[str, str], Pace]:
    return {(cell.study, cell.key): Pace(ready_s, 0.0) for cell in of.cells}


@pytest.mark.parametrize(("within_s", "count"), [(1000.0, 4), (30.0, 3), (0.0, FEWEST_COMPARED)])
def test_the_least_wanted_cells_are_left_out_where_the_fewest_blocks_do_not_fit(
    planned: Plan, within_s: float, count: int
) -> None:
    """A trial of a second: four blocks of four cells, their baseline and its repeat take 24 s and more."""
    kept = _affordable(planned, (), paces(planned, 1.0), within_s, WANTED.rank)
    assert set(CHOICES[1 : count + 1]) == names(kept)
    assert ["spin-1"] == [cell.choice.name for cell in kept.cells if cell.is_baseline]


def test_an_unproven_or_failed_cell_is_never_kept(planned: Plan) -> None:
    of = {cell.choice.name: (cell.study, cell.key) for cell in planned.cells}
    found = paces(planned, 1.0)
    del found[of["spin-5"]]
    kept = _affordable(planned, {of["spin-2"]}, found, 0.0, WANTED.rank)
    assert {"spin-1-again", "spin-periodic"} == names(kept)


def test_a_run_whose_time_is_over_proves_and_measures_the_fewest(planned: Plan, tmp_path: Path) -> None:
    asked = [one.study for one in planned.studies]
    begun, store = lab.begin(asked, command=(), runs=tmp_path / "runs", seed=1)
    until = replace(WANTED, until_s=time.monotonic())
    events = [*lab.measured_into(store, begun, so_far_of, until)]
    store.close()
    assert [NoTime(2)] == [event for event in events if isinstance(event, NoTime)]
    (found,) = results.read(store.directory).studies
    assert set(CHOICES[: FEWEST_COMPARED + 1]) == {row.choice for row in found.rows if row.trials}
    # A later command may go on with it.
    reopened = results.reopen(store.directory)
    assert 2 == len(reopened.unproven())
    reopened.close()


def test_a_busy_machine_has_less_time() -> None:
    assert [1.0, 2.0, 3.0, 3.0] == [_slowdown(busy, 2) for busy in (0.0, 1.0, 2.0, 2.6)]
