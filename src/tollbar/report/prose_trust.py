"""Sentences about how far a run can be believed: noise, drift, checks and time that others had."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tollbar import units
from tollbar.judge import StudyJudgement
from tollbar.measure import Outcome
from tollbar.report import words
from tollbar.stats import Interval

# A server refuses the same few things in all of its cells; with more than these, each cell has its own.
MOST_PROOFS = 8


def two_costs(study: StudyJudgement) -> str:
    """What the two costs mean, and how many cells they tell apart."""
    said = (
        "Undisturbed is what an operation costs while the core is left alone: chunks count by how near it was to that;"
        " verdicts rest on its ratios. Typical is what it cost as disturbed today, beside its baseline in the same"
        " rounds."
    )
    apart = [
        f"{sum(t.suffers == way for t in study.tolls):,} {way}"
        for way in ("more", "less")
        if any(t.suffers == way for t in study.tolls)
    ]
    if not apart:
        return said
    tolls = words.counted(sum(t.typical is not None for t in words.real_tolls(study)), "cell")
    return (
        f"{said} Where the two ratios are more than {words.percent(study.study.study.worth)} apart, the cell suffers"
        f" more or less from neighbours on the machine than its baseline does: of {tolls}, {words.enumeration(apart)}."
    )


def noise(study: StudyJudgement) -> str:
    """What the twins came out as, and what follows from it."""
    if study.noise is None:
        return "No baseline was measured beside itself in blocks enough, so that the noise is not known."
    return (
        "In each block every baseline is measured once more, beside itself. Where the two came out furthest apart,"
        f" their ratio is {times_exactly(study.noise.estimate)} {bracket_exactly(study.noise)}. No verdict is given"
        " nearer to × 1 than the far end of a baseline's own twins' interval."
    )


def times_exactly(ratio: float) -> str:
    """A ratio near one, to three decimals: two would round a noise floor away."""
    return f"×\u00a0{ratio:.3f}" if 0.5 < ratio < 2 else words.times(ratio)


def bracket_exactly(ratio: Interval) -> str:
    """`[0.998, 1.004]`, or that the blocks are too few for an interval."""
    return f"[{ratio.low:.3f}, {ratio.high:.3f}]" if ratio.is_bounded else words.TOO_FEW


def drift(study: StudyJudgement) -> str:
    """One sentence: how far the machine moved under the run."""
    if study.drift is None:
        return "There are too few blocks to tell whether the machine drifted."
    change = f"{(study.drift - 1) * 100:+.1f} %".replace("-", "−")
    return (
        f"From the first to the last third of the blocks the median cell's cost changed by {change};"
        " a cell and its baseline work milliseconds apart, so that it changes both."
    )


def checked(study: StudyJudgement) -> str:
    """One sentence: how many cells answered rightly and were measured, and what became of the others."""
    rows = study.study.rows
    ok = sum(r.outcome is Outcome.OK for r in rows)
    text = f"{ok:,} of {words.counted(len(rows), 'cell')} gave the right answer before they were timed"
    others = [(o, sum(r.outcome is o for r in rows)) for o in Outcome if o is not Outcome.OK]
    rest = [f"{n:,} {o}" for o, n in others if n]
    return f"{text}; {words.enumeration(rest)}." if rest else f"{text}."


def proof(study: StudyJudgement) -> str:
    """What the cells showed for themselves before they were timed, and what could not be tried."""
    rows = [r for r in study.study.rows if r.outcome is Outcome.OK]
    met = sum(r.known_answers for r in rows)
    refused = list(dict.fromkeys(what for r in rows for what in r.refused))
    # A server meets no known answers by itself: that its answers were right is said already.
    said = [f"met {words.counted(met, 'known answer')}"] if met or not refused else []
    said += [f"refused {_few(refused)}"] if refused else []
    not_tried = list(dict.fromkeys(what for r in rows for what in r.not_tried))
    rest = f" Not tried: {_few(not_tried)}." if not_tried else ""
    return f"They {words.enumeration(said)}.{rest}"


def _few(things: Sequence[str]) -> str:
    """What the cells refused, or could not be tried; where there is much of it, some."""
    more = len(things) - MOST_PROOFS
    return words.enumeration([*things[:MOST_PROOFS], f"{more} more"] if more > 1 else things)


def load(study: StudyJudgement) -> str:
    """One sentence: how busy the machine was, the lab's own processes included."""
    found = sorted(t.machine_load for r in study.study.rows for t in (*r.trials, *r.twins))
    if not found:
        return "How busy the machine was is not known."
    return (
        f"The machine's load, with the lab's own processes in it, was {median(found):.1f}"
        f" (from {found[0]:.1f} to {found[-1]:.1f})."
    )


def steal(study: StudyJudgement) -> str:
    """One sentence: the CPU time that the hypervisor gave to others meanwhile."""
    trials = [t for r in study.study.rows for t in (*r.trials, *r.twins)]
    if not trials:
        return "There are no trials."
    # The trials of a heat share its time, and what was stolen of it.
    heats = {(t.block, t.heat): t.steal_ns for t in trials}
    stolen, wall = sum(heats.values()), sum(t.wall_ns for t in trials)
    if not stolen:
        return f"No CPU time was given to other machines in {words.counted(len(heats), 'heat')}."
    touched = sum(steal_ns > 0 for steal_ns in heats.values())
    return (
        f"The hypervisor gave {units.show_nanoseconds(stolen)} of CPU time to others during {touched:,} of"
        f" {words.counted(len(heats), 'heat')}, whose chunks took {units.show_nanoseconds(wall)} in all."
    )
