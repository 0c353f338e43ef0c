"""Servers of fake components, and a lab that starts one to be ended while it does.

component_lab.py FOLDER     starts the server in this folder, says `ready`, and waits for the end of its standard input
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
"""Of readiness."""


PLAINTEXT: Mapping[str, str | int] = {"choice": "plaintext"}


class FakeServer:
    """A folder with a server, or a service, whose components are all the fake one."""

    def __init__(
        self, folder: Path, python: str = sys.executable, *, name: str = "fake", is_service: bool = False
    ) -> None:
        self.folder = folder / name
        self._runs_on = [] if is_service else ['runs-on = ["libcrypto"]']
        self.folder.mkdir()
        script = str(shutil.copy(FAKE_COMPONENT, self.folder))
        self.notes = Path(tempfile.mkdtemp(prefix="fake-", dir=folder_for_all()))
        """Where components of every account leave word for the test."""
        self.notes.chmod(0o777)
        weakref.finalize(self, shutil.rmtree, self.notes, ignore_errors=True)
        self.count = self.notes / "count"
        """A line for each time that a component was prepared."""
        self.count.touch()
        self.count.chmod(0o666)
        self.program = self.folder / "fake-component"
        self.program.write_text(f'#!/bin/sh\nexec {shlex.join([python, "-I", "-S", script])} "$@"\n')
        self.program.chmod(0o755)

    @property
    def times_prepared(self) -> int:
        """How often a preparation was begun."""
        return len(self.count.read_text().splitlines())

    def write(self, *components: Mapping[str, Any]) -> None:
        """Writes the server's file, of these components."""
        said = ['title = "Fake"', 'install = "wishing"', *self._runs_on]
        for component in components:
            said += ["[[component]]", *(f"{key} = {toml(value)}" for key, value in component.items())]
        (self.folder / "server.toml").write_text("\n".join(said))

    def of(self, *components: Mapping[str, Any]) -> servers.Installed:
        """The server of these components, found."""
        self.write(*components)
        found = servers.find(servers.read(self.folder))
        assert isinstance(found, servers.Installed), found
        return found

    def component(self, by: str = "tcp", fault: str = "none", **more: Any) -> dict[str, Any]:
        """A component that is ready in this way, or has this fault; `more` are keys of its own."""
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
        """A preparation that is counted, and has this fault half way."""
        return {"commands": [["{{ program }}", "prepare", str(self.count), fault]], **more}


def toml(value: Any) -> str:
    """A value as TOML writes it."""
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
    """The server, started for a trial in clear with these settings and words of its family, before it the services."""
    return driver.start(at, request(found, settings, provider, words, services), core)


def request(
    found: servers.Installed,
    settings: Mapping[str, str | int] | None = None,
    provider: str = "libcrypto",
    words: Mapping[str, Any] | None = None,
    services: Sequence[servers.Installed] = (),
) -> driver.Request:
    """What is asked of the server."""
    (resolved,) = libraries.resolve([provider])
    return driver.Request(
        found, resolved, {**PLAINTEXT, **(settings or {})}, words=words or {}, services=tuple(services)
    )


def kept(fake: FakeServer) -> list[str]:
    """What is in the user's cache."""
    return [path.suffix for path in (fake.folder.parent / "cache").rglob("*") if path.is_file()]


def commands_of(pids: Iterable[int]) -> list[str]:
    """The command of each of these processes that is still there: what serves one connection ends with it."""
    found = []
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            found.append(Path(f"/proc/{pid}/cmdline").read_text(errors="replace"))
    return found


def tree_of(server: StartedServer) -> set[int]:
    """Every process of a server."""
    return {pid for root in server.components.values() for pid in proc.tree(root)}


def work_dir_of(at: Sandbox, name: str) -> Path:
    """The one work directory of this component."""
    (found,) = at.directory.glob(f"fake-{name}-*")
    return found


def python_of_others() -> str:
    """A Python that an account without rights can run."""
    if os.geteuid() != 0:
        return sys.executable
    for python in (sys.executable, "/usr/bin/python3"):
        # Through a shell, for setpriv itself starts programs with root's rights to find them.
        run = ["sh", "-c", 'exec "$0" -I -c ""', python]
        probe = ["setpriv", f"--reuid={FIRST_ACCOUNT}", f"--regid={FIRST_ACCOUNT}", "--clear-groups", *run]
        if subprocess.run(probe, capture_output=True).returncode == 0:
            return python
    raise AssertionError("no Python here can be run by an unprivileged account: /usr/bin/python3 is needed")


def wait_until(there: Callable[[], bool]) -> None:
    """Waits for something that comes soon."""
    deadline = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def main(folder: Path) -> None:
    """Starts the server and says where, before and after."""
    found = servers.find(servers.read(folder))
    assert isinstance(found, servers.Installed), found
    with Sandbox() as sandbox:
        print(sandbox.directory, flush=True)
        with start(sandbox, found):
            print("ready", flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
