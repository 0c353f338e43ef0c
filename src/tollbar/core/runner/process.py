"""Processes of runners: started under the guard, on a separate core, and ended with their children."""

from __future__ import annotations

import fcntl
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from tollbar.core.errors import TollbarError
from tollbar.core.runner import confined
from tollbar.core.runner.confined import Account

# A line holds a chunk or a record: some kilobytes. More than this is not an answer.
MOST_BYTES = 16 * 1024 * 1024
# Keys and messages in hexadecimal are some kilobytes.
PIPE_BYTES = 1024 * 1024
# The end of standard error, which gives the reason of a crash.
KEPT_LOG_BYTES = 2000
# The guard asks a process to end at the first SIGTERM and kills it at the second. Two that arrive together count once,
# so some milliseconds lie between them.
KILL_POLL_S = 0.02
# A runner that has closed its output ends within a fraction of this.
END_POLL_S = 0.001
# A process outlives SIGKILL only while the kernel works for it.
KILL_LIMIT_S = 12.0

# The engine's other programs, in the folder of the engine, which becomes one of them for the commands that it has.
PROGRAMS = ("tollbar-primitives", "tollbar-services")
_NOT_STARTED = re.compile(r"(?:guard|tollbar-engine): cannot start (.+?): (.*)")


@cache
def engine() -> Path:
    """Return the path of the engine. Raises TollbarError with a hint if it is not installed."""
    name = "tollbar-engine"
    places = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    for place in places:
        if os.access(place / name, os.X_OK):
            return place / name
    found = shutil.which(name)
    if found is None:
        raise TollbarError(
            "the engine is not installed; every command that measures needs it",
            where=name,
            hint="`make run` builds and installs it",
        )
    return Path(found)


def programs() -> list[Path]:
    """Return the paths of all programs of the engine; the engine itself is the first."""
    return [engine(), *(engine().with_name(name) for name in PROGRAMS)]


def start_engine(words: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start the engine with these arguments; `options` are Popen's.

    Raises TollbarError if the engine cannot be started any more, and OSError if no process can.
    """
    program = str(engine())
    try:
        return subprocess.Popen([program, *words], **options)
    except OSError as error:
        if error.filename != program:
            raise
        raise _lost(error.strerror) from error


def _lost(why: str | None) -> TollbarError:
    """Return the error of a missing engine: it ends the run, because every cell needs the engine."""
    return TollbarError(
        f"the engine, which was installed when the run began, cannot be started: {why}",
        where=str(engine()),
        hint="install it again (`make run`), then continue with `tollbar run --resume RUN`",
    )


class Ended(Exception):
    """Raised if no line came: the runner ended, timed out, or answered too much."""

    def __init__(self, reason: str, *, timed_out: bool = False) -> None:
        self.reason = reason
        self.timed_out = timed_out
        super().__init__(reason)


class Process:
    """A runner that is addressed line by line. It ends with the lab, and its children end with it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        core: int | None = None,
        account: Account | None = None,
        is_lab: bool = False,
    ) -> None:
        """Start the runner. In root's lab it has this account, or else root's, and only the needed capabilities.

        `is_lab`: it starts servers on another machine for the lab, and has all rights of the lab.
        """
        pinned = ["--core", str(core)] if core is not None else []
        reached = [word for word in command if word.startswith("/")]
        limits = [] if is_lab else confined.words(account, reaches=reached, dies_with_guard=True)
        guarded = ["guard", "--tree", "--child-of", str(os.getpid()), *pinned, "--", *limits, *command]
        self._process = start_engine(
            guarded, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self._stdin: IO[bytes] = self._process.stdin
        # Input fits into the pipe, so a runner that never reads cannot block the lab.
        fcntl.fcntl(self._stdin, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._heard, self._messages = bytearray(), bytearray()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ, self._heard)
        self._selector.register(self._process.stderr, selectors.EVENT_READ, self._messages)

    @property
    def pid(self) -> int:
        """Process id of the guard, which is the runner's parent."""
        return self._process.pid

    def say(self, line: Mapping[str, Any]) -> None:
        """Send one line. If the runner does not read any more, waiting for its answer reports that."""
        with suppress(BrokenPipeError):
            self._stdin.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
            self._stdin.flush()

    def beat(self) -> None:
        """Send an empty line as a keep-alive, from any thread."""
        with suppress(BrokenPipeError):
            self._stdin.write(b"\n")
            self._stdin.flush()

    def end_input(self) -> None:
        """Close the runner's input."""
        with suppress(BrokenPipeError):
            self._stdin.close()

    def hear(self, limit_s: float) -> bytes:
        """Return its next line. Raises Ended if none comes within `limit_s` seconds."""
        deadline = time.monotonic() + limit_s
        while b"\n" not in self._heard:
            self._refuse_more()
            if not self._has_output():
                raise Ended(self._how_it_ended(max(0.0, deadline - time.monotonic())))
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise Ended(f"no answer within {limit_s:.0f} s", timed_out=True)
            self._take_in(left_s)
        return self._next_line()

    def answers_within(self, limit_s: float) -> bool:
        """Return whether its next line, the end of its output, or too much of it comes within `limit_s` seconds."""
        deadline = time.monotonic() + limit_s
        while b"\n" not in self._heard and self._has_output() and len(self._heard) <= MOST_BYTES:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            self._take_in(left_s)
        return True

    def line_here(self) -> bytes | None:
        """Return its next line if it is complete; an incomplete one belongs to the next answer."""
        self._take_in(0)
        return self._next_line() if b"\n" in self._heard else None

    def how_it_ends(self, limit_s: float) -> str | None:
        """Return how it failed to end after its last line, or None if it ended well.

        Raises Ended if it does not end.
        """
        deadline = time.monotonic() + limit_s
        while self._has_output():
            self._refuse_more()
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise Ended(f"the runner did not end within {limit_s:.0f} s of its last line", timed_out=True)
            self._take_in(left_s)
        if self._heard.strip():
            return "the runner sent more after its last line"
        reason = self._how_it_ended(max(0.0, deadline - time.monotonic()))
        return None if self._process.returncode == 0 else reason

    def terminate(self) -> None:
        """Ask the runner to end, from any thread: a thread that waits for its next line then gets Ended."""
        self._process.terminate()

    def kill(self) -> None:
        """End the runner and its remaining children, and reap it."""
        deadline = time.monotonic() + KILL_LIMIT_S
        ended = self._has_ended()
        while not ended and time.monotonic() < deadline:
            os.kill(self._process.pid, signal.SIGTERM)
            ended = self._has_ended(KILL_POLL_S)
        if not ended:
            os.kill(self._process.pid, signal.SIGKILL)
            self._has_ended(KILL_LIMIT_S)
        self._selector.close()
        for pipe in (self._stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _next_line(self) -> bytes:
        line, _, rest = self._heard.partition(b"\n")
        self._heard[:] = rest
        return bytes(line)

    def _refuse_more(self) -> None:
        if len(self._heard) > MOST_BYTES:
            raise Ended(f"the answer is larger than {MOST_BYTES // 1024**2} MiB")

    def _has_output(self) -> bool:
        return any(key.data is self._heard for key in self._selector.get_map().values())

    def _take_in(self, limit_s: float) -> None:
        for key, _ in self._selector.select(limit_s):
            read = os.read(key.fd, 1 << 16)
            if not read:
                self._selector.unregister(key.fileobj)
            key.data.extend(read)
        del self._messages[:-KEPT_LOG_BYTES]

    def _has_ended(self, limit_s: float = 0.0) -> bool:
        """Return whether the guard ends within this time; then its status is known, and its children are gone."""
        deadline = time.monotonic() + limit_s
        while self._process.returncode is None:
            found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                if found.si_code != os.CLD_EXITED:
                    # The guard itself was killed and could not end its children. Until it is reaped, its group's id is
                    # not reused.
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            elif time.monotonic() >= deadline:
                return False
            else:
                time.sleep(END_POLL_S)
        return True

    def _how_it_ended(self, limit_s: float) -> str:
        """Return how the runner ended, in words.

        Raises TollbarError if its guard could not start the engine any more.
        """
        if not self._has_ended(limit_s):
            raise Ended("the runner sent nothing more and did not end", timed_out=True)
        status = self._process.returncode
        # For a command that a signal ended, the guard returns the status of a shell: 128 and the signal's number.
        if status < 0 or status > 128:
            how = f"the runner was ended by {_signal_name(-status if status < 0 else status - 128)}"
        else:
            how = f"the runner ended with status {status}"
        with suppress(OSError):
            self._take_in(0)
        messages = self._messages.decode(errors="replace").strip()
        if not messages:
            return how
        # setpriv starts the runners of root's lab below the guard, and words the same error differently.
        last = messages.splitlines()[-1].replace("setpriv: failed to execute ", "guard: cannot start ", 1)
        lost = _NOT_STARTED.fullmatch(last)
        if lost and lost[1] in [str(program) for program in programs()]:
            raise _lost(lost[2].partition(" (os error ")[0])
        return f"{how}: {last}"


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
