"""Shared fixtures: studies around the fake runner, servers, browsers, and the command as a user types it."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import hypothesis
import pytest
from selenium import webdriver

import forked
import report_lab
from component_lab import FakeServer
from gather_lab import made_in
from patience import PATIENCE_S
from report_lab import Pages
from selection import pytest_collection_modifyitems as pytest_collection_modifyitems
from selection import pytest_terminal_summary as pytest_terminal_summary
from served_lab import ANSWERED_S, Lab
from tollbar.catalog import libraries, servers
from tollbar.catalog.libraries import Provider
from tollbar.cluster import driving, namespaces
from tollbar.core import proc
from tollbar.core.errors import TollbarError
from tollbar.core.records import Observed
from tollbar.lab.measure.schedule import Pace
from tollbar.lab.servers import loading
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import request

# A shell that starts the tests in the background has them ignore Ctrl-C, and their child processes would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Directories, databases and runners are made once for all tests and all processes, and kept as a user's are, under keys
# of all that they depend on. Tests of the making itself use another cache.
KEPT = Path(__file__).parents[1] / ".pytest_cache"
os.environ["XDG_CACHE_HOME"] = str(KEPT / "cache")
# Compiled like an installed package: compiling takes each started command longer than most of them run.
os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(KEPT / "compiled")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# A version manager's `python3` is a script that looks for the interpreter and takes ten times as long to start, and a
# run with runners in Python starts dozens.
OWN = KEPT / "bin"
OWN.mkdir(parents=True, exist_ok=True)
with tempfile.NamedTemporaryFile("w", dir=OWN, delete=False) as script:
    script.write(f'#!/bin/sh\nexec {sys.base_prefix}/bin/python3 "$@"\n')
os.chmod(script.name, 0o755)
os.replace(script.name, OWN / "python3")
os.environ["PATH"] = os.pathsep.join([str(OWN), os.environ["PATH"]])

# The same examples each time, so that a test fails because of a change and never by chance; larger profiles try others.
# The time of an example depends on how busy the machine is, so there is no deadline.
hypothesis.settings.register_profile(
    "tollbar",
    deadline=None,
    derandomize="TOLLBAR_EXAMPLES" not in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("tollbar")

REAL = servers.all_servers()

FAKE_RUNNER = Path(__file__).with_name("fake_runner.py")

# Enough blocks for an interval, enough chunks for an account.
BLOCKS, ROUNDS = 5, 4
SHORT_BLOCKS = 6

FAKE_STUDY = f"""
question  = "Does the lab itself work?"
family    = "spin"
choices   = ["spin-1", "spin-1-again", "spin-2"]
providers = ["runner:{FAKE_RUNNER}"]
baseline  = "spin-1"

[measure]
chunk  = "1.5 ms"
rounds = {ROUNDS}
blocks = {BLOCKS}

[[claim]]
says   = "Twice the work costs twice as much"
of     = {{ choice = "spin-2" }}
over   = {{ choice = "spin-1" }}
metric = "cost"
ratio  = 2.0
"""

SHORT_STUDY = f"""
question  = "Does the engine spin?"
family    = "spin"
choices   = ["spin-1", "spin-2"]
providers = ["spin"]
baseline  = "spin-1"

[measure]
chunk  = "2 ms"
rounds = 5
blocks = {SHORT_BLOCKS}
"""

Tollbar = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def fake_study(tmp_path: Path) -> Path:
    """Return a study of three cells that the fake runner answers."""
    path = tmp_path / "fake.toml"
    path.write_text(FAKE_STUDY)
    return path


@pytest.fixture(scope="session")
def runs_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two runs of the fake runner's study, `one` and `other`, each with its output; not to be altered.

    Made once for all processes that share the tests, each of which has a folder next to the others'.
    """
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "made"
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            made = tmp_path_factory.mktemp("made")
            make_runs(made)
            made.rename(folder)
    return folder


def make_runs(folder: Path) -> None:
    """Make two runs of the fake runner's study in a folder, under their names."""
    (folder / "fake.toml").write_text(FAKE_STUDY)
    for seed, name in enumerate(("one", "other")):
        words = [command(), "run", "fake.toml", "--json", "--no-report", "--seed", str(seed), "--blocks", str(BLOCKS)]
        done = forked.run(words, folder)
        assert 0 == done.returncode, done.stderr
        (made,) = (folder / "runs").iterdir()
        made.rename(folder / name)
        (folder / name / "said.json").write_text(done.stdout)


@pytest.fixture
def fake_runs(runs_made: Path, tmp_path: Path) -> Path:
    """Return a folder with copies of those runs, for one test alone."""
    return Path(shutil.copytree(runs_made, tmp_path / "made"))


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a made-up run of one machine, for gathering, that no test changes."""
    return made_in(tmp_path_factory.mktemp("one"))


@pytest.fixture
def own_run(one_run: Path, tmp_path: Path) -> Path:
    """Return a copy of the made-up run for one test alone."""
    return Path(shutil.copytree(one_run, tmp_path / "runs" / "one"))


@pytest.fixture
def short_study(tmp_path: Path) -> Path:
    """Return a study of two cells that the engine measures in about a second."""
    path = tmp_path / "short.toml"
    path.write_text(SHORT_STUDY)
    return path


def command() -> str:
    """Return the path of the installed `tollbar`."""
    return str(Path(sysconfig.get_path("scripts")) / "tollbar")


def here(name: str) -> servers.Installed:
    """Return the server, or skip visibly; fail if servers are required."""
    found = servers.find({**servers.all_servers(), **servers.services()}[name])
    missing = None if isinstance(found, servers.Installed) else found.reason
    for component in found.server.components if isinstance(found, servers.Installed) else ():
        if component.port and not may_listen(component.port):
            missing = f"{found.server.title} has port {component.port}, on which this user may not listen"
    if missing is not None or not isinstance(found, servers.Installed):
        lacking(missing or "")
    return found


def lacking(what: str) -> NoReturn:
    """Skip visibly; fail if everything is required."""
    if os.environ.get("CI") or os.environ.get("TOLLBAR_REQUIRE_SERVERS") == "1":
        pytest.fail(what)
    pytest.skip(what)


def in_own_mounts() -> tuple[str, ...]:
    """Return words before a command that let it mount file systems, for an ordinary user too, and leave no mounts."""
    words = ("unshare", "--map-root-user", "--mount")
    if subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode != 0:
        lacking("this kernel lets nothing be mounted in a name space of its own")
    return words


def machines_are_made() -> None:
    """Skip visibly if machines cannot be simulated here."""
    try:
        with Sandbox() as sandbox:
            namespaces.network(sandbox, [])
    except TollbarError as error:
        lacking(str(error))


@pytest.fixture(autouse=True)
def cores_are_given_back() -> Iterator[None]:
    """Restore the process's cores, because a test that leaves it on one core would restrict the tests after it."""
    before = os.sched_getaffinity(0)
    yield
    if os.sched_getaffinity(0) != before:
        os.sched_setaffinity(0, before)


def ray_is_there() -> None:
    """Require Ray, an optional dependency, or skip visibly."""
    if find_spec("ray") is None:
        lacking("Ray is not installed: pip install 'tollbar[ray]'")


def may_listen(port: int) -> bool:
    """Return whether this user may bind this port, used or unused."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return error.errno != errno.EACCES
    return True


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Sandbox]:
    """Yield a sandbox for one test, with a place for logs."""
    with Sandbox(tmp_path / "servers") as at:
        yield at
    assert not at.directory.exists()


@pytest.fixture
def system() -> Provider:
    """Return the system's libcrypto."""
    (provider,) = libraries.resolve(["libcrypto"])
    return provider


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Yield a lab with one more server than Tollbar has, and check that nothing is left after it."""
    monkeypatch.setattr(servers, "all_servers", lambda: {**REAL, "fake": servers.read(tmp_path / "fake")})
    # Python's own OpenSSL does not matter to any server.
    monkeypatch.setattr(loading, "prove", lambda *arguments, **more: {})
    monkeypatch.setattr(request, "REQUEST_LIMIT_S", ANSWERED_S)
    # Cells have a chunk in each round, however slowly a busy machine warms them up and lets them come to rest.
    monkeypatch.setattr(Pace, "turns", lambda pace, how: range(how.rounds))
    monkeypatch.setattr(Observed, "is_exact", True)
    cores = os.sched_getaffinity(0)
    before = set(proc._children(os.getpid()))
    with Sandbox(tmp_path / "logs") as sandbox:
        yield Lab(tmp_path, sandbox)
        assert [] == sandbox.running
        # The keeper of the sandbox is the only child.
        assert 1 == len(set(proc._children(os.getpid())) - before)
    os.sched_setaffinity(0, cores)
    servers.find.cache_clear()


@pytest.fixture
def tollbar(tmp_path: Path) -> Tollbar:
    """Run `tollbar` as a user would, in a directory of its own, and return its output and status."""

    def run(
        *arguments: object, env: Mapping[str, str] | None = None, **options: object
    ) -> subprocess.CompletedProcess[str]:
        words = [command(), *map(str, arguments)]
        environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1", **(env or {})}
        if not options:
            return forked.run(words, tmp_path, environment)
        return subprocess.run(
            words,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            **options,  # type: ignore[call-overload]
        )

    assert Path(command()).exists(), f"not installed for {sys.executable}: run `make setup`"
    return run


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    """Yield a folder for a server of fake components, with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield FakeServer(tmp_path)
    servers.find.cache_clear()


@pytest.fixture
def service(fake: FakeServer, tmp_path: Path) -> FakeServer:
    """Return a folder for a service of fake components."""
    return FakeServer(tmp_path, name="fake-service", is_service=True)


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Return reports of fabricated runs, written once for all tests."""
    return report_lab.written(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """Yield Chromium without a network."""
    yield from report_lab.started(tmp_path_factory.mktemp("profile"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a place for fleets, whose nodes have a cache of their own and are polled at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(driving, "POLL_S", 0.05)
    monkeypatch.setattr(driving, "BROUGHT_S", 0.2)
    cores = {int(thread): os.sched_getaffinity(int(thread)) for thread in os.listdir("/proc/self/task")}
    yield tmp_path
    for thread, before in cores.items():
        # Some processes end meanwhile.
        with suppress(ProcessLookupError):
            os.sched_setaffinity(thread, before)
