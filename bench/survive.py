"""`python -m bench survive --kills N`: runs of every kind, struck at random moments by random means, and resumed.

After each: nothing of the run is left, each heat that was committed is as it was, the run is resumed to its end, and
its tolls are those of an undisturbed run (the same verdict, or intervals that overlap). A kill is a line of the log;
`--kills 1 --seed` with the seed of its line repeats it: same kind, same means, same share of the run's time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bench.ground import (
    EVERY_SERVER,
    NOTHING,
    RUN_LIMIT_S,
    STUDY,
    Ground,
    Kept,
    a_ground,
    cells_of,
    program,
    trials_of,
)
from tollbar.beds import proc
from tollbar.stats import FEWEST_BLOCKS

BLOCKS = FEWEST_BLOCKS
# No more of them where a machine is busy.
EXACTLY = ("--blocks", BLOCKS)
PRIMITIVES = """
question  = "What is left of this?"
family    = "digest"
choices   = ["sha-256"{more}]
providers = {providers}
baseline  = {baseline}

[vary]
op    = ["hash"]
bytes = ["4 KiB"]
{vary}

[measure]
chunk  = "2 ms"
rounds = 4
blocks = BLOCKS
"""
STORAGE = """
question  = "What is left of this?"
family    = "storage"
choices   = ["plaintext", "aes-256-gcm"]
{where}
baseline  = "plaintext"

[vary]
op   = ["read"]
rows = [200]

[measure]
chunk  = "2 ms"
rounds = 4
blocks = BLOCKS
"""


def _platform(name: str) -> str:
    """A hash through this platform, beside the engine's own."""
    baseline = '{ provider = "libcrypto" }'
    return PRIMITIVES.format(
        more="", providers=f'["libcrypto", "{name}"]', baseline=baseline, vary='lookup = ["implicit"]'
    )


def _served(bed: str) -> str:
    return STUDY.format(beds=f'["{bed}"]', rounds=4, blocks="BLOCKS").replace('["tls-1.3"]', '["tls-1.3", "plaintext"]')


# What is run: a study for each kind, small enough that a kill and what is done after it take some seconds.
KINDS: dict[str, str] = {
    "primitives": PRIMITIVES.format(
        more=', "sha3-256"', providers='["libcrypto", "rustcrypto"]', baseline='"sha-256"', vary=""
    ),
    **{bed: _served(bed) for bed in ("embedded", "nginx", "httpd")},
    "every server": EVERY_SERVER,
    "sqlite": STORAGE.format(where='providers = ["sqlite"]'),
    **{bed: STORAGE.format(where=f'beds = ["{bed}"]\nproviders = ["aws-lc"]') for bed in ("postgresql", "mariadb")},
    **{name: _platform(name) for name in ("python", "node", "java", "go", "dotnet")},
}
# Of these no run has more than one kind of process beside the lab.
WITHOUT_SERVERS = {"primitives", "sqlite", "python", "node", "java", "go", "dotnet"}
DATABASES = {"postgresql", "mariadb", "every server"}

# What stands in for a clock that is set and for a slow disk: the lab's libc alone is told so, and nothing it starts.
SHIM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long *told;
__attribute__((constructor)) static void start(void) {
    int file = open(getenv("SURVIVE_TOLD"), O_RDONLY);
    told = mmap(0, 16, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    unsetenv("LD_PRELOAD");
    unsetenv("SURVIVE_TOLD");
}
int clock_gettime(clockid_t clock, struct timespec *at) {
    int status = syscall(SYS_clock_gettime, clock, at);
    if (!status && clock == CLOCK_REALTIME && told) at->tv_sec += told[0];
    return status;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
int fsync(int file) { usleep(told[1]); return syscall(SYS_fsync, file); }
int fdatasync(int file) { usleep(told[1]); return syscall(SYS_fdatasync, file); }
"""
CLOCK, SLOW = 0, 1


@dataclass
class Kill:
    """One run that is struck."""

    ground: Ground
    chance: random.Random
    run: subprocess.Popen[bytes]
    suspended_s: float
    note: dict[str, Any] = field(default_factory=dict)
    """What was done, for the log."""
    holder: int = 0
    """The process that holds the mounts in which the run is, where it is in mounts of its own."""
    moved: Callable[[Path], Path] | None = None
    """Makes of the run's directory the one to go on with, once the run has ended."""

    def tell(self, what: int, value: int) -> None:
        """Changes what the shim says."""
        with open(self.ground.folder / "told", "r+b") as told:
            told.seek(8 * what)
            told.write(value.to_bytes(8, sys.byteorder, signed=True))


def _signals(*signals: signal.Signals) -> Callable[[Kill], None]:
    def strike(kill: Kill) -> None:
        for number, one in enumerate(signals):
            if number:
                time.sleep(kill.chance.uniform(0.0, 0.3))
            kill.run.send_signal(one)

    return strike


def _part(words: str) -> Callable[[Kill], None]:
    """Kills a process whose program and words these are, once there is one."""

    def strike(kill: Kill) -> None:
        while kill.run.poll() is None:
            pids = [pid for pid in proc.tree(kill.run.pid)[1:] if re.search(words, program(pid).partition(" ")[2])]
            if pids:
                pid = kill.chance.choice(pids)
                kill.note["part"] = program(pid).partition(" ")[2][:80]
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.005)
        kill.note["part"] = None

    return strike


def _hang_up(kill: Kill) -> None:
    os.close(kill.note.pop("terminal"))


def _suspend(kill: Kill) -> None:
    """Stops the whole tree, those that start others first, and lets it go on in the opposite order."""
    pids = proc.tree(kill.run.pid)
    for how, those in ((signal.SIGSTOP, pids), (signal.SIGCONT, pids[::-1])):
        for pid in those:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        if how is signal.SIGSTOP:
            time.sleep(kill.suspended_s)


def _set_clock(kill: Kill) -> None:
    """Back or forth by up to a day, and once more a moment later."""
    for _ in range(2):
        seconds = kill.chance.randrange(-86400, 86400)
        kill.tell(CLOCK, seconds)
        time.sleep(kill.chance.uniform(0.0, 1.0))


def _slow_disk(kill: Kill) -> None:
    kill.tell(SLOW, kill.chance.randrange(20_000, 200_000))


def _lose_power(kill: Kill) -> None:
    """What was written by one moment is all there is, with a torn write at the end of the log; opened elsewhere."""
    kill.run.send_signal(signal.SIGSTOP)
    # Stopped once the kernel has done what it was asked last.
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, kill.run.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    copied = kill.ground.folder / "elsewhere"
    shutil.copytree(kill.ground.folder / "runs", copied) if (kill.ground.folder / "runs").exists() else copied.mkdir()
    torn = kill.chance.randbytes(kill.chance.randrange(1, 9000))
    for run in copied.iterdir():
        (run / "results.sqlite-shm").unlink(missing_ok=True)
        if (log := run / "results.sqlite-wal").exists():
            with open(log, "ab") as file:
                file.write(torn)
    kill.run.kill()
    kill.moved = lambda run: copied / run.name


def _run_out_of(kind: int, now: Callable[[int], int], spare: int) -> Callable[[Kill], None]:
    def strike(kill: Kill) -> None:
        # Before there is a run, Python itself is still being loaded, and says in its own way what it lacks.
        while kill.run.poll() is None and not kill.ground.runs:
            time.sleep(0.005)
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            limit = now(kill.run.pid) + kill.chance.randrange(spare)
            resource.prlimit(kill.run.pid, kind, (limit, limit))

    return strike


def _entered(holder: int, folder: Path) -> list[str]:
    """Words before a command that runs in this folder, as the mounts of that process show it."""
    return ["nsenter", f"--mount=/proc/{holder}/ns/mnt", "env", f"--chdir={folder}"]


def _address_space_bytes(pid: int) -> int:
    return resource.getpagesize() * int(Path(f"/proc/{pid}/statm").read_text().split()[0])


def _in_mounts(kill: Kill, *words: str) -> int:
    entered = ["nsenter", f"--mount=/proc/{kill.holder}/ns/mnt"]
    return subprocess.run([*entered, *words], stderr=subprocess.DEVNULL, check=False).returncode


def _fill_disk(kill: Kill) -> None:
    """No page is left where the runs are. The run is then copied to where there is room."""
    runs = f"/proc/{kill.holder}/root{kill.ground.folder}/runs"
    about = os.statvfs(runs)
    used = (about.f_blocks - about.f_bfree) * about.f_bsize
    _in_mounts(
        kill, "mount", "-o", f"remount,size={used + 4096 * kill.chance.randrange(3)}", f"{kill.ground.folder}/runs"
    )


def _write_protect(kill: Kill) -> None:
    """Killed, then resumed where nothing may be written, which is refused in words; then copied elsewhere."""
    kill.run.kill()
    kill.run.wait()
    folder = kill.ground.folder
    _in_mounts(kill, "mount", "-o", "remount,ro", f"{folder}/runs")
    made = sorted(Path(f"/proc/{kill.holder}/root{folder}/runs").glob("*/run.json"))
    if made:
        resumed = kill.ground.start("--resume", f"runs/{made[0].parent.name}", before=_entered(kill.holder, folder))
        kill.note["refused"] = resumed.wait(RUN_LIMIT_S)


class Means(NamedTuple):
    """A way in which a run is struck."""

    strike: Callable[[Kill], None]
    statuses: tuple[int, ...]
    """What the command may end with; 0 where the run came to its end first, or was not to end."""
    kinds: frozenset[str] = frozenset(KINDS)
    needs: str = ""
    """`terminal`, `mounts` or `shim`."""


SERVED = frozenset(KINDS) - WITHOUT_SERVERS
# A part that was killed is a failed trial, or a cell that could not be proved; a shortage is an error in words.
HARMED = (0, 1, 2, 3)
MEANS: dict[str, Means] = {
    "SIGKILL of the lab": Means(_signals(signal.SIGKILL), (0, -signal.SIGKILL)),
    "SIGKILL of the engine": Means(_part(r"tollbar-engine (op|load|store|serve)"), HARMED),
    "SIGKILL of a guard": Means(_part(r"tollbar-engine guard"), HARMED),
    "SIGKILL of the keeper": Means(_part(r"tollbar-engine keep "), HARMED, frozenset(SERVED | {"sqlite"})),
    "SIGKILL of a server": Means(
        _part(r"^(?!\S*tollbar-engine)\S*(nginx|apache2|httpd|samba|slapd|krb5kdc|winbindd|gssproxy)"),
        HARMED,
        frozenset({"nginx", "httpd", "every server"}),
    ),
    "SIGKILL of a database": Means(_part(r"^\S*(postgres|mariadbd)"), HARMED, frozenset(DATABASES)),
    "SIGTERM": Means(_signals(signal.SIGTERM), (0, -signal.SIGTERM)),
    "SIGINT": Means(_signals(signal.SIGINT), (0, 130)),
    "SIGINT twice": Means(_signals(signal.SIGINT, signal.SIGINT), (0, 130, -signal.SIGINT)),
    "closed terminal": Means(_hang_up, (0, -signal.SIGHUP), needs="terminal"),
    "power loss": Means(_lose_power, (0, -signal.SIGKILL)),
    "clock set": Means(_set_clock, (0,), needs="shim"),
    "slow disk": Means(_slow_disk, (0,), needs="shim"),
    "suspended": Means(_suspend, HARMED),
    "disk full": Means(_fill_disk, HARMED, needs="mounts"),
    "disk read-only": Means(_write_protect, (0, -signal.SIGKILL), needs="mounts"),
    "memory limit": Means(
        _run_out_of(
            resource.RLIMIT_AS, lambda pid: 4096 * int(Path(f"/proc/{pid}/statm").read_text().split()[0]), 4 << 20
        ),
        HARMED,
    ),
    "descriptors": Means(
        _run_out_of(resource.RLIMIT_NOFILE, lambda pid: max(map(int, os.listdir(f"/proc/{pid}/fd"))) + 1, 6), HARMED
    ),
}


def pairs(kinds: Iterator[str] | list[str], means: list[str]) -> list[tuple[str, str]]:
    """Every kind with every means that it can be struck by, in an order that is always the same."""
    found = [(kind, name) for kind in kinds for name in means if kind in MEANS[name].kinds]
    random.Random(0).shuffle(found)
    return found


class Undisturbed(NamedTuple):
    """What a run of this kind comes to when nothing happens to it."""

    study: Path
    whole_s: float
    trials: int
    tolls: Mapping[str, Any]


class Survivors:
    """A ground, and what runs of each kind are like on it."""

    def __init__(self, ground: Ground, suspended_s: float) -> None:
        self.ground = ground
        self.suspended_s = suspended_s
        self._undisturbed: dict[str, Undisturbed] = {}
        self._shim: Path | None = None

    def undisturbed(self, kind: str) -> Undisturbed:
        """Measures it twice where it prepares something that is kept. Raises RuntimeError where it cannot be run."""
        if kind not in self._undisturbed:
            study = self.ground.folder / f"{kind.replace(' ', '-')}.toml"
            study.write_text(KINDS[kind].replace("BLOCKS", str(BLOCKS)))
            for _ in range(2):
                began = time.monotonic()
                if self.ground.finish(study, *EXACTLY) != 0:
                    raise RuntimeError(f"{kind}: {self.ground.output()}")
                whole_s = time.monotonic() - began
                found = Undisturbed(study, whole_s, len(trials_of(self.ground.runs[-1])), self._tolls())
                shutil.rmtree(self.ground.folder / "runs")
            if (left := self.ground.left()) != NOTHING:
                raise RuntimeError(f"{kind}: an undisturbed run leaves {left}")
            self._undisturbed[kind] = found
        return self._undisturbed[kind]

    def kill(self, kind: str, name: str, seed: int) -> dict[str, Any]:
        """Strikes a run once, and says what became of it; `wrong` names all that should not be."""
        ground, means, chance = self.ground, MEANS[name], random.Random(seed)
        reference = self.undisturbed(kind)
        share = chance.random()
        began = time.monotonic()
        with self._prepared(means.needs) as (before, environment, note, holder):
            stdin = note.pop("stdin", None)
            run = ground.start(reference.study, *EXACTLY, before=before, environment=environment, stdin=stdin)
            kill = Kill(ground, chance, run, self.suspended_s, note, holder)
            if stdin is not None:
                os.close(stdin)
            wrong: list[str] = []
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(share * reference.whole_s)
            programs = len(ground.under_way(run))
            runs = Path(f"/proc/{holder}/root{ground.folder}/runs") if holder else ground.folder / "runs"
            committed = self._trials(runs) if not holder else self._trials_in_mounts(run, runs)
            early = run.poll() is not None
            means.strike(kill)
            try:
                status = run.wait(RUN_LIMIT_S)
            except subprocess.TimeoutExpired:
                run.kill()
                status = run.wait()
                wrong.append(f"the run went on for {RUN_LIMIT_S} s")
            if (terminal := note.pop("terminal", None)) is not None:
                os.close(terminal)
            said = ground.output()
            if holder and runs.exists():
                # Where there is room, and may be written.
                shutil.copytree(runs, ground.folder / "elsewhere")
                kill.moved = lambda run: ground.folder / "elsewhere" / run.name
        if status not in means.statuses:
            wrong.append(f"status {status}")
        if "Traceback" in said:
            wrong.append(f"a traceback: {said[-600:]}")
        if kill.note.get("refused", 2) not in (0, 2):
            wrong.append(f"where nothing may be written it ended with status {kill.note['refused']}")
        if (left := ground.left()) != NOTHING:
            wrong.append(f"left: { {what: value for what, value in left.items() if value} }")
        wrong += self._resumed(kill, reference, committed)
        for folder in ("runs", "elsewhere"):
            shutil.rmtree(ground.folder / folder, ignore_errors=True)
        beside = {path.name for path in ground.folder.iterdir() if path.suffix not in (".toml", ".c", ".so")}
        beside -= {"tmp", "output", "said.json", "told", ".cache"}
        if beside:
            wrong.append(f"files outside the run: {sorted(beside)}")
            for name in beside:
                shutil.rmtree(ground.folder / name, ignore_errors=True)
        return {
            "seed": seed, "kind": kind, "means": name, "after_s": round(share * reference.whole_s, 3), "late": early,
            "processes": programs, "committed": len(committed), "status": status, **kill.note,
            "took_s": round(time.monotonic() - began, 1), "said": said.strip().splitlines()[-1:], "wrong": wrong,
        }  # fmt: skip

    def clear(self) -> None:
        """Ends and removes what an attempt that came to nothing has left."""
        for pid in self.ground.descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.ground.left()
        for folder in ("runs", "elsewhere"):
            shutil.rmtree(self.ground.folder / folder, ignore_errors=True)

    def _resumed(self, kill: Kill, reference: Undisturbed, committed: list[Kept]) -> Iterator[str]:
        """Goes on with the run, and yields what is not as it should be."""
        ground = self.ground
        made = sorted(path.parent for path in (ground.folder / "runs").glob("*/run.json")) or sorted(
            path.parent for path in (ground.folder / "elsewhere").glob("*/run.json")
        )
        if not made:
            if committed:
                yield "the run is lost"
            kill.note["resumed"] = "begun anew"
            if ground.finish(reference.study, *EXACTLY) != 0:
                yield f"cannot be begun anew: {ground.output()}"
            return
        run = kill.moved(made[0]) if kill.moved else made[0]
        before = trials_of(run)
        if before[: len(committed)] != committed:
            yield f"of {len(committed)} trials that were committed {len(before)} are there, or they are others"
        if len(before) % 2:
            yield "half a heat is there"
        status = ground.finish("--resume", run, *EXACTLY)
        harmed = [reason for outcome, reason in cells_of(run) if outcome != "ok"]
        kill.note["resumed"] = status
        if status != 0 and not (status == 1 and harmed):
            yield f"resumed, it ended with status {status}: {ground.output()[-300:]}"
        if (left := ground.left()) != NOTHING:
            yield f"left by the resumed run: {left}"
        after = trials_of(run)
        if after[: len(before)] != before:
            yield "trials that were committed have changed"
        if harmed:
            kill.note["harmed"] = harmed
        elif len(after) != reference.trials:
            yield f"{len(after)} trials, and {reference.trials} when undisturbed"
        tolls, same, overlapping = self._tolls(), 0, 0
        for key, toll in reference.tolls.items():
            other = tolls.get(key)
            if other is None or other["low"] is None or toll["low"] is None:
                if (
                    not harmed
                    and (other or toll)["verdict"] != toll["verdict"]
                    and not any(trial.outcome != "ok" for trial in after)
                ):
                    yield f"no toll of {key}: {other and other['reason']}"
            elif other["verdict"] == toll["verdict"]:
                same += 1
            elif other["low"] <= toll["high"] and toll["low"] <= other["high"]:
                overlapping += 1
            else:
                yield f"another answer: {key}: {toll['low']}-{toll['high']} became {other['low']}-{other['high']}"
        kill.note["answers"] = {"verdict": same, "interval": overlapping}

    def _tolls(self) -> dict[str, Any]:
        """Those of CPU time that the last run printed, by what they are of."""
        try:
            said = json.loads((self.ground.folder / "said.json").read_text())
        except ValueError:
            return {}
        keys = ("choice", "provider", "bed", "setting")
        return {
            json.dumps([toll[key] for key in keys]): toll
            for study in said["studies"]
            for toll in study["tolls"]
            if toll["metric"] == "cpu" and not toll["twin"]
        }

    @staticmethod
    def _trials(runs: Path) -> list[Kept]:
        """Those that are committed at this moment."""
        for about in runs.glob("*/run.json"):
            return trials_of(about.parent)
        return []

    def _trials_in_mounts(self, run: subprocess.Popen[bytes], runs: Path) -> list[Kept]:
        """The same of a copy, made while the lab is stopped: SQLite resolves links, and leaves those mounts by that."""
        looked = self.ground.folder / "looked"
        if not runs.exists():
            return []
        run.send_signal(signal.SIGSTOP)
        try:
            shutil.copytree(runs, looked)
        finally:
            run.send_signal(signal.SIGCONT)
        try:
            return self._trials(looked)
        finally:
            shutil.rmtree(looked)

    @contextlib.contextmanager
    def _prepared(self, needs: str) -> Iterator[tuple[list[str], dict[str, str], dict[str, Any], int]]:
        """What is put before the command, its environment, what the means finds in its note, who holds its mounts."""
        folder = self.ground.folder
        match needs:
            case "terminal":
                terminal, stdin = os.openpty()
                yield ["setsid", "--ctty"], {}, {"terminal": terminal, "stdin": stdin}, 0
            case "shim":
                (folder / "told").write_bytes(bytes(16))
                yield [], {"LD_PRELOAD": str(self._compiled()), "SURVIVE_TOLD": str(folder / "told")}, {}, 0
            case "mounts":
                (folder / "runs").mkdir()
                held = f"mount -t tmpfs -o size=64m none {folder}/runs && echo held && exec sleep 600"
                holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", held], stdout=subprocess.PIPE)
                assert holder.stdout is not None
                assert holder.stdout.readline() == b"held\n", "no file system can be mounted here"
                children, self.ground.children = self.ground.children, self.ground.children | {holder.pid}
                try:
                    yield _entered(holder.pid, folder), {}, {}, holder.pid
                finally:
                    holder.kill()
                    holder.wait()
                    holder.stdout.close()
                    self.ground.children = children
                    (folder / "runs").rmdir()
            case _:
                yield [], {}, {}, 0

    def _compiled(self) -> Path:
        if self._shim is None:
            source = self.ground.folder / "shim.c"
            source.write_text(SHIM)
            self._shim = source.with_suffix(".so")
            subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", self._shim, source], check=True)
        return self._shim


def main(arguments: list[str]) -> None:
    """Strikes as often as asked; a line of the log each, and a table at the end. Status 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench survive", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first kill; each has the next")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only runs of this kind (repeatable)")
    parser.add_argument("--means", action="append", choices=MEANS, help="only this means (repeatable)")
    parser.add_argument("--log", type=Path, default=Path(tempfile.gettempdir()) / "survive.jsonl")
    parser.add_argument("--suspended", type=float, default=2.0, metavar="SECONDS", help="how long a run is suspended")
    asked = parser.parse_args(arguments)
    all_pairs = pairs(asked.kind or list(KINDS), asked.means or list(MEANS))
    if not all_pairs:
        parser.error("no run of that kind can be struck so")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found: Counter[str] = Counter()
    with a_ground() as ground, open(asked.log, "a", buffering=1) as log:
        survivors = Survivors(ground, asked.suspended)
        for seed in range(asked.seed, asked.seed + asked.kills):
            kind, means = all_pairs[seed % len(all_pairs)]
            try:
                line = survivors.kill(kind, means, seed)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                # A machine so busy that a run does not end in its time shows nothing of it.
                survivors.clear()
                line = {"seed": seed, "kind": kind, "means": means, "not_run": str(error)[-300:], "wrong": []}
            log.write(json.dumps(line) + "\n")
            print(
                f"{seed:6} {kind:12} {means:22} {'; '.join(line['wrong']) or line.get('not_run') or 'ok'}", flush=True
            )
            found["not run" if "not_run" in line else "wrong" if line["wrong"] else "survived"] += 1
    print(f"{asked.kills} kills: {dict(found)}; log: {asked.log}")
    sys.exit(1 if found["wrong"] else 0)
