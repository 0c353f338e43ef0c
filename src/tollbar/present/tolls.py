"""The toll chart: choices as rows, the ratio to the baseline across, a panel for each setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import log

from tollbar.families import Value
from tollbar.judge import StudyJudgement, Toll, Verdict
from tollbar.judge.noise import reach
from tollbar.present import words
from tollbar.present.cells import (
    Place,
    Spot,
    at_spot,
    baseline_words,
    by_row,
    cost_metric,
    labels,
    places,
    real_tolls,
    split,
    spot,
)
from tollbar.present.charts import Dot, Dots, scale_over, spoken
from tollbar.present.costs import cost_words
from tollbar.present.shapes import Chart
from tollbar.results import Row

# A longer baseline does not fit under a panel; the answer above the chart names it.
LONGEST_IN_TITLE = 30


def toll_charts(study: StudyJudgement, whole: StudyJudgement | None = None) -> list[Chart]:
    """A panel for each setting: choices (and providers) as rows, the ratio to the baseline across.

    `whole` is what the study is a part of: dots name their cells by their numbers among all of its rows.

    Panels of one operation share their axis and the order of their rows; making a key and checking a
    signature have nothing to share.
    """
    tolls = real_tolls(study)
    # A cell without a baseline among the cells stands as its own.
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
    titles = [title for title, _ in panels(places(study), _with_something(study, rows, in_panels), in_panels)]
    return [charts[title] for title in titles if title in charts]


def _with_something(study: StudyJudgement, rows: Sequence[Row], in_panels: Sequence[str]) -> Sequence[Row]:
    """The rows without those of panels in which nothing was measured; all of them where nothing was anywhere."""
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
    # A baseline is like itself in everything, so that nothing would be left of its name.
    whole = labels(study, in_rows, whole=True)
    dots |= {r.key: _baseline_dot(whole(r), study, r) for r in baselines.values()}
    dots = {key: replace(dot, cell=numbers[key]) for key, dot in dots.items()}
    order = _order(tolls, in_rows)
    noises = {t.row.key: reach(t.noise) for t in tolls if t.noise is not None}
    baseline = baseline_words(study)
    against = baseline if len(baseline) <= LONGEST_IN_TITLE else "the baseline"
    title = f"{cost_words(study).title}, as a multiple of {against}"
    scale = scale_over(title, list(dots.values()), worth=study.about.worth)
    charts = {}
    rows = [*(t.row for t in tolls), *baselines.values()]
    for name, panel in panels(places(study), rows, in_panels):
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
        note=f"{words.times(toll.ratio.estimate)} {toll.verdict}",
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
    """Each row's place: its mean log ratio over the panels, so that every panel has the same order.

    Over the fullest panels: where some have few of the rows, a mean over all would compare what is not alike.
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
    # What was not measured anywhere stands last, where a reader looks for what is missing.
    unmeasured = {spot(t.row, names): float("inf") for t in tolls if spot(t.row, names) not in order}
    return order | unmeasured


def panels(place: Place, rows: Iterable[Row], names: Sequence[str]) -> list[tuple[str, list[Row]]]:
    panels: dict[Spot, list[Row]] = {}
    for row in rows:
        panels.setdefault(spot(row, names), []).append(row)

    def order(where: Spot) -> list[tuple[bool, bool, float]]:
        return [(v is not None, isinstance(v, str), 0 if v is None or isinstance(v, str) else v) for v in where]

    return [(place(at_spot(names, where), names), panels[where]) for where in sorted(panels, key=order)]
