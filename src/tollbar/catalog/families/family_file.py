"""Reading a family's folder: from TOML to a `Family`, or a one-line error with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from tollbar.catalog.families import consistency, preferred, threats
from tollbar.catalog.families.answer_file import SHARED_KEYS, answer_of, key_of
from tollbar.catalog.families.choices import Choice, Level
from tollbar.catalog.families.definition import Family
from tollbar.catalog.families.family_tables import (
    WireChoice,
    WireFamily,
    WireLevel,
    WireMitigations,
    WirePart,
    WireSetting,
    WireThreat,
    WireValue,
)
from tollbar.catalog.families.made_of import Member, made_of
from tollbar.catalog.families.settings import IN_BYTES, MOST, MOST_BYTES, Setting, SettingValue, read_values
from tollbar.catalog.families.standing import Authority, Degree, Mitigation, Threat, ThreatSource
from tollbar.core import units
from tollbar.core.errors import TollbarError, nearest
from tollbar.core.metrics import Metric
from tollbar.core.patterns import is_like
from tollbar.core.wire import read


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
        wire = read(path, WireFamily, earlier=earlier)
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
    name: str, wire: WirePart, folder: Path, with_answers: bool, read_before: dict[Path, Family], earlier: bool
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


def _setting(name: str, wire: WireSetting) -> Setting:
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


def _value(name: str, wire: WireValue) -> SettingValue:
    return SettingValue(name, **dict(wire) | {"mitigates": _mitigations(wire.mitigates)})


def _choice(
    name: str,
    wire: WireChoice,
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


def _level(wire: WireLevel, settings: Mapping[str, Setting]) -> Level:
    at_least = {name: int(value) for name, value in read_values(wire.at_least, settings).items()}
    return Level(at_least, wire.standing, wire.authority)


def _threat(name: str, wire: WireThreat) -> Threat:
    given = [dict(one) for one in wire.authority]
    return Threat(name, wire.title, tuple(ThreatSource(one.pop("of"), Authority(**one)) for one in given))


def _mitigations(wire: WireMitigations) -> dict[str, tuple[Mitigation, ...]]:
    return {
        threat: tuple(Mitigation(Degree(one.is_ or "partly"), one.partly, one.when) for one in said)
        for threat, said in wire.items()
    }
