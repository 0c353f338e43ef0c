"""Names in words: how a cell, a setting, a ratio or an amount is written in sentences, charts and tables alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tollbar import units
from tollbar.catalogue import Family, Standing, Value
from tollbar.judge import Judgement, Measurement, StudyJudgement, Toll, Verdict
from tollbar.results import Row
from tollbar.stats import Interval

MEMORY = "memory"
"""The metric that stands beside the cost, never in its place."""

STANDINGS = tuple(Standing)
# Standings that a reader must meet beside the name, wherever the name stands.
CALLED_OUT = (Standing.DEPRECATED, Standing.DISALLOWED, Standing.BROKEN)

# A mark beside each verdict, so that a column of them reads without colour.
VERDICT_MARKS = {
    Verdict.COSTS: "▲",
    Verdict.SAVES: "▼",
    Verdict.FREE: "=",
    Verdict.UNCLEAR: "?",
    Verdict.NOT_MEASURED: "–",
}

_TITLES = {"choice": "choice", "provider": "provider", "op": "operation", "bed": "servers"}


def setting_title(family: Family, name: str) -> str:
    """A coordinate's name for people."""
    if name in family.settings:
        return family.settings[name].title
    return _TITLES.get(name, name.replace("-", " "))


def value_words(family: Family, name: str, value: Value) -> str:
    """A coordinate's value for people: a choice by its title, a size with its unit."""
    if name == "choice" and value in family.choices:
        return family.choices[str(value)].title
    setting = family.settings.get(name)
    if isinstance(value, int) and setting is not None and setting.is_size:
        return units.show_bytes(value)
    if isinstance(value, int):
        # A bare number needs its name: "7" says nothing, "groups 7" does.
        return f"{setting_title(family, name)} {value:,}"
    return value


def place(family: Family, coordinates: Mapping[str, Value], names: Iterable[str]) -> str:
    """Where a cell stands along these coordinates: `SHA-256 · openssl 3.0.19 · 4 KiB`."""
    return " · ".join(value_words(family, n, coordinates[n]) for n in names if n in coordinates)


def where_words(family: Family, where: Mapping[str, Sequence[Value]], most: int = 4) -> str:
    """What some pairs have in common: `at 64 B, on openssl 3.0.19`, the longer lists shortened to `most` values."""
    parts = []
    for name, values in where.items():
        shown = [value_words(family, name, v) for v in values[:most]]
        if len(values) > most:
            shown.append(f"{len(values) - most} more")
        preposition = {"choice": "for", "provider": "on", "bed": "on"}.get(name, "at")
        parts.append(f"{preposition} {enumeration(shown)}")
    return ", ".join(parts)


def enumeration(words: Sequence[str], joint: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {joint} {words[-1]}"


def varying(rows: Iterable[Row]) -> tuple[str, ...]:
    """The coordinates that take more than one value among these rows: choice and provider first, then as they stand."""
    values: dict[str, set[Value]] = {"choice": set(), "provider": set(), "bed": set(), "op": set()}
    for row in rows:
        for name, value in row.coordinates.items():
            values.setdefault(name, set()).add(value)
    return tuple(name for name, found in values.items() if len(found) > 1)


def standing_words(standing: Standing) -> str:
    """A standing for people; the null choice protects nothing and has none."""
    return "no protection" if standing is Standing.NULL else str(standing)


def times(ratio: float) -> str:
    """`× 2.10`."""
    return f"× {units.show_ratio(ratio)}"


def times_interval(ratio: Interval) -> str:
    """`× 2.10 [2.08, 2.12]`."""
    return f"{times(ratio.estimate)} {bracket(ratio)}"


def bracket(ratio: Interval) -> str:
    """`[2.08, 2.12]`."""
    return f"[{units.show_ratio(ratio.low)}, {units.show_ratio(ratio.high)}]"


def ratio_range(ratios: Sequence[Interval]) -> str:
    """One ratio with its interval, or the least and the greatest of several."""
    if len(ratios) == 1:
        return times_interval(ratios[0])
    least, most = (times(pick(r.estimate for r in ratios)) for pick in (min, max))
    return least if least == most else f"{least} to {most}"


def percent(share: float) -> str:
    """A share of one as `3 %`, with as many decimals as it needs and at most two."""
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + " %"


def amount(value: float, unit: str) -> str:
    """A measured value with its unit: nanoseconds per operation, bytes, or whatever the measurement says."""
    if unit.startswith("ns"):
        return units.show_nanoseconds(value)
    if unit in ("B", "bytes"):
        return units.show_bytes(value)
    return f"{value:,.4g} {unit}"


def per_second(cost_ns: float, coordinates: Mapping[str, Value]) -> tuple[float, str]:
    """What one second of CPU does at this cost: bytes where the cell has a size, operations where it has none."""
    rate = 1e9 / cost_ns
    size = coordinates.get("bytes")
    if not isinstance(size, int):
        return rate, f"{_short(rate)} op/s"
    speed = rate * size
    for unit, scale in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if speed >= scale:
            return speed, f"{_short(speed / scale)} {unit}"
    return speed, f"{_short(speed)} B/s"


def _short(value: float) -> str:
    if value >= 1000:
        # Three figures, grouped: the digits after them are noise.
        digits = len(str(int(value))) - 3
        return f"{round(value, -digits):,.0f}"
    return f"{value:.3g}"


def cost_metric(study: StudyJudgement) -> str:
    """The metric that the tolls are about."""
    metrics = [t.metric for t in study.tolls] + [m.metric for m in study.measurements if m.metric != MEMORY]
    return metrics[0] if metrics else "cpu"


def by_row(study: StudyJudgement, metric: str) -> dict[str, Measurement]:
    """The measurements of one metric, by the row's key."""
    return {m.row.key: m for m in study.measurements if m.metric == metric}


def real_tolls(study: StudyJudgement) -> list[Toll]:
    """The tolls on cost of cells that are not themselves the baseline."""
    metric = cost_metric(study)
    return [t for t in study.tolls if t.row.key != t.against.key and t.metric == metric]


def is_baseline(row: Row) -> bool:
    """Whether other cells are compared with this one."""
    return row.against == row.key


def baseline_words(study: StudyJudgement) -> str:
    """What the tolls are against, as the study names it: `SHA-256`, `RSA-2048 · cached`."""
    family, baseline = study.study.study.family, study.study.study.baseline
    return place(family, baseline, baseline) or "the baseline"


def confidence(judgement: Judgement) -> float | None:
    """The confidence of the run's intervals, where there is any interval."""
    for study in judgement.studies:
        for toll in study.tolls:
            if toll.ratio is not None:
                return toll.ratio.confidence
    return None
