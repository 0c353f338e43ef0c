"""Reading a family's folder: from TOML to a `Family`, or a one-line error with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from tollbar.catalog.families import consistency, preferred, threats
from tollbar.catalog.families.answer_file import SHARED_KEYS, WireAnswer, answer_of, key_of
from tollbar.catalog.families.choices import Choice, Level
from tollbar.catalog.families.coordinates import Unsupported, Value
from tollbar.catalog.families.definition import DEFAULT_PROVIDERS, Default, Family
from tollbar.catalog.families.made_of import Member, made_of
from tollbar.catalog.families.settings import IN_BYTES, MOST, MOST_BYTES, Setting, SettingValue, Unit, read_values
from tollbar.catalog.families.standing import Authority, Degree, Mitigation, Standing, Threat, ThreatSource
from tollbar.core import units
from tollbar.core.errors import TollbarError, nearest
from tollbar.core.metrics import Metric
from tollbar.core.patterns import is_like
from tollbar.core.wire import Plain, Wire, read

# Each part adds all settings of its family. Shipped families have at most three parts.
MOST_PARTS = 20
# Of patterns, each of which takes 0.1 ms to make.
MOST_CHOICES_OF_PART = 200

MOST_OPERATIONS = 100
"""Limit of the operations of a family, each of which makes cells of its own."""

MOST_SETTINGS = 200
"""Limit of the settings of a family, many times the most that ships: each cell is looked at setting by setting."""

MOST_LIKE = 10_000
"""Limit of the values that choices of a family take from those they are `like`, ten times the most that ships: a file
of 1 MiB could take a hundred million."""

MOST_ANSWERS = 1_000
"""Limit of the known answers of a family, ten times the most that ships: each may stand in a file of its own."""


class _WireCase(Wire):
    """Statement on a threat: the first whose `when` fits counts, and the last has none."""

    is_: Literal["yes", "no"] | None = Field(default=None, alias="is")
    partly: str | None = None
    when: dict[str, tuple[str, ...]] = {}

    @model_validator(mode="after")
    def _says_one_thing(self) -> _WireCase:
        if (self.is_ is None) == (self.partly is None):
            raise ValueError('must have either `is` or `partly`, for example `is = "yes"` or `partly = "with TLS"`')
        return self


def _cases(said: Any) -> Any:
    """Return a list of statements: a single one may be written as `"yes"`, `"no"`, or a table with `partly`."""
    if isinstance(said, list):
        return said
    return [{"is": said} if isinstance(said, str) else said]


def _ends(cases: tuple[_WireCase, ...]) -> tuple[_WireCase, ...]:
    if not cases or [bool(case.when) for case in cases] != [True] * (len(cases) - 1) + [False]:
        raise ValueError("only the last case must have no `when`; each case before it needs one")
    return cases


_WireMitigations = dict[str, Annotated[tuple[_WireCase, ...], BeforeValidator(_cases), AfterValidator(_ends)]]


class _WireLevel(Wire):
    at_least: dict[str, Value] = {}
    standing: Standing
    authority: tuple[Authority, ...]


class _WireChoice(Wire):
    like: str | None = None
    title: str
    spec: str
    year: int | None = None
    strength: int | None = None
    strength_from: str | None = None
    standing: Standing | None = None
    level: tuple[_WireLevel, ...] = ()
    memory: tuple[Value, ...] = ()
    authority: tuple[Authority, ...] = ()
    answers: tuple[WireAnswer, ...] = ()
    mitigates: _WireMitigations = {}
    setting: dict[str, Value] = {}
    key: str | None = None
    note: str | None = None
    unsupported: tuple[Unsupported, ...] = ()
    servers: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _has_a_standing(self) -> _WireChoice:
        if (self.standing is None) == (not self.level):
            raise ValueError('a choice needs either a `standing` or `level`s, for example `standing = "acceptable"`')
        if self.level and self.authority:
            raise ValueError("`authority` must be in each `level`, not in the choice")
        if self.level and self.level[-1].at_least:
            raise ValueError(
                "the last `level` cannot have `at-least`, because it covers all values below the other levels"
            )
        return self


class _WireValue(Wire):
    title: str
    spec: str | None = None
    strength: int | None = None
    strength_from: str | None = None
    standing: Standing | None = None
    authority: tuple[Authority, ...] = ()
    mitigates: _WireMitigations = {}
    only: dict[str, tuple[str, ...]] = {}
    note: str | None = None
    raises: tuple[str, ...] = ()
    elsewhere: str | None = None


class _WireSetting(Wire):
    title: str
    unit: Unit | None = None
    values: tuple[Value, ...] | None = None
    least: Value | None = None
    most: Value | None = None
    multiple_of: Value | None = None
    least_each: dict[str, Value] = {}
    breaks_even_with: dict[str, Value] = {}
    how: bool = False
    default: Value
    only: dict[str, tuple[str, ...]] = {}
    in_words: dict[str, str] = {}
    value: dict[str, _WireValue] = {}
    unsupported: tuple[Unsupported, ...] = ()


class _WireSource(Wire):
    of: tuple[str, ...] = ("*",)
    by: str
    where: str
    says: str
    seen: date
    checked: bool = False


class _WireThreat(Wire):
    title: str
    authority: tuple[_WireSource, ...] = ()


class _WireMetric(Wire):
    title: str
    unit: str
    more_is_better: bool = False


class _WireHead(Wire):
    title: str
    operations: Annotated[tuple[str, ...], Field(max_length=MOST_OPERATIONS)]
    unanswered: tuple[str, ...] = ()
    strength_means: str | None = None
    providers: tuple[str, ...] = DEFAULT_PROVIDERS
    load: bool = True
    servers: tuple[str, ...] = ()
    built_in: tuple[str, ...] = ()
    is_self_test: bool = False

    @model_validator(mode="after")
    def _knows_its_operations(self) -> _WireHead:
        for operation in self.unanswered:
            if operation not in self.operations:
                raise ValueError(f"`unanswered`: no such operation: `{operation}`; known: {', '.join(self.operations)}")
        return self


class _WirePart(Wire):
    title: str
    family: Plain
    choices: Annotated[tuple[str, ...], Field(max_length=MOST_CHOICES_OF_PART)] = ("*",)
    default: str
    op: str | None = None
    leave_out: tuple[str, ...] = ()
    given: dict[str, Value | dict[str, Value]] = {}


def _completed(choices: Any) -> Any:
    """Return the choices, completed by the values of those that they are `like`."""
    if not isinstance(choices, dict):
        return choices
    complete: dict[str, Any] = {}
    taken = 0
    for name, choice in choices.items():
        like = choice.get("like") if isinstance(choice, dict) else None
        if like is not None and not isinstance(complete.get(str(like)), dict):
            # A choice must follow the one it is like, so that none is like itself.
            raise ValueError(f"`{name}.like`: `{like}` must be a choice above this one; {nearest(str(like), complete)}")
        if like is not None:
            other = {key: value for key, value in complete[str(like)].items() if key not in choice}
            taken += sum(map(_values_in, other.values()))
            if taken > MOST_LIKE:
                what = (
                    f"more than {MOST_LIKE:,} values of choices are taken from those they are like, which is the limit"
                )
                raise ValueError(f"`{name}.like`: {what}")
            choice = other | choice
        complete[name] = choice
    return complete


def _values_in(said: Any) -> int:
    """Return the number of values in a value of TOML, itself among them."""
    if isinstance(said, dict):
        return 1 + sum(map(_values_in, said.values()))
    return 1 + sum(map(_values_in, said)) if isinstance(said, list) else 1


class _WireFamily(Wire):
    family: _WireHead
    default: Default | None = None
    threat: dict[str, _WireThreat] = {}
    metric: dict[str, _WireMetric] = {}
    setting: Annotated[dict[str, _WireSetting], Field(max_length=MOST_SETTINGS)] = {}
    part: Annotated[dict[str, _WirePart], Field(max_length=MOST_PARTS)] = {}
    choice: Annotated[dict[str, _WireChoice], BeforeValidator(_completed)]

    @field_validator("default", mode="before")
    @classmethod
    def _without_never(cls, default: Any) -> Any:
        # Runs of earlier builds keep families whose default lists the choices that are now references.
        return {key: one for key, one in default.items() if key != "never"} if isinstance(default, dict) else default

    @model_validator(mode="after")
    def _has_few_answers(self) -> _WireFamily:
        if (count := sum(len(choice.answers) for choice in self.choice.values())) > MOST_ANSWERS:
            raise ValueError(f"`choice`: {count:,} known answers of all choices; the limit is {MOST_ANSWERS:,}")
        return self


def name_of(folder: Path) -> str:
    """Return a family's name: its folder's.

    Shipped folders have `_` for `-`, because modules are imported from them.
    """
    return folder.name.replace("_", "-") if folder.parent == SHARED_KEYS.parent else folder.name


def read_family(
    folder: Path,
    *,
    with_answers: bool = True,
    read_before: dict[Path, Family] | None = None,
    is_part: bool = False,
    earlier: bool = False,
) -> Family:
    """Return the family of a folder. Raises TollbarError with the file, the key and the fault.

    `with_answers=False` omits known answers and keys, which a run does not keep. Folders in `read_before` are not read
    again, and newly read families are added to it. A family that `is_part` of another one cannot have parts, because
    their number would grow exponentially. `earlier`: it is in words of an earlier version.
    """
    read_before = {} if read_before is None else read_before
    if folder in read_before:
        return read_before[folder]
    path = folder / "family.toml"
    try:
        wire = read(path, _WireFamily, earlier=earlier)
        if wire.part and is_part:
            raise ValueError("`part`: a family that is a part of another cannot have parts")
        settings = {name: _setting(name, s) for name, s in wire.setting.items()}
        answers_in = folder if with_answers else None
        head = dict(wire.family)
        unanswered = head.pop("unanswered")
        found = Family(
            **head,
            name=name_of(folder),
            settings=settings,
            choices={name: _choice(name, c, unanswered, settings, answers_in) for name, c in wire.choice.items()},
            threats={name: _threat(name, t) for name, t in wire.threat.items()},
            metrics={name: Metric(name, **dict(one)) for name, one in wire.metric.items()},
            folder=folder,
        )
        if wire.part:
            parts: dict[Path, Family] = {}
            members = [_member(name, one, folder, with_answers, parts, earlier) for name, one in wire.part.items()]
            found = made_of(found, members)
        if wire.default:
            setting = read_values(wire.default.setting, found.settings)
            found = replace(found, default=replace(wire.default, setting=setting))
        # Kept families of runs are not checked by later rules. Tollbar's own tests check the shipped families, because
        # that takes tens of milliseconds.
        is_known = not with_answers or folder.parent == SHARED_KEYS.parent
        asked = (
            consistency.complaints(found),
            preferred.complaints(found),
            () if is_known else threats.complaints(found),
        )
        for complaint in chain(*asked):
            raise ValueError(complaint)
    except (OSError, ValueError) as error:
        raise TollbarError(str(error), where=str(path)) from error
    read_before[folder] = found
    return found


def _member(
    name: str, wire: _WirePart, folder: Path, with_answers: bool, read_before: dict[Path, Family], earlier: bool
) -> Member:
    """Return a member family from a folder next to this one's, or a shipped one."""
    own = SHARED_KEYS.parent
    places = [root / of for root in (folder.parent, own) for of in (wire.family, wire.family.replace("-", "_"))]
    found = next((place for place in places if (place / "family.toml").exists()), None)
    if found is None:
        known = nearest(wire.family, [name_of(one.parent) for one in own.glob("*/family.toml")])
        raise ValueError(f"`part.{name}.family`: no such family: `{wire.family}`; {known}")
    family = read_family(found, with_answers=with_answers, read_before=read_before, is_part=True, earlier=earlier)
    choices = tuple(choice for choice in family.choices if any(is_like(choice, one) for one in wire.choices))
    if wire.default not in choices:
        raise ValueError(
            f"`part.{name}.default`: `{wire.default}` must be one of its choices; {nearest(wire.default, choices)}"
        )
    if wire.op is not None and wire.op not in family.operations:
        raise ValueError(f"`part.{name}.op`: no such operation: `{wire.op}`; {nearest(wire.op, family.operations)}")
    for setting in wire.given:
        if setting not in family.settings:
            raise ValueError(f"`part.{name}.given`: no such setting: `{setting}`; {nearest(setting, family.settings)}")
    return Member(name, wire.title, family, choices, wire.default, wire.op, wire.leave_out, wire.given)


def _most(setting: Setting) -> int | None:
    """Return the default limit of a setting; None if it is not a number."""
    if setting.is_share or not setting.is_number:
        return None
    return MOST_BYTES if setting.unit in IN_BYTES else MOST


def _setting(name: str, wire: _WireSetting) -> Setting:
    given = {key: value for key, value in wire if key not in ("value", "least", "most", "multiple_of", "least_each")}
    setting = Setting(name, **given, about={value: _value(value, one) for value, one in wire.value.items()})
    # The setting's own reader knows the unit of its bounds.
    bounded = replace(
        setting,
        least=None if wire.least is None else int(setting.read(wire.least)),
        most=_most(setting) if wire.most is None else int(setting.read(wire.most)),
        multiple_of=1 if wire.multiple_of is None else int(setting.read(wire.multiple_of)),
        least_each={other: int(setting.read(least)) for other, least in wire.least_each.items()},
    )
    if bounded.values is not None or not bounded.is_number:
        return bounded
    try:
        return replace(bounded, default=bounded.read(wire.default))
    except ValueError as error:
        raise ValueError(f"`setting.{name}.default`: {error}") from error


def _value(name: str, wire: _WireValue) -> SettingValue:
    return SettingValue(name, **dict(wire) | {"mitigates": _mitigations(wire.mitigates)})


def _choice(
    name: str,
    wire: _WireChoice,
    unanswered: tuple[str, ...],
    settings: Mapping[str, Setting],
    folder: Path | None,
) -> Choice:
    """Return the choice; without a `folder`, without its key and known answers."""
    key = folder and wire.key and key_of(folder, wire.key)
    given = dict(wire)
    del given["key"], given["like"], given["level"]
    levels = tuple(_level(one, settings) for one in wire.level)
    given |= {"mitigates": _mitigations(wire.mitigates), "levels": levels}
    given |= {"setting": read_values(wire.setting, settings), "standing": wire.standing or levels[-1].standing}
    given["memory"] = tuple(one if one in settings else units.size_bytes(one) for one in wire.memory)
    given["answers"] = tuple(answer_of(name, one, settings, folder) for one in wire.answers) if folder else ()
    choice = Choice(name, inputs={"private_key_pem": key} if key else {}, unanswered=unanswered, **given)
    return choice.at({name: setting.default for name, setting in settings.items()})


def _level(wire: _WireLevel, settings: Mapping[str, Setting]) -> Level:
    at_least = {name: int(value) for name, value in read_values(wire.at_least, settings).items()}
    return Level(at_least, wire.standing, wire.authority)


def _threat(name: str, wire: _WireThreat) -> Threat:
    given = [dict(one) for one in wire.authority]
    return Threat(name, wire.title, tuple(ThreatSource(one.pop("of"), Authority(**one)) for one in given))


def _mitigations(wire: _WireMitigations) -> dict[str, tuple[Mitigation, ...]]:
    return {
        threat: tuple(Mitigation(Degree(one.is_ or "partly"), one.partly, one.when) for one in said)
        for threat, said in wire.items()
    }
