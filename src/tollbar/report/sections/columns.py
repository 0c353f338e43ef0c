"""Columns of the main table, their cells, and the meanings of the marks in a terminal's table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from tollbar.analysis import Measurement, StudyJudgement, Toll
from tollbar.catalog.families import LOADS
from tollbar.core.metrics import ALL_SAMPLES, METRICS
from tollbar.core.records import Outcome
from tollbar.report.blocks import DASH, Column, Pick, TableCell, count_cell
from tollbar.report.coordinates import EMBEDDED, EMBEDDED_SERVER, Form, column_title, named_value, value_words
from tollbar.report.costs import cost_words
from tollbar.report.groups import all_metric, by_row, cost_metric, is_baseline, memory_matters, panels, split
from tollbar.report.names import baseline_words, labels, place_words, varied, varying
from tollbar.report.numbers import (
    LIMIT_MARKS,
    NOISY_MARK,
    VERDICT_MARKS,
    amount,
    bracket,
    ends_words,
    interval_title,
    marked,
    measured_words,
    per_second,
    ratio_words,
    times,
    undecided,
    verdict_meanings,
)
from tollbar.report.sections.trust import noisy_words, suffers_words
from tollbar.report.standings import CALLED_OUT, standing_words
from tollbar.report.table_cells import (
    ALL_RATIO,
    BAR,
    INTERVAL,
    OTHERS,
    SPEED,
    STANDING,
    bar,
    coordinate_cell,
    good_news,
    ratio_cell,
    standing_cell,
)
from tollbar.results import Row

# The page has every cell in the study's order, in sortable columns; a terminal has the compared cells, the least ratio
# of each panel first, and fewer columns.

# Marks behind the verdict if the ratio of all samples differs from the quiet one.
SUFFERS = {"more": "↑", "less": "↓"}
# Columns next to the cost in a terminal, if they were measured; the report has the others.
BESIDE = {"throughput": "requests / s", "memory": "memory"}
# Below this size, the fixed cost of a call determines the bytes a second.
SPEED_FROM_BYTES = 1024

MetricKey = tuple[str, str | None]
"""Metric and component; None for the whole."""


class MainTable:
    """Columns of a study's main table, and their cells."""

    def __init__(self, study: StudyJudgement) -> None:
        self.study = study
        self.family = study.about.family
        metric = cost_metric(study)
        self.cost, self.all_samples = by_row(study, metric), by_row(study, all_metric(study))
        self.tolls = {toll.row.key: toll for toll in study.tolls if toll.metric == metric}
        self.beside = beside(study)
        self.names = [name for name in varied(study) if name != "choice"]
        self.where = labels(study, self.names, whole=True)
        self.strengths = any(row.strength is not None for row in study.rows)
        # Rows of a terminal, in panels, the least ratio first.
        ratios = {toll.row.key: toll.ratio.estimate for toll in compared(study) if toll.ratio}
        # A baseline without compared cells was requested too: the same choice with another parameter.
        order = ratios | {row.key: 1.0 for row in study.rows if is_baseline(row) and row.key in self.cost}
        self.rows = [row for row in study.rows if row.key in order]
        self.in_panels = split(study, self.rows)[1] if self.rows else []
        found = panels(place_words(study), self.rows, self.in_panels)
        self.groups = [sorted(group, key=lambda row: order[row.key]) for _, group in found]
        self.compared = [self.tolls[row.key] for row in self.rows if row.key in ratios]
        logs = (abs(math.log(toll.ratio.estimate)) for toll in self.compared if toll.ratio)
        # Largest logarithm of a ratio: a bar of length one.
        self.widest = max(logs, default=0.0) or 1.0
        vary = varying(self.rows)
        self.row_names = [name for name in vary if name not in self.in_panels] or ["choice"]
        # A baseline that protects nothing is not an option; any other is, and may have a worse standing than the rest.
        self.standings = {row.standing for row in self.rows if row.standing.is_of_option or not is_baseline(row)}
        told = {*vary, *self.row_names}
        constant = {name: value for row in self.rows for name, value in row.shown.items() if name not in told}
        had = [name for name in constant if all(name in row.shown for row in self.rows)]
        self.alike = [named_value(study.about.family, name, constant[name], Form.TABLE) for name in had]
        # Coordinates that do not apply to some rows.
        self.alike_in_some = [
            named_value(study.about.family, name, value, Form.TABLE)
            for name, value in constant.items()
            if name not in had
        ]
        if len(self.standings) == 1:
            self.alike.append(f"all {standing_words(*self.standings)}")

    def columns(self) -> list[tuple[Column, Callable[[Row], TableCell]]]:
        """Return each column, with the function that makes its cells."""
        study = self.study
        found: list[tuple[Column, Callable[[Row], TableCell]]] = [
            (Column("choice", names=True, key="choice"), self._choice),
            (Column(f"against {baseline_words(study)}", True, key="ratio"), self._ratio),
            (Column("standing", key="standing"), standing_cell),
            (Column("verdict", key="verdict"), self._verdict),
        ]
        for name in self.names:
            title = column_title(self.family, name)
            found.append(
                (Column(title, name in LOADS, names=True, key=f"at {name}"), partial(coordinate_cell, study, name))
            )
        found.append((Column(f"{cost_words(study).title}, quiet", True, key="cost"), self._cost))
        found.append((Column("all samples", True, key="all cost"), partial(_amount, self.all_samples)))
        # For a request the inverse is redundant: the table has requests a second.
        if cost_metric(study) == "cpu":
            found.append((Column("per second of CPU", True, key="speed"), self._speed))
        found.append((Column("ratio of all samples", True, key="all ratio"), self._all_ratio))
        for of, seen in self.beside.items():
            found.append((Column(_metric_title(study, *of), True, key=_key(of)), partial(_amount, seen)))
        found.append((Column("blocks", True, key="blocks"), self._blocks))
        if self.strengths:
            found.append((Column("strength, bits", True, key="strength"), _strength))
        return found

    def picks(self) -> list[Pick]:
        """Return the columns of a terminal."""
        sizes = [row.coordinates.get("bytes") for row in self.rows]
        setting = self.family.settings.get("bytes")
        has_speed = (
            cost_metric(self.study) == "cpu"
            and setting is not None
            and not setting.only
            and any(isinstance(size, int) and size >= SPEED_FROM_BYTES for size in sizes)
        )
        others = [
            Pick(_key((name, None)), title, OTHERS) for name, title in BESIDE.items() if (name, None) in self.beside
        ]
        return [
            *(Pick("choice" if name == "choice" else f"at {name}", name) for name in self.row_names),
            Pick("cost", cost_words(self.study).column),
            *([Pick("speed", "per s of CPU", SPEED)] if has_speed else []),
            *others,
            Pick("ratio", "× baseline"),
            Pick("ratio", interval_title(self.study), INTERVAL, "interval"),
            Pick("ratio", "", BAR, "bar"),
            *([Pick("all ratio", "all samples", ALL_RATIO)] if any(t.suffers for t in self.compared) else []),
            Pick("verdict", "verdict"),
            *([Pick("standing", "standing", STANDING)] if len(self.standings) > 1 else []),
        ]

    def _choice(self, row: Row) -> TableCell:
        """Return a row's head, which identifies it whichever columns are visible."""
        where = self.where(row)
        brief = TableCell(value_words(self.family, "choice", row.shown.get("choice"), Form.TABLE))
        return TableCell(row.title, small=None if where == row.title else where, brief=brief)

    def _cost(self, row: Row) -> TableCell:
        """Return the quiet cost with its interval, or the outcome of a cell without a cost."""
        cost = self.cost.get(row.key)
        if cost is None:
            return TableCell("not measured" if row.outcome is Outcome.OK else str(row.outcome))
        return TableCell(
            marked(amount(cost.value, cost.unit), cost.is_noisy),
            cost.value,
            interval=ends_words(cost.low, cost.high, cost.unit),
        )

    def _speed(self, row: Row) -> TableCell:
        cost = self.cost.get(row.key)
        if cost is None or cost.value <= 0:
            return DASH
        speed, says = per_second(cost.value, row.coordinates)
        return TableCell(says, speed)

    def _blocks(self, row: Row) -> TableCell:
        return count_cell(self.cost[row.key].blocks if row.key in self.cost else 0)

    def _is_baseline(self, row: Row) -> bool:
        return is_baseline(row) and row.outcome is Outcome.OK

    def _ratio(self, row: Row) -> TableCell:
        toll = self.tolls.get(row.key)
        if self._is_baseline(row):
            return TableCell("×\u00a01", 1.0, bar=0.0, brief=TableCell("1"))
        if toll is None or toll.ratio is None:
            return DASH
        ratio, threshold = toll.ratio, self.study.about.threshold
        return TableCell(
            times(ratio.estimate),
            ratio.estimate,
            interval=bracket(ratio),
            bar=bar(ratio.estimate, threshold, self.widest),
            verdict=toll.verdict,
            good=good_news(toll.verdict, row),
            brief=TableCell(ratio_words(ratio.estimate)),
        )

    def _all_ratio(self, row: Row) -> TableCell:
        toll = self.tolls.get(row.key)
        if self._is_baseline(row) or toll is None or toll.all_samples is None:
            return replace(DASH, brief=TableCell(""))
        return replace(ratio_cell(toll.all_samples), brief=TableCell(ratio_words(toll.all_samples.estimate)))

    def _verdict(self, row: Row) -> TableCell:
        """Return the verdict with its reservations."""
        toll = self.tolls.get(row.key)
        if self._is_baseline(row):
            return TableCell("baseline")
        if toll is None:
            return TableCell("not compared", small=row.reason)
        missing = (row.reason or toll.reason or "no reason was recorded") if toll.ratio is None else None
        noisy, open_ = noisy_words(self.study, toll.ratio), undecided(self.study, toll)
        suffers = f" {SUFFERS[toll.suffers]}" if toll.suffers else ""
        return TableCell(
            str(toll.verdict),
            mark=VERDICT_MARKS[toll.verdict],
            small="; ".join(filter(None, (missing, noisy, open_, suffers_words(toll)))) or None,
            brief=TableCell(
                marked(f"{toll.verdict}{suffers}", noisy is not None, gap=" "),
                verdict=toll.verdict,
                good=good_news(toll.verdict, row),
                small=open_,
            ),
        )

    def marks(self) -> tuple[str, ...]:
        """Return the meanings of the marks in a terminal's tables, and other explanations."""
        study, found = self.study, self.compared
        suffers = {
            f"{SUFFERS[toll.suffers]} {suffers_words(toll)}: *all samples* is the ratio over every round": None
            for toll in found
            if toll.suffers
        }
        noisy = {f"{NOISY_MARK} {said}": None for toll in found if (said := noisy_words(study, toll.ratio))}
        seen = [self.beside[name, None] for name in BESIDE if (name, None) in self.beside]
        limits = {f"{LIMIT_MARKS[m.limit]} {m.limit}": None for of in seen for m in of.values() if m.limit}
        limited = [f"requests a second that something other than the server limited: {', '.join(limits)}"]
        has_embedded = "server" in self.row_names and any(row.server == EMBEDDED for row in self.rows)
        meant = verdict_meanings({toll.verdict for toll in found}, study.about.threshold)
        return (
            *([meant] if meant else []),
            *noisy,
            *suffers,
            *(limited if limits else []),
            *([f"{EMBEDDED}: {EMBEDDED_SERVER}"] if has_embedded else []),
            *self._lowered(),
        )

    def _lowered(self) -> Iterator[str]:
        """Yield the settings, other than the choice, that lower a row's standing: `disallowed by clear: …`."""
        family = self.study.about.family
        found: dict[str, dict[str, None]] = {}
        for row in self.rows:
            name = family.lowered_by(row.coordinates) if row.standing in CALLED_OUT else None
            if name is not None:
                by = named_value(family, name, row.coordinates[name], Form.QUESTION)
                found.setdefault(f"{standing_words(row.standing)} by {by}", {})[row.choice] = None
        yield from (f"{said}: {', '.join(choices)}" for said, choices in found.items())


def compared(study: StudyJudgement) -> list[Toll]:
    """Return the tolls that have a ratio, the least first."""
    found = [(t.ratio.estimate, t) for t in study.tolls if t.ratio and t.row.key != t.against.key]
    return [toll for _, toll in sorted(found, key=lambda pair: pair[0])]


def beside(study: StudyJudgement) -> dict[MetricKey, dict[str, Measurement]]:
    """Return the measurements other than the cost, by metric and row, in the order of the table of metrics."""
    order = {name: number for number, name in enumerate(METRICS)}
    found: dict[MetricKey, dict[str, Measurement]] = {}
    for m in sorted(study.measurements, key=lambda m: order.get(m.metric, len(order))):
        # The parts of the cost have a chart and a table of their own.
        if m.metric != cost_metric(study) and not m.metric.endswith(ALL_SAMPLES):
            found.setdefault((m.metric, m.component), {})[m.row.key] = m
    return {of: rows for of, rows in found.items() if of[0] != "memory" or memory_matters(rows.values())}


def _key(of: MetricKey) -> str:
    return " of ".join(filter(None, of))


def _metric_title(study: StudyJudgement, name: str, component: str | None) -> str:
    known = {**METRICS, **study.about.family.metrics}
    title = known[name].title if name in known else name.replace("-", " ")
    return title if component is None else f"{title}, {component}"


def _amount(seen: Mapping[str, Measurement], row: Row) -> TableCell:
    """Return a measurement with its unit; in a terminal requests a second without it, marked if they were limited."""
    found = seen.get(row.key)
    if found is None:
        return replace(DASH, brief=TableCell(""))
    number = f"{found.value:,.0f}" if found.unit == "1/s" else amount(found.value, found.unit)
    brief = TableCell(number if found.limit is None else f"{number} {LIMIT_MARKS[found.limit]}")
    return TableCell(measured_words(found), found.value, brief=brief)


def _strength(row: Row) -> TableCell:
    return count_cell(row.strength) if row.strength is not None and row.standing.is_of_option else DASH
