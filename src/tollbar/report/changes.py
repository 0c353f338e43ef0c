"""Comparison of two runs in words: tables and sentences of the changes from one to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tollbar.analysis import Comparison, Increase, Judgement, RowChange
from tollbar.analysis.comparison import Changed
from tollbar.analysis.trust import STEADY_NEIGHBOUR
from tollbar.catalog.families import Family
from tollbar.core import units
from tollbar.core.intervals import Interval
from tollbar.core.words import counted, few
from tollbar.report.blocks import Table, TableCell, numbers, row_names, texts
from tollbar.report.coordinates import Form, value_words
from tollbar.report.names import varying
from tollbar.report.numbers import change_ends, change_words, percent, percent_of, ratio_words
from tollbar.report.sections.answer import headline
from tollbar.report.table_cells import standing_cell
from tollbar.results import Row

# Limit of the rows named that only one run has: enough to recognise them.
MOST_NAMED = 12


def comparison_tables(comparison: Comparison) -> dict[str, Table]:
    """Return costs and ratios of both runs with their changes, a table for each study, by its name."""
    return {
        study: _changes_table(f"{study}: {comparison.one} → {comparison.other}", pairs, comparison.families.get(study))
        for study, pairs in comparison.studies.items()
    }


def _changes_table(caption: str, pairs: Sequence[RowChange], family: Family | None) -> Table:
    names = varying((pair.row for pair in pairs), always=("choice",))
    columns = (
        *row_names(*names),
        *numbers("CPU time", "change"),
        *texts("its interval", leaves=2),
        *numbers("× baseline", "change"),
        *texts("its interval", leaves=3),
        *texts("standing", leaves=4),
        *texts("intervals", leaves=1),
    )
    return Table(caption, columns, [_row(pair, names, family) for pair in pairs])


def _row(pair: RowChange, names: Sequence[str], family: Family | None) -> tuple[TableCell, ...]:
    cost, ratio = (pair.cost, pair.other_cost), (pair.one, pair.other)
    return (
        # Names without versions: upgrades are reported once, below.
        *(TableCell(value_words(family, name, pair.row.coordinates.get(name), Form.TABLE)) for name in names),
        TableCell(" → ".join(units.show_nanoseconds(one.estimate) for one in cost if one)),
        *_change(pair.cost_change),
        TableCell(" → ".join(ratio_words(one.estimate) for one in ratio if one) if all(ratio) else "baseline"),
        *_change(pair.ratio_change),
        standing_cell(pair.row),
        TableCell("" if pair.overlap is None else "overlap" if pair.overlap else "apart"),
    )


def _change(change: Interval | None) -> tuple[TableCell, TableCell]:
    if change is None:
        return TableCell(""), TableCell("")
    good = True if change.is_bounded and change.high < 1 else False if change.low > 1 else None
    return TableCell(change_words(change.estimate), good=good), TableCell(change_ends(change))


def comparison_notes(comparison: Comparison) -> list[str]:
    """Return upgrades between the runs, rows that only one of them has, and the agreement of the others."""
    return [
        *(f"measured on different machines: {difference}" for difference in comparison.fingerprint_differences),
        *(f"another version: {change}" for change in comparison.upgrades),
        *_alone(comparison, comparison.one, 0),
        *_alone(comparison, comparison.other, 1),
        *(f"not compared: {counted(left.rows, 'row')} of {left.study}: {left.reason}" for left in comparison.left_out),
        *_agreement(comparison),
    ]


def _agreement(comparison: Comparison) -> list[str]:
    """Return the agreement of the two runs' ratios, if there are any."""
    if comparison.median_difference is None or comparison.overlapping is None:
        return ["No ratio of the two runs can be compared."]
    noisy = comparison.noisy
    return [
        f"Median relative difference of the ratios {percent_of(comparison.median_difference)};"
        f" {percent(round(comparison.overlapping, 2))} of intervals overlap.",
        *(
            [
                f"Compared over all samples in both runs: {counted(noisy, 'ratio')}, whose core was not quiet enough"
                " in one."
            ]
            if noisy
            else []
        ),
    ]


def _alone(comparison: Comparison, run: str, side: Literal[0, 1]) -> list[str]:
    rows = [(study, row) for study, unmatched in comparison.unmatched.items() for row in unmatched[side]]
    if not rows:
        return []
    named = few((_row_words(comparison, *found) for found in rows), MOST_NAMED)
    return [f"only in {run}, {counted(len(rows), 'row')}: {'; '.join(named)}"]


def headlines(judgements: Sequence[Judgement]) -> Mapping[str, Sequence[str]]:
    """Return each run's one-line result, by study."""
    found: dict[str, list[str]] = {}
    for judgement in judgements:
        for study in judgement.studies:
            found.setdefault(study.about.name, []).append(f"{judgement.run.name}: {headline(study)}")
    return found


def increase_lines(comparison: Comparison, found: Sequence[Increase], above: float, of: Changed = "ratio") -> list[str]:
    """Return a line for each row that became too expensive or is gone, and the number that could have shown it.

    A row that is not compared, because its definition differs, does not count as one that could have shown it.
    """
    share, tellable = percent(above), comparison.tellable(of, above)
    gone = [(study, row) for study, rows in comparison.gone.items() for row in rows]
    lines = [
        f"above {share}: {_row_words(comparison, one.study, one.pair.row)}: {_QUANTITIES[one.quantity]}"
        f" {change_words(one.change.estimate)} {change_ends(one.change)}"
        for one in found
    ]
    lines += [_gone(comparison, *one) for one in gone[:MOST_NAMED]]
    if gone:
        failed = sum((study, row.key) in comparison.failures for study, row in gone)
        lines.append(
            f"{counted(len(gone), 'row')} measured in {comparison.one} {'has' if len(gone) == 1 else 'have'} no cost in"
            f" {comparison.other}: {failed} failed, {len(gone) - failed} gone."
        )
    if unjudged := comparison.unjudged(of):
        lines.append(f"Not compared, and so not judged: {counted(unjudged, 'row')} of both runs.")
    if near := sum(pair.is_near(of, above) for pair in comparison.pairs):
        lines.append(
            f"Cannot exclude a steady neighbour: first run on this processor. {counted(near, 'row')} within"
            f" ×{STEADY_NEIGHBOUR} of {share} cannot be judged."
        )
    of_rows = f"{tellable:,} of {counted(len(comparison.pairs), 'row')}"
    if not tellable and not found:
        lines.append(f"No row could have shown a rise by more than {share}: every interval of a change is wider.")
    elif found:
        lines.append(f"{of_rows} could have shown one of little more.")
    else:
        lines.append(
            f"No row became more expensive by more than {share} with its whole interval; {of_rows} could have shown it."
        )
    return lines


def by_cost_lines(comparison: Comparison, above: float) -> list[str]:
    """Return a hint at `--metric cost` if no ratio could have shown a rise and a cost could."""
    rows = comparison.tellable("cost", above)
    if comparison.tellable("ratio", above) or not rows:
        return []
    return [f"hint: `--metric cost` looks at CPU time itself, of which {counted(rows, 'row')} could show it"]


def _gone(comparison: Comparison, study: str, row: Row) -> str:
    why = comparison.failures.get((study, row.key))
    words, one, other = _row_words(comparison, study, row), comparison.one, comparison.other
    return f"failed: {words}: in {other}: {why}" if why else f"gone: {words}: measured in {one}, and not in {other}"


_QUANTITIES: Mapping[Changed, str] = {"cost": "CPU time", "ratio": "ratio to its baseline"}


def _row_words(comparison: Comparison, study: str, row: Row) -> str:
    """Return a row's name as a study writes it: `blake3 · libcrypto · 4 KiB`."""
    family = comparison.families.get(study)
    return " · ".join(value_words(family, name, value, Form.TABLE) for name, value in row.coordinates.items())
