"""`tollbar size`: how many cores a mix of work takes."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tollbar import lab, study
from tollbar.analysis import Judgement
from tollbar.cli import measuring
from tollbar.cli.layouts import (
    DEFAULT_LAYOUT,
    AcrossMethods,
    For,
    KnownRuns,
    Layout,
    RunsFolder,
    command_line,
    read_run,
    read_seconds,
    show_answer,
)
from tollbar.core import machine, method
from tollbar.core.errors import ExitStatus, TollbarError
from tollbar.core.intervals import FEWEST_BLOCKS
from tollbar.core.words import enumeration
from tollbar.decide import size as sizing
from tollbar.decide.size.checked import Asked, Checked, checked, refuse_elsewhere, to_ask
from tollbar.decide.size.mix import Part, Term
from tollbar.decide.size.sized import Sized
from tollbar.decide.size.words import size_answer
from tollbar.lab.measure import schedule
from tollbar.report import terminal
from tollbar.results import Run
from tollbar.study import Study, plan
from tollbar.study.plan import Plan

if TYPE_CHECKING:
    from tollbar.report.json_forms.form import Document

DEFAULT_FOR = "90 s"


def size(
    file: Path,
    /,
    *,
    run: KnownRuns = (),
    check: Annotated[bool, Parameter(negative="")] = False,
    for_: For = None,
    across_methods: AcrossMethods = False,
    runs: RunsFolder = Path("runs"),
    layout: Layout = DEFAULT_LAYOUT,
) -> ExitStatus:
    """Calculate the cores, machines and bytes that a mix of work needs, from measured costs.

    The mix is a TOML file; its terms are rates of cells (docs/size.md). Terms that no `--run` has are measured, and
    kept as a run. If a term has no cost, the command prints the question that measures it, and the exit status is 1.

    tollbar size mix.toml
    tollbar size mix.toml --for 0s
    tollbar size mix.toml --run runs/2026-11-21-101500-ask --run runs/2026-11-21-101530-ask
    tollbar size mix.toml --run runs/2026-11-21-101500-ask --check --for 40s

    Parameters
    ----------
    file
        Mix of work, such as `mix.toml`.
    run
        Run whose costs are used, such as `runs/2026-11-21-101500-ask`. Repeatable; all runs must be of one machine.
    check
        Send load to each term that a server performs, and compare its predicted CPU time with the measured one.
    for_
        Approximate measuring time of missing terms, such as `40s`, and again of a `--check`; default: 90 s. `0s`
        measures nothing and lists the missing terms.
    """
    within_s = read_seconds("--for", DEFAULT_FOR if for_ is None else for_)
    if check and not within_s:
        raise TollbarError("`--check` needs time to measure", where="--for 0s", hint="for example `--check --for 40s`")
    mix, today = sizing.read(file), date.today()
    known = [read_run(one) for one in run]
    method.refuse_mixed((one.method for one in known), across_methods=across_methods)
    sized = sizing.size(mix, known, today)
    if (sized.missing and within_s) or check:
        method.refuse_mixed([method.VERSION, *(one.method for one in known)], across_methods=across_methods)
    if sized.missing and within_s:
        measured = _measured(sized, within_s, runs)
        sized = sizing.size(mix, [*known, *measured], today)
    side_by_side = _checked(sized, within_s, runs) if check and sized.cores is not None else None
    show_answer(size_answer(sized, side_by_side), lambda: _document(sized, side_by_side), layout)
    return ExitStatus.DONE if sized.cores is not None else ExitStatus.SOME_FAILED


def _measured(sized: Sized, within_s: float, runs: Path) -> list[Run]:
    """Return a run of the missing terms, one study each; nothing where no term can be measured here."""
    refuse_elsewhere(sized, machine.fingerprint(), "--for")
    asked = _fitting(_plannable(sized), within_s)
    if not asked:
        return []
    # Proofs come before the blocks, so their time is subtracted.
    left_s = max(0.0, within_s - sum(schedule.proof_s(cell) for one in asked for cell in one.cells))
    return [_carried_out([one.studies[0].study for one in asked], left_s, runs).run]


def _plannable(sized: Sized) -> dict[str, Plan]:
    """Return the plan of each missing term by its name, one for terms of the same cells; print those without one."""
    found: dict[str, Plan] = {}
    questions: set[tuple[str, ...]] = set()
    for term in sized.mix.terms:
        words = (term.family.name, *term.words(sized.mix.utilisation))
        if term.name in sized.missing and words not in questions:
            questions.add(words)
            try:
                found[term.name] = plan.make([_study(f"size-{term.name}", term, term.parts, words[1:])], seed=0)
            except TollbarError as error:
                hint = f" ({error.hint})" if error.hint else ""
                terminal.say(f"warning: `{term.name}` cannot be measured here: {error.what}{hint}", "yellow")
    return found


def _fitting(plans: Mapping[str, Plan], within_s: float) -> list[Plan]:
    """Return the plans that fit into the time in the mix's order, and at least the first; print the others."""
    needed_s = 0.0
    fitting: list[Plan] = []
    left: list[str] = []
    for name, one in plans.items():
        needed_s += schedule.of_plan(one)
        if left or (fitting and needed_s > within_s):
            left.append(f"`{name}`")
        else:
            fitting.append(one)
    if left:
        are = "is" if len(left) == 1 else "are"
        all_of = f"`--for {math.ceil(needed_s)}s` measures all"
        terminal.say(f"  time       {enumeration(left)} {are} not measured in this time; {all_of}")
    return fitting


def _carried_out(asked: Sequence[Study], within_s: float, runs: Path) -> Judgement:
    """Measure studies into a new run, in about this time in all."""
    cores = os.sched_getaffinity(0)
    planned, store = lab.begin(asked, command=command_line(), runs=runs)
    judged = measuring.carry_out(planned, store, report=False, how_long=lab.HowLong(within_s=within_s / len(asked)))
    # While it measured, this process kept off the measuring core, which a check measures on too.
    os.sched_setaffinity(0, cores)
    return judged


def _checked(sized: Sized, within_s: float, runs: Path) -> Checked:
    refuse_elsewhere(sized, machine.fingerprint())
    asked = to_ask(sized)
    if not asked:
        hint = 'add a server to a term, for example `server = "nginx"`'
        raise TollbarError("needs at least one term that a server performs", where="--check", hint=hint)
    return checked(sized, asked, _carried_out(_studies(asked), within_s, runs).run)


def _studies(asked: Sequence[Asked]) -> list[Study]:
    """Return one study for each term, with a throughput phase in each block."""
    made = [_study(one.name, one.term.term, one.cells, one.words) for one in asked]
    return [replace(one, measure=replace(one.measure, phase_every=1)) for one in made]


def _study(name: str, term: Term, cells: Sequence[Part], words: Sequence[str]) -> Study:
    """Return the study of a term's cells, in these words of `tollbar ask`."""
    choices = {part.wanted["choice"] for part in cells}
    # Without a null to take off, a cell is compared with itself: no other cell needs measuring.
    against = None if len(choices) > 1 else f"op={cells[0].wanted['op']}"
    return study.read(name, study.of_words(term.family.name, words, against).text(FEWEST_BLOCKS), where=name)


def _document(sized: Sized, side_by_side: Checked | None) -> Document:
    from tollbar.decide.size.document import document

    return document(sized, side_by_side)
