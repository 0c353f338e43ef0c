"""Alternatives to the answer: cheaper and stronger ones, and a small chart of their costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tollbar.analysis import Verdict
from tollbar.core.words import capitalised, quoted
from tollbar.report.blocks import Choices, CostBar
from tollbar.report.costs import cost_words
from tollbar.report.names import labels, varying
from tollbar.report.numbers import NOISY_MARK, ratio_range
from tollbar.report.sections.against import against_baseline
from tollbar.report.sections.steps import CANNOT_DISTINGUISH, MOST_STEPS, times_words
from tollbar.report.sections.telling import Telling
from tollbar.report.ways import Way, told_by

# Bars of a small chart.
MOST_BARS = 5


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
    steps = [f"{telling.purpose(way, gains)}: {_beside_all(telling, way, best)}" for way, gains in adds]
    cheaper = [telling.cheaper(place)] if telling.cheaper(place) else []
    # The first screen has room for two more sentences a question in addition to its order.
    steps = steps[: MOST_STEPS - len(cheaper)]
    if not steps and not cheaper:
        steps = [_beside_all(telling, way, best) for way in rest[-1 if telling.of_one_standing else 0 :][:1]]
    head = telling.head(place) if len(telling.places) > 1 else ""
    steps = [telling.ranked(place, "it" if not head else quoted(finding.first or "")), *cheaper, *steps]
    shown = [best, *(way for way, _ in adds)]
    shown += [way for way in rest if way not in shown][: max(MOST_BARS - len(shown), 0)]
    some = f"; {len(shown)} of {len(place.good)}" if len(shown) < len(place.good) else ""
    bars = _bars(telling, [best, *(way for way in rest if way in shown)]) if rest else ()
    hollow = "; hollow: not shown to differ from the first" if not all(bar.is_told for bar in bars) else ""
    noisy = f"; {NOISY_MARK} noisy: compare ratios" if any(way.is_noisy for way in shown) else ""
    return replace(
        said,
        steps=[f"{capitalised(step)}." for step in steps],
        bars=bars,
        caption=f"{cost_words(telling.study).title}{f': {head}' if head else ''}{some}{hollow}{noisy}",
    )


def _beside_all(telling: Telling, way: Way, best: Way) -> str:
    """Return `Telling.compared` with the interval of the ratio."""
    pair, said = telling.pair(way.row, best.row), telling.compared(way, best)
    if pair is None or pair.ratio is None:
        return said
    unclear = f"; {CANNOT_DISTINGUISH}" if pair.verdict is Verdict.UNCLEAR else ""
    said = said.removesuffix(times_words(pair)).removesuffix(f" ({CANNOT_DISTINGUISH})")
    return f"{said} ({ratio_range([pair.ratio])}{unclear})"


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
