"""Beds: real servers, started for a measurement and stopped after it.

A bed is a folder here: `bed.toml` says which programs it takes, how they are told what to do, how they are
asked whether they are ready, and how they stop; beside it lie the templates of what they read. One driver
(`beds.driver`) runs them all, in the sandbox of a run (`beds.sandbox`).

A bed knows no study and no plan. What a cell asks for comes as plain settings.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tollbar.errors import TollbarError
from tollbar.runner import Outcome, engine

# A program that cannot say its version within this is not one to measure.
VERSION_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Component:
    """One server of a bed: a tree of processes with its own account of CPU time."""

    name: str
    lifetime: Literal["trial", "run"]
    """`run`: prepared once, and shared by all cells of a run that want the same (a directory, a database)."""
    programs: tuple[str, ...]
    """Its names on different systems; none: the engine."""
    folders: tuple[str, ...]
    render: tuple[str, ...]
    """Files to make in its directory, each from the template of that name."""
    start: tuple[str, ...]
    stdin: str | None
    """The template of what it is given on standard input: the one place where a key may be."""
    environment: Mapping[str, str]
    ready: Literal["answer", "line"]
    """`answer`: it answers a connection, in whatever way. `line`: it says so on standard output."""
    stop: Literal["TERM", "INT", "QUIT"]
    refusals: tuple[re.Pattern[str], ...]
    """How it words a configuration that it cannot serve; the group is what it says of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Bed:
    """Servers that work together, and how they are found."""

    name: str
    title: str
    install: str
    """The command that would install it."""
    runs_on: tuple[str, ...]
    """The kinds of provider that can do its TLS."""
    performs: tuple[str, ...]
    """The kinds of provider whose operations it offers behind a request in clear."""
    version_arguments: tuple[str, ...]
    version_pattern: re.Pattern[str]
    places: Mapping[str, tuple[str, ...]]
    """Folders its configuration speaks of, and where they may be."""
    components: tuple[Component, ...]
    """In the order they are started in; the last is the one that the load talks to."""
    folder: Path

    def __repr__(self) -> str:
        return f"<Bed {self.name}>"

    @property
    def frontend(self) -> Component:
        """The component that the load talks to, and whose version is the bed's."""
        return self.components[-1]


@dataclass(frozen=True, slots=True, eq=False)
class Installed:
    """A bed that is here."""

    bed: Bed
    version: str
    programs: Mapping[str, Path]
    """The program of each component."""
    places: Mapping[str, str]

    def __repr__(self) -> str:
        return f"<Installed {self.bed.name} {self.version}>"

    @property
    def server(self) -> str:
        """Which server this is, as rows name it: `nginx 1.22.1`."""
        return f"{self.bed.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A bed that is not available here, and what would help."""

    name: str
    reason: str


class NotStarted(Exception):
    """A server that is not there: `unsupported` if it cannot do what is asked, else `failed` or `timed-out`."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        self.outcome = outcome
        self.reason = reason
        super().__init__(f"{outcome}: {reason}")


@cache
def all_beds() -> Mapping[str, Bed]:
    """Every bed that comes with Tollbar, by name."""
    folders = sorted(Path(__file__).parent.glob("*/bed.toml"))
    return {path.parent.name: read(path.parent) for path in folders}


def read(folder: Path) -> Bed:
    """The bed in this folder. Raises TollbarError that names file, key and fault."""
    path = folder / "bed.toml"
    try:
        wire = _WireBed.model_validate(tomllib.loads(path.read_text("utf-8")))
        return wire.bed(folder)
    except (OSError, tomllib.TOMLDecodeError, re.error) as error:
        raise TollbarError(f"cannot read the bed: {error}", where=str(path)) from error
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(str(part) for part in fault["loc"])
        raise TollbarError(f"`{key}`: {fault['msg']}", where=str(path)) from error


@cache
def find(bed: Bed) -> Installed | Unavailable:
    """Looks for the bed's programs, once, and asks for the version."""
    programs: dict[str, Path] = {}
    for component in bed.components:
        found = engine() if not component.programs else _first_program(component)
        if found is None:
            return Unavailable(bed.name, f"{bed.title} is not installed; to have it: {bed.install}")
        programs[component.name] = found
    places: dict[str, str] = {}
    for place, folders in bed.places.items():
        there = next((folder for folder in folders if os.path.isdir(folder)), None)
        if there is None:
            return Unavailable(bed.name, f"{bed.title} has no folder of {place} here; to have it: {bed.install}")
        places[place] = there
    program = programs[bed.frontend.name]
    version = _version(program, bed)
    if version is None:
        return Unavailable(bed.name, f"{program} does not say its version, and a server without one measures nothing")
    return Installed(bed, version, programs, places)


def _first_program(component: Component) -> Path | None:
    # The user's own path goes first: who put a server of their own there means it.
    folders = [*os.environ.get("PATH", "").split(os.pathsep), *component.folders]
    candidates = (Path(folder) / name for name in component.programs for folder in folders if folder)
    # Not `Path.is_file`, which raises for a folder that nobody may look into: root's, in a path that was kept.
    return next((path for path in candidates if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def _version(program: Path, bed: Bed) -> str | None:
    try:
        asked = subprocess.run(
            [program, *bed.version_arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=VERSION_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = bed.version_pattern.search(asked.stdout.decode(errors="replace"))
    return match.group(1) if match else None


# What is written in a bed's file.


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"))


class _WireVersion(_Wire):
    arguments: Sequence[str]
    pattern: str


class _WireComponent(_Wire):
    name: str
    lifetime: Literal["trial", "run"]
    program: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    render: tuple[str, ...] = ()
    start: tuple[str, ...]
    stdin: str | None = None
    environment: Mapping[str, str] = {}
    ready: Literal["answer", "line"]
    stop: Literal["TERM", "INT", "QUIT"] = "TERM"
    refusals: tuple[str, ...] = ()

    def component(self) -> Component:
        refusals = tuple(re.compile(pattern, re.MULTILINE) for pattern in self.refusals)
        given: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        return Component(**given | {"programs": given.pop("program"), "refusals": refusals})


class _WireBed(_Wire):
    title: str
    install: str
    runs_on: tuple[str, ...] = Field(min_length=1)
    performs: tuple[str, ...] = ()
    version: _WireVersion
    places: Mapping[str, tuple[str, ...]] = {}
    component: tuple[_WireComponent, ...] = Field(min_length=1)

    def bed(self, folder: Path) -> Bed:
        return Bed(
            name=folder.name,
            title=self.title,
            install=self.install,
            runs_on=self.runs_on,
            performs=self.performs,
            version_arguments=tuple(self.version.arguments),
            version_pattern=re.compile(self.version.pattern),
            places=self.places,
            components=tuple(component.component() for component in self.component),
            folder=folder,
        )
