"""Highest load of each cell at which 95 % of the answers came within a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tollbar.analysis import Measurement, StudyJudgement
from tollbar.core import units
from tollbar.report.blocks import DASH, Column, Listing, Table, TableCell, numbers
from tollbar.report.coordinates import value_words
from tollbar.report.groups import by_cell, by_row, load_name
from tollbar.report.names import whole_labels
from tollbar.report.numbers import measured_words
from tollbar.report.sections.load import P95, THROUGHPUT
from tollbar.results import Row

# Response times are measured in microseconds.
PER_S = 1e6


@dataclass(frozen=True, slots=True)
class Reached:
    """Loads of a cell on both sides of a limit."""

    highest: Row | None
    """Highest load within the limit, as each lower one is; None: the least load is beyond it."""
    beyond: Row | None
    """Least load beyond the limit; None: every load is within it."""


def reached(rows: Sequence[Row], p95_s: Sequence[float], limit_s: float) -> Reached:
    """Return the loads on both sides of a limit, of rows in the order of their loads with their 95th percentiles."""
    within = next((n for n, one in enumerate(p95_s) if one > limit_s), len(rows))
    return Reached(rows[within - 1] if within else None, rows[within] if within < len(rows) else None)


def within_listing(study: StudyJudgement, limit_s: float) -> Listing | None:
    """Return the highest load of each cell within a limit of the 95th percentile; None for a study of one load."""
    name = load_name(study)
    p95, throughput = by_row(study, P95), by_row(study, THROUGHPUT)
    if name is None or not p95:
        return None
    label, family = whole_labels(study), study.about.family
    found: list[tuple[float, Sequence[TableCell]]] = []
    for cell in by_cell(study.rows):
        rows = [row for row in cell if row.key in p95 and row.coordinates.get(name)]
        if not rows:
            continue
        sides = reached(rows, [_seconds(p95[row.key]) for row in rows], limit_s)
        columns = [TableCell(label(rows[0]))]
        for row in (sides.highest, sides.beyond):
            load = TableCell(value_words(family, name, row.coordinates[name])) if row else DASH
            columns += [load, TableCell(measured_words(p95[row.key])) if row else DASH]
        answers = throughput.get(sides.highest.key) if sides.highest else None
        columns.insert(2, TableCell(measured_words(answers)) if answers else DASH)
        found.append((float(sides.highest.coordinates[name]) if sides.highest else 0.0, columns))
    found.sort(key=lambda one: -one[0])
    titles = (f"highest {name}", "requests / s", "p95", f"next {name}", "its p95")
    limit = units.show_nanoseconds(limit_s * 1e9)
    return Listing(
        f"{study.about.name}: the highest {name} with 95 % of the answers within {limit}",
        tables=[Table("", [Column("cell", names=True), *numbers(*titles)], [row for _, row in found])],
        notes=["Loads between these two were not measured."],
    )


def _seconds(found: Measurement) -> float:
    return found.value / PER_S
