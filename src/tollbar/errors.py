"""What can go wrong, said the same way everywhere: what, where, and what to try."""

from __future__ import annotations

import difflib
import signal
import sys
from collections.abc import Iterable
from enum import IntEnum
from typing import Any

# What finalizers do takes microseconds; where one is under way again, it is raised again.
FINALIZED_S = 0.01


class ExitStatus(IntEnum):
    """The command's exit status, for scripts."""

    DONE = 0
    SOME_FAILED = 1
    UNUSABLE = 2
    CANNOT_TELL = 3
    INTERRUPTED = 130


class TollbarError(Exception):
    """Something the user can act on. Printed as one line and a hint, never as a traceback."""

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(f"{where}: {what}" if where else what)


def unknown(kind: str, name: str, known: Iterable[str], *, where: str | None = None) -> TollbarError:
    """The error for an unknown name, with the nearest known ones."""
    names = sorted(known)
    return TollbarError(f"no such {kind}: `{name}`", where=where, hint=nearest(name, names))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """`did you mean …?`, or the whole list while it is short, or nothing."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(f"`{n}`" for n in near) + "?"
    # A list longer than a line or two hides the answer it holds.
    if names and len(names) <= 20:
        return "known: " + ", ".join(names)
    return None


def interrupt_again(lost: Any) -> None:
    """A hook (`sys.unraisablehook`) for what is raised in a finalizer, which Python ignores in so many words.

    What has a run end may come just there, as anywhere: it is raised once more when the finalizer is done with.
    """
    if issubclass(lost.exc_type, KeyboardInterrupt):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, FINALIZED_S)
    else:
        sys.__unraisablehook__(lost)
