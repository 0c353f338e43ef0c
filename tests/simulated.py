"""A virtual machine with known true costs, on which the lab measures as on a real one.

Its sessions and its clock replace processes and time below `tollbar.lab.measure`; the probe, batches, rounds, waiting,
store and judge are those of a run. Its disturbances follow other laws than the method was developed with: durations
with heavy tails, several levels, steps that hit all work equally, bursts that no probe sees.
"""

from __future__ import annotations

import math
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

import disturbed
import share
from disturbed import Kind, Work
from tollbar import results, study
from tollbar.analysis.quotients import listed
from tollbar.catalog import libraries
from tollbar.core.moments import CHAIN, PROBE, Watch
from tollbar.core.records import ChunkRecord, Observed, Outcome, Proven, Ready, Record, SliceRecord, failed
from tollbar.core.runner import Stopped
from tollbar.core.runner.session import Meanwhile
from tollbar.lab import measure
from tollbar.lab.measure import batch, members, probe, rounds
from tollbar.lab.workloads import Work as Task
from tollbar.results import Run
from tollbar.study import plan
from tollbar.study.plan import Plan

CHOICES = ("spin-1", "spin-1-again", "spin-2", "spin-5", "none")
"""Names of the baseline and the cells; the virtual machine defines their work."""
# Time of a probe on a quiet core here, and the overhead of asking for it.
PROBE_NS = 25_000.0
# A processor of the shipped table.
PROCESSOR = listed()[0]
FINGERPRINT = {"cpu": PROCESSOR.cpu, "family": f"{PROCESSOR.family}/1"}
CHAIN_NS = PROBE_NS / PROCESSOR.quotient
ASKING_S = 0.00004
# Shortest wait that the engine reports, for another program that took the core in a chunk.
WAITED_S = 0.00003
# Time until a session is ready.
START_S = 0.02
_CORE = 0
# A run with slices takes three times as long to simulate: `test_slices.py` has them, and all runs of `make coverage`.
SLICED = share.of(False, True)
_NOTHING_ELSE = Observed()


@dataclass(slots=True)
class Machine:
    """Virtual machine from its start on; its time advances with the work done on it."""

    kind: Kind
    works: Mapping[str, Work]
    """Work by choice."""
    source: np.random.Generator
    until_s: float
    slices: bool = False
    """True if its runners slice their chunks."""
    now_s: float = 0.0
    path: disturbed.Path = field(init=False)
    chain_ns: float = field(init=False)
    chain_source: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.path = disturbed.Path.drawn(self.kind, self.source, self.until_s)
        # A separate source keeps the other draws independent of the chain.
        self.chain_source = self.source.spawn(1)[0]
        self.chain_ns = CHAIN_NS * math.exp(self.kind.quotient_noise * self.chain_source.normal())

    def monotonic(self) -> float:
        return self.now_s

    time = monotonic

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def spend(self, work_s: float, suffers: float, meanwhile: Meanwhile | None = None) -> float:
        """Do this work, and return the time it took without interleaved work."""
        took_s = 0.0
        while True:
            done_s = self.path.done_by(self.now_s, suffers)
            lasts_s = self.path.time_of(done_s + work_s, suffers) - self.now_s
            if meanwhile is None or lasts_s <= meanwhile[0]:
                self.now_s += lasts_s
                return took_s + lasts_s
            self.now_s += meanwhile[0]
            took_s += meanwhile[0]
            work_s -= self.path.done_by(self.now_s, suffers) - done_s
            meanwhile[1]()

    def session(
        self, command: Sequence[str], task: Mapping[str, Any], *, core: int | None = None, account: object = None
    ) -> _Session | _Chain:
        if task is CHAIN:
            return _Chain(self)
        return _Session(self, None if task is PROBE else self.works[task["choice"]])

    def workload(self, cell: plan.Cell) -> Any:
        """Return a stand-in for the cell's workload, which starts no process."""
        work = self.works[cell.choice.name]

        @contextmanager
        def up(
            cell: plan.Cell, seed: int, sandbox: object, core: int | None, *, begins_on: int | None
        ) -> Iterator[Task]:
            counted = work.counted
            fewest = max(1, counted)
            yield Task((), cell.task("measure", seed), core, paid_on=core, fewest=fewest, is_counted=bool(counted))

        return SimpleNamespace(up=up)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Make the lab measure on this machine while the context lasts."""
        with ExitStack() as stack:
            for module in (batch, rounds, probe):
                stack.enter_context(mock.patch.object(module, "time", self))
            for module in (members, probe):
                stack.enter_context(mock.patch.object(module, "Session", self.session))
            stack.enter_context(mock.patch.object(probe, "engine", return_value="engine"))
            stack.enter_context(mock.patch.object(members, "workloads", SimpleNamespace(of=self.workload)))
            there = SimpleNamespace(
                steal_ns=lambda: 0,
                load=lambda: 1.0,
                starting_cores=lambda core: (core,),
                available_memory_bytes=lambda: sys.maxsize,
            )
            for module in (batch, members):
                stack.enter_context(mock.patch.object(module, "machine", there))
            yield


@dataclass(slots=True)
class _Chain:
    """Session of the chain."""

    machine: Machine

    def __enter__(self) -> _Chain:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ready(self, limit_s: float) -> Ready:
        self.machine.sleep(START_S)
        return Ready(provider="virtual", operation_ns=CHAIN_NS)

    def advance(self, seconds: float, operations: int, limit_s: float) -> ChunkRecord:
        machine, (low, high) = self.machine, self.machine.kind.reading_noise
        machine.sleep(ASKING_S)
        took_s = machine.spend(machine.chain_ns / 1e9, machine.kind.chain_suffers)
        return _record(1, took_s * math.exp(low + (high - low) * machine.chain_source.random()))


class _Session:
    """Process on the machine, with its luck; without work it is the probe."""

    def __init__(self, machine: Machine, work: Work | None) -> None:
        self._machine, self._work = machine, work
        kind, source = machine.kind, machine.source
        self._luck = 1.0 + kind.luck * (2.0 * source.random() - 1.0)
        if work and work.rarely[0] and source.random() < work.rarely[0]:
            self._luck *= 1.0 + work.rarely[1]
        # Its place in the period is random, because warm-ups have different numbers of operations.
        self._done = self._first = int(source.integers(work.lump_every)) if work and work.lump_every else 0
        self._fails_at = int(source.integers(10)) if work and source.random() < work.fails else None
        self._chunks = 0

    def __enter__(self) -> _Session:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ready(self, limit_s: float) -> Ready:
        self._machine.sleep(START_S)
        work = self._work
        slices = work is not None and work.slices and self._machine.slices
        return Ready(provider="virtual", operation_ns=work.mean_ns if work else PROBE_NS, slices=slices)

    def finish(self) -> Record:
        return Record(outcome=Outcome.OK)

    def advance(
        self,
        seconds: float,
        operations: int,
        limit_s: float,
        meanwhile: Meanwhile | None = None,
        *,
        slice_s: float = 0.0,
    ) -> ChunkRecord:
        machine, work = self._machine, self._work
        kind, source = machine.kind, machine.source
        machine.sleep(ASKING_S)
        if work is None:
            return _record(1, self._probe_s())
        if self._chunks == self._fails_at:
            raise Stopped(failed("it fell over"))
        self._chunks += 1
        slower = self._luck * (1.0 + kind.jitter * source.exponential())
        is_preempted = bool(slice_s and kind.preempted and source.random() < kind.preempted)
        if slice_s and not seconds and not is_preempted:
            return self._sliced(work, operations, slice_s, slower)
        until_s = machine.now_s + seconds
        path = machine.path
        fits_ns = (path.done_by(until_s, work.suffers) - path.done_by(machine.now_s, work.suffers)) * 1e9 / slower
        number, spent_ns = self._operations(work, fits_ns, operations)
        self._done += number
        took_s = machine.spend(spent_ns * slower / 1e9, work.suffers, meanwhile)
        return _record(number, took_s, WAITED_S if is_preempted else 0.0)

    def _probe_s(self) -> float:
        low, high = self._machine.kind.reading_noise
        took_s = self._machine.spend(PROBE_NS / 1e9, self._machine.kind.probe_suffers)
        return took_s * math.exp(low + (high - low) * self._machine.source.random())

    def _sliced(self, work: Work, operations: int, slice_s: float, slower: float) -> ChunkRecord:
        """Return a chunk in slices of equal numbers of operations, with the probe between them."""
        count = min(max(1, round(operations * work.mean_ns / (slice_s * 1e9))), operations)
        slices, before_s = [], self._probe_s()
        for at in range(count):
            number = operations * (at + 1) // count - operations * at // count
            _, spent_ns = self._operations(work, 0.0, number)
            self._done += number
            took_ns = max(1, round(self._machine.spend(spent_ns * slower / 1e9, work.suffers) * 1e9))
            after_s = self._probe_s()
            probes_ns = round(before_s * 1e9), round(after_s * 1e9)
            slices.append(
                SliceRecord.model_construct(operations=number, cpu_ns=took_ns, wall_ns=took_ns, probes_ns=probes_ns)
            )
            before_s = after_s
        record = _record(operations, sum(one.cpu_ns for one in slices) / 1e9)
        return record.model_copy(update={"observed": Observed.model_construct(slices=tuple(slices))})

    def _operations(self, work: Work, fits_ns: float, fewest: int) -> tuple[int, float]:
        """Return the number of operations that fill this work, and their cost."""
        if work.varies or work.tail:
            number, spent_ns = 0, 0.0
            while number < fewest or spent_ns < fits_ns:
                size = 1 + max(fewest - number, int((fits_ns - spent_ns) / work.ns))
                costs = np.cumsum(self._drawn(work, size)) + spent_ns
                taken = min(size, max(fewest - number, 1 + int(np.searchsorted(costs, fits_ns))))
                number, spent_ns = number + taken, float(costs[taken - 1])
            return number, spent_ns
        most = fewest + int(fits_ns / work.ns) + 1
        number = max(fewest, bisect_left(range(most), fits_ns, key=lambda n: self._spent(work, n)))
        return number, self._spent(work, number)

    def _drawn(self, work: Work, size: int) -> np.ndarray:
        source = self._machine.source
        if work.varies:
            shape = work.varies**-2
            return source.gamma(shape, work.ns / shape, size)
        return work.ns * np.exp(source.normal(-(work.tail**2) / 2, work.tail, size))

    def _spent(self, work: Work, number: int) -> float:
        """Return the cost of the next operations, of work that never varies."""
        own = self._done - self._first
        grown = work.grows * (number * own + number * (number - 1) / 2)
        lumps = (self._done + number) // work.lump_every - self._done // work.lump_every if work.lump_every else 0
        return work.ns * (number + grown) + lumps * work.lump_ns


def _record(operations: int, took_s: float, waited_s: float = 0.0) -> ChunkRecord:
    spent_ns = max(1, round(took_s * 1e9))
    wall_ns = spent_ns + round(waited_s * 1e9)
    # Not validated, because validation takes longer than the rest of the machine.
    return ChunkRecord.model_construct(operations=operations, cpu_ns=spent_ns, wall_ns=wall_ns, observed=_NOTHING_ELSE)


@cache
def _planned(cells: int, rounds: int, blocks: int) -> Plan:
    text = f"""
question  = "What does it cost on a virtual machine?"
family    = "spin"
choices   = {list(CHOICES[: cells + 1])}
providers = ["spin"]
baseline  = "{CHOICES[0]}"

[measure]
rounds = {rounds}
blocks = {blocks}
"""
    return plan.make([study.read("virtual", text, where="virtual.toml")], seed=0)


class Lab:
    """Run on a virtual machine: `works[0]` is the baseline, which has a repeat in each block. A context."""

    def __init__(
        self,
        kind: Kind,
        works: Sequence[Work],
        seed: int,
        *,
        blocks: int = 12,
        rounds: int = 10,
        between_s: float = 5.0,
        slices: bool = SLICED,
    ) -> None:
        self._plan = replace(_planned(len(works) - 1, rounds, blocks), seed=seed)
        self._between_s = between_s
        chunks_s = 0.01 * rounds * 2 * (len(works) + 1) + sum(40 * rounds * work.ns / 1e9 for work in works)
        until_s = (blocks + 2) * (between_s + 0.5 + chunks_s)
        named = dict(zip(CHOICES, works, strict=False))
        self.machine = Machine(kind, named, np.random.default_rng(seed), until_s, slices)
        self._watch = Watch(kind.best_probe_ns)
        self._blocks = 0

    def __enter__(self) -> Lab:
        with ExitStack() as stack:
            memory = Path("/dev/shm")
            parent = stack.enter_context(tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None))
            # The engine is not used, and hashing the whole file for its build takes time.
            with mock.patch.object(libraries, "engine_build", return_value="virtual"):
                self._store = results.create(
                    self._plan,
                    Path(parent),
                    command=["tollbar", "run"],
                    libraries=[],
                    fingerprint=FINGERPRINT if self.machine.kind.is_listed else {},
                    best_probe_ns=self.machine.kind.best_probe_ns,
                )
            stack.callback(self._store.close)
            # These results need not outlive a power cut.
            self._store.database.execute("pragma synchronous = off")
            for each in self._plan.studies[0].cells:
                self._store.record_proof(Proven(each.study, each.key, Outcome.OK, None, 1, (), ("a wrong one",)))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def measure(self, blocks: int) -> None:
        """Measure until there are this many blocks."""
        store = self._store
        left = measure.batches_left(
            self._plan, counts={"virtual": blocks}, done=store.done(), excluded=store.excluded()
        )
        with self.machine.in_place():
            order = store.next_order()
            for trials in measure.measured(self._plan, left, first_order=order, core=_CORE, watch=self._watch):
                store.record(*trials)
                store.note_chain(self._watch.chain_ns)
                self.machine.sleep(self._between_s)

    def look(self) -> Run:
        """Return the current run, which is judged now."""
        self._store.note_interim_look()
        return results.read(self._store.directory)
