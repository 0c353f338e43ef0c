"""What a server did under load, against the load: requests a second, response time, and CPU per request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tollbar.judge import Limit, StudyJudgement
from tollbar.report import palette, words
from tollbar.report.cells import MOST_LINES, by_cell, covers, facet_names, facet_sizes, load_name, spot, without_load
from tollbar.report.charts import Chart, Data, Spec, finish, log_scale, scale_axis, unvalidated
from tollbar.report.costs import cost_words
from tollbar.report.labels import labels, places
from tollbar.report.scales import NANOSECONDS, Scale
from tollbar.results import Row

HEIGHT_PX = 230
THROUGHPUT, P50, P95 = "throughput", "latency-p50", "latency-p95"


@dataclass(frozen=True, slots=True)
class Point:
    """One cell at one load."""

    load: int
    values: Mapping[str, float]
    """By metric: requests a second, or nanoseconds."""
    limit: Limit | None


@dataclass(frozen=True, slots=True)
class Line:
    """One cell at every load where it was measured."""

    label: str
    number: int
    """Which colour, mark and dash it has."""
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Facet:
    """As many lines as a reader can tell apart, and the panels in which they are drawn."""

    title: str
    lines: tuple[Line, ...]
    charts: tuple[Chart, ...]


@dataclass(frozen=True, slots=True)
class _Panel:
    """What one of a facet's panels shows."""

    title: str
    metric: str
    scale: Scale
    to: str | None = None
    """The metric of a lighter line beside it."""


def facets(study: StudyJudgement) -> list[Facet]:
    """The curves over users or rates, in as few panels as stay readable; nothing for a study of one load."""
    name = load_name(study)
    lines = [] if name is None else _lines(study, name)
    if name is None or not lines:
        return []
    family = study.study.study.family
    names = [n for n in words.varying(study.study.rows) if n != name]
    cells = [without_load(r) for r in study.study.rows if r.key in {rows[0].key for rows, _ in lines}]
    # Operations and sizes differ by orders of magnitude, and servers are not what is compared.
    sizes = [n for n, setting in family.settings.items() if setting.is_size]
    apart = facet_names(cells, names, ("bed", "op", *sizes))
    inside = [n for n in words.varying(rows[0] for rows, _ in lines) if n not in apart] or ["choice"]
    label, place = labels(study, inside), places(study)
    called = [label(rows[0]) for rows, _ in lines]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(called))}
    panels = _panels(study, [p for _, points in lines for p in points])
    found = []
    for where in facet_sizes(cells, apart):
        here = [i for i, (rows, _) in enumerate(lines) if covers(spot(rows[0], apart), where)]
        shown = tuple(
            # One look for a name in every facet, as long as there are looks enough.
            Line(called[i], numbers[called[i]] if len(numbers) <= MOST_LINES else order, lines[i][1])
            for order, i in enumerate(here)
        )
        title = place({n: v for n, v in zip(apart, where, strict=True) if v is not None}, apart)
        axis = words.column_title(family, name)
        found.append(Facet(title, shown, tuple(_chart(title, axis, shown, panel) for panel in panels)))
    return found


def _lines(study: StudyJudgement, name: str) -> list[tuple[list[Row], tuple[Point, ...]]]:
    """The rows and points of each cell that was to be measured at several loads, the least costly first."""
    metrics = {metric: words.by_row(study, metric) for metric in (words.cost_metric(study), THROUGHPUT, P50, P95)}
    cost = metrics[words.cost_metric(study)]
    found = []
    for rows in by_cell(study.study.rows):
        points = tuple(
            Point(
                int(r.coordinates[name]),
                {m: _in_base_units(of[r.key].value, of[r.key].unit) for m, of in metrics.items() if r.key in of},
                next((limit for of in metrics.values() if r.key in of and (limit := of[r.key].limit)), None),
            )
            for r in rows
            if r.key in cost and name in r.coordinates
        )
        # A cell of one load has no curve: the table below has it.
        if points and len(rows) > 1:
            found.append((rows, points))
    found.sort(key=lambda one: one[1][-1].values[words.cost_metric(study)])
    return found


def _in_base_units(value: float, unit: str) -> float:
    return value * 1000 if unit == "us" else value


def _panels(study: StudyJudgement, points: Sequence[Point]) -> list[_Panel]:
    """The three panels, on axes that all facets share."""
    cost, title = words.cost_metric(study), cost_words(study).title

    def over(axis: str, *metrics: str, labels: str | None = None) -> Scale:
        values = [p.values.get(m) for p in points for m in metrics]
        return Scale.over(f"{axis} (log scale)", values, **({"labels": labels} if labels else {}))

    return [
        _Panel("Requests a second", THROUGHPUT, over("requests a second", THROUGHPUT)),
        _Panel("Response time, median (lighter: 95 %)", P50, over("response time", P50, P95, labels=NANOSECONDS), P95),
        _Panel(title, cost, over(title, cost, labels=NANOSECONDS)),
    ]


def _chart(where: str, axis: str, lines: Sequence[Line], panel: _Panel) -> Chart:
    heard = "; ".join(
        f"{line.label}: " + ", ".join(_heard(p, panel) for p in line.points if panel.metric in p.values)
        for line in lines
    )
    place = f", {where}" if where else ""
    return Chart(panel.title, f"{panel.title} by {axis}{place}. {heard}.", _spec(axis, lines, panel))


def _heard(point: Point, panel: _Panel) -> str:
    unit = "1/s" if panel.metric == THROUGHPUT else "ns"
    hollow = f" ({point.limit})" if point.limit and panel.metric in (THROUGHPUT, P50) else ""
    return f"{words.amount(point.values[panel.metric], unit)} at {point.load:,}{hollow}"


def _spec(axis: str, lines: Sequence[Line], panel: _Panel) -> Spec:
    import altair as alt

    with unvalidated():
        data = Data()
        loads = sorted({p.load for line in lines for p in line.points})
        rows = data.named([_values(line, p, panel) for line in lines for p in line.points])
        x = alt.X(
            "load:Q",
            title=axis,
            scale=alt.Scale(type="log", nice=False, domain=[loads[0] / 1.1, loads[-1] * 1.1]),
            axis=alt.Axis(values=loads, grid=False, format=",d", labelOverlap=True),
        )
        y = alt.Y("value:Q", title=None, scale=log_scale(panel.scale), axis=scale_axis(panel.scale))
        called, numbers = [line.label for line in lines], [line.number for line in lines]
        colours = alt.Scale(domain=called, range=[palette.line_colour(n) for n in numbers])
        shapes = alt.Scale(domain=called, range=[palette.line_shape(n) for n in numbers])
        dashes = alt.Scale(domain=called, range=[palette.line_dash(n) for n in numbers])
        stroke = alt.Stroke("line:N", scale=colours, legend=None)
        base = alt.Chart(rows).encode(x=x, stroke=stroke).transform_filter("isValid(datum.value)")
        drawn = base.mark_line(strokeWidth=1.8).encode(
            y=y, strokeDash=alt.StrokeDash("line:N", scale=dashes, legend=None)
        )
        layers = [drawn]
        if panel.to:
            lighter = base.transform_filter("isValid(datum.to)").mark_line(strokeWidth=1, opacity=0.45)
            layers.append(lighter.encode(y=alt.Y("to:Q", title=None)))
        fill = alt.condition(
            "datum.hollow",
            alt.value(palette.colour("paper")),
            alt.Fill("line:N", scale=colours, legend=None),
        )
        points = base.mark_point(size=46, strokeWidth=1.6, opacity=1)
        layers.append(points.encode(y=y, shape=alt.Shape("line:N", scale=shapes, legend=None), fill=fill))
        return finish(alt.layer(*layers).properties(width="container", height=HEIGHT_PX), data)


def _values(line: Line, point: Point, panel: _Panel) -> dict[str, object]:
    row: dict[str, object] = {"line": line.label, "load": point.load}
    for name, metric in (("value", panel.metric), ("to", panel.to)):
        if metric is not None and metric in point.values:
            row[name] = float(f"{point.values[metric]:.5g}")
    # CPU per request is right whoever the bottleneck is.
    row["hollow"] = point.limit is not None and panel.metric in (THROUGHPUT, P50)
    return row
