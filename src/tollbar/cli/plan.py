"""`tollbar plan`: the planned measurements, and their time."""

from __future__ import annotations

from tollbar import lab, results
from tollbar.cli.options import DEFAULTS, Options, places_for, plan_of, resumed, studies_of
from tollbar.cli.output import print_rows
from tollbar.core import units
from tollbar.core.errors import ExitStatus
from tollbar.lab.measure import schedule
from tollbar.report import terminal


def plan(*studies: str, options: Options = DEFAULTS) -> ExitStatus:
    """Print the cells and the estimated time of a run, without measuring.

    Takes the options of `tollbar run`. It sends one request to your own server (`--url`).

    tollbar plan
    tollbar plan digests --blocks 40
    tollbar plan my-study.toml --json
    tollbar plan --resume runs/2026-…
    tollbar plan --url https://localhost:8443/path

    Parameters
    ----------
    studies
        Names of studies or sets (`tollbar list studies`), TOML files, or folders of such files; default: `quick`.
    """
    if options.resume is not None:
        asked = resumed(options.resume, studies, options)
    else:
        asked = lab.with_blocks(studies_of(studies, options), options.blocks)
    # A role that `run` refuses is refused here too.
    places_for(asked, options)
    planned = plan_of(asked, options.library, options.seed or 0)
    about_s = [schedule.of_study(one, planned.seed) for one in planned.studies]
    rows = [
        {
            "study": one.study.name,
            "cells": len(one.cells),
            "left out": len(one.left_out),
            "blocks": one.study.measure.blocks,
            "rounds": one.study.measure.rounds,
            "about": units.show_seconds(seconds),
            "question": one.study.question,
        }
        for one, seconds in zip(planned.studies, about_s, strict=True)
    ]
    if options.json:
        cells = [{"study": cell.study, "key": cell.key, "against": cell.against} for cell in planned.cells]
        terminal.print_json({"studies": rows, "cells": cells})
    else:
        print_rows(rows, as_json=False)
        if len(rows) > 1:
            terminal.say(f"together about {units.show_seconds(sum(about_s))}")
        for one in planned.studies:
            for because in dict.fromkeys(because for _, because in one.left_out):
                terminal.say(f"{one.study.name}: left out: {because}")
    if (why := results.why_not_begun(planned)) is not None:
        terminal.say(
            f"warning: `tollbar run` refuses this plan: {why}; vary less at once, or plan several runs", "yellow"
        )
    return ExitStatus.DONE
