"""Output streams: data to standard output, messages to standard error."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.segment import Segment

from tollbar.core.errors import MOST_OF_MESSAGE, TollbarError, cut, one_line, printable

# Width for reading a log.
WIDTH_UNKNOWN = 120
# `--verbose` sets it, so that all parts of a command see it.
VERBOSE = "TOLLBAR_VERBOSE"


class _Console(Console):
    """Console with only Tollbar's own styles and movements: no printed text controls the terminal."""

    def __init__(self, **options: Any) -> None:
        # Rich fails on digits that `int` does not accept, such as `²` or more than 4,300 of them.
        sizes = {name for name in ("COLUMNS", "LINES") if _size(name) is None}
        known = {name: value for name, value in os.environ.items() if name not in sizes}
        super().__init__(highlight=False, _environ=known, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


@cache
def stdout() -> Console:
    """Return the console for data: wide if it is not a terminal, so that nothing a program reads is wrapped."""
    console = _Console()
    return console if console.is_terminal else _Console(width=200)


def _size(name: str) -> int | None:
    """Return the size of the terminal in a variable of the environment; None if it is not a number above 0."""
    value = os.environ.get(name, "")
    return int(value) if re.fullmatch("0*[1-9][0-9]{0,5}", value) else None


def table_width() -> int:
    """Return the width of tables in letters: that of `COLUMNS`, of the terminal, or of a wide one."""
    if (given := _size("COLUMNS")) is not None:
        return given
    # A pipe may lead to a pager, which shows the text on the terminal of the messages.
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None and (found := os.get_terminal_size(stream.fileno()).columns):
                return found
        except (OSError, ValueError):
            continue
    return WIDTH_UNKNOWN


@cache
def stderr() -> Console:
    """Return the console for messages."""
    return _Console(stderr=True, soft_wrap=True)


def print_plain(text: str) -> None:
    """Print a text unchanged to standard output, for another program to lay out, or for the user to copy."""
    print(printable(text))


def print_json(value: object) -> None:
    """Print one document, and nothing else, to standard output."""
    print(json.dumps(value, indent=1, allow_nan=False))


def be_verbose() -> None:
    """Print details from now on: how a question was read, the plan, and every note."""
    os.environ[VERBOSE] = "1"


def is_verbose() -> bool:
    """Return whether the user asked for details."""
    return VERBOSE in os.environ


def say_detail(text: str) -> None:
    """Print a message that only `--verbose` shows."""
    if is_verbose():
        say(text)


def say(text: str, style: str | None = None) -> None:
    """Print a message; of one that is longer than a path in a command, the beginning."""
    stderr().print(escape(_indented(cut(text, MOST_OF_MESSAGE))), style=style)


def say_sentence(text: str) -> None:
    """Print a sentence as a message; on a terminal in lines of whole words, else in one line."""
    console = stderr()
    if console.is_terminal:
        console.print(Padding(escape(_indented(cut(text, MOST_OF_MESSAGE))), (0, 0, 0, 2)), soft_wrap=False)
    else:
        say(f"  {text}")


def say_error(error: TollbarError) -> None:
    """Print the fault, its place, and the hint."""
    where = f"{one_line(error.where)}: " if error.where else ""
    stderr().print(f"[bold red]error:[/] {escape(_indented(where + error.what))}")
    if error.hint:
        stderr().print(f"\n[bold]hint:[/] {escape(_indented(error.hint))}")


def _indented(text: str) -> str:
    """Return the text with its further lines indented more than any message, so that no name imitates one."""
    return re.sub(r"\n *", "\n    ", text)


def say_log() -> None:
    """Print the messages that Tollbar's modules log from now on: slow steps without progress of their own."""

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(record.getMessage(), "dim")

    log = logging.getLogger("tollbar")
    log.setLevel(logging.INFO)
    log.handlers = [Said()]
