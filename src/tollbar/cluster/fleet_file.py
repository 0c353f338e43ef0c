"""File of a fleet, `fleet.json`: its nodes with their runs, so that each node's missing cells can be resumed alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tollbar import __version__
from tollbar.core.errors import TollbarError
from tollbar.core.files import read_text, write_atomically
from tollbar.core.wire import Strict, is_plain, read_json
from tollbar.results.directory import check_files, refuse_other_kinds

FILE, PAGE = "fleet.json", "fleet.html"
SCHEMA = 1
# With the texts of its own studies, of which a run has 2 MiB. An empty list is a value of 64 bytes in memory.
MOST_BYTES, MOST_VALUES = 4 << 20, 500_000


class State(StrEnum):
    """State of a node's part."""

    WAITING = "waiting"
    MEASURING = "measuring"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    LOST = "lost"
    INTERRUPTED = "interrupted"


@dataclass(slots=True)
class FleetNode(Strict):
    """A node's part in a fleet, as `fleet.json` has it."""

    name: str
    address: str
    labels: dict[str, str]
    state: State = State.WAITING
    reason: str | None = None
    run: str | None = None
    """Directory of its run, in the folder of its name."""
    host: str = ""
    """Host name, if another node has the same and this one is called by its address."""

    @property
    def host_name(self) -> str:
        return self.host or self.name


@dataclass(slots=True)
class Fleet(Strict):
    """Contents of `fleet.json`."""

    schema: int
    tollbar: str
    command: list[str]
    started: str
    studies: list[str]
    """Names of studies that ship with Tollbar, on the nodes as here."""
    files: dict[str, str]
    """The text of studies that do not, by their file's name; they are in no order with those that do."""
    options: list[str]
    on: str
    simulated: int | None
    nodes: list[FleetNode]
    labels: dict[str, str] = field(default_factory=dict)
    """Labels that select the nodes."""

    def write(self, directory: Path) -> None:
        """Write `fleet.json` into its directory.

        Raises TollbarError.
        """
        try:
            write_atomically(directory / FILE, json.dumps(asdict(self), indent=1) + "\n")
        except OSError as error:
            raise TollbarError(f"cannot be written: {error.strerror}", where=str(directory / FILE)) from error


def read_fleet(directory: Path) -> Fleet:
    """Return the fleet of a directory, to be resumed.

    Raises TollbarError.
    """
    path = directory / FILE
    try:
        said = read_json(read_text(path, MOST_BYTES, pipes=False), MOST_VALUES)
        fleet = TypeAdapter(Fleet).validate_python(said)
    except ValidationError as error:
        what = error.errors(include_url=False, include_context=False, include_input=False)[0]["msg"]
        raise TollbarError(f"not as Tollbar writes it: {what}", where=str(path)) from error
    except ValueError as error:
        raise TollbarError(f"not as Tollbar writes it: {error}", where=str(path)) from error
    names = [*(one.name for one in fleet.nodes), *(one.run for one in fleet.nodes if one.run), *fleet.files]
    if fleet.schema != SCHEMA or not all(map(is_plain, names)):
        raise TollbarError(
            f"must have schema {SCHEMA} of a fleet",
            where=str(path),
            hint="begin a new fleet with `tollbar run --cluster ray`",
        )
    if fleet.tollbar != __version__:
        what = f"was begun by Tollbar {fleet.tollbar} and cannot be continued by {__version__}"
        raise TollbarError(what, where=str(directory), hint="begin a new fleet with `tollbar run --cluster ray`")
    _check_files(directory, [one.name for one in fleet.nodes])
    return fleet


def _check_files(directory: Path, nodes: Sequence[str]) -> None:
    """Raise TollbarError for an entry that is not an ordinary file of a fleet or of a node's run in it."""
    runs = [path for name in nodes for path in (directory / name).glob("*")]
    for path in [*directory.iterdir(), *runs]:
        refuse_other_kinds(path.lstat(), str(path.relative_to(directory)), str(directory))
    for run in runs:
        check_files(run)
