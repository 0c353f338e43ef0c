"""Highest load of each cell at which 95 % of the answers came within a limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tollbar.analysis import Measurement, StudyJudgement
from tollbar.core import units
from tollbar.core.records import Outcome
from tollbar.core.words import counted
from tollbar.report.blocks import DASH, Column, Listing, Table, TableCell, numbers
from tollbar.report.coordinates import value_words
from tollbar.report.groups import by_cell, by_row, load_name
from tollbar.report.names import whole_labels
from tollbar.report.numbers import measured_words
from tollbar.report.sections.load import P95, THROUGHPUT
from tollbar.results import Row

# Response times are measured in microseconds.
PER_S = 1e6
UNMEASURED = (
    "A load without a p95, or with failed trials, ends the search: nothing shows that it, or a higher one, is within"
    " the limit."
)


@dataclass(frozen=True, slots=True)
class Reached:
    """Loads of a cell on both sides of a limit."""

    highest: Row | None
    """Highest load within the limit, as each lower one is; None: the least load is beyond it."""
    beyond: Row | None
    """Least load that is not within the limit, because it is beyond it, was not measured, or failed in part; None:
    every load is within it.
    """


def reached(rows: Sequence[Row], p95_s: Sequence[float | None], limit_s: float) -> Reached:
    """Return the loads on both sides of a limit, of rows in the order of their loads with their 95th percentiles.

    Of a load without a percentile, or with failed trials, nothing shows that it, or a higher one, is within the limit.
    """
    within = next((n for n, one in enumerate(p95_s) if one is None or one > limit_s), len(rows))
    return Reached(rows[within - 1] if within else None, rows[within] if within < len(rows) else None)


@dataclass(frozen=True, slots=True)
class WithinCell:
    """Cell with its loads on both sides of a limit of the 95th percentile."""

    study: str
    load: str
    """Name of the load: `users`, `rate` or `utilisation`."""
    row: Row
    """Row at the least load; without `load` its coordinates are the cell's."""
    sides: Reached
    p95: Mapping[str, Measurement]
    throughput: Mapping[str, Measurement]
    """Requests a second of each row, by its key, like `p95`."""


def within_cells(study: StudyJudgement, limit_s: float) -> Sequence[WithinCell]:
    """Return the cells with their highest load within a limit, highest first; none for a study of one load.

    A cell that cannot be measured here is left out.
    """
    name = load_name(study)
    p95, throughput = by_row(study, P95), by_row(study, THROUGHPUT)
    if name is None or not p95:
        return ()
    found = []
    for cell in by_cell(row for row in study.rows if row.outcome is not Outcome.UNSUPPORTED):
        rows = [row for row in cell if row.coordinates.get(name)]
        if rows:
            sides = reached(
                rows, [_seconds(p95.get(row.key)) if not failed_trials(row) else None for row in rows], limit_s
            )
            found.append(WithinCell(study.about.name, name, rows[0], sides, p95, throughput))
    return sorted(found, key=lambda one: -float(one.sides.highest.coordinates[name] if one.sides.highest else 0))


def within_listing(study: StudyJudgement, limit_s: float) -> Listing | None:
    """Return the highest load of each cell within a limit of the 95th percentile; None for a study of one load."""
    found = within_cells(study, limit_s)
    if not found:
        return None
    label, family, name = whole_labels(study), study.about.family, found[0].load
    rows: list[Sequence[TableCell]] = []
    for one in found:
        columns = [TableCell(label(one.row))]
        for row in (one.sides.highest, one.sides.beyond):
            load = TableCell(value_words(family, name, row.coordinates[name])) if row else DASH
            columns += [load, _p95_cell(row, one.p95) if row else DASH]
        answers = one.throughput.get(one.sides.highest.key) if one.sides.highest else None
        columns.insert(2, TableCell(measured_words(answers)) if answers else DASH)
        rows.append(columns)
    titles = (f"highest {name}", "requests / s", "p95", f"next {name}", "its p95")
    limit = units.show_nanoseconds(limit_s * 1e9)
    beyond = [(one.sides.beyond, one.p95) for one in found if one.sides.beyond]
    is_unmeasured = any(row.key not in p95 or failed_trials(row) for row, p95 in beyond)
    return Listing(
        f"{study.about.name}: the highest {name} with 95 % of the answers within {limit}",
        tables=[Table("", [Column("cell", names=True), *numbers(*titles)], rows)],
        notes=["Loads between these two were not measured.", *([UNMEASURED] if is_unmeasured else [])],
    )


def failed_trials(row: Row) -> int:
    """Return the number of trials of a load that failed; those that did not may be within a limit by themselves."""
    return sum(trial.outcome is not Outcome.OK for trial in row.all_trials)


def _p95_cell(row: Row, p95: Mapping[str, Measurement]) -> TableCell:
    """Return the 95th percentile of a load, or the outcome of one that has none."""
    if row.key in p95:
        count = failed_trials(row)
        failed = f"{count} of {counted(len(row.all_trials), 'trial')} failed" if count else None
        return TableCell(measured_words(p95[row.key]), small=failed)
    return TableCell("not measured" if row.outcome is Outcome.OK else str(row.outcome))


def _seconds(found: Measurement | None) -> float | None:
    return found.value / PER_S if found else None
