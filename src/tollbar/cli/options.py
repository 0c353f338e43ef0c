"""What several commands have: options, and the plan that they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tollbar import console, plan, study
from tollbar.errors import TollbarError
from tollbar.plan import Cell, Plan
from tollbar.study import Study

AsJson = Annotated[bool, Parameter(name="--json", negative="")]
Libraries = Annotated[tuple[Path, ...], Parameter(negative="")]


def make_plan(studies: tuple[str, ...], library: tuple[Path, ...]) -> Plan:
    """The plan of these studies, `quick` if there are none."""
    return plan_of(study.load(studies or ("quick",)), library, 0)


def plan_of(asked: Sequence[Study], library: tuple[Path, ...], seed: int) -> Plan:
    """The plan of these studies; says what is passed over."""
    planned = plan.make(asked, seed=seed, named_libraries=[str(path.resolve()) for path in library])
    for where, reason in planned.broken.items():
        console.say(f"warning: passed over: {where}: {reason}", "yellow")
    return planned


def cells_of(planned: Plan) -> list[Cell]:
    """The cells of all studies of a plan."""
    return [cell for one in planned.studies for cell in one.cells]


def write_anew(path: Path, text: str) -> None:
    """Writes a file that is not there yet. Raises TollbarError: a user's own study is not written over."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise TollbarError("is there already", where=str(path), hint="name another file") from error
    except OSError as error:
        raise TollbarError(f"cannot be written: {error.strerror}", where=str(path)) from error
