"""From an asset to what it is an instance of: a choice of a family with settings, or why that cannot be said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from string import Formatter
from typing import Annotated

from pydantic import BeforeValidator, Field

from tollbar import families, wire
from tollbar.errors import TollbarError
from tollbar.families import Family, Value, fits, settings_at
from tollbar.inventory.reading import Asset, Inventory, shown

_TABLE = Path(__file__).with_name("mapping.toml")
_CODE_POINTS = Path(__file__).with_name("code-points.toml")
# Texts are from elsewhere, and no name of an algorithm is longer.
_MOST_LETTERS = 200
# Each takes 0.1 ms, and most of an inventory's assets have one of some hundred names.
# To map one takes 0.2 ms and more.
MOST_DIFFERENT = 10_000
_MOST_REMEMBERED = 2**16
_BETWEEN = re.compile(r"[\s_/.:]+")
_BETWEEN_NAMES = "|"
# What stands between the texts of a property that has several.
_BETWEEN_TEXTS = {"algorithms": _BETWEEN_NAMES, "functions": "-"}
_HAS_NO = "Tollbar's family {family} has no {setting} {value}"
# A code point of two bytes: `{0x13,0x01}`, `0x1301`, `4865`. One that begins with 0 and no x may be of either kind.
_CODE_POINT = re.compile(
    r"[{(\[]?0x([0-9a-f]{1,2})[\s,;:]+0x([0-9a-f]{1,2})[})\]]?|0x([0-9a-f]{4})|([1-9][0-9]{0,4})", re.IGNORECASE
)
# What both of its values may be, as a key for signatures and for transport is.
_SEVERAL = "use"


@dataclass(frozen=True, slots=True)
class Use:
    """A choice that an asset is an instance of."""

    family: Family
    coordinates: Mapping[str, Value]
    """What is said of it: a setting that the inventory does not say is not among them."""
    beyond: tuple[str, ...] = ()
    """What it says besides that Tollbar cannot judge, each as a sentence."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """What an asset is an instance of."""

    uses: tuple[Use, ...] = ()
    """Several where the inventory does not say which of them: a key that may sign, or transport keys."""
    reason: str | None = None
    """Why there is none."""


def mapped(inventory: Inventory) -> tuple[Mapped, ...]:
    """What each asset of an inventory is an instance of, in its order."""
    known = families.families()
    # Names differ in what says nothing: what is alike in what they say is looked up once.
    by_texts: dict[tuple[tuple[str, str], ...], Mapped] = {}
    by_facts: dict[str, Mapped] = {}
    followed = _Followed(inventory)
    found = []
    for asset in inventory.assets:
        if asset.fault:
            found.append(Mapped(reason=f"not as CycloneDX has it: {asset.fault}"))
            continue
        texts = tuple(_texts(asset, followed).items())
        if texts not in by_texts:
            if len(by_texts) >= MOST_DIFFERENT:
                many = f"more than {MOST_DIFFERENT:,} assets that differ in what is said of them, the limit"
                hint = "price it part by part: `jq` selects some of its `components`, for example"
                raise TollbarError(many, where=str(inventory.path), hint=hint)
            facts = _Facts(dict(texts))
            key = repr(facts.found)
            if key not in by_facts:
                by_facts[key] = _mapped(facts, known)
            by_texts[texts] = by_facts[key]
        what = by_texts[texts]
        twice = followed.twice(asset)
        found.append(
            _but(what, f"`{shown(twice)}`, which it refers to, stands for several components") if twice else what
        )
    return tuple(found)


def _but(what: Mapped, reason: str) -> Mapped:
    """The same, where what an asset refers to might say more or something else."""
    uses = tuple(replace(one, beyond=(*one.beyond, reason)) for one in what.uses)
    return Mapped(uses, None if uses else reason)


class _Followed:
    """What the assets of an inventory refer to: each is followed once, however many refer to it."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._merged: dict[int, tuple[Mapping[str, str], str]] = {}
        self._twice: dict[int, str | None] = {}
        self._joined: dict[int, str] = {}

    def of(self, asset: Asset, by: str) -> Iterator[Asset]:
        """The assets that one refers to by a property."""
        found = map(self._inventory.by_reference.get, asset.refers.get(by, ()))
        return (one for one in found if one is not None)

    def merged(self, asset: Asset) -> tuple[Mapping[str, str], str]:
        """What the algorithms of an asset say together, the first of them first; and the name of the last."""
        if id(asset) not in self._merged:
            self._merged[id(asset)] = _together(
                (one.said, one.said.get("name", "")) for one in self.of(asset, "algorithm")
            )
        return self._merged[id(asset)]

    def of_certificate(self, asset: Asset) -> tuple[Mapping[str, str], str]:
        """The same of the keys of a certificate, and behind them of the algorithms of these."""
        keys = [*self.of(asset, "key")]
        said = [(key.said, key.said.get("name", "")) for key in keys]
        return _together([*said, *map(self.merged, keys)])

    def names(self, asset: Asset) -> str:
        """The names of the algorithms of a cipher suite, as far as they are looked at."""
        # One and the same for all groups of a suite.
        references = asset.refers.get("algorithm", ())
        if id(references) not in self._joined:
            self._joined[id(references)] = _joined(map(_names, self.of(asset, "algorithm")))
        return self._joined[id(references)]

    def twice(self, asset: Asset) -> str | None:
        """A reference of several components that an asset, or a key of it, refers to."""
        if not self._inventory.twice:
            return None
        followed = (refs for one in (asset, *self.of(asset, "key")) for refs in one.refers.values())
        return next((one for one in map(self._first_twice, followed) if one), None)

    def _first_twice(self, references: tuple[str, ...]) -> str | None:
        if id(references) not in self._twice:
            self._twice[id(references)] = next((one for one in references if one in self._inventory.twice), None)
        return self._twice[id(references)]


def _together(several: Iterable[tuple[Mapping[str, str], str]]) -> tuple[Mapping[str, str], str]:
    said: dict[str, str] = {}
    last = ""
    for one, name in several:
        for key, text in one.items():
            if key != "name":
                said.setdefault(key, text)
        last = name or last
    return said, last


def _joined(names: Iterable[str]) -> str:
    joined = ""
    for number, name in enumerate(names):
        joined += _BETWEEN_NAMES + name if number else name
        if len(joined) > _MOST_LETTERS:
            # Half a name could be that of another.
            return joined[:_MOST_LETTERS].rpartition(_BETWEEN_NAMES)[0]
    return joined


def _texts(asset: Asset, followed: _Followed) -> Mapping[str, str]:
    """All that is said of an asset, by property, with what it refers to."""
    said = dict(asset.said)
    if asset.kind == "cipher suite":
        said["algorithms"] = followed.names(asset)
        said |= {name: _named(said.get(name, ""), of) for name, of in _code_points().of_properties.items()}
        if said.get("group"):
            # Told from the names of algorithms, which need not be those of groups.
            said["group"] = f"group {said['group']}"
    else:
        # What a key does not say of itself its algorithm says; its name is that of the last one.
        more, name = followed.of_certificate(asset) if asset.kind == "certificate" else followed.merged(asset)
        if more or name:
            said.pop("name", None)
            said = {**more, **said, **({"name": name} if name else {})}
    said |= {"kind": asset.kind, "oid": _table().oid.get(said.get("oid", ""), "")}
    return {name: _less_nothing(name, text) for name, text in said.items() if text}


def _named(text: str, names: Mapping[str, str]) -> str:
    """What a code point stands for; a text that is none, or one without a name here, as it is."""
    match = _CODE_POINT.fullmatch(text.strip())
    if match is None:
        return text
    high, low, whole, decimal = match.groups()
    number = int(high + low.zfill(2) if high else whole or "0", 16) if not decimal else int(decimal)
    return names.get(f"0x{number:04x}", text)


def _names(asset: Asset) -> str:
    said = filter(None, (asset.said.get(name) for name in ("name", "curve")))
    return " ".join(said).replace(_BETWEEN_NAMES, " ")


def _plain(text: str) -> str:
    return _BETWEEN.sub("-", text[:_MOST_LETTERS].lower())


@lru_cache(_MOST_REMEMBERED)
def _less_nothing(property_: str, text: str) -> str:
    text = _plain(text)
    for pattern in _table().says_nothing.get(property_, ()):
        text = pattern.sub("", text)
    return text


def _mapped(facts: _Facts, known: Mapping[str, Family]) -> Mapped:
    for row in _table().choice:
        if not fits(row.where, facts.of(row.where)):
            continue
        if contradiction := facts.contradiction((*row.where, *row.needs)):
            return Mapped(reason=contradiction)
        if row.cannot_say:
            return Mapped(reason=row.cannot_say.format_map(facts.of(row.where)))
        if missing := [name for name in row.needs if name not in facts.values]:
            words = " and ".join(_table().words[name] for name in missing)
            return Mapped(reason=f"{words} {'is' if len(missing) == 1 else 'are'} not given")
        found = [_use(said, row.settings, facts, known) for said in row.choices]
        absent = tuple(one for one in (*found, row.beyond) if isinstance(one, str))
        uses = tuple(replace(one, beyond=one.beyond + absent) for one in found if isinstance(one, Use))
        return Mapped(uses, None if uses else absent[0])
    raise AssertionError("the last row fits all")


def _use(said: str, with_: Mapping[str, Sequence[str]], facts: _Facts, known: Mapping[str, Family]) -> Use | str:
    family_name, choice = said.format_map(facts.values).split(" ", 1)
    family = known[family_name]
    if choice not in family.choices:
        return f"Tollbar's family {family_name} has no {choice}"
    coordinates: dict[str, Value] = {"choice": choice}
    beyond = []
    for name, templates in with_.items():
        template = next(filter(facts.filled, templates), "")
        filled = facts.filled(template)
        contradiction = facts.contradiction([field for one in templates for field in _fields(one)])
        if not filled or name not in settings_at(family, coordinates):
            continue
        try:
            value = family.settings[name].read(filled)
        except ValueError:
            sentence = next(filter(None, map(_table().not_had.get, _fields(template))), _HAS_NO)
            beyond.append(sentence.format(family=family_name, setting=name, value=filled))
            continue
        if contradiction:
            beyond.append(contradiction)
        else:
            coordinates[name] = value
    return Use(family, coordinates, tuple(beyond))


class _Facts:
    """What the texts of an asset say, fact by fact."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.found: dict[str, dict[str, str]] = {}
        """Of each fact its values, each with the property that says so."""
        table = _table()
        for name, properties in table.reads.items():
            for property_ in properties:
                for value in _values(name, property_, texts[property_]) if property_ in texts else ():
                    self.found.setdefault(name, {}).setdefault(value, property_)
        algorithms = self.found.get("algorithm", {})
        for less, more in table.less_than.items():
            if less in algorithms and not algorithms.keys().isdisjoint(more):
                del algorithms[less]
        self._less_own_size_of_digest()
        self.values = {name: next(iter(values)) for name, values in self.found.items() if self._is_plain(name)}

    def of(self, names: Mapping[str, object]) -> Mapping[str, str]:
        return {name: self.values[name] for name in names if name in self.values}

    def contradiction(self, names: Sequence[str]) -> str | None:
        """Where two properties say different things: that."""
        for name in names:
            found = self.found.get(name, {})
            if len(found) > 1 and name != _SEVERAL:
                (value, property_), (other, of_other) = [*found.items()][:2]
                if property_ == of_other:
                    return f"its {property_} say both {value} and {other}"
                return f"its {property_} says {value}, and its {of_other} says {other}"
        return None

    def filled(self, template: str) -> str | None:
        """The template with facts in it; None where one of them is not known."""
        return template.format_map(self.values) if all(name in self.values for name in _fields(template)) else None

    def _is_plain(self, name: str) -> bool:
        return name != _SEVERAL or len(self.found[name]) == 1

    def _less_own_size_of_digest(self) -> None:
        """`parameterSetIdentifier` is 512 for SHA512withRSA too: there it is not the size of the key."""
        for digest in self.found.get("digest", {}):
            size = digest.rpartition("-")[2]
            bits = self.found.get("bits", {})
            if bits.get(size) == "parameter":
                del bits[size]
        if "bits" in self.found and not self.found["bits"]:
            del self.found["bits"]


@lru_cache(_MOST_REMEMBERED)
def _values(fact: str, property_: str, text: str) -> tuple[str, ...]:
    """The values of a fact that the text of a property says: few texts are of one asset alone."""
    found = (_first(fact, one) for one in _each(property_, text))
    return tuple(one for one in found if one)


def _first(fact: str, text: str) -> str | None:
    # Most texts say nothing of most facts, which one search finds out.
    if not text or not _any_of(fact).search(text):
        return None
    for value, some in _table().fact[fact].items():
        for pattern in some:
            if match := pattern.search(text):
                return match.expand(value) if "\\" in value else value
    return None


@cache
def _any_of(fact: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p.pattern})" for some in _table().fact[fact].values() for p in some))


def _each(property_: str, text: str) -> list[str]:
    return text.split(_BETWEEN_TEXTS[property_]) if property_ in _BETWEEN_TEXTS else [text]


def _fields(template: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(template) if name]


_Patterns = Annotated[
    tuple[re.Pattern[str], ...], BeforeValidator(lambda said: (said,) if isinstance(said, str) else said)
]


class _Row(wire.Wire):
    where: dict[str, tuple[str, ...]]
    needs: tuple[str, ...] = ()
    choices: tuple[str, ...] = Field(default=(), alias="is")
    settings: dict[str, tuple[str, ...]] = Field(default={}, alias="with")
    beyond: str | None = None
    cannot_say: str | None = None


class _Table(wire.Wire):
    reads: dict[str, tuple[str, ...]]
    says_nothing: dict[str, _Patterns]
    fact: dict[str, dict[str, _Patterns]]
    less_than: dict[str, tuple[str, ...]]
    words: dict[str, str]
    not_had: dict[str, str]
    choice: tuple[_Row, ...]
    oid: dict[str, str]


class _CodePoints(wire.Wire):
    group: dict[str, str]
    scheme: dict[str, str]
    suite: dict[str, str]

    @property
    def of_properties(self) -> Mapping[str, Mapping[str, str]]:
        """By the property of a cipher suite that may be one."""
        return {"suite": self.suite, "identifiers": self.suite, "group": self.group, "scheme": self.scheme}


@cache
def _code_points() -> _CodePoints:
    return wire.read(_CODE_POINTS, _CodePoints)


@cache
def _table() -> _Table:
    return wire.read(_TABLE, _Table)
