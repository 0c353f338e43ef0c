"""`--json`: one document, whose form other programs rely on: `schema` describes it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isfinite, isinf
from typing import Any, get_args

from tollbar.families import Value
from tollbar.judge import (
    ClaimResult,
    Comparison,
    Contrast,
    CrossCell,
    CrossTableResult,
    FactorsResult,
    Increase,
    Judgement,
    Measurement,
    ScalingResult,
    StudyJudgement,
    Toll,
)
from tollbar.judge.comparison import Changed
from tollbar.present.against import sentences
from tollbar.present.answer import answer
from tollbar.present.published import Line, Published, sources_of, verdict_counts
from tollbar.present.uses import Candidate, Offer, Uses, use_sentences
from tollbar.present.warnings import warnings
from tollbar.records import Negotiated, Outcome, SetAside
from tollbar.results import Row, Run, StudyRun
from tollbar.stats import Interval
from tollbar.study import CrossTable

SCHEMA = 3


def of_run(judgement: Judgement) -> dict[str, Any]:
    """A run's results, tolls, contrasts, claims and tables; and what became of each published source."""
    sources = [_source(part, _place_of_claim) for part in sources_of(judgement)]
    return {**_head(judgement.run), "sources": sources, "studies": [_study(study) for study in judgement.studies]}


def of_source(part: Published) -> dict[str, Any]:
    """What one source published, each claim whole, beside what was measured of it."""
    return {"schema": SCHEMA, **_source(part, _whole_claim)}


def of_comparison(
    comparison: Comparison, increases: Sequence[Increase] = (), above: float | None = None
) -> dict[str, Any]:
    """Two runs' costs and ratios side by side, and what became dearer than was allowed."""
    return {
        "schema": SCHEMA,
        "runs": [comparison.one, comparison.other],
        "fingerprint_differences": list(comparison.fingerprint_differences),
        "upgrades": list(comparison.upgrades),
        "median_difference": comparison.median_difference,
        "overlapping": comparison.overlapping,
        "left_out": [_fields(left, "study", "reason", "rows") for left in comparison.left_out],
        "gone": [
            {"study": name, **_where(row), "reason": comparison.failures.get((name, row.key))}
            for name, rows in comparison.gone.items()
            for row in rows
        ],
        "tellable": {of: comparison.tellable(of, above or math.inf) for of in get_args(Changed)},
        "increases": [
            {"study": one.study, **_where(one.pair.row), "quantity": one.quantity, "change": _change(one.change)}
            for one in increases
        ],
        "studies": [
            {
                "study": name,
                "without_partner": list(comparison.alone[name]),
                "unmatched": [[_where(row) for row in rows] for rows in comparison.unmatched[name]],
                "tolls": [
                    {
                        **_where(pair.row),
                        "other": _where(pair.other_row),
                        "ratios": [pair.one.estimate, pair.other.estimate],
                        "intervals": [_ends(pair.one), _ends(pair.other)],
                        "change": _change(pair.ratio_change),
                        "relative_difference": pair.relative_difference,
                        "overlap": pair.overlap,
                    }
                    for pair in pairs
                    if pair.one and pair.other
                ],
                "costs": [
                    {
                        **_where(pair.row),
                        "other": _where(pair.other_row),
                        "costs": [pair.cost.estimate, pair.other_cost.estimate],
                        "intervals": [_ends(pair.cost), _ends(pair.other_cost)],
                        "change": _change(pair.cost_change),
                    }
                    for pair in pairs
                    if pair.cost and pair.other_cost
                ],
            }
            for name, pairs in comparison.studies.items()
        ],
    }


def _change(change: Interval | None) -> dict[str, Any] | None:
    """The second over the first."""
    return None if change is None else _ratio(change)


def _head(run: Run) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run": str(run.directory),
        "started": run.started,
        "seed": run.seed,
        "command": list(run.command),
        "fingerprint": dict(run.fingerprint),
        "simulated": run.is_simulated,
        "nodes": {role: dict(node) for role, node in run.nodes.items()},
        "providers": {str(receipt["name"]): {"spec": spec, **receipt} for spec, receipt in run.providers.items()},
    }


def _study(judged: StudyJudgement) -> dict[str, Any]:
    study = judged.about
    rows = {row.key: row for row in judged.rows}
    measured = {m.row.key for m in judged.measurements}
    agreed = {key: _agreed(rows[key]) for key in measured}
    return {
        "study": study.name,
        "question": study.question,
        "family": study.family.name,
        "answers": _answers(judged),
        "threshold": study.threshold,
        "confidence": judged.confidence,
        "noise_floor": _plain(judged.noise_floor),
        "noise": _ends(judged.noise),
        "drift": judged.drift,
        "quiet_share": judged.trust.quiet_share,
        "quiet_known_by": judged.trust.known_by,
        "results": [
            *(_measurement(m, agreed.get(m.row.key, {})) for m in judged.measurements),
            *(_not_measured(row, study.measure.cost) for row in rows.values() if row.key not in measured),
        ],
        "tolls": [_toll(toll) for toll in judged.tolls],
        "contrasts": [_contrast(contrast, judged.study) for contrast in judged.contrasts],
        "claims": [_claim(claim, judged.study) for claim in judged.claims],
        "tables": [_crosstable(result, judged.study) for result in judged.tables],
        "factors": [_factors(result, judged.study) for result in judged.factors],
        "scaling": [_scaling(result) for result in judged.scaling],
        "left_out": [
            {"coordinates": _named(at, judged.study), "because": because} for at, because in judged.study.left_out
        ],
        "set_aside": [_set_aside(one, rows) for one in judged.study.set_aside],
        "uses": _uses(judged),
        "warnings": list(warnings(judged)),
    }


def _set_aside(one: SetAside, rows: Mapping[str, Row]) -> dict[str, Any]:
    """A cell that failed too often; whether it was tried again since."""
    where = _where(rows[one.cell]) if one.cell in rows else {}
    counts = _fields(one, "failed", "trials", "after", "reason")
    return {**where, **counts, "at": one.at_s, "tried_again": one.tried_again_s is not None}


def _source(part: Published, claim_of: Callable[[Line], dict[str, Any]]) -> dict[str, Any]:
    """What it ran on, what differs here, how its claims came out, and these in the order of its text."""
    source = _fields(part.source, "name", "title", "by", "year", "system", "differs") if part.source else {}
    return {
        **source,
        "studies": list(part.studies),
        "not_measured": list(part.missing),
        "verdicts": verdict_counts(part.theirs),
        "claims": [{"study": line.study.name, "ours": line.claim.is_ours, **claim_of(line)} for line in part.lines],
    }


def _place_of_claim(line: Line) -> dict[str, Any]:
    """Which of its study's `claims` it is."""
    results = line.judged.claims if line.judged else ()
    return {"claim": next(n for n, result in enumerate(results) if result is line.result)}


def _whole_claim(line: Line) -> dict[str, Any]:
    run = line.judged.study if line.judged else StudyRun(line.study, (), (), ())
    return {**_claim(line.result, run), "verdict": line.verdict}


def _answers(judged: StudyJudgement) -> dict[str, Any]:
    """What was found, in the words that terminal and report have."""
    headline, *paragraphs = answer(judged)
    return {"headline": headline, "paragraphs": paragraphs, "sentences": sentences(judged)}


def _where(row: Row) -> dict[str, Any]:
    return _fields(row, "choice", "provider", "server", "server_version", "setting")


def _known(row: Row) -> dict[str, Any]:
    names = ("outcome", "reason", "standing", "strength", "known_answers", "accepted", "refused", "not_tried")
    return _fields(row, *names)


def _measurement(m: Measurement, agreed: Mapping[str, Any]) -> dict[str, Any]:
    low, high = _known_ends(m.low, m.high)
    value = {**_fields(m, "metric", "component", "unit", "value"), "low": low, "high": high}
    limited = {"limit": m.limit} if m.limit else {}
    return {**_where(m.row), **value, **limited, "blocks": m.blocks, "noisy": m.is_noisy, **_known(m.row), **agreed}


def _agreed(row: Row) -> dict[str, Any]:
    """What was negotiated in the cell's trials, all together, beside its cost."""
    counts: Counter[Negotiated] = Counter()
    for trial in row.trials:
        for one in trial.load.negotiated if trial.load else ():
            counts[one.model_copy(update={"count": 0})] += one.count
    if not counts:
        return {}
    return {
        "negotiated": [{**_terms(one), "count": count} for one, count in counts.items()],
        "client_libraries": list(row.client_libraries),
    }


def _terms(one: Negotiated) -> dict[str, Any]:
    """Return what a connection agreed on; suites of one construction have no order of their MAC."""
    return one.model_dump(exclude=None if one.mac_order else {"mac_order"})


def _not_measured(row: Row, metric: str) -> dict[str, Any]:
    nothing = {"metric": metric, "component": None, "unit": "ns/op", "value": None, "low": None, "high": None}
    # Proven and then cut short: there is no number, so the row does not say `ok`.
    cut_short = {"outcome": Outcome.FAILED, "reason": "no trial was made"} if row.outcome is Outcome.OK else {}
    return {**_where(row), **nothing, "blocks": 0, "noisy": None, **_known(row), **cut_short}


def _toll(toll: Toll) -> dict[str, Any]:
    return {
        **_where(toll.row),
        "against": _where(toll.against),
        "metric": toll.metric,
        **_ratio(toll.ratio),
        "difference": toll.difference,
        "all": toll.all_samples.estimate if toll.all_samples else None,
        "all_interval": _ends(toll.all_samples),
        "suffers": toll.suffers,
        "noise": _ends(toll.noise),
        "confidence": toll.ratio.confidence if toll.ratio else None,
        "blocks": toll.ratio.n if toll.ratio else 0,
        "noisy": toll.ratio.is_noisy if toll.ratio else None,
        **_fields(toll, "noise_floor", "verdict", "more_blocks", "reason"),
        "aa": toll.row.against == toll.row.key,
    }


def _uses(study: StudyJudgement) -> dict[str, Any]:
    """Which choice for what, as the sentences and the table say it."""
    uses = Uses(study)

    def written(offer: Offer) -> dict[str, Any]:
        return {
            "choice": offer.row.choice,
            "name": offer.name,
            "op": offer.operation,
            "standing": str(offer.row.standing),
            "note": study.about.family.choices[offer.row.choice].note,
            "places": [
                {
                    "at": {name: study.study.named(name, value) for name, value in cost.place.at.items()},
                    "cost": cost.way.cost,
                    "ratio": cost.ratio,
                    "verdict": str(cost.pair.verdict) if cost.pair else None,
                }
                for cost in offer.costs
            ],
        }

    def candidate(one: Candidate, threat: str) -> dict[str, Any]:
        done = uses.mitigation(one.offers, threat)
        return {"name": one.name, "mitigates": str(done.degree), "condition": done.condition}

    return {
        "sentences": use_sentences(uses),
        "operations": [written(offer) for offer in uses.offers],
        "threats": [
            {"threat": threat, "candidates": [candidate(one, threat) for one in against.candidates]}
            for against in uses.against
            for threat in against.threats
        ],
    }


def _named(at: Mapping[str, Value], study: StudyRun) -> dict[str, Value]:
    return {name: study.named(name, value) for name, value in at.items()}


def _contrast(contrast: Contrast, study: StudyRun) -> dict[str, Any]:
    low, high = _known_ends(contrast.low, contrast.high)
    return {
        "setting": contrast.setting,
        "value": study.named(contrast.setting, contrast.value),
        "for": study.named(contrast.setting, contrast.for_value),
        "where": {name: [study.named(name, value) for value in values] for name, values in contrast.where.items()},
        "low": low,
        "high": high,
        **_fields(contrast, "least", "most", "pairs", "verdict", "more_blocks"),
    }


def _claim(result: ClaimResult, study: StudyRun) -> dict[str, Any]:
    claim, at = result.claim, _named(result.at, study)
    return {
        **_fields(claim, "says", "where", "metric", "component"),
        "published": claim.one_ratio,
        "published_range": list(claim.ratio) if claim.ratio else None,
        "order": claim.order,
        "grows": {name: [study.named(name, end) for end in ends] for name, ends in claim.grows.items()},
        "published_figures": [amount.text for amount in claim.published],
        "published_error": claim.error.text if claim.error else None,
        "published_deviation": claim.deviation.text if claim.deviation else None,
        "figures": [{"value": value, "unit": unit} for value, unit in result.values],
        **_ratio(result.ratio),
        "all": result.all_samples.estimate if result.all_samples else None,
        "rates": list(result.rates) if result.rates else None,
        "by_source": _by_source(result, study),
        "verdict": result.verdict,
        "provider": at.get("provider"),
        "server": at.get("server"),
        "setting": {name: value for name, value in at.items() if name not in ("provider", "server")},
        "note": claim.note,
        "reason": result.reason,
    }


def _by_source(result: ClaimResult, study: StudyRun) -> dict[str, Any] | None:
    if result.by_source is None:
        return None
    figures = _fields(result.by_source, "unit", "mean", "error", "deviation", "ratio", "blocks")
    return {"statistic": study.study.statistic, **figures}


def _crosstable(result: CrossTableResult, study: StudyRun) -> dict[str, Any]:
    table = result.table
    cells = [(row, [cell for column in result.columns if (cell := result.at(row, column))]) for row in result.rows]
    return {
        "title": table.title,
        "rows_are": table.rows,
        "columns_are": table.columns,
        "metric": table.metric,
        "over": _named(table.over, study),
        "where": _named(table.where, study),
        "rows": [
            {"row": study.named(table.rows, row), "cells": [_cross_cell(cell, table, study) for cell in found]}
            for row, found in cells
        ],
    }


def _factors(result: FactorsResult, study: StudyRun) -> dict[str, Any]:
    bare = result.rows[0]
    return {
        "factors": {name: [study.named(name, v) for v in values] for name, values in study.study.factors.items()},
        "at": _named({n: v for n, v in bare.coordinates.items() if n not in study.study.factors}, study),
        "costs": [{**_where(row), "cost": cost.estimate, "interval": _ends(cost)} for row, cost in result.reckoned],
        "parts": [
            {"factors": list(part.factors), "added": part.added.estimate, "interval": _ends(part.added)}
            for part in result.parts
        ],
        "beyond": result.beyond.estimate if result.beyond else None,
        "beyond_interval": _ends(result.beyond),
        **_ratio(result.ratio),
        "noisy": result.beyond.is_noisy if result.beyond else None,
        "verdict": result.verdict,
        "reason": result.reason,
    }


def _scaling(result: ScalingResult) -> dict[str, Any]:
    sides = {"cpu": result.cpu, "elapsed": result.elapsed}
    return {
        **_where(result.row),
        **_fields(result, "threads", "verdict", "reason"),
        **{
            name: {**_ratio(toll.ratio), "verdict": toll.verdict, "noisy": toll.ratio.is_noisy if toll.ratio else None}
            for name, toll in sides.items()
        },
    }


def _cross_cell(cell: CrossCell, table: CrossTable, study: StudyRun) -> dict[str, Any]:
    return {
        "column": study.named(table.columns, cell.row.coordinates[table.columns]),
        **_ratio(cell.ratio),
        **_fields(cell, "verdict", "more_blocks"),
        "cost": cell.cost.estimate if cell.cost else None,
        "cost_interval": _ends(cell.cost),
        "unit": cell.unit,
        "is_over": cell.is_over,
        "outcome": cell.row.outcome,
        "reason": cell.reason,
        **_where(cell.row),
    }


def _fields(of: object, *names: str) -> dict[str, Any]:
    """These attributes under their own names, in this order."""
    return {name: _plain(getattr(of, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    # JSON has no infinity: an end that is not known is null.
    return None if isinstance(value, float) and isinf(value) else value


def _ratio(ratio: Interval | None) -> dict[str, Any]:
    low, high = _known_ends(ratio.low, ratio.high) if ratio else (None, None)
    return {"ratio": ratio.estimate if ratio else None, "low": low, "high": high}


def _ends(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [*_known_ends(interval.low, interval.high)]


def _known_ends(low: float, high: float) -> tuple[float | None, float | None]:
    """The ends of an interval; none where there were too few blocks for one, which reaches from nought to infinity."""
    return (low, high) if isfinite(high) else (None, None)
