"""Changes that would alter every number or lose a run without any visible sign: each has a test that fails with it."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import builders
from builders import row, study_run, trial
from conftest import Tollbar, lacking
from test_store import chunk, session, task
from tollbar import lab, results, study
from tollbar.analysis import ClaimVerdict, StudyJudgement, judge_study
from tollbar.catalog import libraries
from tollbar.cli import doctor as doctors
from tollbar.cli import measuring
from tollbar.core import files, machine, proc, stats, visits
from tollbar.core.errors import ExitStatus
from tollbar.core.intervals import Moments
from tollbar.core.moments import Watch
from tollbar.core.records import ChunkRecord, Observed, Trial
from tollbar.core.runner import Session
from tollbar.lab.measure import members, rounds
from tollbar.lab.measure.members import Member
from tollbar.lab.measure.rounds import Rounds
from tollbar.lab.workloads import Work
from tollbar.study import Measure
from tollbar.study.plan.batches import Visit

HOW = Measure("cpu", 0.0, 10, 4)


# Measuring.


def test_what_is_measured_is_on_the_measuring_core_and_the_lab_is_not(
    fake_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Running members are on that core alone in their rounds, by the kernel's account, in each chunk."""
    if machine.measuring_core() is None:
        lacking("this machine has one core")
    cores, core = os.sched_getaffinity(0), machine.measuring_core()
    seen: Counter[tuple[frozenset[int], bool]] = Counter()

    class Watched(Session):
        def advance(self, *arguments: Any, **more: Any) -> ChunkRecord:
            for pid in (self.pid, *proc._children(self.pid)):
                seen[frozenset(os.sched_getaffinity(pid)), core in os.sched_getaffinity(0)] += 1
            return super().advance(*arguments, **more)

    monkeypatch.setattr(members, "Session", Watched)
    try:
        asked = lab.with_blocks(study.load([str(fake_study)]), 1)
        measuring.carry_out(
            *lab.begin(asked, command=(), runs=tmp_path / "runs", seed=1),
            report=False,
            how_long=lab.HowLong(exactly=True),
        )
    finally:
        os.sched_setaffinity(0, cores)
    assert {(frozenset({core}), False)} == set(seen)


class Answering:
    """Session that answers each order with the next of these observations, and records its turn."""

    def __init__(self, name: str, turns: list[str], observed: Iterator[Observed]) -> None:
        self.pid = 0
        self._name, self._turns, self._observed = name, turns, observed

    def advance(
        self, seconds: float, operations: int, limit_s: float, meanwhile: object = None, *, slice_s: float = 0.0
    ) -> ChunkRecord:
        self._turns.append(self._name)
        return ChunkRecord(operations=10, cpu_ns=1000, wall_ns=1000, observed=next(self._observed))


def batch_of(names: str, turns: list[str], observed: Iterator[Observed]) -> list[Member]:
    """Return a member for each letter, up and warm."""
    made = []
    for name in names:
        cell: Any = SimpleNamespace(key=name, against=names[0])
        session: Any = Answering(name, turns, observed)
        made.append(Member(Visit(cell, False, 0, 0), session=session, work=Work((), {}, None)))
    return made


def forever(*observed: Observed) -> Iterator[Observed]:
    while True:
        yield from observed


@pytest.mark.parametrize("inexact", [Observed(ticks=True), Observed(unsettled=True)])
def test_a_chunk_that_is_not_exact_is_no_chunk(inexact: Observed) -> None:
    """A chunk known only to a clock tick, or with an account that was never closed, is recorded but not counted."""
    (member,) = found = batch_of("a", [], forever(Observed(), inexact))
    Rounds(found, HOW, random.Random(1), None, Watch()).first_tries()
    assert HOW.rounds == len(member.seen)
    assert [0, 2, 4, 6, 8] == [chunk.round for chunk in member.chunks]


def test_each_round_has_an_order_of_its_own() -> None:
    """Members have one turn a round, and each order comes about as often: the coverage proof assumes it."""
    turns: list[str] = []
    how = replace(HOW, rounds=600)
    Rounds(batch_of("abc", turns, forever(Observed())), how, random.Random(7), None, Watch()).first_tries()
    orders = Counter("".join(turns[place : place + 3]) for place in range(0, len(turns), 3))
    assert {"abc", "acb", "bac", "bca", "cab", "cba"} == set(orders)
    # 100 each, with a standard deviation of 9.
    assert all(60 < count < 140 for count in orders.values()), orders


def test_slow_members_go_first_as_often_as_last() -> None:
    turns: list[str] = []
    members_of = batch_of("abS", turns, forever(Observed()))
    members_of[2].ready = SimpleNamespace(operation_ns=1e9, memory_bytes=0)  # type: ignore[assignment]
    source = random.Random(7)
    how = replace(HOW, chunk_s=0.005)
    drawn = ["".join(member.visit.cell.key for member in rounds._order(members_of, how, source)) for _ in range(400)]
    assert {"abS", "baS", "Sab", "Sba"} == set(drawn)
    assert 150 < sum(order[0] == "S" for order in drawn) < 250


def test_what_was_stolen_is_read_from_its_own_field(monkeypatch: pytest.MonkeyPatch) -> None:
    """The eighth of the kernel's: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest nice."""
    line = "cpu  " + " ".join(str(10**place) for place in range(10)) + "\ncpu0 9 9 9 9 9 9 9 9 9 9\n"
    monkeypatch.setattr(machine, "_read", lambda path: line if path == "/proc/stat" else "")
    assert 10**7 * 1_000_000_000 // os.sysconf("SC_CLK_TCK") == machine.steal_ns()
    # Busy time has neither idle time, nor waits for a disk, nor time given to others.
    assert 1 + 10 + 100 + 10**5 + 10**6 == machine._busy_ticks()
    monkeypatch.setattr(machine, "_read", lambda path: "cpu  1 2 3 4\n")
    assert 0 == machine.steal_ns()


# Judging.


def noisy(block: int, cost_ns: float, times: float) -> Trial:
    """Return two chunks of this cost between quiet probes, and two at a multiple of it between slow ones."""
    quiet = [builders.chunk(number, cost_ns, block=block) for number in range(2)]
    busy = [builders.chunk(n, cost_ns * times, block=block, probes_ns=(37_000.0, 36_000.0)) for n in (2, 3)]
    return replace(trial(cost_ns, block=block), chunks=(*quiet, *busy))


def judged(blocks: int = 8) -> StudyJudgement:
    """Return a baseline of 100 ns and a cell of 250 ns, which cost 140 and 400 ns while they are disturbed."""
    base = tuple(noisy(block, 100.0, 1.4) for block in range(blocks))
    cell = tuple(noisy(block, 250.0, 1.6) for block in range(blocks))
    repeats = tuple(replace(one, repeat=True) for one in base)
    rows = [
        replace(row({"choice": "none"}, against="none"), trials=base, repeats=repeats),
        replace(row({"choice": "x"}, against="none"), trials=cell),
    ]
    return judge_study(study_run(rows, (blocks,)))


def test_a_cost_is_shown_quiet_and_of_all_samples_each_under_its_name() -> None:
    """`cpu` uses quiet samples and `cpu-all` every first try."""
    found = {(m.row.key, m.metric): m for m in judged().measurements}
    shown = {key: round(m.value) for key, m in found.items() if key[1] in ("cpu", "cpu-all")}
    expected = {("none", "cpu"): 100, ("none", "cpu-all"): 120, ("x", "cpu"): 250, ("x", "cpu-all"): 325}
    assert expected == shown
    assert Moments.QUIET == found["x", "cpu"].moments
    assert Moments.ALL == found["x", "cpu-all"].moments


def test_a_difference_in_nanoseconds_is_of_the_two_quiet_costs() -> None:
    """250 ns against 100 ns are 150 ns more, by neither the ratio nor the disturbed costs."""
    (toll,) = (toll for toll in judged().tolls if toll.row.key == "x")
    assert toll.ratio is not None
    assert pytest.approx(2.5, rel=1e-4) == toll.ratio.estimate
    assert pytest.approx(150.0, rel=1e-3) == toll.difference


@pytest.mark.parametrize(("blocks", "quantile"), [(61, 2.000), (121, 1.980), (400, 1.966)])
def test_an_interval_of_many_blocks_is_the_textbooks(blocks: int, quantile: float) -> None:
    """The interval of the blocks' means: mean, standard error and Student's quantile, beyond 60 blocks as below."""
    source = random.Random(blocks)
    costs = [1000.0 * math.exp(source.gauss(0.0, 0.001)) for _ in range(blocks)]
    found = judge_study(study_run([row({"choice": "none"}, costs, repeats_ns=costs)], (blocks,)))
    (cost,) = (m for m in found.measurements if m.metric == "cpu")
    of_blocks = [
        visits.Visit(block, 0, np.zeros(1, int), np.array([one]), np.ones(1, int), np.ones(1, bool), np.ones(1, bool))
        for block, one in enumerate(costs)
    ]
    exact = [replace(visit, costs=np.ones(1)) for visit in of_blocks]
    interval = stats.ratio(of_blocks, exact, Moments.QUIET)
    assert interval is not None
    error = np.std(costs, ddof=1) / math.sqrt(blocks) / np.mean(costs)
    assert (blocks, blocks) == (interval.n, cost.blocks)
    assert pytest.approx(float(np.mean(costs))) == interval.estimate
    assert pytest.approx(quantile * error, rel=2e-3) == math.log(interval.high / interval.estimate)
    assert pytest.approx(quantile * error, rel=2e-3) == math.log(interval.estimate / interval.low)


# Keeping.


def test_what_is_committed_is_on_the_disk(fake_runs: Path) -> None:
    """The database is synced at each commit, when it is made and when it is opened again."""
    store = results.reopen(fake_runs / "one")
    try:
        assert [(2,)] == list(store.database.execute("pragma synchronous"))
        assert [("wal",)] == list(store.database.execute("pragma journal_mode"))
    finally:
        store.close()


def test_a_file_is_on_the_disk_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power cut would leave an empty file in place of the old one."""
    done: list[tuple[str, int]] = []
    replaced = os.replace
    monkeypatch.setattr(files.os, "fsync", lambda handle: done.append(("flushed", os.fstat(handle).st_size)))
    monkeypatch.setattr(files.os, "replace", lambda *where: (done.append(("placed", 0)), replaced(*where)))
    files.write_atomically(tmp_path / "run.json", "x" * 100_000)
    assert [("flushed", 100_000), ("placed", 0)] == done[:2]


@pytest.mark.parametrize(("durability", "flushes"), [("off", False), ("flushed", True)])
def test_the_engines_database_flushes_if_that_is_asked_for(durability: str, flushes: bool, tmp_path: Path) -> None:
    """Five commits are five flushes of the database's own files, and none with durability off."""
    if shutil.which("strace") is None:
        lacking("strace is not installed: apt-get install strace")
    (tmp_path / "data").mkdir()
    asked = task(tmp_path / "data", "sqlite", "plaintext", "insert", durability=durability, rows_per_commit=1)
    calls = tmp_path / "calls"
    words = ("strace", "-f", "-y", "-e", "trace=fsync,fdatasync", "-o", str(calls))
    with session(asked, words) as (opened, _):
        before = len(_flushes(calls))
        assert 5 == chunk(opened, operations=5).operations
        of_chunk = _flushes(calls)[before:]
        opened.finish()
    # Flushes before the session is ready do not count.
    assert len(of_chunk) >= 5 if flushes else [] == of_chunk


def _flushes(calls: Path) -> list[str]:
    return re.findall(r"sync\(\d+<[^>]*cards\.sqlite[^>]*>\)", calls.read_text())


def test_a_run_is_not_resumed_on_another_machine(tollbar: Tollbar, fake_runs: Path) -> None:
    path = fake_runs / "one" / "run.json"
    said = json.loads(path.read_text())
    said["fingerprint"]["cpu"] = "Another CPU"
    path.write_text(json.dumps(said))
    refused = tollbar("run", "--resume", fake_runs / "one", "--blocks", "20", "--no-report")
    assert (2, "") == (refused.returncode, refused.stdout)
    assert "the run began on another machine: cpu: Another CPU / " in " ".join(refused.stderr.split())
    assert said == json.loads(path.read_text())


# `tollbar doctor`.


def healthy(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the facts of a machine without faults, which may be altered."""
    # Other facts are this machine's, so that a new fact in the fingerprint is known here too.
    facts: dict[str, Any] = machine.fingerprint() | {"cpu": "A CPU", "cores": 2, "governor": "performance"}
    claim = SimpleNamespace(says="twice is twice", one_ratio=2.0)
    result = SimpleNamespace(claim=claim, verdict=ClaimVerdict.STILL_TRUE, ratio=SimpleNamespace(estimate=2.001))
    state = {"facts": facts, "load": 0.1, "libraries": [], "result": result}
    monkeypatch.setattr(machine, "fingerprint", lambda: state["facts"])
    monkeypatch.setattr(machine, "load", lambda: state["load"])
    monkeypatch.setattr(libraries, "everything", lambda: state["libraries"])
    monkeypatch.setattr(doctors, "_servers", lambda: iter(()))
    studies = SimpleNamespace(studies=[SimpleNamespace(claims=[result])])
    monkeypatch.setattr(measuring, "self_test", lambda: studies)
    return state


ILL = {
    "one core": lambda state: state["facts"].update(cores=1),
    "a governor that saves power": lambda state: state["facts"].update(governor="powersave"),
    "other programs at work": lambda state: state.update(load=0.7),
    "a library that cannot be used": lambda state: state["libraries"].append(libraries.Broken("x", "/x", "not one")),
    "a self-test that is off": lambda state: setattr(state["result"].ratio, "estimate", 2.011),
    "a self-test that is too low": lambda state: setattr(state["result"].ratio, "estimate", 1.989),
    "a self-test that cannot tell": lambda state: setattr(state["result"], "verdict", ClaimVerdict.CANNOT_TELL),
    "a self-test without a number": lambda state: setattr(state["result"], "ratio", None),
}


@pytest.mark.parametrize("what", ILL)
def test_the_doctor_finds_each_fault(
    what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = healthy(monkeypatch)
    assert ExitStatus.DONE == doctors.doctor()
    assert "look  " not in capsys.readouterr().out
    ILL[what](state)
    assert ExitStatus.SOME_FAILED == doctors.doctor()
    out = capsys.readouterr().out.splitlines()
    (place,) = (number for number, line in enumerate(out) if line.startswith("look  "))
    assert out[place + 1].strip(), "a finding without advice"
