"""A project's own `tollbar.toml`: what it uses and may cost, and whether that still meets its policies.

Nothing is measured here: a budget is read, and `tollbar.decide.check` judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import Field, FiniteFloat

from tollbar.catalog import families
from tollbar.catalog.families import Degree, Family, Part, Standing, settings_at
from tollbar.catalog.policies.catalogue import policy, with_edition
from tollbar.catalog.policies.definition import PLACES, Judged, OneOrMore, Policy, Ruling
from tollbar.catalog.policies.judging import (
    STANDINGS,
    Cell,
    Found,
    does,
    is_worse,
    judged,
    open_for_standing,
    threat_wanted,
)
from tollbar.core.errors import TollbarError, nearest, unknown
from tollbar.core.method import FIRST
from tollbar.core.spelling import find
from tollbar.core.wire import Wire, read

NAME = "tollbar.toml"

MOST_NAMED = 64
"""Limit of the policies that a file names: each may be a file that is read."""

MOST_USES = 500
"""Limit of the uses of a project: to read and judge one takes 2 ms and more."""

MOST_BUDGETS = 100
"""Limit of the budgets of a project: to plan one takes 30 ms, and to measure it a second."""

MOST_JUDGED = 40_000
"""Limit of the rules that a project's uses are judged by, each counted for each use: to ask one takes 0.1 ms."""

_Names = Annotated[tuple[str, ...], OneOrMore]
_Policies = Annotated[_Names, Field(max_length=MOST_NAMED)]
_Ratio = Annotated[FiniteFloat, Field(gt=0, strict=True)]
# A budget is measured as a study of its name, which a run keeps in a file.
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=100)]


@dataclass(frozen=True, slots=True)
class Processor:
    """What decides how dear one kind of work is beside another; `machine.fingerprint` says it of this machine."""

    cpu: str
    model: str
    """Family, model and stepping."""
    flags: str
    """The instruction sets that matter, a space between them."""


class SetOn(Wire):
    """Where and when a limit was accepted."""

    cpu: str
    model: str
    flags: str
    ratio: _Ratio
    """As it was measured then."""
    libraries: tuple[str, ...]
    """What performed both choices then, with versions: said where a limit is broken, and not held against it."""
    day: date
    method: Annotated[int, Field(ge=FIRST)] = FIRST
    """The version of the method that measured the ratio."""

    @property
    def processor(self) -> Processor:
        """The processor that it holds on."""
        return Processor(self.cpu, self.model, self.flags)


class _Limit(Wire):
    family: str
    choice: str
    against: str
    """Another choice, or the coordinate in which the other differs: `key-exchange=x25519`."""
    setting: dict[str, str | int] = Field(default_factory=dict)
    """Coordinates, of one value each."""
    at_most: _Ratio | None = None
    """The limit of the ratio; None: not set yet."""
    set_on: SetOn | None = None
    """None: the limit is a person's, and holds on any machine."""


class CostBudget(_Limit):
    """What a choice may cost beside another, in the words of `tollbar ask`."""

    name: str
    where: str
    """The file and the table, for messages."""


class _Use(Wire):
    family: str
    choice: str
    setting: dict[str, str | int] = Field(default_factory=dict)
    policy: _Policies = ()
    threats: _Names = ()
    standing: Standing | None = None


class _File(Wire):
    policy: _Policies = ()
    uses: dict[_Name, _Use] = Field(default_factory=dict, max_length=MOST_USES)
    budget: dict[_Name, _Limit] = Field(default_factory=dict, max_length=MOST_BUDGETS)


@dataclass(frozen=True, slots=True)
class ProjectUse:
    """One choice that a project has made."""

    name: str
    family: Family
    cell: Cell
    """What is said of it: what is not, is not known."""
    policies: tuple[Policy, ...]
    """Its own, and those of the project that have rules on its family."""
    threats: Mapping[str, Degree]
    """How far it is to mitigate each at least."""
    standing: Standing | None
    """What it had when the project wrote it down; None: it did not."""


@dataclass(frozen=True, slots=True)
class Project:
    """What a `tollbar.toml` says."""

    path: Path
    uses: tuple[ProjectUse, ...]
    budgets: tuple[CostBudget, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedUse:
    """What is found of a use on a day."""

    use: ProjectUse
    judged: tuple[Judged, ...]
    """By each policy."""
    threats: Mapping[str, Found]
    """Of each threat, whether it is mitigated as far as it is to be, and what is missing."""
    standing: Standing
    """Today's; where parameters are not given, the best that it may be."""
    fell: Part | None
    """Where that is worse than what was written down: the choice or the value that has it, with who says so."""

    @property
    def is_standing_sure(self) -> bool:
        """Whether all is given that decides its standing."""
        return not open_for_standing(self.use.family, self.use.cell)

    @property
    def is_bad_unasked(self) -> bool:
        """Whether its standing is a bad one, none was written down, and no rule asks for one."""
        rules = (finding.rule for one in self.judged for finding in one.findings)
        is_asked = self.use.standing is not None or any(rule.standing for rule in rules)
        return not is_asked and Standing.NULL is not self.standing and is_worse(self.standing, Standing.ACCEPTABLE)

    @property
    def missing(self) -> str | None:
        """Where nothing is asked of it: that."""
        return None if self.judged else f"no policy here has a rule on the family {self.use.family.name}"

    @property
    def ruling(self) -> Ruling:
        """The worst of what is found; where no policy speaks of it, it cannot be said."""
        found = [*(one.ruling for one in self.judged), *(ruling for ruling, _ in self.threats.values())]
        if self.fell or Ruling.BREAKS in found:
            return Ruling.BREAKS
        return Ruling.CANNOT_SAY if Ruling.CANNOT_SAY in found or self.missing else Ruling.MEETS


def read_project(path: Path) -> Project:
    """The project of this file. Raises TollbarError that names the file, the key and the nearest right one."""
    file = read(path, _File)
    read_once: dict[str, Policy] = {}

    def named(word: str, where: str) -> Policy:
        # Many uses may name the same.
        if word not in read_once:
            read_once[word] = policy(with_edition(word), beside=path.parent, where=where)
        return read_once[word]

    asked = [named(one, f"{path}: `policy`") for one in file.policy]
    uses = tuple(_use(name, one, asked, named, path) for name, one in file.uses.items())
    _refuse_many(uses, path)
    budgets = [
        CostBudget.model_construct(**dict(one), name=name, where=f"{path}: `budget.{name}`")
        for name, one in file.budget.items()
    ]
    return Project(path, uses, tuple(budgets))


def _refuse_many(uses: Sequence[ProjectUse], path: Path) -> None:
    """Raise TollbarError where judging each use by each rule on its family would take more than seconds."""
    counted = sum(
        use.family.name in rule.families
        for use in uses
        for policy_ in use.policies
        for part in policy_.all_of_it
        for rule in part.rules
    )
    if counted > MOST_JUDGED:
        what = f"its uses are judged by more than {MOST_JUDGED:,} rules, each counted for each use, which is the limit"
        raise TollbarError(what, where=str(path), hint="split it into several files, and check each")


def check_project(project: Project, on: date) -> tuple[CheckedUse, ...]:
    """What is found of each use on a day, in the file's order. Measures nothing, and says the same each time."""
    return tuple(_checked(use, on) for use in project.uses)


def _checked(use: ProjectUse, on: date) -> CheckedUse:
    standing = use.family.standing_of(use.cell)
    has_fallen = use.standing is not None and STANDINGS.index(standing) < STANDINGS.index(use.standing)
    part = next((one for one in use.family.parts_of(use.cell) if has_fallen and one.standing is standing), None)
    return CheckedUse(
        use,
        judged=tuple(judged(one, use.family, use.cell, on) for one in use.policies),
        threats={threat: does(use.family, use.cell, threat, degree) for threat, degree in use.threats.items()},
        standing=standing,
        fell=part,
    )


def _use(
    name: str, given: _Use, of_project: Sequence[Policy], named: Callable[[str, str], Policy], path: Path
) -> ProjectUse:
    where = f"{path}: `uses.{name}"
    family = families.family(given.family, where=f"{where}.family`")
    choice = find(given.choice, family.choices)
    if choice is None:
        raise unknown("choice", given.choice, family.choices, where=f"{where}.choice`")
    threats = dict(threat_wanted(family, word, where=f"{where}.threats`") for word in given.threats)
    cell: dict[str, str | int | float] = {"choice": choice}
    for setting, value in given.setting.items():
        if setting in PLACES:
            cell[setting] = _place(setting, value, family, where)
            continue
        if setting not in family.settings:
            raise unknown("setting", setting, [*family.settings, *PLACES], where=f"{where}.setting`")
        try:
            cell[setting] = family.settings[setting].read(value)
        except ValueError as error:
            known = family.settings[setting].values
            hint = nearest(str(value), map(str, known)) if known else None
            raise TollbarError(str(error), where=f"{where}.setting.{setting}`", hint=hint) from error
    there = settings_at(family, cell)
    for setting in given.setting:
        if setting not in (*PLACES, *there):
            what = f"`{setting}` means nothing there"
            raise TollbarError(what, where=f"{where}.setting`", hint=nearest(setting, there))
    if (refusal := family.why_unsupported(cell)) is not None:
        raise TollbarError(refusal, where=f"{where}.setting`" if given.setting else f"{where}.choice`")
    left_open = open_for_standing(family, cell)
    if given.standing is not None and left_open:
        names = " and ".join(left_open)
        hint = f"give {names} in `setting`, or leave the standing out"
        raise TollbarError(f"its standing is decided by {names}", where=f"{where}.standing`", hint=hint)
    own = [named(one, f"{where}.policy`") for one in given.policy]
    found = tuple({one.name: one for one in (*filter(lambda p: p.is_about(family.name), of_project), *own)}.values())
    return ProjectUse(name, family, cell, found, threats, given.standing)


def _place(name: str, value: str | int, family: Family, where: str) -> str:
    """Where a use is performed, or which operation it is; which servers and providers there are is not known here."""
    if name == "op" and value not in family.operations:
        raise unknown("op", str(value), family.operations, where=f"{where}.setting.op`")
    return str(value)
