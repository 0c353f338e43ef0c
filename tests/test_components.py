"""Components: each way of being ready, prepared, shared and stopped, with every fault that it can have."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import component_lab
from component_lab import FakeBed, start
from survivors_ground import mentioning, program
from tollbar import beds
from tollbar.beds import configuration, prepared, proc
from tollbar.beds.driver import NotStarted, Server
from tollbar.beds.sandbox import Sandbox, account, folder_for_all
from tollbar.errors import TollbarError
from tollbar.runner import Outcome

KINDS = ["line", "http", "tcp", "command"]
PATIENCE_S = 10.0


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBed]:
    """A folder for a bed of fake components, with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield FakeBed(tmp_path)
    beds.find.cache_clear()


def kept(fake: FakeBed) -> list[str]:
    """What is in the user's cache."""
    return [path.suffix for path in (fake.folder.parent / "cache").rglob("*") if path.is_file()]


def tree_of(server: Server) -> set[int]:
    """Every process of a server."""
    return {pid for root in server.components.values() for pid in proc.tree(root)}


def work_dir_of(at: Sandbox, name: str) -> Path:
    """The one work directory of this component."""
    (found,) = at.directory.glob(f"fake-{name}-*")
    return found


@pytest.mark.parametrize("by", KINDS)
def test_a_component_is_ready_in_its_own_way(at: Sandbox, fake: FakeBed, by: str) -> None:
    """Each kind of readiness finds a server that is there, and nothing of it is left when it was stopped."""
    before = set(at.directory.iterdir())
    with start(at, fake.of(fake.component(by))) as server:
        pids = tree_of(server)
        assert server.fault() is None
        assert (work_dir_of(at, "web") / "up").exists()
    assert [] == [pid for pid in pids if proc.start_time(pid)]
    assert before == set(at.directory.iterdir())


@pytest.mark.parametrize("by", KINDS)
def test_a_component_that_is_never_ready_times_out(at: Sandbox, fake: FakeBed, by: str) -> None:
    """The wait has the limit that the bed says, and what was waited for is ended."""
    with pytest.raises(NotStarted, match=r"fake-component was not ready within 0\.3 s") as caught:
        start(at, fake.of(fake.component(by, "never")))
    assert Outcome.TIMED_OUT == caught.value.outcome
    assert [] == at.running
    assert set() == mentioning(str(at.directory / "fake"))


@pytest.mark.parametrize("by", KINDS)
def test_a_component_that_dies_before_it_is_ready_is_a_row(at: Sandbox, fake: FakeBed, by: str) -> None:
    """Its last words are the reason, whichever way it was waited for."""
    with pytest.raises(NotStarted) as caught:
        start(at, fake.of(fake.component(by, "dies")))
    assert (Outcome.FAILED, "fake-component ended with status 1: out of luck") == (
        caught.value.outcome,
        caught.value.reason,
    )
    assert [] == at.running


def test_a_command_is_run_until_it_succeeds(at: Sandbox, fake: FakeBed) -> None:
    """A server that is not ready yet is no failure: the command is run again."""
    ready = {"by": "command", "command": ["{{ program }}", "count", str(fake.count)]}
    with start(at, fake.of(fake.component("command", ready=ready))):
        assert 3 == len(fake.count.read_text().splitlines())


def test_a_command_that_never_succeeds_is_quoted(at: Sandbox, fake: FakeBed) -> None:
    """The reason of a time-out is what the command said last."""
    ready = {"by": "command", "command": ["sh", "-c", "echo no answer; exit 1"], "limit": "0.3 s"}
    with pytest.raises(NotStarted, match=r"not ready within 0\.3 s: no answer") as caught:
        start(at, fake.of(fake.component("command", ready=ready)))
    assert Outcome.TIMED_OUT == caught.value.outcome


@pytest.mark.parametrize("by", ["http", "tcp"])
def test_an_address_of_its_own_has_a_fixed_port(at: Sandbox, fake: FakeBed, by: str) -> None:
    """Two servers of one fixed port are up at once, each on a loopback address that is nobody else's."""
    found = fake.of(fake.component(by, address="own", port=24389))
    with start(at, found) as one, start(at, found) as other:
        addresses = [server.address.split(":") for server in (one, other)]
        assert ["24389", "24389"] == [port for _, port in addresses]
        assert 3 == len({"127.0.0.1", *(address for address, _ in addresses)})
        assert {"127"} == {address.split(".")[0] for address, _ in addresses}


def test_components_know_where_the_others_listen(at: Sandbox, fake: FakeBed) -> None:
    """A frontend is configured with the endpoints of what was started before it."""
    store = fake.component(name="store", address="own", port=24389)
    web = fake.component(environment={"STORE": "{{ addresses.store }}:{{ ports.store }}"})
    with start(at, fake.of(store, web)) as server:
        names = Path(f"/proc/{proc.tree(server.components['web'])[-1]}/environ").read_bytes().split(b"\0")
        (address,) = [name.removeprefix(b"STORE=").decode() for name in names if name.startswith(b"STORE=")]
        host, port = address.split(":")
        assert proc.listens(proc.tree(server.components["store"]), host, int(port))
        assert "fake-component 1.2" == server.receipt["component store"]


@pytest.mark.parametrize("signal_name", ["TERM", "INT", "QUIT"])
def test_a_component_is_stopped_by_its_own_signal(at: Sandbox, fake: FakeBed, signal_name: str) -> None:
    """Each server is asked to end in the way it knows."""
    ended_by = fake.folder / "ended-by"
    with start(at, fake.of(fake.component(stop=signal_name, environment={"ENDED_BY": str(ended_by)}))):
        assert not ended_by.exists()
    assert f"SIG{signal_name}" == ended_by.read_text()


def test_a_component_that_does_not_stop_is_killed(at: Sandbox, fake: FakeBed) -> None:
    """When its grace is over, with all that it started."""
    fake.program.write_text(
        "#!/bin/sh\n[ $1 = -v ] && echo fake/1.2 && exit\ntrap '' TERM\ntouch up\nwhile :; do sleep 1; done"
    )
    with start(at, fake.of(fake.component("command", grace="0.1 s"))) as server:
        pids = tree_of(server)
    assert [] == [pid for pid in pids if proc.start_time(pid)]


# Preparation.


def test_a_preparation_is_done_once_and_used_again(fake: FakeBed) -> None:
    """A second start, and a second run, find what the first has prepared, for their owner alone."""
    found = fake.of(fake.component(prepare=fake.preparation()))
    for _ in range(2):
        with Sandbox() as at:
            for _ in range(2):
                with start(at, found):
                    assert "whole" == (work_dir_of(at, "web") / "state").read_text()
    assert 1 == fake.times_prepared
    assert [".tar"] == kept(fake)
    (folder,) = (fake.folder.parent / "cache").rglob("prepared")
    assert [0o700, 0o600] == [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())]


def test_what_a_preparation_depends_on_makes_another_one(
    at: Sandbox, fake: FakeBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another value of a setting it names, another text or another version; and no other setting."""
    template = fake.folder / "accounts.jinja"
    template.write_text("{{ settings.users }} accounts")
    component = fake.component(prepare=fake.preparation(settings=["users"], render=["accounts"]))

    def text(**settings: str | int) -> str:
        # A process reads a bed once; these are the beds of four.
        beds.find.cache_clear()
        configuration._templates.cache_clear()
        with start(at, fake.of(component), settings):
            return (work_dir_of(at, "web") / "accounts").read_text()

    assert ("10 accounts", 1) == (text(users=10), fake.times_prepared)
    assert ("10 accounts", 1) == (text(users=10, groups=50), fake.times_prepared)
    assert ("20 accounts", 2) == (text(users=20), fake.times_prepared)
    template.write_text("{{ settings.users }} users")
    assert ("10 users", 3) == (text(users=10), fake.times_prepared)
    monkeypatch.setenv("FAKE_VERSION", "1.3")
    assert ("10 users", 4) == (text(users=10), fake.times_prepared)


@pytest.mark.parametrize(
    ("fault", "outcome", "words"),
    [
        ("fails", Outcome.FAILED, "preparing the component web: fake-component ended with status 1: no more than half"),
        ("hangs", Outcome.TIMED_OUT, "preparing the component web: fake-component took too long"),
    ],
)
def test_a_preparation_that_does_not_end_well_leaves_nothing(
    at: Sandbox, fake: FakeBed, fault: str, outcome: Outcome, words: str
) -> None:
    """Its row says why; nothing half-made is kept, and the next start prepares anew."""
    limit = "0.5 s" if fault == "hangs" else "20 s"
    with pytest.raises(NotStarted) as caught:
        start(at, fake.of(fake.component(prepare=fake.preparation(fault, limit=limit))))
    assert (outcome, words) == (caught.value.outcome, caught.value.reason)
    assert at.logs is not None
    assert ("no more than half" if fault == "fails" else "") in (at.logs / "fake" / "web-preparing.log").read_text()
    assert [] == kept(fake)
    assert [] == [*at.directory.glob("*prepare-*"), *at.directory.glob("fake-*"), *at.directory.glob("*.tar")]
    assert [] == at.running
    with start(at, fake.of(fake.component(prepare=fake.preparation()))):
        assert "whole" == (work_dir_of(at, "web") / "state").read_text()
    assert 2 == fake.times_prepared


def test_a_refused_preparation_is_unsupported(at: Sandbox, fake: FakeBed) -> None:
    """What a component refuses, it may refuse when it is prepared."""
    component = fake.component(prepare=fake.preparation("fails"), refusals=["(no more than .*)"])
    with pytest.raises(NotStarted, match="preparing the component web: fake-component refuses: no more than") as caught:
        start(at, fake.of(component))
    assert Outcome.UNSUPPORTED == caught.value.outcome


def test_a_damaged_archive_is_met_once(at: Sandbox, fake: FakeBed) -> None:
    """State that cannot be unpacked is a failure, and is prepared anew by the next start."""
    found = fake.of(fake.component(prepare=fake.preparation()))
    with start(at, found):
        (archive,) = (fake.folder.parent / "cache").rglob("*.tar")
    archive.write_bytes(b"rubbish" * 1000)
    with pytest.raises(NotStarted, match="unpacking the component web: tar ended with status 2"):
        start(at, found)
    with start(at, found):
        assert "whole" == (work_dir_of(at, "web") / "state").read_text()
    assert 2 == fake.times_prepared


def test_a_run_without_a_cache_prepares_for_itself(fake: FakeBed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be kept for later, the trials of a run share what the run has prepared."""
    Path(fake.folder / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(fake.folder / "file"))
    found = fake.of(fake.component(prepare=fake.preparation()))
    for runs in (1, 2):
        with Sandbox() as at:
            for _ in range(2):
                with start(at, found):
                    assert "whole" == (work_dir_of(at, "web") / "state").read_text()
        assert runs == fake.times_prepared


def test_a_cache_that_takes_nothing_is_done_without(
    at: Sandbox, fake: FakeBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, or a file system without unnamed files, costs the next run its time and nothing else."""

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    found = fake.of(fake.component(prepare=fake.preparation()))
    for _ in range(2):
        with start(at, found):
            assert "whole" == (work_dir_of(at, "web") / "state").read_text()
    assert 1 == fake.times_prepared
    assert [] == kept(fake)


def test_state_that_no_run_has_used_is_removed(at: Sandbox, fake: FakeBed, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive of long ago goes when another is kept; one that was used lately stays."""
    component = fake.component(prepare=fake.preparation(settings=["users"]))
    for users in (1, 2):
        with start(at, fake.of(component), {"users": users}):
            pass
    first, second = sorted((fake.folder.parent / "cache").rglob("*.tar"), key=lambda path: path.stat().st_mtime)
    long_ago = time.time() - prepared.UNUSED_LIMIT_S - 60
    for archive in (first, second):
        os.utime(archive, (long_ago, long_ago))
    with start(at, fake.of(component), {"users": 2}):
        pass
    with start(at, fake.of(component), {"users": 3}):
        assert (False, True) == (first.exists(), second.exists())


def test_two_starts_at_once_prepare_once(fake: FakeBed) -> None:
    """Trials of one heat, and two runs at once, wait for the one that prepares."""
    found = fake.of(fake.component(prepare=fake.preparation()))
    with Sandbox() as one, Sandbox() as other, ThreadPoolExecutor(4) as pool:
        for server in pool.map(lambda at: start(at, found), (one, other, one, other)):
            server.stop()
    assert 1 == fake.times_prepared


# Sharing.


def shared_bed(fake: FakeBed, **more: Any) -> beds.Installed:
    """A store of the run, shared by the size of the groups in it, and a frontend of each trial."""
    store = fake.component(name="store", lifetime="run", shared_by=["groups"], **{"on_provider": False, **more})
    return fake.of(store, fake.component())


def test_equal_settings_share_a_component_of_the_run(at: Sandbox, fake: FakeBed) -> None:
    """Cells with the same value use one process; other settings, providers and frontends make no difference."""
    found = shared_bed(fake)
    users = [{"groups": 50, "users": 1}, {"groups": 50, "users": 2}]
    with start(at, found, users[0]) as one, start(at, found, users[1], provider="libcrypto:psycopg") as other:
        assert one.components["store"] == other.components["store"]
        assert one.components["web"] != other.components["web"]
    with start(at, found, {"groups": 50}) as later:
        assert one.components["store"] == later.components["store"]
    assert 1 == len(at.running)


def test_another_value_has_a_component_of_its_own(at: Sandbox, fake: FakeBed) -> None:
    """Two cells whose settings differ where it matters have two processes, both up at once."""
    found = shared_bed(fake)
    with start(at, found, {"groups": 50}) as one, start(at, found, {"groups": 100}) as other:
        assert one.components["store"] != other.components["store"]
        assert (None, None) == (one.fault(), other.fault())
    assert 2 == len(at.running)


def test_a_component_on_the_provider_is_another_with_another(at: Sandbox, fake: FakeBed) -> None:
    """A shared server that loads the cell's libcrypto is not shared with cells of another one."""
    found = shared_bed(fake, on_provider=True)
    with start(at, found) as one, start(at, found, provider="libcrypto:psycopg") as other:
        assert one.components["store"] != other.components["store"]


def test_a_component_of_the_run_is_measured_on_the_servers_core(at: Sandbox, fake: FakeBed) -> None:
    """One that was started for a proof, and may run anywhere, is not the one that trials use."""
    found, core = shared_bed(fake), max(os.sched_getaffinity(0))
    with start(at, found) as proof, start(at, found, core=core) as trial, start(at, found, core=core) as other:
        assert proof.components["store"] != trial.components["store"] == other.components["store"]
        assert {(core,)} == {tuple(os.sched_getaffinity(pid)) for pid in tree_of(trial)}


def test_threads_that_want_the_same_component_start_it_once(at: Sandbox, fake: FakeBed) -> None:
    """The trials of a heat may be started at the same time."""
    found = shared_bed(fake)
    with ThreadPoolExecutor(4) as pool:
        servers = list(pool.map(lambda users: start(at, found, {"users": users}), range(4)))
    assert 1 == len({server.components["store"] for server in servers})
    assert 5 == len(at.running)
    for server in servers:
        server.stop()


@pytest.mark.parametrize("victim", ["server", "guard"])
def test_a_shared_component_that_dies_fails_who_uses_it(at: Sandbox, fake: FakeBed, victim: str) -> None:
    """Every trial that uses it says why; the next that needs it gets a fresh one, and nothing of the old is left."""
    found = shared_bed(fake)
    with start(at, found) as one, start(at, found) as other:
        pids = proc.tree(one.components["store"])
        os.kill(pids[-1 if victim == "server" else 0], signal.SIGKILL)
        words = [server.fault(PATIENCE_S) or "" for server in (one, other)]
        assert [True, True] == ["fake-component was ended by SIGKILL" in said for said in words]
        with start(at, found) as fresh:
            assert one.components["store"] != fresh.components["store"]
            assert fresh.fault() is None
            assert [] == [pid for pid in pids if proc.start_time(pid)]
            assert words == [one.fault(), other.fault()]


def test_what_needs_a_component_that_died_is_another_one_too(at: Sandbox, fake: FakeBed) -> None:
    """A component of the run whose configuration names a dead one's endpoint is not used with the fresh one."""
    base = fake.component(name="base", lifetime="run")
    found = fake.of(base, fake.component(name="store", lifetime="run"), fake.component())
    with start(at, found) as one:
        os.kill(proc.tree(one.components["base"])[-1], signal.SIGKILL)
        assert one.fault(PATIENCE_S)
    with start(at, found) as fresh:
        assert one.components["store"] != fresh.components["store"]


@pytest.mark.parametrize("lifetime", ["run", "trial"])
def test_a_component_that_cannot_start_is_tried_again(at: Sandbox, fake: FakeBed, lifetime: str) -> None:
    """One that failed to become ready is not shared, and no process of it waits for the end of the run."""
    for _ in range(2):
        with pytest.raises(NotStarted):
            start(at, fake.of(fake.component("tcp", "never", name="store", lifetime=lifetime), fake.component()))
        assert [] == at.running


def test_a_shared_component_reads_the_settings_that_make_it_another(at: Sandbox, fake: FakeBed) -> None:
    """A template that reads any other setting would be right for the first cell alone: it is a row with the name."""
    store = fake.component(
        name="store", lifetime="run", shared_by=["groups"], environment={"U": "{{ settings.users }}"}
    )
    with pytest.raises(NotStarted, match=r"the bed fake: .* has no attribute 'users'") as caught:
        start(at, fake.of(store, fake.component()), {"groups": 1, "users": 1})
    assert Outcome.FAILED == caught.value.outcome
    assert [] == [*at.directory.glob("fake-*")]


# A lab that is ended while a component is at this, and the fault that makes it stay so.
FAULTS = {"preparing": "none", "starting": "never", "ready": "none", "stopping": "stubborn"}
# The lab is not to have given up.
LONG = {"by": "http", "limit": "60 s"}


@pytest.mark.parametrize("moment", FAULTS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_lab_that_ends_at_any_moment(
    tmp_path: Path, fake: FakeBed, how: signal.Signals, moment: str
) -> None:
    """No process, no directory and no half-made state is left of it, and the next lab does the work anew."""
    preparation = fake.preparation("hangs" if moment == "preparing" else "none")
    fake.write(fake.component("http", FAULTS[moment], prepare=preparation, ready=LONG, grace="10 s"))
    lab = subprocess.Popen(
        [sys.executable, component_lab.__file__, str(fake.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert lab.stdin is not None
    assert lab.stdout is not None
    directory = Path(lab.stdout.readline().decode().strip())
    wait_until(
        {
            "preparing": lambda: any(directory.glob("*/state")),
            "starting": lambda: any(directory.glob("*/started")),
            "ready": lambda: any(directory.glob("*/up")),
            "stopping": lambda: any(directory.glob("*/up")),
        }[moment]
    )
    if moment == "stopping":
        assert b"ready\n" == lab.stdout.readline()
        lab.stdin.close()
        wait_until(lambda: any(directory.glob("*/ended-by")))
    lab.send_signal(how)
    lab.wait(PATIENCE_S)
    for pipe in (lab.stdin, lab.stdout):
        pipe.close()
    wait_until(lambda: not directory.exists() and not mentioning(str(directory)))
    assert ([] if moment == "preparing" else [".tar"]) == kept(fake)
    with Sandbox() as at, start(at, fake.of(fake.component(prepare=fake.preparation()))):
        assert "whole" == (work_dir_of(at, "web") / "state").read_text()


def wait_until(there: Callable[[], bool]) -> None:
    """Waits for something that comes soon."""
    deadline = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# Accounts.


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's servers have that user's account")
def test_a_component_runs_without_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's lab prepares and starts it under the unprivileged account, which can have a low port all the same."""
    with tempfile.TemporaryDirectory(dir=folder_for_all()) as name:
        folder = Path(name)
        folder.chmod(0o755)
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        fake = FakeBed(folder, python_of_others())
        fake.count.touch()
        fake.count.chmod(0o666)
        component = fake.component(
            address="own", port=389, run_as="unprivileged", prepare=fake.preparation(), ready={"by": "tcp"}
        )
        with Sandbox() as at:
            assert at.account is not None
            for _ in range(2):
                with start(at, fake.of(component)) as server:
                    server_pid = proc.tree(server.components["web"])[-1]
                    state = work_dir_of(at, "web") / "state"
                    assert [at.account.user_id] * 2 == [Path(f"/proc/{server_pid}").stat().st_uid, state.stat().st_uid]
                    assert server.address.endswith(":389"), program(server_pid)
        assert 1 == fake.times_prepared


def python_of_others() -> str:
    """A Python that an account without rights can run."""
    who = account()
    assert who is not None
    for python in (sys.executable, "/usr/bin/python3"):
        # Through a shell, for setpriv itself starts programs with root's rights to find them.
        run = ["sh", "-c", 'exec "$0" -I -c ""', python]
        probe = ["setpriv", f"--reuid={who.user_id}", f"--regid={who.group_id}", "--clear-groups", *run]
        if subprocess.run(probe, capture_output=True).returncode == 0:
            return python
    pytest.skip("there is no Python here that the unprivileged account can run")


# What a bed's file says wrong.


WRONG = [
    ({"redy": 1}, "`component.0.redy`: no such key", "did you mean `ready`"),
    ({"ready": {"by": "htpp"}}, "`component.0.ready.by`: no such value: `htpp`", "did you mean `http`"),
    ({"ready": {"by": "tcp", "limt": "1 s"}}, "`component.0.ready.limt`: no such key", "did you mean `limit`?"),
    ({"ready": {"by": "tcp", "limit": 5}}, '`component.0.ready.limit`: say the unit, as in "5 s"', None),
    ({"ready": {"by": "command"}}, "`component.0.ready`: `command` is for", None),
    ({"ready": {"by": "tcp", "command": ["true"]}}, "`component.0.ready`: `command` is for", None),
    ({"lifetime": "day"}, "`component.0.lifetime`: no such value: `day`", "known: run, trial"),
    ({"prepare": {"comands": []}}, "`component.0.prepare.comands`: no such key", "did you mean `commands`?"),
    ({"prepare": {"settings": []}}, "`component.0.prepare.commands` is missing", None),
    ({"shared-by": ["users"]}, "`component.0`: `shared-by`: a component that is started for each trial", None),
    ({"lifetime": "run", "prepare": {"commands": [["true"]], "settings": ["users"]}}, "has to be in `shared-by`", None),
    ({"port": 389}, '`port`: .* takes `address = "own"`', None),
    ({"port": 0, "address": "own"}, "`component.0.port`: ", None),
    ({"grace": "11 s"}, "`component.0.grace`: ", None),
    ({"refusals": ["no group"]}, "`component.0.refusals.0`: the pattern has no group", None),
    ({"refusals": ["(open"]}, "`component.0.refusals.0`: not a regular expression", None),
    ({"run-as": "root"}, "`component.0.run-as`: no such value: `root`", "known: lab, unprivileged"),
]


@pytest.mark.parametrize(("keys", "words", "hint"), WRONG)
def test_a_wrong_file_is_one_line(fake: FakeBed, keys: dict[str, Any], words: str, hint: str | None) -> None:
    """It names the file, the key, and the nearest right key or value."""
    fake.write(fake.component() | keys)
    with pytest.raises(TollbarError, match=words) as caught:
        beds.read(fake.folder)
    assert str(fake.folder / "bed.toml") == caught.value.where
    assert (hint or "") in (caught.value.hint or "")
    assert "\n" not in str(caught.value)


def test_components_of_the_run_come_first(fake: FakeBed) -> None:
    """One that outlives the trial cannot need one that does not."""
    fake.write(fake.component(), fake.component(name="store", lifetime="run"))
    with pytest.raises(TollbarError, match="those of the run come first"):
        beds.read(fake.folder)


def test_a_missing_tool_is_named_with_what_would_help(fake: FakeBed) -> None:
    """A bed is not here when a program that its commands need is not."""
    fake.write(fake.component(tools={"initdb": ["no-such-program"], "shell": ["sh"]}))
    missing = beds.find(beds.read(fake.folder))
    assert beds.Unavailable("fake", "initdb is not installed; to have it: wishing") == missing


def test_the_newest_version_is_found(fake: FakeBed) -> None:
    """A folder with `*` is one of many versions, of which 15 is newer than 9."""
    for version in ("9", "15", "8.4"):
        folder = fake.folder / version
        folder.mkdir()
        (folder / "fake-server").symlink_to(fake.program)
    found = fake.of(fake.component(program=["fake-server"], folders=[str(fake.folder / "*")]))
    assert fake.folder / "15" / "fake-server" == found.programs["web"]
