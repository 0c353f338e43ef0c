"""`tollbar price`: an inventory of cryptography, judged by policies, and the cost of replacements."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tollbar import lab, study
from tollbar.catalog import policies
from tollbar.catalog.policies import Ruling, day
from tollbar.cli import measuring
from tollbar.cli.layouts import (
    DEFAULT_LAYOUT,
    AcrossMethods,
    Date,
    For,
    KnownRuns,
    Layout,
    Libraries,
    RunsFolder,
    command_line,
    read_run,
    read_seconds,
    show_answer,
)
from tollbar.cli.meant import elsewhere
from tollbar.cli.options import full_paths
from tollbar.cli.output import status_of
from tollbar.core import method, units
from tollbar.core.errors import ExitStatus, TollbarError, one_line
from tollbar.core.files import is_folder
from tollbar.core.intervals import FEWEST_BLOCKS
from tollbar.core.words import enumeration
from tollbar.decide import price as pricing
from tollbar.decide.price.words import brief
from tollbar.lab.measure import schedule
from tollbar.report import terminal
from tollbar.results import Run
from tollbar.study import Study, plan

if TYPE_CHECKING:
    from tollbar.decide.price.priced import Pricing
    from tollbar.report.json_forms.form import Document

DEFAULT_FOR = "20 s"


def price(
    file: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    policy: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    run: KnownRuns = (),
    on: Date = None,
    for_: For = None,
    library: Libraries = (),
    across_methods: AcrossMethods = False,
    fail: Annotated[bool, Parameter(negative="")] = False,
    runs: RunsFolder = Path("runs"),
    layout: Layout = DEFAULT_LAYOUT,
) -> ExitStatus:
    """Judge a cryptographic inventory by policies, and price the replacements.

    The inventory is a CycloneDX document, version 1.6 or 1.7, in JSON, of at most 32 MiB. Each asset is mapped to a
    choice that Tollbar knows, or the reason is printed. An asset that breaks a policy is compared with the cheapest
    choice that meets all policies.

    tollbar price cbom.json --policy tr-02102-2026-01 --run runs/2026-11-21-101500-set
    tollbar price cbom.json --policy cnsa-2.0-2024-12 --policy asvs-level-2-5.0.0 --for 40s
    tollbar price cbom.json --policy tr-02102-2026-01 --date 2032-01-01 --for 0s --markdown
    cbom-generator | tollbar price - --policy asvs-level-2 --for 0s --fail

    Parameters
    ----------
    file
        Inventory, such as `cbom.json`; `-` reads standard input.
    policy
        Policy that must be met: a name (its newest edition, unless you name one) or your own TOML file. Repeatable.
    for_
        Approximate measuring time for costs that no `--run` has, such as `40s`; default: 20 s, or `0s` (nothing) with
        `--run`. If the time is short, only replacements in the best standing are measured.
    fail
        End with status 1 if an asset breaks a policy, for continuous integration.
    """
    _refuse_other_words(str(file))
    today = date.today()
    then = today if on is None else day(on)
    asked = policies.named(policy)
    within_s = read_seconds("--for", for_ if for_ is not None else "0 s" if run else DEFAULT_FOR)
    if fail and not asked:
        hint = "for example `--policy asvs-level-2`; `tollbar list policies` lists them"
        raise TollbarError("needs a policy to check the assets against", where="--fail", hint=hint)
    read = pricing.read(file)
    known = [read_run(one) for one in run]
    method.refuse_mixed((one.method for one in known), across_methods=across_methods)
    found = pricing.price(read, asked, then, today, known)
    status = ExitStatus.DONE
    questions = pricing.to_measure(found) if within_s else {}
    if questions:
        method.refuse_mixed([method.VERSION, *(one.method for one in known)], across_methods=across_methods)
        measured, status = _measured(questions, within_s, library, runs)
        found = pricing.price(read, asked, then, today, [*known, measured])
    show_answer(brief(found), lambda: _document(found), layout)
    return ExitStatus.SOME_FAILED if fail and found.count(Ruling.BREAKS) else status


def _refuse_other_words(word: str) -> None:
    """Raise TollbarError for an option, a URL, a folder or a name of Tollbar's that is typed for the inventory."""
    if word.startswith("-") and Path(word) != pricing.STANDARD_INPUT:
        hint = "`tollbar price --help` lists the options; a file with such a name is written `./-NAME`"
        raise TollbarError(f"unknown option `{word}`", hint=hint)
    if re.match(r"https?:/", word):
        # A path has one slash of several.
        url = re.sub(r"^(https?):/+", r"\1://", word)
        hint = f"`curl -s {shlex.quote(url)} | tollbar price -` reads it"
        raise TollbarError("is a URL; it must be a file", where=one_line(url), hint=hint)
    if is_folder(Path(word)):
        example = shlex.quote(str(Path(word) / "cbom.json"))
        raise TollbarError("is a folder; it must be a file", where=one_line(word), hint=f"for example {example}")
    if not os.path.lexists(word) and (found := elsewhere(word)):
        what = f"no such file: `{one_line(word)}`; `tollbar price` needs an inventory first"
        raise TollbarError(what, hint=f"{found}; for example `tollbar price cbom.json --policy asvs-level-2`")


def _measured(
    questions: Mapping[str, pricing.FamilyQuestion], within_s: float, library: tuple[Path, ...], runs: Path
) -> tuple[Run, ExitStatus]:
    """Return a run that answers these questions, one study each, in about `within_s` seconds."""
    named = full_paths(library)
    seed = lab.drawn_seed(None)
    widest = max(len(one.able) for one in questions.values())
    for most in range(widest, 0, -1):
        asked = [_study(family, one, most) for family, one in questions.items()]
        planned = plan.make(asked, seed=seed, named_libraries=named)
        needed_s = schedule.of_plan(planned)
        if needed_s <= within_s:
            break
    for family, one in questions.items():
        if most < len(one.able):
            left = enumeration(one.able[most:])
            terminal.say(f"  {family:<10} not measured, because time is short: {left}")
    if needed_s > within_s:
        about = units.show_seconds(needed_s)
        terminal.say(f"  time       an interval needs at least {FEWEST_BLOCKS} blocks: about {about}")
    store = lab.begin_planned(planned, command=command_line(), runs=runs, named_libraries=named)
    judged = measuring.carry_out(planned, store, report=False, how_long=lab.HowLong(within_s=within_s / len(asked)))
    return judged.run, status_of(judged)


def _study(family: str, question: pricing.FamilyQuestion, most: int) -> Study:
    name = f"price-{family}"
    return study.read(name, study.of_words(family, question.words(family, most)).text(FEWEST_BLOCKS), where=name)


def _document(found: Pricing) -> Document:
    from tollbar.decide.price.document import document

    return document(found)
