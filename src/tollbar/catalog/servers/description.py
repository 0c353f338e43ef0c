"""What a server's file can say: `server.toml` in, a `Server` out, or one line that names the file, the key and the
fault."""

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
"""What components are for: those of one role are on one machine."""

# The guard kills a server that takes longer, whatever its file says.
LONGEST_GRACE_S = 10.0


def _pattern(text: Any) -> re.Pattern[str]:
    try:
        pattern = re.compile(str(text), re.MULTILINE)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    if not pattern.groups:
        raise ValueError("the pattern has no group, and what its group matches is what is used")
    return pattern


Pattern = Annotated[re.Pattern[str], BeforeValidator(_pattern)]
Seconds = Annotated[float, BeforeValidator(units.seconds)]


@dataclass(config=KEYS, frozen=True, slots=True, eq=False, kw_only=True)
class Version(Strict):
    """How a program is asked for its version, and where in what it says the version is (the pattern's group)."""

    arguments: tuple[str, ...]
    pattern: Pattern
    tool: str | None = None
    """Which of the component's tools is asked instead, where the program itself cannot say it."""


@dataclass(config=KEYS, frozen=True, slots=True, eq=False, kw_only=True)
class Readiness(Strict):
    """How it is known that a component is ready."""

    by: Literal["line", "http", "tcp", "command"]
    """`line`: it says so on standard output; `http`: it answers a request, in whatever way; `tcp`: it accepts a
    connection; `command`: this command ends with status 0, and is run again until it does."""
    command: tuple[str, ...] = ()
    limit: Seconds = 10.0

    def __post_init__(self) -> None:
        if (self.by == "command") != bool(self.command):
            raise ValueError('`command` is for `by = "command"`, and both are given or neither')


@dataclass(config=KEYS, frozen=True, slots=True, eq=False, kw_only=True)
class Preparation(Strict):
    """What is done once, in an empty directory, before a component is started for the first time.

    What is in the directory afterwards is kept and unpacked for every start. It depends on the component's version,
    on the text of these commands and templates, and on `settings`: the only settings that they can read.
    """

    commands: tuple[tuple[str, ...], ...] = Field(min_length=1)
    environment: Mapping[str, str] = Field(default_factory=dict)
    render: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    has_name: bool = False
    """Whether its commands look the name of their account up, and refuse to run without one."""
    limit: Seconds = 60.0


@dataclass(config=KEYS, frozen=True, slots=True, eq=False, kw_only=True)
class Component(Strict):
    """One component of a server: a tree of processes with its own account of CPU time."""

    name: str
    lifetime: Literal["trial", "run"]
    """`run`: started by the first cell of a run that needs it, and used by all that want the same one."""
    role: Literal["web", "database", "directory"] = "web"
    """Where it runs, if roles have machines of their own."""
    gives: tuple[str, ...] = ()
    """Patterns of files in its directory that others read: they are copied to where these are."""
    shared_by: tuple[str, ...] = ()
    """The settings, and the words of its family's workload, that make a component of the run another one, and the only
    ones that it can read."""
    on_provider: bool = True
    """Whether it loads the cell's provider: then it is another one for another provider. Else the system's libraries
    are what it runs on."""
    programs: tuple[str, ...] = Field(default=(), alias="program")
    """Its names on different systems; none: the engine."""
    folders: tuple[str, ...] = ()
    """Where it may be beside the user's path; `*` stands for a version."""
    tools: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """Other programs that its commands need, each with its names on different systems."""
    version: Version
    address: Literal["shared", "own"] = "shared"
    """127.0.0.1, or an address of 127.0.0.0/8 that nothing else of the run has."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Without it, one that is free. A component with an address of its own may have a fixed one."""
    ports: tuple[str, ...] = ()
    """Names of further ports that it listens on, each one that is free."""
    account: str = ""
    """The template of the name of the component whose account it needs, when the lab is root; empty: none, and it has
    one of its own. It has no right of root's but to a port below 1024, where it needs one."""
    prepare: Preparation | None = None
    render: tuple[str, ...] = ()
    """Files to make in its directory, each from the template of that name, or as it is where there is no template."""
    has_sockets: bool = False
    """Whether others connect to sockets in its directory: when the lab is root, they get its group for that."""
    writable: tuple[str, ...] = ()
    """Folders to make in its directory, for its account and, where it `has-sockets`, its group."""
    start: tuple[str, ...]
    stdin: str | None = None
    """The template of its standard input: the one place where a key may be."""
    environment: Mapping[str, str] = Field(default_factory=dict)
    ready: Readiness
    stop: Literal["TERM", "INT", "QUIT"] = "TERM"
    grace: Annotated[Seconds, Field(le=LONGEST_GRACE_S)] = 2.0
    """How long it may take to stop before it is killed."""
    refusals: tuple[Pattern, ...] = ()
    """How it words a configuration that it cannot serve; the group is the reason that the row is given."""
    complaints: tuple[Pattern, ...] = ()
    """How it words in its log why it could not serve a request. What the group of the last one matches stands beside
    the load client's words, in a row of a load that failed. Of a component that is started for each trial."""

    def __post_init__(self) -> None:
        if self.port is not None and self.address == "shared":
            raise ValueError('`port`: on 127.0.0.1 it may be another server\'s; a fixed one takes `address = "own"`')
        if self.version.tool and self.version.tool not in self.tools:
            raise ValueError(f"`version.tool`: `{self.version.tool}` is none of its `tools`")
        if self.shared_by and self.lifetime == "trial":
            raise ValueError("`shared-by`: a component that is started for each trial is not shared")
        if self.complaints and self.lifetime == "run":
            raise ValueError("`complaints`: a log that other trials write as well does not say which of them it is of")
        if self.lifetime == "run" and self.prepare:
            for setting in self.prepare.settings:
                if setting not in self.shared_by:
                    raise ValueError(f"`prepare.settings`: `{setting}` has to be in `shared-by` as well")


@dataclass(config=KEYS, frozen=True, slots=True, eq=False, kw_only=True)
class Server(Strict):
    """Servers that work together, and how they are found.

    One that says no `runs-on` is a *service*: it stands behind the server of a cell, and a study cannot name it.
    """

    folder: Path
    title: str
    install: str
    """The command that would install it."""
    runs_on: tuple[str, ...] = ()
    """The kinds of provider that can do its TLS."""
    workers: Literal["threads", "processes"] | None = None
    """What its templates give each of several `cores`: threads of one process, or a process. None: it works on one."""
    performs: tuple[str, ...] = ()
    """The kinds of provider whose operations it offers behind a request in clear."""
    places: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """Folders that its configuration names, and where they may be."""
    build_of: str | None = None
    """The server of which it is another build, which an upgrade sets beside it."""
    components: tuple[Component, ...] = Field(min_length=1, alias="component")
    """In the order they are started in; the last is the frontend."""

    def __post_init__(self) -> None:
        of_trial = [component.lifetime == "trial" for component in self.components]
        # What outlives a trial cannot be configured with where something of the trial listens.
        if of_trial != sorted(of_trial):
            raise ValueError("`component`: those of the run come first, and those of a trial after them")
        if again := repeated(self.components):
            raise ValueError(f"`component`: two of them, or of their ports, have the name `{again}`")
        if self.performs and self.is_service:
            raise ValueError("`performs`: a service, which has no `runs-on`, is not asked for operations")

    def __repr__(self) -> str:
        return f"<Server {self.name}>"

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def kind(self) -> str:
        """The name of the server that it is, or is another build of: by it workloads know what a server can do."""
        return self.build_of or self.name

    @property
    def is_service(self) -> bool:
        """Whether it only stands behind other servers."""
        return not self.runs_on

    @property
    def frontend(self) -> Component:
        """The component that the load asks, and whose version is the server's."""
        return self.components[-1]


def repeated(components: Iterable[Component]) -> str | None:
    """A name that two of these components or of their ports have: templates could not tell one from the other."""
    names = Counter(name for component in components for name in (component.name, *component.ports))
    return next((name for name, times in names.items() if times > 1), None)


def read(folder: Path) -> Server:
    """The server in this folder. Raises TollbarError that names the file, the key, and the nearest right key or
    value."""
    return wire.read(folder / "server.toml", Server, folder=folder)
