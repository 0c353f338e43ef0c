"""CPU over time: how busy the load client and each server component were, chunk by chunk of a visit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tollbar.judge import StudyJudgement
from tollbar.measure import Outcome, trial
from tollbar.report import words
from tollbar.report.charts import Chart, Data, Spec, finish, unvalidated
from tollbar.report.labels import cell_names, labels
from tollbar.report.shares import CLIENT, colour_of, parts_of
from tollbar.results import Row

HEIGHT_PX = 120


@dataclass(frozen=True, slots=True)
class Moment:
    """The chunks of one round, over all of a cell's trials."""

    round: int
    busy: Mapping[str, float]
    """By part: CPU time over elapsed time, so that one is a core."""


def timeline_charts(study: StudyJudgement) -> list[Chart]:
    """A small panel for each cell, the dearest first: where a server is busy, something may show."""
    parts = parts_of(study)
    if not parts:
        return []
    cost = words.by_row(study, words.cost_metric(study))
    rows = sorted((m.row for m in cost.values()), key=lambda r: -cost[r.key].value)
    label = labels(study, cell_names(study), whole=True)
    found = [(label(r), moments(r)) for r in rows]
    return [_chart(title, inside, parts) for title, inside in found if len(inside) > 1]


def moments(row: Row) -> list[Moment]:
    """The cell's rounds, each over the trials that have it, while half of them have it."""
    trials = [t for t in row.trials if t.outcome is Outcome.OK and t.chunks]
    there: dict[int, int] = {}
    lasted_ns: dict[int, int] = {}
    spent_ns: dict[int, dict[str, int]] = {}
    for chunk in (chunk for t in trials for chunk in t.chunks):
        there[chunk.round] = there.get(chunk.round, 0) + 1
        lasted_ns[chunk.round] = lasted_ns.get(chunk.round, 0) + chunk.wall_ns
        spent = spent_ns.setdefault(chunk.round, {})
        for name, cpu_ns in chunk.cpu_ns.items():
            spent[name] = spent.get(name, 0) + cpu_ns
    return [
        Moment(number, {_part(name): cpu_ns / lasted_ns[number] for name, cpu_ns in spent_ns[number].items()})
        for number in sorted(there)
        if 2 * there[number] >= len(trials) and lasted_ns[number] > 0
    ]


def _part(component: str) -> str:
    return CLIENT if component == trial.CLIENT else component


def _chart(title: str, inside: Sequence[Moment], parts: Sequence[str]) -> Chart:
    heard = "; ".join(
        f"{part}: {min(shares):.0%} to {max(shares):.0%} of a core"
        for part in parts
        if (shares := [m.busy[part] for m in inside if part in m.busy])
    )
    return Chart(title, f"CPU over the rounds of a visit, {title}. {heard}.", _spec(inside, parts))


def _spec(inside: Sequence[Moment], parts: Sequence[str]) -> Spec:
    import altair as alt

    with unvalidated():
        data = Data()
        rows = data.named(
            [
                {"round": m.round + 1, "part": part, "busy": round(share, 4)}
                for m in inside
                for part, share in m.busy.items()
            ]
        )
        most = max(1.0, *(share for m in inside for share in m.busy.values()))
        colours = alt.Scale(domain=list(parts), range=[colour_of(parts, part) for part in parts])
        chart = (
            alt.Chart(rows)
            .mark_line(strokeWidth=1.8)
            .encode(
                x=alt.X(
                    "round:Q",
                    title="round",
                    scale=alt.Scale(domain=[1, inside[-1].round + 1], nice=False),
                    axis=alt.Axis(grid=False, tickCount=5, tickMinStep=1, format="d"),
                ),
                y=alt.Y(
                    "busy:Q",
                    title="of one core",
                    scale=alt.Scale(domain=[0, round(most, 3)], nice=False),
                    axis=alt.Axis(format=".0%", values=[0, 0.5, 1, 2, 4]),
                ),
                stroke=alt.Stroke("part:N", scale=colours, legend=None),
                strokeDash=alt.condition(f"datum.part == '{CLIENT}'", alt.value([4, 3]), alt.value([1, 0])),
            )
        )
        return finish(alt.layer(chart).properties(width="container", height=HEIGHT_PX), data)
