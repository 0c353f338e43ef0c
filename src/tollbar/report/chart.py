"""Data of charts: of tolls, of strength, of memory and of drift."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log
from statistics import median
from typing import Literal

from tollbar.analysis import Measurement, StudyJudgement, Toll, Verdict
from tollbar.analysis.decisions import reach
from tollbar.catalog.families import Standing, Value
from tollbar.core.records import Chunks, Outcome
from tollbar.report.blocks import Chart
from tollbar.report.costs import cost_words
from tollbar.report.groups import Spot, by_row, cost_metric, memory_matters, panels, real_tolls, split, spot
from tollbar.report.names import baseline_words, labels, place_words, varying
from tollbar.report.numbers import amount, times
from tollbar.report.standings import IN_GOOD_STANDING
from tollbar.results import Row

SECOND_LINE = " / "
"""Separator between the two lines of a row's label."""
# A narrower axis would exaggerate ordinary variation of one per cent.
LEAST_SPREAD = 0.05


@dataclass(frozen=True, slots=True)
class Scale:
    """Logarithmic axis that a set of panels shares."""

    title: str
    low: float
    high: float
    unit: Literal["ratio", "ns", "B"] = "ratio"
    threshold: float | None = None
    noise: float | None = None
    """Largest ratio that noise alone may make."""

    @classmethod
    def over(
        cls,
        title: str,
        values: Iterable[float | None],
        unit: Literal["ratio", "ns", "B"] = "ratio",
        threshold: float | None = None,
    ) -> Scale:
        """Return the scale of all these values, with the band of irrelevant differences if a threshold is given."""
        # Too few blocks give an interval from zero to infinity, which no axis can show.
        held = [v for v in values if v is not None and 0 < v < inf]
        if threshold is not None:
            held += [1 / (1 + threshold), 1 + threshold]
        low, high = (min(held), max(held)) if held else (1.0, 10.0)
        # A margin, so that no mark is on the frame.
        air = max(1.06, (high / low) ** 0.04)
        return cls(f"{title} (log scale)", low / air, high * air, unit, threshold)


@dataclass(frozen=True, slots=True)
class Dot:
    """Row of a chart: an estimate with its interval, or a word in place of them."""

    label: str
    note: str
    value: float | None
    low: float | None = None
    high: float | None = None
    standing: Standing | None = None
    decided: bool = True
    """True if decided; an undecided dot is drawn hollow."""
    then: float | None = None
    """Published ratio, if the chart compares with one."""
    to: float | None = None
    """Largest estimate, if a row has several and `value` is the least of them."""
    cell: int | None = None
    """Number of its cell among the study's rows, if a page may compare it with another baseline."""


@dataclass(frozen=True, slots=True)
class Dots:
    """Dots, a row for each, in this order."""

    dots: Sequence[Dot]
    scale: Scale


@dataclass(frozen=True, slots=True)
class Point:
    """Choice, by its strength and its cost in nanoseconds."""

    label: str
    bits: int
    cost: float
    standing: Standing


@dataclass(frozen=True, slots=True)
class Strengths:
    """Costs against strength."""

    points: Sequence[Point]
    frontier: Sequence[tuple[int, float]]
    """Frontier as (bits, cost): recommended or acceptable choices that none of at least their strength undercuts;
    weakest first.
    """
    scale: Scale


@dataclass(frozen=True, slots=True)
class Drift:
    """Costs of the cells in each block, as shares of each cell's median: the middle, and the range of eight of ten."""

    blocks: Sequence[Mapping[str, float]]
    """Values of each block: `block`, `low`, `median`, `high`."""
    spread: float
    """Distance of the axis' ends from one."""


def scale_over(
    title: str, dots: Iterable[Dot], unit: Literal["ratio", "ns", "B"] = "ratio", threshold: float | None = None
) -> Scale:
    """Return the scale of all these dots with their intervals."""
    return Scale.over(title, (v for d in dots for v in (d.value, d.low, d.high, d.then, d.to)), unit, threshold)


def spoken(dots: Iterable[Dot]) -> str:
    """Return the dots in words, for a screen reader."""
    return "; ".join(f"{d.label}: {d.note}" for d in dots)


def memory_charts(study: StudyJudgement) -> list[Chart]:
    """Return CPU time and memory of the same cells in the same order; empty if memory is insignificant."""
    memory, cost = by_row(study, "memory"), by_row(study, cost_metric(study))
    rows = sorted((m.row for m in cost.values() if m.row.key in memory), key=lambda r: cost[r.key].value)
    if not memory_matters(memory.values()):
        return []
    label = labels(study, varying(rows) or ("choice",), whole=True)
    kinds: tuple[tuple[str, Mapping[str, Measurement], Literal["ns", "B"]], ...] = (
        (cost_words(study).title, cost, "ns"),
        ("Memory that one operation holds", memory, "B"),
    )
    charts = []
    for title, found, unit in kinds:
        dots = [
            Dot(label(r), amount(m.value, m.unit), m.value if m.value > 0 else None, m.low, m.high, r.standing)
            for r in rows
            for m in [found[r.key]]
        ]
        charts.append(Chart(title, f"{title}. {spoken(dots)}.", Dots(dots, scale_over(title, dots, unit))))
    return charts


def strength_charts(study: StudyJudgement) -> list[Chart]:
    """Return a panel for each provider and setting; empty for a family whose choices have no strengths."""
    measured = [
        m
        for m in by_row(study, cost_metric(study)).values()
        if m.row.strength is not None and m.row.standing.is_of_option
    ]
    if len({m.row.strength for m in measured}) < 2:
        return []
    # As for the tolls, cells with one baseline are compared within a panel.
    baseline = study.about.baseline
    inside = [n for n in split(study, [m.row for m in measured])[0] if n != "provider" or n in baseline] or ["choice"]
    titled = [n for n in varying(m.row for m in measured) if n not in inside]
    label, place = labels(study, inside), place_words(study)
    panels: dict[str, list[Point]] = {}
    for m in measured:
        point = Point(label(m.row), m.row.strength or 0, m.value, m.row.standing)
        panels.setdefault(place(m.row.coordinates, titled), []).append(point)
    cost = cost_words(study).title
    return [_strengths(title, cost, points) for title, points in panels.items() if len({p.bits for p in points}) > 1]


def _strengths(title: str, cost: str, points: Sequence[Point]) -> Chart:
    good = frontier([(p.bits, p.cost) for p in points if p.standing in IN_GOOD_STANDING])
    said = "; ".join(f"{p.label}: {p.bits} bits, {amount(p.cost, 'ns/op')}" for p in points)
    described = f"Cost against strength{', ' + title if title else ''}. {said}."
    data = Strengths(points, good, Scale.over(cost, [p.cost for p in points], "ns"))
    return Chart(title, described, data, max(len(p.label) for p in points))


def frontier(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the (bits, cost) pairs that none of at least the same strength undercuts; weakest first."""
    kept: list[tuple[int, float]] = []
    for bits, cost in sorted(points, key=lambda p: (-p[0], p[1])):
        if not kept or cost < kept[-1][1]:
            kept.append((bits, cost))
    return kept[::-1]


def drift_chart(study: StudyJudgement) -> Chart | None:
    """Return the median cell's cost over the blocks, and the band of eight cells of ten."""
    blocks: dict[int, list[float]] = {}
    for row in study.rows:
        costs = block_costs(row)
        for block, cost in costs.items():
            blocks.setdefault(block, []).append(cost / median(costs.values()))
    if len(blocks) < 2:
        return None
    values = [
        {"block": block + 1, "low": _share(found, 0.1), "median": _share(found, 0.5), "high": _share(found, 0.9)}
        for block, found in sorted(blocks.items())
    ]
    widest = max(max(v["high"] - 1, 1 - v["low"]) for v in values)
    return Chart(
        "",
        f"Cost relative to each cell's own median over {len(values)} blocks. The median cell moved between"
        f" {min(v['median'] for v in values):.3f} and {max(v['median'] for v in values):.3f}.",
        Drift(values, max(widest * 1.1, LEAST_SPREAD)),
    )


def block_costs(row: Row) -> dict[int, float]:
    """Return CPU nanoseconds per operation by block: the median of the cell's first tries in it, of all its batches."""
    found: dict[int, list[float]] = {}
    for trial in row.trials:
        if trial.outcome is Outcome.OK:
            chunks = Chunks.of(trial.chunks)
            each = zip(chunks.paid(trial.paid_by), chunks.operations, chunks.made_up, strict=True)
            found.setdefault(trial.block, []).extend(
                [ns / operations for ns, operations, made_up in each if ns > 0 and operations > 0 and not made_up]
            )
    return {block: median(costs) for block, costs in found.items() if costs}


def _share(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return round(ordered[round(share * (len(ordered) - 1))], 5)


# A longer baseline does not fit under a panel; the answer above the chart names it.
LONGEST_IN_TITLE = 30


def toll_charts(study: StudyJudgement, whole: StudyJudgement | None = None) -> list[Chart]:
    """Return a panel for each setting: choices (and providers) as rows, the ratio to the baseline across.

    `whole` is the study of which this is a part: dots name their cells by their numbers among its rows. Panels of one
    operation share their axis and the order of their rows; operations share neither.
    """
    tolls = real_tolls(study)
    # A cell without a baseline among the cells is its own baseline here.
    baselines = {t.against.key: t.against for t in tolls if t.against.key != t.row.key}
    rows = [t.row for t in tolls] + list(baselines.values())
    in_rows, in_panels = split(study, rows)
    shared: dict[Value | None, list[Toll]] = {}
    for toll in tolls:
        operation = toll.row.coordinates.get("op") if "op" in in_panels else None
        shared.setdefault(operation, []).append(toll)
    numbers = {row.key: number for number, row in enumerate((whole or study).rows)}
    charts: dict[str, Chart] = {}
    for alike in shared.values():
        charts |= _alike_panels(study, alike, in_rows, in_panels, numbers)
    titles = [title for title, _ in panels(place_words(study), _with_something(study, rows, in_panels), in_panels)]
    return [charts[title] for title in titles if title in charts]


def _with_something(study: StudyJudgement, rows: Sequence[Row], in_panels: Sequence[str]) -> Sequence[Row]:
    """Return the rows without those of panels in which nothing was measured; all rows if no panel has any."""
    measured = by_row(study, cost_metric(study))
    spots = {spot(r, in_panels) for r in rows if r.key in measured}
    return [r for r in rows if spot(r, in_panels) in spots] or rows


def _alike_panels(
    study: StudyJudgement,
    tolls: Sequence[Toll],
    in_rows: Sequence[str],
    in_panels: Sequence[str],
    numbers: Mapping[str, int],
) -> dict[str, Chart]:
    baselines = {t.against.key: t.against for t in tolls if t.against.key != t.row.key}
    label = labels(study, in_rows)
    dots = {t.row.key: _toll_dot(label(t.row), t) for t in tolls}
    # A baseline equals itself in everything, so that a short name would be empty.
    whole = labels(study, in_rows, whole=True)
    dots |= {r.key: _baseline_dot(whole(r), study, r) for r in baselines.values()}
    dots = {key: replace(dot, cell=numbers[key]) for key, dot in dots.items()}
    order = _order(tolls, in_rows)
    noises = {t.row.key: reach(t.noise) for t in tolls if t.noise is not None}
    baseline = baseline_words(study)
    against = baseline if len(baseline) <= LONGEST_IN_TITLE else "the baseline"
    title = f"{cost_words(study).title}, as a multiple of {against}"
    scale = scale_over(title, list(dots.values()), threshold=study.about.threshold)
    charts = {}
    rows = [*(t.row for t in tolls), *baselines.values()]
    for name, panel in panels(place_words(study), rows, in_panels):
        shown = [dots[r.key] for r in sorted(panel, key=lambda r: order.get(spot(r, in_rows), 0.0))]
        described = f"Tolls against {baseline}{', ' + name if name else ''}. {spoken(shown)}."
        noise = max((noises[r.key] for r in panel if r.key in noises), default=None)
        letters = max(len(d.label) for d in shown)
        charts[name] = Chart(name, described, Dots(shown, replace(scale, noise=noise)), letters)
    return charts


def _toll_dot(label: str, toll: Toll) -> Dot:
    if toll.ratio is None:
        outcome = str(toll.verdict) if toll.row.reason is None else str(toll.row.outcome)
        return Dot(label, outcome, None, standing=toll.row.standing)
    return Dot(
        label=label,
        note=f"{times(toll.ratio.estimate)} {toll.verdict}",
        value=toll.ratio.estimate,
        low=toll.ratio.low,
        high=toll.ratio.high,
        standing=toll.row.standing,
        decided=toll.verdict is not Verdict.UNCLEAR,
    )


def _baseline_dot(label: str, study: StudyJudgement, row: Row) -> Dot:
    measured = row.key in by_row(study, cost_metric(study))
    return Dot(label, "baseline" if measured else str(row.outcome), 1.0 if measured else None, standing=row.standing)


def _order(tolls: Sequence[Toll], names: Sequence[str]) -> Mapping[Spot, float]:
    """Return each row's place: its mean log ratio over the panels, so that every panel has the same order.

    Uses the fullest panels: if some have only a few of the rows, a mean over all would compare different sets.
    """
    panels: dict[str, dict[Spot, float]] = {}
    for toll in tolls:
        if toll.ratio is not None:
            panels.setdefault(toll.against.key, {})[spot(toll.row, names)] = log(toll.ratio.estimate)
    most = max(map(len, panels.values()), default=0)
    logs: dict[Spot, list[float]] = {}
    for fullest in (True, False):
        added: dict[Spot, list[float]] = {}
        for found in panels.values():
            for where, value in found.items():
                if (len(found) == most) is fullest and where not in logs:
                    added.setdefault(where, []).append(value)
        logs |= added
    order = {where: sum(found) / len(found) for where, found in logs.items()}
    # Unmeasured rows come last, where a reader looks for missing ones.
    unmeasured = {spot(t.row, names): float("inf") for t in tolls if spot(t.row, names) not in order}
    return order | unmeasured
