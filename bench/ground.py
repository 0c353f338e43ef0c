"""A place for runs that something ends, where whatever is left of them is found."""

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
# So few that a batch is mostly starts and ends, where most can go wrong.
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

# Cells that between them need every server that users sign in with; those of a directory have one account, a member of
# groups, since the others ask for more of them.
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
# Those that stand behind httpd and nginx there.
SERVICES = ("samba", "mit", "postgresql", "gssproxy", "authenticator")
# Of these there is a process from the first proof that needs it to the end of the run; web servers come and go.
PROGRAMS = {"samba": r"/samba\b", "krb5kdc": r"/krb5kdc\b", "slapd": r"/slapd\b", "postgres": r"/postgres\b"}

# What was killed is gone within milliseconds; a busy machine may take its time.
PATIENCE_S = 60.0
# A shell that starts a program in the background has it ignore this signal, and its children inherit that.
USUAL = ("env", "--default-signal=QUIT")
# It ends only what hangs: a run of seconds takes minutes where other programs have the cores.
RUN_LIMIT_S = 600.0
# A run of seconds is looked at some times, and hardly disturbed by that.
NOTED_EVERY_S = 0.5


@dataclass
class Ground:
    """A place for runs, with temporary files of their own, whose orphans all become children of this process."""

    folder: Path
    children: frozenset[int]
    """Those that this process had before."""
    user: int | None = None
    ports: set[str] = field(default_factory=set)
    """Sockets of some run that anything could be sent to."""
    memory: set[str] = field(default_factory=set)
    """Shared memory that processes of some run had mapped: files, and segments of System V's kind."""
    spaces: set[str] = field(default_factory=set)
    """Name spaces that processes of some run had, and this one has not."""

    @property
    def temporary(self) -> Path:
        """What the runs take for the system's place for temporary files."""
        return self.folder / "tmp"

    @property
    def cache(self) -> Path:
        """Where runs keep what they have prepared or built."""
        return Path(os.environ.get("XDG_CACHE_HOME", self.folder / ".cache"))

    @property
    def environment(self) -> dict[str, str]:
        """Of runs: temporary files and a home of their own.

        pip asks for rustc's version when it installs something, and rustup makes a folder in a home that has none.
        """
        rustup = os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))
        return {"TMPDIR": str(self.temporary), "HOME": str(self.folder), "RUSTUP_HOME": rustup}

    @property
    def runs(self) -> list[Path]:
        """The runs that were begun here."""
        return sorted(path.parent for path in (self.folder / "runs").glob("*/run.json"))

    def study(self, blocks: int, servers: Sequence[str] = SERVERS, *, rounds: int = ROUNDS) -> Path:
        """A study of a cell for each server."""
        path = self.folder / f"left-{blocks}-{rounds}-{len(servers)}.toml"
        path.write_text(STUDY.format(servers=json.dumps(servers), blocks=blocks, rounds=rounds))
        return path

    def study_of_every_server(self, blocks: int) -> Path:
        """A study whose cells need all of them."""
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
        """`tollbar run`, as a user types it, but for what is put before it; its document is kept in a file."""
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
        """The exit status of a run that is left to end, whose ports, memory and name spaces are noted meanwhile."""
        run = self.start(*arguments)
        deadline = time.monotonic() + RUN_LIMIT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return run.wait(NOTED_EVERY_S)
            self.under_way(run)
        return run.wait(0)

    def output(self) -> str:
        """What the last run said."""
        return (self.folder / "output").read_text()

    def under_way(self, run: subprocess.Popen[bytes]) -> list[str]:
        """The programs that this run has going, whose ports, shared memory and name spaces are noted."""
        pids = proc.tree(run.pid)
        self.memory |= {memory for pid in pids for memory in mapped(pid)}
        self.spaces |= {space for pid in pids for space in spaces(pid)} - spaces(os.getpid())
        files = {file for pid in pids for file in proc._open_files(pid)}
        self.ports |= {inode for inode in listening() if f"socket:[{inode}]" in files}
        return [name for pid in pids[1:] if (name := program(pid))]

    def descendants(self) -> set[int]:
        """All processes below this one, but for those that it had before and whatever they start."""
        children = set(proc._children(os.getpid())) - self.children
        return {pid for child in children for pid in proc.tree(child)}

    def left(self, *expected: str) -> dict[str, object]:
        """Whatever is left of all runs beside these directories, once all have had their time to end."""
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
    """A ground in a place that a server's workers can pass, with all that is left on it ended and removed.

    Its name begins with `prefix`, which is short where sockets are made in it: their paths may have 107 letters.
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
    """What a process runs, in a few words; nothing, where it is gone or dead."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        if words != [""]:
            return f"{pid} {' '.join(words)[:400]}"
    return ""


def mentioning(path: str) -> set[int]:
    """Processes that have to do with this path: by their command, the place they are in, or what they have open."""
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


# Of a socket that has no connection, which for UDP is one that any program may send to.
UNCONNECTED = "07"
# What the kernel says of a socket of its own kind that accepts connections: its flag and its inode's column.
ACCEPTS, UNIX_INODE = "00010000", 6


def listening() -> set[str]:
    """The inode of every socket that anything may be sent to: TCP and UDP of both kinds of address, and Unix."""
    found = set()
    for kind, state in (("tcp", proc.LISTENING), ("udp", UNCONNECTED)):
        for table in (Path(f"/proc/net/{kind}"), Path(f"/proc/net/{kind}6")):
            lines = [line.split() for line in table.read_text().splitlines()[1:]] if table.exists() else []
            found |= {fields[9] for fields in lines if fields[3] == state}
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return found | {fields[UNIX_INODE] for fields in lines if fields[3] == ACCEPTS}


# Where Linux keeps shared memory that has a name.
NAMED_MEMORY = "/dev/shm/"


def mapped(pid: int) -> set[str]:
    """The shared memory that a process has mapped: the paths of files, and the numbers of segments."""
    found = set()
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            # Addresses, rights, offset, device, inode, and what it is.
            fields = line.split(maxsplit=5)
            name = fields[5] if len(fields) > 5 else ""
            if name.startswith(NAMED_MEMORY):
                found.add(name)
            elif name.startswith("/SYSV"):
                found.add(fields[4])
    return found


def shared_memory() -> set[str]:
    """All that there is on this machine."""
    segments = {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}
    return segments | {f"{NAMED_MEMORY}{name}" for name in os.listdir(NAMED_MEMORY)}


def spaces(pid: int) -> set[str]:
    """The name spaces of a process."""
    found = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/ns"):
            found.add(os.readlink(f"/proc/{pid}/ns/{name}"))
    return found


def all_spaces(known: set[str]) -> list[str]:
    """Those of these that any process has, with that: the kernel gives their numbers again, to whatever is next."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return sorted(f"{space} of {program(pid)}" for pid in pids for space in spaces(pid) & known)


def mounts(folder: Path) -> list[str]:
    """What is mounted in this folder, as is a name space that is to outlive its processes."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if f" {folder}/" in line]


class Kept(NamedTuple):
    """A trial as it is on the disk."""

    order: int
    study: str
    cell: str
    repeat: bool
    block: int
    batch: int
    outcome: str
    reason: str | None
    observed: str
    """All that was seen of its chunks."""


TRIALS = """
select ord, study, cell, repeat, block, batch, outcome, reason,
    (select json_group_array(json_array(component, metric, by_round)) from observation where trial = id)
from trial order by ord
"""


def trials_of(run: Path) -> list[Kept]:
    """A run's trials in the order they were made, from a database that is whole."""
    with contextlib.closing(sqlite3.connect(run / "results.sqlite")) as database:
        assert [("ok",)] == database.execute("pragma integrity_check").fetchall()
        return [Kept(*row) for row in database.execute(TRIALS)]


def cells_of(run: Path) -> list[tuple[str | None, str | None]]:
    """Outcome and reason of each cell; None where it is not proved yet."""
    with contextlib.closing(sqlite3.connect(run / "results.sqlite")) as database:
        return database.execute("select outcome, reason from cell order by position").fetchall()


def failed_of(trials: Sequence[Kept]) -> list[Kept]:
    """Those that left no cost because a part of them was killed."""
    return [trial for trial in trials if trial.outcome != "ok" and "was ended by SIGKILL" in (trial.reason or "")]


def until(found: Callable[[], object], run: subprocess.Popen[bytes]) -> None:
    """Waits for something that the run is to do."""
    deadline = time.monotonic() + RUN_LIMIT_S
    while not found():
        assert run.poll() is None, "the run ended before that"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def trials_there(ground: Ground) -> bool:
    """Whether a trial is on the disk."""
    return bool(ground.runs) and bool(trials_of(ground.runs[-1]))
