"""Claims: published comparisons, tested again here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tollbar.analysis.by_source import BySource, mean_error_deviation, rate_after_first
from tollbar.analysis.decisions import Terms, reach
from tollbar.analysis.ledger import Ledger, Quantity
from tollbar.analysis.measurements import Limit, limit_of, rate_of
from tollbar.catalog.families import Value
from tollbar.core.intervals import FEWEST_BLOCKS, Interval, Moments, quotient
from tollbar.core.metrics import METRICS
from tollbar.core.records import Outcome
from tollbar.results import Row, StudyRun
from tollbar.study import STATISTIC_OF, Claim, Statistic
from tollbar.study.plan.pairs import claimed, matching
from tollbar.study.values import OF_DIFFERENCES

# Published figures are rounded and often read off a chart, to about a tenth. The tolerance is a tenth of the claimed
# excess over the other side: for ×1.12 a hundredth, not a tenth. It is at least the study's margin, so that a claim of
# equality holds where a toll would be free.
_TOLERANCE = 0.10


class ClaimVerdict(StrEnum):
    """Outcome of testing a published ratio."""

    STILL_TRUE = "still true"
    SMALLER = "smaller"
    LARGER = "larger"
    INVERTED = "inverted"
    CANNOT_TELL = "cannot tell"
    NOT_TESTABLE = "not testable here"
    """Claim that cannot be tested here; the reason is given."""
    NOT_JUDGED = "not judged"
    """Absolute figure, printed next to today's: a figure of another machine proves nothing about this one."""


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """Published claim with the same quantity measured on this machine."""

    claim: Claim
    at: Mapping[str, Value]
    """Coordinates that both cells share: the provider, and the settings that the claim does not fix."""
    ratio: Interval | None = None
    """Ratio in the claim's own direction and metric, for example one capacity over the other."""
    all_samples: Interval | None = None
    """Ratio over all samples, noisy ones included."""
    verdict: ClaimVerdict = ClaimVerdict.CANNOT_TELL
    reason: str | None = None
    values: tuple[tuple[float, str], ...] = ()
    """Claim's metric of the first cell, and of the second if the claim compares two, each with its unit."""
    rates: tuple[float, float] | None = None
    """Requests a second at which both sides were measured."""
    by_source: BySource | None = None
    """Claim's first cell by the statistic that its source prints."""
    ends: tuple[Interval, Interval] | None = None
    """Ratios of both cells at the two values of a claim that `grows`."""


BySourceOf = Callable[[Row, Row], BySource | None]
"""Source's statistic of one cell, and its ratio to another; None if too little was measured for it."""

_STATISTICS: Mapping[Statistic, BySourceOf] = {
    "mean-error-deviation": mean_error_deviation,
    "rate-after-first": rate_after_first,
}


def claim_results(study_run: StudyRun, ledger: Ledger, terms: Terms) -> tuple[ClaimResult, ...]:
    """Return one result for each place where a claim can be tested, or one with the reason if there is none."""
    study = study_run.study
    return tuple(
        result
        for claim in study.claims
        for result in _results(claim, ledger, terms, _by_source(claim, study.statistic))
    )


def _by_source(claim: Claim, statistic: Statistic | None) -> BySourceOf | None:
    """Return the source's statistic if it is of the claim's metric."""
    return _STATISTICS[statistic] if statistic and STATISTIC_OF[statistic] == claim.metric else None


def judge_ratio(ratio: Interval, published: tuple[float, float], margin: float) -> ClaimVerdict:
    """Return the verdict on a published range of ratios (least, most); `ratio` is measured in the same direction.

    A ratio within `margin` of one is no relevant difference, and cannot be inverted.
    """
    least, most = published
    # Ratios below one, such as ×0.5, are judged by their inverse, by the same rules. A claim that both are equal has no
    # side to be inverted from: any difference is larger than it claims.
    if most < 1 or least < 1 == most or (least <= 1 and ratio.estimate < 1):
        ratio, least, most = ratio.inverse, 1 / most, 1 / least
    low, high = _tolerated(least, margin)[0], _tolerated(most, margin)[1]
    if low <= ratio.low and ratio.high <= high:
        return ClaimVerdict.STILL_TRUE
    if ratio.low > high:
        return ClaimVerdict.LARGER
    if ratio.high < low:
        return ClaimVerdict.INVERTED if ratio.high < 1 / margin else ClaimVerdict.SMALLER
    return ClaimVerdict.CANNOT_TELL


def _tolerated(published: float, margin: float) -> tuple[float, float]:
    """Return the range of ratios that count as the published one: its excess ± a tenth, or `margin` if that is wider.

    Both ends change with the published ratio without a jump; for the reciprocal ratio they are the reciprocals. The
    tenth is a factor of 1.1 in either direction.
    """
    if published < 1:
        low, high = _tolerated(1 / published, margin)
        return 1 / high, 1 / low
    excess = published - 1
    low, high = 1 + excess / (1 + _TOLERANCE), 1 + excess * (1 + _TOLERANCE)
    return min(low, published / margin), max(high, published * margin)


def judge_order(ratio: Interval, order: str, margin: float) -> ClaimVerdict:
    """Return the verdict on a claim that gives only an order: which of the two has `more` or `less`.

    The claim gives no amount, so any interval beyond one is *still true*. Another interval within `margin` of one is
    *smaller*.
    """
    if order == "less":
        ratio = ratio.inverse
    if ratio.low > 1:
        return ClaimVerdict.STILL_TRUE
    if ratio.high < 1 / margin:
        return ClaimVerdict.INVERTED
    return ClaimVerdict.SMALLER if 1 / margin <= ratio.low and ratio.high <= margin else ClaimVerdict.CANNOT_TELL


def judge_no_wider(ratio: Interval, margin: float) -> ClaimVerdict:
    """Return the verdict on a claim that a difference has not increased; `ratio` is the second one over the first.

    A difference that shrinks agrees with it. An increase within `margin` is none.
    """
    if ratio.high <= margin:
        return ClaimVerdict.STILL_TRUE
    return ClaimVerdict.INVERTED if ratio.low > margin else ClaimVerdict.CANNOT_TELL


def _results(claim: Claim, ledger: Ledger, terms: Terms, by_source: BySourceOf | None) -> Iterator[ClaimResult]:
    if claim.untestable is not None:
        yield ClaimResult(claim, {}, verdict=ClaimVerdict.NOT_TESTABLE, reason=claim.untestable)
    elif not claim.is_judged:
        yield from _figures(claim, ledger, by_source)
    elif claim.grows:
        yield from _grown(claim, ledger, terms)
    else:
        yield from _compared(claim, ledger, terms, by_source)


def _figures(claim: Claim, ledger: Ledger, by_source: BySourceOf | None) -> Iterator[ClaimResult]:
    """Yield the published figure of one cell with the measured value of each matching cell."""
    rows = matching(ledger.rows, claim.of)
    if not rows:
        yield ClaimResult(claim, {}, verdict=ClaimVerdict.NOT_JUDGED, reason=_why_no_pair(claim, ledger.rows))
    for row in rows:
        reason = ledger.why_unmeasured(row)
        value = ledger.value(row, _quantity(claim)) if reason is None else None
        yield ClaimResult(
            claim,
            {name: at for name, at in row.coordinates.items() if name not in claim.of},
            verdict=ClaimVerdict.NOT_JUDGED,
            reason=reason,
            values=(value,) if value else (),
            by_source=by_source(row, row) if by_source and reason is None else None,
        )


def _compared(claim: Claim, ledger: Ledger, terms: Terms, by_source: BySourceOf | None) -> Iterator[ClaimResult]:
    places = list(claimed(claim, ledger.rows))
    if not places:
        yield ClaimResult(claim, {}, reason=_why_no_pair(claim, ledger.rows))
    for of, over, at in places:
        tried = _tried(ClaimResult(claim, at), of, over, ledger, terms)
        if by_source and all(ledger.why_unmeasured(row) is None for row in (of, over)):
            tried = replace(tried, by_source=by_source(of, over))
        yield tried


def _grown(claim: Claim, ledger: Ledger, terms: Terms) -> Iterator[ClaimResult]:
    """Yield the ratio at the second value of a growing coordinate over that at the first, for each place with both."""
    places: dict[tuple[tuple[str, Value], ...], dict[int, tuple[Row, Row]]] = {}
    for of, over, at in claimed(claim, ledger.rows):
        elsewhere = tuple(sorted((name, value) for name, value in at.items() if name not in claim.grows))
        for end in (0, 1):
            if all(of.coordinates.get(name) == ends[end] for name, ends in claim.grows.items()):
                places.setdefault(elsewhere, {})[end] = of, over
    if not places:
        yield ClaimResult(claim, {}, reason=_why_no_pair(claim, ledger.rows))
    for elsewhere, pairs in places.items():
        untried = ClaimResult(claim, dict(elsewhere))
        if len(pairs) < 2:
            yield replace(untried, reason="only one of both sizes was measured here")
            continue
        yield _between(untried, pairs[0], pairs[1], ledger, terms)


def _between(
    untried: ClaimResult, before: tuple[Row, Row], now: tuple[Row, Row], ledger: Ledger, terms: Terms
) -> ClaimResult:
    """Return the change of a ratio from the first of two places to the second."""
    claim, what, pairs = untried.claim, _quantity(untried.claim), (before, now)
    found = [ledger.compare(*pair, what) for pair in pairs]
    # Reasons why something was not measured come before limits on the rest.
    for reason in (*(toll.reason for toll in found), *(_limited(what, pair) for pair in pairs)):
        if reason is not None:
            return replace(untried, reason=reason)
    (first, first_all), (second, second_all) = ((toll.ratio, toll.all_samples) for toll in found)
    if first is None or first_all is None or second is None or second_all is None:
        return replace(untried, reason=_ALL_UNKNOWN)
    noises = [toll.noise for toll in found]
    if noises[0] is None or noises[1] is None:
        return replace(untried, reason="there is no A/A pair, so the noise is not known")
    if Moments.ALL in (first.moments, second.moments):
        # A quotient of a quiet and a noisy ratio would contain the machine's noise: take all samples on both sides.
        first, second = first_all, second_all
    untried = replace(untried, ends=(first, second))
    reaches = [reach(noise) for noise in noises if noise]
    sides = first, second, first_all, second_all
    if claim.order in OF_DIFFERENCES:
        if any(side.low < 1 < side.high for side in sides):
            return replace(untried, reason="the order of the two is not decided at both sizes; add blocks")
        if any((side.estimate < 1) != (first.estimate < 1) for side in sides):
            said = f"the ratio is ×{first.estimate:.3g} at the first size and ×{second.estimate:.3g} at the second"
            return replace(untried, reason=f"{said}, so the order of the two changes")
        if first.estimate < 1:
            first, second, first_all, second_all = (side.inverse for side in sides)
    ratio, all_samples = quotient(second, first), quotient(second_all, first_all)
    why = _reversed(claim, untried.ends, reaches, terms)
    if why is not None:
        verdict = ClaimVerdict.INVERTED
    else:
        # Noise may have moved the two ratios in opposite directions, so their reaches multiply.
        verdict = _judge(claim, widened(ratio, math.prod(reaches)), terms)
        undecided = verdict is ClaimVerdict.CANNOT_TELL
        why = "the interval or the noise crosses a limit of the claim; add blocks" if undecided else None
    return replace(untried, ratio=ratio, all_samples=all_samples, verdict=verdict, reason=why)


def _reversed(
    claim: Claim, ends: tuple[Interval, Interval] | None, reaches: Sequence[float], terms: Terms
) -> str | None:
    """Return where the order of the two cells is the reverse of the published one; None: nowhere, or no order is known.

    A difference that grows the other way round is not the published difference.
    """
    if claim.throughout is None or ends is None:
        return None
    sides = [
        judge_order(widened(ratio, floor), claim.throughout, terms.margin) is ClaimVerdict.INVERTED
        for ratio, floor in zip(ends, reaches, strict=True)
    ]
    where = {(True, True): "both values", (True, False): "the first value", (False, True): "the second value"}
    at = where.get((sides[0], sides[1]))
    return f"at {at} the order of the two is the reverse of the published one" if at else None


_ALL_UNKNOWN = "its ratio over all samples is not known"


def _tried(untried: ClaimResult, of: Row, over: Row, ledger: Ledger, terms: Terms) -> ClaimResult:
    claim, what = untried.claim, _quantity(untried.claim)
    toll = ledger.compare(of, over, what)
    ratio = toll.ratio
    if ratio is None or toll.all_samples is None:
        return replace(untried, reason=toll.reason or _ALL_UNKNOWN)
    floor = reach(toll.noise) if toll.noise else None
    judged = _judge(claim, ratio, terms)
    verdict = _judge(claim, widened(ratio, floor), terms) if floor is not None else ClaimVerdict.CANNOT_TELL
    reason = None
    if limited := _limited(what, (of, over)):
        verdict, reason = ClaimVerdict.CANNOT_TELL, limited
    elif not ratio.is_bounded:
        reason = _too_few(of, over, ratio, ledger)
    elif floor is None:
        reason = "there is no A/A pair, so the noise is not known"
    elif verdict is ClaimVerdict.CANNOT_TELL:
        edge = "a limit of the published ratio" if claim.ratio is not None else "×1, or the threshold below it"
        reaches = "the interval" if judged is verdict else f"the noise (A/A pairs may differ by ×{floor:.3f})"
        reason = f"{reaches} crosses {edge}; add blocks"
    rates = rate_of(of), rate_of(over)
    values = ledger.value(of, what), ledger.value(over, what)
    return replace(
        untried,
        ratio=ratio,
        all_samples=toll.all_samples,
        verdict=verdict,
        reason=reason,
        values=tuple(value for value in values if value is not None),
        rates=None if rates[0] is None or rates[1] is None else (rates[0], rates[1]),
    )


def _quantity(claim: Claim) -> Quantity:
    return Quantity(claim.metric, claim.component)


def _limited(what: Quantity, rows: Sequence[Row]) -> str | None:
    """Return why a load's metric reflects little of the servers; None if it reflects them, or is another metric."""
    if not what.is_noticed:
        return None
    for row in rows:
        limit = limit_of([trial for trial in row.trials if trial.outcome is Outcome.OK])
        # A server with idle time could answer more requests, but answers no slower because of it.
        if limit is not None and (limit is not Limit.NOT_SATURATED or what.metric == "throughput"):
            return f"{row.title}: {limit}, so its {METRICS[what.metric].title} depends on more than the server"
    return None


def _too_few(of: Row, over: Row, ratio: Interval, ledger: Ledger) -> str:
    """Return why a ratio has no interval: the number of blocks, and the number needed if there are fewer."""
    own, others = ledger.sides(of, over)
    both = own.blocks & others.blocks
    carry = f", of which {ratio.n} count" if ratio.n < len(both) else ""
    fewest = FEWEST_BLOCKS
    needs = f", which needs {fewest}" if min(ratio.n, len(both)) < fewest else ""
    return f"{len(both)} of {len(ledger.blocks())} blocks have both sides{carry}: too few for an interval{needs}"


def widened(ratio: Interval, floor: float) -> Interval:
    """Return the interval for a claim's verdict: never narrower than the noise floor on either side of the estimate.

    A border nearer to the estimate than noise may reach cannot be distinguished from it.
    """
    low, high = min(ratio.low, ratio.estimate / floor), max(ratio.high, ratio.estimate * floor)
    return replace(ratio, low=low, high=high)


def _judge(claim: Claim, ratio: Interval, terms: Terms) -> ClaimVerdict:
    if claim.ratio is not None:
        return judge_ratio(ratio, claim.ratio, terms.margin)
    if claim.order == "no-wider":
        return judge_no_wider(ratio, terms.margin)
    # For `wider` the ratio is one of differences, which must be more.
    return judge_order(ratio, "less" if claim.order == "less" else "more", terms.margin)


def _why_no_pair(claim: Claim, rows: Sequence[Row]) -> str:
    for side in (claim.of, claim.over):
        if side and not matching(rows, side):
            return "no cell here has " + ", ".join(f"{name} {value}" for name, value in side.items())
    return "no two cells here differ only in this"
