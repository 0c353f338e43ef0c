"""What several commands have: options, and the plan that they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tollbar import console, plan, study
from tollbar.errors import TollbarError
from tollbar.plan import Cell, Plan
from tollbar.study import Study

AsJson = Annotated[bool, Parameter(name="--json", negative="")]
Libraries = Annotated[tuple[Path, ...], Parameter(negative="")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a run can be told beside its studies. A plan takes all of it, and makes and measures nothing."""

    blocks: int | None = None
    """Blocks to measure instead of the study's own. Adding blocks to a finished run is paid for
    with wider intervals, because it has been looked at."""
    precision: str | None = None
    """Add blocks until every toll's interval is at most so wide to either side (`2%`), or the time is over."""
    for_: Annotated[str | None, Parameter(name="--for")] = None
    """How long each study may take to reach the precision (`5min`). None: four times what its blocks take."""
    seed: int | None = None
    """Decides the order of visits and the data. None: a new one, kept with the run."""
    library: Libraries = ()
    """A libcrypto to measure beside those that the study names. May be given again."""
    runs: Path = Path("runs")
    """Where the run's directory is made."""
    resume: Path | None = None
    """A run to go on with, instead of a new one. What only the command line says of a server of your own
    is said again."""
    url: str | None = None
    """A server of your own. Anything but this machine's loopback is refused unless you name its host again."""
    against: str | None = None
    """The URL of another server of yours, measured beside the `--url`, which is compared with it."""
    server_pid: Annotated[tuple[int, ...], Parameter(negative="")] = ()
    """A process of your server, on this machine: what it and all below it pay is then the cost, and not what
    the client pays. Which URL it serves is found by where it listens. May be given again."""
    users: Annotated[tuple[int, ...], Parameter(negative="")] = study.DEFAULT_USERS
    """How many users at a time ask the `--url`. May be given again."""
    i_own_this_server: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """The host of the `--url`, once more: the load is for a server that is yours. May be given again,
    for that of `--against`."""
    json: AsJson = False
    """Print one JSON document instead of tables."""
    report: bool = True
    """Write `report.html` into the run's directory."""

    def __post_init__(self) -> None:
        if self.blocks is not None and self.blocks < 1:
            raise TollbarError("`--blocks`: at least one block")
        if self.for_ is not None and self.precision is None:
            raise TollbarError("`--for` is how long a `--precision` may take, and there is none")
        if any(users < 1 for users in self.users):
            raise TollbarError("`--users`: at least one user")
        if self.against is not None and self.url is None:
            raise TollbarError("`--against` is compared with a `--url`, and there is none")


DEFAULTS = Options()


def make_plan(studies: tuple[str, ...], library: tuple[Path, ...]) -> Plan:
    """The plan of these studies, `quick` if there are none."""
    return plan_of(study.load(studies or ("quick",)), library, 0)


def plan_of(asked: Sequence[Study], library: tuple[Path, ...], seed: int) -> Plan:
    """The plan of these studies; says what is passed over."""
    planned = plan.make(asked, seed=seed, named_libraries=[str(path.resolve()) for path in library])
    for where, reason in planned.broken.items():
        console.say(f"warning: passed over: {where}: {reason}", "yellow")
    return planned


def cells_of(planned: Plan) -> list[Cell]:
    """The cells of all studies of a plan."""
    return [cell for one in planned.studies for cell in one.cells]


def write_anew(path: Path, text: str) -> None:
    """Writes a file that is not there yet. Raises TollbarError: a user's own study is not written over."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise TollbarError("is there already", where=str(path), hint="name another file") from error
    except OSError as error:
        raise TollbarError(f"cannot be written: {error.strerror}", where=str(path)) from error
