"""Configuration of servers: their templates, rendered for a cell."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tollbar.catalog.libraries import Provider
from tollbar.catalog.servers import FOLDER, Component, Installed, NotStarted, Preparation
from tollbar.catalog.servers.description import repeated
from tollbar.core.records import Outcome
from tollbar.lab.servers.sandbox import PREFIX, folder_for_all

if TYPE_CHECKING:
    import jinja2

ADDRESS = "127.0.0.1"
LOOPBACK = "127.0.0.0/8"
# The guard raises the limit of open files to this.
OPEN_FILES = 65536
# Suffix of templates.
TEMPLATE = ".jinja"
# Directory in configurations that are only displayed.
SHOWN = Path(folder_for_all(), f"{PREFIX}RUN")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address and ports of a component."""

    address: str
    port: int
    """Main port; 0 for a free one that is only known after the start."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """Further ports that its server names."""

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


class Location(NamedTuple):
    """Directories and endpoint of a component."""

    work_dir: Path
    endpoint: Endpoint
    given: Path
    """Folder of the files that it gives to others."""


@dataclass(frozen=True, slots=True)
class Request:
    """A workload's request for a server. The driver passes its content on without reading it."""

    found: Installed
    """Server of the cell."""
    provider: Provider
    settings: Mapping[str, str | int]
    """Settings of the cell, as plain words and numbers."""
    words: Mapping[str, Any] = field(default_factory=dict)
    """Additional variables of the templates."""
    shown_words: Mapping[str, Any] | None = None
    """Variables for display: they name secrets without containing them. None: `words` has no secrets."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment of programs other than the engine."""
    sizes: tuple[int, ...] = ()
    """Sizes in bytes of documents that will be requested as `/bytes/SIZE`."""
    check: Callable[[int], Mapping[str, str]] = lambda pid: {}
    """Callback with the root of the frontend's process tree once it is ready; returns entries of the receipt.

    Raises NotStarted if the server is not the requested one.
    """
    is_encrypted: bool = False
    """True if its provider encrypts the traffic between the frontend and its clients."""
    documents: Path = SHOWN / "documents"
    cores: tuple[int, ...] = ()
    """Cores to use at once if the cell sets a number of threads; else the server stays on its starting core."""
    peers: tuple[str, ...] = (LOOPBACK,)
    """Networks from which its components are accessed, each as in `192.0.2.7/32`."""
    services: tuple[Installed, ...] = ()
    """Services that the server needs, in the order of their start."""

    def __post_init__(self) -> None:
        if again := repeated(component for _, component in self.parts):
            names = " and ".join(found.server.name for found in (*self.services, self.found))
            reason = f"{names} cannot be used together: two of their components or ports have the name `{again}`"
            raise NotStarted(Outcome.FAILED, reason)

    @property
    def parts(self) -> Sequence[tuple[Request, Component]]:
        """Every component in the order of its start, with the request for its server or service.

        Components that live as long as the run come first, because their configuration cannot depend on a trial.
        """
        asked = [*(replace(self, found=service, services=()) for service in self.services), self]
        parts = [(request, component) for request in asked for component in request.found.server.components]
        return sorted(parts, key=lambda part: part[1].lifetime == "trial")

    def reaches(self, component: Component) -> tuple[str, ...]:
        """Return the files of the provider that the component loads, which may be in a user's folder."""
        return (self.provider.path,) if component.on_provider and self.provider.path else ()

    @property
    def without_keys(self) -> Request:
        """The request for display, without secrets."""
        return self if self.shown_words is None else replace(self, words=self.shown_words)


@dataclass(frozen=True, slots=True)
class Rendered:
    """Rendered configuration of one component."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, str]
    stdin: str | None
    ready: tuple[str, ...]
    """Command that tests readiness, if the component is tested that way."""
    account: str = ""
    """Component whose account it shares; empty: an account of its own."""

    def shown(self, program: Path) -> str:
        """Return the command and every file under its name, for people."""
        command = " ".join([str(program), *self.arguments])
        parts = {"command": command + "\n", **self.files, **({"standard input": self.stdin} if self.stdin else {})}
        return "\n".join(f"==> {name} <==\n{text}" for name, text in parts.items())


@dataclass(frozen=True, slots=True)
class RenderedPreparation:
    """Rendered configuration of a component's preparation."""

    commands: tuple[tuple[str, ...], ...]
    environment: Mapping[str, str]
    files: Mapping[str, str]


def render(request: Request, component: Component, locations: Mapping[str, Location]) -> Rendered:
    """Return the rendered configuration of a component; `locations` has it and all components started before it."""
    reads = "" if component.lifetime == "trial" else "; one of the run reads only what its `shared-by` names"
    fill = _Filling(request, component, _context(request, component, locations), reads)
    return Rendered(
        arguments=fill.words(component.start),
        environment=fill.environment(component.environment),
        files=fill.files(component.render),
        stdin=fill.file(component.stdin) if component.stdin else None,
        ready=fill.words(component.ready.command),
        account=fill.words((component.account,))[0],
    )


def render_preparation(
    request: Request, component: Component, preparation: Preparation, directory: Path
) -> RenderedPreparation:
    """Return the rendered preparation of a component, which runs in `directory`.

    Its templates cannot read the endpoint, or settings that the preparation does not name, because other starts use its
    result as well.
    """
    context = {
        "directory": str(directory),
        "program": str(request.found.programs[component.name]),
        "tools": request.found.tools[component.name],
        "places": request.found.places,
        "settings": {name: request.settings.get(name) for name in preparation.settings},
    }
    fill = _Filling(request, component, context, "; a preparation reads only what its `settings` name")
    return RenderedPreparation(
        commands=tuple(fill.words(command) for command in preparation.commands),
        environment=fill.environment(preparation.environment),
        files=fill.files(preparation.render),
    )


class _Filling:
    """Templates of a component, their variables, and the hint for an undefined one."""

    def __init__(self, request: Request, component: Component, context: Mapping[str, Any], reads: str) -> None:
        self._folder = request.found.server.folder
        self._component = component.name
        self._templates = _templates(self._folder)
        self._context = context
        self._reads = reads

    def words(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(self._filled(_short(self._templates, text), "server.toml") for text in texts)

    def environment(self, texts: Mapping[str, str]) -> dict[str, str]:
        return dict(zip(texts, self.words(texts.values()), strict=True))

    def file(self, name: str) -> str:
        source = source_of(self._folder, name)
        if source.suffix != TEMPLATE:
            return source.read_text("utf-8")
        return self._filled(self._templates.get_template(source.name), source.name)

    def files(self, names: Iterable[str]) -> dict[str, str]:
        """Return the text of each file, without empty files."""
        return {name: text for name in names if (text := self.file(name)).strip()}

    def _filled(self, template: jinja2.Template, file: str) -> str:
        import jinja2

        try:
            return template.render(self._context)
        except jinja2.UndefinedError as error:
            where = f"the server {self._folder.name}: {file}: the component {self._component}"
            raise NotStarted(Outcome.FAILED, f"{where}: {error}{self._reads}") from error


def source_of(folder: Path, name: str) -> Path:
    """Return the source of a file: its template, or the file itself if it has none."""
    template = folder / f"{name}{TEMPLATE}"
    return template if template.exists() else folder / name


def text_of(folder: Path, name: str) -> str:
    """Return the source of a file, with all templates that it includes."""
    import jinja2.meta

    templates, found, wanted = _templates(folder), "", [source_of(folder, name)]
    for source in wanted:
        text = source.read_text("utf-8")
        found += text
        if source.suffix == TEMPLATE:
            names = jinja2.meta.find_referenced_templates(templates.parse(text))
            assert templates.loader is not None
            wanted += [Path(str(templates.get_template(name).filename)) for name in names if name is not None]
    return found


def rendered(request: Request) -> str:
    """Return the configuration of a server's components, for people, without starting anything."""
    locations = {
        # A component that is not started has no ports yet.
        component.name: Location(
            SHOWN / component.name,
            Endpoint(ADDRESS, component.port or 0, dict.fromkeys(component.ports, 0)),
            SHOWN / f"{component.name}-given",
        )
        for _, component in request.parts
    }
    return shown(request, locations)


def shown(request: Request, locations: Mapping[str, Location]) -> str:
    """Return the configuration of the components at these locations, for people, without keys."""
    return "\n".join(
        render(part, component, locations).shown(part.found.programs[component.name])
        for part, component in request.without_keys.parts
        if component.name in locations
    )


def _context(request: Request, component: Component, locations: Mapping[str, Location]) -> dict[str, Any]:
    work_dir, endpoint, _ = locations[component.name]
    ports = {
        name: port
        for component_name, location in locations.items()
        for name, port in {component_name: location.endpoint.port, **location.endpoint.ports}.items()
    }
    return {
        "directory": str(work_dir),
        "documents": str(request.documents),
        "program": str(request.found.programs[component.name]),
        "tools": request.found.tools[component.name],
        "address": endpoint.address,
        "port": endpoint.port or "PORT",
        "addresses": {name: location.endpoint.address for name, location in locations.items()},
        "ports": {name: port or "PORT" for name, port in ports.items()},
        "directories": {name: str(location.work_dir) for name, location in locations.items()},
        # Other components read its files there, and find its sockets in its directory.
        "given": {name: str(location.given) for name, location in locations.items()},
        "peers": request.peers,
        "files_limit": files_limit(),
        "cores": request.cores,
        "places": request.found.places,
        **readable(request, component),
    }


def readable(request: Request, component: Component) -> dict[str, Any]:
    """Return the part of a cell that templates can read: its settings and its family's words.

    A component that lives as long as the run can only read those by which it is shared.
    """
    if component.lifetime == "trial":
        return {"settings": request.settings, **request.words}
    words = {name: value for name, value in request.words.items() if name in component.shared_by}
    return {"settings": {name: request.settings.get(name) for name in component.shared_by}, **words}


def files_limit() -> int:
    """Return the number of files that a server may have open."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)


@cache
def _templates(folder: Path) -> jinja2.Environment:
    # The import is slow, and most runs start no server.
    import jinja2

    return jinja2.Environment(
        # A server's own templates come first; those of a neighbouring or shipped server are `SERVER/NAME`.
        loader=jinja2.FileSystemLoader([folder, folder.parent, FOLDER]),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )


@cache
def _short(templates: jinja2.Environment, text: str) -> jinja2.Template:
    return templates.from_string(text)
