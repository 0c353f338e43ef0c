"""What several tests need: a study around the fake runner, and the command as a user types it."""

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import hypothesis
import pytest
from selenium import webdriver

import forked
import report_lab
import share
from component_lab import FakeServer
from gather_lab import made_in
from patience import PATIENCE_S
from report_lab import Pages
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

# A shell that starts the tests in the background has them ignore Ctrl-C, and what they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Directories, databases and runners are made once, for all tests and all processes that share them, and kept for the
# next time as a user's are, under keys of all that they depend on; a test of the making itself has a cache of its own.
KEPT = Path(__file__).parents[1] / ".pytest_cache"
os.environ["XDG_CACHE_HOME"] = str(KEPT / "cache")
# As what pip installs is: compiling takes each command that is started longer than most of them take to answer.
os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(KEPT / "compiled")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# A version manager's `python3` is a script that looks for the interpreter, and takes ten times as long to start; a run
# with runners in Python starts dozens. This one takes a moment.
OWN = KEPT / "bin"
OWN.mkdir(parents=True, exist_ok=True)
with tempfile.NamedTemporaryFile("w", dir=OWN, delete=False) as script:
    script.write(f'#!/bin/sh\nexec {sys.base_prefix}/bin/python3 "$@"\n')
os.chmod(script.name, 0o755)
os.replace(script.name, OWN / "python3")
os.environ["PATH"] = os.pathsep.join([str(OWN), os.environ["PATH"]])

# The same examples each time, so that a test fails because of a change and never by chance; other ones where more are
# asked for. How long one takes says how busy the machine is.
hypothesis.settings.register_profile(
    "tollbar",
    deadline=None,
    derandomize="TOLLBAR_EXAMPLES" not in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("tollbar")

REAL = servers.all_servers()

FAKE_RUNNER = Path(__file__).with_name("fake_runner.py")

# Enough for an interval, of chunks enough for an account.
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

# Modules whose laboratories of servers are made once for all of their tests: by one worker, so that it is once.
ONE_LABORATORY = ("gssapi", "labs", "negotiate", "samba", "services", "sign_in", "sign_in_faults", "storage_elsewhere")
# Modules that plan every study that ships, which takes longer than their tests: by one worker for the same reason.
OF_ALL_STUDIES = ("document", "headlines", "batches", "published", "sets", "terminal_width")
# Begun last, what takes longest would keep one worker busy after the others are done: by the longest test of each. Of
# the laboratories those with most tests are begun first, by pytest-xdist itself.
LONGEST = (
    *(
        "kills",
        "fleet_on_ray",
        "survivors",
        "roles",
        "run",
        "source_pages",
        "providers",
        "runners",
        "coverage",
        "precision",
    ),
    *("client_core", "conformance", "check", "compare", "engine_replaced", "report_browser", "gather_sent", "secrets"),
    *("database_faults", "document", "published", "sets", "url_served", "served", "databases", "batches", "run_read"),
)
# What starts nothing, and is still no test to wait for while one writes, by its module or its own name: hundreds of
# runs on machines that are made up, and whatever is asked of each study, policy and choice that ships.
LONG = {
    *("coverage", "batches", "published", "sets", "source_pages", "the_documents_are_what_the_schema_says"),
    *("every_shipped_study_has_a_line", "whatever_components_hold_each_is_an_asset_or_none"),
    *("many_choices_are_told_by_the_least_and_the_greatest", "a_thousand_cells", "toll_scales_with_its_cell"),
    *("shipped_policies_say_of_every_choice_what_was_reviewed", "estimate_of_more_blocks_is_about_right"),
    *("intervals_cover_what_was_made", "a_value_does_more_than_its_choice_only_where_the_family_says_so"),
    *("what_means_nothing_to_a_cell_is_not_combined", "every_shipped_study_can_be_planned"),
    *("no_ratio_or_verdict_of_a_shipped_study_is_cut", "of_many_rows_that_cost_the_same_none_is_told"),
    *(
        "a_limit_that_was_accepted_holds_when_nothing_changed_and_is_broken_by_five_per_cent",
        "a_sum_of_means_is_linear",
    ),
    *("no_advice_leads_to_what_cannot_be_had_or_stands_no_better", "what_a_family_has_not_keeps_a_verdict_open"),
    *("a_group_is_that_of_its_document", "nothing_that_is_refused_or_disallowed_is_proposed"),
    # Plans of studies that ask each platform's runner what it has.
    *("a_choice_that_all_rows_have_is_said_once", "question_family_and_choices_are_enough"),
    *("a_study_to_begin_with_runs_as_it_is", "all_that_the_judge_gives_is_shown"),
}
# What a test takes, or its module names, that starts the command, a server, a runner or a browser.
STARTING = {
    *("at", "browser", "fake_runs", "fake_study", "lab", "pages", "runs_made", "service", "short_study", "tollbar"),
    *("Sandbox", "Session", "ask", "engine", "start", "started", "session", "subprocess", "tune", "command"),
    *("a_ground", "ground", "survivors", "counting"),
}
# Modules whose tests name none of these, and have Tollbar start one process after the other.
STARTING_WITHIN = ("bench_fuzz", "bench_supply", "conformance", "gather_sent")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Says which tests start servers or other processes, which share a laboratory, and puts the longest first.

    Of what `-k` and `-m` leave, a share is taken; of what is named case by case all are meant.
    """
    for item in items:
        module = getattr(item, "module", None)
        name = item.path.stem.removeprefix("test_")
        named = {*getattr(item, "fixturenames", ())} | {*vars(module or item)}
        if STARTING & named or name in STARTING_WITHIN:
            item.add_marker(pytest.mark.servers)
        if {name, getattr(item, "originalname", "").removeprefix("test_")} & LONG:
            item.add_marker(pytest.mark.long)
        if name in ONE_LABORATORY:
            item.add_marker(pytest.mark.xdist_group(name))
        if name in OF_ALL_STUDIES:
            item.add_marker(pytest.mark.xdist_group("studies"))
        # A browser takes seconds to start, and pages of a thousand rows as long to write.
        if {"browser", "pages"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.xdist_group("pages"))
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem.removeprefix("test_"), len(order)))
    yield
    left = set() if share.IS_WHOLE or any("::" in argument for argument in config.args) else left_out(items)
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]


def left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The cases of tests that are marked by `share` which are not among their share."""
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("share"):
            found.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left: set[pytest.Item] = set()
    for cases in found.values():
        mark = cases[0].get_closest_marker("share")
        # A test without cases has no such values.
        rows = [tuple(map(repr, case.callspec.params.values())) if hasattr(case, "callspec") else () for case in cases]
        numbers = mark.args if mark else ()
        # Of a test that a share leaves out, each value.
        chosen = share.diverse(rows, *(() if share.HAS_EVERY_TEST and numbers == (0,) else numbers))
        left |= {case for number, case in enumerate(cases) if number not in chosen}
    return left


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was left out is no secret."""
    if not share.IS_WHOLE:
        terminalreporter.write_line("of combinations and moments at most a share: TOLLBAR_WHOLE=1 has them all")


@pytest.fixture
def fake_study(tmp_path: Path) -> Path:
    """A study of three cells that the fake runner answers."""
    path = tmp_path / "fake.toml"
    path.write_text(FAKE_STUDY)
    return path


@pytest.fixture(scope="session")
def runs_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the study of the fake runner, `one` and `other`, each with what it said; not to be altered.

    Made once for all processes that share the tests, each of which has a folder beside the others'.
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
    """Runs of this study in a folder, under their names."""
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
    """A folder with copies of those runs, for one test alone."""
    return Path(shutil.copytree(runs_made, tmp_path / "made"))


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up run of one machine, for gathering, that no test changes."""
    return made_in(tmp_path_factory.mktemp("one"))


@pytest.fixture
def own_run(one_run: Path, tmp_path: Path) -> Path:
    """The same for one test alone."""
    return Path(shutil.copytree(one_run, tmp_path / "runs" / "one"))


@pytest.fixture
def short_study(tmp_path: Path) -> Path:
    """A study of two cells that the engine measures in about a second."""
    path = tmp_path / "short.toml"
    path.write_text(SHORT_STUDY)
    return path


def command() -> str:
    """The installed `tollbar`."""
    return str(Path(sysconfig.get_path("scripts")) / "tollbar")


def here(name: str) -> servers.Installed:
    """The server, or a skip that can be seen; where servers must be there, a failure."""
    found = servers.find({**servers.all_servers(), **servers.services()}[name])
    missing = None if isinstance(found, servers.Installed) else found.reason
    for component in found.server.components if isinstance(found, servers.Installed) else ():
        if component.port and not may_listen(component.port):
            missing = f"{found.server.title} has port {component.port}, on which this user may not listen"
    if missing is not None or not isinstance(found, servers.Installed):
        lacking(missing or "")
    return found


def lacking(what: str) -> NoReturn:
    """A skip that can be seen; where everything must be there, a failure."""
    if os.environ.get("CI") or os.environ.get("TOLLBAR_REQUIRE_SERVERS") == "1":
        pytest.fail(what)
    pytest.skip(what)


def in_own_mounts() -> tuple[str, ...]:
    """Words before a command that may then mount file systems, for an ordinary user too, and leaves none of them."""
    words = ("unshare", "--map-root-user", "--mount")
    if subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode != 0:
        lacking("this kernel lets nothing be mounted in a name space of its own")
    return words


def machines_are_made() -> None:
    """Machines can be made up here, or a skip that can be seen."""
    try:
        with Sandbox() as sandbox:
            namespaces.network(sandbox, [])
    except TollbarError as error:
        lacking(str(error))


@pytest.fixture(autouse=True)
def cores_are_given_back() -> Iterator[None]:
    """What a test leaves on one core would take the other from the tests after it in this process."""
    before = os.sched_getaffinity(0)
    yield
    if os.sched_getaffinity(0) != before:
        os.sched_setaffinity(0, before)


def ray_is_there() -> None:
    """Ray, which is an extra, or a skip that can be seen."""
    if find_spec("ray") is None:
        lacking("Ray is not installed: pip install 'tollbar[ray]'")


def may_listen(port: int) -> bool:
    """Whether this user may have this port, taken or not."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return error.errno != errno.EACCES
    return True


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Sandbox]:
    """Sandbox for one test, with a place for logs."""
    with Sandbox(tmp_path / "servers") as at:
        yield at
    assert not at.directory.exists()


@pytest.fixture
def system() -> Provider:
    """The system's libcrypto."""
    (provider,) = libraries.resolve(["libcrypto"])
    return provider


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """A lab with one more server than Tollbar has, after which nothing is left."""
    monkeypatch.setattr(servers, "all_servers", lambda: {**REAL, "fake": servers.read(tmp_path / "fake")})
    # Which OpenSSL Python runs on is no property of any server.
    monkeypatch.setattr(loading, "prove", lambda *arguments, **more: {})
    monkeypatch.setattr(request, "REQUEST_LIMIT_S", ANSWERED_S)
    # However slowly a busy machine warms them up, and lets them come to rest, cells have a chunk of each round.
    monkeypatch.setattr(Pace, "turns", lambda pace, how: range(how.rounds))
    monkeypatch.setattr(Observed, "is_exact", True)
    cores = os.sched_getaffinity(0)
    before = set(proc._children(os.getpid()))
    with Sandbox(tmp_path / "logs") as sandbox:
        yield Lab(tmp_path, sandbox)
        assert [] == sandbox.running
        # Only the keeper of the sandbox.
        assert 1 == len(set(proc._children(os.getpid())) - before)
    os.sched_setaffinity(0, cores)
    servers.find.cache_clear()


@pytest.fixture
def tollbar(tmp_path: Path) -> Tollbar:
    """Runs `tollbar` in a directory of its own, as a user would: a process, its output, its status."""

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
    """A folder for a server of fake components, with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield FakeServer(tmp_path)
    servers.find.cache_clear()


@pytest.fixture
def service(fake: FakeServer, tmp_path: Path) -> FakeServer:
    """The same for a service of fake components."""
    return FakeServer(tmp_path, name="fake-service", is_service=True)


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Reports of fabricated runs, written once for all tests."""
    return report_lab.written(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """Chromium, without a network."""
    yield from report_lab.started(tmp_path_factory.mktemp("profile"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for fleets, whose nodes keep theirs in a cache of its own and are asked at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(driving, "POLL_S", 0.05)
    monkeypatch.setattr(driving, "BROUGHT_S", 0.2)
    cores = {int(thread): os.sched_getaffinity(int(thread)) for thread in os.listdir("/proc/self/task")}
    yield tmp_path
    for thread, before in cores.items():
        # Some end meanwhile.
        with suppress(ProcessLookupError):
            os.sched_setaffinity(thread, before)
