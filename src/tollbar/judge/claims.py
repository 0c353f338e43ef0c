"""Claims: a published comparison, tried again here."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tollbar.catalogue import Value
from tollbar.judge.costs import Ledger
from tollbar.judge.decisions import Terms
from tollbar.judge.verdicts import ClaimResult, ClaimVerdict
from tollbar.results import Row, StudyRun
from tollbar.stats import Interval, fewest_blocks, ratio_interval
from tollbar.study import Claim, Coordinates, matches

# Published figures are rounded and often read off a chart, where a tenth is what the eye can tell.
_TOLERANCE = 0.10


def claim_results(study_run: StudyRun, ledger: Ledger, terms: Terms) -> tuple[ClaimResult, ...]:
    """One result for each place where a claim can be tried, and one that says why where there is none."""
    return tuple(result for claim in study_run.study.claims for result in _results(claim, ledger, terms))


def judge_ratio(ratio: Interval, published: float, margin: float) -> ClaimVerdict:
    """What becomes of a published ratio, where `ratio` is measured in the same direction and metric.

    Within `margin` of one there is no difference worth the name, and so none to be inverted.
    """
    # "0.5 times" shrinks towards one from below: seen from the other side, the rules are the same. A claim
    # that both are equal has no side to be inverted from, and any difference is more than it says.
    if published < 1 or (published == 1 and ratio.estimate < 1):
        ratio, published = _inverse(ratio), 1 / published
    low, high = published / (1 + _TOLERANCE), published * (1 + _TOLERANCE)
    if low <= ratio.low and ratio.high <= high:
        return ClaimVerdict.STILL_TRUE
    if ratio.low > high:
        return ClaimVerdict.LARGER
    if ratio.high < low:
        return ClaimVerdict.INVERTED if ratio.high < 1 / margin else ClaimVerdict.SMALLER
    return ClaimVerdict.CANNOT_TELL


def judge_order(ratio: Interval, order: str) -> ClaimVerdict:
    """What becomes of a claim that says only which of the two has `more` or `less`."""
    if order == "less":
        ratio = _inverse(ratio)
    if ratio.low > 1:
        return ClaimVerdict.STILL_TRUE
    return ClaimVerdict.INVERTED if ratio.high < 1 else ClaimVerdict.CANNOT_TELL


def _results(claim: Claim, ledger: Ledger, terms: Terms) -> Iterator[ClaimResult]:
    places = list(_places(claim, ledger.rows))
    if not places:
        yield _cannot_tell(claim, {}, _why_nowhere(claim, ledger.rows))
    for of, over, at in places:
        logs = list(ledger.log_ratios(of, over).values())
        reason = _why_not(of, over, logs, ledger)
        yield _cannot_tell(claim, at, reason) if reason else _result(claim, at, logs, terms)


def _result(claim: Claim, at: Mapping[str, Value], cost_logs: Sequence[float], terms: Terms) -> ClaimResult:
    # Throughput is one over cost; negated logarithms keep the interval exact.
    logs = [-x for x in cost_logs] if claim.metric == "throughput" else cost_logs
    ratio = ratio_interval(logs, confidence=terms.confidence)
    if claim.ratio is not None:
        verdict = judge_ratio(ratio, claim.ratio, terms.margin)
    else:
        verdict = judge_order(ratio, claim.order or "more")
    reason = None
    if not ratio.is_bounded:
        reason = f"{ratio.n} blocks are too few: at least {fewest_blocks(terms.confidence)}"
    elif verdict is ClaimVerdict.CANNOT_TELL:
        edge = "an edge of what counts as the published ratio" if claim.ratio is not None else "one"
        reason = f"the interval reaches across {edge}: add blocks"
    return ClaimResult(claim.says, claim.ratio, claim.order, ratio, verdict, at, claim.note, reason)


def _cannot_tell(claim: Claim, at: Mapping[str, Value], reason: str) -> ClaimResult:
    return ClaimResult(claim.says, claim.ratio, claim.order, None, ClaimVerdict.CANNOT_TELL, at, claim.note, reason)


def _places(claim: Claim, rows: Sequence[Row]) -> Iterator[tuple[Row, Row, Mapping[str, Value]]]:
    """Every two cells that the claim is about, and where they stand beyond what it says.

    Alike in all that the claim does not name. A setting that means nothing to one of the two (a key size,
    to a password hash) cannot be alike and does not stand in the way.
    """
    ofs, overs = _matching(rows, claim.of), _matching(rows, claim.over)
    named = {*claim.of, *claim.over}
    everywhere = [
        name
        for name in (ofs[0].coordinates if ofs else {})
        if name not in named and all(name in row.coordinates for row in (*ofs, *overs))
    ]
    # By what every cell has, so that a thousand cells are not all held against one another.
    buckets: dict[tuple[Value, ...], list[Row]] = defaultdict(list)
    for over in overs:
        buckets[tuple(over.coordinates[name] for name in everywhere)].append(over)
    for of in ofs:
        for over in buckets.get(tuple(of.coordinates[name] for name in everywhere), ()):
            if all(over.coordinates.get(n, v) == v for n, v in of.coordinates.items() if n not in named):
                # What the claim leaves open on either side; where it leaves both open they are alike.
                at = {n: v for n, v in over.coordinates.items() if n not in claim.over}
                at |= {n: v for n, v in of.coordinates.items() if n not in claim.of}
                yield of, over, at


def _matching(rows: Sequence[Row], where: Coordinates) -> list[Row]:
    return [r for r in rows if all(matches(r.coordinates.get(n), (v,)) for n, v in where.items())]


def _why_nowhere(claim: Claim, rows: Sequence[Row]) -> str:
    for side in (claim.of, claim.over):
        if not _matching(rows, side):
            return "no cell here has " + ", ".join(f"{name} {value}" for name, value in side.items())
    return "no two cells here are alike but for this"


def _why_not(of: Row, over: Row, logs: Sequence[float], ledger: Ledger) -> str | None:
    for row in (of, over):
        nothing = ledger.why_nothing(row)
        if nothing is not None:
            return f"{row.title} was not measured: {nothing}"
    if logs:
        return None
    if of is over:
        return "both sides are one cell, which was not measured twice in a block"
    return "no block holds both cells"


def _inverse(ratio: Interval) -> Interval:
    low, high = 1 / ratio.high, 1 / ratio.low if ratio.low > 0 else math.inf
    return Interval(1 / ratio.estimate, low, high, ratio.confidence, ratio.n)
