"""Table of published claims next to their measurements, and its chart."""

from __future__ import annotations

from collections import Counter

from tollbar.analysis import ClaimResult, StudyJudgement
from tollbar.catalog.families import Family
from tollbar.report.blocks import Chart, Table, TableCell, numbers, row_names, texts
from tollbar.report.chart import Dot, Dots, scale_over
from tollbar.report.groups import MOST_ROWS
from tollbar.report.names import place_words, prevailing, varying
from tollbar.report.numbers import bracket, interval_title, times, times_range
from tollbar.report.sections.published.evidence import evidence
from tollbar.report.sections.published.figures import (
    figures_words,
    has_number,
    here_figures,
    here_values,
    reading_words,
)
from tollbar.report.sections.published.lines import OURS, Group, Line, Published
from tollbar.report.standings import CALLED_OUT
from tollbar.report.table_cells import ALL_RATIO, BAR, INTERVAL, SPEED
from tollbar.study import Claim

# The ratio is not made of these rates, unless throughput is the metric.
RATES = "requests / s under load"


def published_tables(part: Published) -> list[Table]:
    """Return a table for each group, all with the same columns."""
    rated = any(line.result.rates for line in part.lines)
    # All studies of a run have one confidence.
    intervals = next((interval_title(line.judged) for line in part.lines if line.judged), "interval")
    columns = (
        *row_names("published claim", "measured at"),
        *texts("metric", leaves=SPEED),
        # As texts, because the figures below a ratio take more than one line.
        *texts("published", "measured"),
        *texts(intervals, leaves=INTERVAL),
        *texts("verdict"),
        *numbers("all samples", leaves=ALL_RATIO),
        *numbers(*([RATES] if rated else []), leaves=BAR),
    )
    return [
        Table(
            group.title,
            columns,
            [
                (
                    TableCell(f"{number}  {line.claim.says}", small=said_where(line.claim, line.study.family)),
                    TableCell(_place(line, named=group.title == OURS)),
                    TableCell(compared_by(line.claim)),
                    _published(line.claim),
                    _here(line),
                    TableCell(bracket(line.result.ratio) if line.result.ratio else ""),
                    TableCell(line.verdict, verdict=line.result.verdict, small=_why(line)),
                    TableCell(times(line.result.all_samples.estimate) if line.result.all_samples else ""),
                    *([TableCell(" / ".join(f"{rate:,.0f}" for rate in line.result.rates or ()))] if rated else []),
                )
                for number, line in numbered_lines(group)
            ],
        )
        for group in part.groups
    ]


def _why(line: Line) -> str | None:
    return " ".join(filter(None, (line.result.reason, evidence(line)))) or None


def _place(line: Line, *, named: bool) -> str:
    """Return the coordinates that both cells share, in words; with the study's name if a table is of several."""
    place = claim_place(line.judged, line.result) if line.judged else ""
    return " · ".join(filter(None, (line.study.name if named else "", place)))


def _published(claim: Claim) -> TableCell:
    figures = filter(None, (_titled("published", figures_words(claim)), reading_words(claim)))
    return TableCell(published_words(claim), claim.one_ratio, "; ".join(figures) or None)


def _here(line: Line) -> TableCell:
    """Return today's ratio, or today's figure of a published figure, with its parts below."""
    ratio, figures = line.result.ratio, _titled("measured", here_figures(line))
    if line.claim.is_judged:
        return TableCell(times(ratio.estimate), ratio.estimate, figures) if ratio else TableCell("", small=figures)
    return TableCell(", ".join(here_values(line)), small=figures)


def _titled(title: str, text: str | None) -> str | None:
    return f"{title}: {text}" if text else None


_GROWTH = {"more": "grows", "less": "shrinks", "wider": "differs by more", "no-wider": "differs by no more"}


def published_words(claim: Claim) -> str:
    """Return the published statement: the source's words, a ratio or the ends of several, an order, or a figure."""
    if claim.words is not None:
        return f"“{claim.words}”"
    if claim.ratio is not None:
        return f"{times_range(*claim.ratio)} of the first" if claim.grows else times_range(*claim.ratio)
    if claim.grows and claim.order is not None:
        return _GROWTH[claim.order]
    if claim.order is not None:
        return claim.order
    return claim.published[0].text if claim.published else "–"


def compared_by(claim: Claim) -> str:
    """Return the metric and its component: `capacity of web`."""
    if claim.untestable is not None:
        return "–"
    return f"{claim.metric} of {claim.component}" if claim.component else claim.metric


def said_where(claim: Claim, family: Family) -> str | None:
    """Return the place of publication, the claim's note, and standings of today that must be called out."""
    named = dict.fromkeys(str(side["choice"]) for side in (claim.of, claim.over) if "choice" in side)
    choices = [family.choices[name] for name in named if name in family.choices]
    standings = [f"{one.title} is {one.standing.words}" for one in choices if one.standing in CALLED_OUT]
    where = claim.where if claim.is_ours or not claim.where else f"In the source: {claim.where}"
    today = f"Today: {', '.join(standings)}" if standings else None
    return " ".join(f"{part.rstrip('.')}." for part in (where, claim.note, today) if part) or None


def numbered_lines(group: Group) -> list[tuple[str, Line]]:
    """Return a number for each line, `2`, or `2.1`, `2.2` if one claim was tested in several places."""
    says = [(line.study.name, line.claim.says) for line in group.lines]
    order = {one: i for i, one in enumerate(dict.fromkeys(says), 1)}
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for one, line in zip(says, group.lines, strict=True):
        seen[one] += 1
        found.append((f"{order[one]}.{seen[one]}" if says.count(one) > 1 else str(order[one]), line))
    return found


def claim_place(judged: StudyJudgement, result: ClaimResult) -> str:
    """Return in words the coordinates that both cells of a claim share, if the study's cells differ in them."""
    vary = varying(judged.rows)
    usual = prevailing(judged)
    names = [n for n in result.at if n in vary and result.at[n] != usual.get(n)]
    return place_words(judged)(result.at, names)


def published_chart(group: Group) -> Chart | None:
    """Return the published ratios next to the measured ones; None if no claim gives a ratio."""
    # The table next to the chart has them all.
    numbered = [(n, line) for n, line in numbered_lines(group) if line.claim.is_judged][:MOST_ROWS]
    dots = [_dot(number, line) for number, line in numbered]
    if not any(d.then for d in dots):
        return None
    scale = scale_over("the claim's own ratio, published and measured", dots, threshold=0.0)
    said = "; ".join(
        f"{d.label}: published {published_words(line.claim) if line.claim.ratio else 'an order'}, here {d.note}"
        for d, (_, line) in zip(dots, numbered, strict=True)
    )
    return Chart("", f"Published ratios and the same ratios here. {said}.", Dots(dots, scale))


def _dot(number: str, line: Line) -> Dot:
    ratio = line.result.ratio
    here = f"{compared_by(line.claim)} {times(ratio.estimate)}" if ratio else ""
    if ratio and line.claim.grows:
        here += " of the first ratio"
    return Dot(
        label=f"{number}  {_place(line, named=False) or 'everywhere'}",
        note=f"{here} {line.verdict}".strip(),
        value=ratio.estimate if ratio else None,
        low=ratio.low if ratio else None,
        high=ratio.high if ratio else None,
        # Nothing between the ends of a range was published, and no number where the source has words alone.
        then=line.claim.one_ratio if has_number(line.claim) else None,
    )
