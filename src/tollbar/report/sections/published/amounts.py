"""Published times of an operation next to the same times here, with the error that the source prints."""

from __future__ import annotations

from tollbar.analysis import ClaimResult
from tollbar.core import units
from tollbar.report.blocks import Chart
from tollbar.report.chart import Dot, Dots, scale_over, spoken
from tollbar.report.numbers import amount
from tollbar.report.sections.published.figures import TIMES
from tollbar.report.sections.published.lines import Group
from tollbar.report.sections.published.tables import numbered_lines
from tollbar.study import Amount


def amounts_chart(group: Group) -> Chart | None:
    """Return the published times of a group's claims next to today's; None if the source printed none.

    A mean that is measured by the source's own statistic has its error as interval.
    """
    dots = [dot for number, line in numbered_lines(group) if (dot := _dot(number, line.result)) is not None]
    if not dots:
        return None
    scale = scale_over("time of one operation, published and here", dots, "ns")
    letters = max(len(dot.label) for dot in dots)
    return Chart("", f"Published times and the same times here. {spoken(dots)}.", Dots(dots, scale), letters)


def _dot(number: str, result: ClaimResult) -> Dot | None:
    claim = result.claim
    # The figures of a ratio are those of other claims, unless the source prints an error with them.
    if not claim.published or (claim.is_judged and claim.error is None):
        return None
    then_ns = nanoseconds(claim.published[0])
    if then_ns is None:
        return None
    own = result.by_source
    value_ns, unit = (own.mean, own.unit) if own else next(iter(result.values), (None, ""))
    here_ns = value_ns if unit == "ns/op" else None
    error_ns = own.error if own and here_ns is not None else None
    said = claim.says.rpartition(": ")[0] or claim.says
    return Dot(
        label=f"{number}  {said}",
        note=amount(here_ns, "ns") if here_ns is not None else "not measured",
        value=here_ns,
        low=here_ns - error_ns if here_ns is not None and error_ns is not None else None,
        high=here_ns + error_ns if here_ns is not None and error_ns is not None else None,
        then=then_ns,
    )


def nanoseconds(published: Amount) -> float | None:
    """Return the nanoseconds of one operation that a published figure means; None for any other figure."""
    word = published.unit.partition(" ")[0]
    if word not in units.SECONDS:
        return None
    times = TIMES.search(f"{published.unit} ")
    return published.value * units.SECONDS[word] * 1e9 / (int(times[1].replace(",", "")) if times else 1)
