"""`tollbar run`: from a question to its answer."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from dataclasses import replace
from pathlib import Path

from tollbar import console, document, judge, machine, moments, plan, results, study, units
from tollbar.cli.measuring import measure_into, probed_machine
from tollbar.cli.options import DEFAULTS, Options, cells_of
from tollbar.errors import ExitStatus, TollbarError
from tollbar.judge import Judgement
from tollbar.plan import Plan, estimates
from tollbar.present.names import counted
from tollbar.report import write as write_report
from tollbar.results import Store
from tollbar.runner import Outcome
from tollbar.stats import FEWEST_BLOCKS
from tollbar.study import Study


def run(*studies: str, options: Options = DEFAULTS) -> ExitStatus:
    """Measure, judge and report.

    tollbar run                         the set `quick`, about a minute
    tollbar run digests                 one study, whole
    tollbar run my-study.toml --json    yours, as one JSON document
    tollbar run digests --library ./libcrypto.so.3
    tollbar run --resume runs/2026-…    go on where a run was stopped
    tollbar run --resume runs/2026-… --blocks 40
    tollbar run --url https://localhost:8443/path --users 1 --users 16
    tollbar run --url https://localhost:8443/ --against http://localhost:8080/ --server-pid 4711

    Parameters
    ----------
    studies
        Names of studies or sets (`tollbar list studies`), or TOML files. None: `quick`.
    """
    if options.resume is not None:
        planned, store = _take_up(options.resume, studies, options)
    else:
        asked = with_precision(studies_of(studies, options), options.precision, options.for_)
        planned, store = begin(asked, options.blocks, options.seed, options.library, options.runs)
    judged = carry_out(planned, store, report=options.report, exactly=options.blocks is not None)
    if judged is None:
        return ExitStatus.INTERRUPTED
    show(judged, as_json=options.json)
    return status_of(judged)


def carry_out(
    planned: Plan, store: Store, *, report: bool, within_s: float | None = None, exactly: bool = False
) -> Judgement | None:
    """Measures, judges and reports a plan into its store, and closes that; None where it was interrupted.

    `within_s` has each study take about so many seconds, by as many blocks as that needs; `exactly`: just as many
    blocks as were said.
    """
    try:
        _say_plan(planned, store)
        measure_into(store, planned, within_s=within_s, exactly=exactly)
        # While no other process may write the run: what is judged is what the look is noted for.
        store.look()
    except KeyboardInterrupt:
        again = shlex.join([str(store.directory), *study.named_again([one.study for one in planned.studies])])
        console.say(f"interrupted; go on with: tollbar run --resume {again}")
        return None
    finally:
        store.close()
    judged = judge.judge(results.read(store.directory))
    if report:
        path = store.directory / "report.html"
        write_report(judged, path)
        console.say(f"  report     {path}")
    return judged


def status_of(judged: Judgement) -> ExitStatus:
    """Whether everything that could be measured was. What a library does not have is no failure."""
    rows = [row for one in judged.studies for row in one.study.rows]
    bad = any(row.outcome in (Outcome.FAILED, Outcome.TIMED_OUT) or row.set_aside is not None for row in rows)
    return ExitStatus.SOME_FAILED if bad else ExitStatus.DONE


def studies_of(studies: tuple[str, ...], options: Options) -> tuple[Study, ...]:
    """What is asked for: the study of a URL, and those of these names; neither is the set `quick`."""
    urls = [url for url in (options.against, options.url) if url is not None]
    theirs = [study.of_urls(urls, options.users, options.i_own_this_server, options.server_pid)] if urls else []
    named = study.load(studies or (() if urls else ("quick",)))
    return (*theirs, *study.with_servers(named, options.i_own_this_server, () if urls else options.server_pid))


def begin(
    asked: tuple[Study, ...], blocks: int | None, seed: int | None, library: tuple[Path, ...], runs: Path
) -> tuple[Plan, Store]:
    """The plan of these studies, and a new run for it. Raises TollbarError before anything is started."""
    asked = with_blocks(asked, blocks)
    seed = secrets.randbelow(2**32) if seed is None else seed
    named = [str(path.resolve()) for path in library]
    planned = plan.make(asked, seed=seed, named_libraries=named)
    fingerprint = machine.fingerprint()
    store = results.create(
        planned,
        runs,
        command=("tollbar", *sys.argv[1:]),
        libraries=named,
        fingerprint=fingerprint,
        best_probe_ns=moments.best_known(probed_machine(fingerprint)),
    )
    return planned, store


def with_blocks(asked: tuple[Study, ...], blocks: int | None) -> tuple[Study, ...]:
    """These studies, with this number of blocks instead of their own."""
    if blocks is None:
        return asked
    return tuple(replace(one, measure=replace(one.measure, blocks=blocks)) for one in asked)


def with_precision(asked: tuple[Study, ...], precision: str | None, within: str | None) -> tuple[Study, ...]:
    """These studies, to be gone on with until their tolls are known so well. Raises TollbarError for no such share."""
    if precision is None:
        return asked
    half = read_share(precision)
    longest_s = None if within is None else read_seconds("--for", within)
    return tuple(replace(one, measure=replace(one.measure, precision=half, longest_s=longest_s)) for one in asked)


def read_share(said: str) -> float:
    """What `--precision` says, as a share. Raises TollbarError."""
    try:
        half = units.share(said)
    except ValueError as error:
        raise TollbarError(str(error), where=f"--precision {said}") from error
    if not 0 < half < 1:
        raise TollbarError("a share above nothing, as in 2%", where=f"--precision {said}")
    return half


def read_seconds(option: str, said: str) -> float:
    """What an option says, in seconds. Raises TollbarError."""
    try:
        return units.seconds(said)
    except ValueError as error:
        raise TollbarError(str(error), where=f"{option} {said}") from error


def resumed(directory: Path, studies: tuple[str, ...], options: Options) -> tuple[Study, ...]:
    """The studies of a run that is gone on with, with the blocks that they will have and the servers they ask."""
    if studies or options.url:
        what = "the studies" if studies else "`--url` and `--against`"
        raise TollbarError("a run that is resumed has its studies already", hint=f"leave {what} out")
    said, found = results.about(directory), results.studies(directory, to_measure=True)
    already = {one.name: said["studies"][one.name]["blocks"] for one in found}
    asked = tuple(
        replace(one, measure=replace(one.measure, blocks=max(already[one.name], options.blocks or 0))) for one in found
    )
    return study.with_servers(asked, options.i_own_this_server, options.server_pid)


def _take_up(directory: Path, studies: tuple[str, ...], options: Options) -> tuple[Plan, Store]:
    asked = with_precision(resumed(directory, studies, options), options.precision, options.for_)
    said = results.about(directory)
    found = machine.differences(said["fingerprint"], machine.fingerprint())
    if found:
        raise TollbarError(f"this is not the machine the run began on: {'; '.join(found)}", where=str(directory))
    planned = plan.make(asked, seed=said["seed"], named_libraries=said["libraries"])
    changed = results.changes(said, results.made_with(planned))
    store = results.reopen(directory)
    cells = {(one.study.name, cell.key) for one in planned.studies for cell in one.cells}
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
    results.update_about(directory, {"studies": entries})
    again = store.resume()
    if again:
        console.say(f"  resumed    {counted(again, 'cell')} that failed too often before: tried again")
    return planned, store


def _say_plan(planned: Plan, store: Store) -> None:
    about = units.show_seconds(estimates.of_plan(planned))
    console.say(f"  plan       {len(cells_of(planned))} cells, about {about}")
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


# In cores. Above this another program is using one all the time.
BUSY = 0.7


def show(judged: Judgement, *, as_json: bool, everything: bool = False) -> None:
    """Prints what a run says."""
    if as_json:
        console.print_json(document.of_run(judged))
    else:
        console.show_judgement(judged, everything=everything)
