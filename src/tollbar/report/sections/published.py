"""Published claims and their measurements here: a part for each source, its claims in the order of its text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tollbar import study
from tollbar.analysis import BySource, ClaimResult, ClaimVerdict, Judgement, StudyJudgement
from tollbar.catalog.families import Family, Value
from tollbar.core import units
from tollbar.core.words import counted
from tollbar.report.blocks import (
    Block,
    Chart,
    Figures,
    Items,
    Key,
    Legend,
    Listing,
    Paragraph,
    Section,
    Table,
    TableCell,
    folds,
    numbers,
    row_names,
    texts,
)
from tollbar.report.chart import Dot, Dots, scale_over
from tollbar.report.costs import cost_words
from tollbar.report.groups import MOST_ROWS
from tollbar.report.names import place_words, prevailing, varying
from tollbar.report.numbers import amount, bracket, figure_words, interval_title, times, times_range
from tollbar.report.standings import CALLED_OUT
from tollbar.report.table_cells import ALL_RATIO, BAR, INTERVAL, SPEED
from tollbar.study import Amount, Claim, Publication, Statistic, Study

HEADING = "Published and measured"
OURS = "Ours, not the source's"
NOT_MEASURED = "not measured"
# Amount of a source's figure: `ms for 10,000 rows` is of 10,000 operations.
_TIMES = re.compile(r"for ([\d,]+) ")


@dataclass(frozen=True, slots=True)
class Line:
    """Claim in a place where it is tested, or would be."""

    study: Study
    judged: StudyJudgement | None
    """Judgement of the study; None: nothing was measured of it."""
    result: ClaimResult

    @property
    def claim(self) -> Claim:
        return self.result.claim

    @property
    def verdict(self) -> str:
        """Verdict in a word or two."""
        untried = self.claim.is_judged and self.result.ratio is None if self.judged else self.claim.untestable is None
        return NOT_MEASURED if untried else str(self.result.verdict)


@dataclass(frozen=True, slots=True)
class Group:
    """Lines of one study; or, over all studies of the source, claims that it did not publish."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """Claims of one source, with their results."""

    source: Publication | None
    """Source; None: the study names no source that is known here."""
    studies: tuple[str, ...]
    """Studies of which something was measured."""
    groups: tuple[Group, ...]
    """Groups in the order of the source's text; claims that are not the source's come last."""
    missing: tuple[str, ...] = ()
    """Names of the source's other studies, for `tollbar run`."""

    @property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for group in self.groups for line in group.lines)

    @property
    def theirs(self) -> tuple[Line, ...]:
        """Lines that the source published, without ours."""
        return tuple(line for line in self.lines if not line.claim.is_ours)

    @property
    def heading(self) -> str:
        return HEADING if self.source is None else f"{HEADING}: {self.source.cited}"


def of_source(source: Publication, judgement: Judgement | None = None) -> Published:
    """Return all claims of a source: those that a run has tested, and the rest as published."""
    tried = [one for one in judgement.studies if _is_of(one, source)] if judgement else []
    names = [one.about.name for one in tried]
    return _part(source, [*tried, *(one for one in study.load(source.studies) if one.name not in names)])


def sources_of(judgement: Judgement) -> tuple[Published, ...]:
    """Return a part for each source that the run's studies test."""
    found = [(one, [s for s in judgement.studies if _is_of(s, one)]) for one in study.sources().values()]
    return tuple(_part(source, tried) for source, tried in found if tried)


def together(judgement: Judgement) -> tuple[Published, ...]:
    """Return the parts that come before all studies; empty for a run of one study, which has its own."""
    return sources_of(judgement) if len(judgement.studies) > 1 else ()


def within(judgement: Judgement, of: StudyJudgement) -> Published | None:
    """Return the part that belongs into a study; None if it has no claims, or `together` has them."""
    source = next((one for one in study.sources().values() if _is_of(of, one)), None)
    return None if not of.claims or (source and len(judgement.studies) > 1) else _part(source, [of])


def _is_of(judged: StudyJudgement, source: Publication) -> bool:
    return judged.about.source == source.name and bool(judged.claims)


def _part(source: Publication | None, tries: Sequence[Study | StudyJudgement]) -> Published:
    order = source.order if source else {}
    in_order = sorted(tries, key=lambda one: order.get(_name(one), len(order)))
    by_study = {_name(one): tuple(_lines(one)) for one in in_order}
    groups = [Group(name, tuple(line for line in found if not line.claim.is_ours)) for name, found in by_study.items()]
    ours = Group(OURS, tuple(line for found in by_study.values() for line in found if line.claim.is_ours))
    measured = tuple(name for name, found in by_study.items() if found and found[0].judged)
    return Published(
        source,
        measured,
        tuple(group for group in (*groups, ours) if group.lines),
        tuple(name for name, own in zip(source.studies, order, strict=True) if own not in measured) if source else (),
    )


def _name(one: Study | StudyJudgement) -> str:
    return one.name if isinstance(one, Study) else one.about.name


def _lines(one: Study | StudyJudgement) -> Iterator[Line]:
    if isinstance(one, Study):
        for claim in one.claims:
            verdict = ClaimVerdict.NOT_TESTABLE if claim.untestable else ClaimVerdict.CANNOT_TELL
            yield Line(one, None, ClaimResult(claim, {}, verdict=verdict, reason=claim.untestable))
    else:
        yield from (Line(one.about, one, result) for result in one.claims)


def about_source(part: Published) -> tuple[str, ...]:
    """Return the source's system, the differences here, the results of its claims, and the command for the rest."""
    said = []
    if part.source is not None:
        said += [f"It ran on: {part.source.system}.", f"What differs here: {part.source.differs}."]
    else:
        named = dict.fromkeys(line.study.source for line in part.lines)
        said += [f"Source: {name}." for name in named if name]
    ours = [line for line in part.lines if line.claim.is_ours]
    said += [f"Of what was published: {counted_verdicts(part.theirs)}."] if part.theirs else []
    said += [f"{OURS}: {counted_verdicts(ours)}."] if ours else []
    if part.missing:
        said.append(
            f"Not measured here: {', '.join(part.missing)}. To measure: `tollbar run {' '.join(part.missing)}`."
        )
    if not part.studies:
        said.append("`tollbar run sources` runs all published comparisons as they were run.")
    return tuple(said)


def verdict_counts(lines: Iterable[Line]) -> dict[str, int]:
    """Return the number of lines with each verdict, in the order of the verdicts."""
    found = Counter(line.verdict for line in lines)
    return {verdict: found[verdict] for verdict in (*map(str, ClaimVerdict), NOT_MEASURED) if found[verdict]}


def counted_verdicts(lines: Iterable[Line]) -> str:
    """Return `12 still true, 3 larger, 2 cannot tell, 4 not testable here`."""
    found = verdict_counts(lines)
    return ", ".join(
        counted(n, "absolute figure") if verdict == ClaimVerdict.NOT_JUDGED else f"{n:,} {verdict}"
        for verdict, n in found.items()
    )


def meanings_of(part: Published) -> tuple[str, ...]:
    """Return the meanings of the table's words: capacity, and the source's own statistic."""
    judged = {line.study.name: line.judged for line in part.lines if line.judged}.values()
    said = dict.fromkeys(note(one) for note in (capacity, by_source_words) for one in judged)
    return tuple(filter(None, said))


def published_tables(part: Published) -> list[Table]:
    """Return a table for each group, all with the same columns."""
    rated = any(line.result.rates for line in part.lines)
    # All studies of a run have one confidence.
    intervals = next((interval_title(line.judged) for line in part.lines if line.judged), "interval")
    columns = (
        *row_names("what was published", "tried at"),
        *texts("compared by", leaves=SPEED),
        # As texts, because the figures below a ratio take more than one line.
        *texts("published", "here"),
        *texts(intervals, leaves=INTERVAL),
        *texts("effect on this machine"),
        *numbers("all samples", leaves=ALL_RATIO),
        *numbers(*(["requests / s"] if rated else []), leaves=BAR),
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
                    TableCell(line.verdict, verdict=line.result.verdict, small=line.result.reason),
                    TableCell(times(line.result.all_samples.estimate) if line.result.all_samples else ""),
                    *([TableCell(" / ".join(f"{rate:,.0f}" for rate in line.result.rates or ()))] if rated else []),
                )
                for number, line in _numbered(group)
            ],
        )
        for group in part.groups
    ]


def _place(line: Line, *, named: bool) -> str:
    """Return the coordinates that both cells share, in words; with the study's name if a table is of several."""
    place = claim_place(line.judged, line.result) if line.judged else ""
    return " · ".join(filter(None, (line.study.name if named else "", place)))


def _published(claim: Claim) -> TableCell:
    return TableCell(published_words(claim), claim.one_ratio, _titled("published", said_figures(claim)))


def _here(line: Line) -> TableCell:
    """Return today's ratio, or today's figure of a published figure, with its parts below."""
    ratio, figures = line.result.ratio, _titled("here", here_figures(line))
    if line.claim.is_judged:
        return TableCell(times(ratio.estimate), ratio.estimate, figures) if ratio else TableCell("", small=figures)
    return TableCell(", ".join(here_values(line)), small=figures)


def _titled(title: str, text: str | None) -> str | None:
    return f"{title}: {text}" if text else None


def published_words(claim: Claim) -> str:
    """Return the published value in a few words: a ratio, the least and the most of several, an order, or a figure."""
    if claim.ratio is not None:
        return f"{times_range(*claim.ratio)} of the first" if claim.grows else times_range(*claim.ratio)
    if claim.grows and claim.order is not None:
        return {"more": "grows", "less": "shrinks", "wider": "differs by more"}[claim.order]
    if claim.order is not None:
        return claim.order
    return claim.published[0].text if claim.published else "–"


def compared_by(claim: Claim) -> str:
    """Return the metric and its component: `capacity of web`."""
    if claim.untestable is not None:
        return "–"
    return f"{claim.metric} of {claim.component}" if claim.component else claim.metric


def said_where(claim: Claim, family: Family) -> str | None:
    """Return the place of publication, the claim's note, and standings that must be called out."""
    named = dict.fromkeys(str(side["choice"]) for side in (claim.of, claim.over) if "choice" in side)
    choices = [family.choices[name] for name in named if name in family.choices]
    standings = [f"{one.title} is {one.standing.words}" for one in choices if one.standing in CALLED_OUT]
    return " ".join(f"{part.rstrip('.')}." for part in (claim.where, claim.note, *standings) if part) or None


def said_figures(claim: Claim) -> str | None:
    """Return the source's own figures of both sides, a pair for each ratio, with the error and deviation it prints.

    None without figures; the figure of one cell is the published value itself, and is not repeated.
    """
    pairs = zip(claim.published[::2], claim.published[1::2], strict=True) if claim.is_judged else ()
    said = "; ".join(f"{of.text} over {over.text}" for of, over in pairs)
    amounts = {"error": claim.error, "deviation": claim.deviation}
    beside = ", ".join(f"{name} {amount.text}" for name, amount in amounts.items() if amount)
    return "; ".join(filter(None, (said, beside))) or None


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
    """Return the same figures of this machine, and the source's statistic of the first."""
    said = " over ".join(here_values(line)) if line.claim.is_judged else ""
    return "; ".join(filter(None, (said, by_source_of(line.claim, line.result.by_source)))) or None


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
    its = said.unit if _TIMES.search(f"{said.unit} ") else said.unit.partition(" ")[0]
    return f"{figure_words(number)} {its}"


def _converted(its: str, value: float, unit: str, size: Value | None) -> float | None:
    of = its.partition(" ")[0]
    times = _TIMES.search(f"{its} ")
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


def _numbered(group: Group) -> list[tuple[str, Line]]:
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
    numbered = [(n, line) for n, line in _numbered(group) if line.claim.is_judged][:MOST_ROWS]
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
        # Nothing between the ends of a range was published.
        then=line.claim.one_ratio,
    )


def capacity(study: StudyJudgement) -> str:
    """Return the definition of capacity, if a claim is judged by it."""
    if not any(c.claim.metric == "capacity" and c.claim.is_judged for c in study.claims):
        return ""
    of = cost_words(study).in_sentence
    return f"Capacity is one over {of}: what one core could do were nothing else in its way."


def by_source_words(study: StudyJudgement) -> str:
    """Return the definition of a source's own statistic here, if one is printed."""
    if study.about.statistic is None:
        return ""
    return _BY_SOURCE[study.about.statistic].format(cost=cost_words(study).in_sentence)


_BY_SOURCE: Mapping[Statistic, str] = {
    "mean-error-deviation": (
        "Mean, error, deviation and scaled are what the source prints, here of elapsed time: each block, with its"
        " fresh processes, is one measurement; the error is half of the mean's 99.9 % interval (Student's), the"
        " deviation that of blocks, scaled is the ratio of the means."
    ),
    "rate-after-first": (
        "Mean is what the source prints, requests a second from the mean time of all runs but the first, which it"
        " dropped; scaled is the ratio of the means. Here a block, with its fresh processes, is a run, and the mean is"
        " of the load client's time, whatever limited the requests: no verdict is made of it."
    ),
}


def blocks_of(part: Published, *, folding: bool) -> Iterator[Block]:
    """Yield the blocks of a part, with a table for each study; the tables are folded only if `folding`."""
    yield Items(about_source(part))
    yield from (Paragraph(meaning, "note") for meaning in meanings_of(part))
    for group, table in zip(part.groups, published_tables(part), strict=True):
        title = f"All {len(table.rows)} comparisons"
        chart = published_chart(group)
        legend = Legend([Key("published", mark="then"), Key("measured", mark="here")])
        blocks: list[Block] = [legend, Figures([chart], "")] if chart else []
        blocks += folds(title, table, folding and len(table.rows) > MOST_ROWS)
        if len(part.groups) > 1:
            yield Section(group.title, blocks)
        else:
            yield from blocks


def source_listing(part: Published) -> Listing:
    """Return the claims of a source with their measurements."""
    tables = published_tables(part)
    # The caption of a single table would only repeat the study's name.
    shown = tables if len(tables) > 1 else [replace(table, caption="") for table in tables]
    return Listing(part.heading, about_source(part), shown, "tried by", notes=meanings_of(part))
