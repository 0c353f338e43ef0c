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
    """Write a study file to start from, with a comment for every key.

    It can be run unchanged. Keys behind a `#` have their default.

    tollbar new digest
    tollbar new tls --output my-study.toml

    Parameters
    ----------
    family
        Family of the study's choices, such as `digest` (`tollbar list families`).
    to
        File to write, such as `my-study.toml`; it must not exist yet. Default: standard output.
    """
    text = study.begun(family)
    if to is None:
        print(text, end="")
    else:
        write_anew(to, text)
        terminal.say(f"  study      {to}; `tollbar plan {to}` shows what it would do")
    return ExitStatus.DONE
