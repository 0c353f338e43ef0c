"""Published claims and their measurements here: a part for each source, its claims in the order of its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tollbar.analysis import ClaimVerdict, StudyJudgement
from tollbar.report.blocks import Block, Figures, Items, Key, Legend, Listing, Paragraph, Section, folds
from tollbar.report.costs import cost_words
from tollbar.report.groups import MOST_ROWS
from tollbar.report.sections.published.amounts import amounts_chart
from tollbar.report.sections.published.drawn import source_figures
from tollbar.report.sections.published.figures import by_source_words
from tollbar.report.sections.published.lines import OURS, Published, counted_verdicts
from tollbar.report.sections.published.setup import advice_table, setup_table
from tollbar.report.sections.published.tables import published_chart, published_tables
from tollbar.results import Run


def blocks_of(part: Published, run: Run, *, folding: bool) -> Iterator[Block]:
    """Yield the blocks of a part, with figures and a table for each study; tables are folded only if `folding`."""
    yield Items(about_source(part))
    if part.source is not None and part.source.setup:
        judged = {line.study.name: line.judged for line in part.lines if line.judged}
        yield setup_table(part.source, [*judged.values()], run)
        yield advice_table(part.source)
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
    else:
        named = dict.fromkeys(line.study.source for line in part.lines)
        said += [f"Source: {name}." for name in named if name]
    ours = [line for line in part.lines if line.claim.is_ours]
    said += [f"Published results: {counted_verdicts(part.theirs)}."] if part.theirs else []
    said += [f"{OURS}: {counted_verdicts(ours)}."] if ours else []
    if part.missing:
        said.append(
            f"Not measured here: {', '.join(part.missing)}. To measure: `tollbar run {' '.join(part.missing)}`."
        )
    if not part.studies:
        said.append("`tollbar run sources` runs all published comparisons as they were run.")
    return tuple(said)


# Both ratios are below one in the example: there a smaller number is a larger difference.
OF_SIZE = (
    "Larger and smaller are those of the difference: for example, × 0.51 is published and × 0.15 measured, which is"
    " larger."
)


def meanings_of(part: Published) -> tuple[str, ...]:
    """Return the meanings of the table's words: capacity, and the source's own statistic."""
    judged = {line.study.name: line.judged for line in part.lines if line.judged}.values()
    said = dict.fromkeys(note(one) for note in (capacity, by_source_words) for one in judged)
    verdicts = {line.result.verdict for line in part.lines}
    of_size = verdicts & {ClaimVerdict.LARGER, ClaimVerdict.SMALLER}
    return (*filter(None, said), *([OF_SIZE] if of_size else []))


def capacity(study: StudyJudgement) -> str:
    """Return the definition of capacity, if a claim is judged by it."""
    if not any(c.claim.metric == "capacity" and c.claim.is_judged for c in study.claims):
        return ""
    of = cost_words(study).in_sentence
    return f"Capacity is one over {of}: the rate of one core that nothing else limits."
