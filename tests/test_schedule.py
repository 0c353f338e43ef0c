"""Durations of plans, from defaults and from trials, compared with hand-computed ones."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tollbar import study
from tollbar.core.records import Outcome, failed
from tollbar.core.runner import Stopped
from tollbar.lab import measure
from tollbar.lab.measure import schedule
from tollbar.lab.measure.schedule import Pace, Tried, adapted
from tollbar.lab.workloads import Work
from tollbar.study import Measure, plan
from tollbar.study.plan import Plan
from tollbar.study.plan.batches import blocks
from tollbar.study.plan.cells import Cell

TEXT = """
question  = "?"
family    = "digest"
choices   = ["md5", "sha-1", "sha-256"]
providers = ["rustcrypto"]
baseline  = "md5"
[measure]
chunk  = "5 ms"
rounds = 10
blocks = 8
"""
HOW = Measure("cpu", 0.005, 10, 8)


@pytest.fixture(scope="module")
def planned() -> Plan:
    """Return a plan of a baseline with a repeat and two cells: one batch of four visits a block."""
    return plan.make([study.read("hashes", TEXT, where="hashes.toml")], seed=1)


def paces(planned: Plan, *seconds: float) -> dict[tuple[str, str], Pace]:
    """Return the paces of its cells in order, each with its time until ready."""
    return {("hashes", cell.key): Pace(one, 0.0) for cell, one in zip(planned.cells, seconds, strict=False)}


def test_a_chunk_takes_what_was_asked_or_its_fewest_operations() -> None:
    """Counted chunks last as long as their operations, even if that is less; slow ones come between others."""
    assert [0.005, 0.007] == [Pace(0.0, one).chunk_s(HOW) for one in (0.001, 0.007)]
    assert [0.001, 0.007] == [Pace(0.0, one, True).chunk_s(HOW) for one in (0.001, 0.007)]
    assert [False, True] == [Pace(0.0, one).is_slow(HOW) for one in (0.02, 0.0201)]


@pytest.mark.parametrize(
    ("operation_s", "rounds"),
    [
        (0.01, range(10)),
        (0.0101, range(0, 10, 2)),
        (0.02, range(0, 10, 2)),
        (0.0201, range(0, 10, 4)),
        (0.033, range(0, 10, 4)),
        (0.034, range(0, 10, 8)),
        (9.0, range(0, 10, 16)),
    ],
)
def test_a_trial_spends_twice_what_is_asked_at_most(operation_s: float, rounds: range) -> None:
    assert rounds == Pace(0.0, operation_s).turns(HOW)
    assert range(10) == Pace(0.0, operation_s, True).turns(HOW)


def test_a_pause_is_counted_for_each_batch() -> None:
    quick, paused = (
        plan.make([study.read("hashes", TEXT + more, where="hashes.toml")], seed=1) for more in ("", 'pause = "5 s"\n')
    )
    (one,), (other,) = quick.studies, paused.studies
    batches = [batch for some in blocks(one, 1, 3) for batch in some]
    assert pytest.approx(5.0) == schedule.of_block(other, 1) - schedule.of_block(one, 1)
    assert pytest.approx(15.0) == schedule.of_batches(paused, batches, {}) - schedule.of_batches(quick, batches, {})


def test_what_a_trial_takes() -> None:
    alone: Any = SimpleNamespace(server=None, provider=SimpleNamespace(ready_s=0.3))
    served: Any = SimpleNamespace(server="nginx", provider=SimpleNamespace(ready_s=0.3))
    assert pytest.approx(0.3 + 10 * 0.006) == schedule.trial_s(alone, HOW)
    assert pytest.approx(0.25 + 10 * 0.009 + 0.02) == schedule.trial_s(served, HOW)
    assert pytest.approx(2.0 + 5 * (0.015 + 0.001)) == schedule.trial_s(alone, HOW, Pace(2.0, 0.015))
    assert [0.15, 0.125] == [schedule.proof_s(one) for one in (alone, served)]
    assert [Pace(0.3, 0.0), Pace(0.25, 0.0)] == [schedule.usual(one) for one in (alone, served)]


def test_what_a_plan_takes(planned: Plan) -> None:
    (one,) = planned.studies
    ready_s = planned.cells[0].provider.ready_s
    block_s = 4 * (ready_s + 10 * 0.006)
    assert pytest.approx(block_s) == schedule.of_block(one, 1)
    assert pytest.approx(3 * ready_s / 2 + 8 * block_s) == schedule.of_study(one, 1) == schedule.of_plan(planned)
    known = paces(planned, 1.0, 10.0, 100.0)
    assert pytest.approx(2 * 1.06 + 10.06 + 100.06) == schedule.of_block(one, 1, known)
    assert pytest.approx(8 * 112.24) == schedule.of_plan(planned, known) == schedule.of_study(one, 1, known)
    # Unproved cells are not measured.
    assert pytest.approx(8 * (2 * 1.06 + 10.06)) == schedule.of_plan(planned, paces(planned, 1.0, 10.0))


def test_what_batches_take(planned: Plan) -> None:
    (one,) = planned.studies
    batches = [batch for block in blocks(one, 1, 3) for batch in block]
    usual_s = planned.cells[0].provider.ready_s + 0.06
    assert pytest.approx(3 * (2 * 1.06 + 10.06 + usual_s)) == schedule.of_batches(
        planned, batches, paces(planned, 1, 10)
    )
    assert 0 == schedule.of_batches(planned, [], {})


def test_how_many_blocks_fit(planned: Plan) -> None:
    (one,) = planned.studies
    known = paces(planned, 1.0, 10.0, 100.0)
    assert [4, 5, 5] == [schedule.blocks_within(one, 1, s, 4, known) for s in (5 * 112.24 - 1, 561.2001, 600.0)]
    proofs_s, block_s = 3 * planned.cells[0].provider.ready_s / 2, schedule.of_block(one, 1)
    assert 6 == schedule.blocks_within(one, 1, proofs_s + 6.5 * block_s, 4)
    assert 6 == schedule.blocks_within(one, 1, proofs_s / 2 + 7 * block_s, 4)
    assert 4 == schedule.blocks_within(one, 1, 0.0, 4) == schedule.blocks_within(one, 1, 600.0, 4, {})
    more = schedule.with_blocks(one, 20)
    assert replace(one.study.measure, blocks=20) == more.study.measure
    assert (one.cells, one.study.name) == (more.cells, more.study.name)


class Clock:
    """Clock that the virtual work advances."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> tuple[Tried, list[Any], dict[str, Any]]:
    """Return a trier of cells on a virtual runner (ready after 2 s, an operation each second), and its orders."""
    clock, asked, how = Clock(), [], {"work": Work(("runner",), {"a": "task"}, 3, fewest=4), "fails": None}
    monkeypatch.setattr(schedule, "time", clock)

    class Session:
        def __init__(self, command: object, task: object, *, core: int | None, account: object) -> None:
            asked.append(("session", command, task, core))

        def __enter__(self) -> Session:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def ready(self, limit_s: float) -> None:
            if how["fails"]:
                raise Stopped(failed("it fell over", Outcome.FAILED))
            clock.now_s += 2.0

        def advance(self, seconds: float, operations: int, limit_s: float) -> None:
            asked.append((seconds, operations))
            clock.now_s += float(operations)

        def finish(self) -> None:
            clock.now_s += 0.5

    @contextmanager
    def up(cell: Cell, seed: int, sandbox: object, core: int | None) -> Any:
        asked.append((cell.choice.name, seed, sandbox, core))
        yield how["work"]

    monkeypatch.setattr(schedule, "Session", Session)
    monkeypatch.setattr(schedule, "workloads", SimpleNamespace(of=lambda cell: SimpleNamespace(up=up)))
    return Tried(9, None, 3), asked, how


def test_the_first_of_a_kind_is_tried(planned: Plan, tries: tuple[Tried, list[Any], dict[str, Any]]) -> None:
    tried, asked, how = tries
    md5, sha1, _ = planned.cells
    assert Pace(2.5, 4.0) == tried.pace(md5, 0.1)
    assert [("md5", 9, None, 3), ("session", ("runner",), {"a": "task"}, 3), (0.0, 4)] == asked
    # Cells like it are not tried, unless their proof took long.
    how["work"] = replace(how["work"], fewest=1, is_counted=True)
    assert Pace(2.5, 4.0) == tried.pace(md5, 7.5)
    assert 3 == len(asked)
    assert Pace(2.5, 1.0, True) == tried.pace(md5, 7.6)
    assert Pace(2.5, 4.0) == tried.pace(md5, 0.1)
    # Another choice is of another kind.
    assert Pace(2.5, 1.0, True) == tried.pace(sha1, 0.1)


def test_what_cannot_be_tried_takes_what_is_usual(
    planned: Plan, tries: tuple[Tried, list[Any], dict[str, Any]]
) -> None:
    tried, _, how = tries
    how["fails"] = True
    assert schedule.usual(planned.cells[0]) == tried.pace(planned.cells[0], 0.1)
    how["fails"] = False
    assert Pace(2.5, 4.0) == tried.pace(planned.cells[0], 0.1)
    how["fails"] = True
    assert Pace(2.5, 4.0) == tried.pace(planned.cells[0], 99.0)


def test_batches_that_are_left_are_of_the_blocks_that_were_asked_for(planned: Plan) -> None:
    (one,) = planned.studies
    drawn = [batch for block in blocks(one, planned.seed, 3) for batch in block]
    asked = {"counts": {"hashes": 3}, "excluded": ()}
    assert drawn == measure.batches_left(planned, done=(), **asked)
    assert drawn[1:] == measure.batches_left(planned, done={("hashes", 0, 0)}, **asked)
    assert drawn[1:] == measure.batches_left(planned, done={("hashes", 0, 0)}, made=_trials(drawn[0]), **asked)
    again = measure.batches_left(planned, done={("hashes", 0, 0), ("hashes", 0, 1)}, made=set(), **asked)
    assert [("hashes", 0, 2), ("hashes", 1, 0), ("hashes", 2, 0)] == [
        (one.study, one.block, one.number) for one in again
    ]
    assert [(v.cell, v.repeat, 2) for v in drawn[0].visits] == [(v.cell, v.repeat, v.batch) for v in again[0].visits]


def _trials(batch: Any) -> set[Any]:
    return {(batch.study, v.cell.key, v.repeat, batch.block, batch.number) for v in batch.visits}


def test_a_cell_that_was_not_proved_is_in_no_batch(planned: Plan) -> None:
    md5, sha1, sha256 = (("hashes", cell.key) for cell in planned.cells)
    asked = {"counts": {"hashes": 1}, "done": ()}
    (batch,) = measure.batches_left(planned, excluded={sha1, sha256}, **asked)
    assert [(False, "md5"), (True, "md5")] == sorted((v.repeat, v.cell.choice.name) for v in batch.visits)
    (batch,) = measure.batches_left(planned, excluded={md5}, **asked)
    assert ["sha-1", "sha-256"] == sorted(v.cell.choice.name for v in batch.visits)
    assert [] == measure.batches_left(planned, excluded={md5, sha1, sha256}, **asked)


def test_quick_operations_of_the_engine_have_short_chunks() -> None:
    usual = TEXT.partition("[measure]")[0] + "[measure]\n"
    planned = study.read("s", usual + "blocks = 4\n", where="s")
    cells = plan.make((planned,), seed=1).studies[0].cells
    quick, slow = Pace(0.0, 5e-6), Pace(0.0, 50e-6)
    assert planned.measure.is_adapted
    assert (0.0002, 100) == _chunks(adapted(planned.measure, cells, [quick] * len(cells)))
    assert (0.005, 10) == _chunks(adapted(planned.measure, cells, [quick] * (len(cells) - 1) + [slow]))
    assert (0.005, 10) == _chunks(adapted(planned.measure, cells, [replace(quick, is_counted=True)] * len(cells)))
    other = [replace(cell, provider=replace(cell.provider, kind="runner")) for cell in cells]
    assert (0.005, 10) == _chunks(adapted(planned.measure, other, [quick] * len(cells)))
    named = study.read("s", usual + 'chunk = "5 ms"\n', where="s").measure
    assert (0.005, 10) == _chunks(adapted(named, cells, [quick] * len(cells)))


def _chunks(how: Measure) -> tuple[float, int]:
    return how.chunk_s, how.rounds
