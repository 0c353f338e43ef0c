"""CPU over time: how busy the load client and each server component were while a cell was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tollbar.judge import StudyJudgement
from tollbar.measure import Outcome
from tollbar.report import words
from tollbar.report.charts import Chart, Spec, finish, unvalidated
from tollbar.report.labels import cell_names, labels
from tollbar.report.shares import CLIENT, colour_of, parts_of
from tollbar.results import Row
from tollbar.runner import Slice

HEIGHT_PX = 120
MUCH_LONGER = 1.5


@dataclass(frozen=True, slots=True)
class Moment:
    """One slice of the timed part, over all blocks."""

    until_ms: float
    busy: Mapping[str, float]
    """By part: CPU time over elapsed time, so that one is a core."""


def timeline_charts(study: StudyJudgement) -> list[Chart]:
    """A small panel for each cell, the dearest first: where a server is busy, something may show."""
    parts = parts_of(study)
    cost = words.by_row(study, words.cost_metric(study))
    rows = sorted((m.row for m in cost.values()), key=lambda r: -cost[r.key].value)
    label = labels(study, cell_names(study), whole=True)
    found = [(label(r), moments(r)) for r in rows]
    return [_chart(title, inside, parts) for title, inside in found if len(inside) > 1]


def moments(row: Row) -> list[Moment]:
    """The cell's slices, each the mean over the trials that have it, while half of them have it."""
    series = [t.load.series for t in row.trials if t.load is not None and t.outcome is Outcome.OK]
    found: list[Moment] = []
    for i in range(max(map(len, series), default=0)):
        there = [one for one in series if len(one) > i]
        if 2 * len(there) < len(series):
            break
        lasted = sum(_lasted_ms(one, i) for one in there)
        if lasted <= 0:
            break
        # Nothing new is asked at the end, and what is still owed comes in: no part of a steady load.
        if found and lasted / len(there) > MUCH_LONGER * found[0].until_ms:
            break
        spent: dict[str, int] = {}
        for one in there:
            for part, cpu_ns in _spent(one[i]).items():
                spent[part] = spent.get(part, 0) + cpu_ns
        until = sum(one[i].at_ms for one in there) / len(there)
        found.append(Moment(until, {part: cpu_ns / (lasted * 1e6) for part, cpu_ns in spent.items()}))
    return found


def _lasted_ms(series: Sequence[Slice], i: int) -> float:
    return series[i].at_ms - (series[i - 1].at_ms if i else 0.0)


def _spent(of: Slice) -> dict[str, int]:
    return {CLIENT: of.client_cpu_ns, **of.components}


def _chart(title: str, inside: Sequence[Moment], parts: Sequence[str]) -> Chart:
    heard = "; ".join(
        f"{part}: {min(shares):.0%} to {max(shares):.0%} of a core"
        for part in parts
        if (shares := [m.busy[part] for m in inside if part in m.busy])
    )
    return Chart(title, f"CPU over time, {title}. {heard}.", _spec(inside, parts))


def _spec(inside: Sequence[Moment], parts: Sequence[str]) -> Spec:
    import altair as alt

    with unvalidated():
        rows = alt.InlineData(
            values=[
                {"ms": round(m.until_ms, 1), "part": part, "busy": round(share, 4)}
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
                    "ms:Q",
                    title="milliseconds",
                    scale=alt.Scale(domain=[0, round(inside[-1].until_ms, 1)], nice=False),
                    axis=alt.Axis(grid=False, tickCount=5),
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
        return finish(alt.layer(chart).properties(width="container", height=HEIGHT_PX))
