"""`tollbar new`: a study of one's own to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tollbar import study
from tollbar.cli.options import write_anew
from tollbar.core.errors import ExitStatus
from tollbar.report import terminal


def new(family: str, /, *, to: Annotated[Path | None, Parameter(name="--output")] = None) -> ExitStatus:
    """Write a study of your own to begin with, with a comment beside every key.

    It runs as it is; what is behind a `#` is as by default.

    tollbar new digest
    tollbar new tls --output my-study.toml

    Parameters
    ----------
    family
        What kind of choice: `tollbar list families` shows them.
    to
        The file to write; default: standard output.
    """
    text = study.begun(family)
    if to is None:
        print(text, end="")
    else:
        write_anew(to, text)
        terminal.say(f"  study      {to}; `tollbar plan {to}` shows what it would do")
    return ExitStatus.DONE
