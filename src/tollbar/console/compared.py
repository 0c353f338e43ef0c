"""Two runs side by side, as tables for a terminal."""

from __future__ import annotations

from rich.markup import escape

from tollbar.console.talk import stdout
from tollbar.console.writing import new_table, show_interval, show_value, varying
from tollbar.judge.comparison import Comparison


def show_comparison(comparison: Comparison) -> None:
    """Prints two runs' ratios side by side."""
    console = stdout()
    for name, pairs in comparison.studies.items():
        table = new_table(f"{name}: {comparison.one} / {comparison.other}")
        settings = varying([pair.row for pair in pairs])
        for column in settings:
            table.add_column(column)
        for column in ("one", "other", "difference"):
            table.add_column(column, justify="right")
        table.add_column("intervals")
        for pair in pairs:
            table.add_row(
                *(show_value(column, pair.row.coordinates.get(column)) for column in settings),
                show_interval(pair.one),
                show_interval(pair.other),
                f"{pair.relative_difference:.1%}",
                "overlap" if pair.overlap else "apart",
            )
        console.print(table)
    for change in comparison.upgrades:
        console.print(f"  another version: {escape(change)}", style="dim")
    one, other = comparison.without_partner
    if one or other:
        console.print(
            f"  without a partner: {one:,} rows of {escape(comparison.one)}, {other:,} of {escape(comparison.other)}"
        )
    console.print(
        f"Median relative difference {comparison.median_difference:.2%}; "
        f"{comparison.overlapping:.0%} of intervals overlap."
    )
