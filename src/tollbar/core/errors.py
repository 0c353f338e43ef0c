"""Errors for users (message, place, hint), exit statuses, and text that is safe to print."""

from __future__ import annotations

import re
import signal
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NoReturn

from tollbar.core import spelling
from tollbar.core.renamed import WORDS

# A screen line or two: a foreign file may have a name of a megabyte.
MOST_LETTERS = 1000
MOST_OF_PATH = 4096
# A path, and the words of a command around it.
MOST_OF_MESSAGE = 2 * MOST_OF_PATH

# Longer texts are cut before they are searched: no message is as long.
_MOST_MASKED = 20_000
# User and password of a URL, also of one without a scheme, and of one whose `//` became `/` as a path.
_USER_OF_URL = re.compile(r"""(?<=//)[^\s/?#@]{1,2000}@|(?<![^\s/:`'"=(,])[^\s/:@`'"=(,]{0,200}:[^\s/@`'"]{1,2000}@""")
# Query of a URL, and of a request as a load client names it: `GET /path?query`.
_QUERY = re.compile(r"""\b(?:[A-Za-z]+://|[A-Z]{3,7} /)[^\s?"`<>]{0,2000}\?[^\s"`<>]+""")
_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/+|(?:https?|ftp):")

# Finalizers take microseconds. If another one is running when the alarm comes, the interrupt is raised again later.
FINALIZED_S = 0.01


def cut(text: str, most: int) -> str:
    """Return the beginning of a text that is longer than `most` letters, and a shorter one whole."""
    return text if len(text) <= most else f"{text[:most]}…"


class _Printable(dict[int, str]):
    """Translation table for `str.translate`: it replaces characters that control a terminal."""

    def __missing__(self, code: int) -> str:
        # Category C: control, format (such as text direction), surrogate, private and unassigned. Zl and Zp also
        # separate lines, and Tollbar uses neither.
        category = unicodedata.category(chr(code))
        is_printed = code == ord("\n") or not category.startswith(("C", "Zl", "Zp"))
        is_space = code == ord("\t") or category in ("Zl", "Zp")
        shown = chr(code) if is_printed else " " if is_space else "\N{REPLACEMENT CHARACTER}"
        # A table of all characters would take 100 MB.
        return self.setdefault(code, shown) if code < 0x10000 else shown


_PRINTABLE = _Printable()


def printable(text: str) -> str:
    """Return the text without characters that control a terminal or reverse text; lines stay lines.

    A run, a server or a file name may contain text of unknown origin.
    """
    if text.isprintable():
        return text
    return "\n".join(line if line.isprintable() else line.translate(_PRINTABLE) for line in text.split("\n"))


def one_line(text: str) -> str:
    """Return the text as `printable` does, in one line, for table cells and names."""
    return printable(text.replace("\n", " "))


def printable_in(document: dict[str, Any]) -> dict[str, Any]:
    """Replace each text and key in a JSON document by its `printable` form. Return the document."""
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


def masked(text: str) -> str:
    """Return the text with `***` in the place of each user with a password before the host of a URL.

    Queries are printed as by `without_values`. For example, `http://anna:secret@localhost/?token=1` becomes
    `http://***@localhost/?token=…`.
    """
    if "@" in text:
        text = _USER_OF_URL.sub("***@", text[:_MOST_MASKED])
    return without_queries(text)


def without_queries(text: str) -> str:
    """Return the text with each URL in it as by `without_values`."""
    return _QUERY.sub(lambda found: without_values(found[0]), text[:_MOST_MASKED]) if "?" in text else text


def without_values(url: str) -> str:
    """Return a URL with `…` for each value of its query and for its fragment, which may be secrets.

    For example, `https://localhost/a?token=1&page` becomes `https://localhost/a?token=…&…`: a part without a name may
    be a token, too.
    """
    before, has_fragment, _ = url.partition("#")
    address, has_query, query = before.partition("?")
    parts = (name + equals for name, equals, _ in (one.partition("=") for one in query.split("&")))
    shown = "&".join(f"{part}…" if part.endswith("=") else "…" for part in parts)
    return address + (f"?{shown}" if has_query and query else has_query) + ("#…" if has_fragment else "")


def masked_url(url: str) -> str:
    """Return a URL that is refused, without anything between its scheme and its last `@`, and without values.

    A password may contain `/`, `?` and `#`, which end the place of a user in a URL, and a query may contain `@`.
    """
    before, at, host = url.rpartition("@")
    if not at:
        return without_values(url)
    scheme = _SCHEME.match(before)
    is_clear = not {"?", "#"} & {*before}
    return f"{scheme[0] if scheme else ''}***{f'@{without_values(host)}' if is_clear else ''}"


class ExitStatus(IntEnum):
    """Exit statuses of the command, for scripts."""

    DONE = 0
    SOME_FAILED = 1
    UNUSABLE = 2
    CANNOT_TELL = 3
    INTERRUPTED = 130


class TollbarError(Exception):
    """Error that the user can act on, printed as one line and a hint, never as a traceback."""

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        # A build's log keeps its messages, so a typed password must be in none of them.
        what, where, hint = masked(what), where and masked(where), hint and masked(hint)
        self.what = what = cut(what, MOST_LETTERS)
        if where is not None and len(where) > MOST_OF_PATH:
            # No file has a longer path, and it would fill the terminal.
            where = cut(where, MOST_LETTERS)
        self.where = where
        self.hint = None if hint is None else cut(hint, MOST_OF_MESSAGE)
        super().__init__(f"{where}: {what}" if where else what)


def unknown(kind: str, name: str, known: Iterable[str], *, where: str | None = None) -> TollbarError:
    """Return the error for an unknown name, with the nearest known ones as a hint."""
    names = sorted(known)
    return TollbarError(f"no such {kind}: `{name}`", where=where, hint=nearest(name, names))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the hint for an unknown name: its new name, the nearest ones, or a short full list, else None."""
    names = sorted(known)
    if (new := WORDS.get(name)) in names:
        return f"`{name}` is `{new}` now"
    near = spelling.nearest(name, names)
    if near:
        return "did you mean " + " or ".join(f"`{n}`" for n in near) + "?"
    # A list longer than a line or two hides the answer, and a stranger's file may have long names.
    if names and len(names) <= 20 and sum(map(len, names)) <= MOST_LETTERS:
        return "known: " + ", ".join(names)
    return None


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Keep each KeyboardInterrupt that arrives in a finalizer, where Python ignores exceptions and only reports them.

    It is raised again after the finalizer, or at the end of the context.
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
            # Another signal arrived while this hook ran.
            later()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
        # A pending alarm could end the process once Python's handlers are gone.
        if is_lost:
            signal.setitimer(signal.ITIMER_REAL, 0)
    if is_lost:
        raise KeyboardInterrupt
