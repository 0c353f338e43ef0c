"""Published claims and their measurements here: a part for each source, its claims in the order of its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tollbar.analysis import ClaimVerdict, StudyJudgement
from tollbar.core.words import enumeration
from tollbar.report.blocks import Block, Figures, Items, Key, Legend, Listing, Paragraph, Section, folds
from tollbar.report.costs import cost_words
from tollbar.report.groups import MOST_ROWS
from tollbar.report.sections.published.amounts import amounts_chart
from tollbar.report.sections.published.drawn import source_figures
from tollbar.report.sections.published.figures import by_source_words
from tollbar.report.sections.published.lines import OURS, Published, counted_tests
from tollbar.report.sections.published.setup import advice_table, flow_table, setup_table
from tollbar.report.sections.published.tables import published_chart, published_tables
from tollbar.results import Run


def blocks_of(part: Published, run: Run, *, folding: bool) -> Iterator[Block]:
    """Yield the blocks of a part, with figures and a table for each study; tables are folded only if `folding`."""
    yield Items(about_source(part))
    if part.source is not None and part.source.setup:
        judged = {line.study.name: line.judged for line in part.lines if line.judged}
        yield setup_table(part.source, [*judged.values()], run)
        yield advice_table(part.source)
        if part.source.flows:
            yield flow_table(part.source, [*judged.values()])
    yield from (Paragraph(meaning, "note") for meaning in meanings_of(part))
    for group, table in zip(part.groups, published_tables(part), strict=True):
        title = f"All {len(table.rows)} comparisons"
        chart = published_chart(group)
        legend = Legend([Key("published", mark="then"), Key("measured", mark="here")])
        blocks: list[Block] = [legend, Figures([chart], "")] if chart else []
        amounts = amounts_chart(group)
        blocks += [legend, Figures([amounts])] if amounts else []
        blocks += source_figures(None if group.title == OURS else group.lines[0].judged)
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
    return Listing(part.heading, about_source(part), shown, "measured by", notes=meanings_of(part))


def about_source(part: Published) -> tuple[str, ...]:
    """Return the source's system, the differences here, the results of its claims, and the command for the rest."""
    said = []
    if part.source is not None:
        said += [f"Published on: {part.source.system}.", f"Differences here: {part.source.differs}."]
        said += [WHOSE_WORDS.format(year=f", of {part.source.year}" if part.source.year else "")]
    else:
        named = dict.fromkeys(line.study.source for line in part.lines)
        said += [f"Source: {name}." for name in named if name]
    ours = [line for line in part.lines if line.claim.is_ours]
    said += [f"Published results: {counted_tests(part.theirs)}."] if part.theirs else []
    said += [f"{OURS}: {counted_tests(ours)}."] if ours else []
    if part.missing:
        said.append(
            f"Not measured here: {', '.join(part.missing)}. To measure: `tollbar run {' '.join(part.missing)}`."
        )
    if not part.studies:
        said.append("`tollbar run sources` runs all published comparisons as they were run.")
    return tuple(said)


WHOSE_WORDS = (
    "Claims, published values and recommendations are the source's{year}, the words of that time. Measurements,"
    " verdicts, readings and notes are Tollbar's, and “today” is the standing of a choice now."
)
CAPACITY_UNDER_LOAD = (
    " It is measured while the load client and the servers share a core. Under load the server has a core of its own,"
    " so that a request may cost less CPU time there, and more may be answered than its capacity."
)
EACH_ALONE = (
    "A ratio compares both sides within each block, in quiet samples if there are enough of them. “Each alone” is each"
    " side over all its samples and blocks, as sources print it, so that its quotient may differ from the ratio. The"
    " verdict is that of the ratio."
)
RATES = (
    "Requests a second under load are the answered ones, the median of all blocks, limited by anything: the server, the"
    " load client, or the number of users. A ratio of throughput is made of the rates in each block, any other ratio of"
    " none of them."
)
# Both ratios are below one in the example: there a smaller number is a larger difference.
OF_SIZE = (
    "Larger and smaller are those of the difference: for example, × 0.51 is published and × 0.15 measured, which is"
    " larger."
)


def meanings_of(part: Published) -> tuple[str, ...]:
    """Return the meanings of the table's words: capacity, and the source's own statistic."""
    judged = {line.study.name: line.judged for line in part.lines if line.judged}.values()
    statistics = dict.fromkeys(by_source_words(one) for one in judged)
    verdicts = {line.result.verdict for line in part.lines}
    of_size = verdicts & {ClaimVerdict.LARGER, ClaimVerdict.SMALLER}
    said = (
        capacity([*judged]),
        EACH_ALONE if any(len(line.result.values) > 1 for line in part.lines) else "",
        RATES if any(line.result.rates for line in part.lines) else "",
        *statistics,
        OF_SIZE if of_size else "",
    )
    return tuple(filter(None, said))


def capacity(studies: Sequence[StudyJudgement]) -> str:
    """Return the definition of capacity, if a claim is judged by it."""
    judged = [one for one in studies if any(c.claim.metric == "capacity" and c.claim.is_judged for c in one.claims)]
    if not judged:
        return ""
    costs = enumeration([*dict.fromkeys(cost_words(one).in_sentence for one in judged)], "or")
    loaded = CAPACITY_UNDER_LOAD if any(line.rates for one in judged for line in one.claims) else ""
    return f"Capacity is one over {costs}: the work for which one core has time.{loaded}"
