"""Servers of fake components, and a lab that starts one and is ended meanwhile.

component_lab.py FOLDER     starts the server in this folder, prints `ready`, and waits for the end of its input
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from patience import PATIENCE_S
from tollbar.catalog import libraries, servers
from tollbar.core import proc
from tollbar.core.runner.confined import FIRST_ACCOUNT
from tollbar.lab.servers import driver
from tollbar.lab.servers.driver import StartedServer
from tollbar.lab.servers.sandbox import Sandbox, folder_for_all

FAKE_COMPONENT = Path(__file__).with_name("fake_component.py")
KINDS = ["line", "http", "tcp", "command"]
"""Kinds of readiness."""


PLAINTEXT: Mapping[str, str | int] = {"choice": "plaintext"}


class FakeServer:
    """Folder with a server or a service whose components are all fake."""

    def __init__(
        self, folder: Path, python: str = sys.executable, *, name: str = "fake", is_service: bool = False
    ) -> None:
        self.folder = folder / name
        self._runs_on = [] if is_service else ['runs-on = ["libcrypto"]']
        self.folder.mkdir()
        script = str(shutil.copy(FAKE_COMPONENT, self.folder))
        self.notes = Path(tempfile.mkdtemp(prefix="fake-", dir=folder_for_all()))
        """Folder in which components of every account leave files for the test."""
        self.notes.chmod(0o777)
        weakref.finalize(self, shutil.rmtree, self.notes, ignore_errors=True)
        self.count = self.notes / "count"
        """File with a line for each preparation of a component."""
        self.count.touch()
        self.count.chmod(0o666)
        self.program = self.folder / "fake-component"
        self.program.write_text(f'#!/bin/sh\nexec {shlex.join([python, "-I", "-S", script])} "$@"\n')
        self.program.chmod(0o755)

    @property
    def times_prepared(self) -> int:
        """Return the number of preparations that were begun."""
        return len(self.count.read_text().splitlines())

    def write(self, *components: Mapping[str, Any]) -> None:
        """Write the server's file with these components."""
        said = ['title = "Fake"', 'install = "wishing"', *self._runs_on]
        for component in components:
            said += ["[[component]]", *(f"{key} = {toml(value)}" for key, value in component.items())]
        (self.folder / "server.toml").write_text("\n".join(said))

    def of(self, *components: Mapping[str, Any]) -> servers.Installed:
        """Return the server of these components, as found."""
        self.write(*components)
        found = servers.find(servers.read(self.folder))
        assert isinstance(found, servers.Installed), found
        return found

    def component(self, by: str = "tcp", fault: str = "none", **more: Any) -> dict[str, Any]:
        """Return a component that is ready in this way or has this fault; `more` are further keys."""
        ready: dict[str, Any] = {"by": by, "limit": "0.3 s" if fault == "never" else "20 s"}
        if by == "command":
            ready["command"] = ["test", "-e", "{{ directory }}/up"]
        given = {
            "name": "web",
            "lifetime": "trial",
            "program": [self.program.name],
            "folders": [str(self.folder)],
            "version": {"arguments": ["-v"], "pattern": "fake/(.*)"},
            "start": ["serve", by, fault, "{{ address }}", "{{ port }}"],
            "ready": ready,
        }
        return given | {name.replace("_", "-"): value for name, value in more.items()}

    def preparation(self, fault: str = "none", **more: Any) -> dict[str, Any]:
        """Return a preparation that is counted and has this fault half way."""
        return {"commands": [["{{ program }}", "prepare", str(self.count), fault]], **more}


def toml(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def start(
    at: Sandbox,
    found: servers.Installed,
    settings: Mapping[str, str | int] | None = None,
    provider: str = "libcrypto",
    core: int | None = None,
    words: Mapping[str, Any] | None = None,
    services: Sequence[servers.Installed] = (),
) -> StartedServer:
    """Start the server for a plaintext trial with these settings and words of its family, after its services."""
    return driver.start(at, request(found, settings, provider, words, services), core)


def request(
    found: servers.Installed,
    settings: Mapping[str, str | int] | None = None,
    provider: str = "libcrypto",
    words: Mapping[str, Any] | None = None,
    services: Sequence[servers.Installed] = (),
) -> driver.Request:
    """Return the request for the server."""
    (resolved,) = libraries.resolve([provider])
    return driver.Request(
        found, resolved, {**PLAINTEXT, **(settings or {})}, words=words or {}, services=tuple(services)
    )


def kept(fake: FakeServer) -> list[str]:
    """Return the suffixes of the files in the user's cache."""
    return [path.suffix for path in (fake.folder.parent / "cache").rglob("*") if path.is_file()]


def commands_of(pids: Iterable[int]) -> list[str]:
    """Return the command of each of these processes that still exists.

    A process that serves one connection ends with it.
    """
    found = []
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            found.append(Path(f"/proc/{pid}/cmdline").read_text(errors="replace"))
    return found


def tree_of(server: StartedServer) -> set[int]:
    """Return every process of a server."""
    return {pid for root in server.components.values() for pid in proc.tree(root)}


def work_dir_of(at: Sandbox, name: str) -> Path:
    """Return the one work directory of this component."""
    (found,) = at.directory.glob(f"fake-{name}-*")
    return found


def python_of_others() -> str:
    """Return a Python that an unprivileged account can run."""
    if os.geteuid() != 0:
        return sys.executable
    for python in (sys.executable, "/usr/bin/python3"):
        # The shell starts Python with the account's rights; setpriv itself would find it with root's.
        run = ["sh", "-c", 'exec "$0" -I -c ""', python]
        probe = ["setpriv", f"--reuid={FIRST_ACCOUNT}", f"--regid={FIRST_ACCOUNT}", "--clear-groups", *run]
        if subprocess.run(probe, capture_output=True).returncode == 0:
            return python
    raise AssertionError("no Python here can be run by an unprivileged account: /usr/bin/python3 is needed")


def wait_until(there: Callable[[], bool]) -> None:
    """Wait for an expected condition."""
    deadline = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def main(folder: Path) -> None:
    """Start the server, and print the place before and a line after."""
    found = servers.find(servers.read(folder))
    assert isinstance(found, servers.Installed), found
    with Sandbox() as sandbox:
        print(sandbox.directory, flush=True)
        with start(sandbox, found):
            print("ready", flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
