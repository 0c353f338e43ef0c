"""Drift: what each block measured against the cell's own median, in a few marks for any number of cells."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tollbar.judge import StudyJudgement
from tollbar.measure import Outcome
from tollbar.report import palette
from tollbar.report.charts import Chart, Data, finish, unvalidated
from tollbar.results import Row

HEIGHT_PX = 110
# A narrower axis would make mountains of the ordinary wobble of a per cent.
LEAST_SPREAD = 0.05


def drift_chart(study: StudyJudgement) -> Chart | None:
    """The median cell's cost over the blocks, and the band that holds eight cells of ten."""
    blocks: dict[int, list[float]] = {}
    for row in study.study.rows:
        costs = block_costs(row)
        for block, cost in costs.items():
            blocks.setdefault(block, []).append(cost / median(costs.values()))
    if len(blocks) < 2:
        return None
    values = [
        {
            "block": block + 1,
            "low": _share(found, 0.1),
            "median": _share(found, 0.5),
            "high": _share(found, 0.9),
        }
        for block, found in sorted(blocks.items())
    ]
    widest = max(max(v["high"] - 1, 1 - v["low"]) for v in values)
    return Chart(
        "",
        f"Cost relative to each cell's own median over {len(values)} blocks. The median cell moved between"
        f" {min(v['median'] for v in values):.3f} and {max(v['median'] for v in values):.3f}.",
        _spec(values, max(widest * 1.1, LEAST_SPREAD)),
    )


def block_costs(row: Row) -> dict[int, float]:
    """CPU nanoseconds per operation by block: the median of the cell's chunks in it, whichever heats they are of."""
    chunks: dict[int, list[float]] = {}
    for trial in row.trials:
        if trial.outcome is Outcome.OK:
            costs = [trial.cost_of(chunk) for chunk in trial.chunks if chunk.operations > 0]
            chunks.setdefault(trial.block, []).extend(cost for cost in costs if cost > 0)
    return {block: median(costs) for block, costs in chunks.items() if costs}


def _share(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return round(ordered[round(share * (len(ordered) - 1))], 5)


def _spec(values: Sequence[dict[str, float]], spread: float) -> dict[str, object]:
    import altair as alt

    with unvalidated():
        most = max(v["block"] for v in values)
        data = Data()
        base = alt.Chart(data.named(list(values))).encode(
            x=alt.X(
                "block:Q",
                title="block",
                scale=alt.Scale(domain=[1, most], nice=False),
                axis=alt.Axis(grid=False, tickMinStep=1, format="d"),
            )
        )
        y = alt.Y(
            "low:Q",
            title="cost / its median",
            scale=alt.Scale(domain=[1 - spread, 1 + spread], nice=False, zero=False),
            axis=alt.Axis(tickCount=4, format=".2f"),
        )
        layers = [
            base.mark_area(fill=palette.colour("band"), clip=True).encode(y=y, y2="high:Q"),
            base.mark_line(stroke=palette.colour("accent"), strokeWidth=2, clip=True).encode(
                y=alt.Y("median:Q", title="cost / its median")
            ),
        ]
        return finish(alt.layer(*layers).properties(width="container", height=HEIGHT_PX), data)
