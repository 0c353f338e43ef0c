"""`tollbar size`: how many cores a mix of work takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tollbar import lab, machine, sizing, study
from tollbar.cli.options import DEFAULT_LAYOUT, Layout, command_line, read_run, read_seconds, show_answer
from tollbar.document.decisions.size import document
from tollbar.errors import ExitStatus, TollbarError
from tollbar.present.decisions.size import size_answer
from tollbar.sizing.checked import Asked, Checked, checked, refuse_elsewhere, to_ask
from tollbar.sizing.sized import Sized
from tollbar.stats import FEWEST_BLOCKS
from tollbar.study import Study

DEFAULT_FOR = "1 min"


def size(
    file: Path,
    /,
    *,
    run: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    check: Annotated[bool, Parameter(negative="")] = False,
    for_: Annotated[str | None, Parameter(name="--for")] = None,
    runs: Path = Path("runs"),
    layout: Layout = DEFAULT_LAYOUT,
) -> ExitStatus:
    """Say how many cores, machines and bytes a mix of work takes, by costs that were measured.

    The mix is a TOML file: its terms are rates of cells (docs/choosing.md). A term that was not measured is answered by
    the question that measures it, and status 1.

    tollbar size mix.toml --run runs/2026-11-21-101500-ask --run runs/2026-11-21-101530-ask
    tollbar size mix.toml --run runs/2026-11-21-101500-ask --check --for 40s

    Parameters
    ----------
    file
        The mix.
    run
        A run whose costs are used. May be given again; all of one machine.
    check
        Have the load client ask for each term that servers perform, and set predicted and measured CPU side by side.
    for_
        About how long to check, a minute by default.
    runs
        Where the directory of what is checked is made.
    """
    if for_ is not None and not check:
        raise TollbarError("`--for` is how long a `--check` may take, and there is none")
    within_s = read_seconds("--for", DEFAULT_FOR if for_ is None else for_)
    mix = sizing.read(file)
    sized = sizing.size(mix, [read_run(one) for one in run], date.today())
    side_by_side = _checked(sized, within_s, runs) if check and sized.cores is not None else None
    show_answer(size_answer(sized, side_by_side), lambda: document(sized, side_by_side), layout)
    return ExitStatus.DONE if sized.cores is not None else ExitStatus.SOME_FAILED


def _checked(sized: Sized, within_s: float, runs: Path) -> Checked:
    refuse_elsewhere(sized, machine.fingerprint())
    asked = to_ask(sized)
    if not asked:
        hint = 'say which server performs one, as in `bed = "nginx"`'
        raise TollbarError("no load client asks for any of these terms", where="--check", hint=hint)
    planned, store = lab.begin(_studies(asked), command=command_line(), runs=runs)
    judged = lab.carry_out(planned, store, report=False, within_s=within_s / len(asked))
    return checked(sized, asked, judged.run)


def _studies(asked: Sequence[Asked]) -> list[Study]:
    """One for each, with a stretch in each block."""
    made = []
    for one in asked:
        choices = {part.wanted["choice"] for part in one.cells}
        # What nothing is taken off is beside itself: nothing else is to be measured with it.
        against = None if len(choices) > 1 else f"op={one.cells[0].wanted['op']}"
        text = study.of_words(one.term.term.family.name, one.words, against).text(FEWEST_BLOCKS)
        read = study.read(one.name, text, where=one.name)
        made.append(replace(read, measure=replace(read.measure, stretch_every=1)))
    return made
