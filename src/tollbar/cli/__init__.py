"""The command line. Each command is a function; its docstring is its help."""

from __future__ import annotations

import errno
import gc
import io
import os
import re
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from tollbar.core import output as outputs
from tollbar.core.errors import ExitStatus, TollbarError, interrupts_kept, one_line, unknown
from tollbar.core.output import Output

# By module and function, not imported: a command's own imports are paid for by those who call it. The line is the
# first of the function's docstring.
COMMANDS = {
    "run": ("run:run", "Measure studies, judge the result and write a report."),
    "ask": ("ask:ask", "Answer one question in one sentence, without a study file."),
    "choose": ("choose:choose", "Choose an option that meets policies and mitigates threats."),
    "plan": ("plan:plan", "Print the cells and the estimated time of a run, without measuring."),
    "new": (
        "new:new",
        "Write a study to start from, with a comment for every key, or a scenario from a browser's recording.",
    ),
    "list": (
        "list:list_",
        "List studies, families, choices, settings, threats, policies, environments, providers, servers or sources.",
    ),
    "show": ("show:show", "Show one cell of a study, or a published source and its claims."),
    "verify": (
        "verify:verify",
        "Check that every cell meets known answers and refuses wrong inputs, without measuring.",
    ),
    "judge": ("runs:judge", "Judge a finished run again, without measuring."),
    "compare": ("compare:compare", "Compare two runs of one machine, or the tolls of several machines."),
    "check": ("check:check", "Check a project's choices against its policies and its cost budgets."),
    "report": ("runs:report", "Write the HTML report of a finished run again."),
    "export": ("runs:export", "Export the chunks or the cells of a run as CSV, JSON, Markdown or Parquet."),
    "price": ("price:price", "Judge a cryptographic inventory by policies, and price the replacements."),
    "size": ("size:size", "Calculate the cores, machines and bytes that a mix of work needs, from measured costs."),
    "tune": ("tune:tune", "Find password-hash parameters for a target time at a given concurrency."),
    "upgrade": (
        "upgrade:upgrade",
        "Compare two builds of a library, server or runtime: costs that changed, operations new or gone.",
    ),
    "doctor": ("doctor:doctor", "Check whether this machine is fit for measuring, and run the self-test."),
}

GROUPS: Mapping[str, Sequence[str]] = {
    "Measure": ("run", "ask", "upgrade"),
    "Decide": ("choose", "tune", "size", "price", "check"),
    "Look": ("list", "show", "plan", "judge", "compare", "report", "export"),
    "Set up": ("doctor", "new", "verify"),
}
"""The commands as the first page of help has them."""

ABOUT = (
    "Measure the cost of security design choices on this machine, and list it with the threats that they mitigate.",
    "Start with `tollbar run`: one condensed study for each family, in about a minute.",
)
EXIT_STATUSES = (
    "Exit status: 0 done; 1 a cell failed, none could be measured, or a check failed; 2 invalid arguments or files; "
    "3 a check is undecided; 130 interrupted. Data go to standard output, messages to standard error. "
    "`--verbose` works with every command: it prints the settings of the question, the plan and every note."
)

# Resources that any system call may find exhausted, and no command can do without.
SHORTAGES = {
    errno.EMFILE: "file descriptors",
    errno.ENFILE: "file descriptors",
    errno.ENOMEM: "memory",
    errno.EAGAIN: "processes",
    errno.EFBIG: "room in files",
    errno.ENOSPC: "room on the disk",
    errno.EDQUOT: "room on the disk",
}

COMPLETION = "--install-completion"
VERBOSE = "--verbose"

# Number of new objects between searches for cycles. Modules and a run's data are tens of thousands, none in a cycle,
# and Python's search after each 700 takes a tenth of a command's time.
OBJECTS_BETWEEN_LOOKS = 100_000


def main() -> NoReturn:
    """Runs the command that the arguments name, and exits with its status."""
    # Counting calls costs time, so only the benchmarks do it.
    os.environ.pop("TOLLBAR_COUNT_CALLS", None)
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: _interrupt(ended, number))
    # A signal that is ignored, as in the background of a shell without job control, stays ignored.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, _: _interrupt(ended, number))
    with suppress(KeyboardInterrupt):
        try:
            with interrupts_kept():
                status = _status_of(_details_taken(sys.argv[1:]) or ["--help"])
        except Exception as error:
            # Pydantic wraps errors raised while it builds a model, for example during an import.
            if not ended or KeyboardInterrupt.__name__ not in str(error):
                raise
        else:
            # All objects end with the process: a search for cycles takes a tenth of a short command's time.
            gc.freeze()
            sys.exit(status)
    if signal.SIGTERM in ended:
        # The default action makes the exit status name the signal; printed output is flushed before.
        with suppress(OSError):
            sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGTERM)
    sys.exit(ExitStatus.INTERRUPTED)


def _details_taken(arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments without `--verbose`, which every command has, and note that it was there."""
    if VERBOSE not in arguments:
        return arguments
    os.environ["TOLLBAR_VERBOSE"] = "1"
    return [one for one in arguments if one != VERBOSE]


def _interrupt(ended: list[int], number: int) -> NoReturn:
    """Interrupt the work in progress, which prints how to resume; a second SIGTERM ends it at once."""
    if number == signal.SIGTERM:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ended.append(number)
    outputs.end()
    raise KeyboardInterrupt


def _status_of(arguments: Sequence[str]) -> ExitStatus:
    try:
        output = _opened()
        status = _called(arguments)
        sys.stdout.flush()
        if output is not None and output.fault is not None and output.fault.errno != errno.EPIPE:
            raise TollbarError(f"cannot be written: {output.fault.strerror}", where="standard output")
    except TollbarError as error:
        from tollbar.report.terminal import say_error

        say_error(error)
        return ExitStatus.UNUSABLE
    except (MemoryError, OSError, ImportError, SystemError) as error:
        what = _shortage(error)
        if what is None:
            raise
        # One plain line, because a longer layout may need the exhausted resource.
        print(f"error: no {what} left: this machine or the limit of this process is exhausted", file=sys.stderr)
        print(
            f"hint: committed results are safe; free some {what} and continue with `tollbar run --resume RUN`",
            file=sys.stderr,
        )
        return ExitStatus.UNUSABLE
    return status


NEEDS: Mapping[str, tuple[str, str]] = {
    "ask": ("a family and its choices", "ask digest sha-256 blake3"),
    "choose": ("a family", "choose digest --policy asvs-level-2"),
    "compare": ("runs, or folders of runs", "compare runs/ONE runs/OTHER"),
    "export": ("a run", "export runs/NAME --format json"),
    "judge": ("a run", "judge runs/NAME"),
    "new": ("a family", "new digest"),
    "price": ("an inventory", "price bom.json --policy asvs-level-2"),
    "report": ("a run", "report runs/NAME"),
    "show": ("a study or a source", "show digests"),
    "size": ("a mix, a TOML file (docs/size.md)", "size docs/mix.toml"),
    "upgrade": ("two builds", "upgrade cryptography==44.0.0 cryptography==45.0.0"),
}
"""Arguments that a command needs, and an example of its use."""
ALSO_OPTIONS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("--vs", "--versus", "--baseline", "--base", "--compare-with"), ("--baseline", "--against")),
    "--against": ("--baseline",),
    "--on": ("--cluster", "--date"),
    "--of": ("--metric", "--run"),
    **dict.fromkeys(("--to", "--page"), ("--output",)),
    **dict.fromkeys(("--for", "--time", "--duration", "--seconds"), ("--for", "--within")),
    **dict.fromkeys(("--policies", "--profile"), ("--policy",)),
    **dict.fromkeys(("--output", "--out", "--out-dir"), ("--output", "--runs")),
    **dict.fromkeys(("--iterations", "--repeat"), ("--blocks",)),
    "--format": ("--json", "--markdown"),
    **dict.fromkeys(("--csv", "--parquet"), ("--format",)),
    "--no-rehearse": ("--no-self-test",),
}
"""Options as other tools and commands name them, each with those that a command may have in its place."""
_WHOLE = ("--at-once", "--blocks", "--seed", "--simulate")
"""Options with a whole number. Cyclopts cuts a fraction off."""
_NOT_WHOLE = re.compile(r"Invalid value for (--[a-z-]+): unable to convert \"(.*)\" into int\.", re.DOTALL)
WITH_COORDINATES = ("ask", "choose", "tune")
"""Commands that take NAME=VALUE."""

# Messages of the loader of shared objects in an ImportError, which has no error number.
NO_MEMORY = ("Cannot allocate memory", "failed to map segment")


def _refuse_fractions(arguments: Sequence[str]) -> None:
    """Raise TollbarError for `--at-once 2.5`."""
    for one, other in zip(arguments, [*arguments[1:], ""], strict=True):
        option, sign, value = one.partition("=")
        number = value if sign else other
        if option in _WHOLE and re.fullmatch(r"-?[0-9]*\.[0-9]+", number):
            raise TollbarError(f"`{one_line(number)}` must be a whole number, for example `8`", where=option)


def _shortage(error: BaseException | None) -> str | None:
    """Return the exhausted resource named by an error or its cause; None if it is another error."""
    match error:
        case MemoryError():
            return "memory"
        case OSError():
            return SHORTAGES.get(error.errno or 0)
        case ImportError() if any(words in str(error) for words in NO_MEMORY):
            return "memory"
        case ImportError():
            return _shortage(error.__cause__ or error.__context__)
        # Parts of CPython and of libraries fail without an exception of their own when an allocation fails.
        case SystemError() if "exception" in str(error) and _is_limited():
            return "memory"
    return None


def _is_limited() -> bool:
    """Return True if this process has a limit of address space."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


class _Stream(Output):
    """Output stream that never stops a command by a write error; the fault is reported at the end."""

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError as error:
            self.fault = error
        return len(content)


def _opened() -> _Stream | None:
    """Return standard output's file; both streams survive a reader who leaves, and a full disk.

    None if it is a test's, and not a file. Raises TollbarError where it is closed.
    """
    if sys.__stderr__ is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    elif sys.stderr is sys.__stderr__:
        sys.stderr, _ = _over(sys.stderr)
    if sys.__stdout__ is None:
        # The next file opened would get its number, and be overwritten.
        raise TollbarError(
            "is closed; it must be open", where="standard output", hint="to discard the output, add `>/dev/null`"
        )
    if sys.stdout is not sys.__stdout__:
        return None
    sys.stdout, output = _over(sys.stdout)
    return output


def _over(stream: Any) -> tuple[io.TextIOWrapper, _Stream]:
    output = _Stream(stream.fileno(), "w", closefd=False)
    text = io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=stream.encoding,
        # A character that the terminal does not have, or that a file name has instead of bytes, ends no command.
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
    )
    return text, output


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
    elif name in (*COMMANDS, COMPLETION):
        return _command(arguments)
    elif meant := _other_way(arguments):
        raise TollbarError(f"no such command: `{one_line(name)}`", hint=f"did you mean `tollbar {meant}`?")
    else:
        raise unknown("command", name, COMMANDS)
    return ExitStatus.DONE


def _other_way(arguments: Sequence[str]) -> str | None:
    """Return the option for a command of other programs, such as `help choose`, or None for another word."""
    name, *others = arguments
    if name == "help":
        return f"{others[0]} --help" if others and others[0] in COMMANDS else "--help"
    return "--version" if name == "version" else None


def _without_value(option: str, arguments: Sequence[str]) -> str:
    """Return the sentence about an option that has no value, such as one before a word that was taken for another."""
    after = arguments[arguments.index(option) + 1 :][:1]
    return f"needs a value; `{one_line(after[0])}` begins with a dash" if after else "needs a value"


def _first_page() -> str:
    """Names and lines: the parser that the commands need takes five times as long to import as this to show."""
    from shutil import get_terminal_size
    from textwrap import fill

    width = min(get_terminal_size().columns, 100)
    options = {
        "--help, -h": "Print this page, or the help of the command before it.",
        "--version": "Print the version of Tollbar.",
        COMPLETION: "Install shell completion of commands, options and values (--shell bash, zsh or fish).",
    }
    groups = {title: {name: COMMANDS[name][1] for name in names} for title, names in GROUPS.items()}
    tables = [_table(title, lines, width) for title, lines in {**groups, "Options": options}.items()]
    texts = [fill(text, width) for text in (*ABOUT, EXIT_STATUSES)]
    return "\n\n".join(["Usage: tollbar COMMAND", *texts[:-1], *tables, texts[-1]])


def _table(title: str, lines: Mapping[str, str], width: int) -> str:
    from textwrap import fill

    rows = [fill(f"  {name:<11} {line}", width, subsequent_indent=" " * 14) for name, line in lines.items()]
    return "\n".join([title, *rows])


def _command(arguments: Sequence[str]) -> ExitStatus:
    gc.set_threshold(OBJECTS_BETWEEN_LOOKS)
    from cyclopts import App, CycloptsError, MissingArgumentError, UnknownOptionError, UnusedCliTokensError

    from tollbar.report.terminal import say_log

    say_log()
    name = arguments[0]
    # Markdown would take half as long again to import as all the rest.
    app = App(
        name="tollbar",
        version_flags=(),
        help_format="plaintext",
        help_epilogue=EXIT_STATUSES,
        # `main` tells Ctrl-C from SIGTERM.
        suppress_keyboard_interrupt=False,
    )
    # A script that completes has them all; else the others' imports are saved.
    for one in COMMANDS if name == COMPLETION else (name,):
        place, line = COMMANDS[one]
        app.command(f"{__name__}.{place}", name=one, help=line)
    if name == COMPLETION:
        app.register_install_completion_command(COMPLETION)
    _refuse_fractions(arguments)
    try:
        status = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except MissingArgumentError as error:
        option = str(getattr(error.argument, "name", ""))
        if option.startswith("--") and option in arguments:
            raise TollbarError(_without_value(option, arguments), where=option) from error
        if name not in NEEDS:
            raise TollbarError(str(error), hint=f"`tollbar {name} --help` lists its options") from error
        needs, example = NEEDS[name]
        if name == "upgrade" and len(arguments) > 1:
            from tollbar.decide.upgrade.things import example as builds_like

            example = f"upgrade {builds_like(arguments[1])}"
        raise TollbarError(f"`tollbar {name}` needs {needs}", hint=f"for example `tollbar {example}`") from error
    except UnknownOptionError as error:
        known = {each for one in app[name].assemble_argument_collection() for each in one.names}
        unknown = [one for one in arguments if one.partition("=")[0] not in known]
        option = next((one for one in unknown if one.partition("=")[0] in ALSO_OPTIONS), "")
        meant = next((one for one in ALSO_OPTIONS.get(option.partition("=")[0], ()) if one in known), None)
        if meant is None and name in WITH_COORDINATES:
            from tollbar.cli.meant import coordinate

            option, meant = coordinate(arguments, known)
        hint = f"did you mean `{meant}`?" if meant else f"`tollbar {name} --help` lists its options"
        what = f"`tollbar {name}` has no option `{option}`" if meant else str(error)
        raise TollbarError(what, hint=hint) from error
    except UnusedCliTokensError as error:
        first = one_line((error.unused_tokens or [""])[0])
        what = f"unexpected argument `{first}` of `tollbar {name}`"
        from tollbar.cli.meant import unexpected

        hint = unexpected(name, arguments, first) or f"`tollbar {name} --help` lists its arguments"
        raise TollbarError(what, hint=hint) from error
    except CycloptsError as error:
        hint = None
        if name == "list":
            from tollbar.cli.list import LISTS
            from tollbar.cli.meant import of_lists

            hint = of_lists(arguments, LISTS)
        if number := _NOT_WHOLE.fullmatch(str(error)):
            what = f"`{one_line(number[2])}` must be a whole number, for example `8`"
            raise TollbarError(what, where=number[1]) from error
        # The hint names the nearest list once.
        what = str(error).partition(" Did you mean ")[0] if hint else str(error)
        raise TollbarError(what, hint=hint or f"`tollbar {name} --help` lists its options") from error
    return status or ExitStatus.DONE
