"""What a run says, laid out for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from tollbar.console.streams import stdout
from tollbar.judge import ClaimVerdict, Comparison, Judgement, StudyJudgement, Verdict
from tollbar.present import notes, terminal
from tollbar.present.shapes import Cell, Table
from tollbar.present.terminal import ROWS_SHOWN, SUFFERS
from tollbar.present.warnings import warnings

BAR_WIDTH = 12
# The words say it all; colour only helps the eye.
STYLES = {
    Verdict.COSTS: "red",
    Verdict.SAVES: "green",
    Verdict.FREE: "cyan",
    Verdict.UNCLEAR: "yellow",
    ClaimVerdict.STILL_TRUE: "green",
    ClaimVerdict.INVERTED: "red",
    ClaimVerdict.CANNOT_TELL: "yellow",
}


def show_judgement(judgement: Judgement, *, everything: bool = False) -> None:
    """Prints every study's tolls, contrasts and claims."""
    for study in judgement.studies:
        _show_study(study, everything)


def show_comparison(comparison: Comparison) -> None:
    """Prints two runs' ratios side by side, what was upgraded between them, and how well they agree."""
    for table in terminal.comparison_tables(comparison):
        stdout().print(_laid_out(table, Text(table.caption)))
    for note in terminal.comparison_notes(comparison):
        stdout().print(f"  {escape(note)}")


def show_rows(rows: Sequence[Mapping[str, object]]) -> None:
    """Prints a table with a column for each name that any of the rows has."""
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*("" if row.get(name) is None else escape(str(row[name])) for name in names))
    stdout().print(table)


def _show_study(study: StudyJudgement, everything: bool) -> None:
    console = stdout()
    console.print(f"\n[bold]{escape(study.about.question)}[/]")
    console.print(escape(terminal.how(study)), style="dim")
    tolls = terminal.compared(study)
    if tolls:
        shown = tolls if everything else tolls[:ROWS_SHOWN]
        console.print(_laid_out(terminal.toll_table(study, shown), no_wrap=True))
        for mark, said in {SUFFERS[toll.suffers]: notes.suffers(toll) for toll in shown if toll.suffers}.items():
            console.print(f"  {mark} {said}: typical is the ratio as disturbed today", style="dim")
        if len(shown) < len(tolls):
            more = f"  … {len(tolls) - len(shown)} more: `tollbar judge RUN --all`, or the report"
            console.print(more, style="dim")
    for result in study.tables:
        console.print(f"\n  [bold]{escape(result.table.title)}[/]")
        table = terminal.crosstable(study, result)
        console.print(f"  {escape(table.caption)}", style="dim")
        console.print(_laid_out(table))
        for gap in terminal.gaps(study, result):
            console.print(f"  {escape(gap)}", style="dim")
    for table, no_wrap in ((terminal.contrast_table(study), False), (terminal.claim_table(study), True)):
        if table.rows:
            console.print(f"\n  [bold]{table.caption}[/]")
            console.print(_laid_out(table, no_wrap=no_wrap))
    for note in filter(None, (notes.capacity(study), notes.by_source(study))):
        console.print(f"  {note}", style="dim")
    missing = terminal.missing(study)
    for outcome, cell, reason in missing if everything else missing[:ROWS_SHOWN]:
        console.print(f"  [dim]{outcome}:[/] {escape(cell)}: {escape(reason)}")
    if study.study.left_out:
        console.print(f"  left out: {len(study.study.left_out)} combinations, with reasons in the report", style="dim")
    for warning in warnings(study):
        console.print(f"  [yellow]warning:[/] {escape(warning)}")


def _laid_out(table: Table, title: Text | None = None, *, no_wrap: bool = False) -> RichTable:
    made = RichTable(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, padding=(0, 1))
    for column in table.columns:
        if column.title == "published":
            # Sentences, which a terminal may wrap.
            made.add_column(column.title, overflow="fold", min_width=36, max_width=60)
        else:
            made.add_column(column.title, justify="right" if column.number else "left", no_wrap=no_wrap)
    for row in table.rows:
        made.add_row(*map(_written, row))
    return made


def _written(cell: Cell) -> Text:
    if cell.bar is not None:
        return _bar(cell.bar)
    return Text(cell.says, STYLES.get(cell.verdict, "") if cell.verdict else "")


def _bar(share: float) -> Text:
    """To the right for dearer, to the left for cheaper; the middle is ×1."""
    half = BAR_WIDTH // 2
    length = max(1, round(abs(share) * half)) if abs(share) > 0.01 else 0
    left, right = (" " * half, "█" * length) if share >= 0 else (" " * (half - length) + "█" * length, "")
    return Text(f"{left}│{right}".ljust(BAR_WIDTH + 1), style="red" if share > 0 else "green")
