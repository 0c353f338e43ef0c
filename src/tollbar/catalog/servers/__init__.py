"""Servers: real servers, started for a measurement and stopped after it.

A server is a folder here: `server.toml` has its programs, their preparation, start, readiness and stop; the
configuration templates are next to it (`servers.description` has every key). One driver (`servers.driver`) runs them
all, in the sandbox of a run (`servers.sandbox`). A *service*, such as a directory or a database, is a folder of the
same kind that a workload names and a study does not.

A server knows no study and no plan. A cell's requirements arrive as plain settings.
"""

from __future__ import annotations

import glob
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tollbar.catalog.servers.description import Component, Preparation, Readiness, Server, Version, read
from tollbar.core.files import folders_with
from tollbar.core.records import Outcome
from tollbar.core.runner import engine

__all__ = [
    "Component",
    "Installed",
    "NotStarted",
    "Preparation",
    "Readiness",
    "Server",
    "Unavailable",
    "Version",
    "all_servers",
    "find",
    "here",
    "read",
    "service",
    "services",
]

# A program that takes longer to print its version is not measured.
VERSION_LIMIT_S = 10.0

FOLDER = Path(__file__).parent
"""Folder of all servers: a description and templates for each."""


@dataclass(frozen=True, slots=True, eq=False)
class Installed:
    """Server whose programs are all on this machine."""

    server: Server
    versions: Mapping[str, str]
    """Version of each component."""
    programs: Mapping[str, Path]
    """Program of each component."""
    tools: Mapping[str, Mapping[str, str]]
    """Paths of each component's other programs, by their names in its commands."""
    places: Mapping[str, str]

    def __repr__(self) -> str:
        return f"<Installed {self.server.name} {self.version}>"

    @property
    def version(self) -> str:
        """Version of the frontend, which is the server's."""
        return self.versions[self.server.frontend.name]

    @property
    def server_version(self) -> str:
        """Name of the server in rows: `nginx 1.22.1`."""
        return f"{self.server.name} {self.version}"

    def program_of(self, component: Component) -> str:
        """Return a component's program and version, for receipts: `slapd 2.5.13`."""
        return f"{self.programs[component.name].name} {self.versions[component.name]}"


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Server that is not available here, with a remedy."""

    name: str
    reason: str


class NotStarted(Exception):
    """Raised for a server that could not be started.

    `unsupported` if it cannot do the work, else `failed` or `timed-out`.
    """

    def __init__(self, outcome: Outcome, reason: str) -> None:
        self.outcome = outcome
        self.reason = reason
        super().__init__(f"{outcome}: {reason}")


def all_servers() -> Mapping[str, Server]:
    """Return every server that a study can name, by name: shipped ones, and those on the user's search path."""
    return {name: server for name, server in _folders_here().items() if not server.is_service}


def services() -> Mapping[str, Server]:
    """Return every service, by name, from the same places as servers."""
    return {name: server for name, server in _folders_here().items() if server.is_service}


def service(name: str) -> Installed:
    """Return the service of this name. Raises NotStarted if it is not available here."""
    return here(services()[name])


def here(server: Server) -> Installed:
    """Return the installed server. Raises NotStarted if it is not available here."""
    found = find(server)
    if isinstance(found, Unavailable):
        raise NotStarted(Outcome.UNSUPPORTED, f"not available here: {found.reason}")
    return found


def _folders_here() -> Mapping[str, Server]:
    return {name: _read(folder) for name, folder in folders_with("server.toml", FOLDER).items()}


_read = cache(read)


@cache
def find(server: Server) -> Installed | Unavailable:
    """Return the server's programs and each component's version, cached, or the reason of their absence."""
    programs: dict[str, Path] = {}
    tools: dict[str, dict[str, str]] = {}
    versions: dict[str, str] = {}
    for component in server.components:
        program = _first_program(component.programs, component) if component.programs else engine()
        found = {tool: _first_program(names, component) for tool, names in component.tools.items()}
        missing = [server.title] if program is None else [tool for tool, path in found.items() if path is None]
        if program is None or missing:
            return Unavailable(server.name, f"{missing[0]} is not installed; to install it: {server.install}")
        asked = found[component.version.tool] if component.version.tool else program
        version = _version(asked, component.version) if asked else None
        if version is None:
            reason = f"{asked} does not print its version; every result names it"
            return Unavailable(server.name, reason)
        programs[component.name], versions[component.name] = program, version
        tools[component.name] = {tool: str(path) for tool, path in found.items()}
    places: dict[str, str] = {}
    for place, folders in server.places.items():
        there = next((folder for folder in folders if os.path.isdir(folder)), None)
        if there is None:
            return Unavailable(
                server.name, f"{server.title} has no folder of {place} here; to install it: {server.install}"
            )
        places[place] = there
    return Installed(server, versions, programs, tools, places)


def _first_program(names: Sequence[str], component: Component) -> Path | None:
    candidates = (Path(folder) / name for name in names for folder in _folders(component))
    # `Path.is_file` raises for a folder that this user may not search.
    return next((path for path in candidates if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def _folders(component: Component) -> Iterator[str]:
    """Yield the folders of its programs: the user's own path first, then the newest of `/usr/lib/postgresql/*/bin`."""
    yield from filter(None, os.environ.get("PATH", "").split(os.pathsep))
    for pattern in component.folders:
        yield from sorted(glob.glob(pattern), key=lambda path: [*map(int, re.findall(r"\d+", path))], reverse=True)


def _version(program: Path, version: Version) -> str | None:
    try:
        said = subprocess.run(
            [program, *version.arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=VERSION_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = version.pattern.search(said.stdout.decode(errors="replace"))
    return match.group(1) if match else None
