"""A study's tolls as a terminal lists them: a table for each baseline, which stands in it in its place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tollbar import units
from tollbar.families import Family, Standing, Value
from tollbar.judge import Measurement, StudyJudgement, Toll, Verdict
from tollbar.present import notes, words
from tollbar.present.cells import by_row, cost_metric, is_baseline, places, split, varying
from tollbar.present.charts import IN_GOOD_STANDING
from tollbar.present.costs import cost_words
from tollbar.present.shapes import Cell, Column, Table, numbers, row_names, texts
from tollbar.present.tables import beside
from tollbar.present.tolls import panels
from tollbar.results import Row

# A screenful: more are in the report, or behind `tollbar judge RUN --all`.
ROWS_SHOWN = 24
# Behind the verdict, where the typical ratio is apart from the undisturbed one.
SUFFERS = {"more": "↑", "less": "↓"}
AS_DISTURBED = "~"
# What stands beside the cost, where it was measured; the report has the rest.
BESIDE = {"throughput": "requests / s", "memory": "held"}
# Below this, what a call costs besides its bytes decides how many bytes a second are worked on.
SPEED_FROM_BYTES = 1024
# In which order columns leave where there is no room for all.
BAR, TYPICAL, STANDING, INTERVAL, OTHERS, SPEED = range(1, 7)
EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True)
class TollTables:
    """What was compared, in tables with the same columns."""

    tables: tuple[Table, ...]
    """Each with what its rows have in common as its caption."""
    alike: str
    """What every row has in common."""
    marks: tuple[str, ...]
    """What the marks and words in the tables mean."""
    hidden: int
    """How many rows were left out for want of room."""


def compared(study: StudyJudgement) -> list[Toll]:
    """The tolls that have a ratio, the least first."""
    found = [(t.ratio.estimate, t) for t in study.tolls if t.ratio and t.row.key != t.against.key]
    return [toll for _, toll in sorted(found, key=lambda pair: pair[0])]


def toll_tables(study: StudyJudgement, most: int | None = None) -> TollTables:
    """The tolls and their baselines, the least first; no more than `most` rows, if that is said."""
    tolls = {toll.row.key: toll for toll in compared(study)}
    measured = by_row(study, cost_metric(study))
    # One that nothing is compared with was asked for as well: the same choice with another parameter.
    baselines = [row.key for row in study.rows if is_baseline(row) and row.key in measured]
    order = {key: toll.ratio.estimate for key, toll in tolls.items() if toll.ratio} | dict.fromkeys(baselines, 1.0)
    rows = [row for row in study.rows if row.key in order]
    _, in_panels = split(study, rows) if rows else ([], [])
    groups = [sorted(found, key=lambda row: order[row.key]) for _, found in panels(places(study), rows, in_panels)]
    shown = _first(groups, len(rows) if most is None else most)
    at = _Columns.of(study, rows, tolls, in_panels)
    tables = tuple(
        Table(
            ", ".join(said(study, name, group[0].shown[name]) for name in in_panels if name in group[0].shown),
            at.columns(),
            [at.written(row) for row in group],
        )
        for group in shown
    )
    hidden = len(rows) - sum(map(len, shown))
    return TollTables(tables, ", ".join(at.alike), at.marks(), hidden)


def _first(groups: Sequence[Sequence[Row]], most: int) -> list[Sequence[Row]]:
    """The first rows of these groups, no more than so many; a group is not begun for its first row alone."""
    shown: list[Sequence[Row]] = []
    for group in groups:
        left = most - sum(map(len, shown))
        if left >= min(2, len(group)):
            shown.append(group[:left])
    return shown


@dataclass(frozen=True, slots=True)
class _Columns:
    """Which columns the tables of a study have, and what stands in them."""

    study: StudyJudgement
    tolls: Mapping[str, Toll]
    rows: Sequence[Row]
    names: Sequence[str]
    alike: Sequence[str]
    cost: Mapping[str, Measurement]
    others: Mapping[str, Mapping[str, Measurement]]
    has_standing: bool
    has_typical: bool
    has_speed: bool
    widest: float
    """The largest logarithm of a ratio: a bar of one."""

    @classmethod
    def of(
        cls, study: StudyJudgement, rows: Sequence[Row], tolls: Mapping[str, Toll], in_panels: Sequence[str]
    ) -> _Columns:
        vary = varying(rows)
        names = [name for name in vary if name not in in_panels] or ["choice"]
        told = {*vary, *names}
        constant = {name: value for row in rows for name, value in row.shown.items() if name not in told}
        # A baseline that protects nothing is no choice; any other is one, and may be worth less than the rest.
        standings = {row.standing for row in rows if not (is_baseline(row) and row.standing is Standing.NULL)}
        alike = [said(study, name, value) for name, value in constant.items()]
        if len(standings) == 1:
            alike.append(f"all {words.standing_words(*standings)}")
        found = [tolls[row.key] for row in rows if row.key in tolls]
        cost = by_row(study, cost_metric(study))
        others = {title: seen for name, title in BESIDE.items() if (seen := beside(study).get((name, None)))}
        sizes = [row.coordinates.get("bytes") for row in rows]
        setting = study.about.family.settings.get("bytes")
        return cls(
            study=study,
            tolls=tolls,
            rows=rows,
            names=names,
            alike=alike,
            cost=cost,
            others=others,
            has_standing=len(standings) > 1,
            has_typical=any(toll.suffers for toll in found),
            has_speed=cost_metric(study) == "cpu"
            and setting is not None
            and not setting.only
            and any(isinstance(size, int) and size >= SPEED_FROM_BYTES for size in sizes),
            widest=max((abs(math.log(t.ratio.estimate)) for t in found if t.ratio), default=0.0) or 1.0,
        )

    def columns(self) -> tuple[Column, ...]:
        return (
            *row_names(*("server" if name == "bed" else name for name in self.names)),
            *numbers(cost_words(self.study).column),
            *(numbers("per s of CPU", leaves=SPEED) if self.has_speed else ()),
            *numbers(*self.others, leaves=OTHERS),
            *numbers("× baseline"),
            *texts(interval_title(self.study), leaves=INTERVAL),
            *texts("", leaves=BAR),
            *(numbers("typical", leaves=TYPICAL) if self.has_typical else ()),
            *texts("verdict"),
            *(texts("standing", leaves=STANDING) if self.has_standing else ()),
        )

    def written(self, row: Row) -> tuple[Cell, ...]:
        toll = self.tolls.get(row.key)
        cost = self.cost.get(row.key)
        return (
            *(Cell(plain(self.study.about.family, name, row.shown.get(name))) for name in self.names),
            Cell("" if cost is None else units.show_nanoseconds(cost.value)),
            *([Cell(words.per_second(cost.value, row.coordinates)[1] if cost else "")] if self.has_speed else []),
            *(Cell(_beside(found.get(row.key))) for found in self.others.values()),
            *self._judged(toll, row),
            *([_standing(row)] if self.has_standing else []),
        )

    def _judged(self, toll: Toll | None, row: Row) -> tuple[Cell, ...]:
        if toll is None or toll.ratio is None:
            typical = [Cell("")] if self.has_typical else []
            return Cell("1"), Cell(""), Cell("", bar=0.0), *typical, Cell("baseline")
        suffers = f" {SUFFERS[toll.suffers]}" if toll.suffers else ""
        disturbed = f" {AS_DISTURBED}" if notes.as_disturbed(self.study, toll) else ""
        good = good_news(toll.verdict, row)
        return (
            Cell(words.ratio_words(toll.ratio.estimate)),
            Cell(words.bracket(toll.ratio)),
            Cell(
                "", bar=bar(toll.ratio.estimate, self.study.about.worth, self.widest), verdict=toll.verdict, good=good
            ),
            *([Cell(words.ratio_words(toll.typical.estimate) if toll.typical else "")] if self.has_typical else []),
            Cell(
                f"{toll.verdict}{suffers}{disturbed}",
                verdict=toll.verdict,
                good=good,
                small=notes.undecided(self.study, toll),
            ),
        )

    def marks(self) -> tuple[str, ...]:
        """What the marks in these tables stand for, and what else is not plain."""
        found = [self.tolls[row.key] for row in self.rows if row.key in self.tolls]
        suffers = {
            f"{SUFFERS[toll.suffers]} {notes.suffers(toll)}: typical is the ratio as disturbed today": None
            for toll in found
            if toll.suffers
        }
        disturbed = {f"{AS_DISTURBED} {said}": None for toll in found if (said := notes.as_disturbed(self.study, toll))}
        limits = {
            f"{words.LIMIT_MARKS[m.limit]} {m.limit}": None
            for seen in self.others.values()
            for m in seen.values()
            if m.limit
        }
        limited = [f"requests a second that something other than the server limited: {', '.join(limits)}"]
        named = [
            f"{EMBEDDED}: {words.EMBEDDED_SERVER}"
            for _ in [0]
            if "bed" in self.names and any(row.bed == EMBEDDED for row in self.rows)
        ]
        meant = notes.verdicts({toll.verdict for toll in found}, self.study.about.worth)
        return (*([meant] if meant else []), *disturbed, *suffers, *(limited if limits else []), *named)


def bar(ratio: float, worth: float, widest: float) -> float:
    """How long a bar of this ratio is, from minus one to one, on the logarithmic scale that `widest` is the end of.

    Nought within what the study ignores: a bar there would show what no verdict says.
    """
    return 0.0 if 1 / (1 + worth) <= ratio <= 1 + worth else math.log(ratio) / widest


def good_news(verdict: Verdict, row: Row) -> bool | None:
    """A choice that protects nothing, or not any more, is no good news however little it costs."""
    if verdict is Verdict.COSTS:
        return False
    return True if verdict is Verdict.SAVES and row.standing in IN_GOOD_STANDING else None


def _standing(row: Row) -> Cell:
    says = words.standing_words(row.standing)
    called_out = row.standing in words.CALLED_OUT
    return Cell(says, standing=row.standing, stays=says if called_out else None, good=False if called_out else None)


def _beside(found: Measurement | None) -> str:
    """The value, with a mark behind requests a second where something other than the server limited them."""
    if found is None:
        return ""
    number = f"{found.value:,.0f}" if found.unit == "1/s" else words.amount(found.value, found.unit)
    return number if found.limit is None else f"{number} {words.LIMIT_MARKS[found.limit]}"


def plain(family: Family | None, name: str, value: Value | None) -> str:
    """A coordinate as a study writes it, numbers with their units."""
    if value is None:
        return ""
    setting = family.settings.get(name) if family else None
    return str(value) if setting is None else setting.words(value)


def said(study: StudyJudgement, name: str, value: Value) -> str:
    """The same where no column is headed by its name: `users 5`, `key fresh`, but `4 KiB` and `openssl 3.0.19`."""
    if name in ("choice", "provider", "bed", "op"):
        return words.EMBEDDED_SERVER if name == "bed" and str(value).startswith(EMBEDDED) else str(value)
    if name in words.LOADS:
        return words.value_words(study.about.family, name, value)
    setting = study.about.family.settings.get(name)
    words_ = plain(study.about.family, name, value)
    return words_ if setting is not None and setting.is_size else f"{name} {words_}"


def interval_title(study: StudyJudgement) -> str:
    """`96 % interval`."""
    return f"{100 * study.confidence:.4g} % interval"
