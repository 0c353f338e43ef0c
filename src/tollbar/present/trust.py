"""How far a study can be believed: what was checked, what is missing, noise, drift, and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from tollbar import units
from tollbar.judge import StudyJudgement, Toll
from tollbar.judge.decisions import reach
from tollbar.judge.trust import MUCH_DRIFT, MUCH_STEAL, MUCH_WAIT
from tollbar.present.blocks import (
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
    texts,
)
from tollbar.present.chart import drift_chart
from tollbar.present.groups import real_tolls
from tollbar.present.names import counted, enumeration, place_of, place_words, plain, said_plain, value_words, varying
from tollbar.present.numbers import apart_words, bracket_exactly, percent, percent_of, times, times_exactly, twins_words
from tollbar.records import Outcome
from tollbar.results import Row
from tollbar.stats import Interval, Moments
from tollbar.study.definition import DEFAULT_MEASURE

# A server refuses the same few things in all of its cells; with more than these, each cell has its own.
MOST_PROOFS = 8


# A longer table of what was measured twice unfolds.
MOST_TWINS = 12


def trust(study: StudyJudgement) -> list[str]:
    """How far the study can be trusted, a sentence or two for each reason to doubt it."""
    return [
        f"{checked(study)} {proof(study)}",
        two_costs(study),
        noise(study),
        drift(study),
        steal(study),
        machine_load(study),
        *by_chance(study),
        *set_aside(study),
    ]


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
        named = place_of(study.about.family, row.shown, names) if row else one.cell
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


def as_disturbed(study: StudyJudgement, ratio: Interval | None) -> str | None:
    """Where the ratio is not that of undisturbed moments, and why."""
    if ratio is None or ratio.moments is Moments.UNDISTURBED:
        return None
    if study.trust.left_alone is None:
        return "as disturbed: no probe shares the core that is measured"
    if study.trust.slower_than_known:
        return "as disturbed: always measured beside a busy neighbour"
    return "as disturbed: its core was left alone in too few blocks"


def suffers_words(toll: Toll) -> str | None:
    """Where the two ratios are apart: `suffers more from neighbours than its baseline`."""
    return f"suffers {toll.suffers} from neighbours than its baseline" if toll.suffers else None


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
        f" more or less from neighbours on the machine than its baseline does: of {tolls}, {enumeration(apart)}."
    )


def noise(study: StudyJudgement) -> str:
    """What the twins came out as, and what follows from it."""
    if study.noise is None:
        return "Nothing was measured twice in blocks enough, so that the noise is not known."
    return (
        "In each block every baseline is measured twice, and where it does nothing a cell that does. These differed by"
        f" {apart_words(study.noise.estimate)} where the two came out furthest apart: their ratio is"
        f" {times_exactly(study.noise.estimate)} {bracket_exactly(study.noise)}. Differences smaller"
        " than the far end of that interval are not reported, for a cell's own baseline and kind."
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
    return f"{text}; {enumeration(rest)}." if rest else f"{text}."


def proof(study: StudyJudgement) -> str:
    """What the cells showed for themselves before they were timed, and what could not be tried."""
    rows = [r for r in study.rows if r.outcome is Outcome.OK]
    met = sum(r.known_answers for r in rows)
    refused = list(dict.fromkeys(what for r in rows for what in r.refused))
    # A server meets no known answers by itself: that its answers were right is said already.
    said = [f"met {counted(met, 'known answer')}"] if met or not refused else []
    said += [f"refused {_few_proofs(refused)}"] if refused else []
    not_tried = list(dict.fromkeys(what for r in rows for what in r.not_tried))
    rest = f" Not tried: {_few_proofs(not_tried)}." if not_tried else ""
    return f"They {enumeration(said)}.{rest}"


def _few_proofs(things: Sequence[str]) -> str:
    """What the cells refused, or could not be tried; where there is much of it, some."""
    more = len(things) - MOST_PROOFS
    return enumeration([*things[:MOST_PROOFS], f"{more} more"] if more > 1 else things)


def machine_load(study: StudyJudgement) -> str:
    """One sentence: how busy the machine was, the lab's own processes included."""
    found = sorted(t.machine_load for r in study.rows for t in r.all_trials)
    if not found:
        return "How busy the machine was is not known."
    return (
        f"The machine's load, with the lab's own processes in it, was {median(found):.1f}"
        f" (from {found[0]:.1f} to {found[-1]:.1f})."
    )


# Of one thing that was not measured: enough to see what they are.
MOST_VALUES = 4
# Of one reason, so many combinations that were left out.
MOST_LEFT_OUT = 12


def missing(study: StudyJudgement) -> list[str]:
    """What was not measured, and what is compared with nothing: a line for each outcome and reason."""
    failed = [(str(row.outcome), row, row.reason) for row in study.rows if row.outcome is not Outcome.OK]
    alone = [
        ("not compared", toll.row, toll.reason)
        for toll in study.tolls
        if toll.ratio is None and toll.row.outcome is Outcome.OK and toll.row.against != toll.row.key
    ]
    facts: dict[tuple[str, str], list[Row]] = {}
    for outcome, row, reason in (*failed, *alone):
        facts.setdefault((outcome, " ".join((reason or "no reason was recorded").split())), []).append(row)
    return [f"{outcome}: {_together(study, rows)}: {reason}" for (outcome, reason), rows in facts.items()]


def _together(study: StudyJudgement, rows: Sequence[Row]) -> str:
    """What these rows are: `blake3 · openssl 3.0.19 · 4 KiB, 1 MiB (4 cells)`, without what all of a study are."""
    vary = varying(study.rows, always=("choice",))
    parts = []
    for name in vary:
        values = list(dict.fromkeys(row.shown[name] for row in rows if name in row.shown))
        others = {row.shown[name] for row in study.rows if name in row.shown}
        if not values or (name != "choice" and len(values) == len(others) > 1):
            continue
        more = [f"{len(values) - MOST_VALUES} more"] if len(values) > MOST_VALUES else []
        first, *rest = values[:MOST_VALUES]
        parts.append(
            ", ".join(
                [said_plain(study, name, first), *(plain(study.about.family, name, value) for value in rest), *more]
            )
        )
    return " · ".join(parts) + (f" ({len(rows):,} cells)" if len(rows) > 1 else "")


def left_out_table(study: StudyJudgement) -> Table:
    """The combinations that were not planned, by their reasons."""
    place = place_words(study)
    by_reason: dict[str, list[str]] = {}
    for coordinates, reason in study.study.left_out:
        by_reason.setdefault(reason, []).append(place(coordinates, coordinates))
    caption = f"{counted(len(study.study.left_out), 'combination')} left out of the study, and why"
    rows = [(TableCell(_few(found)), TableCell(reason)) for reason, found in by_reason.items()]
    return Table(caption, texts("left out", "because"), rows)


def _few(places: Sequence[str]) -> str:
    """The first of these, and how many more there are: a matrix leaves out a thousand for one reason."""
    more = len(places) - MOST_LEFT_OUT
    return "; ".join([*places[:MOST_LEFT_OUT], f"and {more:,} more"] if more > 1 else places)


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
            name, reason = value_words(family, "bed", bed), (reasons.pop() or "no reason was recorded")
            said.append(f"Not available here, {counted(len(rows), 'cell')} on {name}: {reason.rstrip('.')}.")
    return said


# A cell or two may be unlucky; more say something of the machine.
MANY_CELLS = 0.1


def warnings(study: StudyJudgement) -> tuple[str, ...]:
    """What a reader should know before believing the verdicts, each with what would help."""
    if not study.trust.blocks:
        return ("Nothing was measured: see the cells' reasons.", *set_aside(study))
    return (
        *_on_blocks(study),
        *_on_noise(study),
        *_on_twins(study),
        *_on_neighbours(study),
        *_on_quiet(study),
        *_on_lattices(study),
        *_on_drift(study),
        *_on_heats(study),
        *_on_loads(study),
        *_on_failures(study),
        *set_aside(study),
    )


def _on_blocks(study: StudyJudgement) -> Iterator[str]:
    trust = study.trust
    if trust.whole_blocks < max(trust.planned_blocks, trust.blocks):
        yield (
            f"The run was cut short: {trust.whole_blocks} of {max(trust.planned_blocks, trust.blocks)} blocks are"
            " whole; `tollbar run --resume RUN` goes on where it stopped."
        )
    if trust.blocks < trust.fewest_blocks:
        yield (
            f"{counted(trust.blocks, 'block')} cannot carry an interval, so that every toll is unclear:"
            f" run at least {trust.fewest_blocks}, or {DEFAULT_MEASURE.blocks} as by default."
        )


def _on_noise(study: StudyJudgement) -> Iterator[str]:
    worth = study.about.worth
    if study.noise is None:
        # With too few blocks that has been said already.
        if study.trust.blocks >= study.trust.fewest_blocks:
            yield "Nothing was measured twice, so the noise is not known and no verdict is given."
    elif reach(study.noise) > 1 + worth:
        yield (
            f"A cell measured twice differed by {twins_words(study.noise)}, and this study ignores only what"
            f" is under {percent(worth)}: nothing of its kind can be called free. Quiet the"
            " machine or add blocks."
        )


def _on_twins(study: StudyJudgement) -> Iterator[str]:
    if study.trust.twins_apart is not None:
        outside, of = study.trust.twins_apart
        yield (
            f"{outside:,} of {counted(of, 'cell')} measured twice came out with an interval that excludes ×1, more than"
            " chance allows: intervals are too narrow here, and nothing nearer to ×1 than a cell measured twice may"
            " differ is to be believed."
        )


def _on_neighbours(study: StudyJudgement) -> Iterator[str]:
    measured = [toll for toll in study.tolls if toll.ratio is not None and toll.row is not toll.against]
    more, less = (sum(toll.suffers == how for toll in measured) for how in ("more", "less"))
    if more or less:
        yield (
            f"What else ran on this machine made {more:,} of {counted(len(measured), 'cell')} dearer by more than their"
            f" baseline, and {less:,} by less: their typical ratios, as disturbed, stand beside the undisturbed ones"
            " that verdicts are made from."
        )


def _on_quiet(study: StudyJudgement) -> Iterator[str]:
    trust = study.trust
    if trust.left_alone is None:
        yield (
            "No probe shares the core that is measured, which nothing is kept on or the lab itself is: nothing tells"
            " quiet moments, and all costs and ratios are as disturbed."
        )
    elif trust.slower_than_known is not None:
        yield (
            f"The quickest probes took {times(trust.slower_than_known)} what they took in earlier runs on this"
            " processor: cells were always measured beside a busy neighbour, or the machine has changed. All costs and"
            " ratios are as disturbed. Measure when the host is quieter."
        )
    elif trust.never_left_alone > MANY_CELLS * trust.cells:
        yield (
            f"The core of {trust.never_left_alone:,} of {counted(trust.cells, 'cell')} was left alone in too few"
            f" blocks (at least {trust.fewest_blocks}): their costs and ratios are as disturbed. Measure when the host"
            " is quieter, or add blocks."
        )


def _on_lattices(study: StudyJudgement) -> Iterator[str]:
    for cause, titles in study.trust.lattices.items():
        cells = ", ".join(titles[:3]) + (" …" if len(titles) > 3 else "")
        yield (
            f"Chunk times of {counted(len(titles), 'cell')} ({cells}) are multiples of a tick, by {cause}:"
            " their intervals are tight and wrong. Do not use these numbers."
        )


def _on_drift(study: StudyJudgement) -> Iterator[str]:
    drift = study.drift
    if drift is None or 1 / (1 + MUCH_DRIFT) <= drift <= 1 + MUCH_DRIFT:
        return
    way = f"rose by {percent_of(drift - 1)}" if drift > 1 else f"fell by {percent_of(1 - drift)}"
    yield (
        f"The cells' cost {way} from the first third of the blocks to the last. Ratios are made of"
        " chunks milliseconds apart and stand; for typical costs let the machine come to rest and run again."
    )


def _on_heats(study: StudyJudgement) -> Iterator[str]:
    trust = study.trust
    if trust.stolen_heats:
        yield (
            f"In {trust.stolen_heats:,} of {counted(trust.heats, 'heat')} the hypervisor gave others more than"
            f" {percent(MUCH_STEAL)} of the time: a quieter host, or more blocks, would narrow the intervals."
        )


def _on_loads(study: StudyJudgement) -> Iterator[str]:
    trust = study.trust
    if trust.contended_loads:
        yield (
            f"In {trust.contended_loads:,} of {counted(trust.stretches, 'load')} that requests a second are taken from"
            f" the server or its client stood for more than {percent(MUCH_WAIT)} of the time while other programs had"
            " its core: end the other programs, or add blocks."
        )
    if trust.reopened_connections:
        yield (
            f"The server closed {counted(trust.reopened_connections, 'connection')} that its clients kept, in"
            f" {trust.reopened_loads:,} of {counted(trust.loads, 'trial')}, and they were opened again: requests there"
            " cost what that costs besides. Let the server keep connections for longer, or measure new ones."
        )


def _on_failures(study: StudyJudgement) -> Iterator[str]:
    if study.trust.failed_trials:
        yield (
            f"{counted(study.trust.failed_trials, 'trial')} of cells that otherwise went well"
            f" left no cost ({'; '.join(study.trust.failures[:3])}): see the run's events."
        )


def twins_table(study: StudyJudgement) -> Table:
    """What was measured beside itself: its twin's cost over its own."""
    names = ("choice", *(n for n in varying(study.rows) if n != "choice"))
    place = place_words(study)
    rows = [
        (
            TableCell(place(row.coordinates, names)),
            TableCell(times_exactly(ratio.estimate), ratio.estimate, bracket_exactly(ratio)),
            TableCell(times_exactly(reach(ratio)), reach(ratio)) if ratio.is_bounded else TableCell("–"),
            count_cell(ratio.n),
        )
        for row, ratio in study.twins
    ]
    columns = (Column("cell"), *numbers("measured again", "no verdict within", "blocks"))
    return Table(
        "Each baseline, and a cell of each other kind, measured twice, which should differ by nothing: the second over"
        " the first",
        columns,
        rows,
    )


def trust_section(study: StudyJudgement) -> Section:
    chart, warned, twins = drift_chart(study), warnings(study), twins_table(study)
    keys = Legend([Key("median cell", mark="line"), Key("eight cells of ten", mark="band")])
    summary = f"{twins.caption}: {counted(len(twins.rows), 'baseline')}"
    return Section(
        "Can this be trusted?",
        (
            *([Boxed("warnings", [Section("Warnings", [Items(warned)])])] if warned else []),
            Items(trust(study)),
            *((keys, Figures([chart], "")) if chart else ()),
            *(folds(summary, twins, len(twins.rows) > MOST_TWINS) if twins.rows else []),
        ),
    )
