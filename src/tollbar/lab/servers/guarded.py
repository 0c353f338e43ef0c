"""A program under a guard, which ends all that the program started: when it is asked to, and when the lab has ended."""

from __future__ import annotations

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

# A program that was asked to stop and has not by then is killed.
TERM_GRACE_S = 2.0
# The guard itself gives up after ten seconds.
KILLED_S = 12.0
# The end of a log, which is where a program says why it gave up.
KEPT_LOG_BYTES = 16 * 1024
# What the embedded server is told through the lab: whether it counts what it does.
KEPT = ("TOLLBAR_COUNT_CALLS",)
# The guard's status when a process outlived SIGKILL.
NOT_ENDED = 125


class Guarded:
    """A program that runs in a work directory, its output in a log; it cannot outlive the lab."""

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
        """Start it. `log` is in the sandbox; `stdout` is the log too, unless it is given. Raises OSError.

        `account` is whose processes they are in root's lab; `low_port` lets that account listen on a port below 1024,
        and `reaches` are the files besides the program that it must be able to read, wherever they are. Without `cores`
        it stays where the lab is. `is_lab`: it makes a machine up, and has all rights of the lab. `is_accounted`: its
        CPU time is a cost, so that it has a control group of its own where the machine allows it.
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
        # Everything that the lab starts writes its errors into the sandbox: by that the keeper knows what to end.
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
                # Ctrl-C in the terminal is for the lab, which then stops its servers.
                start_new_session=True,
                # Whoever may use its sockets reaches them by its group.
                umask=0o022,
            )
        sandbox.running.append(self)

    @property
    def pid(self) -> int:
        """The root of the process tree."""
        return self.process.pid

    def fault(self) -> str | None:
        """How it ended, with its last line, if it did; None: it runs."""
        status = self.process.poll()
        if status is None:
            program = self._program()
            if program is None or proc.runs(program):
                return None
            # A client notices first: the kernel closes connections before it tells the guard, and a core may be busy.
            with suppress(subprocess.TimeoutExpired):
                status = wait(self.process, KILLED_S)
        if status is None:
            return None
        if self._fault is None:
            ended = (
                f"was ended by {_signal_name(status)}" if status > 128 or status < 0 else f"ended with status {status}"
            )
            self._fault = ": ".join([f"{self.name} {ended}", *self.output().splitlines()[-1:]])
        return self._fault

    def _program(self) -> int | None:
        """Return the process that the guard has started; None: there is none yet."""
        if self._pid is None:
            # The first one: whatever the guard adopts comes later.
            self._pid = next(iter(proc.tree(self.pid)[1:]), None)
        return self._pid

    def output(self, since: int = 0) -> str:
        """The end of its log, behind so many bytes; without the sandbox's paths, which mean nothing to a reader."""
        with suppress(OSError):
            text = end_of(self.log, since).decode(errors="replace").strip()
            return text.replace(f"{self.work_dir}/", "").replace(f"{self._sandbox.directory}/", "")
        return ""

    def log_bytes(self) -> int:
        """How long its log is by now."""
        with suppress(OSError):
            return self.log.stat().st_size
        return 0

    def why_it_ended(self, refusals: Sequence[re.Pattern[str]]) -> NotStarted:
        """Its own words: `unsupported` where they are those of a refusal (the group of a pattern), else `failed`."""
        for refusal in refusals:
            # One line may be the effect of another, and which is which depends on the library.
            words = dict.fromkeys(match.group(1).strip() for match in refusal.finditer(self.output()))
            if words:
                return NotStarted(Outcome.UNSUPPORTED, f"{self.name} refuses: {'; '.join(words)}")
        return NotStarted(Outcome.FAILED, self.fault() or f"{self.name} said nothing that could be read")

    def end(self) -> str | None:
        """Asks it to end, kills it after its grace, and says what could not be ended."""
        # The guard asks the program when it is asked for the first time, and kills when for the second.
        for limit_s in (self._grace_s, KILLED_S):
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    wait(self.process, limit_s)
        status = self.process.poll()
        # The guard itself was killed: the processes that it would have ended may still run.
        left = status is not None and status < 0 and not proc.end_session(self.pid, KILLED_S)
        if self._group is not None:
            # The guard has removed it, unless it was killed.
            control_groups.remove(self._group)
        if self.process.stdout is not None:
            self.process.stdout.close()
        # Last: what Ctrl-C interrupts here is ended with the sandbox.
        if self in self._sandbox.running:
            self._sandbox.running.remove(self)
        if left or status is None or status == NOT_ENDED:
            return f"a process of {self.name} could not be ended (it is of session {self.pid})"
        return None

    def ends_well(self, deadline: float) -> bool:
        """Waits for its end and says whether its status was 0. Raises subprocess.TimeoutExpired; it has ended then too.

        `deadline` is a time of the monotonic clock.
        """
        try:
            return wait(self.process, max(0.0, deadline - time.monotonic())) == 0
        finally:
            self.end()


def end_of(log: Path, since: int = 0) -> bytes:
    """Return the last of a log that is kept, behind so many bytes: its writer may make it as long as it likes."""
    with open(log, "rb") as file:
        file.seek(max(since, file.seek(0, os.SEEK_END) - KEPT_LOG_BYTES))
        return file.read(KEPT_LOG_BYTES)


def _opened(log: Path, account: Account | None) -> IO[bytes]:
    """Open a log for the account to append to. Its folder is the lab's: nobody else can replace it."""
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    if account:
        account.owns(handle)
    return os.fdopen(handle, "ab")


def _plain_environment(work_dir: Path) -> dict[str, str]:
    """Nothing of the user's: a server behaves the same for each of them. But the engine counts where it is told to."""
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
