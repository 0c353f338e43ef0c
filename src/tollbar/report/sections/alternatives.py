"""Alternatives to the answer: cheaper and stronger ones, and a small chart of their costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tollbar.analysis import Verdict
from tollbar.core.words import capitalised, quoted
from tollbar.report.blocks import Choices, CostBar
from tollbar.report.costs import cost_words
from tollbar.report.names import labels, varying
from tollbar.report.numbers import NOISY_MARK
from tollbar.report.sections.against import against_baseline
from tollbar.report.sections.steps import MOST_STEPS, is_below
from tollbar.report.sections.telling import Telling
from tollbar.report.ways import Place, Way, told_by

# Bars of a small chart.
MOST_BARS = 5
NOT_TOLD = "may equal the first (joint intervals)"


def choices(telling: Telling, short: str) -> Choices:
    """Return the short answer, with its certainty, the gains of alternatives and the costs in one place.

    The place is the first that has an answer.
    """
    if telling.study.about.family.is_self_test:
        return Choices(against_baseline(telling.study)[0])
    said = Choices(f"{short}.")
    finding = next((finding for finding in telling.findings if finding.first is not None), None)
    if finding is None or telling.is_of_many_choices:
        return said
    place = finding.places[0]
    best, rest = place.answer, telling.others(place)
    assert best is not None
    adds = telling.stronger(place)
    steps = [f"{_purpose(telling, place, way, gains)}: {telling.compared(way, best)}" for way, gains in adds]
    cheaper = [telling.cheaper(place)] if telling.cheaper(place) else []
    # The first screen has room for two more sentences a question in addition to its order.
    steps = steps[: MOST_STEPS - len(cheaper)]
    if not steps and not cheaper:
        steps = [telling.compared(way, best) for way in rest[-1 if telling.of_one_standing else 0 :][:1]]
    head = telling.head(place) if len(telling.places) > 1 else ""
    # Another operation or library has another order, and the short answer names several.
    steps = [
        telling.ranked(place, quoted(finding.first or ""), f"{head}: ") if head else telling.ranked(place, "it"),
        *cheaper,
        *steps,
    ]
    shown = [best, *(way for way, _ in adds)]
    shown += [way for way in rest if way not in shown][: max(MOST_BARS - len(shown), 0)]
    some = f"; {len(shown)} of {len(place.good)}" if len(shown) < len(place.good) else ""
    bars = _bars(telling, [best, *(way for way in rest if way in shown)]) if rest else ()
    # The table's interval of each comparison is by itself, and narrower.
    hollow = f"; hollow: {NOT_TOLD}" if not all(bar.is_told for bar in bars) else ""
    noisy = f"; {NOISY_MARK} noisy: compare ratios" if any(way.is_noisy for way in shown) else ""
    return replace(
        said,
        steps=[f"{capitalised(step)}." for step in steps],
        bars=bars,
        caption=f"{cost_words(telling.study).title}{f': {head}' if head else ''}{some}{hollow}{noisy}",
    )


def _purpose(telling: Telling, place: Place, way: Way, gains: Sequence[str]) -> str:
    """Return the purpose of an alternative, with its standing if one in a lower standing serves as well at less."""
    bits = way.row.strength if any(gain.endswith(" bits") for gain in gains) else None
    lesser = [one for one in telling.others(place) if one.cost < way.cost and is_below(one, way)]
    serves = any(
        not {*gains} & {*telling.lost(one, way)} and (bits is None or (one.row.strength or 0) >= bits) for one in lesser
    )
    # Approved ones are recommended or acceptable, so the better of two is recommended.
    by = " by a recommended option" if serves and "recommended" not in gains else ""
    return f"{telling.purpose(way, gains)}{by}"


def _bars(telling: Telling, ways: Sequence[Way]) -> tuple[CostBar, ...]:
    largest = max(way.cost for way in ways)
    vary = varying([way.row for way in ways])
    told = [name for name in told_by(telling.study, telling.options) if name in vary]
    name = labels(telling.study, told or ["choice"], whole=True)
    pairs = [telling.pair(way.row, ways[0].row) for way in ways]
    return tuple(
        CostBar(
            name(way.row),
            way.row.standing,
            way.words,
            way.cost / largest,
            way is ways[0] or (pair is not None and pair.verdict in (Verdict.COSTS, Verdict.SAVES)),
        )
        for way, pair in zip(ways, pairs, strict=True)
    )
