"""Measurement of a plan by the lab, its analysis and report, with a line for each event.

`run`, `ask`, `doctor` and the decisions that measure share it.
"""

from __future__ import annotations

import math
import os
import shlex
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from tollbar import __version__, analysis, lab, results, study
from tollbar.analysis import Judgement, StudyJudgement
from tollbar.analysis.probes import quickness
from tollbar.analysis.so_far import so_far_of
from tollbar.catalog.servers.places import RoleMachine
from tollbar.core import machine, moments, units
from tollbar.core.errors import one_line
from tollbar.core.files import pasted
from tollbar.core.intervals import FEWEST_BLOCKS
from tollbar.core.words import counted
from tollbar.decide import compare
from tollbar.lab.events import (
    Began,
    Ended,
    Estimated,
    Event,
    NothingCompared,
    NoTime,
    PrecisionMissed,
    PrecisionReached,
    Probed,
    StudyMeasured,
    WidestToll,
)
from tollbar.lab.measure import schedule
from tollbar.lab.tls.url import named_again
from tollbar.report import terminal
from tollbar.report.html import write as write_report
from tollbar.report.numbers import percent, percent_of
from tollbar.report.sections.answer import answer
from tollbar.report.terminal.progress import Progress
from tollbar.results import Store
from tollbar.study import Study, plan
from tollbar.study.plan import Plan

# In cores. Above this another program is using one all the time.
BUSY = 0.7
# Share of the time before the first look: enough to settle most studies, and each look costs confidence.
FIRST_LOOK = 0.25
# Estimates are inexact; beyond this share the user is told that the requested time cannot be kept.
ABOUT = 1.25


def take_up(directory: Path, asked: Sequence[Study], places: Sequence[RoleMachine] = ()) -> tuple[Plan, Store]:
    """Take up a run, and print its differences from a new one.

    Raises TollbarError where it cannot be resumed.
    """
    found = lab.take_up(directory, asked, places)
    if found.began_with is not None:
        words = f"the run began with Tollbar {found.began_with} and continues with {__version__}"
        terminal.say(f"warning: {words}: its report names both", "yellow")
    if found.tried_again:
        terminal.say(f"  resumed    {counted(found.tried_again, 'cell')} that failed too often before: tried again")
    return found.plan, found.store


def carry_out(
    planned: Plan,
    store: Store,
    *,
    report: bool,
    how_long: lab.HowLong = lab.AS_PLANNED,
    places: Sequence[RoleMachine] = (),
    briefly: bool = False,
    early: bool = False,
    expected_s: float | None = None,
) -> Judgement:
    """Measure, judge and report a plan into its store, and close that.

    `briefly` prints the plan with `--verbose` only, because an answer follows in seconds, unless measuring takes much
    longer than `expected_s`. `early` prints the first sentence of each study's answer when its planned blocks are
    measured. KeyboardInterrupt is raised again after the command to resume was printed.
    """
    answered: set[str] = set()

    def say_answer(name: str) -> None:
        answered.add(name)
        _say_answer(store.directory, name)

    try:
        say = terminal.say_detail if briefly else terminal.say
        _say_plan(planned, store, say)
        estimate = partial(say_estimate, say=say, expected_s=expected_s)
        events = lab.measured_into(store, planned, so_far_of, how_long, places)
        _measure(events, estimate, say_answer if early else None)
        # No other process may write the run now, so the look is noted for exactly the judged data.
        store.note_interim_look()
    except KeyboardInterrupt:
        # Whoever adds blocks to a study whose answer was printed has looked at it.
        for name in answered:
            store.note_interim_look(name)
        options = map(shlex.quote, named_again([one.study for one in planned.studies]))
        again = " ".join([pasted(store.directory), *options])
        terminal.say(f"interrupted; to continue: tollbar run --resume {again}")
        raise
    finally:
        store.close()
    judged = analysis.judge(results.read(store.directory))
    compare.keep(judged)
    if report:
        terminal.say(f"  report     {one_line(str(write_report(judged)))}")
    return judged


def in_two_interim_looks(
    asked: Sequence[Study],
    is_settled: Callable[[StudyJudgement], bool],
    *,
    within_s: float,
    command: Sequence[str],
    runs: Path,
) -> Judgement:
    """Measure studies in a new run, in `within_s` seconds in all; those open after a quarter share the rest."""
    began_s = time.monotonic()
    cores = os.sched_getaffinity(0)
    planned, store = lab.begin(asked, command=command, runs=runs)
    judged = carry_out(planned, store, report=False, how_long=lab.HowLong(within_s=FIRST_LOOK * within_s / len(asked)))
    spent_s = time.monotonic() - began_s
    left = {one.about.name for one in judged.studies if not is_settled(one)}
    said = results.about(store.directory)["studies"]
    blocks = {one.name: said[one.name]["blocks"] for one in asked}
    # Multiple of the time used by each study so far, by its share of the remaining time.
    more = max(within_s - spent_s, 0.0) / len(left) / (spent_s / len(asked)) if left else 0.0
    further = {name: count + (int(more * count) if name in left else 0) for name, count in blocks.items()}
    if further == blocks:
        return judged
    terminal.say(f"  measure on {', '.join(sorted(left))}: not settled yet")
    # While it measured, this process kept off the measuring core.
    os.sched_setaffinity(0, cores)
    again = tuple(replace(one, measure=replace(one.measure, blocks=further[one.name])) for one in asked)
    return carry_out(*take_up(store.directory, again), report=False, how_long=lab.HowLong(exactly=True))


def self_test() -> Judgement:
    """Measure the study `self-test` in a temporary directory."""
    planned = plan.make(study.load(["self-test"]), seed=0)
    with tempfile.TemporaryDirectory() as folder:
        store = results.create(planned, Path(folder), command=(), libraries=(), fingerprint={})
        _measure(lab.measured_into(store, planned, so_far_of))
        store.close()
        return analysis.judge(results.read(store.directory))


def _measure(
    events: Generator[Event, None, None],
    estimate: Callable[[Estimated], None] | None = None,
    answered: Callable[[str], None] | None = None,
) -> None:
    """Show the events of the lab, which measures while they are asked for.

    `answered` is called with the name of each study whose planned blocks are measured.
    """
    # However it ends, the lab ends its servers.
    with Progress() as progress, closing(events):
        for event in events:
            if isinstance(event, Began):
                for _ in progress.follow(event.what, _steps(events, answered), event.total, event.names):
                    pass
            elif isinstance(event, Probed):
                found = machine.fingerprint()
                quiet_ns = analysis.by_chain_ns(found, event.chain_ns)
                moments.keep_best(lab.probed_machine(found), event.readings, quiet_ns)
            elif isinstance(event, Estimated):
                (estimate or say_estimate)(event)
            elif isinstance(event, StudyMeasured) and answered is not None:
                answered(event.study)
            elif (words := _words(event)) is not None:
                terminal.say(words)


def _steps(events: Iterator[Event], answered: Callable[[str], None] | None) -> Iterator[Event]:
    for event in events:
        if isinstance(event, Ended):
            return
        if not isinstance(event, StudyMeasured):
            yield event
        elif answered is not None:
            answered(event.study)


def _say_answer(directory: Path, name: str) -> None:
    """Print the first sentence of a study's answer, before later studies are measured."""
    run = results.read(directory, name=name)
    (measured,) = run.studies
    judged = analysis.judge_study(measured, quickness(run))
    terminal.say_sentence(f"{name}: {answer(judged)[0]}")


def say_estimate(event: Estimated, say: Callable[[str], None] = terminal.say, expected_s: float | None = None) -> None:
    """Print the time of measuring; in any case if it is much longer than expected."""
    about = units.show_seconds(event.about_s)
    if expected_s is not None and event.about_s > ABOUT * expected_s:
        terminal.say(f"  time       an interval needs at least {FEWEST_BLOCKS} blocks: about {about}")
    else:
        say(f"  measure    {event.batches} batches, about {about} (estimated from the proofs)")


def _words(event: Event) -> str | None:
    """Return the line for an event; None where it has none."""
    match event:
        case NothingCompared(name, asked):
            return f"  precision  {name}: no cell was compared, so {percent(asked)} has no meaning"
        case PrecisionReached(name, asked, blocks):
            return f"  precision  {name}: {percent(asked)} reached after {counted(blocks, 'block')}"
        case PrecisionMissed(name, asked, widest, more, about_s):
            needs = f"about {counted(more, 'more block')} ({units.show_seconds(about_s)}) would reach it"
            return f"  precision  {name}: {_known(widest)}, not ± {percent(asked)}; {needs}"
        case NoTime(cells):
            return f"  time       {counted(cells, 'cell')} left out, because time is short"
        case _:
            return None


def _known(widest: WidestToll) -> str:
    known = f"± {percent_of(widest.half)}" if math.isfinite(widest.half) else "without an interval"
    return f"the widest toll, of {widest.title}, is {known}"


def _say_plan(planned: Plan, store: Store, say: Callable[[str], None]) -> None:
    least = units.show_seconds(schedule.of_plan(planned))
    # The usual operations are quick; slow ones, such as hashes of passwords, are known after the proofs.
    say(f"  plan       {len(planned.cells)} cells, at least {least}")
    say(f"  data       {one_line(str(store.directory))}/")
    for where, reason in planned.broken.items():
        terminal.say(f"warning: {where} is skipped: {reason}", "yellow")
    fewest = FEWEST_BLOCKS
    for one in planned.studies:
        if one.study.measure.blocks < fewest:
            blocks = counted(one.study.measure.blocks, "block")
            said = f"{one.study.name}: {blocks} are too few for an interval, so every verdict will be unclear"
            terminal.say(f"warning: {said}; measure at least {fewest} with `--blocks {fewest}`", "yellow")
    busy = machine.busy_cores()
    if busy > BUSY:
        said = f"other programs use {busy:.1f} of {os.cpu_count()} cores, so intervals will be wider"
        terminal.say(f"warning: {said}; end them, or measure longer", "yellow")
