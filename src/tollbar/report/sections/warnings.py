"""Warnings: facts to know before believing the verdicts, each with a remedy."""

from __future__ import annotations

from collections.abc import Iterator

from tollbar.analysis import StudyJudgement
from tollbar.analysis.decisions import reach
from tollbar.analysis.trust import MUCH_DRIFT, MUCH_STEAL, MUCH_WAIT
from tollbar.core.moments import Known
from tollbar.core.words import counted, enumeration
from tollbar.report.numbers import percent, percent_of, repeats_words, times
from tollbar.report.sections.unmeasured import set_aside
from tollbar.study.definition import DEFAULT_MEASURE

# A cell or two may be unlucky; more indicate a property of the machine.
MANY_CELLS = 0.1


def warnings(study: StudyJudgement) -> tuple[str, ...]:
    """Return the facts to know before believing the verdicts, each with a remedy."""
    if not study.trust.blocks:
        return ("Nothing was measured: see the cells' reasons.", *set_aside(study))
    return (
        *_on_blocks(study),
        *_on_noise(study),
        *_on_repeats(study),
        *_on_neighbours(study),
        *_on_quiet(study),
        *_on_varying(study),
        *_on_lattices(study),
        *_on_drift(study),
        *_on_warmth(study),
        *_on_batches(study),
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
    threshold = study.about.threshold
    if study.noise is None:
        # With too few blocks another warning covers this.
        if study.trust.blocks >= study.trust.fewest_blocks:
            yield "Nothing was measured twice, so the noise is not known and no verdict is given."
    elif reach(study.noise) > 1 + threshold:
        yield (
            f"A cell measured twice differed by {repeats_words(study.noise)}, and this study ignores only what"
            f" is under {percent(threshold)}: nothing of its kind can be called free. Quiet the"
            " machine or add blocks."
        )


def _on_repeats(study: StudyJudgement) -> Iterator[str]:
    if study.trust.repeats_apart is not None:
        outside, of = study.trust.repeats_apart
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
            f" baseline, and {less:,} by less: their ratios of all samples are next to the quiet ones"
            " that verdicts are made from."
        )


def _on_quiet(study: StudyJudgement) -> Iterator[str]:
    trust = study.trust
    if trust.may_have_neighbour:
        yield (
            "Cannot exclude a steady neighbour: first run on this processor. If one shared the core throughout, ratios"
            " of unlike work include its share. Later runs compare their probes with this run's."
        )
    if trust.quiet_share is None:
        yield (
            "No probe shares the core that is measured, which nothing is kept on or the lab itself is: nothing tells"
            " quiet moments, and all costs and ratios are noisy."
        )
    elif trust.slower_than_known is not None and trust.known_by is Known.CHAIN:
        yield (
            f"The quickest probes took {times(trust.slower_than_known)} what they take on a quiet core of this"
            " processor, by a chain of dependent steps, which a neighbour hardly slows: cells were always measured next"
            " to a busy neighbour. All costs and ratios are noisy. Measure when the host is quieter."
        )
    elif trust.slower_than_known is not None:
        yield (
            f"The quickest probes took {times(trust.slower_than_known)} what they took in earlier runs on this"
            " processor: cells were always measured beside a busy neighbour, or the machine has changed. All costs and"
            " ratios are noisy. Measure when the host is quieter."
        )
    elif trust.never_quiet > MANY_CELLS * trust.cells:
        yield (
            f"The core of {trust.never_quiet:,} of {counted(trust.cells, 'cell')} was quiet in too few"
            f" blocks (at least {trust.fewest_blocks}), or for shorter than their chunks: their costs and ratios are"
            " noisy. Measure when the host is quieter, or add blocks."
        )


def _on_varying(study: StudyJudgement) -> Iterator[str]:
    titles = study.trust.varying
    if titles:
        named = f"{enumeration([*titles[:3]])}{' …' if len(titles) > 3 else ''}"
        yield (
            f"Operations of {counted(len(titles), 'cell')} ({named})"
            " vary by themselves. Their quiet chunks would be the cheap ones, so that all chunks count: these costs and"
            " ratios are noisy. Add blocks to narrow them."
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
        " chunks milliseconds apart and stand; for cost of all samples let the machine come to rest and run again."
    )


def _on_warmth(study: StudyJudgement) -> Iterator[str]:
    trend, warming = study.trust.trend, study.trust.still_warming
    if trend is not None and warming:
        yield (
            f"{counted(len(warming), 'cell')} ({enumeration([*warming[:3]])}{' …' if len(warming) > 3 else ''}) still"
            f" warmed up while measured: the ratio of {trend[0]} is {times(trend[1].estimate)} as large at the end of a"
            " trial as at its start. Measure with more `rounds`."
        )


def _on_batches(study: StudyJudgement) -> Iterator[str]:
    trust = study.trust
    if trust.stolen_batches:
        yield (
            f"In {trust.stolen_batches:,} of {counted(trust.batches, 'batch')} the hypervisor gave others more than"
            f" {percent(MUCH_STEAL)} of the time: a quieter host, or more blocks, would narrow the intervals."
        )


def _on_loads(study: StudyJudgement) -> Iterator[str]:
    trust = study.trust
    if trust.contended_loads:
        yield (
            f"In {trust.contended_loads:,} of {counted(trust.phases, 'load')} that requests a second are taken from"
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
