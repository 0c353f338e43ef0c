"""Main table: every planned cell with its costs, ratios and verdict; whole for a page, in part for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tollbar.analysis import StudyJudgement
from tollbar.core.words import slug
from tollbar.report.blocks import Folded, Section, Table
from tollbar.report.coordinates import Form, column_title, named_value
from tollbar.report.groups import Spot, by_row, cost_metric, spot
from tollbar.report.names import baseline_words, labels, varied, varying
from tollbar.report.numbers import LIMIT_MARKS, percent, times
from tollbar.report.sections.columns import MainTable
from tollbar.report.sections.unmeasured import left_out_table
from tollbar.report.table_cells import coordinate_cell
from tollbar.report.view import once
from tollbar.report.ways import options
from tollbar.results import Row

# A screenful: the report, or `tollbar judge RUN --all`, has the others.
ROWS_SHOWN = 24
# Limit of the ways that a reader of the page may choose as another baseline.
MOST_WAYS = 100


@dataclass(frozen=True, slots=True)
class Results:
    """Main table of a study, with the relations between its rows."""

    kind: ClassVar[str] = "results"
    table: Table
    """Table of every planned cell: its name, ratio and standing first, so that they can stay visible."""
    brief: tuple[Table, ...]
    """Compared cells, a table for each panel; its caption has the coordinates that its rows share."""
    alike: str
    """Coordinates that all rows of `brief` share."""
    marks: tuple[str, ...]
    """Meanings of the marks and words in `brief`."""
    hidden: int
    """Number of rows left out of `brief` for lack of room."""
    baseline: str
    """Baseline of the ratios, in words."""
    ways: Sequence[str]
    """Other possible baselines, in the rows' order."""
    providers: Sequence[str]
    facts: Sequence[Mapping[str, object]]
    """Facts of each row: the numbers of its `way`, `place` and `provider`; with a cost also `cost` and `ratios`.

    `ratios` are the cost over that of each way in the same place, in words. Rows of one place are alternatives to one
    another.
    """

    @property
    def against_column(self) -> int:
        """Index of the column of ratios."""
        return self.table.index("ratio")

    @property
    def all_column(self) -> int:
        return self.table.index("all ratio")

    @property
    def verdict_column(self) -> int:
        return self.table.index("verdict")


@dataclass(frozen=True, slots=True)
class BaselineChoice:
    """Baselines that a reader may choose for a study's costs, next to the charts."""

    kind: ClassVar[str] = "baselines"
    results: Results


@once
def main_table(study: StudyJudgement) -> MainTable:
    """Return the study's columns and their cells."""
    return MainTable(study)


def results(study: StudyJudgement, most: int | None = None) -> Results:
    """Return the table; its brief form has at most `most` rows."""
    made, table = main_table(study), _table(study)
    rows, groups, in_panels = made.rows, made.groups, made.in_panels
    shown = _first(groups, sum(map(len, groups)) if most is None else most)
    number = {row.key: at for at, row in enumerate(study.rows)}
    captions = (
        ", ".join(
            named_value(study.about.family, name, group[0].shown[name], Form.TABLE)
            for name in in_panels
            if name in group[0].shown
        )
        for group in shown
    )
    picked = [[number[row.key] for row in group] for group in shown]
    ways, providers, facts = _alternatives(study)
    return Results(
        table,
        table.picked(made.picks(), zip(captions, picked, strict=True)),
        "; where it means something: ".join(filter(None, (", ".join(made.alike), ", ".join(made.alike_in_some)))),
        made.marks(),
        len(rows) - sum(map(len, shown)),
        baseline_words(study),
        ways,
        providers,
        facts,
    )


@once
def _table(study: StudyJudgement) -> Table:
    columns = main_table(study).columns()
    return Table(
        _caption(study),
        [column for column, _ in columns],
        [[cell_of(row) for _, cell_of in columns] for row in study.rows],
        sortable=True,
        names=[slug(f"{study.about.name} {' '.join(map(str, row.coordinates.values()))}") for row in study.rows],
    )


def results_section(study: StudyJudgement, main: Results) -> Section:
    left = left_out_table(study)
    return Section("Every result", (main, *([Folded(left.caption, [left])] if left.rows else [])))


def _first(groups: Sequence[Sequence[Row]], most: int) -> list[Sequence[Row]]:
    """Return the first rows of these groups, at most this number; a group is not begun for its first row alone."""
    shown: list[Sequence[Row]] = []
    for group in groups:
        left = most - sum(map(len, shown))
        if left >= min(2, len(group)):
            shown.append(group[:left])
    return shown


def _caption(study: StudyJudgement) -> str:
    family, rows = study.about.family, study.rows
    first = rows[0].coordinates if rows else {}
    alike = [n for n in first if n not in varying(rows) and n != "choice"]
    said = [f"{column_title(family, n)} {coordinate_cell(study, n, rows[0]).says}" for n in alike]
    sure = percent(study.confidence)
    text = f"Every cell of the study {study.about.name}, with its {sure} interval in brackets"
    found = dict.fromkeys(limit for m in study.measurements if (limit := m.limit))
    marks = ", ".join(f"{LIMIT_MARKS[limit]} {limit}" for limit in found)
    return "; ".join(filter(None, (text, f"all at {', '.join(said)}" if said else "", marks)))


@once
def _alternatives(study: StudyJudgement) -> tuple[Sequence[str], Sequence[str], Sequence[Mapping[str, object]]]:
    """Return the data by which a page divides one cost by another; verdicts exist against the baseline only.

    With more ways than a reader would choose from, there are no ways and no ratios.
    """
    chosen = options(study)
    given = [name for name in varied(study) if name not in chosen]
    label = labels(study, chosen, whole=True)
    named = [(label(row), spot(row, given), str(row.shown.get("provider", ""))) for row in study.rows]
    ways = {way: n for n, way in enumerate(dict.fromkeys(way for way, _, _ in named))}
    spots = {at: n for n, at in enumerate(dict.fromkeys(at for _, at, _ in named))}
    providers = {by: n for n, by in enumerate(dict.fromkeys(by for _, _, by in named))}
    many = len(ways) > MOST_WAYS
    costs = {key: float(f"{found.value:.6g}") for key, found in by_row(study, cost_metric(study)).items()}
    at = {named[n][:2]: costs[row.key] for n, row in enumerate(study.rows) if row.key in costs}

    def beside_others(row: Row, place: Spot) -> dict[str, object]:
        if row.key not in costs or many:
            return {}
        its, others = costs[row.key], [at.get((way, place)) for way in ways]
        return {"cost": its, "ratios": "|".join(times(its / other) if other else "" for other in others)}

    facts = [
        {"way": ways[way], "place": spots[place], "provider": providers[provider], **beside_others(row, place)}
        for row, (way, place, provider) in zip(study.rows, named, strict=True)
    ]
    return [] if many else [*ways], [*providers], facts
