"""`tollbar verify`: does every cell do what it says, without measuring any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tollbar import console, measure
from tollbar.cli.look import make_plan
from tollbar.errors import ExitStatus
from tollbar.runner import Outcome


def verify(
    *studies: str,
    library: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> ExitStatus:
    """Prove every cell both ways: known answers met, wrong things refused. Nothing is measured.

    ```
    tollbar verify
    tollbar verify signatures --library ./libcrypto.so.3
    ```

    Parameters
    ----------
    studies
        Names of studies or sets, or TOML files. None: `quick`.
    library
        A libcrypto to verify beside those that the study names. May be given again.
    json
        Print one JSON document instead of lines.
    """
    planned = make_plan(studies, library)
    cells = [cell for one in planned.studies for cell in one.cells]
    labels = {(cell.study, cell.key): cell.label for cell in cells}
    with console.Progress() as progress, measure.premises_for(planned) as premises:
        proofs = measure.prove(cells, planned.seed, premises=premises)
        proven = list(progress.follow("verify", proofs, len(cells)))
    if json:
        _print_json(proven)
    else:
        for one in proven:
            refused = f"refused {', '.join(one.refused)}" if one.refused else "nothing to refuse"
            right = f"{one.known_answers} known answers" if one.known_answers else "; ".join(one.accepted)
            said = one.reason or f"{right}; {refused}"
            console.stdout().print(f"{one.outcome:<12} {labels[(one.study, one.cell)]}: {said}", markup=False)
    bad = [one for one in proven if one.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)]
    lacking = sum(one.outcome is Outcome.UNSUPPORTED for one in proven)
    console.say(
        f"{len(proven) - len(bad) - lacking} of {len(proven)} cells proven, {lacking} unsupported, {len(bad)} failed"
    )
    return ExitStatus.SOME_FAILED if bad else ExitStatus.DONE


def _print_json(proven: list[measure.Proven]) -> None:
    rows = [
        {
            "study": one.study,
            "cell": json.loads(one.cell),
            "outcome": one.outcome,
            "reason": one.reason,
            "known_answers": one.known_answers,
            "accepted": one.accepted,
            "refused": one.refused,
        }
        for one in proven
    ]
    print(json.dumps(rows, indent=1))
