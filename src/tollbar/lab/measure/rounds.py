"""Rounds of a batch: a chunk of each member in turn; the first tries, then replacements of lost rounds."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tollbar.core.arrays import grouped, np
from tollbar.core.moments import Watch, without_slices
from tollbar.core.records import Chunk, ChunkRecord
from tollbar.lab.measure.members import Member, can_slice, round_of
from tollbar.lab.measure.probe import Probe
from tollbar.study import Measure

# Share of a study's time that may go into waiting for quiet moments and into replacing lost rounds.
BUDGET = 1 / 4
# Replacement rounds for each planned one; with more, a batch would spend the time of later ones.
MOST_MADE_UP = 1
# A neighbour's burst lasts milliseconds or seconds; only the first kind is waited out.
WAIT_S = 0.005
# A probe occupies the core briefly, so readings are spaced.
WAIT_STEP_S = 0.0005
# A neighbour may come and go within a chunk longer than requested, so the core is probed during it at this multiple of
# the requested time. In a simulation, chunks of 20 ms that were probed only at their ends came out 2.5 % too expensive.
PROBED_EVERY = 1.2

# Duration of a slice, if the runner probes the core between slices. On hosts with foreign sibling threads quiet lasts 1
# to 2 ms: a slice of this length between quick probes is wholly quiet in two of three cases, a chunk of 5 ms in one of
# 100. A probe takes some 30 to 50 µs, so shorter slices spend more on probes than they gain.
SLICE_S = 0.0005


@dataclass(slots=True)
class Budget:
    """Time of a study for waiting and replacing lost rounds: a share of its measuring time."""

    left_s: float = 0.0

    def earn(self, seconds: float) -> None:
        """Add the share for `seconds` of planned measuring."""
        self.left_s += seconds * BUDGET / (1 - BUDGET)


@dataclass(slots=True)
class Rounds:
    """Rounds of a batch: the first tries, which nothing selects, and then replacements of lost ones."""

    members: Sequence[Member]
    how: Measure
    source: random.Random
    probe: Probe | None
    watch: Watch

    def first_tries(self) -> None:
        """Run every planned round once, in any moment."""
        for member in self.members:
            member.turns = member.pace.turns(self.how)
        for number in range(self.how.rounds):
            for member in _order(self.members, self.how, self.source):
                if member.is_up and number in member.turns:
                    self._advance(member, number)

    def make_up(self, budget: Budget) -> None:
        """Add rounds in quiet moments until the planned number is quiet, or the budget is spent."""
        for number in range(self.how.rounds, (1 + MOST_MADE_UP) * self.how.rounds):
            # Computed once a round: each set is used several times, and the limit of a quick probe changes.
            quiet = {id(member): self._quiet_rounds(member) for member in self.members}
            lacking = [side for member in self.members for side in self._lacking(member, quiet)]
            taking_part = [m for m in self.members if m.is_up and (m in lacking or _has_every_round(m, self.how))]
            if not lacking or budget.left_s < sum(member.pace.chunk_s(self.how) for member in taking_part):
                return
            started_s = time.monotonic()
            # If the core is not quiet now, the time is better spent later.
            if self._wait(budget.left_s):
                for member in _order(taking_part, self.how, self.source):
                    if member.is_up:
                        self._wait(budget.left_s - (time.monotonic() - started_s))
                        self._advance(member, number, is_made_up=True)
            budget.left_s -= time.monotonic() - started_s

    def _lacking(self, member: Member, quiet: Mapping[int, Collection[int]]) -> Sequence[Member]:
        """Return a member and its partner if they have fewer common quiet rounds than planned, else nothing."""
        sides = [member, *self._partner(member)]
        # Waiting does not help chunks that outlast every quiet moment, and each of them is expensive.
        if not all(side.is_up and (quiet[id(side)] or not side.pace.is_slow(self.how)) for side in sides):
            return ()
        planned = set.intersection(*(set(side.turns) for side in sides))
        together = set.intersection(*(set(quiet[id(side)]) for side in sides))
        return sides if len(together) < len(planned) else ()

    def _partner(self, member: Member) -> Sequence[Member]:
        """Return its baseline, or the original of a repeat; empty for a baseline itself."""
        visit = member.visit
        other = visit.cell.key if visit.repeat else visit.cell.against
        found = [m for m in self.members if m.visit.cell.key == other and not m.visit.repeat and m is not member]
        return found[:1]

    def _quiet_rounds(self, member: Member) -> set[int]:
        longest_ns, chunks = self.watch.longest_quick_ns, member.chunks
        _, places, slices = grouped(np.array([chunk.round for chunk in chunks], int))
        whole = without_slices(slices[places], np.array([chunk.wall_ns for chunk in chunks], float))
        return {
            chunk.round
            for chunk, without in zip(chunks, whole, strict=True)
            if chunk.probes_ns and max(chunk.probes_ns) <= longest_ns and not without
        }

    def _wait(self, at_most_s: float) -> bool:
        """Wait a few milliseconds at most until the core is quiet, and return whether it is."""
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
            # Duration that a probe would have had if it had waited for a core like the longest waiting thread.
            contended_ns = member.work.contended_ns(record) or self._unseen_ns(member, record)
            probes_ns = (probes_ns[0], probes_ns[-1] + contended_ns, probes_ns[-1]) if contended_ns else probes_ns
        if record.observed.is_exact:
            cpu_ns, observed = member.work.cpu_ns(record), member.work.observed(record)
            member.chunks.append(
                Chunk(number, record.operations, member.work.wall_ns(record), cpu_ns, observed, probes_ns, is_made_up)
            )

    def _unseen_ns(self, member: Member, record: ChunkRecord) -> int:
        """Return the time that others had the core during a long chunk that came back without slices.

        Nobody probed the core during it, because its slices should have.
        """
        is_long = record.wall_ns > PROBED_EVERY * self.how.chunk_s * 1e9
        was_sliced = self._slice_s and can_slice(member, self.how.chunk_s)
        return max(0, record.wall_ns - record.cpu_ns) if is_long and was_sliced else 0

    @property
    def _slice_s(self) -> float:
        """Duration of slices; 0 without a probe, with a probe of several cores, or in short chunks."""
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
    """Return the readings before and after a chunk, and between them the slowest one within, except one in twenty.

    None if the probe has ended meanwhile.
    """
    readings = sorted(ns for ns in within_ns if ns is not None)
    if before_ns is None or after_ns is None or len(readings) < len(within_ns):
        return None
    # A neighbour during such a small part of a chunk changes its cost by less than the threshold of a difference.
    slowest = readings[-1 - len(readings) // 20 :][:1]
    return before_ns, *slowest, after_ns


def _order(members: Sequence[Member], how: Measure, source: random.Random) -> list[Member]:
    """Return a random order, in which slow members go first or last, so that they do not separate quick ones."""
    slow = [member for member in members if member.pace.is_slow(how)]
    quick = [member for member in members if member not in slow]
    source.shuffle(slow)
    source.shuffle(quick)
    return [*slow, *quick] if source.random() < 0.5 else [*quick, *slow]


def _has_every_round(member: Member, how: Measure) -> bool:
    """Return whether it is in each replacement round: a quick member, or one whose rounds leave rows for the next."""
    return not member.pace.is_slow(how) or member.pace.is_counted
