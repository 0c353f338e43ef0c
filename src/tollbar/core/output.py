"""Output to streams, pipes and devices: after Ctrl-C or SIGTERM, no reader is waited for."""

from __future__ import annotations

import errno
import io
import os
import select
from typing import Any, ClassVar

# Time for a reader to take a piece of the last messages after an interrupt.
LAST_WAIT_S = 0.5


class Output(io.FileIO):
    """Output file that a reader who stopped reading cannot keep open after an interrupt.

    A pager, for example, ignores Ctrl-C and reads no more than a screen. Python writes the rest of its buffer when it
    closes a file and when it ends, and would wait for that reader without end.
    """

    is_ending: ClassVar[bool] = False
    """True after an interrupt, for all outputs."""
    fault: OSError | None = None
    """Reason why nothing is written any more."""

    def write(self, content: Any) -> int:
        """Write a part of the content, and return its length; all of it is dropped after a fault. Raises OSError."""
        if self.fault is not None:
            return len(content)
        if not Output.is_ending:
            return super().write(content) or 0
        poll = select.poll()
        poll.register(self.fileno(), select.POLLOUT)
        if not poll.poll(LAST_WAIT_S * 1000):
            self.fault = TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            return len(content)
        # A writable pipe takes this length without waiting. See pipe(7).
        return super().write(memoryview(content)[: select.PIPE_BUF]) or 0


def end() -> None:
    """Stop waiting for readers, because the user or the system ends the command."""
    Output.is_ending = True
