"""`--json`: one document, whose form other programs rely on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tollbar.judge import ClaimResult, Comparison, Contrast, Judgement, Measurement, StudyJudgement, Toll
from tollbar.present.warnings import warnings
from tollbar.results import Row, Run
from tollbar.runner import Negotiated, Outcome
from tollbar.stats import Interval

SCHEMA = 2


def document(judgement: Judgement) -> dict[str, Any]:
    """A run's results, tolls, contrasts and claims."""
    return {**_head(judgement.run), "studies": [_study(study) for study in judgement.studies]}


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """Two runs' ratios side by side."""
    return {
        "schema": SCHEMA,
        "runs": [comparison.one, comparison.other],
        "fingerprint_differences": list(comparison.fingerprint_differences),
        "upgrades": list(comparison.upgrades),
        "median_difference": comparison.median_difference,
        "overlapping": comparison.overlapping,
        "studies": [
            {
                "study": name,
                "without_partner": list(comparison.alone[name]),
                "tolls": [
                    {
                        **_where(pair.row),
                        "other": _where(pair.other_row),
                        "ratios": [pair.one.estimate, pair.other.estimate],
                        "intervals": [[pair.one.low, pair.one.high], [pair.other.low, pair.other.high]],
                        "relative_difference": pair.relative_difference,
                        "overlap": pair.overlap,
                    }
                    for pair in pairs
                ],
            }
            for name, pairs in comparison.studies.items()
        ],
    }


def _head(run: Run) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run": str(run.directory),
        "started": run.started,
        "seed": run.seed,
        "command": list(run.command),
        "fingerprint": dict(run.fingerprint),
        "providers": {name: dict(receipt) for name, receipt in run.providers.items()},
    }


def _study(judged: StudyJudgement) -> dict[str, Any]:
    study = judged.study.study
    rows = {row.key: row for row in judged.study.rows}
    measured = {m.row.key for m in judged.measurements}
    agreed = {key: _agreed(rows[key]) for key in measured}
    return {
        "study": study.name,
        "question": study.question,
        "family": study.family.name,
        "worth": study.worth,
        "confidence": judged.confidence,
        "noise_floor": _finite(judged.noise_floor),
        "noise": _ends(judged.noise),
        "drift": judged.drift,
        "results": [
            *(_measurement(m, agreed.get(m.row.key, {})) for m in judged.measurements),
            *(_not_measured(row, study.measure.cost) for row in rows.values() if row.key not in measured),
        ],
        "tolls": [_toll(toll) for toll in judged.tolls],
        "contrasts": [_contrast(contrast) for contrast in judged.contrasts],
        "claims": [_claim(claim) for claim in judged.claims],
        "left_out": [{"coordinates": dict(at), "because": because} for at, because in judged.study.left_out],
        "warnings": list(warnings(judged)),
    }


def _where(row: Row) -> dict[str, Any]:
    return {
        "choice": row.choice,
        "provider": row.provider,
        "bed": row.bed,
        "server": row.server,
        "setting": dict(row.setting),
    }


def _known(row: Row) -> dict[str, Any]:
    return {
        "outcome": row.outcome,
        "reason": row.reason,
        "standing": row.standing,
        "strength": row.strength,
        "known_answers": row.known_answers,
        "accepted": list(row.accepted),
        "refused": list(row.refused),
        "not_tried": list(row.not_tried),
    }


def _measurement(m: Measurement, agreed: Mapping[str, Any]) -> dict[str, Any]:
    value = {
        "metric": m.metric,
        "component": m.component,
        "unit": m.unit,
        "value": m.value,
        "low": _finite(m.low),
        "high": _finite(m.high),
    }
    limited = {"limit": m.limit} if m.limit else {}
    return {**_where(m.row), **value, **limited, "blocks": m.blocks, **_known(m.row), **agreed}


def _agreed(row: Row) -> dict[str, Any]:
    """What was negotiated in the cell's trials, all together, beside its cost."""
    counts: Counter[Negotiated] = Counter()
    for trial in row.trials:
        for one in trial.load.negotiated if trial.load else ():
            counts[one.model_copy(update={"count": 0})] += one.count
    if not counts:
        return {}
    return {
        "negotiated": [{**one.model_dump(), "count": count} for one, count in counts.items()],
        "client_libraries": list(row.client_libraries),
    }


def _not_measured(row: Row, metric: str) -> dict[str, Any]:
    nothing: dict[str, Any] = {
        "metric": metric,
        "component": None,
        "unit": "ns/op",
        "value": None,
        "low": None,
        "high": None,
        "blocks": 0,
    }
    # Proven and then cut short: there is no number, so the row does not say `ok`.
    cut_short = {"outcome": Outcome.FAILED, "reason": "no trial was made"} if row.outcome is Outcome.OK else {}
    return {**_where(row), **nothing, **_known(row), **cut_short}


def _toll(toll: Toll) -> dict[str, Any]:
    ratio = toll.ratio
    return {
        **_where(toll.row),
        "against": _where(toll.against),
        "metric": toll.metric,
        "ratio": ratio.estimate if ratio else None,
        "low": _finite(ratio.low) if ratio else None,
        "high": _finite(ratio.high) if ratio else None,
        "difference": toll.difference,
        "typical": toll.typical.estimate if toll.typical else None,
        "typical_interval": _ends(toll.typical),
        "suffers": toll.suffers,
        "noise": _ends(toll.noise),
        "confidence": ratio.confidence if ratio else None,
        "blocks": ratio.n if ratio else 0,
        "noise_floor": _finite(toll.noise_floor),
        "verdict": toll.verdict,
        "more_blocks": toll.more_blocks,
        "reason": toll.reason,
        "twin": toll.row.against == toll.row.key,
    }


def _contrast(contrast: Contrast) -> dict[str, Any]:
    return {
        "setting": contrast.setting,
        "value": contrast.value,
        "for": contrast.for_value,
        "where": {name: list(values) for name, values in contrast.where.items()},
        "low": _finite(contrast.low),
        "high": _finite(contrast.high),
        "least": contrast.least,
        "most": contrast.most,
        "pairs": contrast.pairs,
        "verdict": contrast.verdict,
        "more_blocks": contrast.more_blocks,
    }


def _claim(claim: ClaimResult) -> dict[str, Any]:
    at: Mapping[str, Any] = claim.at
    return {
        "says": claim.says,
        "metric": claim.metric,
        "published": claim.published,
        "order": claim.order,
        "ratio": claim.ratio.estimate if claim.ratio else None,
        "low": _finite(claim.ratio.low) if claim.ratio else None,
        "high": _finite(claim.ratio.high) if claim.ratio else None,
        "typical": claim.typical.estimate if claim.typical else None,
        "rates": list(claim.rates) if claim.rates else None,
        "verdict": claim.verdict,
        "provider": at.get("provider"),
        "bed": at.get("bed"),
        "setting": {name: value for name, value in at.items() if name not in ("provider", "bed")},
        "note": claim.note,
        "reason": claim.reason,
    }


def _ends(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [_finite(interval.low), _finite(interval.high)]


def _finite(value: float | None) -> float | None:
    """JSON has no infinity: an end that is not known is null."""
    return None if value is None or value in (float("inf"), float("-inf")) else value
