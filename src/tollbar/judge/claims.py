"""Claims: a published comparison, tried again here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from tollbar.families import Value
from tollbar.judge.costs import Ledger
from tollbar.judge.decisions import Terms
from tollbar.judge.measurements import rate_of
from tollbar.judge.noise import floor_for
from tollbar.judge.sources import mean_error_deviation, rate_after_first
from tollbar.judge.verdicts import BySource, ClaimResult, ClaimVerdict
from tollbar.plan.pairs import claimed, matching
from tollbar.results import Row, StudyRun
from tollbar.stats import FEWEST_BLOCKS, Interval
from tollbar.study import STATISTIC_OF, Claim, Statistic

# Published figures are rounded and often read off a chart, where a tenth is what the eye can tell: a tenth of what a
# claim says, which is how much more than the other one has. Of ×1.12 that is a hundredth, and not a tenth. The study's
# own margin is the least of it: a claim that two are alike holds where a toll between them would be free.
_TOLERANCE = 0.10


BySourceOf = Callable[[Row, Row], BySource | None]
"""A source's statistic of one cell, and its ratio to another; None where too little was measured for it."""

_STATISTICS: Mapping[Statistic, BySourceOf] = {
    "mean-error-deviation": mean_error_deviation,
    "rate-after-first": rate_after_first,
}


def claim_results(study_run: StudyRun, ledger: Ledger, terms: Terms) -> tuple[ClaimResult, ...]:
    """One result for each place where a claim can be tried, and one that says why where there is none."""
    study = study_run.study
    return tuple(
        result
        for claim in study.claims
        for result in _results(claim, ledger, terms, _by_source(claim, study.statistic))
    )


def _by_source(claim: Claim, statistic: Statistic | None) -> BySourceOf | None:
    """The statistic, for a claim that is of the same metric."""
    return _STATISTICS[statistic] if statistic and STATISTIC_OF[statistic] == claim.metric else None


def judge_ratio(ratio: Interval, published: float, margin: float) -> ClaimVerdict:
    """What becomes of a published ratio, where `ratio` is measured in the same direction and metric.

    Within `margin` of one there is no difference worth the name, and so none to be inverted.
    """
    # "0.5 times" shrinks towards one from below: seen from the other side, the rules are the same. A claim
    # that both are equal has no side to be inverted from, and any difference is more than it says.
    if published < 1 or (published == 1 and ratio.estimate < 1):
        ratio, published = _inverse(ratio), 1 / published
    low, high = _tolerated(published, margin)
    if low <= ratio.low and ratio.high <= high:
        return ClaimVerdict.STILL_TRUE
    if ratio.low > high:
        return ClaimVerdict.LARGER
    if ratio.high < low:
        return ClaimVerdict.INVERTED if ratio.high < 1 / margin else ClaimVerdict.SMALLER
    return ClaimVerdict.CANNOT_TELL


def _tolerated(published: float, margin: float) -> tuple[float, float]:
    """The ratios that are still the published one: the excess a tenth more or less, or `margin` where that is wider.

    Both ends move with what was published, without a jump; of the reciprocal ratio they are the reciprocals.
    """
    if published < 1:
        low, high = _tolerated(1 / published, margin)
        return 1 / high, 1 / low
    excess = published - 1
    low, high = 1 + excess / (1 + _TOLERANCE), 1 + excess * (1 + _TOLERANCE)
    return min(low, published / margin), max(high, published * margin)


def judge_order(ratio: Interval, order: str) -> ClaimVerdict:
    """What becomes of a claim that says only which of the two has `more` or `less`."""
    if order == "less":
        ratio = _inverse(ratio)
    if ratio.low > 1:
        return ClaimVerdict.STILL_TRUE
    return ClaimVerdict.INVERTED if ratio.high < 1 else ClaimVerdict.CANNOT_TELL


def _results(claim: Claim, ledger: Ledger, terms: Terms, by_source: BySourceOf | None) -> Iterator[ClaimResult]:
    places = list(claimed(claim, ledger.rows))
    if not places:
        yield _untried(claim, {}, _why_no_pair(claim, ledger.rows))
    for of, over, at in places:
        reason = _why_not_compared(of, over, ledger)
        untried = _untried(claim, at, reason)
        tried = untried if reason else _tried(untried, claim, of, over, ledger, terms)
        if by_source and all(ledger.why_unmeasured(row) is None for row in (of, over)):
            tried = replace(tried, by_source=by_source(of, over))
        yield tried


def _tried(untried: ClaimResult, claim: Claim, of: Row, over: Row, ledger: Ledger, terms: Terms) -> ClaimResult:
    metric = next((metric for metric in ledger.observed_metrics if metric.name == claim.metric), None)
    if metric is None:
        ratio, floor = _directed(claim, ledger.undisturbed_ratio(of, over)), floor_for(ledger, (of, over))
    else:
        # What is counted is not disturbed: the noise of costs says nothing of it.
        seen, floor = ledger.observed_ratio(of, over, metric), 1.0
        if seen is None:
            return replace(untried, reason=f"its runners observed no `{metric.name}`")
        ratio = seen
    judged = _judge(claim, ratio, terms)
    verdict = _judge(claim, widened(ratio, floor), terms) if floor is not None else ClaimVerdict.CANNOT_TELL
    reason = None
    if not ratio.is_bounded:
        reason = _too_few(of, over, ratio, ledger)
    elif floor is None:
        reason = "nothing was measured twice, so that the noise is not known"
    elif verdict is ClaimVerdict.CANNOT_TELL:
        edge = "an edge of what counts as the published ratio" if claim.ratio is not None else "one"
        what = (
            "the interval" if judged is verdict else f"the noise (what was measured twice may differ by ×{floor:.3f})"
        )
        reason = f"{what} reaches across {edge}: add blocks"
    rates = rate_of(of), rate_of(over)
    return replace(
        untried,
        ratio=ratio,
        typical=_directed(claim, ledger.typical_ratio(of, over)) if metric is None else ratio,
        verdict=verdict,
        reason=reason,
        rates=None if rates[0] is None or rates[1] is None else (rates[0], rates[1]),
    )


def _too_few(of: Row, over: Row, ratio: Interval, ledger: Ledger) -> str:
    """Why a ratio has no interval: how many blocks there are, and how many were needed if there are fewer."""
    own, others = ledger.sides(of, over)
    both = {visit.block for visit in own} & {visit.block for visit in others}
    carry = f", and {ratio.n} carry the ratio" if ratio.n < len(both) else ""
    fewest = FEWEST_BLOCKS
    needs = f", which needs {fewest}" if min(ratio.n, len(both)) < fewest else ""
    return f"{len(both)} of {len(ledger.blocks())} blocks have both sides{carry}: too few for an interval{needs}"


def widened(ratio: Interval, floor: float) -> Interval:
    """The interval that a claim's verdict is made from: never narrower than the noise floor, either way.

    A border nearer to the estimate than the twins came to one cannot be distinguished from it.
    """
    low, high = min(ratio.low, ratio.estimate / floor), max(ratio.high, ratio.estimate * floor)
    return replace(ratio, low=low, high=high)


def _judge(claim: Claim, ratio: Interval, terms: Terms) -> ClaimVerdict:
    if claim.ratio is not None:
        return judge_ratio(ratio, claim.ratio, terms.margin)
    return judge_order(ratio, claim.order or "more")


def _untried(claim: Claim, at: Mapping[str, Value], reason: str | None) -> ClaimResult:
    return ClaimResult(claim.says, claim.metric, claim.ratio, claim.order, at, claim.note, reason=reason)


def _why_no_pair(claim: Claim, rows: Sequence[Row]) -> str:
    for side in (claim.of, claim.over):
        if not matching(rows, side):
            return "no cell here has " + ", ".join(f"{name} {value}" for name, value in side.items())
    return "no two cells here are alike but for this"


def _why_not_compared(of: Row, over: Row, ledger: Ledger) -> str | None:
    for row in (of, over):
        reason = ledger.why_unmeasured(row)
        if reason is not None:
            return f"{row.title} was not measured: {reason}"
    if ledger.sides(of, over)[0]:
        return None
    if of is over:
        return "both sides are one cell, which was not measured twice in a block"
    return "no block holds both cells"


def _directed(claim: Claim, cost_ratio: Interval | None) -> Interval:
    """In the claim's own metric: what a server can answer is one over what an answer costs it."""
    assert cost_ratio is not None, "both cells were measured, and in some block together"
    return cost_ratio if claim.metric == "cost" else _inverse(cost_ratio)


def _inverse(ratio: Interval) -> Interval:
    low, high = 1 / ratio.high, 1 / ratio.low if ratio.low > 0 else math.inf
    return replace(ratio, estimate=1 / ratio.estimate, low=low, high=high)
