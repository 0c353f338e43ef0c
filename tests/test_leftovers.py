"""Leftovers of runs whose processes were all killed at once: the next measuring command removes them."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.figures import TOLLBAR
from bench.ground import NOTHING, RUN_LIMIT_S, Ground, a_ground, trials_there, until
from bench.survival.kinds import study_of
from bench.survival.means import MEANS, Kill

from conftest import here
from tollbar.core import proc
from tollbar.core.runner import confined
from tollbar.lab.servers import leftovers
from tollbar.lab.servers.sandbox import Sandbox

DIGEST = """
question  = "?"
family    = "digest"
choices   = ["sha-256", "sha-512"]
providers = ["libcrypto"]
baseline  = "sha-256"
[vary]
op    = ["hash"]
bytes = ["64 B"]
[measure]
rounds = 2
blocks = 1
"""


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """Yield a ground with a cache of its own, so that tests that run at the same time sweep nothing of it."""
    with a_ground() as made:
        monkeypatch.setenv("XDG_CACHE_HOME", str(made.folder / ".cache"))
        (made.folder / "digest.toml").write_text(DIGEST)
        yield made


def struck(ground: Ground, kind: str, server: str) -> None:
    """Kill all of Tollbar's processes of a run of this kind while a server of it is up."""
    study = ground.folder / f"{kind}.toml"
    study.write_text(study_of(kind).replace("blocks = 4\n", "blocks = 500\n"))
    run = ground.start(study)
    until(lambda: trials_there(ground) and any(server in name for name in ground.under_way(run)), run)
    MEANS["SIGKILL of all at once"].strike(Kill(ground, random.Random(1), run, 0.0))
    assert -signal.SIGKILL == run.wait(RUN_LIMIT_S)


def said_by(ground: Ground, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Return the result of a command on this ground."""
    return subprocess.run(
        [TOLLBAR, *words],
        cwd=ground.folder,
        env={**os.environ, **ground.environment, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("kind", "server"),
    [
        ("nginx", "nginx: worker"),
        pytest.param("postgresql", "postgres", marks=pytest.mark.share(0)),
        pytest.param("samba", "samba", marks=pytest.mark.share(0)),
    ],
)
def test_the_next_run_removes_what_a_strike_at_all_processes_left(ground: Ground, kind: str, server: str) -> None:
    here(kind)
    struck(ground, kind, server)
    (directory,) = ground.temporary.glob("tollbar-*")
    with tempfile.TemporaryDirectory() as elsewhere:
        looked = said_by(ground, "doctor", "--no-self-test", TMPDIR=elsewhere)
        assert 1 == looked.returncode
        assert str(directory) in "".join(looked.stdout.split("\n"))
        assert directory.exists()
        measured = said_by(ground, "run", "digest.toml", "--no-report", TMPDIR=elsewhere)
        assert 0 == measured.returncode, measured.stderr
    assert NOTHING == ground.left()


@pytest.mark.share(0)
def test_the_doctor_removes_what_it_names_before_the_self_test(ground: Ground) -> None:
    here("nginx")
    struck(ground, "nginx", "nginx: worker")
    assert "a run was killed and left" in " ".join(said_by(ground, "doctor").stdout.split())
    assert NOTHING == ground.left()


@pytest.mark.share(1)
@pytest.mark.parametrize("words", ["verify digest.toml", "tune password-hash pbkdf2-sha-256 --within 5ms"])
def test_other_commands_that_measure_remove_leftovers_too(ground: Ground, words: str) -> None:
    directory = ground.temporary / "tollbar-0123abcd"
    directory.mkdir()
    (directory / "keeper.json").write_text('{"pid": 4194305, "start_time": 1}')
    said_by(ground, *words.split())
    assert not directory.exists()


def test_a_run_whose_keeper_was_killed_is_not_swept() -> None:
    with Sandbox() as sandbox:
        keeper = sandbox._keeper
        assert keeper is not None
        keeper.kill()
        keeper.wait()
        with open(sandbox.directory / "log", "wb") as log:
            server = subprocess.Popen(["sleep", "60"], stderr=log)
        try:
            assert [] == [one for one in leftovers.find() if one.directory == sandbox.directory]
            leftovers.sweep([sandbox.directory.parent])
            assert server.poll() is None
            assert sandbox.directory.exists()
        finally:
            server.kill()
            server.wait()


def test_a_lab_that_is_gone_does_not_keep_its_directory(tmp_path: Path) -> None:
    directory = tmp_path / "tollbar-a"
    directory.mkdir()
    hold = "import pathlib, sys; from tollbar.lab.servers import leftovers; leftovers.hold(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", hold, directory], check=True)
    assert [directory] == [one.directory for one in leftovers.find([tmp_path])]


# Makes shared memory, and leaves its process.
SEGMENT = "import ctypes, time; print(ctypes.CDLL(None).shmget(0, 4096, 0o600), flush=True); time.sleep(60)"


def test_processes_and_shared_memory_of_a_dead_run_are_removed(tmp_path: Path) -> None:
    """PostgreSQL has no time to remove its own."""
    directory = tmp_path / "tollbar-0123abcd"
    (directory / "logs").mkdir(parents=True)
    (directory / "keeper.json").write_text('{"pid": 4194305, "start_time": 1}')
    with open(directory / "logs" / "log", "wb") as log:
        server = subprocess.Popen([sys.executable, "-c", SEGMENT], stdout=subprocess.PIPE, stderr=log)
    assert server.stdout is not None
    with server.stdout:
        made = int(server.stdout.readline())
    (found,) = leftovers.find([tmp_path])
    assert (directory, (server.pid,)) == (found.directory, found.processes)
    leftovers.sweep([tmp_path])
    assert -signal.SIGKILL == server.wait()
    assert not directory.exists()
    segments = {int(line.split()[1]) for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}
    assert made not in segments


# Makes shared memory as an account, and ends.
OF_ACCOUNT = "import ctypes, os, sys; os.setuid(int(sys.argv[1])); print(ctypes.CDLL(None).shmget(0, 4096, 0o600))"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's components have accounts of their own")
def test_shared_memory_of_a_server_that_ended_with_its_guard_is_removed(tmp_path: Path) -> None:
    """No process of it exists, so its account decides; another account's memory stays."""

    def made(account: int) -> int:
        return int(subprocess.run([sys.executable, "-c", OF_ACCOUNT, str(account)], capture_output=True).stdout)

    own, other = made(confined.LAST_ACCOUNT), made(confined.LAST_ACCOUNT + 1)
    leftovers.sweep([tmp_path])
    segments = {int(line.split()[1]) for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}
    assert own not in segments
    assert other in segments
    assert 0 == ctypes.CDLL(None).shmctl(other, proc.IPC_RMID, None)


def test_a_folder_is_noted_once_and_forgotten_when_it_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "temporary"
    folder.mkdir()
    leftovers.note(folder)
    leftovers.note(folder)
    leftovers.note(Path("/tmp"))
    notes = [*(tmp_path / "cache" / "tollbar" / "temporary-folders").iterdir()]
    assert [bytes(folder)] == [note.read_bytes() for note in notes]
    assert folder in leftovers._folders()
    folder.rmdir()
    assert folder not in leftovers._folders()
    assert not notes[0].exists()
