"""What several commands have: options, and the plan that they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tollbar import console, plan, study
from tollbar.plan import Cell, Plan

AsJson = Annotated[bool, Parameter(name="--json", negative="")]
Libraries = Annotated[tuple[Path, ...], Parameter(negative="")]


def make_plan(studies: tuple[str, ...], library: tuple[Path, ...]) -> Plan:
    """The plan of these studies, `quick` if there are none."""
    named = [str(path.resolve()) for path in library]
    planned = plan.make(study.load(studies or ("quick",)), seed=0, named_libraries=named)
    for where, reason in planned.broken.items():
        console.say(f"warning: passed over: {where}: {reason}", "yellow")
    return planned


def cells_of(planned: Plan) -> list[Cell]:
    """The cells of all studies of a plan."""
    return [cell for one in planned.studies for cell in one.cells]
