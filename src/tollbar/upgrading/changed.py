"""What an upgrade changed: each row of the new build beside that of the old one, and defaults beside the library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tollbar.judge import FactorsResult, Judgement, StudyJudgement, Toll, Verdict
from tollbar.records import Outcome
from tollbar.results import Row
from tollbar.stats import Interval
from tollbar.upgrading.things import Thing


class Kind(StrEnum):
    """What became of a row."""

    DEARER = "dearer"
    CHEAPER = "cheaper"
    SAME = "no change"
    OPEN = "cannot tell"
    NEW = "new"
    GONE = "gone"
    FAILED = "not measured"


_OF_VERDICT: Mapping[Verdict, Kind] = {
    Verdict.COSTS: Kind.DEARER,
    Verdict.SAVES: Kind.CHEAPER,
    Verdict.FREE: Kind.SAME,
    Verdict.UNCLEAR: Kind.OPEN,
}


@dataclass(frozen=True, slots=True)
class Change:
    """One row of both builds."""

    study: StudyJudgement
    kind: Kind
    toll: Toll
    """The new build's against the old one's."""
    reason: str | None = None
    """Why it is not measured, or is new or gone, in the words of the build that lacks it."""

    @property
    def row(self) -> Row:
        return self.toll.row

    @property
    def old_row(self) -> Row:
        return self.toll.against

    @property
    def ratio(self) -> Interval | None:
        return self.toll.ratio


@dataclass(frozen=True, slots=True)
class Apart:
    """A change by default, taken apart: the library's, and what the new defaults add."""

    study: StudyJudgement
    found: FactorsResult
    """Its cells: the old one by default, the new one so, the old one held, the new one held."""
    negotiated: tuple[str, ...]
    """Of each cell: what client and server agreed on, as it was read from the wire."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """All that is said of one."""

    old: Thing
    new: Thing
    judged: Judgement
    changes: tuple[Change, ...]
    apart: tuple[Apart, ...]
    neither: tuple[tuple[str, str], ...]
    """Rows that neither build has, each with the reason."""

    @property
    def what(self) -> str:
        """What is upgraded, in a word."""
        return "server" if self.new.bed else "library"

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """Those of a kind, the largest change first."""
        found = [change for change in self.changes if change.kind is kind]
        return tuple(sorted(found, key=lambda one: -abs(one.ratio.estimate - 1) if one.ratio else 0.0))

    def above(self, share: float) -> tuple[Change, ...]:
        """What became dearer by more than this share, with the whole interval."""
        return tuple(one for one in self.of(Kind.DEARER) if one.ratio and one.ratio.low > 1 + share)

    @property
    def tellable(self) -> int:
        """How many rows have an interval of their change, without which no rise is ever found."""
        return sum(one.ratio is not None and one.ratio.is_bounded for one in self.changes)


def upgrade(old: Thing, new: Thing, judged: Judgement) -> Upgrade:
    """What a run of the studies that are asked of both says of the upgrade."""
    changes, neither = [], []
    for study in judged.studies:
        for toll in study.tolls:
            if toll.row.key == toll.against.key:
                continue
            here, there = (row.outcome is Outcome.UNSUPPORTED for row in (toll.row, toll.against))
            if here and there:
                neither.append((toll.row.title, toll.row.reason or toll.row.outcome))
            else:
                changes.append(_change(study, toll, lacks_new=here, lacks_old=there))
    return Upgrade(old, new, judged, tuple(changes), tuple(_apart(judged)), tuple(neither))


def _change(study: StudyJudgement, toll: Toll, *, lacks_new: bool, lacks_old: bool) -> Change:
    if lacks_new or lacks_old:
        lacking = toll.row if lacks_new else toll.against
        return Change(study, Kind.GONE if lacks_new else Kind.NEW, toll, lacking.reason)
    if toll.ratio is None:
        return Change(study, Kind.FAILED, toll, toll.reason)
    return Change(study, _OF_VERDICT[toll.verdict], toll)


def _apart(judged: Judgement) -> Iterator[Apart]:
    for study in judged.studies:
        for found in study.factors:
            yield Apart(study, found, tuple(negotiated(row) for row in found.rows))


def negotiated(row: Row) -> str:
    """`TLS 1.3, X25519MLKEM768, TLS_AES_256_GCM_SHA384, ECDSA P-256`, as most of its connections agreed; or nothing."""
    counts: dict[str, int] = {}
    for trial in row.all_trials:
        for one in trial.load.negotiated if trial.load else ():
            words = ", ".join(part for part in (one.version, one.group, one.suite, one.certificate_key) if part)
            counts[words] = counts.get(words, 0) + one.count
    return max(counts, key=counts.__getitem__, default="")
