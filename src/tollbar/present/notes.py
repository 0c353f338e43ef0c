"""Notes: how far a run can be trusted and what limits its numbers, in sentences made from the judgement."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from statistics import median

from tollbar import units
from tollbar.judge import Contrast, Limit, StudyJudgement, Toll, Verdict
from tollbar.judge.measurements import BUSY
from tollbar.judge.noise import reach
from tollbar.present import words
from tollbar.present.cells import by_row, cost_metric, prevailing, real_tolls, varying
from tollbar.present.costs import cost_words
from tollbar.present.words import bracket_exactly, counted, percent, times_exactly
from tollbar.records import Outcome
from tollbar.results import Row, Run
from tollbar.stats import Interval, Moments
from tollbar.study import Statistic

# A server refuses the same few things in all of its cells; with more than these, each cell has its own.
MOST_PROOFS = 8

_WHY_LIMITED = {
    Limit.CLIENT_BOUND: f"the load client's core was more than {percent(BUSY)} busy, so that a faster client"
    " would have got more.",
    Limit.NOT_SATURATED: f"the server's core was less than {percent(BUSY)} busy, so that more users would have"
    " got more.",
    Limit.CONTENDED: "other programs had the server's or the load client's core for part of the time, so that a"
    " quieter machine would have got more.",
}


def trust(study: StudyJudgement) -> list[str]:
    """How far the study can be trusted, a sentence or two for each reason to doubt it."""
    return [
        f"{checked(study)} {proof(study)}",
        two_costs(study),
        noise(study),
        drift(study),
        steal(study),
        load(study),
        *by_chance(study),
        *set_aside(study),
    ]


def meanings(study: StudyJudgement) -> str:
    """What the words beside the rows mean, and what goes without saying."""
    family, vary = study.about.family, varying(study.rows)
    settings = [(n, s) for n, s in family.settings.items() if n in vary and not s.is_size]
    means = [f"{words.column_title(family, n)}: {s.title}" for n, s in settings]
    prevails = [words.named_value(family, n, v) for n, v in prevailing(study).items()]
    if prevails:
        means.append(f"Where a name says nothing of it: {words.enumeration(prevails)}")
    return ". ".join(means) + "." if means else ""


def blocks_and_chunks(study: StudyJudgement) -> str:
    """One study's method in a line."""
    about, looks = study.about, study.study.looks
    done = max((m.blocks for m in study.measurements), default=0)
    looked = f", judged after {words.enumeration([str(n) for n in looks])}" if len(looks) > 1 else ""
    return (
        f"{about.name}: {done:,} of {about.measure.blocks:,} planned blocks{looked}; in each,"
        f" {about.measure.rounds:,} chunks of {units.show_nanoseconds(about.measure.chunk_s * 1e9)} or more of each"
        f" cell; differences under {percent(about.worth)} are ignored."
        f" Intervals are at {percent(study.confidence)} confidence."
    )


def commands(run: Run) -> dict[str, str]:
    """The commands that do it again, by what each does."""
    parts = run.directory.parts
    # A report is handed on, and where a home directory lies is the user's own business.
    path = shlex.quote("/".join(parts[-2:]) if run.directory.is_absolute() else str(run.directory))
    command = list(run.command) or ["tollbar", "run"]
    if not any(part == "--seed" or part.startswith("--seed=") for part in command):
        command += ["--seed", str(run.seed)]
    return {
        "The same run, the same order": shlex.join(command),
        "Judge the same trials again": f"tollbar judge {path}",
        "Compare with another run": f"tollbar compare {path} OTHER-RUN",
        "The numbers as a file": f"tollbar export {path} --format csv",
    }


def by_chance(study: StudyJudgement) -> list[str]:
    """How many of the study's tolls miss the truth although nothing went wrong; nothing where that is less than one."""
    tolls = sum(toll.ratio is not None and toll.ratio.is_bounded for toll in real_tolls(study))
    misses = tolls * (1 - study.confidence)
    # To a hundredth: 20 × (1 − 0.95) is a hair below one.
    if round(misses, 2) < 1:
        return []
    return [
        f"Of {tolls:,} tolls at {percent(study.confidence)} confidence about {misses:.0f}"
        f" {'misses' if round(misses) == 1 else 'miss'} by chance alone: one row that stands out among many may be"
        " among them. The answer's own comparisons hold together."
    ]


def set_aside(study: StudyJudgement) -> list[str]:
    """A sentence for each time that a cell failed too often and had no more trials: which, why, what became of it."""
    rows, names = {row.key: row for row in study.rows}, varying(study.rows, always=("choice",))
    said = []
    for one in study.study.set_aside:
        row = rows.get(one.cell)
        named = words.place(study.about.family, row.shown, names) if row else one.cell
        later = (
            "`tollbar run --resume RUN` tries it again"
            if one.tried_again_s is None
            else "it was tried again when the run was resumed"
        )
        said.append(
            f"{named} was set aside after {one.failed:,} of its {counted(one.trials, 'trial')} failed"
            f" ({one.reason.rstrip('.')}), so that it has fewer blocks than the others: {later}."
        )
    return said


def largest_noise(study: StudyJudgement) -> float | None:
    """How far from one noise alone may take a ratio of this study, at most."""
    return max((reach(t.noise) for t in real_tolls(study) if t.noise is not None), default=None)


def two_costs(study: StudyJudgement) -> str:
    """What the two costs mean, and how many cells they tell apart."""
    said = (
        "Undisturbed is what an operation costs while the core is left alone: rounds count whose chunks lie between"
        " quick probes of the core; verdicts rest on its ratios. Typical is what it cost as disturbed today, in the"
        " first try of every round."
    )
    apart = [
        f"{sum(t.suffers == way for t in study.tolls):,} {way}"
        for way in ("more", "less")
        if any(t.suffers == way for t in study.tolls)
    ]
    if not apart:
        return said
    tolls = counted(sum(t.typical is not None for t in real_tolls(study)), "cell")
    return (
        f"{said} Where the two ratios are more than {percent(study.about.worth)} apart, the cell suffers"
        f" more or less from neighbours on the machine than its baseline does: of {tolls}, {words.enumeration(apart)}."
    )


def noise(study: StudyJudgement) -> str:
    """What the twins came out as, and what follows from it."""
    if study.noise is None:
        return "Nothing was measured twice in blocks enough, so that the noise is not known."
    return (
        "In each block every baseline is measured twice, and where it does nothing a cell that does. These differed by"
        f" {words.apart(study.noise.estimate)} where the two came out furthest apart: their ratio is"
        f" {times_exactly(study.noise.estimate)} {bracket_exactly(study.noise)}. No verdict is given nearer to × 1"
        " than the far end of that interval, for a cell's own baseline and kind."
    )


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
    rows = study.rows
    ok = sum(r.outcome is Outcome.OK for r in rows)
    text = f"{ok:,} of {counted(len(rows), 'cell')} gave the right answer before they were timed"
    others = [(o, sum(r.outcome is o for r in rows)) for o in Outcome if o is not Outcome.OK]
    rest = [f"{n:,} {o}" for o, n in others if n]
    return f"{text}; {words.enumeration(rest)}." if rest else f"{text}."


def proof(study: StudyJudgement) -> str:
    """What the cells showed for themselves before they were timed, and what could not be tried."""
    rows = [r for r in study.rows if r.outcome is Outcome.OK]
    met = sum(r.known_answers for r in rows)
    refused = list(dict.fromkeys(what for r in rows for what in r.refused))
    # A server meets no known answers by itself: that its answers were right is said already.
    said = [f"met {counted(met, 'known answer')}"] if met or not refused else []
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
    found = sorted(t.machine_load for r in study.rows for t in r.all_trials)
    if not found:
        return "How busy the machine was is not known."
    return (
        f"The machine's load, with the lab's own processes in it, was {median(found):.1f}"
        f" (from {found[0]:.1f} to {found[-1]:.1f})."
    )


def steal(study: StudyJudgement) -> str:
    """One sentence: the CPU time that the hypervisor gave to others meanwhile."""
    trials = [t for r in study.rows for t in r.all_trials]
    if not trials:
        return "There are no trials."
    # The trials of a heat share its time, and what was stolen of it.
    heats = {(t.block, t.heat): t.steal_ns for t in trials}
    stolen, wall = sum(heats.values()), sum(t.wall_ns for t in trials)
    if not stolen:
        return f"No CPU time was given to other machines in {counted(len(heats), 'heat')}."
    touched = sum(steal_ns > 0 for steal_ns in heats.values())
    return (
        f"The hypervisor gave {units.show_nanoseconds(stolen)} of CPU time to others during {touched:,} of"
        f" {counted(len(heats), 'heat')}, whose chunks took {units.show_nanoseconds(wall)} in all."
    )


def unavailable(study: StudyJudgement) -> list[str]:
    """A sentence for each server on which nothing could be measured, for one reason."""
    family = study.about.family
    by_bed: dict[str, list[Row]] = {}
    for row in study.rows:
        if row.bed is not None:
            by_bed.setdefault(row.bed, []).append(row)
    said = []
    for bed, rows in by_bed.items():
        reasons = {r.reason for r in rows if r.outcome is Outcome.UNSUPPORTED}
        if all(r.outcome is Outcome.UNSUPPORTED for r in rows) and len(reasons) == 1:
            name, reason = words.value_words(family, "bed", bed), (reasons.pop() or "no reason was recorded")
            said.append(f"Not available here, {counted(len(rows), 'cell')} on {name}: {reason.rstrip('.')}.")
    return said


def limited(study: StudyJudgement) -> list[str]:
    """What the hollow points and marked numbers mean, and how many of them there are."""
    found = list(by_row(study, "throughput").values())
    all_of = counted(len(found), "cell")
    said = []
    for limit, why in _WHY_LIMITED.items():
        count = sum(m.limit is limit for m in found)
        if count:
            said.append(f"{words.LIMIT_MARKS[limit]} hollow, {limit} ({count:,} of {all_of}): {why}")
    if said:
        right = "CPU per request is right there too." if cost_metric(study) == "server-cpu" else ""
        said.append(f"Such requests a second and response times get no verdict. {right}".strip())
    return said


def capacity(study: StudyJudgement) -> str:
    """What capacity is, where a claim is judged by it."""
    if not any(c.claim.metric == "capacity" and c.claim.is_judged for c in study.claims):
        return ""
    of = cost_words(study).in_sentence
    return f"Capacity is one over {of}: what one core could do were nothing else in its way."


def by_source(study: StudyJudgement) -> str:
    """How a source's own statistic comes about here, where one is shown."""
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


def undecided(study: StudyJudgement, of: Toll | Contrast) -> str | None:
    """What an unclear verdict leaves open: `undecided, about 2 more blocks: less by 2 to 4 %, around your 3 %`."""
    if of.verdict is not Verdict.UNCLEAR:
        return None
    more = f", about {counted(of.more_blocks, 'more block')}" if of.more_blocks else ""
    worth = study.about.worth
    if isinstance(of, Contrast):
        # The ends are those of several pairs, each with a noise of its own.
        return f"undecided{more}: {words.excess_words(Interval(of.least, of.low, of.high, study.confidence, 0), worth)}"
    if of.ratio is None:
        return None
    noise = None if of.noise is None else reach(of.noise)
    return f"undecided{more}: {words.excess_words(of.ratio, worth, noise)}"


def verdicts(found: Collection[Verdict], worth: float) -> str:
    """What these verdicts mean, in short: `free: no meaningful difference`."""
    least = percent(worth)
    meaning = {
        Verdict.COSTS: f"dearer by more than {least}",
        Verdict.SAVES: f"cheaper by more than {least}",
        Verdict.FREE: f"no meaningful difference (within {least})",
        Verdict.UNCLEAR: "undecided",
    }
    return " · ".join(f"{verdict}: {means}" for verdict, means in meaning.items() if verdict in found)


def left_alone(study: StudyJudgement) -> str:
    """How much of its time the core was left alone: `the core was left alone 87 % of the time`."""
    share = study.trust.left_alone
    if share is None:
        return "no probe shares the core that is measured: all is as disturbed"
    return f"the core was left alone {percent(share)} of the time"


def moments(study: StudyJudgement) -> str:
    """Which moments the study's ratios are of: where not one of them is undisturbed, none is called so."""
    found = {toll.ratio.moments for toll in real_tolls(study) if toll.ratio is not None}
    return str(Moments.AS_DISTURBED if found == {Moments.AS_DISTURBED} else Moments.UNDISTURBED)


def as_disturbed(study: StudyJudgement, toll: Toll) -> str | None:
    """Where the ratio is not that of undisturbed moments, and why."""
    if toll.ratio is None or toll.ratio.moments is Moments.UNDISTURBED:
        return None
    if study.trust.left_alone is None:
        return "as disturbed: no probe shares the core that is measured"
    alone = "never left alone" if study.trust.slower_than_known else "left alone in too few blocks"
    return f"as disturbed: its core was {alone}"


def suffers(toll: Toll) -> str | None:
    """Where the two ratios are apart: `suffers more from neighbours than its baseline`."""
    return f"suffers {toll.suffers} from neighbours than its baseline" if toll.suffers else None
