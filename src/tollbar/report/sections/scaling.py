"""Scaling: an operation with several threads compared with one thread, in a table and in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tollbar.analysis import Scaling, ScalingResult, StudyJudgement, Toll
from tollbar.core.words import capitalised, counted, enumeration, few, quoted
from tollbar.report.blocks import DASH, Column, Listing, Table, TableCell, numbers, row_names
from tollbar.report.names import labels, varying
from tollbar.report.numbers import NOISY_MARK, interval_title, ratio_range, times
from tollbar.report.table_cells import with_ends

TITLE = "Scaling"
# More names than this in one sentence hide the result.
MOST_NAMES = 3
_SAYS = {
    Scaling.SCALES: ("scales", "scale"),
    Scaling.CONTENDED: ("is contended", "are contended"),
    Scaling.WAITS: ("waits", "wait"),
    Scaling.CANNOT_TELL: ("scales", "scale"),
}


def scaling_sentences(study: StudyJudgement) -> tuple[str, ...]:
    """Return the scaling for each number of threads and each verdict; empty without threads."""
    name = _name(study)
    found: dict[tuple[int, Scaling], list[ScalingResult]] = {}
    for result in study.scaling:
        if result.reason is None:
            found.setdefault((result.threads, result.verdict), []).append(result)
    return tuple(
        _sentence(threads, verdict, some, [name(one) for one in some]) for (threads, verdict), some in found.items()
    )


def scaling_listing(study: StudyJudgement, fingerprint: Mapping[str, Any]) -> Listing | None:
    """Return the table, with the limits of this machine."""
    if not study.scaling:
        return None
    return Listing(TITLE, _beside_the_answer(study), [_table(study)], notes=[*_notes(study, fingerprint)])


def is_asked(study: StudyJudgement) -> bool:
    """Return whether the study is about threads, so that its sentences are the answer."""
    return "threads" in study.about.baseline and bool(study.scaling)


def _beside_the_answer(study: StudyJudgement) -> tuple[str, ...]:
    return () if is_asked(study) else scaling_sentences(study)


def _name(study: StudyJudgement) -> Callable[[ScalingResult], str]:
    rows = [result.row for result in study.scaling]
    names = [name for name in varying(rows, ("choice",)) if name != "threads"]
    label = labels(study, names, whole=True)
    return lambda result: label(result.row)


def _sentence(threads: int, verdict: Scaling, some: Sequence[ScalingResult], names: Sequence[str]) -> str:
    who = enumeration(few(map(quoted, names), MOST_NAMES))
    cpu, elapsed = [one.cpu for one in some], [one.elapsed for one in some]
    figures = f"CPU time {_range(cpu)}, elapsed time {_range(elapsed)} of one operation"
    what, whether = _SAYS[verdict][len(names) > 1], ""
    if verdict is Scaling.CANNOT_TELL:
        noisy = ", noisy" if any(map(_is_noisy, (*cpu, *elapsed))) else ""
        whether, figures = "whether ", f"is undecided{noisy}: {figures}"
    return (
        f"{capitalised(f'{whether}{who}')} {what} with {counted(threads, 'thread')}{' ' if whether else ': '}{figures}."
    )


def _range(tolls: Sequence[Toll]) -> str:
    return ratio_range([toll.ratio for toll in tolls if toll.ratio])


def _is_noisy(toll: Toll) -> bool:
    return toll.ratio is not None and toll.ratio.is_noisy


def _table(study: StudyJudgement) -> Table:
    name, sure = _name(study), interval_title(study)
    columns = (
        *row_names("cell"),
        *numbers("threads"),
        *numbers("CPU time"),
        *numbers(sure, leaves=1),
        *numbers("elapsed"),
        *numbers(sure, leaves=2),
        *numbers("speed-up", leaves=0),
        Column("verdict"),
    )
    rows = [
        (
            TableCell(name(one)),
            TableCell(str(one.threads), one.threads),
            *with_ends(one.cpu.ratio),
            *with_ends(one.elapsed.ratio),
            TableCell(times(one.rate.estimate), one.rate.estimate) if one.rate else DASH,
            TableCell(str(one.verdict) if one.reason is None else "not measured"),
        )
        for one in study.scaling
    ]
    return Table("One operation with several threads, compared with one thread", columns, rows)


def _notes(study: StudyJudgement, fingerprint: Mapping[str, Any]) -> Iterator[str]:
    """Yield notes on noise, hyperthreads, reasons of failure, and the limits of this number of cores."""
    if any(_is_noisy(toll) for result in study.scaling for toll in (result.cpu, result.elapsed)):
        yield f"{NOISY_MARK} noisy: a thread preempted while it holds a lock stalls all the others."
    most = max(result.threads for result in study.scaling)
    groups = [str(group) for group in fingerprint.get("hyperthreads", ())]
    cores = fingerprint.get("cores")
    physical = int(cores) - sum(group.count(",") for group in groups) if cores else most
    if most > physical:
        yield (
            f"Cores {enumeration(groups)} are hyperthreads of one physical core: threads on them share its units, so"
            " CPU time rises with several threads without any waiting."
        )
    reasons = dict.fromkeys(result.reason for result in study.scaling if result.reason)
    yield from (f"{capitalised(reason)}." for reason in reasons)
    if cores:
        yield (
            f"{counted(int(cores), 'core')} can be used here; effects of more threads are not measured. A lock held for"
            " a small part of an operation shows only with many threads."
        )
    if any(result.row.server for result in study.scaling):
        yield (
            "Each server thread shares its core with a part of the load client, so threads contend less often than with"
            " clients on other cores. The client's time is not counted. On nginx each thread is a process."
        )
