"""Warnings: facts to know before believing the verdicts, each with a remedy."""

from __future__ import annotations

from collections.abc import Iterator

from tollbar.analysis import StudyJudgement
from tollbar.analysis.decisions import reach
from tollbar.analysis.trust import MUCH_DRIFT, MUCH_STEAL, MUCH_WAIT
from tollbar.core.moments import Known
from tollbar.core.words import capitalised, counted, enumeration
from tollbar.report.numbers import percent, percent_of, repeats_words, times
from tollbar.report.sections.accuracy import accuracy, accuracy_words, quiet_share_words
from tollbar.report.sections.unmeasured import set_aside
from tollbar.study.values import DEFAULT_MEASURE

NOISE_HELP = "Repeat on an idle machine, or add `--precision 3%`."
# A core that was quiet for longer than this share of the time is not a cause of noise.
QUIET_ENOUGH = 0.9
# A cell or two may be unlucky; more indicate a property of the machine.
MANY_CELLS = 0.1


def warnings(study: StudyJudgement) -> tuple[str, ...]:
    """Return the facts to know before believing the verdicts, each with a remedy."""
    if not study.trust.blocks:
        return ("Nothing was measured: see the cells' reasons.", *set_aside(study))
    return (
        *_on_blocks(study),
        *_on_noise(study),
        *_on_unknown_noise(study),
        *_on_repeats(study),
        *_on_quiet(study),
        *_on_varying(study),
        *_on_lattices(study),
        *_on_drift(study),
        *_on_warmth(study),
        *_on_loads(study),
        *_on_failures(study),
        *set_aside(study),
    )


def _on_blocks(study: StudyJudgement) -> Iterator[str]:
    trust = study.trust
    if trust.whole_blocks < max(trust.planned_blocks, trust.blocks):
        yield (
            f"The run was cut short: {trust.whole_blocks} of {max(trust.planned_blocks, trust.blocks)} blocks are"
            " whole. Continue it with `tollbar run --resume RUN`."
        )
    if trust.blocks < trust.fewest_blocks:
        yield (
            f"Too few blocks: {trust.blocks} cannot support an interval, so every toll is unclear. Run at least"
            f" {trust.fewest_blocks} (default: {DEFAULT_MEASURE.blocks})."
        )


def _on_noise(study: StudyJudgement) -> Iterator[str]:
    """Yield one line for all signs of noise: the quiet share, the accuracy, the signs, and a remedy."""
    signs = [*_signs_of_noise(study)]
    if signs:
        share = study.trust.quiet_share
        is_a_cause = not study.trust.may_have_neighbour and (share is None or share < QUIET_ENOUGH)
        quiet = quiet_share_words(study) if is_a_cause else ""
        accurate = accuracy_words(accuracy([study]))
        facts = "; ".join(filter(None, (quiet, accurate and f"ratios are {accurate}")))
        yield f"Noisy: {facts or 'no ratio has an interval'}. {capitalised('; '.join(signs))}. {NOISE_HELP}"


def _signs_of_noise(study: StudyJudgement) -> Iterator[str]:
    trust, threshold = study.trust, study.about.threshold
    if trust.slower_than_known is not None and trust.quiet_share is not None:
        slower = times(trust.slower_than_known)
        if trust.known_by is Known.CHAIN:
            yield (
                f"the quickest probes took {slower} the time of a quiet core of this processor, estimated from a chain"
                " of dependent steps, so a busy neighbour was always present"
            )
        else:
            yield (
                f"the quickest probes took {slower} their time in earlier runs on this processor, so a busy neighbour"
                " was always present or the machine has changed"
            )
    elif trust.quiet_share is not None and trust.never_quiet > MANY_CELLS * trust.cells:
        yield (
            f"the core of {trust.never_quiet:,} of {counted(trust.cells, 'cell')} was quiet in too few blocks (at least"
            f" {trust.fewest_blocks}) or for less than a chunk"
        )
    if study.noise is not None and reach(study.noise) > 1 + threshold:
        yield (
            f"A/A pairs differed by {repeats_words(study.noise)}, above the {percent(threshold)} threshold, so no cell"
            " of their kind can be judged free"
        )
    if trust.stolen_batches:
        yield (
            f"the hypervisor gave others more than {percent(MUCH_STEAL)} of the time in {trust.stolen_batches:,} of"
            f" {counted(trust.batches, 'batch')}"
        )
    measured = [toll for toll in study.tolls if toll.ratio is not None and toll.row is not toll.against]
    more, less = (sum(toll.suffers == how for toll in measured) for how in ("more", "less"))
    if more or less:
        yield (
            f"neighbours slowed {more:,} of {counted(len(measured), 'cell')} more than their baseline and {less:,} less"
            " (see the ratios of all samples)"
        )


def _on_unknown_noise(study: StudyJudgement) -> Iterator[str]:
    # With too few blocks another warning covers this.
    if study.noise is None and study.trust.blocks >= study.trust.fewest_blocks:
        yield "Noise floor not known: there is no A/A pair, so no verdict is given."


def _on_repeats(study: StudyJudgement) -> Iterator[str]:
    if study.trust.repeats_apart is not None:
        outside, of = study.trust.repeats_apart
        yield (
            f"Intervals are too narrow: {outside:,} of {counted(of, 'A/A pair')} have one that excludes ×1, more than"
            " chance allows. Do not trust a ratio that is nearer to ×1 than the noise floor."
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
            "Noise cannot be detected: no probe runs on the measured core (it is unpinned, or the lab uses it). All"
            " costs and ratios are noisy."
        )


def _on_varying(study: StudyJudgement) -> Iterator[str]:
    titles = study.trust.varying
    if titles:
        named = f"{enumeration([*titles[:3]])}{' …' if len(titles) > 3 else ''}"
        yield (
            f"Operations of {counted(len(titles), 'cell')} ({named}) vary by themselves, so all their chunks count, not"
            " only quiet ones: their costs and ratios are noisy. Add blocks to narrow them."
        )


def _on_lattices(study: StudyJudgement) -> Iterator[str]:
    for cause, titles in study.trust.lattices.items():
        cells = ", ".join(titles[:3]) + (" …" if len(titles) > 3 else "")
        yield (
            f"Chunk times of {counted(len(titles), 'cell')} ({cells}) are multiples of a tick, because of"
            f" {cause}: their intervals are tight and wrong. Do not use these numbers."
        )


def _on_drift(study: StudyJudgement) -> Iterator[str]:
    drift = study.drift
    if drift is None or 1 / (1 + MUCH_DRIFT) <= drift <= 1 + MUCH_DRIFT:
        return
    way = f"rose by {percent_of(drift - 1)}" if drift > 1 else f"fell by {percent_of(1 - drift)}"
    yield (
        f"Drift: costs {way} from the first third of the blocks to the last. Ratios compare chunks milliseconds apart"
        " and stay valid. For costs of all samples, let the machine settle and repeat."
    )


def _on_warmth(study: StudyJudgement) -> Iterator[str]:
    trend, warming = study.trust.trend, study.trust.still_warming
    if trend is not None and warming:
        yield (
            f"{counted(len(warming), 'cell')} ({enumeration([*warming[:3]])}{' …' if len(warming) > 3 else ''}) still"
            f" warmed up while measured: the ratio of {trend[0]} is {times(trend[1].estimate)} as large at the end of a"
            " trial as at its start. Measure with more `rounds`."
        )


def _on_loads(study: StudyJudgement) -> Iterator[str]:
    trust = study.trust
    if trust.contended_loads:
        yield (
            f"Other programs used the core of the server or its client for more than {percent(MUCH_WAIT)} of the time"
            f" in {trust.contended_loads:,} of {counted(trust.phases, 'throughput phase')}. End these programs, or add"
            " blocks."
        )
    if trust.reopened_connections:
        yield (
            f"The server closed {counted(trust.reopened_connections, 'connection')} that its clients kept, in"
            f" {trust.reopened_loads:,} of {counted(trust.loads, 'trial')}; costs there include new connections. Raise"
            " the server's keep-alive limits, or measure new connections."
        )


def _on_failures(study: StudyJudgement) -> Iterator[str]:
    if study.trust.failed_trials:
        yield (
            f"{counted(study.trust.failed_trials, 'trial')} failed in cells with other, good trials"
            f" ({'; '.join(study.trust.failures[:3])}). See the run's events."
        )
