"""Options of several commands, their plans, and their exit statuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tollbar import results, study
from tollbar.analysis import Judgement
from tollbar.catalog.servers.places import RoleMachine, read_places
from tollbar.cli.answers import DEFAULT_LAYOUT as DEFAULT_LAYOUT
from tollbar.cli.answers import AsJson as AsJson
from tollbar.cli.answers import For as For
from tollbar.cli.answers import Layout as Layout
from tollbar.cli.answers import Libraries as Libraries
from tollbar.cli.answers import RunsFolder as RunsFolder
from tollbar.cli.answers import Seed as Seed
from tollbar.cli.answers import check_number as check_number
from tollbar.cli.answers import command_line as command_line
from tollbar.cli.answers import read_run as read_run
from tollbar.cli.answers import read_seconds as read_seconds
from tollbar.cli.answers import show_answer as show_answer
from tollbar.core import limits, units
from tollbar.core.errors import ExitStatus, TollbarError
from tollbar.core.files import full_path
from tollbar.core.records import Outcome
from tollbar.lab.tls.url import DEFAULT_USERS, Resumption, of_urls, with_servers
from tollbar.report import terminal
from tollbar.study import Study, plan
from tollbar.study.plan import Plan


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a run can be told beside its studies. A plan takes all of it, and makes and measures nothing."""

    blocks: int | None = None
    """Blocks to measure instead of the study's own. Adding blocks to a finished run is paid for
    with wider intervals, because it has been looked at."""
    precision: str | None = None
    """Add blocks until every toll's interval is at most so wide to either side (`2%`), or the time is over."""
    for_: For = None
    """How long each study may take to reach the precision (`5min`); default: four times what its blocks take."""
    seed: Seed = None
    library: Libraries = ()
    runs: RunsFolder = Path("runs")
    resume: Path | None = None
    """A run to go on with, instead of a new one. What only the command line says of a server of your own
    is said again."""
    roles: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """Machines where the parts of a server run: `web=ADDRESS,database=ADDRESS,directory=ADDRESS`, reached by ssh, or
    `ROLE=ADDRESS by COMMAND`, which runs a command there. `client=ADDRESS` is this machine's own; a machine with
    several directories has as many addresses, `directory=ADDRESS+ADDRESS`. It takes the place of all that a study
    says in `[roles]`."""
    url: str | None = None
    """A server of your own. Anything but this machine's loopback is refused unless you name its host again."""
    against: str | None = None
    """The URL of another server of yours, measured beside the `--url`, which is compared with it."""
    server_pid: Annotated[tuple[int, ...], Parameter(negative="")] = ()
    """A process of your server, on this machine: what it and all below it pay is then the cost, and not what
    the client pays. Which URL it serves is found by where it listens. May be given again."""
    resumption: Resumption = "none"
    """`ticket` has clients of the `--url` offer the session that the server gave them on their last connection. With
    `none` each connection has a full handshake."""
    users: Annotated[tuple[int, ...], Parameter(negative="")] = DEFAULT_USERS
    """How many users at a time ask the `--url`. May be given again."""
    i_own_this_server: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """The host of the `--url`, once more: the load is for a server that is yours. May be given again,
    for that of `--against`."""
    json: AsJson = False
    report: bool = True
    """Write `report.html` into the run's directory."""

    def __post_init__(self) -> None:
        if self.blocks is not None:
            check_number("--blocks", self.blocks, limits.BLOCKS)
        for users in self.users:
            check_number("--users", users, limits.USERS)
        for pid in self.server_pid:
            check_number("--server-pid", pid, limits.PROCESS)
        if self.for_ is not None and self.precision is None:
            raise TollbarError("`--for` is how long a `--precision` may take, and there is none")
        if self.precision is not None:
            read_precision(self.precision)
        if self.for_ is not None:
            read_seconds("--for", self.for_)
        if self.against is not None and self.url is None:
            raise TollbarError("`--against` is compared with a `--url`, and there is none")
        if self.resumption != "none" and self.url is None:
            hint = "a study varies `resumption` itself, as in `tollbar ask tls tls-1.3 resumption=none,ticket`"
            raise TollbarError("`--resumption` needs a `--url`", hint=hint)


DEFAULTS = Options()


def full_paths(libraries: Sequence[Path]) -> list[str]:
    """Return the full paths of these libraries, which hold in any working directory."""
    return [str(full_path(path)) for path in libraries]


def make_plan(studies: tuple[str, ...], library: tuple[Path, ...]) -> Plan:
    """Return the plan of these studies, `quick` if there are none."""
    return plan_of(study.load(studies or ("quick",)), library, 0)


def plan_of(asked: Sequence[Study], library: tuple[Path, ...], seed: int) -> Plan:
    """Return the plan of these studies, with a warning for each that is skipped."""
    planned = plan.make(asked, seed=seed, named_libraries=full_paths(library))
    for where, reason in planned.broken.items():
        terminal.say(f"warning: passed over: {where}: {reason}", "yellow")
    return planned


def studies_of(studies: tuple[str, ...], options: Options) -> tuple[Study, ...]:
    """Return the requested studies: that of a URL, and the named ones; without either the set `quick`."""
    urls = [url for url in (options.against, options.url) if url is not None]
    owned, pids = options.i_own_this_server, options.server_pid
    theirs = [of_urls(urls, options.users, owned, pids, options.resumption)] if urls else []
    named = study.load(studies or (() if urls else ("quick",)))
    return (*theirs, *with_servers(named, options.i_own_this_server, () if urls else options.server_pid))


def places_for(asked: Sequence[Study], options: Options) -> tuple[RoleMachine, ...]:
    """Return the machines of roles: those of `--roles`, or else of the studies.

    Raises TollbarError where these differ.
    """
    if options.roles:
        return read_places(options.roles)
    first, *others = asked
    for one in others:
        if one.places != first.places:
            raise TollbarError(
                f"`roles`: the studies {first.name} and {one.name} say different ones, and a run has the same for all",
                hint="run them one by one, or say --roles",
            )
    return first.places


def resumed(directory: Path, studies: tuple[str, ...], options: Options) -> tuple[Study, ...]:
    """Return the studies of a resumed run, with their new number of blocks and their servers."""
    if studies or options.url:
        what = "the studies" if studies else "`--url` and `--against`"
        raise TollbarError("a run that is resumed has its studies already", hint=f"leave {what} out")
    said = results.about(directory)
    try:
        found = results.studies(directory, to_measure=True)
    except TollbarError as error:
        if said["command"][1:2] != ["upgrade"]:
            raise
        # Servers that it fetched are servers of the cache, which only the command itself makes known.
        raise TollbarError(error.what, where=error.where, hint="ask `tollbar upgrade` again") from error
    already = {one.name: said["studies"][one.name]["blocks"] for one in found}
    asked = tuple(
        replace(one, measure=replace(one.measure, blocks=max(already[one.name], options.blocks or 0))) for one in found
    )
    return with_servers(asked, options.i_own_this_server, options.server_pid)


def read_share(option: str, said: str, most: float | None = 1.0) -> float:
    """Return an option's value, as a share above zero and below `most`.

    Raises TollbarError.
    """
    try:
        share = units.share(said)
    except ValueError as error:
        raise TollbarError(str(error), where=f"{option} {units.quoted(said)}") from error
    if share <= 0 or (most is not None and share >= most):
        raise TollbarError("a share above nothing, as in 2%", where=f"{option} {units.quoted(said)}")
    return share


def read_precision(said: str) -> float:
    """Return the share of a `--precision`. Raises TollbarError."""
    half = read_share("--precision", said)
    check_number("--precision", half, limits.PRECISION)
    return half


def show(judged: Judgement, *, as_json: bool, everything: bool = False) -> None:
    """Print the results of a run."""
    if as_json:
        from tollbar.report.document import of_run

        terminal.print_json(of_run(judged))
    else:
        terminal.show_judgement(judged, everything=everything)


def print_rows(rows: Sequence[Mapping[str, object]], *, as_json: bool) -> None:
    """Print a table of these rows, or one JSON document."""
    if as_json:
        terminal.print_json([dict(row) for row in rows])
    else:
        terminal.show_rows(rows)


def status_of(judged: Judgement) -> ExitStatus:
    """Return `DONE` if everything available was measured and anything was.

    A choice that a library does not support is no failure, as long as another is measured.
    """
    rows = [row for one in judged.studies for row in one.study.rows]
    bad = any(row.outcome in (Outcome.FAILED, Outcome.TIMED_OUT) or row.set_aside is not None for row in rows)
    return ExitStatus.SOME_FAILED if bad or not any(row.all_trials for row in rows) else ExitStatus.DONE


def write_anew(path: Path, text: str) -> None:
    """Write a file that does not exist yet. Raises TollbarError: a user's own study is not written over."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise TollbarError("is there already", where=str(path), hint="name another file") from error
    except OSError as error:
        raise TollbarError(f"cannot be written: {error.strerror}", where=str(path)) from error
