"""`tollbar run`: from a question to its answer."""

from __future__ import annotations

import os
import secrets
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tollbar import console, judge, machine, measure, plan, results, study, units
from tollbar.cli.options import AsJson, Libraries, cells_of
from tollbar.errors import ExitStatus, TollbarError
from tollbar.judge import Judgement
from tollbar.plan import Plan
from tollbar.present.words import counted
from tollbar.report import write as write_report
from tollbar.results import Store
from tollbar.runner import Outcome
from tollbar.stats import fewest_blocks
from tollbar.study import Study


def run(
    *studies: str,
    blocks: int | None = None,
    seed: int | None = None,
    library: Libraries = (),
    runs: Path = Path("runs"),
    resume: Path | None = None,
    url: str | None = None,
    users: Annotated[tuple[int, ...], Parameter(negative="")] = study.DEFAULT_USERS,
    i_own_this_server: str | None = None,
    json: AsJson = False,
    report: bool = True,
) -> ExitStatus:
    """Measure, judge and report.

    tollbar run                         the set `quick`, about a minute
    tollbar run digests                 one study, whole
    tollbar run my-study.toml --json    yours, as one JSON document
    tollbar run digests --library ./libcrypto.so.3
    tollbar run --resume runs/2026-…    go on where a run was stopped
    tollbar run --resume runs/2026-… --blocks 40
    tollbar run --url https://localhost:8443/path --users 1 --users 16

    Parameters
    ----------
    studies
        Names of studies or sets (`tollbar list studies`), or TOML files. None: `quick`.
    blocks
        Blocks to measure instead of the study's own. Adding blocks to a finished run is paid for
        with wider intervals, because it has been looked at.
    seed
        Decides the order of visits and the data. None: a new one, kept with the run.
    library
        A libcrypto to measure beside those that the study names. May be given again.
    runs
        Where the run's directory is made.
    resume
        A run to go on with, instead of a new one.
    url
        A server of your own, measured from the client's side alone. Anything but this machine's loopback
        is refused unless you name its host again.
    users
        How many users at a time ask the `--url`. May be given again.
    i_own_this_server
        The host of the `--url`, once more: the load is for a server that is yours.
    json
        Print one JSON document instead of tables.
    report
        Write `report.html` into the run's directory.
    """
    if blocks is not None and blocks < 1:
        raise TollbarError("`--blocks`: at least one block")
    if resume is not None:
        planned, store = _take_up(resume, studies, blocks, i_own_this_server)
    else:
        theirs = [study.of_url(url, users)] if url else []
        asked = (*theirs, *study.load(studies or (() if url else ("quick",))))
        asked = study.refuse_others(asked, i_own_this_server)
        planned, store = _begin(asked, blocks, seed, library, runs)
    try:
        _measure(planned, store)
        # While no other process may write the run: what is judged is what the look is noted for.
        store.look()
    except KeyboardInterrupt:
        console.say(f"interrupted; go on with: tollbar run --resume {store.directory}")
        return ExitStatus.INTERRUPTED
    finally:
        store.close()
    judged = judge.judge(results.read(store.directory))
    if report:
        path = store.directory / "report.html"
        write_report(judged, path)
        console.say(f"  report     {path}")
    show(judged, as_json=json)
    return status_of(judged)


def status_of(judged: Judgement) -> ExitStatus:
    """Whether everything that could be measured was. What a library does not have is no failure."""
    rows = [row for one in judged.studies for row in one.study.rows]
    bad = any(row.outcome in (Outcome.FAILED, Outcome.TIMED_OUT) for row in rows)
    return ExitStatus.SOME_FAILED if bad else ExitStatus.DONE


def _begin(
    asked: tuple[Study, ...], blocks: int | None, seed: int | None, library: tuple[Path, ...], runs: Path
) -> tuple[Plan, Store]:
    if blocks is not None:
        asked = tuple(replace(one, measure=replace(one.measure, blocks=blocks)) for one in asked)
    seed = secrets.randbelow(2**32) if seed is None else seed
    named = [str(path.resolve()) for path in library]
    planned = plan.make(asked, seed=seed, named_libraries=named)
    store = results.create(
        planned, runs, command=("tollbar", *sys.argv[1:]), libraries=named, fingerprint=machine.fingerprint()
    )
    return planned, store


def _take_up(directory: Path, studies: tuple[str, ...], blocks: int | None, owned: str | None) -> tuple[Plan, Store]:
    if studies:
        raise TollbarError("a run that is resumed has its studies already", hint="leave the studies out")
    said = results.about(directory)
    found = machine.differences(said["fingerprint"], machine.fingerprint())
    if found:
        raise TollbarError(f"this is not the machine the run began on: {'; '.join(found)}", where=str(directory))
    asked = []
    for one in results.studies(directory, to_measure=True):
        already = said["studies"][one.name]["blocks"]
        asked.append(replace(one, measure=replace(one.measure, blocks=max(already, blocks or already))))
    planned = plan.make(study.refuse_others(asked, owned), seed=said["seed"], named_libraries=said["libraries"])
    names = {spec: str(receipt["name"]) for spec, receipt in planned.receipts.items()}
    begun_on = {spec: str(receipt["name"]) for spec, receipt in said["providers"].items()}
    store = results.reopen(directory)
    if names != begun_on or store.cells() != {
        (one.study.name, cell.key) for one in planned.studies for cell in one.cells
    }:
        store.close()
        raise TollbarError(
            "what is installed has changed since the run began: its cells are not those of today",
            where=str(directory),
            hint="begin a new run",
        )
    # Read again, now that no other process may write it: another look may have been noted meanwhile.
    said = results.about(directory)
    entries = {one.name: {**said["studies"][one.name], "blocks": one.measure.blocks} for one in asked}
    results.update_about(directory, {"studies": entries})
    store.event("resumed")
    return planned, store


def _measure(planned: Plan, store: Store) -> None:
    console.say(f"  plan       {len(cells_of(planned))} cells, about {units.show_seconds(planned.estimated_s)}")
    console.say(f"  data       {store.directory}/")
    for where, reason in planned.broken.items():
        console.say(f"warning: {where} is passed over: {reason}", "yellow")
    fewest = fewest_blocks()
    for one in planned.studies:
        if one.study.measure.blocks < fewest:
            blocks = counted(one.study.measure.blocks, "block")
            said = f"{one.study.name}: {blocks} cannot carry an interval, so that every verdict will be unclear"
            console.say(f"warning: {said}: ask for at least {fewest} (--blocks {fewest})", "yellow")
    busy = machine.busy_cores()
    if busy > BUSY:
        said = f"other programs keep {busy:.1f} of {os.cpu_count()} cores busy"
        console.say(f"warning: {said}; intervals will be wider", "yellow")
    measure_into(store, planned)


def measure_into(store: Store, planned: Plan) -> None:
    """Proves and measures what the store does not have yet, and keeps each proof and each heat as it comes."""
    core = machine.measuring_core()
    machine.keep_off(core)
    with (
        console.Progress() as progress,
        measure.sandbox_for(planned, store.directory / "beds") as sandbox,
    ):
        unproven = store.unproven()
        left = [cell for cell in cells_of(planned) if (cell.study, cell.key) in unproven]
        for proven in progress.follow("verify", measure.prove(left, planned.seed, sandbox=sandbox), len(left)):
            store.record_proof(proven)
        counts = {one.study.name: one.study.measure.blocks for one in planned.studies}
        heats = measure.heats_left(planned, counts=counts, done=store.done(), excluded=store.excluded())
        trials = measure.measured(planned, heats, first_order=store.next_order(), core=core, sandbox=sandbox)
        for heat in progress.follow("measure", trials, max(len(heats), 1)):
            store.record(heat)


# In cores. Above this another program is using one all the time.
BUSY = 0.7


def show(judged: Judgement, *, as_json: bool, everything: bool = False) -> None:
    """Prints what a run says."""
    if as_json:
        console.print_json(console.document(judged))
    else:
        console.show_judgement(judged, everything=everything)
