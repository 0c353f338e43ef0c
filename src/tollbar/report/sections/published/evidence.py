"""Evidence next to an inverted claim: other measurements of its two cells, and of the cells between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tollbar.analysis import ClaimVerdict, Measurement
from tollbar.catalog.families import Value
from tollbar.report.coordinates import Form, value_words
from tollbar.report.groups import cost_metric
from tollbar.report.numbers import amount, times
from tollbar.report.sections.published.lines import Line
from tollbar.results import Row

# Two values that differ by less explain nothing.
LEAST_FACTOR = 1.10
# Smaller shares of the CPU time are left out.
LEAST_SHARE = 0.01


def evidence(line: Line) -> str | None:
    """Return the measured differences of both cells, for a claim that is inverted, or of a difference where none was.

    None for other claims, and where nothing but the compared metric was measured.
    """
    result, study = line.result, line.judged
    least, most = line.claim.ratio or (0.0, 0.0)
    claimed_equal = least <= 1 <= most and result.verdict is ClaimVerdict.LARGER
    if study is None or not (result.verdict is ClaimVerdict.INVERTED or claimed_equal) or line.claim.grows:
        return None
    of, over = (_row_at(study.rows, side, result.at) for side in (line.claim.of, line.claim.over))
    if of is None or over is None:
        return None
    parts = [*_metrics(line, of, over), *_one_at_a_time(line, of, over)]
    return f"Measured of both cells: {'; '.join(parts)}." if parts else None


def _row_at(rows: Iterable[Row], side: Mapping[str, Value], shared: Mapping[str, Value]) -> Row | None:
    """Return the row of a claim's side; a shared coordinate may not apply to it."""
    for row in rows:
        here = row.coordinates
        if side.items() <= here.items() and all(here.get(name, value) == value for name, value in shared.items()):
            return row
    return None


def _measured(line: Line, row: Row) -> Mapping[tuple[str, str | None], Measurement]:
    assert line.judged
    return {(one.metric, one.component): one for one in line.judged.measurements if one.row.key == row.key}


def _metrics(line: Line, of: Row, over: Row) -> Iterator[str]:
    """Yield the components' CPU times, and the other metrics of the family that differ."""
    assert line.judged
    sides, cost = [_measured(line, row) for row in (of, over)], cost_metric(line.judged)
    components = dict.fromkeys(part for found in sides for metric, part in found if metric == cost and part)
    observed = [*line.study.family.metrics] if components else []
    largest = max((one.value for found in sides for (metric, _), one in found.items() if metric == cost), default=0.0)
    for component in components:
        values = [found.get((cost, component)) for found in sides]
        if max(one.value for one in values if one) >= LEAST_SHARE * largest:
            told = " over ".join(amount(one.value, one.unit) if one else "none" for one in values)
            yield f"CPU time of {component} {told}"
    for name in observed:
        first, second = (found.get((name, None)) for found in sides)
        if first and second and _differ(first.value, second.value) and name != line.claim.metric:
            yield f"`{name}` {amount(first.value, first.unit)} over {amount(second.value, second.unit)}"


def _one_at_a_time(line: Line, of: Row, over: Row) -> Iterator[str]:
    """Yield the CPU time with one setting changed, if the two cells differ in several."""
    study, family = line.judged, line.study.family
    assert study
    names = [
        name for name in of.coordinates if over.coordinates.get(name, of.coordinates[name]) != of.coordinates[name]
    ]
    if len(names) < 2 or of.choice != over.choice:
        return
    metric = (cost_metric(study), line.claim.component)
    base = _measured(line, of).get(metric)
    for name in names:
        between = _row_at(study.rows, {**of.coordinates, name: over.coordinates[name]}, {})
        found = _measured(line, between).get(metric) if between else None
        if base and found:
            here, there = (value_words(family, name, row.coordinates[name], Form.TYPED) for row in (of, over))
            ratio = times(found.value / base.value)
            yield f"with {name} `{there}` in place of `{here}`, all else equal, {ratio} of the CPU time"


def _differ(one: float, other: float) -> bool:
    return min(one, other) <= 0 or max(one, other) / min(one, other) >= LEAST_FACTOR
