"""The full table: every planned cell in its place, with its failure where it has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tollbar.families import Standing
from tollbar.judge import Measurement, StudyJudgement, Toll
from tollbar.measure import Outcome
from tollbar.report import limits, prose, words
from tollbar.report.costs import cost_words
from tollbar.report.labels import places
from tollbar.report.markup import Cell, Column, folded, symbol, table, tag, text
from tollbar.results import Row
from tollbar.stats import Interval

MOST_LEFT_OUT = 12
# What stands beside the cost, by metric; each where some cell has it.
_BESIDE = {
    words.WALL: "wall time per operation",
    "client-cpu": "client CPU per request",
    "throughput": "requests a second",
    "latency-p50": "half answered within",
    "latency-p95": "95 % within",
    "latency-p99": "99 % within",
    words.MEMORY: "memory",
    "server-memory": "server memory",
}


def full_table(study: StudyJudgement) -> str:
    """All rows of the study, sortable; and the combinations left out, folded, with their reasons."""
    family = study.study.study.family
    rows = study.study.rows
    names = [n for n in words.varying(rows) if n != "choice"]
    metric = words.cost_metric(study)
    cost, typical = words.by_row(study, metric), words.by_row(study, words.typical_metric(study))
    tolls = {t.row.key: t for t in study.tolls if t.metric == metric}
    beside = {name: found for name in _BESIDE if name != metric and (found := words.by_row(study, name))}
    if words.MEMORY in beside and not words.matters(beside[words.MEMORY]):
        del beside[words.MEMORY]
    # Of a request the inverse is no news: how many a second there were stands beside it.
    speed = metric == "cpu"
    strengths = any(row.strength is not None for row in rows)
    columns = [
        Column("choice"),
        *(Column(words.column_title(family, n), n in words.LOADS) for n in names),
        Column(f"{cost_words(study).title}, undisturbed", True),
        Column("typical", True),
        *([Column("per second of CPU", True)] if speed else []),
        Column(f"against {words.baseline_words(study)}", True),
        Column("typical ratio", True),
        Column("verdict"),
        *(Column(_BESIDE[name], True) for name in beside),
        Column("blocks", True),
        Column("standing"),
        *([Column("strength, bits", True)] if strengths else []),
    ]
    written = [
        [
            Cell(row.title),
            *(_coordinate(study, row, n) for n in names),
            _cost(row, cost.get(row.key)),
            _plain(typical.get(row.key)),
            *([_speed(row, cost.get(row.key))] if speed else []),
            *_judged(row, tolls.get(row.key)),
            *(_plain(found.get(row.key)) for found in beside.values()),
            _blocks(cost.get(row.key)),
            Cell(
                words.standing_words(row.standing),
                float(words.STANDINGS.index(row.standing)),
                mark=symbol(row.standing),
            ),
            *([_strength(row)] if strengths else []),
        ]
        for row in rows
    ]
    return table(_caption(study), columns, written, sortable=True) + _left_out(study)


def _caption(study: StudyJudgement) -> str:
    family, rows = study.study.study.family, study.study.rows
    first = rows[0].coordinates if rows else {}
    alike = [n for n in first if n not in words.varying(rows) and n != "choice"]
    said = [f"{words.column_title(family, n)} {_coordinate(study, rows[0], n).says}" for n in alike]
    sure = words.percent(study.confidence)
    text = f"Every cell of the study {study.study.study.name}, with its {sure} interval in brackets"
    found = dict.fromkeys(limit for m in study.measurements if (limit := m.limit))
    marks = ", ".join(f"{limits.MARKS[limit]} {limit}" for limit in found)
    return "; ".join(filter(None, (text, f"all at {', '.join(said)}" if said else "", marks)))


def _coordinate(study: StudyJudgement, row: Row, name: str) -> Cell:
    value = row.coordinates.get(name)
    if value is None:
        return Cell("does not apply")
    if name in words.LOADS:
        return Cell(f"{value:,}", float(value))
    if name == "bed" and row.server is not None:
        return Cell(row.server)
    return Cell(
        words.value_words(study.study.study.family, name, value),
        float(value) if isinstance(value, int) else None,
    )


def _cost(row: Row, cost: Measurement | None) -> Cell:
    """The undisturbed cost with its interval; or, in its place, what became of the cell."""
    if cost is None:
        return Cell("not measured" if row.outcome is Outcome.OK else str(row.outcome))
    return Cell(words.amount(cost.value, cost.unit), cost.value, words.amounts(cost.low, cost.high, cost.unit))


def _speed(row: Row, cost: Measurement | None) -> Cell:
    if cost is None or cost.value <= 0:
        return Cell("–")
    speed, says = words.per_second(cost.value, row.coordinates)
    return Cell(says, speed)


def _judged(row: Row, toll: Toll | None) -> tuple[Cell, Cell, Cell]:
    """The undisturbed ratio, the typical one, and the verdict with what a reader should know of it."""
    if words.is_baseline(row) and row.outcome is Outcome.OK:
        return Cell("×\u00a01", 1.0), Cell("–"), Cell("baseline")
    if toll is None:
        return Cell("–"), Cell("–"), Cell("not compared", small=row.reason)
    mark = tag("span", text(words.VERDICT_MARKS[toll.verdict]), class_="mark", aria_hidden="true")
    missing = (row.reason or toll.reason or "no reason was recorded") if toll.ratio is None else None
    beside = (missing, prose.more_blocks(toll.more_blocks), prose.suffers(toll))
    verdict = Cell(str(toll.verdict), mark=mark, small="; ".join(filter(None, beside)) or None)
    return ratio_cell(toll.ratio), ratio_cell(toll.typical), verdict


def ratio_cell(ratio: Interval | None) -> Cell:
    """A ratio with its interval under it."""
    return Cell("–") if ratio is None else Cell(words.times(ratio.estimate), ratio.estimate, words.bracket(ratio))


def _plain(found: Measurement | None) -> Cell:
    if found is None:
        return Cell("–")
    return Cell(limits.limited(found), found.value)


def _blocks(cost: Measurement | None) -> Cell:
    return Cell("0", 0.0) if cost is None else Cell(f"{cost.blocks:,}", float(cost.blocks))


def _strength(row: Row) -> Cell:
    if row.strength is None or row.standing is Standing.NULL:
        return Cell("–")
    return Cell(f"{row.strength:,}", float(row.strength))


def _left_out(study: StudyJudgement) -> str:
    if not study.study.left_out:
        return ""
    place = places(study)
    by_reason: dict[str, list[Mapping[str, Any]]] = {}
    for coordinates, reason in study.study.left_out:
        by_reason.setdefault(reason, []).append(coordinates)
    rows = [(Cell(_few([place(c, c) for c in found])), Cell(reason)) for reason, found in by_reason.items()]
    number = len(study.study.left_out)
    summary = f"{number:,} combination{'' if number == 1 else 's'} left out of the study, and why"
    return folded(summary, table(summary, (Column("left out"), Column("because")), rows))


def _few(places: Sequence[str]) -> str:
    """The first of these, and how many more there are: a matrix leaves out a thousand for one reason."""
    more = len(places) - MOST_LEFT_OUT
    return "; ".join([*places[:MOST_LEFT_OUT], f"and {more:,} more"] if more > 1 else places)
