"""The two streams: data to standard output, messages to standard error."""

from __future__ import annotations

import json
import logging
import os
import sys
from functools import cache

from rich.console import Console
from rich.markup import escape

from tollbar.errors import TollbarError

# What a log is read in.
WIDTH_UNKNOWN = 120


@cache
def stdout() -> Console:
    """For data. Wide when not a terminal, so that nothing is wrapped that a program will read."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=200)


def table_width() -> int:
    """How many letters wide tables may be: what `COLUMNS` says, the terminal's own width, or that of a wide one."""
    said = os.environ.get("COLUMNS", "")
    if said.isdigit() and int(said) > 0:
        return int(said)
    # Into a pipe as into a file: a pager shows it on the terminal that the messages go to.
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None and (found := os.get_terminal_size(stream.fileno()).columns):
                return found
        except (OSError, ValueError):
            continue
    return WIDTH_UNKNOWN


@cache
def stderr() -> Console:
    """For messages."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: object) -> None:
    """Prints one document, and nothing else, to standard output."""
    print(json.dumps(value, indent=1, allow_nan=False))


def say(text: str, style: str | None = None) -> None:
    """Prints a message."""
    stderr().print(escape(text), style=style)


def say_error(error: TollbarError) -> None:
    """Prints what is wrong, where, and what to try."""
    where = f"{escape(error.where)}: " if error.where else ""
    stderr().print(f"[bold red]error:[/] {where}{escape(error.what)}")
    if error.hint:
        stderr().print(f"\n[bold]hint:[/] {escape(error.hint)}")


def say_log() -> None:
    """From now on, says what Tollbar's modules log: what takes a while and has no progress of its own."""

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(record.getMessage(), "dim")

    log = logging.getLogger("tollbar")
    log.setLevel(logging.INFO)
    log.handlers = [Said()]
