"""What servers are told: a bed's templates, filled in for a cell."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tollbar.beds import Component, Installed, tls
from tollbar.beds.certificates import Certificates, UnmadeCertificates
from tollbar.beds.sandbox import PREFIX, Account, account, folder_for_all
from tollbar.files import write
from tollbar.libraries import Provider

if TYPE_CHECKING:
    import jinja2

ADDRESS = "127.0.0.1"
# What the guard raises the limit to as well.
OPEN_FILES = 65536


@dataclass(frozen=True, slots=True)
class Request:
    """What a cell asks of a bed, and what there is to do it with."""

    found: Installed
    provider: Provider
    settings: Mapping[str, str | int]
    asked: tls.Settings
    operations: Sequence[Mapping[str, Any]]
    certificates: Certificates
    documents: Path
    account: Account | None

    @property
    def without_keys(self) -> Request:
        """The same to be shown: it names what is secret, and holds none of it."""
        return replace(self, certificates=UnmadeCertificates(self.certificates.directory))


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


def rendered(
    found: Installed,
    provider: Provider,
    settings: Mapping[str, str | int],
    operations: Sequence[Mapping[str, Any]] = (),
) -> str:
    """What the servers of this bed would be told, for people; nothing is started or made.

    Raises tls.Impossible where no server could be told so.
    """
    directory = Path(folder_for_all(), f"{PREFIX}RUN")
    request = Request(
        found=found,
        provider=provider,
        settings=settings,
        asked=tls.Settings.read(settings),
        operations=operations,
        certificates=UnmadeCertificates(directory / "certificates"),
        documents=directory / "documents",
        account=account(),
    )
    return shown(request, {component.name: directory / component.name for component in found.bed.components}, {})


def shown(request: Request, work_dirs: Mapping[str, Path], ports: Mapping[str, int]) -> str:
    """What the components in these work_dirs are told, for people: without keys."""
    found, request = request.found, request.without_keys
    return "\n".join(
        render(request, component, work_dirs[component.name], ports).shown(found.programs[component.name])
        for component in found.bed.components
        if component.name in work_dirs
    )


def _context(request: Request, component: Component, work_dir: Path, ports: Mapping[str, int]) -> dict[str, Any]:
    on_libcrypto = request.provider.kind == "libcrypto"
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
        "operations": list(request.operations),
        "tls": tls.server_configuration(request.asked, request.certificates),
        # Not made unless a template asks: it holds keys.
        "server_spec": lambda: tls.server_spec(
            request.asked,
            request.certificates,
            library="libssl" if on_libcrypto else "rustls",
            libcrypto=request.provider.path if on_libcrypto else None,
        ),
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
