"""Two runs side by side: tables and sentences of what changed from one to the other."""

from __future__ import annotations

from collections.abc import Sequence

from tollbar import units
from tollbar.judge import Comparison, Increase, Pair
from tollbar.present import words
from tollbar.present.cells import varying
from tollbar.present.shapes import Cell, Table, numbers, row_names, texts
from tollbar.present.toll_tables import plain
from tollbar.results import Row
from tollbar.stats import Interval

# Of what only one run has: enough to see what it is.
MOST_NAMED = 12


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Costs and ratios of both runs and how they changed, a table for each study."""
    return [
        _table(f"{study}: {comparison.one} → {comparison.other}", pairs) for study, pairs in comparison.studies.items()
    ]


def _table(caption: str, pairs: Sequence[Pair]) -> Table:
    names = varying((pair.row for pair in pairs), always=("choice",))
    columns = (
        *row_names(*("server" if name == "bed" else name for name in names)),
        *numbers("CPU time", "change"),
        *texts("its interval", leaves=2),
        *numbers("× baseline", "change"),
        *texts("its interval", leaves=3),
        *texts("intervals", leaves=1),
    )
    return Table(caption, columns, [_row(pair, names) for pair in pairs])


def _row(pair: Pair, names: Sequence[str]) -> tuple[Cell, ...]:
    cost, ratio = (pair.cost, pair.other_cost), (pair.one, pair.other)
    return (
        # What a row is, and not its version: what was upgraded is said once, below.
        *(Cell(plain(name, pair.row.coordinates.get(name))) for name in names),
        Cell(" → ".join(units.show_nanoseconds(one.estimate) for one in cost if one)),
        *_change(pair.cost_change),
        Cell(" → ".join(words.ratio_words(one.estimate) for one in ratio if one) if all(ratio) else "baseline"),
        *_change(pair.ratio_change),
        Cell("" if pair.overlap is None else "overlap" if pair.overlap else "apart"),
    )


def _change(change: Interval | None) -> tuple[Cell, Cell]:
    if change is None:
        return Cell(""), Cell("")
    good = True if change.is_bounded and change.high < 1 else False if change.low > 1 else None
    return Cell(words.change_words(change.estimate), good=good), Cell(words.change_ends(change))


def comparison_notes(comparison: Comparison) -> list[str]:
    """What was upgraded between the runs, what only one of them has, and how well the rest agrees."""
    return [
        *(f"another version: {change}" for change in comparison.upgrades),
        *_alone(comparison.one, [row for rows, _ in comparison.unmatched.values() for row in rows]),
        *_alone(comparison.other, [row for _, rows in comparison.unmatched.values() for row in rows]),
        f"Median relative difference of the ratios {comparison.median_difference:.2%};"
        f" {comparison.overlapping:.0%} of intervals overlap.",
    ]


def _alone(run: str, rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    named = [row_words(row) for row in rows[:MOST_NAMED]]
    more = [f"{len(rows) - MOST_NAMED} more"] if len(rows) > MOST_NAMED else []
    return [f"only in {run}, {words.counted(len(rows), 'row')}: {'; '.join([*named, *more])}"]


def increases(found: Sequence[Increase], above: float) -> list[str]:
    """A line for each row that became dearer by more than was allowed; one that says so where none did."""
    share = words.percent(above)
    if not found:
        return [f"Nothing became dearer by more than {share} with its whole interval."]
    return [
        f"above {share}: {row_words(one.pair.row)}: {'CPU time' if one.quantity == 'cost' else 'ratio to its baseline'}"
        f" {words.change_words(one.change.estimate)} {words.change_ends(one.change)}"
        for one in found
    ]


def row_words(row: Row) -> str:
    """What a row is, as a study writes it: `blake3 · libcrypto · 4 KiB`."""
    return " · ".join(plain(name, value) for name, value in row.coordinates.items())
