"""Layout of the answers of all decisions, and their options. It imports nothing that measures: `check` needs none."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from pydantic import BaseModel

from tollbar.core import units
from tollbar.core.errors import TollbarError, masked, one_line
from tollbar.report import terminal

if TYPE_CHECKING:
    from tollbar.core.limits import Limits
    from tollbar.report.blocks import Brief
    from tollbar.results import Run

TableFormat = Literal["terminal", "markdown", "json"]
# Options that several commands have, each with its text; a command's docstring describes only the others.
AsFormat = Annotated[
    TableFormat, Parameter(help="Output format: `terminal`, `markdown` or `json`; default: `terminal`.")
]
AsMarkdown = Annotated[
    bool, Parameter(negative="", help="Print Markdown, for example for a pull request; short for `--format markdown`.")
]
AsJson = Annotated[bool, Parameter(name="--json", negative="", help="Print one JSON document instead of text.")]
AcrossMethods = Annotated[
    bool, Parameter(negative="", help="Accept runs measured by different versions of the method.")
]
Date = Annotated[str | None, Parameter(name="--date", help="Date to judge by, such as `2032-01-01`; default: today.")]
For = Annotated[str | None, Parameter(name="--for")]
"""Measuring time; each command describes its scope and its default."""
KnownRuns = Annotated[
    tuple[Path, ...],
    Parameter(negative="", help="Run whose costs are used, such as `runs/2026-11-21-101500-ask`. Repeatable."),
]
Libraries = Annotated[
    tuple[Path, ...],
    Parameter(negative="", help="File of a libcrypto to measure in addition, such as `./libcrypto.so.3`. Repeatable."),
]
RunsFolder = Annotated[Path, Parameter(help="Folder for the directory of the new run; default: `runs`.")]
Seed = Annotated[
    int | None,
    Parameter(
        help="Seed of the order of measurements and of the test data, such as `7`; default: random, kept with the run."
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Layout of a decision's answer."""

    format: AsFormat = "terminal"
    markdown: AsMarkdown = False
    json: AsJson = False
    page: Annotated[Path | None, Parameter(name="--output")] = None
    """File for the answer as one self-contained HTML page, such as `answer.html`; an existing file is replaced."""

    def __post_init__(self) -> None:
        layout_of(self.format, markdown=self.markdown, json=self.json)
        if self.page is not None:
            check_is_writable("--output", self.page)


def layout_of(format: TableFormat, *, markdown: bool, json: bool) -> TableFormat:
    """Return the layout that these options ask for. Raises TollbarError for two of them."""
    asked = {one for one, is_asked in (("markdown", markdown), ("json", json)) if is_asked} | ({format} - {"terminal"})
    if len(asked) > 1:
        raise TollbarError(
            f"{' and '.join(f'`{one}`' for one in sorted(asked))} cannot be combined",
            where="--format",
            hint="pass one of them",
        )
    return "json" if "json" in asked else "markdown" if "markdown" in asked else "terminal"


DEFAULT_LAYOUT = Layout()


def check_is_writable(option: str, file: Path) -> None:
    """Raise TollbarError if the file cannot be written, before anything is measured or read for it."""
    # The methods of a path raise OSError for a name that is too long.
    if os.path.isdir(file) or not os.path.isdir(file.parent):
        what = "it is a directory" if os.path.isdir(file) else f"there is no folder `{file.parent}`"
        raise TollbarError(f"cannot be written: {what}", where=f"{option} {file}")
    try:
        os.lstat(file)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise TollbarError(f"cannot be written: {error.strerror}", where=f"{option} {file}") from error
    # A file is replaced by a new one in its folder; a device or a pipe is written to.
    written_to = file if os.path.exists(file) and not os.path.isfile(file) else file.parent
    if not os.access(written_to, os.W_OK):
        what = f"`{written_to}` is not writable; it must be"
        raise TollbarError(f"cannot be written: {what}", where=f"{option} {file}")


def show_answer(answer: Brief, document_of: Callable[[], BaseModel], layout: Layout) -> None:
    """Print a decision's answer in the requested layout, and write its page where one is named.

    `document_of` makes its JSON document, where that is asked for.
    """
    shown = layout_of(layout.format, markdown=layout.markdown, json=layout.json)
    if shown == "json":
        terminal.print_json(document_of().model_dump(mode="json", by_alias=True))
    elif shown == "markdown":
        terminal.show_brief_markdown(answer)
    else:
        terminal.show_brief(answer)
    if layout.page is not None:
        from tollbar.decide.shared import page_of
        from tollbar.report import html

        html.write_page(page_of(answer, command_line()), layout.page)
        terminal.say(f"  page       {one_line(str(layout.page))}")


def command_line() -> tuple[str, ...]:
    """Return the command as it was typed, without the values of a URL's query, to be kept with a run."""
    return ("tollbar", *(masked(word) if "://" in word else word for word in sys.argv[1:]))


def read_run(run: Path, *, family: str | None = None) -> Run:
    """Read a run to be judged, or its studies of one family, and note this look at it, which later blocks pay for.

    Warns if it cannot be noted. Raises TollbarError if it is not a run; then nothing is written.
    """
    from tollbar import results

    found = results.read(run, family=family)
    not_noted = results.note_interim_look(run)
    if not_noted is not None:
        terminal.say(f"warning: {not_noted}", "yellow")
    return found


def read_seconds(option: str, said: str, likely: Sequence[str] = ("s", "ms")) -> float:
    """Return an option's value in seconds; `likely` are the units to suggest for a number without one.

    Raises TollbarError.
    """
    from tollbar.core.limits import LONGEST_S

    try:
        return LONGEST_S.check(units.seconds(said, likely))
    except ValueError as error:
        # A shell passes `250 ms` as two words.
        meant = error.meant if isinstance(error, units.Misread) else ()
        hint = f"type `{option} {meant[0].replace(' ', '')}`, without a space" if meant else None
        raise TollbarError(str(error), where=f"{option} {units.quoted(said)}", hint=hint) from error


def check_number(option: str, number: float, limits: Limits) -> None:
    """Raise TollbarError where an option's number is out of range."""
    try:
        limits.check(number)
    except ValueError as error:
        raise TollbarError(f"`{option}`: {error}") from error


def read_share(option: str, said: str, most: float | None = 1.0) -> float:
    """Return an option's value, as a share above zero and below `most`.

    Raises TollbarError.
    """
    try:
        share = units.share(said)
    except ValueError as error:
        raise TollbarError(str(error), where=f"{option} {units.quoted(said)}") from error
    if share <= 0 or (most is not None and share >= most):
        upper = "" if most is None else f" and less than {most * 100:.0f} %"
        what = f"must be greater than 0 %{upper}, for example `2%`"
        raise TollbarError(what, where=f"{option} {units.quoted(said)}")
    return share


def write_anew(path: Path, text: str) -> None:
    """Write a file that does not exist yet. Raises TollbarError: a user's own study is not written over."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise TollbarError(
            "the file already exists and is not overwritten",
            where=str(path),
            hint="name another file, for example `my-study-2.toml`",
        ) from error
    except OSError as error:
        raise TollbarError(f"cannot be written: {error.strerror}", where=str(path)) from error
