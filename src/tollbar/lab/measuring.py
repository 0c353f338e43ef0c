"""Measuring a plan into a store: proofs, the planned blocks, and further ones if these are not enough."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tollbar import results
from tollbar.catalog import libraries
from tollbar.catalog.servers.places import RoleMachine
from tollbar.core import machine, moments
from tollbar.core.errors import TollbarError
from tollbar.core.intervals import FEWEST_BLOCKS
from tollbar.core.moments import Watch
from tollbar.core.records import Outcome, SetAside, Trial, TrialKey
from tollbar.core.words import more
from tollbar.lab import measure
from tollbar.lab.events import (
    Began,
    Ended,
    Estimated,
    Event,
    NothingCompared,
    NoTime,
    PrecisionMissed,
    PrecisionReached,
    Probed,
    SoFar,
    Step,
    StopRule,
    StudyMeasured,
)
from tollbar.lab.measure import Aside, schedule
from tollbar.lab.measure.rounds import BUDGET, Budget
from tollbar.lab.measure.schedule import Paces, Tried, usual
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.results import Store
from tollbar.study import Coordinates
from tollbar.study.plan import Plan, StudyPlan
from tollbar.study.plan.batches import Batch
from tollbar.study.plan.cells import Cell

# Blocks are added by at most this share of the existing ones, because predictions from few blocks are often too high.
MORE_BLOCKS = 0.5
# The width from few blocks is too narrow by chance in one of several rows. If widths are checked from nine blocks on,
# intervals of 96 % cover in 93 to 96 % of cases; from six on, in 91 to 96 %.
BLOCKS_FOR_WIDTH = 9
# Lost rounds are replaced: none on a quiet machine, all that the budget allows on a busy one. The plan assumes the
# middle.
WITH_LOST_ROUNDS = 1 + BUDGET / (1 - BUDGET) / 2
# Measured next to programs that used both of two cores: 12 batches that were to take 10 s took 34 s.
_OF_A_BUSY_CORE = 2.0
# Share of a limited time for the proofs: on a busy machine these may take as long as all of it.
PROOFS_SHARE = 0.5
# Cells that are compared with a baseline whatever the time.
FEWEST_COMPARED = 2
# Time limit of a study with a precision and no time of its own, as a multiple of its own blocks' time.
MOST_TIMES = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HowLong:
    """Time of measuring, and whether blocks may be added."""

    within_s: float | None = None
    """Time of each study: fits its number of blocks to about this time, or limits it if there is a precision."""
    until_s: float | None = None
    """Time of the monotonic clock at which a plan of one study should be done, proofs included.

    Cells for which no time is left are not measured, the least wanted first.
    """
    wanted: Sequence[Coordinates] = ()
    """Coordinates of the cells that are wanted most, the most wanted first; cells of none of these come last."""

    def rank(self, cell: Cell) -> int:
        """Return the place of a cell among the wanted ones."""
        at = cell.coordinates.items()
        return next((place for place, one in enumerate(self.wanted) if one.items() <= at), len(self.wanted))

    exactly: bool = False
    """True if the number of blocks was given, and none is added because too few were quiet."""


AS_PLANNED = HowLong()


def measured_into(
    store: Store,
    planned: Plan,
    so_far: StopRule,
    how_long: HowLong = AS_PLANNED,
    places: Sequence[RoleMachine] = (),
) -> Generator[Event, None, None]:
    """Prove and measure the missing parts of the store, record each proof and batch at once, and yield events.

    `so_far` decides whether a study's blocks are enough.
    """
    within_s = how_long.within_s
    core = machine.measuring_core()
    said = results.about(store.directory)
    watch = Watch(said["best_probe_ns"], chain_ns=said.get("chain_ns"))
    with measure.sandbox_for(planned, store.directory / "servers", places) as sandbox:
        if sandbox is not None and sandbox.nodes:
            nodes = {role: node.about for role, node in sandbox.nodes.items()}
            refuse_others(results.about(store.directory).get("nodes", {}), nodes, store.directory)
            results.update_about(store.directory, {"nodes": nodes})
        # Proofs are not timed, and may use every core.
        paces = yield from _prove(store, planned, sandbox, core, how_long)
        machine.keep_off(core)
        if how_long.until_s is not None:
            within_s = max(0.0, how_long.until_s - time.monotonic()) / _slowdown(
                machine.busy_cores(), len(machine.CORES)
            )
            affordable = _affordable(planned, store.unproven(), paces, within_s, how_long.rank)
            kept = {(cell.study, cell.key) for cell in affordable.cells}
            if without := len(paces.keys() - kept):
                yield NoTime(without)
            planned = affordable
        if within_s is not None:
            planned = _fitted(planned, store, paces, within_s)
        lab = _Lab(store, planned, so_far, sandbox, core, watch, paces, within_s, measure.aside_of(planned))
        yield from lab.measure_planned()
        for one in planned.studies:
            yield from lab.go_on(one, how_long.exactly)
    if not places:
        yield Probed(watch.readings, watch.chain_ns)


def probed_machine(fingerprint: Mapping[str, Any]) -> moments.Machine:
    """Return the scope within which probes are comparable."""
    return fingerprint["cpu"], fingerprint["kernel"], libraries.engine_build()


def refuse_others(began_with: Mapping[str, Any], now: Mapping[str, Any], directory: Path) -> None:
    """Raise TollbarError if a role's machine is not the one that the run began on, whatever its address."""
    for role, about in now.items():
        known = began_with.get(role, about)["fingerprint"]
        if found := machine.differences(known, about["fingerprint"]):
            raise TollbarError(
                f"the role {role} ({about['address']}) is on another machine than when the run began: "
                f"{'; '.join(found)}",
                where=str(directory),
                hint="begin a new run",
            )


def _prove(
    store: Store, planned: Plan, sandbox: Sandbox | None, core: int | None, how_long: HowLong
) -> Generator[Event, None, Paces]:
    """Prove the unproven cells. Return the paces of the trials of cells that may be measured.

    Cells that are not proved after a share of a limited time stay unproven.
    """
    unproven = store.unproven()
    left = [cell for cell in planned.cells if (cell.study, cell.key) in unproven]
    # Nothing is compared without its baseline.
    left.sort(key=lambda cell: (not cell.is_baseline, how_long.rank(cell)))
    paces = {(cell.study, cell.key): usual(cell) for cell in planned.cells}
    tried = Tried(planned.seed, sandbox, core)
    proofs = measure.prove(left, planned.seed, sandbox=sandbox)
    labels = planned.labels
    names = [f"{cell.study}: {labels[cell.study, cell.key]}" for cell in left]
    began_s = time.monotonic()
    proofs_until_s = math.inf if how_long.until_s is None else began_s + PROOFS_SHARE * (how_long.until_s - began_s)
    compared = 0
    yield Began("verify", len(left), names)
    for cell, proven in zip(left, proofs, strict=True):
        if sandbox is not None and proven.outcome in (Outcome.FAILED, Outcome.TIMED_OUT):
            # A failure on a lost machine is not a proof.
            sandbox.check_nodes()
        store.record_proof(proven)
        proof_s = time.monotonic() - began_s
        if proven.outcome is Outcome.OK:
            paces[cell.study, cell.key] = tried.pace(cell, proof_s)
            compared += not cell.is_baseline
        yield Step()
        began_s = time.monotonic()
        if began_s > proofs_until_s and compared >= FEWEST_COMPARED:
            break
    yield Ended()
    excluded = store.excluded()
    return {name: pace for name, pace in paces.items() if name not in excluded}


Measured = tuple[list[Trial], list[SetAside]]
"""Trials of a batch, and the cells that they quarantine."""


@dataclass(slots=True)
class _Lab:
    """Loop that measures batches into a store until there are enough."""

    store: Store
    planned: Plan
    so_far: StopRule
    sandbox: Sandbox | None
    core: int | None
    watch: Watch
    paces: Paces
    within_s: float | None
    aside: Aside
    budgets: dict[str, Budget] = field(default_factory=dict)
    spent_s: dict[str, float] = field(default_factory=dict)

    def measure_planned(self) -> Iterator[Event]:
        """Measure the planned blocks of the studies, the quickest study first, so that answers come early."""
        counts = {one.study.name: one.study.measure.blocks for one in self.planned.studies}
        # A resumed run also makes up for cells that were left out before.
        batches = self._left(counts, self.store.made())
        took_s = dict.fromkeys(counts, 0.0)
        for batch in batches:
            took_s[batch.study] += schedule.of_batches(self.planned, [batch], self.paces)
        batches.sort(key=lambda batch: took_s[batch.study])
        yield Estimated(len(batches), WITH_LOST_ROUNDS * sum(took_s.values()))
        # Nothing more can be learnt of a study without a batch, because its cells failed at their proofs.
        with_batches = {batch.study for batch in batches} | {study for study, *_ in self.store.done()}
        for name in (one for one in counts if one not in with_batches):
            yield StudyMeasured(name)
        yield from self._measure(batches)

    def go_on(self, one: StudyPlan, exactly: bool) -> Iterator[Event]:
        """Add blocks to a study if its planned ones are not enough.

        Blocks are added if cells met a quiet core in too few of them, while the budget lasts; only the probes decide
        that, not the results. With a precision, they are added until it is reached or the time is over. Only widths
        decide that; estimates are independent of them, so it is not a look at the results.
        """
        name, blocks = one.study.name, one.study.measure.blocks
        block_s = schedule.of_block(one, self.planned.seed, self.paces)
        budget = self.budgets.setdefault(name, Budget())
        # Fewer blocks than an interval needs were not meant to have one.
        exactly = exactly or blocks < FEWEST_BLOCKS
        while not exactly and block_s and budget.left_s > block_s and self._so_far(name).lacks_quiet_blocks:
            blocks += 1
            before_s = self.spent_s.get(name, 0.0)
            yield from self._add(name, blocks)
            budget.left_s -= self.spent_s.get(name, 0.0) - before_s
        asked = one.study.measure.precision
        if asked is not None and block_s:
            yield from self._reach(name, blocks, asked, block_s, self._most_s(one, block_s))

    def _reach(self, name: str, blocks: int, asked: float, block_s: float, most_s: float) -> Iterator[Event]:
        while True:
            widest = self._so_far(name).widest
            if widest is None:
                yield NothingCompared(name, asked)
                return
            half = widest.half
            if half <= asked and blocks >= BLOCKS_FOR_WIDTH:
                break
            wanted = max(_blocks_for(half, asked, blocks), BLOCKS_FOR_WIDTH - blocks)
            time_left_s = most_s - self.spent_s.get(name, 0.0)
            at_once = max(math.ceil(MORE_BLOCKS * blocks), BLOCKS_FOR_WIDTH - blocks)
            more = min(wanted, at_once, int(time_left_s / block_s))
            if more < 1 and half <= asked:
                # The time ended the study, not the width, so a width from few blocks is as good as any.
                break
            if more < 1:
                yield PrecisionMissed(name, asked, widest, wanted, wanted * block_s)
                return
            blocks += more
            yield from self._add(name, blocks)
        yield PrecisionReached(name, asked, blocks)

    def _so_far(self, name: str) -> SoFar:
        return self.so_far(self.store.directory, name)

    def _most_s(self, one: StudyPlan, block_s: float) -> float:
        """Return the time limit of a study's measuring with a precision."""
        most_s = one.study.measure.longest_s if self.within_s is None else self.within_s
        if most_s is None:
            most_s = MOST_TIMES * one.study.measure.blocks * block_s
            # A resumed study also has the added blocks, which must not extend its time.
            self._keep(one.study.name, longest_s=most_s)
        return most_s

    def _add(self, name: str, blocks: int) -> Iterator[Event]:
        self._keep(name, blocks=blocks)
        yield from self._measure(self._left({name: blocks}))

    def _keep(self, name: str, **said_now: float) -> None:
        """Record values of a study in the run."""
        said = results.about(self.store.directory)["studies"]
        results.update_about(self.store.directory, {"studies": {**said, name: {**said[name], **said_now}}})

    def _left(self, counts: dict[str, int], made: Collection[TrialKey] | None = None) -> list[Batch]:
        planned = replace(self.planned, studies=tuple(o for o in self.planned.studies if o.study.name in counts))
        return measure.batches_left(
            planned, counts=counts, done=self.store.done(), made=made, excluded=self.store.excluded()
        )

    def _measure(self, batches: Sequence[Batch]) -> Iterator[Event]:
        trials = measure.measured(
            self.planned,
            batches,
            first_order=self.store.next_order(),
            core=self.core,
            sandbox=self.sandbox,
            watch=self.watch,
            budgets=self.budgets,
            aside=self.aside,
        )
        labels = self.planned.labels
        yield Began("measure", max(len(batches), 1), [_named(batch, labels) for batch in batches])
        try:
            for number, (batch, set_aside) in enumerate(self._timed(batches, trials), 1):
                self.store.record(batch, set_aside)
                yield Step()
                study = batches[number - 1].study
                if number == len(batches) or batches[number].study != study:
                    yield StudyMeasured(study)
        finally:
            trials.close()
            self.store.note_chain(self.watch.chain_ns)
        yield Ended()

    def _timed(self, batches: Sequence[Batch], trials: Iterator[Measured]) -> Iterator[Measured]:
        """Yield the same trials, and add the duration of each batch to the time spent on its study."""
        for batch in batches:
            began_s = time.monotonic()
            yield next(trials)
            self.spent_s[batch.study] = self.spent_s.get(batch.study, 0.0) + time.monotonic() - began_s


def _named(batch: Batch, labels: Mapping[tuple[str, str], str]) -> str:
    """Return a batch's study and its first cell: `tls-certificates: tls-1.3 · nginx · … and 3 more`."""
    visits = sorted(batch.visits, key=lambda v: v.cell.is_baseline)
    first, *rest = dict.fromkeys(labels[batch.study, visit.cell.key] for visit in visits)
    return f"{batch.study}: {first}{f' and {more(len(rest))}' if rest else ''}"


def _blocks_for(half: float, asked: float, blocks: int) -> int:
    """Return about how many more blocks reach a width: it falls with the root of their number."""
    return max(math.ceil(blocks * ((half / asked) ** 2 - 1)), 1) if math.isfinite(half) else FEWEST_BLOCKS


def _blocks_in(one: StudyPlan, seed: int, within_s: float, paces: Paces) -> int:
    """Return the number of blocks to begin with: those that fit besides lost rounds; few if a precision decides."""
    fit = schedule.blocks_within(one, seed, (1 - BUDGET) * within_s, FEWEST_BLOCKS, paces)
    return fit if one.study.measure.precision is None else min(fit, BLOCKS_FOR_WIDTH)


def _slowdown(busy: float, cores: int) -> float:
    """Return about how many times as long measuring takes next to programs that use `busy` of the cores.

    One that uses the measured core takes half of its time, and lost rounds are repeated.
    """
    return 1 + _OF_A_BUSY_CORE * min(busy / cores, 1.0)


def _affordable(
    planned: Plan,
    unproven: Collection[tuple[str, str]],
    paces: Paces,
    within_s: float,
    rank: Callable[[Cell], int],
) -> Plan:
    """Return the plan without unproven cells, and without those of the last rank whose blocks do not fit.

    `paces` are those of the cells that may be measured.
    """

    def of(one: StudyPlan, compared: Sequence[Cell]) -> StudyPlan:
        needed = {cell.against for cell in compared}
        kept = [cell for cell in one.cells if cell in compared or (cell.is_baseline and cell.key in needed)]
        return replace(one, cells=tuple(kept))

    studies = []
    for one in planned.studies:
        names = {cell.key: (one.study.name, cell.key) for cell in one.cells}
        proven = [cell for cell in one.cells if names[cell.key] in paces and names[cell.key] not in unproven]
        compared = sorted((cell for cell in proven if not cell.is_baseline), key=rank)
        while len(compared) > FEWEST_COMPARED:
            fewest = schedule.with_blocks(of(one, compared), FEWEST_BLOCKS)
            if schedule.of_study(fewest, planned.seed, paces) <= (1 - BUDGET) * within_s:
                break
            compared.pop()
        studies.append(of(one, compared) if compared else one)
    return replace(planned, studies=tuple(studies))


def _fitted(planned: Plan, store: Store, paces: Paces, within_s: float) -> Plan:
    """Return the plan with the number of blocks that fits into `within_s`.

    It has at least those that an interval needs.
    """
    studies = tuple(
        schedule.with_blocks(one, _blocks_in(one, planned.seed, within_s, paces)) for one in planned.studies
    )
    said = results.about(store.directory)["studies"]
    entries = {one.study.name: {**said[one.study.name], "blocks": one.study.measure.blocks} for one in studies}
    results.update_about(store.directory, {"studies": entries})
    return replace(planned, studies=studies)
