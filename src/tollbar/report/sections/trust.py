"""Trust in a study: its checks, the meaning of its costs, noise, drift, and events on the machine."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tollbar.analysis import StudyJudgement, Toll
from tollbar.analysis.decisions import reach
from tollbar.core import units
from tollbar.core.records import Outcome
from tollbar.core.stats import Interval, Moments
from tollbar.core.words import counted, enumeration, few
from tollbar.report.blocks import (
    Boxed,
    Column,
    Figures,
    Items,
    Key,
    Legend,
    Section,
    Table,
    TableCell,
    count_cell,
    folds,
    numbers,
)
from tollbar.report.chart import drift_chart
from tollbar.report.groups import real_tolls
from tollbar.report.names import place_words, varied
from tollbar.report.numbers import apart_words, bracket_exactly, percent, times_exactly
from tollbar.report.sections.unmeasured import set_aside
from tollbar.report.sections.warnings import warnings

# A server refuses the same few things in all of its cells; with more than these, each cell has its own.
MOST_PROOFS = 8
# A longer table of A/A pairs is folded.
MOST_REPEATS = 12


def trust_section(study: StudyJudgement) -> Section:
    chart, warned, repeats = drift_chart(study), warnings(study), repeats_table(study)
    keys = Legend([Key("median cell", mark="line"), Key("eight cells of ten", mark="band")])
    summary = f"{repeats.caption}: {counted(len(repeats.rows), 'baseline')}"
    return Section(
        "Can this be trusted?",
        (
            *([Boxed("warnings", [Section("Warnings", [Items(warned)])])] if warned else []),
            Items(trust(study)),
            *((keys, Figures([chart], "")) if chart else ()),
            *(folds(summary, repeats, len(repeats.rows) > MOST_REPEATS) if repeats.rows else []),
        ),
    )


def trust(study: StudyJudgement) -> list[str]:
    """Return the reasons to trust or doubt the study, a sentence or two for each."""
    return [
        f"{checked(study)} {proof(study)}",
        two_costs(study),
        noise(study),
        drift(study),
        *warm_up(study),
        steal(study),
        machine_load(study),
        *by_chance(study),
        *set_aside(study),
    ]


def by_chance(study: StudyJudgement) -> list[str]:
    """Return the number of the study's tolls that miss the truth by chance alone; empty if it is below one."""
    tolls = sum(toll.ratio is not None and toll.ratio.is_bounded for toll in real_tolls(study))
    misses = tolls * (1 - study.confidence)
    # Rounded to a hundredth, because 20 × (1 − 0.95) is slightly below one.
    if round(misses, 2) < 1:
        return []
    return [
        f"Of {tolls:,} tolls at {percent(study.confidence)} confidence about {misses:.0f}"
        f" {'misses' if round(misses) == 1 else 'miss'} by chance alone: one row that stands out among many may be"
        " among them. The answer's own comparisons hold together."
    ]


def noisy_words(study: StudyJudgement, ratio: Interval | None) -> str | None:
    """Return why the ratio is not quiet; None if it is."""
    if ratio is None or ratio.moments is Moments.QUIET:
        return None
    if study.trust.quiet_share is None:
        return "noisy: no probe shares the core that is measured"
    if study.trust.slower_than_known:
        return "noisy: always measured beside a busy neighbour"
    if study.trust.varying:
        return "noisy: its core was quiet in too few blocks or for too short, or its operations vary (see the warnings)"
    return "noisy: its core was quiet in too few blocks, or for too short"


def suffers_words(toll: Toll) -> str | None:
    """Return `suffers more from neighbours than its baseline` if the two ratios differ."""
    return f"suffers {toll.suffers} from neighbours than its baseline" if toll.suffers else None


def largest_noise(study: StudyJudgement) -> float | None:
    """Return the largest ratio that noise alone may make in this study."""
    return max((reach(t.noise) for t in real_tolls(study) if t.noise is not None), default=None)


def two_costs(study: StudyJudgement) -> str:
    """Return the meanings of the two costs, and the number of cells in which they differ."""
    said = (
        "Quiet is what an operation costs while the core is quiet: rounds count whose chunks lie between"
        " quick probes of the core; verdicts rest on its ratios. *All samples* is what it cost today, in the"
        " first try of every round."
    )
    apart = [
        f"{sum(t.suffers == way for t in study.tolls):,} {way}"
        for way in ("more", "less")
        if any(t.suffers == way for t in study.tolls)
    ]
    if not apart:
        return said
    tolls = counted(sum(t.all_samples is not None for t in real_tolls(study)), "cell")
    return (
        f"{said} Where the two ratios are more than {percent(study.about.threshold)} apart, the cell suffers"
        f" more or less from neighbours on the machine than its baseline does: of {tolls}, {enumeration(apart)}."
    )


def noise(study: StudyJudgement) -> str:
    """Return the ratio of the A/A pairs, and its consequence."""
    if study.noise is None:
        return "Nothing was measured twice in blocks enough, so that the noise is not known."
    return (
        "In each block every baseline is measured twice, and where it does nothing a cell that does. These differed by"
        f" {apart_words(study.noise.estimate)} where the two came out furthest apart: their ratio is"
        f" {times_exactly(study.noise.estimate)} {bracket_exactly(study.noise)}. Differences smaller"
        " than the far end of that interval are not reported, for a cell's own baseline and kind."
    )


def drift(study: StudyJudgement) -> str:
    """Return one sentence on the drift of the machine during the run."""
    if study.drift is None:
        return "There are too few blocks to tell whether the machine drifted."
    change = f"{(study.drift - 1) * 100:+.1f} %".replace("-", "−")
    return (
        f"From the first to the last third of the blocks the median cell's cost changed by {change};"
        " a cell and its baseline work milliseconds apart, so that it changes both."
    )


def warm_up(study: StudyJudgement) -> list[str]:
    """Return the change of the ratio that changes most within trials; empty if too few rounds were quiet."""
    if study.trust.trend is None:
        return []
    title, found = study.trust.trend
    return [
        f"Within a trial the ratio of {title} changes most: it is {times_exactly(found.estimate)}"
        f" {bracket_exactly(found)} as large in the last round as in the first."
    ]


def checked(study: StudyJudgement) -> str:
    """Return one sentence: the number of cells that answered correctly, and the outcomes of the others."""
    rows = study.rows
    ok = sum(r.outcome is Outcome.OK for r in rows)
    text = f"{ok:,} of {counted(len(rows), 'cell')} gave the right answer before they were timed"
    others = [(o, sum(r.outcome is o for r in rows)) for o in Outcome if o is not Outcome.OK]
    rest = [f"{n:,} {o}" for o, n in others if n]
    return f"{text}; {enumeration(rest)}." if rest else f"{text}."


def proof(study: StudyJudgement) -> str:
    """Return the proofs of the cells before they were timed, and those that could not be tried."""
    rows = [r for r in study.rows if r.outcome is Outcome.OK]
    met = sum(r.known_answers for r in rows)
    refused = list(dict.fromkeys(what for r in rows for what in r.refused))
    # A server alone meets no known answers; the sentence before has reported that its answers were right.
    said = [f"met {counted(met, 'known answer')}"] if met or not refused else []
    said += [f"refused {_few_proofs(refused)}"] if refused else []
    not_tried = list(dict.fromkeys(what for r in rows for what in r.not_tried))
    rest = f" Not tried: {_few_proofs(not_tried)}." if not_tried else ""
    return f"They {enumeration(said)}.{rest}"


def _few_proofs(things: Sequence[str]) -> str:
    """Return these refusals in words; the first few if there are many."""
    return enumeration(few(things, MOST_PROOFS, spare=1))


def machine_load(study: StudyJudgement) -> str:
    """Return one sentence on the machine's load, the lab's own processes included."""
    found = sorted(t.machine_load for r in study.rows for t in r.all_trials)
    if not found:
        return "How busy the machine was is not known."
    return (
        f"The machine's load, with the lab's own processes in it, was {median(found):.1f}"
        f" (from {found[0]:.1f} to {found[-1]:.1f})."
    )


def steal(study: StudyJudgement) -> str:
    """Return one sentence on the CPU time that the hypervisor gave to others."""
    trials = [t for r in study.rows for t in r.all_trials]
    if not trials:
        return "There are no trials."
    # The trials of a batch share its time, and the time stolen from it.
    batches = {(t.block, t.batch): t.steal_ns for t in trials}
    stolen, wall = sum(batches.values()), sum(t.wall_ns for t in trials)
    if not stolen:
        return f"No CPU time was given to other machines in {counted(len(batches), 'batch')}."
    touched = sum(steal_ns > 0 for steal_ns in batches.values())
    return (
        f"The hypervisor gave {units.show_nanoseconds(stolen)} of CPU time to others during {touched:,} of"
        f" {counted(len(batches), 'batch')}, whose chunks took {units.show_nanoseconds(wall)} in all."
    )


def repeats_table(study: StudyJudgement) -> Table:
    """Return the table of A/A pairs: the repeat's cost over the original's."""
    names = ("choice", *(n for n in varied(study) if n != "choice"))
    place = place_words(study)
    rows = [
        (
            TableCell(place(row.coordinates, names)),
            TableCell(times_exactly(ratio.estimate), ratio.estimate, bracket_exactly(ratio)),
            TableCell(times_exactly(reach(ratio)), reach(ratio)) if ratio.is_bounded else TableCell("–"),
            count_cell(ratio.n),
        )
        for row, ratio in study.repeats
    ]
    columns = (Column("cell"), *numbers("measured again", "no verdict within", "blocks"))
    return Table(
        "Each baseline, and a cell of each other kind, measured twice, which should differ by nothing: the second over"
        " the first",
        columns,
        rows,
    )
