"""One study of the page, in the order of a reader's doubts."""

from __future__ import annotations

from tollbar import units
from tollbar.judge import ClaimResult, StudyJudgement, Verdict
from tollbar.judge.noise import reach
from tollbar.report import panels, prose, prose_served, prose_trust, words
from tollbar.report.cells import MOST_ROWS, at_one_load
from tollbar.report.costs import cost_words
from tollbar.report.drift import drift_chart
from tollbar.report.labels import places, prevailing
from tollbar.report.layout import Draw, figure, figures, section
from tollbar.report.markup import (
    Cell,
    Column,
    bullets,
    folded,
    legend,
    paragraph,
    table,
    tag,
    text,
)
from tollbar.report.protects import protects
from tollbar.report.results_table import full_table, ratio_cell
from tollbar.report.served import over_time, under_load, what_was_agreed, where_cpu_goes
from tollbar.report.standing import strength_and_standing


def study_section(study: StudyJudgement, draw: Draw) -> str:
    """Everything about one study."""
    parts = (
        _answer(study, draw),
        _all_else_equal(study, draw),
        strength_and_standing(study, draw),
        protects(study),
        _published(study, draw),
        _memory(study, draw),
        where_cpu_goes(study, draw),
        over_time(study, draw),
        under_load(study, draw),
        what_was_agreed(study),
        section("Every result", full_table(study)),
        _trust(study, draw),
    )
    return tag("section", *parts, id=f"study-{study.study.study.name}", class_="study")


def _answer(study: StudyJudgement, draw: Draw) -> str:
    about = study.study.study
    tolls = words.real_tolls(study)
    worth = words.percent(about.worth)
    keys = [("band", f"within {worth}, which this study calls free")] if tolls else []
    noise = max((reach(t.noise) for t in tolls if t.noise is not None), default=None)
    if noise is not None:
        keys.append(("floor", f"what noise alone may make, at most {prose_trust.times_exactly(noise)}"))
    if any(t.verdict is Verdict.UNCLEAR for t in tolls):
        keys.append(("hollow", "hollow: unclear"))
    standings = [r.standing for r in study.study.rows]
    at = at_one_load(study)
    chart = (
        legend(standings, *keys) + paragraph(at.note, class_="note") + figures(panels.toll_charts(at.study), draw)
        if tolls
        else paragraph("There is nothing to compare.", class_="note")
    )
    return (
        tag("h2", text(about.question))
        + paragraph(" ".join(prose.answer(study)), class_="answer")
        + chart
        + "".join(paragraph(said) for said in prose_served.unavailable(study))
        + _section_notes(study)
    )


def _section_notes(study: StudyJudgement) -> str:
    """What the study's author says, and what the words beside the rows mean."""
    family = study.study.study.family
    vary = words.varying(study.study.rows)
    settings = [(n, s) for n, s in family.settings.items() if n in vary and not s.is_size]
    means = [f"{words.column_title(family, n)}: {s.title}" for n, s in settings]
    prevails = [words.named_value(family, n, v) for n, v in prevailing(study).items()]
    if prevails:
        means.append(f"Where a name says nothing of it: {words.enumeration(prevails)}")
    return paragraph(". ".join(means) + "." if means else "", class_="note") + bullets(study.study.study.notes)


def _all_else_equal(study: StudyJudgement, draw: Draw) -> str:
    if not study.contrasts:
        return ""
    family = study.study.study.family
    rows = [
        (
            Cell(words.column_title(family, c.setting)),
            Cell(" for ".join(words.value_words(family, c.setting, v) for v in (c.value, c.for_value))),
            Cell(panels.contrast_where(study, c, most=12) or "everywhere"),
            Cell(words.times_range(c.least, c.most), c.least, words.ends(c.low, c.high)),
            Cell(str(c.verdict), mark=_mark(c.verdict), small=prose.more_blocks(c.more_blocks)),
            Cell(f"{c.pairs:,}", float(c.pairs)),
        )
        for c in study.contrasts
    ]
    columns = (
        Column("setting"),
        Column("one for the other"),
        Column("where"),
        Column(f"times the {cost_words(study).short}", True),
        Column("verdict"),
        Column("pairs of cells", True),
    )
    told = table("One value for another, all else equal", columns, rows, sortable=True)
    return section(
        "All else equal",
        paragraph(
            "Each line gathers pairs of cells that differ in one thing only and have the same verdict: from the least"
            " ratio to the most, with what all their intervals cover in brackets. Nothing is averaged.",
            class_="note",
        ),
        figures(panels.contrast_charts(study), draw, _contrast_style(study)),
        folded(f"The {len(rows):,} comparisons as a table", told) if len(rows) > 1 else told,
    )


def _contrast_style(study: StudyJudgement) -> str:
    # Pairs that are split by several things have long names, for which half a page is too narrow.
    split = any(len(c.where) > 1 or any(len(v) > 1 for v in c.where.values()) for c in study.contrasts)
    return "panels wide" if split else "panels"


def _mark(verdict: Verdict) -> str:
    return tag("span", text(words.VERDICT_MARKS[verdict]), class_="mark", aria_hidden="true")


def _published(study: StudyJudgement, draw: Draw) -> str:
    if not study.claims:
        return ""
    rows, rated = [], any(c.rates is not None for c in study.claims)
    for number, claim in zip(panels.claim_numbers(study.claims), study.claims, strict=True):
        then = words.times(claim.published) if claim.published is not None else claim.order or "–"
        rows.append(
            (
                Cell(f"{number}  {claim.says}", small=claim.note),
                Cell(panels.claim_place(study, claim) or "everywhere"),
                Cell(claim.metric),
                Cell(then, claim.published),
                ratio_cell(claim.ratio),
                ratio_cell(claim.typical),
                *([_rates(claim)] if rated else []),
                Cell(str(claim.verdict), small=claim.reason),
            )
        )
    columns = (
        Column("what was published"),
        Column("tried at"),
        Column("compared by"),
        Column("then", True),
        Column("here", True),
        Column("typical", True),
        *([Column("requests a second", True)] if rated else []),
        Column("verdict"),
    )
    told = table("Published comparisons, then and here", columns, rows)
    chart = panels.claim_chart(study)
    drawn = legend((), ("then", "then"), ("here", "here")) + figure(chart, draw) if chart else ""
    source = study.study.study.source
    return section(
        "What was published, and what is measured here",
        paragraph(prose.claims(study) + (f" Source: {source}." if source else ""), class_="note"),
        paragraph(prose.capacity(study), class_="note"),
        drawn,
        folded(f"All {len(rows)} comparisons", told) if len(rows) > MOST_ROWS else told,
    )


def _rates(claim: ClaimResult) -> Cell:
    """What both sides were measured at, whatever limited them: beside the capacity, never in its place."""
    return Cell("–") if claim.rates is None else Cell(" and ".join(f"{rate:,.0f}" for rate in claim.rates))


def _memory(study: StudyJudgement, draw: Draw) -> str:
    charts = panels.memory_charts(study)
    if not charts:
        return ""
    standings = [m.row.standing for m in study.measurements]
    return section("Memory beside CPU", legend(standings), figures(charts, draw))


def _trust(study: StudyJudgement, draw: Draw) -> str:
    chart = drift_chart(study)
    drawn = legend((), ("line", "median cell"), ("band", "eight cells of ten")) + figure(chart, draw) if chart else ""
    warned = tag("h4", "Warnings") + bullets(study.warnings)
    warnings = tag("div", warned, class_="warnings") if study.warnings else ""
    said = [
        f"{prose_trust.checked(study)} {prose_trust.proof(study)}",
        prose_trust.two_costs(study),
        prose_trust.noise(study),
        prose_trust.drift(study),
        prose_trust.steal(study),
        prose_trust.load(study),
    ]
    return section("Can this be trusted?", warnings, bullets(said), drawn, _twins(study))


def _twins(study: StudyJudgement) -> str:
    """Each baseline's own toll, which is its twin's cost over its own."""
    tolls = [t for t in study.tolls if words.is_baseline(t.row) and t.ratio is not None]
    names = ("choice", *(n for n in words.varying(study.study.rows) if n != "choice"))
    place = places(study)
    written = [
        (
            Cell(place(t.row.coordinates, names)),
            Cell(prose_trust.times_exactly(t.ratio.estimate), t.ratio.estimate, prose_trust.bracket_exactly(t.ratio)),
            Cell("–") if t.noise_floor is None else Cell(prose_trust.times_exactly(t.noise_floor), t.noise_floor),
            Cell(f"{t.ratio.n:,}", float(t.ratio.n)),
        )
        for t in tolls
        if t.ratio is not None
    ]
    if not written:
        return ""
    columns = (
        Column("baseline"),
        Column("its twin", True),
        Column("noise floor", True),
        Column("blocks", True),
    )
    title = "Each baseline against its own twin, which should be × 1"
    found = table(title, columns, written)
    return folded(f"{title}: {len(written):,} baselines", found) if len(written) > 12 else found


def how(study: StudyJudgement) -> str:
    """One study's method in a line, and its file as it was, folded."""
    about = study.study.study
    done = max((m.blocks for m in study.measurements), default=0)
    looks = study.study.looks
    looked = f", judged after {words.enumeration([str(n) for n in looks])}" if len(looks) > 1 else ""
    measure = about.measure
    said = (
        f"{about.name}: {done:,} of {measure.blocks:,} planned blocks{looked}; in each, {measure.rounds:,} chunks of"
        f" {units.show_nanoseconds(measure.chunk_s * 1e9)} or more of each cell; a difference is worth something from"
        f" {words.percent(about.worth)}. Intervals are at {words.percent(study.confidence)} confidence."
    )
    file = tag("pre", tag("code", text(about.text)), tabindex="0", aria_label=f"The study file {about.name}")
    return paragraph(said) + folded(f"The study file of {about.name}, as it was", file)
