"""Trust in a study: its checks, the meaning of its costs, noise, drift, and events on the machine."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tollbar.analysis import StudyJudgement, Toll
from tollbar.analysis.decisions import reach
from tollbar.core import units
from tollbar.core.intervals import Interval, Moments
from tollbar.core.records import Outcome
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
        f"About {misses:.0f} of {tolls:,} tolls at {percent(study.confidence)} confidence"
        f" {'misses' if round(misses) == 1 else 'miss'} by chance alone; one unusual row among many may be such a miss."
        " The comparisons of the answer are adjusted for their number."
    ]


def noisy_words(study: StudyJudgement, ratio: Interval | None) -> str | None:
    """Return why the ratio is not quiet; None if it is."""
    if ratio is None or ratio.moments is Moments.QUIET:
        return None
    if study.trust.quiet_share is None:
        return "noisy: no probe runs on the measured core"
    if study.trust.slower_than_known:
        return "noisy: always measured next to a busy neighbour"
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
        "The quiet cost is that of a quiet core: only rounds whose chunks lie between quick probes of the core count."
        " Verdicts use its ratios. The cost of all samples is that of today, in the first try of every round."
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
        f"{said} A cell whose two ratios are more than {percent(study.about.threshold)} apart suffers more or less"
        f" from neighbours on the machine than its baseline: {enumeration(apart)}, out of {tolls}."
    )


def noise(study: StudyJudgement) -> str:
    """Return the ratio of the A/A pairs, and its consequence."""
    if study.noise is None:
        return "The noise is not known: no A/A pair has enough blocks."
    return (
        "Each block measures every baseline twice (an A/A pair); a baseline that does no work is replaced by a cell"
        f" that does. The pair with the furthest end differed by {apart_words(study.noise.estimate)}, a ratio of"
        f" {times_exactly(study.noise.estimate)} {bracket_exactly(study.noise)}. Differences smaller than the far end"
        " of such an interval get no verdict, for a cell's own baseline and kind."
    )


def drift(study: StudyJudgement) -> str:
    """Return one sentence on the drift of the machine during the run."""
    if study.drift is None:
        return "Drift of the machine is not known: there are too few blocks."
    change = f"{(study.drift - 1) * 100:+.1f} %".replace("-", "−")
    return (
        f"The median cell's cost changed by {change} from the first to the last third of the blocks."
        " A cell and its baseline work milliseconds apart, so drift changes both."
    )


def warm_up(study: StudyJudgement) -> list[str]:
    """Return the change of the ratio that changes most within trials; empty if too few rounds were quiet."""
    if study.trust.trend is None:
        return []
    title, found = study.trust.trend
    return [
        f"The ratio of {title} changes most within a trial: it is {times_exactly(found.estimate)}"
        f" {bracket_exactly(found)} as large in the last round as in the first."
    ]


def checked(study: StudyJudgement) -> str:
    """Return one sentence: the number of cells that answered correctly, and the outcomes of the others."""
    rows = study.rows
    ok = sum(r.outcome is Outcome.OK for r in rows)
    text = f"{ok:,} of {counted(len(rows), 'cell')} passed the correctness check before they were timed"
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
        return "The machine's load is not known."
    return (
        f"The machine's load, including the lab's own processes, was {median(found):.1f}"
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
        return f"The hypervisor gave no CPU time to other machines in {counted(len(batches), 'batch')}."
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
    columns = (Column("cell"), *numbers("second ÷ first", "no verdict within", "blocks"))
    return Table(
        "A/A pairs: each baseline, and a cell of each other kind, measured twice. Ratios should be 1",
        columns,
        rows,
    )
