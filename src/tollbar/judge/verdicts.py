"""What the judge hands on: tolls, contrasts, results of claims, and all of them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from tollbar.families import Value
from tollbar.results import Row, Run, StudyRun
from tollbar.stats import Interval, Moments
from tollbar.study import Claim, CrossTable, Study


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
    NOT_TESTABLE = "not testable here"
    """Nothing here can try it; the reason says why."""
    NOT_JUDGED = "not judged"
    """An absolute figure, beside today's: another machine's says nothing of this one."""


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
    """The study's cost metric is the undisturbed cost; the same with `-typical` the cost as disturbed."""
    unit: str
    value: float
    low: float
    high: float
    blocks: int
    limit: Limit | None = None
    """Of a throughput or latency: what it says about other than the server. Such a number gets no verdict."""
    component: str | None = None
    """Whose part of the cost it is; None for the whole."""
    moments: Moments = Moments.AS_DISTURBED
    """Which rounds it is made of: an undisturbed cost is as disturbed where the core was left alone too seldom."""


@dataclass(frozen=True, slots=True)
class Toll:
    """What is judged of one cell beside another: most often of a cell beside its baseline.

    Members of contrasts, cells of tables and claims have one each, all made by `Ledger.compare`.
    """

    row: Row
    against: Row
    """The other cell, most often the baseline: the cell itself where it is one, and where it has none."""
    metric: str
    ratio: Interval | None = None
    """Of the undisturbed costs."""
    typical: Interval | None = None
    """The same as disturbed by whatever else the machine did, paired within rounds."""
    difference: float | None = None
    """Nanoseconds per operation, this cell's less the other's."""
    verdict: Verdict = Verdict.NOT_MEASURED
    noise_floor: float | None = None
    """How far from one the twins of these cells, or of their kind, came out, as a ratio above one."""
    more_blocks: int | None = None
    """About how many further blocks would decide an unclear ratio; None where it is decided or hopeless."""
    reason: str | None = None
    """Why there is no ratio."""
    suffers: Literal["more", "less"] | None = None
    """Where the typical ratio is apart from the undisturbed one by more than `worth`: how much neighbours raise
    this cell's cost, beside the other's."""
    quiet_blocks: int = 0
    """In which both sides had undisturbed rounds: the ratio is of these, where they are enough."""
    noise: Interval | None = None
    """These twins' ratio. No verdict is given within its far end of one."""

    @property
    def turned(self) -> Toll:
        """The same of the other against the one. The band of what is worth nothing is the same both ways."""
        return replace(
            self,
            row=self.against,
            against=self.row,
            ratio=self.ratio.inverse if self.ratio else None,
            typical=self.typical.inverse if self.typical else None,
            difference=None if self.difference is None else -self.difference,
            verdict=_TURNED.get(self.verdict, self.verdict),
            suffers=_SUFFERS_TURNED[self.suffers],
        )


_TURNED = {Verdict.COSTS: Verdict.SAVES, Verdict.SAVES: Verdict.COSTS}
_SUFFERS_TURNED: Mapping[str | None, Literal["more", "less"] | None] = {"more": "less", "less": "more", None: None}


@dataclass(frozen=True, slots=True)
class Contrast:
    """One value of a setting for another, over pairs of cells that differ in nothing else and have one verdict."""

    setting: str
    value: Value
    for_value: Value
    where: Mapping[str, tuple[Value, ...]]
    """What the pairs have in common, where pairs that disagreed were split; empty when they agree."""
    pairs: int
    low: float
    """The least of the pairs' intervals."""
    high: float
    """The most of them."""
    least: float
    """The least of the pairs' estimates."""
    most: float
    verdict: Verdict
    more_blocks: int | None
    members: tuple[Toll, ...] = ()
    """The pairs themselves."""


@dataclass(frozen=True, slots=True)
class BreakEven:
    """From which share on a way that has to be filled first costs less than doing without it."""

    setting: str
    row: Row
    """What does without it."""
    line: tuple[Row, ...]
    """What was measured with it, at several shares."""
    tolls: tuple[Toll, ...]
    """What is judged of each of these beside that, the least share first."""
    at: Interval | None
    """In the setting's unit, and beyond what there is of it where it never pays, or always; None: its cost does not
    fall with the share, or nothing was measured of both."""


@dataclass(frozen=True, slots=True)
class CrossCell:
    """One cell of a table that a study asks for."""

    row: Row
    cost: Interval | None
    """Nanoseconds per operation, undisturbed; in a table of another metric, what was observed of that."""
    over: Row | None
    """What the table compares it with: itself, where it is that."""
    toll: Toll | None = None
    """Against that; None in a table of costs, of the cell that others are compared with, and where it has no ratio."""
    unit: str = "ns/op"
    reason: str | None = None
    """Why there is no cost, or no ratio where the table has ratios."""

    @property
    def is_over(self) -> bool:
        """Whether it is the cell that the table compares others with."""
        return self.over is not None and self.over.key == self.row.key

    @property
    def ratio(self) -> Interval | None:
        return self.toll.ratio if self.toll else None

    @property
    def verdict(self) -> Verdict | None:
        return self.toll.verdict if self.toll else None

    @property
    def more_blocks(self) -> int | None:
        return self.toll.more_blocks if self.toll else None


@dataclass(frozen=True, slots=True)
class CrossTableResult:
    """A table that a study asks for."""

    table: CrossTable
    cells: tuple[CrossCell, ...]
    """Those that were planned, one at most in each place."""

    @property
    def rows(self) -> tuple[Value, ...]:
        """The values that its rows are for."""
        return tuple(dict.fromkeys(cell.row.coordinates[self.table.rows] for cell in self.cells))

    @property
    def columns(self) -> tuple[Value, ...]:
        """The values that its columns are for."""
        return tuple(dict.fromkeys(cell.row.coordinates[self.table.columns] for cell in self.cells))

    def at(self, row: Value, column: Value) -> CrossCell | None:
        """The cell in this place; None where none was planned."""
        place = row, column
        names = self.table.rows, self.table.columns
        return next((c for c in self.cells if tuple(c.row.coordinates[name] for name in names) == place), None)


class Together(StrEnum):
    """Whether choices that are made together cost the sum of what each costs by itself."""

    ADDS_UP = "adds up"
    CHEAPER = "cheaper together"
    DEARER = "dearer together"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class FactorPart:
    """What factors add to the cost: one by itself, or several beyond what fewer of them add."""

    factors: tuple[str, ...]
    added: Interval
    """Nanoseconds per operation, perhaps below nought."""


@dataclass(frozen=True, slots=True)
class Split:
    """What the first of two factors changes, as ratios to the cost without either: less one, the parts add up."""

    whole: Interval
    """All that it changes, without the second factor."""
    alike: Interval
    """What it changes where the second factor holds."""
    rest: Interval
    """The whole, less that."""
    verdicts: tuple[Verdict, Verdict, Verdict]
    """On the three, in this order."""
    floor: float | None = None
    """How far from one noise alone may take a ratio of these cells."""


@dataclass(frozen=True, slots=True)
class FactorsResult:
    """All combinations of a study's factors in one place, taken apart."""

    rows: tuple[Row, ...]
    """That without any factor first, then that with the first, with the second, with these two, …, with all."""
    costs: tuple[Interval, ...] = ()
    """Nanoseconds per operation of each, over the blocks that all have."""
    parts: tuple[FactorPart, ...] = ()
    """Each factor's own, then of each two, then of all three: with the cost of the first cell they add up to that of
    the last one."""
    beyond: Interval | None = None
    """Nanoseconds per operation: the cost with all of them, less the sum of each one's own on top of the first's."""
    ratio: Interval | None = None
    """The same as a share: the cost with all of them over that sum."""
    verdict: Together = Together.CANNOT_TELL
    reason: str | None = None
    """Why there is none."""
    split: Split | None = None
    """Of two factors; None of three."""

    @property
    def reckoned(self) -> tuple[tuple[Row, Interval], ...]:
        """Each cell with its cost; none where they could not be taken apart."""
        return tuple(zip(self.rows, self.costs, strict=False))

    @property
    def own(self) -> tuple[FactorPart, ...]:
        """Of each factor by itself, in the study's order."""
        return tuple(part for part in self.parts if len(part.factors) == 1)


class InCompany(StrEnum):
    """What an operation pays for others beside it."""

    SCALES = "scales"
    """Neither CPU time nor elapsed time of an operation rises."""
    PAYS = "pays for company"
    """Its CPU time rises."""
    WAITS = "waits"
    """Its elapsed time rises, and its CPU time does not."""
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class CompanyResult:
    """A cell of several threads beside the same of one."""

    row: Row
    alone: Row
    """That of one thread."""
    cpu: Toll
    """What is judged of the CPU time of an operation."""
    elapsed: Toll
    """The same of its elapsed time, on the thread that performs it."""
    verdict: InCompany = InCompany.CANNOT_TELL

    @property
    def threads(self) -> int:
        return int(self.row.coordinates["threads"])

    @property
    def rate(self) -> Interval | None:
        """Operations in a time, of all threads together, over those of one: as many as there are threads where none
        waits. None where that could not be measured."""
        if self.elapsed.ratio is None:
            return None
        each, many = self.elapsed.ratio.inverse, self.threads
        return replace(each, estimate=many * each.estimate, low=many * each.low, high=many * each.high)

    @property
    def reason(self) -> str | None:
        """Why there is nothing to judge."""
        return self.cpu.reason or self.elapsed.reason


@dataclass(frozen=True, slots=True)
class BySource:
    """One cell by the statistic of a study's source: a typical cost, or a rate."""

    mean: float
    unit: str
    """Of mean, error and deviation."""
    error: float | None
    """Half of the mean's interval, where the source prints one; None where there are too few blocks for it."""
    deviation: float | None
    """None where the source prints none, and for one block."""
    blocks: int
    """Of which the mean is."""
    ratio: float
    """Of the means: this cell's over the claim's other one's; of a figure of one cell, one."""


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """What was published beside the same of this machine."""

    claim: Claim
    at: Mapping[str, Value]
    """Where both cells stand alike: the provider, and the settings that the claim does not fix."""
    ratio: Interval | None = None
    """In the claim's own direction and metric: the one's capacity over the other's, for example."""
    typical: Interval | None = None
    """The same, as disturbed."""
    verdict: ClaimVerdict = ClaimVerdict.CANNOT_TELL
    reason: str | None = None
    values: tuple[tuple[float, str], ...] = ()
    """The claim's metric of the one cell, and of the other where it compares two, each with its unit."""
    rates: tuple[float, float] | None = None
    """Requests a second that both sides were measured at."""
    by_source: BySource | None = None
    """The claim's first cell by the statistic that its source prints."""


@dataclass(frozen=True, slots=True)
class Trust:
    """What happened during a study's trials that the verdicts do not show, in counts."""

    blocks: int
    """In which some cell was measured."""
    whole_blocks: int
    """In which every cell was visited."""
    planned_blocks: int
    fewest_blocks: int
    """That can support an interval."""
    twins_apart: tuple[int, int] | None = None
    """How many twins exclude that they cost what they cost, and of how many; None where chance explains it."""
    cells: int = 0
    """That have a cost."""
    left_alone: float | None = None
    """The share of unselected moments in which the core was left alone; None: no core was probed."""
    never_left_alone: int = 0
    """Of these: those whose core was left alone in too few blocks, so that their costs are as disturbed."""
    slower_than_known: float | None = None
    """How many times as long the quickest probes took as in earlier runs, where a quiet core does not explain it: then
    all moments were disturbed, or the machine has changed."""
    lattices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Titles of the cells whose chunk times are multiples of a tick, by what makes them so."""
    heats: int = 0
    stolen_heats: int = 0
    """In which the hypervisor gave others much of the time."""
    loads: int = 0
    stretches: int = 0
    """In which rates and response times were taken."""
    contended_loads: int = 0
    """Of these: in which other programs had the server's or the client's core for much of the time."""
    reopened_loads: int = 0
    """In which the server closed connections that its clients kept."""
    reopened_connections: int = 0
    failed_trials: int = 0
    """Of cells that were measured otherwise."""
    failures: tuple[str, ...] = ()
    """Why, each reason once."""


@dataclass(frozen=True, slots=True)
class StudyJudgement:
    """All that one study's trials say."""

    study: StudyRun
    confidence: float
    """Of every interval of this study: each further look leaves less error to spend."""
    noise_floor: float | None
    """How far from one twins came out, as a ratio above one: of the baseline where that was furthest."""
    noise: Interval | None
    """The ratio of these twins: what a true ×1.00 came out as."""
    measurements: tuple[Measurement, ...]
    tolls: tuple[Toll, ...]
    contrasts: tuple[Contrast, ...]
    claims: tuple[ClaimResult, ...]
    drift: float | None
    """The median change of the cells' cost from the first to the last third of the blocks, as a ratio."""
    trust: Trust
    tables: tuple[CrossTableResult, ...] = ()
    factors: tuple[FactorsResult, ...] = ()
    company: tuple[CompanyResult, ...] = ()
    """Each cell of several threads beside the same of one."""
    twins: tuple[tuple[Row, Interval], ...] = ()
    """What was measured beside itself, and the ratio of its two costs: each baseline, and a cell of each other kind."""
    break_evens: tuple[BreakEven, ...] = ()
    compare: Callable[[Row, Row], Toll] | None = field(default=None, compare=False, repr=False)
    """What is judged of any two cells; None where only what stands above is known."""

    @property
    def about(self) -> Study:
        """The question, and all that was planned to answer it."""
        return self.study.study

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.study.rows


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that a run says."""

    run: Run
    studies: tuple[StudyJudgement, ...]
