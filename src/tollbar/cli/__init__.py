"""The command line. Each command is a function; its docstring is its help."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from tollbar.errors import ExitStatus, TollbarError, unknown

# By module and function, not imported: a command's own imports are paid for by those who call it. The line is the
# first of the function's docstring.
COMMANDS = {
    "run": ("run:run", "Measure, judge and report."),
    "ask": ("ask:ask", "Ask one question without a file, and have it answered in one sentence."),
    "plan": ("look:plan", "Show what would run, and how long it would take. Nothing is measured."),
    "new": ("new:new", "Write a study of your own to begin with, with a comment beside every key."),
    "list": ("look:list_", "Show what there is: studies, families, choices, providers, beds or sources."),
    "show": (
        "look:show",
        "Show one cell of a study, its task, configuration and known answers; or what a published source says.",
    ),
    "verify": ("verify:verify", "Prove every cell both ways: known answers met, wrong things refused."),
    "judge": ("runs:judge", "Judge a run again, without measuring."),
    "compare": ("runs:compare", "Set two runs' costs and ratios side by side: what has changed?"),
    "report": ("runs:report", "Write a run's report again."),
    "export": ("runs:export", "Write out every chunk of a run as it was measured, or what was found of each cell."),
    "doctor": ("doctor:doctor", "Look whether this machine is fit for measuring, and rehearse on known work."),
}

ABOUT = (
    "Measure what each security design choice costs on this machine, beside what it protects against.",
    "Start with `tollbar run`: one condensed study for each family, in about a minute.",
)
EXIT_STATUSES = (
    "Exit status: 0 done, 1 done but some cell failed or a check said no, 2 unusable arguments or files, "
    "3 a check that could not tell, 130 interrupted. Data go to standard output, messages to standard error."
)


def main() -> NoReturn:
    """Runs the command that the arguments name, and exits with its status."""
    # What is counted costs time: counting is the bench's, and no command's.
    os.environ.pop("TOLLBAR_COUNT_CALLS", None)
    try:
        status = _called(sys.argv[1:] or ["--help"])
    except TollbarError as error:
        from tollbar.console import say_error

        say_error(error)
        status = ExitStatus.UNUSABLE
    except KeyboardInterrupt:
        status = ExitStatus.INTERRUPTED
    except BrokenPipeError:
        # The reader of the answer has closed its end; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = ExitStatus.DONE
    sys.exit(int(status))


def _called(arguments: Sequence[str]) -> ExitStatus:
    name = arguments[0]
    if name in ("--help", "-h"):
        print(_first_page())
    elif name == "--version":
        from tollbar import __version__

        print(__version__)
    elif name in COMMANDS and {"--help", "-h"} & {*arguments[1:]}:
        from tollbar.cli.pages import page

        print(page(name, COMMANDS[name][0], EXIT_STATUSES))
    elif name in COMMANDS:
        return _command(arguments)
    else:
        raise unknown("command", name, COMMANDS)
    return ExitStatus.DONE


def _first_page() -> str:
    """Names and lines: the parser that the commands need takes five times as long to import as this to show."""
    from shutil import get_terminal_size
    from textwrap import fill

    width = min(get_terminal_size().columns, 100)
    options = {"--help, -h": "This page; after a command, that command's.", "--version": "The version of Tollbar."}
    lines = {name: line for name, (_, line) in COMMANDS.items()} | options
    table = [fill(f"{name:<12}{line}", width, subsequent_indent=" " * 12) for name, line in lines.items()]
    texts = [fill(text, width) for text in (*ABOUT, EXIT_STATUSES)]
    return "\n\n".join(["Usage: tollbar COMMAND", *texts[:-1], "\n".join(table), texts[-1]])


def _command(arguments: Sequence[str]) -> ExitStatus:
    from cyclopts import App, CycloptsError

    from tollbar.console import say_log

    say_log()
    name = arguments[0]
    # Markdown would take half as long again to import as all the rest.
    app = App(name="tollbar", version_flags=(), help_format="plaintext", help_epilogue=EXIT_STATUSES)
    app.command(f"{__name__}.{COMMANDS[name][0]}", name=name)
    try:
        status = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        raise TollbarError(str(error), hint=f"`tollbar {name} --help` lists its options") from error
    return status or ExitStatus.DONE
