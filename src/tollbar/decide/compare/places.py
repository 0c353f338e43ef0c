"""Toll on all its machines: the runs of each machine, and their combined ratio."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tollbar.analysis import Verdict, reach
from tollbar.analysis.decisions import Terms, decide
from tollbar.analysis.kept import KeptCell, KeptStudy, KeptToll, Scalar
from tollbar.catalog.families import Standing, Value
from tollbar.core.intervals import Interval, Moments
from tollbar.decide.compare.combining import combined
from tollbar.decide.compare.found_runs import Fingerprint

DECIDED = (Verdict.COSTS, Verdict.SAVES, Verdict.FREE)


@dataclass(frozen=True, slots=True)
class Machine:
    """Machine, identified by its fingerprint."""

    fingerprint: Fingerprint
    runs: list[int] = field(default_factory=list)
    """By their places among all runs."""

    @property
    def processor(self) -> str:
        """Return the processor model."""
        return self.fingerprint.cpu


@dataclass(frozen=True, slots=True)
class Observation:
    """Toll in one study of one run."""

    run: int
    study: KeptStudy
    toll: KeptToll

    @property
    def cell(self) -> KeptCell:
        return self.study.cells[self.toll.cell]

    @property
    def interval(self) -> Interval | None:
        """Return the ratio with its interval; None where there were too few blocks."""
        toll = self.toll
        if toll.ratio is None or toll.low is None or toll.high is None:
            return None
        moments = Moments.ALL if toll.is_noisy else Moments.QUIET
        freedom = math.inf if toll.freedom is None else toll.freedom
        return Interval(toll.ratio, toll.low, toll.high, self.study.confidence, toll.blocks, moments, freedom)

    @property
    def noise(self) -> Interval | None:
        """Return the ratio of the A/A pair with its interval."""
        if self.toll.noise is None:
            return None
        noise = self.study.noises[self.toll.noise]
        freedom = math.inf if noise.freedom is None else noise.freedom
        return Interval(noise.ratio, noise.low, noise.high, self.study.confidence, noise.blocks, Moments.QUIET, freedom)


@dataclass(frozen=True)
class MachineToll:
    """Toll on one machine: its runs there, and their combined ratio."""

    seen: list[Observation]

    @cached_property
    def ratios(self) -> list[KeptToll]:
        """Return the kept tolls that have a ratio."""
        return [one.toll for one in self.seen if one.toll.ratio is not None]

    @cached_property
    def combined(self) -> list[Observation]:
        """Runs whose ratios are combined: the quiet ones with an interval, or else the others with one.

        A noisy ratio is of another mixture of moments.
        """
        known = [one for one in self.seen if one.toll.low and one.toll.high is not None]
        return [one for one in known if not one.toll.is_noisy] or known

    @cached_property
    def ratio(self) -> Interval | None:
        """Return the ratio of all combined runs, with its interval; None where no run has an interval."""
        return combined(tuple(interval for one in self.combined if (interval := one.interval)))

    @cached_property
    def floor(self) -> float | None:
        """Return the noise of the combined ratio, by its A/A pairs; None where no combined run has any."""
        noise = combined(tuple(repeats for one in self.combined if (repeats := one.noise)))
        return reach(noise) if noise else None

    @cached_property
    def verdict(self) -> Verdict | None:
        """Return the verdict on the combined ratio, or that of the only run; None where runs contradict one another."""
        # Hundreds of machines with a run each have hundreds of thousands of places, so a single run takes a short cut.
        if len(self.seen) == 1:
            return self.seen[0].toll.verdict
        if not self.ratios:
            return Verdict.NOT_MEASURED
        if len({toll.verdict for toll in self.ratios}.intersection(DECIDED)) > 1:
            return None
        if self.ratio is None:
            return Verdict.UNCLEAR
        first, *others = self.combined
        return decide(self.ratio, self.floor, Terms(first.study.threshold, 1)) if others else first.toll.verdict


@dataclass(frozen=True)
class TollRow:
    """A toll: one cell over its baseline, wherever it was measured."""

    family: str
    cost: str
    load: str
    """Digest of the load on a server."""
    parameters: Mapping[str, Mapping[str, Scalar]]
    """Parameters of the choice and of its baseline."""
    threshold: float
    at: Mapping[str, Value]
    """The cell's coordinates, its provider without a version."""
    over: Mapping[str, Value]
    """Coordinates of the baseline."""
    standing: Standing
    """Standing in the newest run."""
    places: dict[int, MachineToll] = field(default_factory=dict)
    """By the machine's place among all machines."""

    @cached_property
    def verdicts(self) -> dict[int, Verdict]:
        """Return the decided verdicts, by machine."""
        return {
            number: place.verdict
            for number, place in self.places.items()
            if place.verdict is not None and place.verdict in DECIDED
        }

    @property
    def is_measured(self) -> bool:
        """Return true if any run has a ratio."""
        return any(place.ratios for place in self.places.values())

    @cached_property
    def machines_differ(self) -> bool:
        return len({*self.verdicts.values()}) > 1

    @cached_property
    def runs_differ(self) -> bool:
        """Return true if runs of one machine contradict one another."""
        return any(place.verdict is None for place in self.places.values())

    @property
    def differs(self) -> bool:
        """Return true if machines, or runs of one machine, contradict one another."""
        return self.machines_differ or self.runs_differ
