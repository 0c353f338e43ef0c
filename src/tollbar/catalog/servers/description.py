"""Description of a server: from `server.toml` to a `Server`, or a one-line error with file, key and fault."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from tollbar.core import units, wire
from tollbar.core.wire import KEYS, Strict

ROLES = ("web", "database", "directory")
"""Roles of components: all components of one role are on one machine."""

# The guard kills a server that takes longer, whatever its file allows.
LONGEST_GRACE_S = 10.0


def _pattern(text: Any) -> re.Pattern[str]:
    try:
        pattern = re.compile(str(text), re.MULTILINE)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    if not pattern.groups:
        raise ValueError("the pattern needs a group that matches the value, for example `nginx/([0-9.]+)`")
    return pattern


Pattern = Annotated[re.Pattern[str], BeforeValidator(_pattern)]
Seconds = Annotated[float, BeforeValidator(units.seconds)]


@dataclass(config=KEYS, frozen=True, slots=True, eq=False, kw_only=True)
class Version(Strict):
    """Command for a program's version, and the pattern whose group matches it in the output."""

    arguments: tuple[str, ...]
    pattern: Pattern
    tool: str | None = None
    """Tool of the component that prints the version instead, if the program itself cannot."""


@dataclass(config=KEYS, frozen=True, slots=True, eq=False, kw_only=True)
class Readiness(Strict):
    """Test of a component's readiness."""

    by: Literal["line", "http", "tcp", "command"]
    """Kind of the test: `line`, `http`, `tcp` or `command`.

    `line`: it prints a line on standard output; `http`: it answers a request, in any way; `tcp`: it accepts a
    connection; `command`: this command ends with status 0, repeated until it does.
    """
    command: tuple[str, ...] = ()
    limit: Seconds = 10.0

    def __post_init__(self) -> None:
        if (self.by == "command") != bool(self.command):
            raise ValueError('`command` and `by = "command"` must be given together')


@dataclass(config=KEYS, frozen=True, slots=True, eq=False, kw_only=True)
class Preparation(Strict):
    """Commands that run once, in an empty directory, before a component's first start.

    The resulting directory is kept and unpacked for every start. It depends on the component's version, on the text of
    these commands and templates, and on `settings`: the only settings that they can read.
    """

    commands: tuple[tuple[str, ...], ...] = Field(min_length=1)
    environment: Mapping[str, str] = Field(default_factory=dict)
    render: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    has_name: bool = False
    """True if its commands look up the name of their account, and refuse to run without one."""
    limit: Seconds = 60.0


@dataclass(config=KEYS, frozen=True, slots=True, eq=False, kw_only=True)
class Component(Strict):
    """Component of a server: a tree of processes with its own CPU time."""

    name: str
    lifetime: Literal["trial", "run"]
    """`run`: started by the first cell of a run that needs it, and shared by all that need an equal one."""
    role: Literal["web", "database", "directory"] = "web"
    """Role that determines its machine, if roles have machines of their own."""
    gives: tuple[str, ...] = ()
    """Patterns of files in its directory that others read: they are copied to the readers."""
    shared_by: tuple[str, ...] = ()
    """Settings, and words of its family's workload, that distinguish components of the run.

    Such a component can read no others.
    """
    on_provider: bool = True
    """True if it loads the cell's provider, so that each provider needs its own component.

    Else it uses the system's libraries.
    """
    programs: tuple[str, ...] = Field(default=(), alias="program")
    """Names of its program on different systems; empty: the engine."""
    folders: tuple[str, ...] = ()
    """Folders in addition to the user's path; `*` matches a version."""
    tools: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """Other programs that its commands need, each with its names on different systems."""
    version: Version
    address: Literal["shared", "own"] = "shared"
    """127.0.0.1, or an address of 127.0.0.0/8 of its own in the run."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Fixed port, only for a component with its own address; None: a free one."""
    ports: tuple[str, ...] = ()
    """Names of further ports that it listens on, each a free one."""
    account: str = ""
    """Template of the name of the component whose account it shares if the lab is root; empty: its own account.

    The account has none of root's rights, except a port below 1024 if needed.
    """
    prepare: Preparation | None = None
    render: tuple[str, ...] = ()
    """Files to make in its directory, each from the template of that name, or copied if there is no template."""
    has_sockets: bool = False
    """True if others connect to sockets in its directory: if the lab is root, they get its group for that."""
    writable: tuple[str, ...] = ()
    """Folders to make in its directory, for its account and, if it `has-sockets`, its group."""
    start: tuple[str, ...]
    stdin: str | None = None
    """Template of its standard input: the only place for a key."""
    environment: Mapping[str, str] = Field(default_factory=dict)
    ready: Readiness
    stop: Literal["TERM", "INT", "QUIT"] = "TERM"
    grace: Annotated[Seconds, Field(le=LONGEST_GRACE_S)] = 2.0
    """Time to stop before it is killed."""
    refusals: tuple[Pattern, ...] = ()
    """Patterns of messages about unsupported configurations; the group is the reason in the row."""
    complaints: tuple[Pattern, ...] = ()
    """Patterns of log messages about failed requests, for a component of a trial.

    The group of the last match is added to the load client's message, in a row of a failed load.
    """

    def __post_init__(self) -> None:
        if self.port is not None and self.address == "shared":
            raise ValueError(
                '`port`: a fixed port needs `address = "own"`, because another server may use it on 127.0.0.1'
            )
        if self.version.tool and self.version.tool not in self.tools:
            raise ValueError(f"`version.tool`: `{self.version.tool}` must be one of its `tools`")
        if self.shared_by and self.lifetime == "trial":
            raise ValueError("`shared-by`: a component that starts for each trial cannot be shared")
        if self.complaints and self.lifetime == "run":
            raise ValueError(
                "`complaints`: the log of a shared component cannot be used, because several trials write it"
            )
        if self.lifetime == "run" and self.prepare:
            for setting in self.prepare.settings:
                if setting not in self.shared_by:
                    raise ValueError(f"`prepare.settings`: `{setting}` must also be in `shared-by`")


@dataclass(config=KEYS, frozen=True, slots=True, eq=False, kw_only=True)
class Server(Strict):
    """Servers that work together, and their installation.

    Without `runs-on` it is a *service*: it supports the server of a cell, and a study cannot name it.
    """

    folder: Path
    title: str
    install: str
    """Command that would install it."""
    runs_on: tuple[str, ...] = ()
    """Kinds of provider that can perform its TLS."""
    workers: Literal["threads", "processes"] | None = None
    """Form of its use of several `cores`: threads of one process, or a process each. None: it works on one."""
    performs: tuple[str, ...] = ()
    """Kinds of provider whose operations it offers behind a request in clear."""
    places: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """Folders that its configuration names, with their possible paths."""
    build_of: str | None = None
    """Server that this is another build of, and that an upgrade compares it with."""
    components: tuple[Component, ...] = Field(min_length=1, alias="component")
    """Components in the order of their start; the last is the frontend."""

    def __post_init__(self) -> None:
        of_trial = [component.lifetime == "trial" for component in self.components]
        # A component that outlives a trial cannot depend on the trial's endpoints.
        if of_trial != sorted(of_trial):
            raise ValueError("`component`: components of the run must be before those of a trial")
        if again := repeated(self.components):
            raise ValueError(f"`component`: two components or ports have the name `{again}`; each name must be unique")
        if self.performs and self.is_service:
            raise ValueError("`performs` needs `runs-on`, because operations are not sent to a service")

    def __repr__(self) -> str:
        return f"<Server {self.name}>"

    @property
    def name(self) -> str:
        """Name of its folder."""
        return self.folder.name

    @property
    def kind(self) -> str:
        """Name of the server that it is, or is another build of; workloads use it to know a server's abilities."""
        return self.build_of or self.name

    @property
    def is_service(self) -> bool:
        """True if it only supports other servers."""
        return not self.runs_on

    @property
    def frontend(self) -> Component:
        """Component that receives the load, and whose version is the server's."""
        return self.components[-1]


def repeated(components: Iterable[Component]) -> str | None:
    """Return a name that two of these components or ports share, or None.

    Templates could not distinguish them.
    """
    names = Counter(name for component in components for name in (component.name, *component.ports))
    return next((name for name, times in names.items() if times > 1), None)


def read(folder: Path) -> Server:
    """Return the server in this folder.

    Raises TollbarError with the file, the key, and the nearest valid key or value.
    """
    return wire.read(folder / "server.toml", Server, folder=folder)
