"""A place for runs that are ended by force, and the search for their leftovers."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from bench.figures import TOLLBAR
from tollbar.core import proc
from tollbar.lab.servers import sandbox

SERVERS = ("embedded", "nginx", "httpd")
# Few, so that a batch is mostly starts and ends, where most can go wrong.
ROUNDS = 4

STUDY = """
question  = "What is left of this?"
family    = "tls"
choices   = ["tls-1.3"]
providers = ["libcrypto"]
servers      = {servers}
baseline  = "tls-1.3"

[vary]
op = ["request"]

[load]
users   = [2]
request = {{ get = "/bytes/{{bytes}}" }}
expect  = {{ bytes = "{{bytes}}" }}

[measure]
chunk  = "2 ms"
rounds = {rounds}
blocks = {blocks}
"""

# Cells that together need every server that users sign in with; those of a directory have one account, a member of
# groups, because the others ask for more of them.
EVERY_SERVER = """
question  = "What is left of all of this?"
family    = "web-auth"
choices   = ["anonymous", "basic", "kerberos"]
providers = ["libcrypto"]
servers      = ["httpd", "nginx"]
baseline  = "anonymous"

[vary]
op            = ["request"]
accounts      = [1]
groups        = [100]
store         = ["sql"]
password-hash = ["sha-1"]
directory     = ["samba", "mit"]
runs          = ["in-server", "gssproxy", "auth-request"]
transport     = ["clear"]

[[leave-out]]
where   = { server = "nginx", runs = ["in-server", "gssproxy"] }
because = "nginx has no Kerberos of its own."

[[leave-out]]
where   = { server = "nginx", directory = "mit" }
because = "One directory behind it is enough."

[[leave-out]]
where   = { server = "nginx", choice = "basic" }
because = "It looks nothing up in a database."

[[leave-out]]
where   = { server = "httpd", runs = "auth-request" }
because = "It is nginx's."

[[leave-out]]
where   = { choice = "basic", runs = "gssproxy" }
because = "It has no ticket."

[load]
users   = [2]
request = { get = "/bytes/{bytes}" }
expect  = { bytes = "{bytes}" }

[measure]
chunk  = "2 ms"
rounds = 4
blocks = BLOCKS
"""
# Services behind httpd and nginx there.
SERVICES = ("samba", "mit", "postgresql", "gssproxy", "authenticator")
# Each has a process from the first proof that needs it to the end of the run; web servers come and go.
PROGRAMS = {"samba": r"/samba\b", "krb5kdc": r"/krb5kdc\b", "slapd": r"/slapd\b", "postgres": r"/postgres\b"}

# A killed process is gone within milliseconds; a busy machine may take longer.
PATIENCE_S = 60.0
# A shell that starts a program in the background has it ignore this signal, and its children inherit that.
USUAL = ("env", "--default-signal=QUIT")
# Limit for hangs alone: a run of seconds takes minutes on a busy machine.
RUN_LIMIT_S = 600.0
# A few looks at a run of seconds hardly disturb it.
NOTED_EVERY_S = 0.5


@dataclass
class Ground:
    """Place for runs, with temporary files of their own, whose orphans all become children of this process."""

    folder: Path
    children: frozenset[int]
    """Children that this process had before."""
    user: int | None = None
    ports: set[str] = field(default_factory=set)
    """Sockets of a run that accept connections or packets."""
    memory: set[str] = field(default_factory=set)
    """Shared memory that processes of some run had mapped: files, and segments of System V's kind."""
    spaces: set[str] = field(default_factory=set)
    """Name spaces of some run's processes other than this process's own."""

    @property
    def temporary(self) -> Path:
        """Return the runs' place for temporary files."""
        return self.folder / "tmp"

    @property
    def cache(self) -> Path:
        """Return the place where runs keep prepared state and builds."""
        return Path(os.environ.get("XDG_CACHE_HOME", self.folder / ".cache"))

    @property
    def environment(self) -> dict[str, str]:
        """Return the runs' environment: temporary files and a home of their own.

        pip asks for rustc's version when it installs something, and rustup makes a folder in a home that has none.
        """
        rustup = os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))
        return {"TMPDIR": str(self.temporary), "HOME": str(self.folder), "RUSTUP_HOME": rustup}

    @property
    def runs(self) -> list[Path]:
        """Return the runs that were begun here."""
        return sorted(path.parent for path in (self.folder / "runs").glob("*/run.json"))

    def study(self, blocks: int, servers: Sequence[str] = SERVERS, *, rounds: int = ROUNDS) -> Path:
        """Write a study of a cell for each server."""
        path = self.folder / f"left-{blocks}-{rounds}-{len(servers)}.toml"
        path.write_text(STUDY.format(servers=json.dumps(servers), blocks=blocks, rounds=rounds))
        return path

    def study_of_every_server(self, blocks: int) -> Path:
        """Write a study whose cells need all servers."""
        path = self.folder / f"every-{blocks}.toml"
        path.write_text(EVERY_SERVER.replace("BLOCKS", str(blocks)))
        return path

    def start(
        self,
        *arguments: object,
        before: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        stdin: int | IO[bytes] | None = None,
        stdout: int | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start `tollbar run` as a user types it, after the words in `before`; its document is kept in a file."""
        words = [*USUAL, *before, *([] if stdout else [TOLLBAR]), "run", *map(str, arguments), "--json", "--no-report"]
        with open(self.folder / "output", "wb") as output, open(self.folder / "said.json", "wb") as said:
            return subprocess.Popen(
                words,
                cwd=self.folder,
                env={**os.environ, **self.environment, **(environment or {})},
                stdin=stdin,
                stdout=stdout or said,
                stderr=output,
            )

    def finish(self, *arguments: object) -> int:
        """Return the exit status of a run that ends by itself, recording its resources meanwhile.

        These are its ports, shared memory and name spaces.
        """
        run = self.start(*arguments)
        deadline = time.monotonic() + RUN_LIMIT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return run.wait(NOTED_EVERY_S)
            self.under_way(run)
        return run.wait(0)

    def output(self) -> str:
        """Return the output of the last run."""
        return (self.folder / "output").read_text()

    def under_way(self, run: subprocess.Popen[bytes]) -> list[str]:
        """Return the running programs of this run, recording their ports, shared memory and name spaces."""
        pids = proc.tree(run.pid)
        self.memory |= {memory for pid in pids for memory in mapped(pid)}
        self.spaces |= {space for pid in pids for space in spaces(pid)} - spaces(os.getpid())
        files = {file for pid in pids for file in proc._open_files(pid)}
        self.ports |= {inode for inode in listening() if f"socket:[{inode}]" in files}
        return [name for pid in pids[1:] if (name := program(pid))]

    def descendants(self) -> set[int]:
        """Return all processes below this one, except those it had before and their children."""
        children = set(proc._children(os.getpid())) - self.children
        return {pid for child in children for pid in proc.tree(child)}

    def left(self, *expected: str) -> dict[str, object]:
        """Return everything left of all runs except these directories, once all have had their time to end."""
        deadline = time.monotonic() + PATIENCE_S
        while (left := self._left(expected)) != NOTHING and time.monotonic() < deadline:
            time.sleep(0.01)
        return left

    def _left(self, expected: Sequence[str]) -> dict[str, object]:
        pids = self.descendants()
        for pid in pids:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        pids |= mentioning(str(self.temporary))
        return {
            "processes": sorted(name for pid in pids if (name := program(pid))),
            "ports": sorted(self.ports & listening()),
            "memory": sorted(self.memory & shared_memory()),
            "name spaces": all_spaces(self.spaces) if self.spaces else [],
            "mounts": mounts(self.folder),
            "directories": sorted({path.name for path in self.temporary.iterdir()} - {*expected}),
        }


PR_SET_CHILD_SUBREAPER = 36


@contextlib.contextmanager
def a_ground(prefix: str = "survivors-") -> Iterator[Ground]:
    """Yield a ground in a place that a server's workers can enter, and end and remove everything left on it.

    Its name begins with `prefix`, which is short if sockets are made in it: their paths may have 107 letters.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=sandbox.folder_for_all()))
    folder.chmod(0o755)
    ground = Ground(folder, frozenset(proc._children(os.getpid())))
    ground.temporary.mkdir()
    ground.temporary.chmod(0o711)
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield ground
    finally:
        for pid in ground.descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        shutil.rmtree(folder)


KINDS = ("processes", "ports", "memory", "name spaces", "mounts", "directories")
NOTHING: dict[str, object] = {kind: [] for kind in KINDS}


def program(pid: int) -> str:
    """Return a process's command in a few words, or an empty string if it is gone or dead."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        if words != [""]:
            return f"{pid} {' '.join(words)[:400]}"
    return ""


def mentioning(path: str) -> set[int]:
    """Return processes related to this path by their command, their working directory, or their open files."""
    found = set()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            seen = [
                Path(f"/proc/{name}/cmdline").read_bytes().decode(errors="replace"),
                os.readlink(f"/proc/{name}/cwd"),
            ]
            if any(path in one for one in [*seen, *proc._open_files(int(name))]):
                found.add(int(name))
    return found


# State of an unconnected socket, to which any program may send by UDP.
UNCONNECTED = "07"
# Flag of a Unix socket that accepts connections, and the column of its inode.
ACCEPTS, UNIX_INODE = "00010000", 6


def listening() -> set[str]:
    """Return the inode of every socket that accepts connections or packets: TCP, UDP, and Unix."""
    found = set()
    for kind, state in (("tcp", proc.LISTENING), ("udp", UNCONNECTED)):
        for table in (Path(f"/proc/net/{kind}"), Path(f"/proc/net/{kind}6")):
            lines = [line.split() for line in table.read_text().splitlines()[1:]] if table.exists() else []
            found |= {fields[9] for fields in lines if fields[3] == state}
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return found | {fields[UNIX_INODE] for fields in lines if fields[3] == ACCEPTS}


# Linux's folder of named shared memory.
NAMED_MEMORY = "/dev/shm/"


def mapped(pid: int) -> set[str]:
    """Return the shared memory that a process has mapped: paths of files, and numbers of segments."""
    found = set()
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            # Addresses, rights, offset, device, inode, and path.
            fields = line.split(maxsplit=5)
            name = fields[5] if len(fields) > 5 else ""
            if name.startswith(NAMED_MEMORY):
                found.add(name)
            elif name.startswith("/SYSV"):
                found.add(fields[4])
    return found


def shared_memory() -> set[str]:
    """Return all shared memory on this machine."""
    segments = {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}
    return segments | {f"{NAMED_MEMORY}{name}" for name in os.listdir(NAMED_MEMORY)}


def spaces(pid: int) -> set[str]:
    """Return the name spaces of a process."""
    found = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/ns"):
            found.add(os.readlink(f"/proc/{pid}/ns/{name}"))
    return found


def all_spaces(known: set[str]) -> list[str]:
    """Return which of these name spaces a process has, with that process, because the kernel reuses their numbers."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return sorted(f"{space} of {program(pid)}" for pid in pids for space in spaces(pid) & known)


def mounts(folder: Path) -> list[str]:
    """Return the mounts in this folder, among them name spaces kept alive after their processes."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if f" {folder}/" in line]


class Kept(NamedTuple):
    """Trial as stored on the disk."""

    order: int
    study: str
    cell: str
    repeat: bool
    block: int
    batch: int
    outcome: str
    reason: str | None
    observed: str
    """Observations of its chunks, as JSON."""


TRIALS = """
select ord, study, cell, repeat, block, batch, outcome, reason,
    (select json_group_array(json_array(component, metric, by_round)) from observation where trial = id)
from trial order by ord
"""


def trials_of(run: Path) -> list[Kept]:
    """Return a run's trials in order of measurement, after an integrity check of the database."""
    with contextlib.closing(sqlite3.connect(run / "results.sqlite")) as database:
        assert [("ok",)] == database.execute("pragma integrity_check").fetchall()
        return [Kept(*row) for row in database.execute(TRIALS)]


def cells_of(run: Path) -> list[tuple[str | None, str | None]]:
    """Return outcome and reason of each cell, or None before its proof."""
    with contextlib.closing(sqlite3.connect(run / "results.sqlite")) as database:
        return database.execute("select outcome, reason from cell order by position").fetchall()


def failed_of(trials: Sequence[Kept]) -> list[Kept]:
    """Return the trials that failed because a part of them was killed."""
    return [trial for trial in trials if trial.outcome != "ok" and "was ended by SIGKILL" in (trial.reason or "")]


def until(found: Callable[[], object], run: subprocess.Popen[bytes]) -> None:
    """Wait for an event of the run."""
    deadline = time.monotonic() + RUN_LIMIT_S
    while not found():
        assert run.poll() is None, "the run ended before that"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def trials_there(ground: Ground) -> bool:
    """Return whether a trial is on the disk."""
    return bool(ground.runs) and bool(trials_of(ground.runs[-1]))
