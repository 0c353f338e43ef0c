"""Changes of an upgrade: each row of the new build relative to the old one, split into defaults and library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from tollbar.analysis import (
    FactorsResult,
    Judgement,
    StudyJudgement,
    Terms,
    Toll,
    Verdict,
    one_of,
    reach,
    split_as_one_of,
)
from tollbar.analysis.trust import is_near
from tollbar.catalog import servers
from tollbar.catalog.families import Family
from tollbar.core.intervals import Interval
from tollbar.core.records import Outcome
from tollbar.decide.upgrade.things import Thing
from tollbar.lab.servers.loading import libssl_beside
from tollbar.results import Row


class Kind(StrEnum):
    """Kind of change of a row."""

    DEARER = "dearer"
    CHEAPER = "cheaper"
    SAME = "no change"
    OPEN = "cannot tell"
    NEW = "new"
    GONE = "gone"
    FAILED = "not measured"
    NEITHER = "in neither build"
    NOT_ASKED = "not asked"


_OF_VERDICT: Mapping[Verdict, Kind] = {
    Verdict.COSTS: Kind.DEARER,
    Verdict.SAVES: Kind.CHEAPER,
    Verdict.FREE: Kind.SAME,
    Verdict.UNCLEAR: Kind.OPEN,
}


@dataclass(frozen=True, slots=True)
class Change:
    """Row of both builds."""

    study: StudyJudgement
    kind: Kind
    toll: Toll
    """The new build's against the old one's."""
    reason: str | None = None
    """Reason why the row is not measured, or is new or gone, in the words of the build without it."""

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
    """Change by default, split into the library's part and that of the new defaults."""

    study: StudyJudgement
    found: FactorsResult
    """Result with four cells: the old and the new build by default, and both with the old build's settings."""
    negotiated: tuple[str, ...]
    """Parameters of each cell: negotiated by client and server, as read from the wire, or used."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of the change as shipped, of the library's part, and of the rest."""
        return tuple(_OF_VERDICT[verdict] for verdict in self.found.split.verdicts) if self.found.split else ()


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Comparison of two builds."""

    old: Thing
    new: Thing
    judged: Judgement
    changes: tuple[Change, ...]
    apart: tuple[Apart, ...]
    neither: tuple[Change, ...]
    """Rows that neither build has, each with the reason."""
    not_asked: tuple[Change, ...] = ()
    """Rows that this machine has nothing to ask with, each with the reason."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Questions that were not asked of either build, each with the reason."""
    among: int = 1
    """Number of comparisons that hold jointly, for which the intervals are widened."""

    @property
    def what(self) -> str:
        """Return one word for the upgraded thing."""
        return self.new.what

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """Return the changes of a kind, the largest first."""
        found = [change for change in self.changes if change.kind is kind]
        return tuple(sorted(found, key=lambda one: -abs(one.ratio.estimate - 1) if one.ratio else 0.0))

    def above(self, share: float) -> tuple[Change, ...]:
        """Return the rows whose cost rose by more than this share, with the whole interval.

        Rows that a steady neighbour may explain are left out.
        """
        return tuple(
            one
            for one in self.of(Kind.DEARER)
            if one.ratio and one.ratio.low > 1 + share and not is_near(one.ratio, 1 + share, one.study.trust)
        )

    def near(self, share: float) -> int:
        """Return the number of rows that a steady neighbour may have moved across this share."""
        return sum(one.ratio is not None and is_near(one.ratio, 1 + share, one.study.trust) for one in self.changes)

    def tellable(self, share: float) -> int:
        """Return the number of rows that would show a rise of this share: their interval and noise are narrower."""
        return sum(
            max(one.ratio.high / one.ratio.estimate, reach(one.toll.noise)) < 1 + share
            for one in self.changes
            if one.ratio is not None
            and one.ratio.is_bounded
            and one.toll.noise is not None
            # A row of ×1.20 or ×0.80 is reported in any case.
            and not is_near(one.ratio, 1 + share, one.study.trust)
        )


def upgrade(old: Thing, new: Thing, judged: Judgement, skipped: Mapping[str, str] | None = None) -> Upgrade:
    """Return the upgrade's answer from a run of the studies of both builds; `skipped` are questions not asked."""
    changes: list[Change] = []
    absent: list[Change] = []
    for study in judged.studies:
        for toll in study.tolls:
            if toll.row.key == toll.against.key:
                continue
            sides = {Kind.GONE: (toll.row, new), Kind.NEW: (toll.against, old)}
            lacking = {kind: row for kind, (row, _) in sides.items() if row.outcome is Outcome.UNSUPPORTED}
            unasked = [row for kind, row in lacking.items() if _cannot_be_asked(row, sides[kind][1])]
            if len(lacking) == len(sides):
                row, kind = (unasked or [toll.row])[0], Kind.NOT_ASKED if unasked else Kind.NEITHER
                absent.append(Change(study, kind, toll, row.reason or row.outcome))
                continue
            failed = [row for row, _ in sides.values() if row.outcome not in (Outcome.OK, Outcome.UNSUPPORTED)]
            changes.append(_change(study, toll, [*failed, *unasked], lacking))
    apart = tuple(_apart(judged, old, new))
    # The list of more expensive rows is one answer from all rows and all parts, so they hold jointly.
    parts = sum(len(one.kinds) for one in apart)
    among = sum(change.ratio is not None for change in changes) + parts
    return Upgrade(
        old,
        new,
        judged,
        tuple(_together(among, change) for change in changes),
        tuple(_apart_together(among, one) for one in apart),
        tuple(one for one in absent if one.kind is Kind.NEITHER),
        tuple(one for one in absent if one.kind is Kind.NOT_ASKED),
        skipped or {},
        among,
    )


def _change(study: StudyJudgement, toll: Toll, failed: Sequence[Row], lacking: Mapping[Kind, Row]) -> Change:
    if failed:
        return Change(study, Kind.FAILED, toll, failed[0].reason)
    if lacking:
        ((kind, row),) = lacking.items()
        return Change(study, kind, toll, row.reason)
    if toll.ratio is None:
        return Change(study, Kind.FAILED, toll, toll.reason)
    return Change(study, _OF_VERDICT[toll.verdict], toll)


def _together(among: int, change: Change) -> Change:
    """Return the change as one of `among` that hold jointly."""
    if change.kind not in _OF_VERDICT.values():
        return change
    toll = one_of(among, change.toll, Terms.of(change.study.study))
    return replace(change, toll=toll, kind=_OF_VERDICT[toll.verdict])


def _apart_together(among: int, one: Apart) -> Apart:
    if one.found.split is None:
        return one
    split = split_as_one_of(among, one.found.split, Terms.of(one.study.study))
    return replace(one, found=replace(one.found, split=split))


def _cannot_be_asked(row: Row, of: Thing) -> bool:
    """Return true if this machine, not the build, misses something: the server, or a libssl next to the file."""
    server = servers.all_servers().get(row.server or "")
    if server is None:
        return False
    path = of.provider.path if of.server is None else None
    has_libssl = path is None or libssl_beside(Path(path)) is not None
    return not has_libssl or isinstance(servers.find(server), servers.Unavailable)


def _apart(judged: Judgement, old: Thing, new: Thing) -> Iterator[Apart]:
    for study in judged.studies:
        for found in study.factors:
            # Each old row is followed by its new one.
            sides = (old, new) * (len(found.rows) // 2)
            taken = (
                negotiated(row) or parameters(study.about.family, row, of)
                for row, of in zip(found.rows, sides, strict=True)
            )
            yield Apart(study, found, tuple(taken))


def parameters(family: Family, row: Row, of: Thing) -> str:
    """Return the parameters that were set or that the build uses by default, or an empty text.

    For example: `PBKDF2-SHA-256, iterations 600,000`.
    """
    op = str(row.coordinates["op"])
    if op not in of.provider.receipt.get("defaults", {}):
        return ""
    choice, values = of.default(op)
    if row.choice == choice:
        values = {name: int(row.coordinates[name]) for name in values}
    title = family.choices[choice].title.removesuffix(", held")
    return ", ".join(filter(None, (title, family.with_names(values))))


def negotiated(row: Row) -> str:
    """Return the parameters that most connections negotiated, or an empty text.

    For example: `TLS 1.3, X25519MLKEM768, TLS_AES_256_GCM_SHA384, ECDSA P-256`.
    """
    counts: dict[str, int] = {}
    for trial in row.all_trials:
        for one in trial.load.negotiated if trial.load else ():
            words = ", ".join(part for part in (one.version, one.group, one.construction, one.certificate_key) if part)
            counts[words] = counts.get(words, 0) + one.count
    return max(counts, key=counts.__getitem__, default="")
