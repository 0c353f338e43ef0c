"""Programs under a guard, which ends a program and its children on request and when the lab has ended."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from tollbar.catalog.servers import NotStarted
from tollbar.core import control_groups, proc
from tollbar.core.records import Outcome
from tollbar.core.runner import confined, start_engine
from tollbar.core.runner.confined import Account
from tollbar.lab.servers.sandbox import Sandbox, wait

# Time after which a program that was asked to stop is killed.
TERM_GRACE_S = 2.0
# The guard itself gives up after ten seconds.
KILLED_S = 12.0
# The end of a log, which has the reason of a failure.
KEPT_LOG_BYTES = 16 * 1024
FULL = os.strerror(errno.ENOSPC)
# Variables passed to the embedded server: whether it counts its calls.
KEPT = ("TOLLBAR_COUNT_CALLS",)
# Status of the guard if a process outlived SIGKILL.
NOT_ENDED = 125


class Guarded:
    """Program that runs in a work directory with a log; it cannot outlive the lab."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        sandbox: Sandbox,
        work_dir: Path,
        log: Path,
        account: Account | None = None,
        reaches: Iterable[str | Path] = (),
        low_port: bool = False,
        is_lab: bool = False,
        is_accounted: bool = False,
        stop: str = "TERM",
        grace_s: float = TERM_GRACE_S,
        cores: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
        stdin: IO[bytes] | None = None,
        stdout: int | IO[bytes] | None = None,
    ) -> None:
        """Start the program. `log` is in the sandbox; `stdout` goes there too, unless it is given. Raises OSError.

        `account` owns the processes in root's lab; `low_port` lets it listen on a port below 1024, and `reaches` are
        files besides the program that it must be able to read. Without `cores` it stays on the lab's cores. `is_lab`:
        it simulates a machine, and has all rights of the lab. `is_accounted`: its CPU time is a cost, so it gets a
        control group if the machine allows it.
        """
        self.name = Path(words[0]).name
        self.log = log
        self._sandbox = sandbox
        self.work_dir = work_dir
        self._grace_s = grace_s
        self._fault: str | None = None
        self._pid: int | None = None
        pinned = ["--core", ",".join(map(str, cores))] if cores else []
        self._group = sandbox.groups.make() if is_accounted else None
        grouped = ["--group", str(self._group)] if self._group else []
        guard = ["guard", "--tree", "--child-of", str(os.getpid()), "--stop", stop, *pinned, *grouped]
        # Everything that the lab starts writes its errors into the sandbox, by which the keeper finds it.
        keeps = [confined.LOW_PORT] if low_port else []
        limits = [] if is_lab else confined.words(account, keeps=keeps, reaches=(words[0], *reaches))
        with _opened(log, account) as output:
            self.process = start_engine(
                [*guard, "--", *limits, *words],
                stdin=stdin or subprocess.DEVNULL,
                stdout=output if stdout is None else stdout,
                stderr=output,
                cwd=work_dir,
                env={**_plain_environment(work_dir), **(environment or {})},
                # Ctrl-C in the terminal must only reach the lab, which then stops its servers.
                start_new_session=True,
                # Permitted accounts reach its sockets through its group.
                umask=0o022,
            )
        sandbox.running.append(self)

    @property
    def pid(self) -> int:
        """Root of the process tree."""
        return self.process.pid

    def fault(self) -> str | None:
        """Return how the program ended, with the line that has the reason; None: it runs."""
        status = self.process.poll()
        if status is None:
            program = self._program()
            if program is None or proc.runs(program):
                return None
            # A client may notice first: the kernel closes connections before it informs the guard, and a core may be
            # busy.
            with suppress(subprocess.TimeoutExpired):
                status = wait(self.process, KILLED_S)
        if status is None:
            return None
        if self._fault is None:
            ended = (
                f"was ended by {_signal_name(status)}" if status > 128 or status < 0 else f"ended with status {status}"
            )
            self._fault = ": ".join([f"{self.name} {ended}", *_reason(self.output())])
        return self._fault

    def _program(self) -> int | None:
        """Return the process that the guard has started; None: not yet."""
        if self._pid is None:
            # The first child is the program; adopted processes come later.
            self._pid = next(iter(proc.tree(self.pid)[1:]), None)
        return self._pid

    def output(self, since: int = 0) -> str:
        """Return the end of its log after `since` bytes, without the sandbox's paths."""
        with suppress(OSError):
            text = end_of(self.log, since).decode(errors="replace").strip()
            return text.replace(f"{self.work_dir}/", "").replace(f"{self._sandbox.directory}/", "")
        return ""

    def log_bytes(self) -> int:
        """Return the current length of its log."""
        with suppress(OSError):
            return self.log.stat().st_size
        return 0

    def why_it_ended(self, refusals: Sequence[re.Pattern[str]]) -> NotStarted:
        """Return its failure: `unsupported` with the words of a refusal (the pattern's group), else `failed`."""
        for refusal in refusals:
            # One line may cause another, in an order that depends on the library, so all are reported.
            words = dict.fromkeys(match.group(1).strip() for match in refusal.finditer(self.output()))
            if words:
                return NotStarted(Outcome.UNSUPPORTED, f"{self.name} refuses: {'; '.join(words)}")
        return NotStarted(Outcome.FAILED, self.fault() or f"{self.name} ended without a message")

    def end(self) -> str | None:
        """Ask the program to end, kill it after its grace period, and return the processes that remain, in words."""
        # The guard asks the program at the first SIGTERM, and kills it at the second.
        for limit_s in (self._grace_s, KILLED_S):
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    wait(self.process, limit_s)
        status = self.process.poll()
        # If the guard itself was killed, its processes may still run.
        left = status is not None and status < 0 and not proc.end_session(self.pid, KILLED_S)
        if self._group is not None:
            # The guard has removed the group, unless it was killed.
            control_groups.remove(self._group)
        if self.process.stdout is not None:
            self.process.stdout.close()
        # Last: if Ctrl-C interrupts this method, the sandbox still ends the program.
        if self in self._sandbox.running:
            self._sandbox.running.remove(self)
        if left or status is None or status == NOT_ENDED:
            return f"a process of {self.name} could not be ended (session {self.pid})"
        return None

    def ends_well(self, deadline: float) -> bool:
        """Wait for its end and return whether its status was 0. Raises subprocess.TimeoutExpired after ending it.

        `deadline` is a time of the monotonic clock.
        """
        try:
            return wait(self.process, max(0.0, deadline - time.monotonic())) == 0
        finally:
            self.end()


def _reason(output: str) -> Sequence[str]:
    """Return the line of a log with the reason of an end: its last one, unless one before reports a full disk.

    Programs clean up after that: initdb ends with "removing data directory".
    """
    lines = output.splitlines()
    return [line for line in lines if FULL in line][-1:] or lines[-1:]


def end_of(log: Path, since: int = 0) -> bytes:
    """Return the kept end of a log after `since` bytes; a log may have any length."""
    with open(log, "rb") as file:
        file.seek(max(since, file.seek(0, os.SEEK_END) - KEPT_LOG_BYTES))
        return file.read(KEPT_LOG_BYTES)


def _opened(log: Path, account: Account | None) -> IO[bytes]:
    """Open a log for the account to append to. Its folder is the lab's, so nobody else can replace it."""
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    if account:
        account.owns(handle)
    return os.fdopen(handle, "ab")


def _plain_environment(work_dir: Path) -> dict[str, str]:
    """Return an environment without the user's variables, so that a server behaves the same for every user.

    The variables in `KEPT` are passed on.
    """
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "PATH": confined.SYSTEM_PATH,
        "LC_ALL": "C",
        "HOME": str(work_dir),
        "TMPDIR": str(work_dir),
    }


def _signal_name(status: int) -> str:
    with suppress(ValueError):
        return signal.Signals(status - 128 if status > 0 else -status).name
    return f"signal {status}"
