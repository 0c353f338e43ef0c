"""Figures of a claim: those that its source printed, and the measured ones in the source's own units."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tollbar.analysis import BySource, StudyJudgement
from tollbar.catalog.families import Value
from tollbar.core import limits, units
from tollbar.report.coordinates import value_words
from tollbar.report.costs import cost_words
from tollbar.report.numbers import amount, figure_words, times, times_range
from tollbar.report.sections.published.lines import Line
from tollbar.study import Amount, Claim, Statistic

# Amount of a source's figure: `ms for 10,000 rows` is of 10,000 operations.
TIMES = re.compile(r"for ([\d,]+) ")


def figures_words(claim: Claim) -> str:
    """Return the source's own figures of both sides, a pair for each ratio, with the error and deviation it prints.

    Empty without figures; the figure of one cell is the published value itself, and is not repeated.
    """
    pairs = zip(claim.published[::2], claim.published[1::2], strict=True) if claim.is_judged else ()
    said = "; ".join(f"{of.text} over {over.text}" for of, over in pairs)
    amounts = {"error": claim.error, "deviation": claim.deviation}
    parts = ", ".join(f"{name} {amount.text}" for name, amount in amounts.items() if amount)
    return "; ".join(filter(None, (said, parts)))


def has_number(claim: Claim) -> bool:
    """Return whether the source printed the ratio as a number."""
    return claim.ratio is not None and (claim.words is None or re.search(r"\d", claim.words) is not None)


def reading_words(claim: Claim) -> str:
    """Return the ratio as which the source's words are read; empty if it printed the ratio itself."""
    if claim.words is None or claim.ratio is None:
        return ""
    least, most = claim.ratio
    read = f"{times(least)} or more" if most >= limits.RATIO.most else times_range(least, most)
    return f"{'' if has_number(claim) else 'no number published; '}read here as {read}"


def here_values(line: Line) -> list[str]:
    """Return the measured values of both cells, in the source's own units."""
    claim, result = line.claim, line.result
    # A figure for each side; a side without a figure is in its own unit.
    said = (*claim.published[:2], None, None)
    sides = (claim.of, claim.over)
    return [
        in_its_unit(amount, value, unit, {**result.at, **side}.get("bytes"))
        for amount, (value, unit), side in zip(said, result.values, sides, strict=False)
    ]


def here_figures(line: Line) -> str | None:
    """Return the same figures of this machine, the ratios at both values of growth, and the source's statistic."""
    said = " over ".join(here_values(line)) if line.claim.is_judged else ""
    own = by_source_of(line.claim, line.result.by_source)
    found = (said and f"each alone: {said}", ends_words(line), own and f"by the source's statistic: {own}")
    return "; ".join(filter(None, found)) or None


def ends_words(line: Line) -> str:
    """Return the ratios between which a difference grows: `× 2.72 at rsa-1024, × 2.01 at rsa-2048`."""
    grows, ends = line.claim.grows, line.result.ends
    if ends is None:
        return ""
    family = line.study.family
    values = [[value_words(family, name, values[n]) for name, values in grows.items()] for n in (0, 1)]
    return ", ".join(f"{times(r.estimate)} at {', '.join(at)}" for r, at in zip(ends, values, strict=True))


def by_source_of(claim: Claim, found: BySource | None) -> str:
    """Return a cell by the source's statistic, in its unit: `mean 0.512 ms, error 0.0031 ms, scaled × 0.51`."""
    if found is None:
        return ""
    said = claim.published[0] if claim.published else None
    amounts = {"mean": found.mean, "error": found.error, "deviation": found.deviation}
    parts = [f"{name} {in_its_unit(said, n, found.unit)}" for name, n in amounts.items() if n is not None]
    return ", ".join([*parts, f"scaled {times(found.ratio)}"])


def in_its_unit(said: Amount | None, value: float, unit: str, size: Value | None = None) -> str:
    """Return a measured value in the unit of a published figure if it can be converted; else in its own.

    A time for n operations is n times that of one; a rate is one over it; `size` is the number of bytes that an
    operation works on.
    """
    number = None if said is None else _converted(said.unit, value, unit, size)
    if said is None or number is None:
        return amount(value, unit)
    # Further words of the source's figure, such as `of ticket`, apply to its own figure only.
    its = said.unit if TIMES.search(f"{said.unit} ") else said.unit.partition(" ")[0]
    return f"{figure_words(number)} {its}"


def _converted(its: str, value: float, unit: str, size: Value | None) -> float | None:
    of = its.partition(" ")[0]
    times = TIMES.search(f"{its} ")
    if unit in ("B", "B/op"):
        scale = 1 if of == "bytes" else units.BYTES.get(of)
        return value / scale if scale else None
    if unit not in ("ns/op", "1/s") or value <= 0:
        return None
    seconds = value * 1e-9 if unit == "ns/op" else 1 / value
    if of in units.SECONDS:
        return seconds * (int(times[1].replace(",", "")) if times else 1) / units.SECONDS[of]
    if not of.endswith("/s"):
        return None
    scale = units.BYTES.get(of.removesuffix("/s"))
    if scale is None:
        return 1 / seconds
    return size / seconds / scale if isinstance(size, int) else None


def by_source_words(study: StudyJudgement) -> str:
    """Return the definition of a source's own statistic here, if one is printed."""
    if study.about.statistic is None:
        return ""
    return _BY_SOURCE[study.about.statistic].format(cost=cost_words(study).in_sentence)


_BY_SOURCE: Mapping[Statistic, str] = {
    "mean-error-deviation": (
        "Mean, error, deviation and scaled are the source's statistics, here of elapsed time: each block, with its"
        " fresh processes, is one measurement; the error is half of the mean's 99.9 % interval (Student's), the"
        " deviation that of blocks, scaled is the ratio of the means."
    ),
    "rate-after-first": (
        "Mean is the source's statistic: requests a second from the mean time of all runs but the first, which it"
        " dropped; scaled is the ratio of the means. Here a block, with its fresh processes, is a run, and the mean is"
        " of the load client's time, whatever limited the requests: it gets no verdict."
    ),
}
