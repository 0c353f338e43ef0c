"""The `tollbar.toml` of a project: its choices and budgets, and whether they still meet its policies.

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
"""Limit of the policies that a file names, each of which may be a file to read."""

MOST_USES = 500
"""Limit of the uses of a project: reading and judging one takes 2 ms and more."""

MOST_BUDGETS = 100
"""Limit of the budgets of a project: planning one takes 30 ms, and measuring it a second."""

MOST_JUDGED = 40_000
"""Limit of the rules that judge a project's uses, counted for each use: applying one takes 0.1 ms."""

MOST_MATCHED = 200_000
"""Limit of the patterns of these rules, counted for each use: a comparison takes up to 10 us."""

MOST_LETTERS = 8 << 20
"""Limit of the letters of these rules, counted for each use, which an answer may print."""

_Names = Annotated[tuple[str, ...], OneOrMore]
_Policies = Annotated[_Names, Field(max_length=MOST_NAMED)]
_Ratio = Annotated[FiniteFloat, Field(gt=0, strict=True)]
# A budget is measured as a study of its name, which is the name of a file in a run.
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=100)]


@dataclass(frozen=True, slots=True)
class Processor:
    """Processor properties that determine cost ratios; `machine.fingerprint` has this machine's."""

    cpu: str
    model: str
    """Family, model and stepping."""
    flags: str
    """Relevant instruction sets, separated by spaces."""


class SetOn(Wire):
    """Machine and day on which a limit was accepted."""

    cpu: str
    model: str
    flags: str
    ratio: _Ratio
    """Ratio as measured then."""
    libraries: tuple[str, ...]
    """Implementations of both choices then, with versions: reported if a limit is broken, but not compared."""
    day: date
    method: Annotated[int, Field(ge=FIRST)] = FIRST
    """Version of the method that measured the ratio."""

    @property
    def processor(self) -> Processor:
        """Processor on which the limit holds."""
        return Processor(self.cpu, self.model, self.flags)


class _Limit(Wire):
    family: str
    choice: str
    against: str
    """Another choice, or a differing coordinate: `key-exchange=x25519`."""
    setting: dict[str, str | int] = Field(default_factory=dict)
    """Coordinates, of one value each."""
    at_most: _Ratio | None = None
    """Limit of the ratio; None: not set yet."""
    set_on: SetOn | None = None
    """Origin of the limit; None: a person set it, and it holds on any machine."""


class CostBudget(_Limit):
    """Limit of a choice's cost relative to another, in the words of `tollbar ask`."""

    name: str
    where: str
    """File and table, for messages."""


class _Use(Wire):
    family: str
    choice: str
    setting: dict[str, str | int] = Field(default_factory=dict)
    policy: _Policies = ()
    threats: _Names = ()
    standing: Standing | None = None


class _ProjectFile(Wire):
    policy: _Policies = ()
    uses: dict[_Name, _Use] = Field(default_factory=dict, max_length=MOST_USES)
    budget: dict[_Name, _Limit] = Field(default_factory=dict, max_length=MOST_BUDGETS)


@dataclass(frozen=True, slots=True)
class ProjectUse:
    """Choice that a project has made."""

    name: str
    family: Family
    cell: Cell
    """Declared coordinates; anything absent is unknown."""
    policies: tuple[Policy, ...]
    """Policies of the use itself, and those of the project with rules on its family."""
    threats: Mapping[str, Degree]
    """Least required mitigation of each threat."""
    standing: Standing | None
    """Standing when the project recorded it; None if it did not."""


@dataclass(frozen=True, slots=True)
class Project:
    """Content of a `tollbar.toml`."""

    path: Path
    uses: tuple[ProjectUse, ...]
    budgets: tuple[CostBudget, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedUse:
    """Findings on a use on a day."""

    use: ProjectUse
    judged: tuple[Judged, ...]
    """Judgement of each policy."""
    threats: Mapping[str, Found]
    """Ruling on each required mitigation, with the missing part."""
    standing: Standing
    """Today's standing; the best possible one if parameters are missing."""
    fell: Part | None
    """Choice or value that lowered the recorded standing, with its authority; None if it did not fall."""

    @property
    def is_standing_sure(self) -> bool:
        """True if all coordinates that decide its standing are given."""
        return not open_for_standing(self.use.family, self.use.cell)

    @property
    def is_bad_unasked(self) -> bool:
        """True if its standing is bad, none was recorded, and no rule asks for one."""
        rules = (finding.rule for one in self.judged for finding in one.findings)
        is_asked = self.use.standing is not None or any(rule.standing for rule in rules)
        return not is_asked and self.standing.is_of_option and is_worse(self.standing, Standing.ACCEPTABLE)

    @property
    def missing(self) -> str | None:
        """Reason why nothing judges it, or None."""
        return None if self.judged else f"no policy here has a rule on the family {self.use.family.name}"

    @property
    def ruling(self) -> Ruling:
        """Worst ruling; *cannot say* if no policy covers it."""
        found = [*(one.ruling for one in self.judged), *(ruling for ruling, _ in self.threats.values())]
        if self.fell or Ruling.BREAKS in found:
            return Ruling.BREAKS
        return Ruling.CANNOT_SAY if Ruling.CANNOT_SAY in found or self.missing else Ruling.MEETS


def read_project(path: Path) -> Project:
    """Return the project of this file. Raises TollbarError with the file, the key and the nearest valid one."""
    file = read(path, _ProjectFile)
    read_once: dict[str, Policy] = {}
    already: dict[Path, Policy] = {}

    def named(word: str, where: str) -> Policy:
        # Cached, because many uses may name the same policy.
        if word not in read_once:
            if len(read_once) >= MOST_NAMED:
                what = f"the file names more than {MOST_NAMED} policies, which is the limit"
                raise TollbarError(what, where=where, hint="split it into several files, and check each")
            read_once[word] = policy(with_edition(word), beside=path.parent, where=where, already=already)
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
    """Raise TollbarError if judging each use by each rule on its family would take more than seconds."""
    rules = [
        rule
        for use in uses
        for policy_ in use.policies
        for part in policy_.all_of_it
        for rule in part.rules
        if use.family.name in rule.families
    ]
    for count, most, unit in (
        (len(rules), MOST_JUDGED, "rules"),
        (sum(rule.patterns for rule in rules), MOST_MATCHED, "patterns of rules"),
        (sum(rule.letters for rule in rules), MOST_LETTERS, "letters of rules"),
    ):
        if count > most:
            what = f"its uses are judged by more than {most:,} {unit}, each counted for each use, which is the limit"
            raise TollbarError(
                what,
                where=str(path),
                hint="split it into several files and check each, for example `tollbar check policy web.toml`",
            )


def check_project(project: Project, on: date) -> tuple[CheckedUse, ...]:
    """Return the findings on each use on a day, in the file's order, without measuring."""
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
            what = f"`{setting}` does not apply to `{choice}` with these settings; remove it"
            raise TollbarError(what, where=f"{where}.setting`", hint=nearest(setting, there))
    if (refusal := family.why_unsupported(cell)) is not None:
        raise TollbarError(refusal, where=f"{where}.setting`" if given.setting else f"{where}.choice`")
    left_open = open_for_standing(family, cell)
    if given.standing is not None and left_open:
        names = " and ".join(left_open)
        hint = f"give {names} in `setting`, or remove `standing`"
        raise TollbarError(
            f"the standing depends on {names}, which must be given", where=f"{where}.standing`", hint=hint
        )
    own = [named(one, f"{where}.policy`") for one in given.policy]
    found = tuple({one.name: one for one in (*filter(lambda p: p.is_about(family.name), of_project), *own)}.values())
    return ProjectUse(name, family, cell, found, threats, given.standing)


def _place(name: str, value: str | int, family: Family, where: str) -> str:
    """Return the operation, server or provider of a use; the existing servers and providers are not known here."""
    if name == "op" and value not in family.operations:
        raise unknown("op", str(value), family.operations, where=f"{where}.setting.op`")
    return str(value)
