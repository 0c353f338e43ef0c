"""Rounds of a batch: a chunk of each member in turn; the first tries first, then those that stand for lost ones."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tollbar.core.arrays import np
from tollbar.core.moments import Watch, without_slices
from tollbar.core.records import Chunk, ChunkRecord
from tollbar.lab.measure.members import Member, can_slice, round_of
from tollbar.lab.measure.probe import Probe
from tollbar.study import Measure

# Of all the time that a study takes, what may go into waiting for quiet moments and into rounds that were lost.
BUDGET = 1 / 4
# So many rounds may be made up for each that was planned: beyond, a batch would spend what later ones need.
MOST_MADE_UP = 1
# A neighbour's burst lasts some milliseconds or some seconds; only the first is waited out.
WAIT_S = 0.005
# A probe takes the core for a moment, which is another one by then.
WAIT_STEP_S = 0.0005
# A neighbour may come and go within a chunk that lasts longer than was asked for; so many times that apart, its core is
# probed while it lasts. In a simulation chunks of 20 ms that were probed at their ends alone came out 2.5 % too dear.
PROBED_EVERY = 1.2

# A slice of a chunk, where its runner probes the core between slices. On hosts whose sibling threads belong to others
# quiet lasts 1 to 2 ms: a slice of this length between quick probes is wholly quiet in two of three cases, and a chunk
# of 5 ms in one of 100. A probe takes some 30 to 50 µs, so that shorter slices spend more on probes than they gain.
SLICE_S = 0.0005


@dataclass(slots=True)
class Budget:
    """Time that a study has for waiting and for rounds that were lost: a share of all that its measuring takes."""

    left_s: float = 0.0

    def earn(self, seconds: float) -> None:
        """Measuring as planned took so long."""
        self.left_s += seconds * BUDGET / (1 - BUDGET)


@dataclass(slots=True)
class Rounds:
    """The rounds of a batch: the first tries, which nothing selects, and then those that stand for lost ones."""

    members: Sequence[Member]
    how: Measure
    source: random.Random
    probe: Probe | None
    watch: Watch

    def first_tries(self) -> None:
        """Every round once, whatever the moment is like."""
        for member in self.members:
            member.turns = member.pace.turns(self.how)
        for number in range(self.how.rounds):
            for member in _order(self.members, self.how, self.source):
                if member.is_up and number in member.turns:
                    self._advance(member, number)

    def make_up(self, budget: Budget) -> None:
        """Further rounds in quiet moments, until as many were quiet as were planned, or the budget is spent."""
        for number in range(self.how.rounds, (1 + MOST_MADE_UP) * self.how.rounds):
            # Each is asked of several times a round, and what is quick may be another thing in the next.
            quiet = {id(member): self._quiet_rounds(member) for member in self.members}
            lacking = [side for member in self.members for side in self._lacking(member, quiet)]
            taking_part = [m for m in self.members if m.is_up and (m in lacking or _has_every_round(m, self.how))]
            if not lacking or budget.left_s < sum(member.pace.chunk_s(self.how) for member in taking_part):
                return
            started_s = time.monotonic()
            # Where the core is not quiet now, the time is better spent later.
            if self._wait(budget.left_s):
                for member in _order(taking_part, self.how, self.source):
                    if member.is_up:
                        self._wait(budget.left_s - (time.monotonic() - started_s))
                        self._advance(member, number, is_made_up=True)
            budget.left_s -= time.monotonic() - started_s

    def _lacking(self, member: Member, quiet: Mapping[int, Collection[int]]) -> Sequence[Member]:
        """A member and what it is compared with, where both have fewer quiet rounds together than were planned."""
        sides = [member, *self._partner(member)]
        # Waiting may not help: of chunks that outlast every quiet moment none will be quiet, and each costs much.
        if not all(side.is_up and (quiet[id(side)] or not side.pace.is_slow(self.how)) for side in sides):
            return ()
        planned = set.intersection(*(set(side.turns) for side in sides))
        together = set.intersection(*(set(quiet[id(side)]) for side in sides))
        return sides if len(together) < len(planned) else ()

    def _partner(self, member: Member) -> Sequence[Member]:
        """Its baseline; of a repeat, what it is the repeat of; none, of a baseline itself."""
        visit = member.visit
        other = visit.cell.key if visit.repeat else visit.cell.against
        found = [m for m in self.members if m.visit.cell.key == other and not m.visit.repeat and m is not member]
        return found[:1]

    def _quiet_rounds(self, member: Member) -> set[int]:
        longest_ns, chunks = self.watch.longest_quick_ns, member.chunks
        times = np.array([chunk.round for chunk in chunks]), np.array([chunk.wall_ns for chunk in chunks], float)
        (whole,) = without_slices([times])
        return {
            chunk.round
            for chunk, without in zip(chunks, whole, strict=True)
            if chunk.probes_ns and max(chunk.probes_ns) <= longest_ns and not without
        }

    def _wait(self, at_most_s: float) -> bool:
        """Waits until the core is quiet, for a few milliseconds at most; whether it is."""
        assert self.probe is not None
        until_s = time.monotonic() + min(WAIT_S, at_most_s)
        reading = self.probe.lately()
        while reading is not None and not self.watch.is_quick(reading) and time.monotonic() < until_s:
            time.sleep(WAIT_STEP_S)
            reading = self.probe.read()
        return reading is not None and self.watch.is_quick(reading)

    def _advance(self, member: Member, number: int, *, is_made_up: bool = False) -> None:
        before_ns = self.probe.lately() if self.probe else None
        within_ns: list[float | None] = []
        meanwhile = None
        if self.probe is not None:
            meanwhile = PROBED_EVERY * self.how.chunk_s, lambda: within_ns.append(self.probe.read())
        record = round_of(member, self.how.chunk_s, meanwhile, self._slice_s)
        after_ns = self.probe.read() if self.probe else None
        if record is None:
            return
        assert member.work is not None
        member.seen.append(record)
        if record.observed.slices:
            self._keep_slices(member, number, record, is_made_up)
            return
        probes_ns = _probes(before_ns, within_ns, after_ns)
        if probes_ns is not None:
            self.watch.note(probes_ns[0])
            self.watch.note(probes_ns[-1])
            # What a probe would have taken that waited for a core as long as the thread did that waited longest.
            contended_ns = member.work.contended_ns(record) or self._unseen_ns(member, record)
            probes_ns = (probes_ns[0], probes_ns[-1] + contended_ns, probes_ns[-1]) if contended_ns else probes_ns
        if record.observed.is_exact:
            cpu_ns, observed = member.work.cpu_ns(record), member.work.observed(record)
            member.chunks.append(
                Chunk(number, record.operations, member.work.wall_ns(record), cpu_ns, observed, probes_ns, is_made_up)
            )

    def _unseen_ns(self, member: Member, record: ChunkRecord) -> int:
        """How long others had the core during a chunk that came back without its slices and was long.

        Nobody probed the core during it, since its slices were to do so.
        """
        is_long = record.wall_ns > PROBED_EVERY * self.how.chunk_s * 1e9
        was_sliced = self._slice_s and can_slice(member, self.how.chunk_s)
        return max(0, record.wall_ns - record.cpu_ns) if is_long and was_sliced else 0

    @property
    def _slice_s(self) -> float:
        """How long slices are; 0 where there are none: without a probe, with one for several cores, in short chunks."""
        is_sliced = self.probe is not None and self.probe.is_plain and self.how.chunk_s >= 2 * SLICE_S
        return SLICE_S if is_sliced else 0.0

    def _keep_slices(self, member: Member, number: int, record: ChunkRecord, is_made_up: bool) -> None:
        """Keep each slice as a chunk of the same round, between its own probes."""
        assert member.work is not None
        for one in record.observed.slices:
            for probe_ns in one.probes_ns:
                self.watch.note(probe_ns)
            cpu_ns = {member.work.component: one.cpu_ns}
            member.chunks.append(Chunk(number, one.operations, one.wall_ns, cpu_ns, {}, one.probes_ns, is_made_up))


def _probes(
    before_ns: float | None, within_ns: Sequence[float | None], after_ns: float | None
) -> tuple[float, ...] | None:
    """The readings beside a chunk, and the slowest of those within, but for one in twenty of them.

    None where the probe has ended meanwhile.
    """
    readings = sorted(ns for ns in within_ns if ns is not None)
    if before_ns is None or after_ns is None or len(readings) < len(within_ns):
        return None
    # A neighbour of so little of a chunk moves its cost by less than is called a difference.
    slowest = readings[-1 - len(readings) // 20 :][:1]
    return before_ns, *slowest, after_ns


def _order(members: Sequence[Member], how: Measure, source: random.Random) -> list[Member]:
    """A random order, in which slow members go first or last: they do not come between quick ones."""
    slow = [member for member in members if member.pace.is_slow(how)]
    quick = [member for member in members if member not in slow]
    source.shuffle(slow)
    source.shuffle(quick)
    return [*slow, *quick] if source.random() < 0.5 else [*quick, *slow]


def _has_every_round(member: Member, how: Measure) -> bool:
    """Whether it is in each round that is made up: a quick one, and one whose every round leaves rows for the next."""
    return not member.pace.is_slow(how) or member.pace.is_counted
