"""From an asset to what it is an instance of: a choice of a family with settings, or why that cannot be said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from string import Formatter
from typing import Annotated

from pydantic import BeforeValidator, Field

from tollbar import families, wire
from tollbar.errors import TollbarError
from tollbar.families import Family, Value, fits, settings_at
from tollbar.inventory import names, unmeasured
from tollbar.inventory.names import ALGORITHM, DIGEST, MOST_LETTERS, Name
from tollbar.inventory.parts import Asset, shown
from tollbar.inventory.reading import Inventory
from tollbar.inventory.unmeasured import Unmeasured
from tollbar.patterns import is_like

_TABLE = Path(__file__).with_name("mapping.toml")
_CODE_POINTS = Path(__file__).with_name("code-points.toml")
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
    """The family of the choice, with what of it no lab measures."""
    coordinates: Mapping[str, Value]
    """The choice, and the settings that the inventory gives."""
    beyond: tuple[str, ...] = ()
    """What the asset has besides that Tollbar cannot judge, each as a sentence."""
    unmeasured: tuple[Unmeasured, ...] = ()
    """The choice and values of settings that no lab measures."""


class Counts(StrEnum):
    """The rules that count for a choice which stands for an asset whose facts are not all known."""

    ALL = ""
    STRENGTH = "strength"
    BUT_STRENGTH = "but strength"


@dataclass(frozen=True, slots=True)
class Mapped:
    """What an asset is an instance of."""

    uses: tuple[Use, ...] = ()
    """Several where the inventory does not say which of them: a key that may sign, or transport keys."""
    reason: str | None = None
    """Why there is none."""
    at_best: tuple[Use, ...] = ()
    """Where there is none: choices of which the asset is one, or no better; if all break a policy, so does it."""
    counts: Counts = Counts.ALL
    """The rules that count for these."""


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
        if len(joined) > MOST_LETTERS:
            # Half a name could be that of another.
            return joined[:MOST_LETTERS].rpartition(_BETWEEN_NAMES)[0]
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
    said |= {"kind": asset.kind, "oid": _of_oid(said.get("oid", ""))}
    return {name: text for name, text in said.items() if text.strip().lower() not in _NOT_GIVEN or name == "padding"}


def _of_oid(oid: str) -> str:
    """Return the name that an object identifier stands for; `? ` and itself for an unknown one below a known arc."""
    known = _table()
    if oid in known.oid:
        return known.oid[oid]
    parents = (oid[:end] for end, letter in enumerate(oid) if letter == ".")
    return f"? {oid}" if any(parent in known.arcs for parent in parents) else ""


def _named(text: str, known: Mapping[str, str]) -> str:
    """What a code point stands for; a text that is none, or one without a name here, as it is."""
    match = _CODE_POINT.fullmatch(text.strip())
    if match is None:
        return text
    high, low, whole, decimal = match.groups()
    number = int(high + low.zfill(2) if high else whole or "0", 16) if not decimal else int(decimal)
    return known.get(f"0x{number:04x}", text)


def _names(asset: Asset) -> str:
    said = filter(None, (asset.said.get(name) for name in ("name", "curve")))
    return " ".join(said).replace(_BETWEEN_NAMES, " ")


def _plain(text: str) -> str:
    return _BETWEEN.sub("-", text[:MOST_LETTERS].lower())


@lru_cache(_MOST_REMEMBERED)
def _less_nothing(property_: str, text: str) -> str:
    text = _plain(text)
    for pattern in _table().says_nothing.get(property_, ()):
        text = pattern.sub("", text)
    return text


_NOT_GIVEN = frozenset(
    {"", "unspecified", "unknown", "other", "none", "null", "n/a", "na", "undefined", "default", "any", "-", "?"}
)


def _mapped(facts: _Facts, known: Mapping[str, Family]) -> Mapped:
    for row in _table().choice:
        if not fits(row.where, facts.of(row.where)):
            continue
        if contradiction := facts.contradiction((*row.where, *row.needs)):
            return Mapped(reason=contradiction)
        if row.cannot_say:
            at_best = facts.uses([one for one in row.at_best if facts.filled(one)], row.settings, known)
            return Mapped(reason=row.cannot_say.format_map(facts.of(row.where)), at_best=at_best, counts=row.counts)
        if (reason := facts.left_over(row)) is not None:
            return Mapped(reason=reason if facts.may_be_judged() else facts.absent())
        if missing := [name for name in row.needs if name not in facts.values]:
            words = " and ".join(_table().words[name] for name in missing)
            reason = f"{words} {'is' if len(missing) == 1 else 'are'} not given"
            # A modulus may be larger than all that were measured: a rule on bits refuses none of unknown size.
            counts = Counts.BUT_STRENGTH if "bits" in missing and facts.values.get(ALGORITHM) in _MODULI else Counts.ALL
            return Mapped(reason=reason, at_best=facts.uses(row.choices, row.settings, known), counts=counts)
        found = [_use(said, row.settings, facts, known) for said in row.choices]
        absent = tuple(one for one in (*found, row.beyond, facts.cut_tag()) if isinstance(one, str))
        uses = tuple(replace(one, beyond=one.beyond + absent) for one in found if isinstance(one, Use))
        return facts.agreed(uses) if uses else Mapped(reason=absent[0])
    raise AssertionError("the last row fits all")


def _use(said: str, with_: Mapping[str, Sequence[str]], facts: _Facts, known: Mapping[str, Family]) -> Use | str:
    family_name, choice = said.format_map(facts.values).split(" ", 1)
    if family_name not in known:
        return facts.absent()
    family = known[family_name]
    met: list[Unmeasured] = []
    if choice not in family.choices:
        one = unmeasured.find(family_name, unmeasured.CHOICE, choice)
        if one is None:
            return facts.absent() if facts.is_alone else f"Tollbar's family {family_name} has no {choice}"
        family = one.added_to(family)
        met.append(one)
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
            one = unmeasured.find(family_name, name, filled)
            if one is not None and not contradiction:
                family = one.added_to(family)
                met.append(one)
                coordinates[name] = filled
                continue
            sentence = next(filter(None, map(_table().not_had.get, _fields(template))), _HAS_NO)
            beyond.append(sentence.format(family=family_name, setting=name, value=filled))
            continue
        if contradiction:
            beyond.append(contradiction)
        else:
            coordinates[name] = value
    return Use(family, coordinates, (*beyond, *(one.sentence for one in met)), tuple(met))


class _Facts:
    """The facts that the texts of an asset give."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.found: dict[str, dict[str, str]] = {}
        """Of each fact its values, each with the property that gives it."""
        self.left: list[tuple[str, str]] = []
        """Words that are not known, each with its property."""
        self._written = texts.get("name", "") or texts.get("family", "")
        self._primitive = _PRIMITIVES.get(re.sub(r"[\s_-]", "", texts.get("primitive", "").lower()), "")
        self._read_names(texts)
        table = _table()
        for name, properties in table.reads.items():
            for property_ in properties:
                text = _less_nothing(property_, texts[property_]) if property_ in texts else ""
                for value in _values(name, property_, text) if text else ():
                    self._add(name, value, property_)
        if self._primitive == "combiner" and ALGORITHM not in self.found:
            self._add(ALGORITHM, "combiner", "primitive")
        self._sign_by_hash()
        self.values = {name: next(iter(values)) for name, values in self.found.items() if self._is_plain(name)}
        if algorithm := self.values.get(ALGORITHM):
            self.values["family"] = _FAMILIES.get(names.class_of(algorithm), "?")

    def of(self, facts: Mapping[str, object]) -> Mapping[str, str]:
        return {name: self.values[name] for name in facts if name in self.values}

    def contradiction(self, facts: Sequence[str]) -> str | None:
        """Return the sentence about two properties that give different values; None: there are none such."""
        for name in facts:
            found = self.found.get(name, {})
            if len(found) > 1 and name != _SEVERAL:
                (value, property_), (other, of_other) = [*found.items()][:2]
                if property_ == of_other:
                    verb = "say" if property_ in _LISTS else "says"
                    return f"its {_PROPERTIES.get(property_, property_)} {verb} both {value} and {other}"
                return f"its {property_} says {value}, and its {of_other} says {other}"
        return None

    def filled(self, template: str) -> str | None:
        """Return the template with facts in it; None where one of them is not known."""
        return template.format_map(self.values) if all(name in self.values for name in _fields(template)) else None

    def uses(
        self, templates: Sequence[str], with_: Mapping[str, Sequence[str]], known: Mapping[str, Family]
    ) -> tuple[Use, ...]:
        """Return the measured choices that the templates may mean: a fact that is not known has each of its values."""
        if self.left:
            return ()
        found: list[Use] = []
        for template in templates:
            pattern = template.format_map({**dict.fromkeys(_fields(template), "*"), **self.values})
            family_name, choice = pattern.split(" ", 1)
            family = known[family_name]
            fitting = [name for name in family.choices if is_like(name, choice)] if "*" in choice else [choice]
            if not fitting and family_name == "cipher" and "bits" not in self.values:
                # No lab has it in any size of a key: each is judged.
                fitting = [choice.replace("*", size, 1) for size in _KEY_SIZES]
            made = (_use(f"{family_name} {name}", with_, self, known) for name in fitting)
            found += [one for one in made if isinstance(one, Use)]
        return tuple(found) if not self._primitive else self.agreed(tuple(found)).uses

    def agreed(self, uses: tuple[Use, ...]) -> Mapped:
        """Return the uses that the asset's primitive agrees with, or that it contradicts all of them."""
        agrees = _table().agrees
        if not any(self._primitive in some for some in agrees.values()):
            return Mapped(uses)
        kept = tuple(one for one in uses if self._primitive in agrees.get(one.family.name, (self._primitive,)))
        if kept or not uses:
            return Mapped(kept)
        return Mapped(reason=f"its primitive says {self._primitive}, and its name says {uses[0].coordinates['choice']}")

    def left_over(self, row: _Row) -> str | None:
        """Return the sentence about a part of a name that the choice does not account for; None: there is none."""
        if self.left:
            property_, word = self.left[0]
            return f"`{shown(word)}` in its {_PROPERTIES.get(property_, property_)} is not known here"
        templates = (*row.choices, *(one for some in row.settings.values() for one in some))
        used = {*row.where, *row.needs, *row.agree, *(field for one in templates for field in _fields(one))}
        for name in _COUNTED:
            for value, property_ in self.found.get(name, {}).items():
                if name not in used and property_ in ("name", "parameter", "oid"):
                    return f"its {_PROPERTIES.get(property_, property_)} says {value} besides, which is no part of it"
        return None

    def cut_tag(self) -> str | None:
        """Return the sentence about a tag that is shorter than the measured one; None: it is whole."""
        tag, of_hash = self.values.get("tag"), self.values.get(DIGEST, "").rpartition("-")[2]
        whole = {"1": "160", "md5": "128"}.get(of_hash, of_hash) if self.values.get(ALGORITHM) == "hmac" else "128"
        is_tagged = self.values.get(ALGORITHM) == "hmac" or self.values.get("mode") in ("gcm", "ccm")
        return (
            f"its tag has {tag} bits: the one that is judged has {whole}"
            if is_tagged and tag not in (None, whole)
            else None
        )

    @property
    def is_alone(self) -> bool:
        """Whether an algorithm or a hash is known by its own name alone."""
        algorithm = self.values.get(ALGORITHM, "")
        return not any(
            algorithm in row.where.get(ALGORITHM, ()) for row in _table().choice if row.choices and algorithm
        )

    def may_be_judged(self) -> bool:
        """Return whether Tollbar has the algorithm, or at least a judgement of it."""
        algorithm = self.values.get(ALGORITHM, "")
        family = _FAMILIES.get(names.class_of(algorithm), "")
        known = families.families().get(family)
        is_listed = not self.is_alone or known is None
        return is_listed or unmeasured.find(family, unmeasured.CHOICE, algorithm) is not None

    def absent(self) -> str:
        """Return the sentence about an algorithm that is known, and that Tollbar does not have."""
        return f"{shown(self._written) or self.values.get(ALGORITHM, 'it')} is not among Tollbar's choices"

    def _add(self, name: str, value: str, property_: str) -> None:
        self.found.setdefault(name, {}).setdefault(value, property_)

    def _read_names(self, texts: Mapping[str, str]) -> None:
        # A protocol's name is anybody's choice, and its suites have names of their own.
        kept_texts = () if texts.get("kind") in ("protocol", "cipher suite") else _NAMES
        read = {name: names.read(texts[name]) for name in kept_texts if name in texts}
        if self._is_label(texts, read):
            del read["name"]
        algorithms: dict[str, str] = {}
        for property_, name in read.items():
            kept = _NAMES[property_]
            for one in _reduced(name) if ALGORITHM in kept else ():
                algorithms.setdefault(one, property_)
            for fact in name.facts:
                if fact.name in kept and fact.name != ALGORITHM:
                    self._add(fact.name, fact.value, property_)
            if property_ in _WHOLE or (property_ in ("curve", "mode") and not name.values(property_)):
                self.left += [(property_, word) for word in name.left]
        if algorithms:
            shown_ = _visible(algorithms)
            self.found[ALGORITHM] = {one: algorithms[one] for one in algorithms if one in shown_}
        if "oid" in texts and texts["oid"].startswith("? "):
            self.left.append(("oid", texts["oid"][2:]))
        self._hide_digests()
        self._number(read, texts)

    def _is_label(self, texts: Mapping[str, str], read: Mapping[str, Name]) -> bool:
        """Return whether the name is anybody's, and the object identifier says what the asset is."""
        if "name" not in read or not read["name"].left or "oid" not in read:
            return False
        says = any(read["name"].values(fact) for fact in (ALGORITHM, DIGEST, "curve", "group"))
        return bool(read["oid"].values(ALGORITHM)) and (not says or texts.get("kind") == "related-crypto-material")

    def _number(self, read: Mapping[str, Name], texts: Mapping[str, str]) -> None:
        """Give the numbers in names their meaning for the algorithm."""
        algorithm = next(iter(self.found.get(ALGORITHM, {})), "")
        slots = _slots(algorithm, has_digest=DIGEST in self.found)
        for property_ in ("name", "oid", "parameter", "size"):
            name = read.get(property_)
            if name is None:
                continue
            for key, number in name.keyed:
                fact_name = names.fact_of_key(algorithm, key)
                if fact_name:
                    self._add(fact_name, number, property_)
                elif fact_name is None and property_ in _WHOLE:
                    self.left.append((property_, f"{key}={number}"))
            given, left = names.fill(slots, name.numbers)
            for fact, value in given.items():
                if property_ != "size" or fact == "bits":
                    self._add(fact, value, property_)
            if property_ in _WHOLE:
                self.left += [(property_, str(number)) for number in left]
        self._size_digests()

    def _hide_digests(self) -> None:
        """A family of hashes says less than one of its hashes."""
        found = self.found.get(DIGEST, {})
        for less, some in _table().hash_families.items():
            if less in found and any(is_like(one, pattern) for one in found if one != less for pattern in some):
                del found[less]

    def _size_digests(self) -> None:
        """`SHA` of 256 bits is SHA-256; a size that a hash does not have contradicts it."""
        digests, sizes = self.found.get(DIGEST, {}), self.found.pop("size", {})
        bits = self.found.get("bits", {})
        for digest in [*digests]:
            own = _SIZES.get(digest, digest.rpartition("-")[2])
            if bits.get(own) == "parameter" and ALGORITHM in self.found:
                # `parameterSetIdentifier` is 512 for SHA512withRSA too: there it is not the size of the key.
                del bits[own]
            for size, property_ in sizes.items():
                sized = _SIZED.get(digest, "").format(size)
                if sized and (size in ("224", "256", "384", "512") or digest.startswith("blake2")):
                    digests[sized] = digests.pop(digest)
                    digest = sized
                elif size != own and ALGORITHM not in self.found:
                    self._add(DIGEST, f"{size} bits", property_)
        if "bits" in self.found and not bits:
            del self.found["bits"]
        for digest, plain in _BARE.items():
            if digest in digests:
                digests[plain] = digests.pop(digest)

    def _sign_by_hash(self) -> None:
        """RSA signs with PSS or with a hash, unless its padding is the one of encryption."""
        for padding, use in (("pss", "sign"), ("oaep", "exchange")):
            if padding in self.found.get("padding", {}):
                self._add("use", use, self.found["padding"][padding])
        is_rsa = [*self.found.get(ALGORITHM, {})] == ["rsa"] and "oaep" not in self.found.get("padding", {})
        hashes = [property_ for property_ in self.found.get(DIGEST, {}).values() if property_ in ("name", "oid")]
        if is_rsa and hashes:
            self.found["use"] = {"sign": hashes[0]}

    def _is_plain(self, name: str) -> bool:
        return name != _SEVERAL or len(self.found[name]) == 1


_KEY_SIZES = ("128", "192", "256")
_LISTS = frozenset({"algorithms", "functions", "identifiers"})
# The properties that are names, with the facts that are read of each.
_FACTS = frozenset({ALGORITHM, DIGEST, "mode", "padding", "curve", "group", "use", "purpose", "parameter", "bits"})
_NAMES = {
    "name": _FACTS,
    "family": frozenset({ALGORITHM, DIGEST, "padding", "use"}),
    "parameter": _FACTS,
    "curve": frozenset({"curve"}),
    "mode": frozenset({"mode"}),
    "padding": frozenset({"padding"}),
    "oid": _FACTS,
    "size": frozenset[str](),
}
# No word of these may be left over.
_WHOLE = frozenset({"name", "parameter"})
_COUNTED = (DIGEST, "mode", "padding", "curve", "group", "parameter", "purpose", "bits")
_PROPERTIES = {"parameter": "parameterSetIdentifier"}
_FAMILIES = {
    "cipher": "cipher",
    "mac": "mac",
    "password": "password-hash",
    "signature": "signature",
    "exchange": "key-exchange",
}  # fmt: skip
_WITH_PARAMETERS = frozenset({
    "aes", "camellia", "aria", "rsa", "dsa", "ecdsa", "ecdh", "ec", "dh", "hmac", "ml-dsa", "ml-kem", "slh-dsa", "3des",
    "des", "rc2", "pbkdf2",
})  # fmt: skip
_MODULI = frozenset({"rsa", "dsa"})
_PRIMITIVES = {
    **{one.replace("-", ""): one for one in (
        "drbg", "mac", "block-cipher", "stream-cipher", "signature", "hash", "pke", "xof", "kdf", "key-agree", "kem",
        "ae", "combiner", "key-wrap",
    )},
    "keyagreement": "key-agree",
    "aead": "ae",
    "keyderivation": "kdf",
}  # fmt: skip
_SIZES = {"md5": "128", "md4": "128", "md2": "128", "sha-1": "160", "sha0": "160", "blake3": "256", "sm3": "256"}
_SIZED = {
    "sha": "sha-{}",
    "sha-2": "sha-{}",
    "sha-3": "sha3-{}",
    "blake2b": "blake2b-{}",
    "blake2s": "blake2s-{}",
    "shake": "shake-{}",
}
_BARE = {"sha": "sha-1", "blake2b": "blake2b-512", "blake2s": "blake2s-256"}
_HYBRIDS = frozenset({"ml-kem", "kyber", "frodokem", "hqc", "bike", "mceliece", "ntru", "sike", "saber"})
_NEW_SIGNATURES = frozenset({"ml-dsa", "slh-dsa", "falcon", "dilithium", "sphincs", "xmss", "lms"})
_WITH_MAC = {"rc4": "rc4-hmac", "des": "des-hmac", "des40": "des-hmac", "3des": "3des-hmac"}


def _slots(algorithm: str, *, has_digest: bool) -> str:
    kind = names.class_of(algorithm)
    for slots in (algorithm, kind if algorithm in _WITH_PARAMETERS else ""):
        if slots and names.has_slots(slots):
            return slots
    if algorithm:
        return "unlisted"
    return "digest" if has_digest else ""


def _reduced(name: Name) -> tuple[str, ...]:
    """Return the algorithm that one text names: of several the one they make together, if there is such."""
    found = _visible(dict.fromkeys(name.values(ALGORITHM)))
    kinds = {names.class_of(one) for one in found}
    curves = name.values("curve")
    if len(found) == 1 and (one := next(iter(found))) and curves:
        if one in _HYBRIDS:
            return ("hybrid-kyber" if one == "kyber" else "hybrid-kem",)
        if one in _NEW_SIGNATURES:
            return ("hybrid-signature",)
        if one == "ecdh" and len(curves) > 1:
            return ("hybrid-kem",)
    if len(found) < 2:
        return tuple(found)
    if kinds == {"cipher", "mac"}:
        return (next((_WITH_MAC[one] for one in found if one in _WITH_MAC), "cipher-with-mac"),)
    if kinds == {"cipher"}:
        return ("combiner",)
    if "exchange" in kinds and kinds <= {"exchange", "rsa", "key"}:
        return ("hybrid-kyber" if "kyber" in found else "hybrid-kem",)
    # Two classical ones may be a list of what is used.
    if "signature" in kinds and kinds <= {"signature", "rsa", "key"} and not _NEW_SIGNATURES.isdisjoint(found):
        return ("hybrid-signature",)
    return tuple(found)


def _visible(found: Mapping[str, str | None]) -> list[str]:
    """Return the algorithms that no other one hides."""
    return [one for one in found if not any(_hides(other, one) < _hides(one, other) for other in found if other != one)]


@lru_cache(_MOST_REMEMBERED)
def _hides(one: str, less: str) -> int:
    """Return the first row by which an algorithm hides another one; the number of rows: none does."""

    def is_among(algorithm: str, words: str) -> bool:
        return any(word in ("*", algorithm, f"@{names.class_of(algorithm)}") for word in words.split())

    rows = _table().hides
    fitting = (at for at, (who, whom) in enumerate(rows.items()) if is_among(one, who) and is_among(less, whom))
    return next(fitting, len(rows))


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
    agree: tuple[str, ...] = Field(default=(), alias="and")
    at_best: tuple[str, ...] = ()
    counts: Counts = Counts.ALL


class _Table(wire.Wire):
    reads: dict[str, tuple[str, ...]]
    says_nothing: dict[str, _Patterns]
    fact: dict[str, dict[str, _Patterns]]
    hides: dict[str, str]
    hash_families: dict[str, tuple[str, ...]]
    agrees: dict[str, tuple[str, ...]]
    arcs: dict[str, str]
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
