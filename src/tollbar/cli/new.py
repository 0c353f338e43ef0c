"""`tollbar new`: a study or a scenario of one's own to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tollbar import study
from tollbar.cli.layouts import write_anew
from tollbar.core.errors import ExitStatus, TollbarError, one_line
from tollbar.core.files import pasted
from tollbar.report import terminal
from tollbar.study.recorded import scenario_of

SCENARIO = "scenario"


def new(
    family: str,
    /,
    *,
    recording: Annotated[Path | None, Parameter(name="--from")] = None,
    to: Annotated[Path | None, Parameter(name="--output")] = None,
) -> ExitStatus:
    """Write a study to start from, with a comment for every key, or a scenario from a browser's recording.

    A study can be run unchanged. Keys behind a `#` have their default. `tollbar new scenario` writes the steps of a
    browser's recording instead, for `tollbar run --url URL --scenario FILE`. Its passwords, tokens and cookies are left
    out: each becomes a captured value or an environment variable.

    tollbar new digest
    tollbar new tls --output my-study.toml
    tollbar new scenario --from site.har --output site.toml

    Parameters
    ----------
    family
        Family of the study's choices, such as `digest` (`tollbar list families`), or `scenario`.
    recording
        HAR file of a browser, such as `site.har`; `scenario` needs it.
    to
        File to write, such as `my-study.toml`; it must not exist yet. Default: standard output.
    """
    if (family == SCENARIO) != (recording is not None):
        what = f"`tollbar new {SCENARIO}` needs `--from FILE`, a browser's recording; a family has none"
        raise TollbarError(what, hint="for example `tollbar new scenario --from site.har`")
    found = scenario_of(recording) if recording is not None else None
    text = study.begun(family) if found is None else found.text
    for remark in found.remarks if found else ():
        terminal.say(f"  {remark}")
    if to is None:
        print(text, end="")
    else:
        write_anew(to, text)
        if found is None:
            terminal.say(
                f"  study      {one_line(str(to))}; `tollbar plan {one_line(pasted(to))}` shows what it would do"
            )
        else:
            words = f"`tollbar run --url URL --scenario {one_line(pasted(to))}`"
            terminal.say(f"  scenario   {one_line(str(to))}; {words} performs it")
    return ExitStatus.DONE
