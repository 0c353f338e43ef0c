"""Flat rows, one for each cell, for other programs."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

from tollbar.analysis import Judgement, Measurement, StudyJudgement, Toll
from tollbar.report.groups import all_metric, by_row, cost_metric, is_baseline
from tollbar.results import Row, free_names


def cell_rows(judgement: Judgement) -> Iterator[dict[str, Any]]:
    """Yield every planned cell: its coordinates, cost in nanoseconds per operation, ratio, interval, verdict and
    standing.

    A cell that was not measured has its outcome and reason, and no numbers.
    """
    found = [(study, row, said) for study in judgement.studies for row, said in _rows(study)]
    columns = {"study", *(name for *_, said in found for name in said)}
    # The coordinates of all studies come first in every row, so that the figures are in the same columns.
    named = free_names((name for _, row, _ in found for name in row.coordinates), columns)
    for study, row, said in found:
        own = {free: row.coordinates.get(name) for name, free in named.items()}
        yield {"study": study.about.name, **own, **said}


def _rows(study: StudyJudgement) -> Iterator[tuple[Row, dict[str, Any]]]:
    cost, all_samples = by_row(study, cost_metric(study)), by_row(study, all_metric(study))
    tolls = {toll.row.key: toll for toll in study.tolls}
    for row in study.rows:
        yield row, _of(study, row, cost.get(row.key), all_samples.get(row.key), tolls.get(row.key))


def _of(
    study: StudyJudgement, row: Row, cost: Measurement | None, all_samples: Measurement | None, toll: Toll | None
) -> dict[str, Any]:
    # A baseline's own toll is its repeat's, not a ratio to another cell.
    ratio = toll.ratio if toll and not is_baseline(row) else None
    return {
        "provider_version": row.provider,
        "server_version": row.server_version,
        "standing": str(row.standing),
        "strength_bits": row.strength,
        "outcome": str(row.outcome),
        "cost_metric": cost_metric(study),
        "cost_ns": cost.value if cost else None,
        "cost_low_ns": cost.low if cost and isfinite(cost.high) else None,
        "cost_high_ns": cost.high if cost and isfinite(cost.high) else None,
        "all_cost_ns": all_samples.value if all_samples else None,
        "blocks": cost.blocks if cost else 0,
        "is_baseline": is_baseline(row),
        "ratio": ratio.estimate if ratio else None,
        "ratio_low": ratio.low if ratio and ratio.is_bounded else None,
        "ratio_high": ratio.high if ratio and ratio.is_bounded else None,
        "all_ratio": toll.all_samples.estimate if ratio and toll and toll.all_samples else None,
        "confidence": study.confidence,
        "verdict": "baseline" if is_baseline(row) else str(toll.verdict) if toll else None,
        "more_blocks": toll.more_blocks if toll else None,
        "reason": row.reason or (toll.reason if toll else None),
    }
