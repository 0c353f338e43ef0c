"""What can go wrong, said the same way everywhere: what, where, and what to try."""

from __future__ import annotations

import signal
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NoReturn

from tollbar.core import spelling
from tollbar.core.renamed import WORDS

# A line of a screen or two: a file of others may have a name of a megabyte.
MOST_LETTERS = 1000
MOST_OF_PATH = 4096

# What finalizers do takes microseconds; where one is under way again, it is raised again.
FINALIZED_S = 0.01


class _Printable(dict[int, str]):
    """Return for each character the one that is printed: a replacement for those that steer a terminal."""

    def __missing__(self, code: int) -> str:
        # Category C: control, format (such as those that turn text around), surrogate, private and unassigned.
        # Zl and Zp separate lines as well, and nothing of Tollbar's does so by them.
        category = unicodedata.category(chr(code))
        is_printed = code == ord("\n") or not category.startswith(("C", "Zl", "Zp"))
        is_space = code == ord("\t") or category in ("Zl", "Zp")
        shown = chr(code) if is_printed else " " if is_space else "\N{REPLACEMENT CHARACTER}"
        # All characters together would take 100 MB.
        return self.setdefault(code, shown) if code < 0x10000 else shown


_PRINTABLE = _Printable()


def printable(text: str) -> str:
    """Return the text without characters that steer a terminal or turn text around; lines stay lines.

    What a run, a server or a file name has in it may be anybody's.
    """
    if text.isprintable():
        return text
    return "\n".join(line if line.isprintable() else line.translate(_PRINTABLE) for line in text.split("\n"))


def one_line(text: str) -> str:
    """Return the text as `printable` does, in one line: what is a cell or a name is no line of its own."""
    return printable(text.replace("\n", " "))


def printable_in(document: dict[str, Any]) -> dict[str, Any]:
    """Change each text in a document of JSON to what `printable` returns, keys too. Return the document."""
    left: list[Any] = [document]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            said = {
                printable(name): printable(inner) if isinstance(inner, str) else inner for name, inner in one.items()
            }
            one.clear()
            one.update(said)
            left += said.values()
        elif isinstance(one, list):
            one[:] = [printable(inner) if isinstance(inner, str) else inner for inner in one]
            left += one
    return document


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
        self.what = what = what if len(what) <= MOST_LETTERS else f"{what[:MOST_LETTERS]}…"
        if where is not None and len(where) > MOST_OF_PATH:
            # No file has a longer path, and the terminal would show nothing else.
            where = f"{where[:MOST_LETTERS]}…"
        self.where = where
        self.hint = hint
        super().__init__(f"{where}: {what}" if where else what)


def unknown(kind: str, name: str, known: Iterable[str], *, where: str | None = None) -> TollbarError:
    """The error for an unknown name, with the nearest known ones."""
    names = sorted(known)
    return TollbarError(f"no such {kind}: `{name}`", where=where, hint=nearest(name, names))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the hint on an unknown name: its new one, the nearest, or all while they are few; None for none of
    these."""
    names = sorted(known)
    if (new := WORDS.get(name)) in names:
        return f"`{name}` is `{new}` now"
    near = spelling.nearest(name, names)
    if near:
        return "did you mean " + " or ".join(f"`{n}`" for n in near) + "?"
    # A list longer than a line or two hides the answer it holds.
    if names and len(names) <= 20:
        return "known: " + ", ".join(names)
    return None


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Within it no KeyboardInterrupt is lost: Python ignores what is raised in a finalizer, and says so; and what has a
    run end may come just there, as anywhere. It is raised once more when the finalizer is done with, or at the end.
    """
    before = sys.unraisablehook
    is_lost = False

    def again(*_: object) -> NoReturn:
        nonlocal is_lost
        is_lost = False
        raise KeyboardInterrupt

    def later() -> None:
        nonlocal is_lost
        is_lost = True
        signal.signal(signal.SIGALRM, again)
        signal.setitimer(signal.ITIMER_REAL, FINALIZED_S)

    def hook(lost: Any) -> None:
        try:
            if issubclass(lost.exc_type, KeyboardInterrupt):
                later()
            else:
                before(lost)
        except KeyboardInterrupt:
            # Another signal, at this very moment.
            later()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
        # What ends is not to be ended by an alarm that no handler takes any more.
        if is_lost:
            signal.setitimer(signal.ITIMER_REAL, 0)
    if is_lost:
        raise KeyboardInterrupt
