"""The command line. Each command is a function; its docstring is its help."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from cyclopts import App, CycloptsError

from tollbar.errors import ExitStatus, TollbarError


def _version() -> str:
    from tollbar import __version__

    return __version__


app = App(
    # Markdown would take half as long again to import as all the rest.
    help_format="plaintext",
    name="tollbar",
    version=_version,
    help="""Measure what each security design choice costs on this machine, beside what it protects against.

    Start with `tollbar run`: one condensed study for each family, in about a minute.
    """,
    help_epilogue=(
        "Exit status: 0 done, 1 done but some cell failed or a check said no, 2 unusable arguments or files, "
        "130 interrupted. Data go to standard output, talk to standard error."
    ),
)

# Named, not imported: a command's own imports are paid for by those who call it. The line is the first of
# the function's docstring.
COMMANDS = {
    "run": ("tollbar.cli.run:run", "Measure, judge and report."),
    "plan": (
        "tollbar.cli.look:plan",
        "Show what would run, and how long it would take. Nothing is measured.",
    ),
    "list": ("tollbar.cli.look:list_", "Show what there is: studies, families, choices, providers or beds."),
    "show": (
        "tollbar.cli.look:show",
        "Show one cell of a study: the exact task, the servers' configuration, and the answers that must come.",
    ),
    "verify": (
        "tollbar.cli.verify:verify",
        "Prove every cell both ways: known answers met, wrong things refused.",
    ),
    "judge": ("tollbar.cli.runs:judge", "Judge a run again, without measuring."),
    "compare": ("tollbar.cli.runs:compare", "Set two runs' ratios side by side: do they come out the same?"),
    "report": ("tollbar.cli.runs:report", "Write a run's report again."),
    "export": ("tollbar.cli.runs:export", "Write out every chunk of a run, as it was measured."),
    "doctor": (
        "tollbar.cli.doctor:doctor",
        "Look whether this machine is fit for measuring, and rehearse on known work.",
    ),
}
for name, (place, line) in COMMANDS.items():
    app.command(place, name=name, help=line)


def main() -> NoReturn:
    """Runs the command that the arguments name, and exits with its status."""
    try:
        status = app(exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        from tollbar.console import say_error

        say_error(TollbarError(str(error), hint="`tollbar --help` lists commands and options"))
        status = ExitStatus.UNUSABLE
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
    sys.exit(int(status or 0))
