"""Combined families: each cell consists of one cell of each member, and has the worst of their standings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tollbar.catalog.families.cells import OF_A_LOAD
from tollbar.catalog.families.coordinates import Value
from tollbar.catalog.families.definition import Family, Part
from tollbar.catalog.families.settings import Setting, SettingValue
from tollbar.catalog.families.standing import WORST_FIRST, Degree, Mitigation, Standing, Threat, ThreatSource
from tollbar.core.patterns import is_like


@dataclass(frozen=True, slots=True)
class Member:
    """Family that is part of a combined one, under its own name there."""

    name: str
    """Coordinate of its choice; also the prefix of its settings' names."""
    title: str
    family: Family
    choices: tuple[str, ...]
    default: str
    op: str | None = None
    """Operation of the member; None: that of the whole."""
    left_out: tuple[str, ...] = ()
    """Patterns of its settings that stay at their defaults."""
    given: Mapping[str, Value | Mapping[str, Value]] = field(default_factory=dict)
    """Settings that the whole fixes: a value, or one for each pattern of the whole's value there."""

    def name_of(self, setting: str) -> str:
        """Return the name of its setting in the whole."""
        return f"{self.name}-{setting}"

    def cell(self, coordinates: Mapping[str, Value]) -> dict[str, Value]:
        """Return its own cell in a cell of the whole."""
        own: dict[str, Value] = {
            name: coordinates[name] for name in ("provider", "server", *OF_A_LOAD) if name in coordinates
        }
        own |= {"choice": coordinates.get(self.name, self.default), "op": self.op or coordinates.get("op", "")}
        for name, setting in self.family.settings.items():
            if not setting.applies(own):
                continue
            said = self.given.get(name)
            if isinstance(said, Mapping):
                at = str(coordinates.get(name, ""))
                own[name] = next((v for pattern, v in said.items() if is_like(at, pattern)), setting.default)
            elif said is not None:
                own[name] = said
            elif (set_by := next((n for n in (self.name_of(name), name) if n in coordinates), None)) is not None:
                own[name] = coordinates[set_by]
            else:
                own[name] = self.family.default_at(name, own)
        return own


@dataclass(frozen=True, slots=True)
class MadeOf(Family):
    """Family whose cells consist of one cell of each of its members."""

    members: Mapping[str, Member] = field(default_factory=dict)

    def cells_at(self, coordinates: Mapping[str, Value]) -> Iterator[tuple[Member, dict[str, Value]]]:
        """Yield each member with its own cell."""
        choice = self.choices[str(coordinates["choice"])]
        yield from ((member, member.cell({**coordinates, **choice.setting})) for member in self.members.values())

    def standing_of(self, coordinates: Mapping[str, Value]) -> Standing:
        """Return the worst standing of the protecting members; null if none protects."""
        found = [member.family.standing_of(cell) for member, cell in self.cells_at(coordinates)]
        return min((one for one in found if one is not Standing.NULL), key=WORST_FIRST.index, default=Standing.NULL)

    def lowered_by(self, coordinates: Mapping[str, Value]) -> str | None:
        """Return the first of its settings that alone determines a cell's standing."""
        of_all = self.standing_of(coordinates)
        for member, cell in self.cells_at(coordinates):
            if member.family.standing_of(cell) is of_all:
                inner = member.family.lowered_by(cell)
                names = (member.name_of(inner), inner) if inner else ()
                return next((name for name in names if name in self.settings), member.name)
        return None

    def strength_of(self, coordinates: Mapping[str, Value]) -> int | None:
        """Return the least strength of its members, in bits; None if no member has one."""
        found = (member.family.strength_of(cell) for member, cell in self.cells_at(coordinates))
        return min((bits for bits in found if bits is not None), default=None)

    def mitigations_of(self, coordinates: Mapping[str, Value], *, of_choice: bool = False) -> Mapping[str, Mitigation]:
        """Return each member's mitigations of its own threats."""
        return {
            member.name_of(threat): done
            for member, cell in self.cells_at(coordinates)
            for threat, done in member.family.mitigations_of(cell, of_choice=of_choice).items()
        }

    def default_at(self, name: str, coordinates: Mapping[str, Value]) -> Value:
        """Return the default of a setting there; for a member's setting, that of the member's cell."""
        for member, cell in self.cells_at(coordinates):
            for inner in member.family.settings:
                if member.name_of(inner) == name:
                    return member.family.default_at(inner, cell)
        return self.settings[name].default

    def why_unsupported(self, coordinates: Mapping[str, Value]) -> str | None:
        """Return why one of its members' cells is unsupported; None: all are supported."""
        for member, cell in self.cells_at(coordinates):
            reason = member.family.why_unsupported(cell)
            if reason is not None:
                for inner in member.family.settings:
                    reason = reason.replace(f"`{inner}=", f"`{member.name_of(inner)}=")
                return reason
        return None

    def parts_of(self, coordinates: Mapping[str, Value]) -> tuple[Part, ...]:
        """Return the choice, and the parts of its members' cells."""
        parts = [part for member, cell in self.cells_at(coordinates) for part in member.family.parts_of(cell)]
        return (self.choices[str(coordinates["choice"])], *parts)

    def values_at(self, coordinates: Mapping[str, Value]) -> list[SettingValue]:
        """Return the values of its members' cells."""
        return [
            replace(value, raises=tuple(map(member.name_of, value.raises)))
            for member, cell in self.cells_at(coordinates)
            for value in member.family.values_at(cell)
        ]


def made_of(family: Family, members: Sequence[Member]) -> MadeOf:
    """Return the family with its members' settings and threats after its own.

    Only members have statements on threats; the choices of the whole have none.
    """
    settings = dict(family.settings)
    threats: dict[str, Threat] = {}
    for member in members:
        settings |= {setting.name: setting for setting in _settings(member, family, settings)}
        threats |= {
            member.name_of(name): Threat(
                member.name_of(name), one.title, tuple(ThreatSource(("*",), s.authority) for s in one.sources)
            )
            for name, one in member.family.threats.items()
        }
    silent = dict.fromkeys(threats, (Mitigation(Degree.NO),))
    choices = {
        name: choice if choice.standing is Standing.NULL else replace(choice, mitigates=silent)
        for name, choice in family.choices.items()
    }
    own = {name: getattr(family, name) for name in family.__dataclass_fields__}
    return MadeOf(
        **{**own, "settings": settings, "threats": threats, "choices": choices},
        members={member.name: member for member in members},
    )


def _settings(member: Member, whole: Family, before: Mapping[str, Setting]) -> Iterator[Setting]:
    protecting = tuple(choice.name for choice in whole.choices.values() if choice.standing is not Standing.NULL)
    about = {
        name: _named(name, choice.title, choice.spec, choice.note)
        for name, choice in member.family.choices.items()
        if name in member.choices
    }
    yield Setting(member.name, member.title, member.choices, None, member.default, {"choice": protecting}, about=about)
    own: dict[str, Setting] = {}
    for name, setting in member.family.settings.items():
        stays = name in member.given or name in before or any(is_like(name, one) for one in member.left_out)
        only = None if stays else _only(whole, member, setting.only, own)
        if only is not None:
            # The member itself has the standing of the values.
            about = {value: _named(one.name, one.title, one.spec, one.note) for value, one in setting.about.items()}
            own[name] = replace(
                setting,
                name=member.name_of(name),
                only=only,
                about=about,
                unsupported=(),
                least_each={_whole_name(member, other): least for other, least in setting.least_each.items()},
                breaks_even_with={_whole_name(member, n): v for n, v in setting.breaks_even_with.items()},
            )
    yield from own.values()


def _whole_name(member: Member, name: str) -> str:
    return member.name_of(name) if name in member.family.settings else name


def _named(name: str, title: str, spec: str | None, note: str | None) -> SettingValue:
    return SettingValue(name, title, spec, None, None, None, (), {}, {}, note)


def _only(
    whole: Family, member: Member, only: Mapping[str, tuple[str, ...]], own: Mapping[str, Setting]
) -> dict[str, tuple[str, ...]] | None:
    """Return the conditions of a member's setting in the whole; None if it applies to no cell.

    `own` are the member's earlier settings in the whole.
    """
    found: dict[str, tuple[str, ...]] = {member.name: member.choices}
    for name, patterns in only.items():
        if name == "choice":
            found[member.name] = tuple(one for one in patterns if any(is_like(of, one) for of in member.choices))
        elif name in own:
            found[member.name_of(name)] = patterns
        elif name == "op" and member.op is None:
            found[name] = tuple(one for one in whole.operations if any(is_like(one, pattern) for pattern in patterns))
        elif name in ("provider", "server"):
            found[name] = patterns
        elif not any(is_like(_fixed(member, name), pattern) for pattern in patterns):
            return None
    return found if all(found.values()) else None


def _fixed(member: Member, name: str) -> str:
    """Return a member's value of a coordinate that the whole does not set; empty if it has none."""
    if name == "op":
        return member.op or ""
    is_left_out = any(is_like(name, one) for one in member.left_out)
    return str(member.family.settings[name].default) if is_left_out and name in member.family.settings else ""
