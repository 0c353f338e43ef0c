"""What the judge hands on: tolls, contrasts, results of claims, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tollbar.catalogue import Value
from tollbar.results import Row, Run, StudyRun
from tollbar.stats import Interval


class Verdict(StrEnum):
    """What a toll comes to, given what the user said a difference is worth."""

    COSTS = "costs"
    SAVES = "saves"
    FREE = "free"
    UNCLEAR = "unclear"
    NOT_MEASURED = "not measured"


class ClaimVerdict(StrEnum):
    """What became of a published ratio."""

    STILL_TRUE = "still true"
    SMALLER = "smaller"
    LARGER = "larger"
    INVERTED = "inverted"
    CANNOT_TELL = "cannot tell"


class Limit(StrEnum):
    """Why requests a second say little of the server."""

    CLIENT_BOUND = "client-bound"
    """The load client's core was busy: a faster client would have got more."""
    NOT_SATURATED = "not saturated"
    """The server's core was idle at times: more users would have got more."""
    CONTENDED = "contended"
    """Other programs had the server's or the client's core: a quieter machine would have got more."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One metric of one cell, over all its blocks."""

    row: Row
    metric: str
    unit: str
    value: float
    low: float
    high: float
    blocks: int
    limit: Limit | None = None
    """Of a throughput or latency: what it says about other than the server. Such a number gets no verdict."""


@dataclass(frozen=True, slots=True)
class Toll:
    """A cell's cost against its baseline's."""

    row: Row
    against: Row
    metric: str
    ratio: Interval | None
    difference: float | None
    """Nanoseconds per operation, this cell's less the baseline's."""
    verdict: Verdict
    noise_floor: float | None
    """How far from one this baseline's own twin came out: no verdict is given below it."""
    more_blocks: int | None
    """About how many further blocks would decide an unclear toll; None where it is decided or hopeless."""
    reason: str | None


@dataclass(frozen=True, slots=True)
class Contrast:
    """One value of a setting for another, over every pair of cells that differ in nothing else."""

    setting: str
    value: Value
    for_value: Value
    where: Mapping[str, tuple[Value, ...]]
    """What the pairs have in common, where pairs that disagreed were split; empty when they agree."""
    pairs: int
    ratio: Interval
    verdict: Verdict
    more_blocks: int | None


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """A published comparison beside the same comparison here."""

    says: str
    published: float | None
    order: str | None
    ratio: Interval | None
    """In the claim's own direction and metric: the one's throughput over the other's, for example."""
    verdict: ClaimVerdict
    at: Mapping[str, Value]
    """Where both cells stand alike: the provider, and the settings that the claim does not fix."""
    note: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class StudyJudgement:
    """All that one study's trials say."""

    study: StudyRun
    noise_floor: float | None
    measurements: tuple[Measurement, ...]
    tolls: tuple[Toll, ...]
    contrasts: tuple[Contrast, ...]
    claims: tuple[ClaimResult, ...]
    drift: float | None
    """The median change of the cells' cost from the first to the last third of the blocks, as a ratio."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that a run says."""

    run: Run
    studies: tuple[StudyJudgement, ...]
