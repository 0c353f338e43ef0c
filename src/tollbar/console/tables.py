"""What a run says, as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tollbar import units
from tollbar.catalogue import Value
from tollbar.console.talk import stdout
from tollbar.judge import (
    ClaimResult,
    ClaimVerdict,
    Contrast,
    Judgement,
    Measurement,
    StudyJudgement,
    Toll,
    Verdict,
)
from tollbar.judge.comparison import Comparison
from tollbar.results import Row
from tollbar.runner import Outcome
from tollbar.stats import Interval
from tollbar.study import Cost

# The words say it all; colour only helps the eye.
VERDICT_STYLES = {
    Verdict.COSTS: "red",
    Verdict.SAVES: "green",
    Verdict.FREE: "cyan",
    Verdict.UNCLEAR: "yellow",
}
CLAIM_STYLES = {
    ClaimVerdict.STILL_TRUE: "green",
    ClaimVerdict.INVERTED: "red",
    ClaimVerdict.CANNOT_TELL: "yellow",
}
# A screenful: more are in the report, or behind `tollbar judge RUN --all`.
ROWS_SHOWN = 24
BAR_WIDTH = 12
WHOSE: dict[Cost, str] = {
    "cpu": "CPU time",
    "server-cpu": "Server CPU time per request",
    "client-cpu": "Client CPU time per request",
}
COST_COLUMNS: dict[Cost, str] = {"cpu": "CPU / op", "server-cpu": "server CPU", "client-cpu": "client CPU"}
# Below this it is what any process holds by the way, and says nothing about the choice.
MEMORY_WORTH_SHOWING = 1024 * 1024


def show_judgement(judgement: Judgement, *, everything: bool = False) -> None:
    """Prints every study's tolls, contrasts and claims."""
    for judged in judgement.studies:
        _show_study(judged, everything)


def show_comparison(comparison: Comparison) -> None:
    """Prints two runs' ratios side by side."""
    console = stdout()
    for name, pairs in comparison.studies.items():
        table = _table(f"{name}: {comparison.one} / {comparison.other}")
        settings = _varying([pair.row for pair in pairs])
        for column in settings:
            table.add_column(column)
        for column in ("one", "other", "difference"):
            table.add_column(column, justify="right")
        table.add_column("intervals")
        for pair in pairs:
            table.add_row(
                *(_show_value(column, pair.row.coordinates.get(column)) for column in settings),
                _interval(pair.one),
                _interval(pair.other),
                f"{pair.relative_difference:.1%}",
                "overlap" if pair.overlap else "apart",
            )
        console.print(table)
    console.print(
        f"Median relative difference {comparison.median_difference:.2%}; "
        f"{comparison.overlapping:.0%} of intervals overlap."
    )


def _show_study(judged: StudyJudgement, everything: bool) -> None:
    console = stdout()
    study = judged.study.study
    console.print(f"\n[bold]{escape(study.question)}[/]")
    console.print(escape(_how(judged)), style="dim")
    tolls = [toll for toll in judged.tolls if toll.row.key != toll.against.key]
    measured = sorted((t for t in tolls if t.ratio is not None), key=lambda t: t.ratio.estimate if t.ratio else 0.0)
    if measured:
        shown = measured if everything else measured[:ROWS_SHOWN]
        console.print(_toll_table(judged, shown))
        if len(shown) < len(measured):
            console.print(
                f"  … {len(measured) - len(shown)} more: `tollbar judge RUN --all`, or the report",
                style="dim",
            )
    for title, table in (
        ("All else equal", _contrast_table(judged.contrasts)),
        ("Then and here", _claim_table(judged)),
    ):
        if table is not None:
            console.print(f"\n  [bold]{title}[/]")
            console.print(table)
    _show_missing(judged, everything)
    for warning in judged.warnings:
        console.print(f"  [yellow]warning:[/] {escape(warning)}")


def _how(judged: StudyJudgement) -> str:
    study = judged.study.study
    baseline = ", ".join(f"{value}" for value in study.baseline.values())
    blocks = max((toll.ratio.n for toll in judged.tolls if toll.ratio), default=0)
    floor = "unknown" if judged.noise_floor is None else f"×{judged.noise_floor:.3f}"
    return (
        f"{WHOSE[study.measure.cost]} against {baseline}, all else alike · {blocks} blocks · "
        f"twins say the noise floor is {floor} · worth {study.worth:.0%}"
    )


def _table(title: str | None = None) -> Table:
    return Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, padding=(0, 1))


def _toll_table(judged: StudyJudgement, tolls: Sequence[Toll]) -> Table:
    settings = _varying([toll.row for toll in judged.tolls])
    metric = judged.study.study.measure.cost
    cost = {m.row.key: m for m in judged.measurements if m.metric == metric}
    throughput = {m.row.key: m for m in judged.measurements if m.metric == "throughput"}
    memory = {m.row.key: m for m in judged.measurements if m.metric == "memory"}
    if all(m.value < MEMORY_WORTH_SHOWING for m in memory.values()):
        memory = {}
    table = _table()
    for column in settings:
        table.add_column(column, no_wrap=True)
    table.add_column(COST_COLUMNS[metric], justify="right", no_wrap=True)
    if throughput:
        table.add_column("requests / s", justify="right", no_wrap=True)
    if memory:
        table.add_column("memory", justify="right", no_wrap=True)
    table.add_column("× baseline", justify="right", no_wrap=True)
    table.add_column("95 % interval", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("standing", no_wrap=True)
    widest = max(abs(math.log(toll.ratio.estimate)) for toll in tolls if toll.ratio) or 1.0
    for toll in tolls:
        assert toll.ratio is not None
        row = toll.row
        cells: list[str | Text] = [_show_value(name, row.coordinates.get(name)) for name in settings]
        cells.append(units.show_nanoseconds(cost[row.key].value))
        if throughput:
            cells.append(_throughput(throughput.get(row.key)))
        if memory:
            cells.append(units.show_bytes(memory[row.key].value) if row.key in memory else "")
        cells += [
            units.show_ratio(toll.ratio.estimate),
            _ends(toll.ratio),
            _bar(math.log(toll.ratio.estimate) / widest),
            _verdict(toll),
            str(row.standing),
        ]
        table.add_row(*cells)
    return table


def _throughput(found: Measurement | None) -> str:
    """Requests a second, in brackets where the server was not what limited them."""
    if found is None:
        return ""
    number = f"{found.value:,.0f}"
    return number if found.limit is None else f"({number}) {found.limit}"


def _contrast_table(contrasts: Sequence[Contrast]) -> Table | None:
    if not contrasts:
        return None
    table = _table()
    for column in ("one for the other", "where"):
        table.add_column(column)
    table.add_column("ratio", justify="right")
    for column in ("95 % interval", "verdict", "pairs"):
        table.add_column(column)
    for contrast in contrasts[:ROWS_SHOWN]:
        where = "; ".join(
            f"{', '.join(_show_value(name, v) for v in values)}" for name, values in contrast.where.items()
        )
        table.add_row(
            f"{_show_value(contrast.setting, contrast.value)} for {_show_value(contrast.setting, contrast.for_value)}",
            where,
            units.show_ratio(contrast.ratio.estimate),
            _ends(contrast.ratio),
            Text(contrast.verdict, VERDICT_STYLES.get(contrast.verdict, "")),
            str(contrast.pairs),
        )
    if len(contrasts) > ROWS_SHOWN:
        table.add_row(f"… {len(contrasts) - ROWS_SHOWN} more in the report")
    return table


def _claim_table(judged: StudyJudgement) -> Table | None:
    if not judged.claims:
        return None
    table = _table()
    table.add_column("published", overflow="fold", min_width=36, max_width=60)
    table.add_column("where", no_wrap=True)
    table.add_column("then", justify="right", no_wrap=True)
    table.add_column("here", justify="right", no_wrap=True)
    table.add_column("95 % interval", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    said = ""
    for claim in judged.claims:
        says, said = ("" if claim.says == said else claim.says), claim.says
        table.add_row(
            escape(says),
            " · ".join(_show_value(name, value) for name, value in claim.at.items() if name in ("provider", "cpu")),
            _then(claim),
            units.show_ratio(claim.ratio.estimate) if claim.ratio else "",
            _ends(claim.ratio) if claim.ratio else "",
            Text(claim.verdict if claim.ratio else "not measured", CLAIM_STYLES.get(claim.verdict, "")),
        )
    return table


def _then(claim: ClaimResult) -> str:
    if claim.published is not None:
        return units.show_ratio(claim.published)
    return "> 1" if claim.order == "more" else "< 1"


def _show_missing(judged: StudyJudgement, everything: bool) -> None:
    console = stdout()
    missing = [row for row in judged.study.rows if row.outcome is not Outcome.OK]
    for row in missing if everything else missing[:ROWS_SHOWN]:
        label = " · ".join(_show_value(name, value) for name, value in row.coordinates.items())
        console.print(f"  [dim]{row.outcome}:[/] {escape(label)}: {escape(row.reason or '')}")
    if judged.study.left_out:
        console.print(f"  left out: {len(judged.study.left_out)} combinations, with reasons in the report", style="dim")


def _varying(rows: Sequence[Row]) -> list[str]:
    """The coordinates that tell these rows apart; the choice always. A setting that a row lacks tells nothing."""
    names: dict[str, set[Value]] = {}
    for row in rows:
        for name, value in row.coordinates.items():
            names.setdefault(name, set()).add(value)
    return [name for name, seen in names.items() if name == "choice" or len(seen) > 1]


def _show_value(name: str, value: Value | None) -> str:
    if value is None:
        return ""
    return units.show_bytes(value) if name == "bytes" and isinstance(value, int) else escape(str(value))


def _interval(interval: Interval) -> str:
    return f"{units.show_ratio(interval.estimate)} {_ends(interval)}"


def _ends(interval: Interval) -> str:
    # The brackets would be read as markup where a table's cell is a plain string.
    return escape(f"[{units.show_ratio(interval.low)}, {units.show_ratio(interval.high)}]")


def _bar(share: float) -> Text:
    """To the right for dearer, to the left for cheaper; the middle is ×1."""
    half = BAR_WIDTH // 2
    length = max(1, round(abs(share) * half)) if abs(share) > 0.01 else 0
    left, right = (" " * half, "█" * length) if share >= 0 else (" " * (half - length) + "█" * length, "")
    return Text(f"{left}│{right}".ljust(BAR_WIDTH + 1), style="red" if share > 0 else "green")


def _verdict(toll: Toll) -> Text:
    text = str(toll.verdict)
    if toll.verdict is Verdict.UNCLEAR and toll.more_blocks:
        # About so many more blocks would tell.
        text += f", +{toll.more_blocks} blocks"
    return Text(text, VERDICT_STYLES.get(toll.verdict, ""))
