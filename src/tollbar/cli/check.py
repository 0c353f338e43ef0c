"""`tollbar check`: whether a project's `tollbar.toml` still holds, for continuous integration."""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tollbar.catalog import policies
from tollbar.catalog.policies import CostBudget, Processor, Project
from tollbar.cli.layouts import DEFAULT_LAYOUT, Date, For, Layout, RunsFolder, command_line, read_seconds, show_answer
from tollbar.core import machine
from tollbar.core.errors import ExitStatus, TollbarError, nearest
from tollbar.core.files import full_path, is_file, is_folder, pasted, read_bytes, write
from tollbar.decide.check.checked import BudgetVerdict, Check, CheckedBudget, processor_of
from tollbar.decide.check.words import answer

if TYPE_CHECKING:
    # Modules that measure and judge take three times as long to import as `check policy` needs without them.
    from tollbar.analysis import StudyJudgement
    from tollbar.decide.check.document import CheckDocument

DEFAULT_FOR = "1 min"
POLICY, TOLLS = "policy", "tolls"


def check(
    *words: str,
    on: Date = None,
    strict: Annotated[bool, Parameter(negative="")] = False,
    accept: Annotated[bool, Parameter(negative="")] = False,
    for_: For = None,
    runs: RunsFolder = Path("runs"),
    layout: Layout = DEFAULT_LAYOUT,
) -> ExitStatus:
    """Check a project's choices against its policies and its cost budgets.

    `policy` measures nothing. `tolls` measures each ratio that has a budget. Without either, both are checked.
    docs/check.md lists the keys of a `tollbar.toml`.

    tollbar check policy
    tollbar check policy --date 2030-01-01
    tollbar check tolls services/tollbar.toml --for 2min --markdown
    tollbar check --accept

    Parameters
    ----------
    words
        `policy` or `tolls`, then the project's file; default: both, of `tollbar.toml`.
    strict
        End with status 3 if a policy or a budget cannot be decided, is not judged on this processor, or is met only by
        a noisy ratio.
    accept
        Write today's standings into the file, and limits from this measurement.
    for_
        Approximate measuring time of all budgets together, such as `2min`; default: 1 min.
    """
    part, path = _asked(words)
    within_s, today = read_seconds("--for", DEFAULT_FOR if for_ is None else for_), date.today()
    found = Check(path, today if on is None else policies.day(on), is_accepted=accept)
    if accept:
        _refuse_link(path)
    before = _content(path)
    project = policies.read_project(path)
    _refuse_nothing(project, part)
    if accept and before.count("\n") > MOST_LINES:
        what = f"more than {MOST_LINES:,} lines, the limit of a file that `--accept` writes"
        raise TollbarError(what, where=str(path), hint="remove empty lines and comments")
    if accept and sum(1 for _ in DOTTED.finditer(before)) > MOST_DOTTED:
        what = f"more than {MOST_DOTTED} dotted keys, the limit of a file that `--accept` writes"
        raise TollbarError(what, where=str(path), hint="write tables instead, for example `[uses.NAME]`")
    if part != TOLLS:
        found = replace(found, uses=policies.check_project(project, found.on))
    here = processor_of(machine.fingerprint())
    if part != POLICY and project.budgets:
        found = _with_tolls(found, project.budgets, here, within_s, runs)
    if accept:
        from tollbar.decide.check.accepting import accepted

        _write(path, before, accepted(before, found, here, today))
    show_answer(answer(found), lambda: _document(found), layout)
    if found.breaks:
        return ExitStatus.SOME_FAILED
    return ExitStatus.CANNOT_TELL if strict and found.leaves_open else ExitStatus.DONE


EXAMPLE = """the file lists the choices of your project (docs/check.md), for example:
  policy = ["asvs-level-2"]
  [uses.passwords]
  family = "password-hash"
  choice = "argon2id"
  setting = { memory = "19 MiB", passes = 2, lanes = 1 }"""

MOST_LINES = 20_000
"""Limit of a file that is written with its comments and spaces as they are: to read a million lines so takes 25 s."""


MOST_DOTTED = 200
"""Limit of the dotted keys in such a file: the time for reading them grows with the square of their number, and a
thousand take a minute."""
DOTTED = re.compile(r"""(?:^|[{,])[ \t]*(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*["'\w-]""", re.MULTILINE)


def _document(found: Check) -> CheckDocument:
    from tollbar.decide.check.document import document

    return document(found)


def _asked(words: Sequence[str]) -> tuple[str | None, Path]:
    """Return the part to check, and the file."""
    part = next((word for word in words[:1] if word in (POLICY, TOLLS)), None)
    files = words[1:] if part else words
    if len(files) > 1:
        what = f"{len(files)} files are given ({', '.join(files)}); `tollbar check` takes one"
        raise TollbarError(
            what, hint="`policy` or `tolls` must be first, for example `tollbar check policy tollbar.toml`"
        )
    path = Path(files[0] if files else policies.NAME)
    # A folder is refused as such where it is read.
    if not is_file(path) and not is_folder(path):
        neighbours = [str(one) for one in path.parent.glob("*.toml")] if is_folder(path.parent) else []
        hint = nearest(str(path), [*([] if part else (POLICY, TOLLS)), *neighbours]) if files else EXAMPLE
        raise TollbarError("no such file; it must be a `tollbar.toml`", where=str(path), hint=hint)
    return part, path


def _content(path: Path) -> str:
    """Return the file's text, with its line endings."""
    try:
        return read_bytes(path, pipes=False).decode()
    except UnicodeDecodeError as error:
        raise TollbarError(f"cannot be read: {error}", where=str(path)) from error


def _refuse_link(path: Path) -> None:
    """Raise TollbarError for a symbolic link, before anything is measured.

    A link in someone else's project may name a file outside it. A user with a link of their own can name its target.
    """
    if path.is_symlink():
        target = pasted(full_path(path))
        raise TollbarError(
            "is a symbolic link; `--accept` writes only to the file itself",
            where=str(path),
            hint=f"name the file, if you want to change it: `tollbar check --accept {target}`",
        )


def _refuse_nothing(project: Project, part: str | None) -> None:
    """Raise TollbarError if the project has nothing to check in this part."""
    there = {POLICY: project.uses, TOLLS: project.budgets}
    if not (there[part] if part else project.uses or project.budgets):
        lacks = {POLICY: "`[uses.NAME]`", TOLLS: "`[budget.NAME]`"}
        what = lacks[part] if part else " or ".join(lacks.values())
        raise TollbarError(
            f"has nothing to check; it needs a table {what}",
            where=str(project.path),
            hint="docs/check.md has a complete file",
        )


def _with_tolls(found: Check, all_of_it: Sequence[CostBudget], here: Processor, within_s: float, runs: Path) -> Check:
    """Return the check with the verdicts on the budgets: those of another processor are not measured."""
    from tollbar.cli import measuring
    from tollbar.decide.check.judging import judged, left_out, refuse_other_than_one, study_of
    from tollbar.study import plan

    elsewhere = left_out(all_of_it, here, accepts=found.is_accepted)
    asked = {one.name: one for one in all_of_it if one not in [left.budget for left in elsewhere]}
    if not asked:
        return replace(found, budgets=elsewhere)
    without = next((one for one in asked.values() if one.at_most is None and not found.is_accepted), None)
    if without:
        hint = "`tollbar check tolls --accept` measures it and writes one"
        raise TollbarError("needs a limit, for example `at-most = 1.5`", where=without.where, hint=hint)
    studies = [study_of(one) for one in asked.values()]
    refuse_other_than_one(plan.make(studies, seed=0), asked)

    def checked(study: StudyJudgement) -> CheckedBudget:
        return judged(asked[study.about.name], study, len(asked))

    def is_settled(study: StudyJudgement) -> bool:
        one = checked(study)
        return one.is_precise if found.is_accepted else one.found is not BudgetVerdict.CANNOT_TELL

    run = measuring.in_two_interim_looks(studies, is_settled, within_s=within_s, command=command_line(), runs=runs)
    every = {one.budget.name: one for one in (*elsewhere, *map(checked, run.studies))}
    return replace(found, budgets=tuple(every[one.name] for one in all_of_it), run=run.run.directory)


def _write(path: Path, before: str, after: str) -> None:
    """Write a file whole or not at all, with its mode. Raises TollbarError, also where it was changed meanwhile."""
    if after == before:
        return
    if _content(path) != before:
        raise TollbarError(
            "was changed during the check, so it is not overwritten",
            where=str(path),
            hint="repeat `tollbar check --accept`",
        )
    try:
        write(path, after.encode(), stat.S_IMODE(path.stat().st_mode))
    except OSError as error:
        raise TollbarError(f"cannot be written: {error.strerror}", where=str(path)) from error
