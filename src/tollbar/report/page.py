"""Page of a run, as one value: its sections in order, made of blocks that are only laid out.

HTML has all of it; terminal and Markdown have the brief form of each study.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tollbar import __version__
from tollbar.analysis import Judgement, StudyJudgement, Verdict
from tollbar.core import units
from tollbar.core.intervals import Moments
from tollbar.core.words import counted, enumeration, left_out, more
from tollbar.report.again import again
from tollbar.report.blocks import (
    Block,
    Boxed,
    Brief,
    Code,
    Folded,
    Items,
    Key,
    Legend,
    Listing,
    Paragraph,
    Section,
    figures,
    of_values,
    standing_keys,
)
from tollbar.report.chart import toll_charts
from tollbar.report.coordinates import Form, column_title, named_value
from tollbar.report.costs import cost_words
from tollbar.report.glossary import glossary_section
from tollbar.report.groups import AtOneLoad, at_one_load, real_tolls
from tollbar.report.links import linked
from tollbar.report.names import prevailing, varied
from tollbar.report.numbers import NOISY_MARK, percent, repeats_words, times_exactly
from tollbar.report.sections.accuracy import quiet_share_words, run_line
from tollbar.report.sections.against import against_baseline
from tollbar.report.sections.answer import Answer, answer, whole_answer
from tollbar.report.sections.cpu import memory_section, shares_section, timeline_section
from tollbar.report.sections.crosstables import study_tables
from tollbar.report.sections.effects import EFFECTS, effects, effects_section
from tollbar.report.sections.factors import factors_listing, told_apart
from tollbar.report.sections.load import load_section
from tollbar.report.sections.negotiated import negotiated_section
from tollbar.report.sections.own_servers import negotiated_listing
from tollbar.report.sections.protection import strength_section, threats_section
from tollbar.report.sections.published import blocks_of, source_listing
from tollbar.report.sections.published.lines import Published, counted_verdicts, together, within
from tollbar.report.sections.results import ROWS_SHOWN, BaselineChoice, Results, results, results_section
from tollbar.report.sections.roles import roles_listing, simulated
from tollbar.report.sections.scaling import scaling_listing
from tollbar.report.sections.trust import largest_noise, trust_section
from tollbar.report.sections.unmeasured import missing, unavailable
from tollbar.report.sections.uses import uses_listing
from tollbar.report.sections.waits import waits_listing
from tollbar.report.sections.warnings import warnings
from tollbar.study import ASKED
from tollbar.study.values import QUICK_CHUNK_S, QUICK_ROUNDS

# More findings than these would push the chart off the first screen.
MOST_SAID = 2
MORE = "`tollbar judge RUN --all`, or the report"


@dataclass(frozen=True, slots=True)
class Entry:
    """Line of the page's contents: its target, and a summary of the target."""

    name: str
    title: str
    says: Sequence[Block] = ()
    parts: Sequence[Entry] = ()
    """Sections within the target."""


@dataclass(frozen=True, slots=True)
class Page:
    """Page of a run, or of the answer to a decision."""

    name: str
    """Title of the window."""
    title: str
    note: str
    contents: Sequence[Entry]
    """Contents; empty for a short page."""
    sections: Sequence[Section | Listing]
    answers: Sequence[Entry] = ()
    """Lines for the questions, then for the sources; empty for a page of one study."""


def page(judgement: Judgement) -> Page:
    """Return the whole page, as HTML has it."""
    sources, studies = together(judgement), judgement.studies
    answers = [whole_answer(study) for study in studies]
    # Self-tests of the lab are not about security, and come last.
    ordered = sorted(zip(studies, answers, strict=True), key=lambda one: one[0].about.family.is_self_test)
    entries = [
        *(Entry(_study_name(study), study.about.question, [said.choices]) for study, said in ordered),
        *(Entry(_source_name(one), one.heading, [Paragraph(counted_verdicts(one.theirs))]) for one in sources),
    ]
    taken: set[str] = set()
    sections = [
        linked(section, "", taken)
        for section in (
            *(
                Section(one.heading, tuple(blocks_of(one, judgement.run, folding=False)), _source_name(one))
                for one in sources
            ),
            *(_study(judgement, study, said) for study, said in ordered),
            Section("Method and machine", tuple(_how(judgement)), "how"),
            Section("Reproduce", again(judgement.run), "again"),
            glossary_section(),
        )
    ]
    return Page(
        judgement.run.name,
        "What security costs on this machine",
        run_line(judgement),
        [_entry(section) for section in sections],
        sections,
        entries if len(studies) > 1 else (),
    )


def briefs(judgement: Judgement, *, everything: bool = False) -> tuple[Brief, ...]:
    """Return the brief form of each study, in the run's order; with all rows, or as many as a screen has."""
    return tuple(_brief(judgement, study, None if everything else ROWS_SHOWN) for study in judgement.studies)


def _entry(section: Section | Listing, *, whole: bool = True) -> Entry:
    parts = [part for part in section.blocks if isinstance(part, Section | Listing)] if whole else []
    inside = [_entry(part, whole=False) for part in parts]
    return Entry(section.name, section.title, parts=inside)


def _source_name(published: Published) -> str:
    return f"source-{published.source.name if published.source else ''}"


def _study_name(study: StudyJudgement) -> str:
    return f"study-{study.about.name}"


# Sections of one study are in the order of a reader's doubts.


def _study(judgement: Judgement, study: StudyJudgement, said: Answer) -> Section:
    at, main = at_one_load(study), results(study)
    part = within(judgement, study)
    sections = (
        *study_tables(study),
        factors_listing(study),
        scaling_listing(study, judgement.run.fingerprint),
        roles_listing(study, judgement.run),
        # Cells of all combinations are not alternatives.
        None if told_apart(study) else uses_listing(study),
        effects_section(study),
        strength_section(study, at),
        threats_section(study),
        Section(part.heading, tuple(blocks_of(part, judgement.run, folding=True))) if part else None,
        memory_section(study),
        shares_section(at),
        waits_listing(study),
        timeline_section(at),
        load_section(study),
        negotiated_section(study),
        results_section(study, main),
        trust_section(study),
    )
    return Section(
        study.about.question,
        (
            *(Paragraph(sentence, "note") for sentence in simulated(judgement.run)),
            *_answer(study, said, at, main),
            *(one for one in sections if one is not None),
        ),
        _study_name(study),
        study.about.name,
    )


def _answer(study: StudyJudgement, said: Answer, at: AtOneLoad, main: Results) -> Iterator[Block]:
    first, *rest = said.says
    yield Paragraph(first, "answer")
    # With several studies these are at the head of the page, if there is room.
    yield replace(said.choices, says="")
    yield Items(rest[:MOST_SAID]) if len(rest) > 1 else Paragraph("".join(rest))
    if len(rest) > MOST_SAID:
        yield Folded(f"The same in {more(len(rest) - MOST_SAID, 'place')}", [Items(rest[MOST_SAID:])])
    compared = real_tolls(study)
    if compared:
        threshold, floor = percent(study.about.threshold), largest_noise(study)
        keys = [*standing_keys(study.rows), Key(f"within {threshold}: no meaningful difference (free)", mark="band")]
        if floor:
            reaches = f"equal work measured twice reaches {times_exactly(floor)}; closer ratios are unclear"
            keys.append(Key(f"noise floor: {reaches}", mark="floor"))
        if any(toll.verdict is Verdict.UNCLEAR for toll in compared):
            keys.append(Key("hollow: unclear", mark="hollow"))
        yield Legend(keys)
        yield Paragraph(at.note, "note")
        if len(main.ways) > 1:
            yield BaselineChoice(main)
        yield Boxed("tolls", [*figures(toll_charts(at.study, study))])
        yield Paragraph(" ".join(against_baseline(study)), "note")
    else:
        yield Paragraph("There is nothing to compare.", "note")
    yield from (Paragraph(sentence) for sentence in unavailable(study))
    yield Paragraph(meanings(study), "note")
    yield Items(study.about.notes)


def _how(judgement: Judgement) -> Iterator[Block]:
    run = judgement.run
    page = "" if run.version == __version__ else f" This page was made with Tollbar {__version__}."
    also = f", resumed with {enumeration(run.resumed_with)}" if run.resumed_with else ""
    yield Paragraph(f"Measured {run.started} with Tollbar {run.version}{also}.{page}")
    yield from (Paragraph(of) for of in dict.fromkeys(cost_words(study).method for study in judgement.studies))
    for study in judgement.studies:
        about = study.about
        yield Paragraph(blocks_and_chunks(study))
        yield Folded(
            f"The study file of {about.name} at the time of the run", [Code(f"The study file {about.name}", about.text)]
        )
    if run.fingerprint:
        yield of_values("The machine", run.fingerprint)
    for name, receipt in run.providers.items():
        said = [of_values(f"Description that {name} sent", receipt)] if receipt else []
        yield Folded(f"Receipt of {name}", said)


def _brief(judgement: Judgement, study: StudyJudgement, most: int | None) -> Brief:
    main, effect = results(study, most), effects(study, most)
    first, *paragraphs = answer(study)
    part, gone = within(judgement, study), missing(study)
    left = len(study.study.left_out)
    listings = [
        Listing(
            "",
            tables=main.brief,
            heads="at",
            notes=[*main.marks, *left_out(main.hidden, "row", MORE)] if main.brief else (),
        ),
        *study_tables(study),
        *filter(
            None,
            [
                factors_listing(study),
                scaling_listing(study, judgement.run.fingerprint),
                roles_listing(study, judgement.run),
                negotiated_listing(study),
                None if told_apart(study) or study.about.name == ASKED else uses_listing(study),
                waits_listing(study),
            ],
        ),
        *(
            [Listing(EFFECTS, tables=effect.brief, heads="setting", notes=left_out(effect.hidden, "comparison", MORE))]
            if effect.brief
            else []
        ),
        *([source_listing(part)] if part else []),
    ]
    return Brief(
        study.about.question,
        first,
        # Paragraphs on factors are with their tables.
        () if told_apart(study) else paragraphs,
        [how(study), *([f"In every row: {main.alike}"] if main.alike else [])],
        listings,
        gone[:most],
        [
            *left_out(len(gone) - len(gone[:most]), "reason", MORE),
            *([f"left out: {counted(left, 'combination')}, with reasons in the report"] if left else []),
        ],
        (*simulated(judgement.run), *warnings(study)),
    )


def meanings(study: StudyJudgement) -> str:
    """Return the meanings of the words next to the rows, and of values left out of names."""
    family, vary = study.about.family, varied(study)
    settings = [(n, s) for n, s in family.settings.items() if n in vary and not s.is_size]
    means = [f"{column_title(family, n)}: {s.title}" for n, s in settings]
    prevails = [named_value(family, n, v) for n, v in prevailing(study).items()]
    if prevails:
        means.append(f"Omitted from names: {enumeration(prevails)}")
    return ". ".join(means) + "." if means else ""


def how(study: StudyJudgement) -> str:
    """Return the cost and the baseline of the ratios, and their certainty."""
    about = study.about
    baseline = ", ".join(
        named_value(about.family, n, study.study.named(n, v), Form.QUESTION) for n, v in about.baseline.items()
    )
    blocks = max((toll.ratio.n for toll in study.tolls if toll.ratio), default=0)
    # Without A/A pairs the noise is unknown, and a warning reports that.
    repeats = [] if study.noise is None else [f"A/A pairs differed by {repeats_words(study.noise)}"]
    said = (
        f"{cost_words(study).title}, {moments_words(study)}, against {baseline}, everything else equal",
        counted(blocks, "block"),
        *repeats,
        f"differences under {percent(about.threshold)} are ignored",
        quiet_share_words(study),
    )
    return " · ".join(said)


MIXED_MOMENTS = f"noisy where marked {NOISY_MARK}, otherwise quiet"


def moments_words(study: StudyJudgement) -> str:
    """Return `quiet` or `noisy`, as all of the study's ratios are, or how to tell which."""
    found = {toll.ratio.moments for toll in real_tolls(study) if toll.ratio is not None}
    if len(found) > 1:
        return MIXED_MOMENTS
    return str(next(iter(found), Moments.QUIET))


def _time(seconds: float) -> str:
    return units.show_nanoseconds(seconds * 1e9)


def blocks_and_chunks(study: StudyJudgement) -> str:
    """Return one study's method in a line."""
    about, looks = study.about, study.study.interim_looks
    done = max((m.blocks for m in study.measurements), default=0)
    looked = f", judged after {enumeration([str(n) for n in looks])}" if len(looks) > 1 else ""
    quick = f", and {QUICK_ROUNDS} of {_time(QUICK_CHUNK_S)} of quick operations" if about.measure.is_adapted else ""
    return (
        f"{about.name}: {done:,} of {about.measure.blocks:,} planned blocks{looked}; in each,"
        f" {about.measure.rounds:,} chunks of {_time(about.measure.chunk_s)} or more of each cell{quick};"
        f" differences under {percent(about.threshold)} are ignored."
        f" Intervals are at {percent(study.confidence)} confidence."
    )
