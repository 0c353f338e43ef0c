"""The lab: a plan measured into a run, judged and reported. What `run`, `ask` and `doctor` share."""

from __future__ import annotations

import os
import secrets
import shlex
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tollbar import __version__, console, gathering, judge, machine, moments, plan, results, study, units
from tollbar.errors import TollbarError
from tollbar.files import pasted
from tollbar.judge import Judgement, StudyJudgement
from tollbar.lab.measuring import BLOCKS_FOR_WIDTH, MORE_BLOCKS, measure_into, probed_machine
from tollbar.measure import schedule
from tollbar.plan import Plan
from tollbar.report import write as write_report
from tollbar.results import Store
from tollbar.servers.places import RoleMachine
from tollbar.stats import FEWEST_BLOCKS
from tollbar.study import Study
from tollbar.tls.url import named_again
from tollbar.words import counted

__all__ = [
    "BLOCKS_FOR_WIDTH",
    "MORE_BLOCKS",
    "begin",
    "carry_out",
    "in_two_interim_looks",
    "probed_machine",
    "self_test",
    "take_up",
    "with_blocks",
    "with_precision",
]

# In cores. Above this another program is using one all the time.
BUSY = 0.7
# Of the time for what is looked at twice: enough to settle most, and each look costs confidence.
FIRST_LOOK = 0.25


def begin(
    asked: Sequence[Study],
    *,
    command: Sequence[str],
    runs: Path,
    seed: int | None = None,
    named_libraries: Sequence[str] = (),
    places: Sequence[RoleMachine] = (),
    more: Mapping[str, Any] | None = None,
) -> tuple[Plan, Store]:
    """The plan of these studies, and a new run for it, which keeps `more` in its `run.json`.

    Raises TollbarError before anything is started.
    """
    seed = secrets.randbelow(2**32) if seed is None else seed
    planned = plan.make(asked, seed=seed, named_libraries=named_libraries)
    if places and not any(cell.server for one in planned.studies for cell in one.cells):
        raise TollbarError(
            "nothing of these studies is asked of a server", where="--roles or `roles`", hint="leave it out"
        )
    fingerprint = machine.fingerprint()
    store = results.create(
        planned,
        runs,
        command=command,
        libraries=named_libraries,
        fingerprint=fingerprint,
        # What is known of this machine's core says nothing of others.
        best_probe_ns=None if places else moments.best_known(probed_machine(fingerprint)),
        more={**({"roles": {place.role: place.address for place in places}} if places else {}), **(more or {})},
    )
    return planned, store


def take_up(directory: Path, asked: Sequence[Study], places: Sequence[RoleMachine] = ()) -> tuple[Plan, Store]:
    """A run to be resumed, of these studies. Raises TollbarError where what it would measure has changed."""
    said = results.about(directory)
    results.refuse_resumption(directory, said)
    began_with, now = said.get("roles", {}), {place.role: place.address for place in places}
    if began_with != now:
        roles = ",".join(f"{role}={address}" for role, address in began_with.items())
        raise TollbarError(
            "the run began with other roles" if roles else "the run began with all on this machine",
            where=str(directory),
            hint=f"--roles {roles}" if roles else "leave --roles out",
        )
    found = machine.differences(said["fingerprint"], machine.fingerprint())
    if found:
        raise TollbarError(f"this is not the machine the run began on: {'; '.join(found)}", where=str(directory))
    planned = plan.make(asked, seed=said["seed"], named_libraries=said["libraries"])
    changed = results.changes(said, results.made_with(planned))
    store = results.reopen(directory)
    cells = {(cell.study, cell.key) for cell in planned.cells}
    if store.cells() != cells:
        gone, new = store.cells() - cells, cells - store.cells()
        changed.append(f"cells: {len(gone)} of the run are not planned now, and {len(new)} are new")
    if changed:
        store.close()
        lines = "".join(f"\n  {line}" for line in changed)
        raise TollbarError(
            f"what is installed has changed since the run began:{lines}",
            where=str(directory),
            hint="begin a new run",
        )
    # Read again, now that no other process may write it: another look may have been noted meanwhile.
    said = results.about(directory)
    entries = {one.name: {**said["studies"][one.name], **results.measured_as(one)} for one in asked}
    results.update_about(directory, {"studies": entries, **_with_this_version(said)})
    again = store.resume()
    if again:
        console.say(f"  resumed    {counted(again, 'cell')} that failed too often before: tried again")
    return planned, store


def _with_this_version(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a run notes of a version that did not begin it, and say so: its blocks may be measured otherwise."""
    began, others = said.get("tollbar"), said.get("resumed_with", [])
    if began in (None, __version__):
        return {}
    words = f"the run began with Tollbar {began}, and {__version__} goes on with it: its report names both"
    console.say(f"warning: {words}", "yellow")
    return {"resumed_with": list(dict.fromkeys([*others, __version__]))}


def carry_out(
    planned: Plan,
    store: Store,
    *,
    report: bool,
    within_s: float | None = None,
    until_s: float | None = None,
    exactly: bool = False,
    places: Sequence[RoleMachine] = (),
) -> Judgement:
    """Measures, judges and reports a plan into its store, and closes that.

    `within_s` has each study take about so many seconds, by as many blocks as that needs; `until_s` has one study be
    done at about that moment of the monotonic clock; `exactly`: just as many blocks as were said. What interrupts it
    (KeyboardInterrupt) is handed on, once it is said how to go on.
    """
    try:
        _say_plan(planned, store)
        measure_into(store, planned, within_s=within_s, until_s=until_s, exactly=exactly, places=places)
        # While no other process may write the run: what is judged is what the look is noted for.
        store.note_interim_look()
    except KeyboardInterrupt:
        options = map(shlex.quote, named_again([one.study for one in planned.studies]))
        again = " ".join([pasted(store.directory), *options])
        console.say(f"interrupted; go on with: tollbar run --resume {again}")
        raise
    finally:
        store.close()
    judged = judge.judge(results.read(store.directory))
    gathering.keep(judged)
    if report:
        console.say(f"  report     {write_report(judged)}")
    return judged


def in_two_interim_looks(
    asked: Sequence[Study],
    is_settled: Callable[[StudyJudgement], bool],
    *,
    within_s: float,
    command: Sequence[str],
    runs: Path,
) -> Judgement:
    """Measures studies in a new run, for about so many seconds in all: what a quarter of it does not settle has the
    rest."""
    began_s = time.monotonic()
    cores = os.sched_getaffinity(0)
    planned, store = begin(asked, command=command, runs=runs)
    judged = carry_out(planned, store, report=False, within_s=FIRST_LOOK * within_s / len(asked))
    spent_s = time.monotonic() - began_s
    left = {one.about.name for one in judged.studies if not is_settled(one)}
    said = results.about(store.directory)["studies"]
    blocks = {one.name: said[one.name]["blocks"] for one in asked}
    # As many times what they had by now as each of them has of what is left.
    more = max(within_s - spent_s, 0.0) / len(left) / (spent_s / len(asked)) if left else 0.0
    further = {name: count + (int(more * count) if name in left else 0) for name, count in blocks.items()}
    if further == blocks:
        return judged
    console.say(f"  measure on {', '.join(sorted(left))}: not settled yet")
    # While it measured, this process kept off the measuring core.
    os.sched_setaffinity(0, cores)
    again = tuple(replace(one, measure=replace(one.measure, blocks=further[one.name])) for one in asked)
    return carry_out(*take_up(store.directory, again), report=False, exactly=True)


def self_test() -> Judgement:
    """Measures the study `self-test` in a directory that is thrown away."""
    planned = plan.make(study.load(["self-test"]), seed=0)
    with tempfile.TemporaryDirectory() as folder:
        store = results.create(planned, Path(folder), command=(), libraries=(), fingerprint={})
        measure_into(store, planned)
        store.close()
        return judge.judge(results.read(store.directory))


def with_blocks(asked: Sequence[Study], blocks: int | None) -> tuple[Study, ...]:
    """These studies, with this number of blocks instead of their own."""
    return tuple(replace(one, measure=replace(one.measure, blocks=blocks or one.measure.blocks)) for one in asked)


def with_precision(asked: Sequence[Study], half: float | None, longest_s: float | None) -> tuple[Study, ...]:
    """These studies, to be continued until their tolls are known so well, for so many seconds at most."""
    if half is None:
        return tuple(asked)
    return tuple(replace(one, measure=replace(one.measure, precision=half, longest_s=longest_s)) for one in asked)


def _say_plan(planned: Plan, store: Store) -> None:
    about = units.show_seconds(schedule.of_plan(planned))
    console.say(f"  plan       {len(planned.cells)} cells, about {about}")
    console.say(f"  data       {store.directory}/")
    for where, reason in planned.broken.items():
        console.say(f"warning: {where} is passed over: {reason}", "yellow")
    fewest = FEWEST_BLOCKS
    for one in planned.studies:
        if one.study.measure.blocks < fewest:
            blocks = counted(one.study.measure.blocks, "block")
            said = f"{one.study.name}: {blocks} cannot carry an interval, so that every verdict will be unclear"
            console.say(f"warning: {said}: ask for at least {fewest} (--blocks {fewest})", "yellow")
    busy = machine.busy_cores()
    if busy > BUSY:
        said = f"other programs keep {busy:.1f} of {os.cpu_count()} cores busy"
        console.say(f"warning: {said}; intervals will be wider", "yellow")
