"""Tolls: each cell's cost against its baseline's, and how far noise alone has taken that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tollbar.judge.costs import Ledger, less, mean_by_block
from tollbar.judge.decisions import Terms, decide, more_blocks
from tollbar.judge.verdicts import Toll, Verdict
from tollbar.results import Row
from tollbar.stats import hodges_lehmann, ratio_interval


def tolls(ledger: Ledger, terms: Terms) -> tuple[Toll, ...]:
    """One toll for each cell that has a baseline, in the rows' order.

    A baseline's own toll is its twin's cost over its own: what a true ×1.00 looks like on this machine.
    """
    floors = _floors(ledger, terms)
    return tuple(_toll(row, ledger, floors, terms) for row in ledger.rows if row.against is not None)


def noise_floor(ledger: Ledger, terms: Terms) -> float | None:
    """The worst floor among a study's baselines; None where none of them has one."""
    return max((f for f in _floors(ledger, terms).values() if f is not None), default=None)


def floor(ledger: Ledger, terms: Terms, baselines: Iterable[Row]) -> float | None:
    """The ratio of twins, as a ratio above one: what this lab makes of a true ×1.00.

    The estimate, and not the far end of its interval: a toll's own interval holds the same noise already,
    and noise that is counted twice hides differences that are there. Over several baselines it is the ratio of
    the mean over them in each block: the noise of what was averaged alike.
    None where there are too few twins to tell.
    """
    twins = [ledger.log_ratios(row, row) for row in baselines]
    pooled = mean_by_block([t for t in twins if t]) if any(twins) else {}
    if not pooled:
        return None
    ratio = ratio_interval(list(pooled.values()), confidence=terms.confidence)
    return max(ratio.estimate, 1 / ratio.estimate) if ratio.is_bounded else None


def _floors(ledger: Ledger, terms: Terms) -> Mapping[str, float | None]:
    """Each baseline's floor, by its key."""
    baselines = dict.fromkeys(row.against for row in ledger.rows)
    return {key: floor(ledger, terms, [row]) for key, row in ledger.by_key.items() if key in baselines}


def _toll(row: Row, ledger: Ledger, floors: Mapping[str, float | None], terms: Terms) -> Toll:
    baseline = ledger.by_key.get(row.against or "")
    reason = _why_not(row, baseline, ledger)
    if reason is not None or baseline is None:
        return Toll(row, baseline or row, ledger.metric, None, None, Verdict.NOT_MEASURED, None, None, reason)
    ratio = ratio_interval(list(ledger.log_ratios(row, baseline).values()), confidence=terms.confidence)
    own = ledger.twin_costs(row) if row is baseline else ledger.costs(row)
    difference = hodges_lehmann(list(less(own, ledger.costs(baseline)).values()))
    noise = floors[baseline.key]
    verdict = decide(ratio, noise, terms)
    more = more_blocks(ratio, noise, terms) if verdict is Verdict.UNCLEAR else None
    return Toll(row, baseline, ledger.metric, ratio, difference, verdict, noise, more, None)


def _why_not(row: Row, baseline: Row | None, ledger: Ledger) -> str | None:
    own = ledger.why_nothing(row)
    if own is not None:
        return own
    if baseline is None:
        return f"its baseline, {row.against}, is not among the cells"
    its = ledger.why_nothing(baseline)
    if its is not None:
        return f"its baseline was not measured: {its}"
    if not ledger.log_ratios(row, baseline):
        return "it has no second trial" if row is baseline else "no block holds both it and its baseline"
    return None
