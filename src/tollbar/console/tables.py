"""What a run says, as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tollbar import units
from tollbar.console.talk import stdout
from tollbar.console.writing import bar, between, ends, new_table, show_value, varying
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
from tollbar.results import Row
from tollbar.runner import Outcome
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
WHOSE: dict[Cost, str] = {
    "cpu": "CPU time",
    "server-cpu": "Server CPU time per request",
    "client-cpu": "Client CPU time per request",
}
COST_COLUMNS: dict[Cost, str] = {"cpu": "CPU / op", "server-cpu": "server CPU", "client-cpu": "client CPU"}
# Below this it is what any process holds by the way, and says nothing about the choice.
MEMORY_WORTH_SHOWING = 1024 * 1024
# Behind the verdict, where the typical ratio is apart from the undisturbed one.
SUFFERS = {"more": "↑", "less": "↓"}
CAPACITY = "capacity: one over {}, what one core could do were nothing else in its way"


def show_judgement(judgement: Judgement, *, everything: bool = False) -> None:
    """Prints every study's tolls, contrasts and claims."""
    for judged in judgement.studies:
        _show_study(judged, everything)


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
        for how, mark in SUFFERS.items():
            if any(toll.suffers == how for toll in shown):
                told = f"suffers {how} from neighbours than its baseline: typical is the ratio as disturbed today"
                console.print(f"  {mark} {told}", style="dim")
        if len(shown) < len(measured):
            console.print(
                f"  … {len(measured) - len(shown)} more: `tollbar judge RUN --all`, or the report",
                style="dim",
            )
    for title, table in (
        ("All else equal", _contrast_table(judged)),
        ("Then and here", _claim_table(judged)),
    ):
        if table is not None:
            console.print(f"\n  [bold]{title}[/]")
            console.print(table)
    if any(claim.metric == "capacity" for claim in judged.claims):
        console.print(f"  {CAPACITY.format(_lowered(WHOSE[study.measure.cost]))}", style="dim")
    _show_missing(judged, everything)
    for warning in judged.warnings:
        console.print(f"  [yellow]warning:[/] {escape(warning)}")


def _how(judged: StudyJudgement) -> str:
    study = judged.study.study
    baseline = ", ".join(f"{value}" for value in study.baseline.values())
    blocks = max((toll.ratio.n for toll in judged.tolls if toll.ratio), default=0)
    floor = "unknown" if judged.noise_floor is None else f"×{judged.noise_floor:.3f}"
    twins = "" if judged.noise is None else f", twins [{judged.noise.low:.3f}, {judged.noise.high:.3f}]"
    return (
        f"{WHOSE[study.measure.cost]}, undisturbed, against {baseline}, all else alike · {blocks} blocks · "
        f"noise floor {floor}{twins} · worth {study.worth:.0%}"
    )


def _lowered(text: str) -> str:
    """As in the middle of a sentence, but for `CPU`."""
    return text if text[:2].isupper() else text[0].lower() + text[1:]


def _interval_title(judged: StudyJudgement) -> str:
    return f"{100 * judged.confidence:.4g} % interval"


def _toll_table(judged: StudyJudgement, tolls: Sequence[Toll]) -> Table:
    # Which server it was, with its version, is worth a column wherever there was one.
    settings = varying([toll.row for toll in judged.tolls], always=("choice", "bed"))
    metric = judged.study.study.measure.cost
    cost, throughput, memory = (_by_row(judged, name) for name in (metric, "throughput", "memory"))
    if all(m.value < MEMORY_WORTH_SHOWING for m in memory.values()):
        memory = {}
    table = new_table()
    for column in settings:
        table.add_column("server" if column == "bed" else column, no_wrap=True)
    table.add_column(COST_COLUMNS[metric], justify="right", no_wrap=True)
    if throughput:
        table.add_column("requests / s", justify="right", no_wrap=True)
    if memory:
        table.add_column("memory", justify="right", no_wrap=True)
    table.add_column("× baseline", justify="right", no_wrap=True)
    table.add_column(_interval_title(judged), no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("typical", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("standing", no_wrap=True)
    widest = max(abs(math.log(toll.ratio.estimate)) for toll in tolls if toll.ratio) or 1.0
    for toll in tolls:
        assert toll.ratio is not None
        row = toll.row
        cells: list[str | Text] = [_coordinate(row, name) for name in settings]
        cells.append(units.show_nanoseconds(cost[row.key].value))
        if throughput:
            cells.append(_throughput(throughput.get(row.key)))
        if memory:
            cells.append(units.show_bytes(memory[row.key].value) if row.key in memory else "")
        cells += [
            units.show_ratio(toll.ratio.estimate),
            ends(toll.ratio),
            bar(math.log(toll.ratio.estimate) / widest),
            units.show_ratio(toll.typical.estimate) if toll.typical else "",
            _verdict(toll),
            str(row.standing),
        ]
        table.add_row(*cells)
    return table


def _by_row(judged: StudyJudgement, metric: str) -> dict[str, Measurement]:
    return {m.row.key: m for m in judged.measurements if m.metric == metric and m.component is None}


def _coordinate(row: Row, name: str) -> str:
    if name == "bed" and row.server is not None:
        return escape(row.server)
    return show_value(name, row.coordinates.get(name))


def _throughput(found: Measurement | None) -> str:
    """Requests a second, in brackets where the server was not what limited them."""
    if found is None:
        return ""
    number = f"{found.value:,.0f}"
    return number if found.limit is None else f"({number}) {found.limit}"


def _contrast_table(judged: StudyJudgement) -> Table | None:
    contrasts = judged.contrasts
    if not contrasts:
        return None
    table = new_table()
    for column in ("one for the other", "where"):
        table.add_column(column)
    table.add_column("ratio", justify="right")
    for column in (_interval_title(judged), "verdict", "pairs"):
        table.add_column(column)
    for contrast in contrasts[:ROWS_SHOWN]:
        where = "; ".join(
            f"{', '.join(show_value(name, v) for v in values)}" for name, values in contrast.where.items()
        )
        table.add_row(
            f"{show_value(contrast.setting, contrast.value)} for {show_value(contrast.setting, contrast.for_value)}",
            where,
            _range(contrast),
            between(contrast.low, contrast.high),
            Text(contrast.verdict, VERDICT_STYLES.get(contrast.verdict, "")),
            str(contrast.pairs),
        )
    if len(contrasts) > ROWS_SHOWN:
        table.add_row(f"… {len(contrasts) - ROWS_SHOWN} more in the report")
    return table


def _claim_table(judged: StudyJudgement) -> Table | None:
    if not judged.claims:
        return None
    table = new_table()
    table.add_column("published", overflow="fold", min_width=36, max_width=60)
    table.add_column("where", no_wrap=True)
    table.add_column("of", no_wrap=True)
    table.add_column("then", justify="right", no_wrap=True)
    table.add_column("here", justify="right", no_wrap=True)
    table.add_column(_interval_title(judged), no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    rated = any(claim.rates for claim in judged.claims)
    if rated:
        table.add_column("requests / s", justify="right", no_wrap=True)
    said = ""
    for claim in judged.claims:
        says, said = ("" if claim.says == said else claim.says), claim.says
        rates = [" / ".join(f"{rate:,.0f}" for rate in claim.rates or ())] if rated else []
        table.add_row(
            escape(says),
            " · ".join(show_value(name, claim.at[name]) for name in ("bed", "provider", "cpu") if name in claim.at),
            claim.metric,
            _then(claim),
            units.show_ratio(claim.ratio.estimate) if claim.ratio else "",
            ends(claim.ratio) if claim.ratio else "",
            Text(claim.verdict if claim.ratio else "not measured", CLAIM_STYLES.get(claim.verdict, "")),
            *rates,
        )
    return table


def _then(claim: ClaimResult) -> str:
    if claim.published is not None:
        return units.show_ratio(claim.published)
    return "> 1" if claim.order == "more" else "< 1"


def _show_missing(judged: StudyJudgement, everything: bool) -> None:
    console = stdout()
    missing = [(str(row.outcome), row, row.reason) for row in judged.study.rows if row.outcome is not Outcome.OK]
    missing += [
        ("not compared", toll.row, toll.reason)
        for toll in judged.tolls
        if toll.ratio is None and toll.row.outcome is Outcome.OK and toll.row.against != toll.row.key
    ]
    for what, row, reason in missing if everything else missing[:ROWS_SHOWN]:
        label = " · ".join(show_value(name, value) for name, value in row.coordinates.items())
        console.print(f"  [dim]{what}:[/] {escape(label)}: {escape(reason or '')}")
    if judged.study.left_out:
        console.print(f"  left out: {len(judged.study.left_out)} combinations, with reasons in the report", style="dim")


def _range(contrast: Contrast) -> str:
    """The pairs' ratios from the least to the most; never a mean of them."""
    least, most = units.show_ratio(contrast.least), units.show_ratio(contrast.most)
    return least if least == most else f"{least} to {most}"


def _verdict(toll: Toll) -> Text:
    text = str(toll.verdict)
    if toll.verdict is Verdict.UNCLEAR and toll.more_blocks:
        # About so many more blocks would tell.
        text += f", +{toll.more_blocks} blocks"
    if toll.suffers:
        text += f" {SUFFERS[toll.suffers]}"
    return Text(text, VERDICT_STYLES.get(toll.verdict, ""))
