"""Tolls: each cell's cost against its baseline's."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tollbar.judge.costs import Ledger
from tollbar.judge.decisions import Terms, decide, more_blocks
from tollbar.judge.noise import apart, noise_for, reach
from tollbar.judge.verdicts import Toll, Verdict
from tollbar.results import Row
from tollbar.stats import Interval, Moments
from tollbar.study import Coordinates


def tolls(ledger: Ledger, terms: Terms, baseline: Coordinates) -> tuple[Toll, ...]:
    """One toll for each cell, in the rows' order; where there is none to be had, with the reason.

    A baseline's own toll is its twin's cost over its own: what a true ×1.00 looks like on this machine.
    """
    return tuple(_toll(row, ledger, terms, baseline) for row in ledger.rows)


def _toll(row: Row, ledger: Ledger, terms: Terms, fixed: Coordinates) -> Toll:
    baseline = ledger.by_key.get(row.against) if row.against is not None else None
    noise = noise_for(ledger, (row,)) if baseline else None
    twins, floor = (apart(noise), reach(noise)) if noise else (None, None)
    reason = _why_not_compared(row, baseline, ledger, fixed)
    toll = Toll(row, baseline or row, ledger.metric, noise_floor=twins, reason=reason, noise=noise)
    ratio = ledger.undisturbed_ratio(row, baseline) if reason is None and baseline else None
    if ratio is None or baseline is None:
        return toll
    typical = ledger.typical_ratio(row, baseline)
    verdict = decide(ratio, floor, terms)
    return replace(
        toll,
        ratio=ratio,
        typical=typical,
        difference=_difference(ratio, baseline, ledger),
        verdict=verdict,
        more_blocks=more_blocks(ratio, floor, terms) if verdict is Verdict.UNCLEAR else None,
        suffers=suffers(ratio, typical, terms),
        quiet_blocks=ledger.quiet_blocks(row, baseline),
    )


def suffers(ratio: Interval, typical: Interval | None, terms: Terms) -> Literal["more", "less"] | None:
    """Whether what disturbs the machine makes this cell dearer by more, or less, than its baseline.

    The two ratios are apart by more than is worth telling, and each is outside the other's interval.
    """
    if typical is None or ratio.moments is Moments.AS_DISTURBED or not (ratio.is_bounded and typical.is_bounded):
        return None
    change = typical.estimate / ratio.estimate
    if change > terms.margin and typical.estimate > ratio.high and typical.low > ratio.estimate:
        return "more"
    if change < 1 / terms.margin and typical.estimate < ratio.low and typical.high < ratio.estimate:
        return "less"
    return None


def _difference(ratio: Interval, baseline: Row, ledger: Ledger) -> float | None:
    """Nanoseconds per operation that the ratio comes to, at the baseline's cost: of the ratio's own sign."""
    its = ledger.undisturbed(baseline)
    return (ratio.estimate - 1) * its.estimate if its else None


def _why_not_compared(row: Row, baseline: Row | None, ledger: Ledger, fixed: Coordinates) -> str | None:
    own = ledger.why_unmeasured(row)
    if own is not None:
        return own
    if row.against is None:
        at = ", ".join(f"{name} {value}" for name, value in fixed.items())
        return f"it has no baseline: no cell differs from it in nothing but {at}"
    if baseline is None:
        return f"its baseline, {row.against}, is not among the cells"
    its = ledger.why_unmeasured(baseline)
    if its is not None:
        return f"its baseline was not measured: {its}"
    if not ledger.sides(row, baseline)[0]:
        return "it has no second trial" if row is baseline else "no block holds both it and its baseline"
    return None
