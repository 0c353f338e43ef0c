"""What servers are told: a bed's templates, filled in for a cell."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tollbar.beds import Component, Installed
from tollbar.beds.sandbox import PREFIX, Account, account, folder_for_all
from tollbar.files import write
from tollbar.libraries import Provider

if TYPE_CHECKING:
    import jinja2

ADDRESS = "127.0.0.1"
# What the guard raises the limit to as well.
OPEN_FILES = 65536
# Where a bed that is only shown would be.
SHOWN = Path(folder_for_all(), f"{PREFIX}RUN")


@dataclass(frozen=True, slots=True)
class Request:
    """What a workload asks of a bed. The driver reads none of it but hands it on to where it is for."""

    found: Installed
    provider: Provider
    settings: Mapping[str, str | int]
    """The cell's, as plain words and numbers."""
    words: Mapping[str, Any] = field(default_factory=dict)
    """What templates are filled in with, beside what every bed's are."""
    shown_words: Mapping[str, Any] | None = None
    """The same to be shown: they name what is secret, and hold none of it. None: nothing in `words` is secret."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """For programs other than the engine."""
    sizes: tuple[int, ...] = ()
    """In bytes, of documents that will be requested as `/bytes/SIZE`."""
    check: Callable[[int], Mapping[str, str]] = lambda pid: {}
    """Called with the root of the frontend's process tree once that is ready: what belongs in the receipt beside its
    version. Raises NotStarted if the server is not what was asked for."""
    documents: Path = SHOWN / "documents"
    account: Account | None = field(default_factory=account)

    @property
    def without_keys(self) -> Request:
        """The same to be shown."""
        return self if self.shown_words is None else replace(self, words=self.shown_words)


@dataclass(frozen=True, slots=True)
class Rendered:
    """All that one component is told."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, str]
    stdin: str | None

    def write(self, work_dir: Path) -> None:
        """Writes the files, each for its owner alone, and none that would be empty."""
        for name, text in self.files.items():
            write(work_dir / name, text.encode(), 0o600)

    def shown(self, program: Path) -> str:
        """For people: the command, and every file under its name."""
        command = " ".join([str(program), *self.arguments])
        parts = {"command": command + "\n", **self.files, **({"standard input": self.stdin} if self.stdin else {})}
        return "\n".join(f"==> {name} <==\n{text}" for name, text in parts.items())


def render(request: Request, component: Component, work_dir: Path, ports: Mapping[str, int]) -> Rendered:
    """Fills in everything of this component, which is to live in `work_dir`; every component listens on its port."""
    context = _context(request, component, work_dir, ports)
    templates = _templates(request.found.bed.folder)

    def file(name: str) -> str:
        return templates.get_template(f"{name}.jinja").render(context)

    return Rendered(
        arguments=tuple(_short(templates, text).render(context) for text in component.start),
        environment={name: _short(templates, text).render(context) for name, text in component.environment.items()},
        files={name: text for name in component.render if (text := file(name)).strip()},
        stdin=file(component.stdin) if component.stdin else None,
    )


def rendered(request: Request) -> str:
    """What the servers of this bed would be told, for people; nothing is started or made."""
    return shown(request, {component.name: SHOWN / component.name for component in request.found.bed.components}, {})


def shown(request: Request, work_dirs: Mapping[str, Path], ports: Mapping[str, int]) -> str:
    """What the components in these work_dirs are told, for people: without keys."""
    found, request = request.found, request.without_keys
    return "\n".join(
        render(request, component, work_dirs[component.name], ports).shown(found.programs[component.name])
        for component in found.bed.components
        if component.name in work_dirs
    )


def _context(request: Request, component: Component, work_dir: Path, ports: Mapping[str, int]) -> dict[str, Any]:
    return {
        "directory": str(work_dir),
        "documents": str(request.documents),
        "address": ADDRESS,
        # Shown without being started, a server has no port yet.
        "port": ports.get(component.name, "PORT"),
        "ports": ports,
        "user": request.account.user if request.account else None,
        "group": request.account.group if request.account else None,
        "group_id": request.account.group_id if request.account else None,
        "files_limit": files_limit(),
        "places": request.found.places,
        "settings": request.settings,
        **request.words,
    }


def files_limit() -> int:
    """How many files a server may have open."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)


@cache
def _templates(folder: Path) -> jinja2.Environment:
    # Takes a while to import, and most runs start no server.
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
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
