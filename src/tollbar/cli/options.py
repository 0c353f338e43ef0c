"""Options of several commands, and their plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tollbar import results, study
from tollbar.catalog.servers.places import RoleMachine, read_places
from tollbar.cli.layouts import AsJson, For, Libraries, RunsFolder, Seed, check_number, read_seconds, read_share
from tollbar.core import limits
from tollbar.core.errors import TollbarError
from tollbar.core.files import full_path
from tollbar.lab.tls.url import DEFAULT_USERS, Resumption, of_urls, with_servers
from tollbar.report import terminal
from tollbar.study import Study, plan
from tollbar.study.plan import Plan


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a run. `tollbar plan` accepts all of them, and writes and measures nothing."""

    blocks: int | None = None
    """Number of blocks to measure, such as `40`; default: the study's own. Blocks added to a finished run widen its
    intervals, because its result has been looked at."""
    precision: str | None = None
    """Add blocks until every toll's interval is at most this wide to either side, such as `2%`, or `--for` is over."""
    for_: For = None
    """Time limit of each study for `--precision`, such as `5min`; default: four times the time of its blocks."""
    seed: Seed = None
    library: Libraries = ()
    runs: RunsFolder = Path("runs")
    resume: Path | None = None
    """Run to continue, such as `runs/2026-…`; default: a new run. Pass `--server-pid` and `--i-own-this-server`
    again."""
    roles: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """Machines for the parts of a server, reached by ssh, such as `web=192.0.2.7,database=192.0.2.8`; default: the
    study's `[roles]`, or this machine. `ROLE=ADDRESS by COMMAND` uses another command than ssh. `client=ADDRESS` is the
    address of this machine. Several directories on one machine need an address each:
    `directory=192.0.2.9+192.0.2.10`."""
    url: str | None = None
    """URL of your own server, such as `https://localhost:8443/path`. A host other than this machine needs
    `--i-own-this-server`."""
    against: str | None = None
    """URL of a second server of yours, such as `http://localhost:8080/`; the `--url` is compared with it."""
    server_pid: Annotated[tuple[int, ...], Parameter(negative="")] = ()
    """Process id of your server on this machine, such as `4711`. The cost is then the CPU time of this process and its
    children; default: the client's CPU time. The listening port shows which URL it serves. Repeatable."""
    scenario: Path | None = None
    """File with the steps that each user of the `--url` performs, such as `shop.toml`; default: one
    request for the URL's path."""
    resumption: Resumption = "none"
    """`ticket`: clients of the `--url` offer the session of their last connection. `none`: each connection has a full
    handshake. Default: `none`."""
    users: Annotated[tuple[int, ...], Parameter(negative="")] = DEFAULT_USERS
    """Number of concurrent users of the `--url`, such as `16`. Repeatable; default: 1 and 8."""
    i_own_this_server: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """Host of the `--url` or `--against`, such as `test.example.org`, to confirm that the server is yours.
    Repeatable."""
    json: AsJson = False
    report: bool = True
    """Write `report.html` into the run's directory; default: on."""

    def __post_init__(self) -> None:
        if self.blocks is not None:
            check_number("--blocks", self.blocks, limits.BLOCKS)
        for users in self.users:
            check_number("--users", users, limits.USERS)
        for pid in self.server_pid:
            check_number("--server-pid", pid, limits.PROCESS)
        if self.for_ is not None and self.precision is None:
            raise TollbarError(
                "`--for` needs `--precision`", hint="for example `tollbar run --precision 2% --for 5min`"
            )
        if self.precision is not None:
            read_precision(self.precision)
        if self.for_ is not None:
            read_seconds("--for", self.for_)
        if self.against is not None and self.url is None:
            hint = "for example `--url https://localhost:8443/ --against http://localhost:8080/`"
            raise TollbarError("`--against` needs `--url`", hint=hint)
        if self.scenario is not None and self.url is None:
            raise TollbarError(
                "`--scenario` needs `--url`", hint="for example `--url https://localhost:8443/ --scenario shop.toml`"
            )
        if self.resumption != "none" and self.url is None:
            hint = "without your own server, for example `tollbar ask tls tls-1.3 resumption=none,ticket`"
            raise TollbarError("`--resumption` needs `--url`", hint=hint)


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
        terminal.say(f"warning: skipped: {where}: {reason}", "yellow")
    return planned


def studies_of(studies: tuple[str, ...], options: Options) -> tuple[Study, ...]:
    """Return the requested studies: that of a URL, and the named ones; without either the set `quick`."""
    urls = [url for url in (options.against, options.url) if url is not None]
    owned, pids = options.i_own_this_server, options.server_pid
    theirs = [of_urls(urls, options.users, owned, pids, options.resumption, options.scenario)] if urls else []
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
                f"the studies {first.name} and {one.name} have different `[roles]`; all studies of a run need the same",
                hint="run them one by one, or pass `--roles`, for example `--roles web=192.0.2.7`",
            )
    return first.places


def resumed(directory: Path, studies: tuple[str, ...], options: Options) -> tuple[Study, ...]:
    """Return the studies of a resumed run, with their new number of blocks and their servers."""
    if studies or options.url:
        what = "the studies" if studies else "`--url` and `--against`"
        raise TollbarError(f"`--resume` takes its studies from the run; {what} cannot be given", hint=f"remove {what}")
    said = results.about(directory)
    try:
        found = results.studies(directory, to_measure=True)
    except TollbarError as error:
        if said["command"][1:2] != ["upgrade"]:
            raise
        # Servers that it fetched are servers of the cache, which only the command itself makes known.
        raise TollbarError(
            error.what, where=error.where, hint="repeat the `tollbar upgrade` command as a new run"
        ) from error
    already = {one.name: said["studies"][one.name]["blocks"] for one in found}
    asked = tuple(
        replace(one, measure=replace(one.measure, blocks=max(already[one.name], options.blocks or 0))) for one in found
    )
    return with_servers(asked, options.i_own_this_server, options.server_pid)


def read_precision(said: str) -> float:
    """Return the share of a `--precision`. Raises TollbarError."""
    half = read_share("--precision", said)
    check_number("--precision", half, limits.PRECISION)
    return half
