"""Mapping of an asset to a choice of a family with settings, or to the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tollbar.catalog import families
from tollbar.catalog.families import Family, Standing, Value, settings_at
from tollbar.core.errors import TollbarError
from tollbar.core.patterns import is_like
from tollbar.decide.price import levels, unmeasured
from tollbar.decide.price.facts import Facts, fields
from tollbar.decide.price.inventory import Inventory
from tollbar.decide.price.names import ALGORITHM, is_name
from tollbar.decide.price.parts import Asset, shown
from tollbar.decide.price.sizes import OF_ONE_SIZE
from tollbar.decide.price.table import Counts, Row, table
from tollbar.decide.price.texts import Followed, texts_of
from tollbar.decide.price.unmeasured import Unmeasured

# To map and to judge one takes 1 ms, and up to 2 ms more with each policy. Most of an inventory's assets have one of
# some hundred names.
MOST_DIFFERENT = 2_000
MOST_OF_DIFFERENT = 500_000
"""Limit of the letters in all different assets, 250 of each: two thousand of a thousand letters took 7 s."""
# No more of a text is read.
_MOST_OF_TEXT = 200
# A server has one for each kind of key.
_MOST_CERTIFICATES = 8
_KEY_SIZES = ("128", "192", "256")
_MODULI = frozenset({"rsa", "dsa"})
_HAS_NO = "Tollbar's family {family} has no {setting} {value}"


@dataclass(frozen=True, slots=True)
class AssetUse:
    """A choice that an asset is an instance of."""

    family: Family
    """Family of the choice, including choices that no lab measures."""
    coordinates: Mapping[str, Value]
    """The choice, and the settings that the inventory gives."""
    beyond: tuple[str, ...] = ()
    """Parts of the asset that Tollbar cannot judge, each as a sentence."""
    unmeasured: tuple[Unmeasured, ...] = ()
    """The choice and values of settings that no lab measures."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """Choices of which an asset is an instance."""

    uses: tuple[AssetUse, ...] = ()
    """Uses of the asset; several if the inventory leaves them open, such as a key that may sign or transport keys."""
    reason: str | None = None
    """Reason why the asset has no use."""
    at_best: tuple[AssetUse, ...] = ()
    """Choices for an asset without a use: it is one of them or weaker, so it breaks a policy if all of them do."""
    counts: Counts = Counts.ALL
    """The rules that count for these."""


def mapped(inventory: Inventory) -> tuple[Mapped, ...]:
    """Return the mapping of each asset of an inventory, in its order.

    Raises TollbarError.
    """
    followed = Followed(inventory)
    looked_up = _LookedUp(families.families())
    # All texts come first because they cost little: an inventory with too many is refused before any mapping.
    own, whole = _Different(inventory), _Different(inventory)
    texts_of_each = _TextsOfEach(followed)
    of_assets = [None if asset.fault else own.one_of(texts_of_each.of(asset)) for asset in inventory.assets]
    certificates = _Certificates(followed, texts_of_each, looked_up)
    with_certificates = [
        None if texts is None else whole.one_of((*texts, *certificates.text_of(asset).items()))
        for asset, texts in zip(inventory.assets, of_assets, strict=True)
    ]
    found = []
    for asset, texts in zip(inventory.assets, with_certificates, strict=True):
        if texts is None:
            found.append(Mapped(reason=f"not as CycloneDX has it: {asset.fault}"))
            continue
        what = looked_up.mapped(texts)
        twice = followed.twice(asset)
        found.append(
            _but(what, f"`{shown(twice)}`, which it refers to, stands for several components") if twice else what
        )
    return tuple(found)


_Texts = tuple[tuple[str, str], ...]


class _TextsOfEach:
    """The texts of assets. Assets that share their properties and references share their texts."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed
        self._known: dict[tuple[object, ...], _Texts] = {}

    def of(self, asset: Asset) -> _Texts:
        key = asset.kind, id(asset.said), *((name, id(refs)) for name, refs in asset.refers.items())
        if key not in self._known:
            self._known[key] = tuple(texts_of(asset, self._followed).items())
        return self._known[key]


class _Different:
    """The texts of an inventory's assets, each of which is kept once. There is a limit of how many differ."""

    def __init__(self, inventory: Inventory) -> None:
        self._where = str(inventory.path)
        self._kept: dict[_Texts, _Texts] = {}
        self._letters = 0

    def one_of(self, texts: _Texts) -> _Texts:
        """Return these texts. Raises TollbarError."""
        if texts in self._kept:
            return self._kept[texts]
        self._kept[texts] = texts
        self._letters += sum(min(len(text), _MOST_OF_TEXT) for _, text in texts)
        if len(self._kept) > MOST_DIFFERENT or self._letters > MOST_OF_DIFFERENT:
            is_many = len(self._kept) > MOST_DIFFERENT
            many = (
                f"{MOST_DIFFERENT:,} different assets"
                if is_many
                else f"{MOST_OF_DIFFERENT:,} letters of different assets"
            )
            hint = "price it in parts, for example `jq '.components |= .[:1000]' FILE | tollbar price -`"
            raise TollbarError(f"has more than {many}, the limit", where=self._where, hint=hint)
        return texts


class _LookedUp:
    """Cache of mappings by facts: names that differ only in meaningless words are looked up once."""

    def __init__(self, known: Mapping[str, Family]) -> None:
        self._known = known
        self._by_texts: dict[_Texts, Mapped] = {}
        self._by_facts: dict[str, Mapped] = {}

    def mapped(self, texts: _Texts) -> Mapped:
        if texts not in self._by_texts:
            facts = Facts(dict(texts))
            key = facts.key
            if key not in self._by_facts:
                self._by_facts[key] = _mapped(facts, self._known)
            self._by_texts[texts] = self._by_facts[key]
        return self._by_texts[texts]


class _Certificates:
    """The keys of the certificates that protocols refer to; each is looked up once."""

    def __init__(self, followed: Followed, texts_of_each: _TextsOfEach, looked_up: _LookedUp) -> None:
        self._followed, self._texts_of_each, self._looked_up = followed, texts_of_each, looked_up
        self._choices: dict[int, frozenset[str]] = {}

    def text_of(self, asset: Asset) -> Mapping[str, str]:
        """Return the text of the key that an asset proves itself by; none if it may be one of several, or is unknown.

        A server that has keys of several kinds shows the one that the suite asks for.
        """
        if not (references := asset.refers.get("certificate")):
            return {}
        # All suites of a protocol share one object.
        if id(references) not in self._choices:
            self._choices[id(references)] = self._of(asset)
        found = self._choices[id(references)]
        suite = asset.said.get("suite", "").lower()
        fitting = {one for one in found if one.startswith(("ecdsa-", "ed") if "ecdsa" in suite else "rsa-")}
        meant = fitting if fitting and ("rsa" in suite or "ecdsa" in suite) else found
        return {"certificate": next(iter(meant))} if len(meant) == 1 and "" not in found else {}

    def _of(self, asset: Asset) -> frozenset[str]:
        several = (one for one in self._followed.of(asset, "certificate") if one.kind == "certificate")
        certificates = [*islice(several, _MOST_CERTIFICATES + 1)]
        is_known = len(certificates) <= _MOST_CERTIFICATES and not any(one.fault for one in certificates)
        found = set()
        for one in certificates if is_known else ():
            uses = self._looked_up.mapped(self._texts_of_each.of(one)).uses
            found.add(str(uses[0].coordinates["choice"]) if len(uses) == 1 else "")
        return frozenset(found)


def _but(what: Mapped, reason: str) -> Mapped:
    """Return a copy of the mapping with `reason` added, because a referenced asset may change it."""
    uses = tuple(replace(one, beyond=(*one.beyond, reason)) for one in what.uses)
    return Mapped(uses, None if uses else reason)


def _mapped(facts: Facts, known: Mapping[str, Family]) -> Mapped:
    for row in table().choice:
        if not facts.fits(row):
            continue
        if contradiction := facts.contradiction((*row.where, *row.needs)):
            return Mapped(reason=contradiction, at_best=_any_of(row, facts, known))
        if (negated := facts.negated()) is not None:
            return Mapped(reason=negated)
        if row.cannot_say:
            filled = [one for one in row.at_best if facts.filled(one)]
            at_best = _may_be(filled, row.settings, facts, known, agrees=False)
            sentence = row.cannot_say.format_map({**facts.of(row.where), "absent": facts.absent()})
            return Mapped(reason=sentence, at_best=at_best, counts=row.counts)
        if (reason := facts.left_over(row)) is not None:
            # A cipher with any addition is no better than itself, and an unlisted algorithm stays unlisted.
            is_judged = facts.may_be_judged(known)
            is_bounded = facts.values.get("family") == "cipher" or not is_judged
            at_best = _may_be(row.choices, row.settings, facts, known) if is_bounded else ()
            return Mapped(reason=reason if is_judged else facts.absent(), at_best=at_best)
        if missing := [name for name in row.needs if name not in facts.values]:
            words = " and ".join(table().words[name] for name in missing)
            tag = facts.cut_tag()
            reason = f"{words} {'is' if len(missing) == 1 else 'are'} not given{f', and {tag}' if tag else ''}"
            # A modulus may be larger than all that were measured: a rule on bits refuses none of unknown size.
            counts = Counts.BUT_STRENGTH if "bits" in missing and facts.values.get(ALGORITHM) in _MODULI else Counts.ALL
            return Mapped(reason=reason, at_best=_may_be(row.choices, row.settings, facts, known), counts=counts)
        found = [_use(said, row.settings, facts, known) for said in row.choices]
        if row.settings.get("certificate") and (proof := facts.contradiction(["tls-proof"])):
            # The certificate is the contradiction, so its uses are only the best case.
            return Mapped(
                reason=proof, at_best=tuple(_less_certificate(one) for one in found if isinstance(one, AssetUse))
            )
        absent = tuple(one for one in (*found, row.beyond, facts.cut_tag(), *facts.doubtful()) if isinstance(one, str))
        uses = tuple(replace(one, beyond=one.beyond + absent) for one in found if isinstance(one, AssetUse))
        return (
            _level(_agreed(uses, facts), facts)
            if uses
            else Mapped(reason=absent[0], at_best=_no_better_than(row, facts, known))
        )
    raise AssertionError("the last row fits all")


def _no_better_than(row: Row, facts: Facts, known: Mapping[str, Family]) -> tuple[AssetUse, ...]:
    """Return the choices that are judged in the place of one that no family has."""
    named = _may_be(row.choices, row.settings, facts, known)
    return named or _may_be(row.at_best, row.settings, facts, known)


def _less_certificate(use: AssetUse) -> AssetUse:
    return replace(use, coordinates={name: value for name, value in use.coordinates.items() if name != "certificate"})


def _level(found: Mapped, facts: Facts) -> Mapped:
    """Return the uses, or the best case if an unknown identifier or a security level may contradict them."""
    choices = [f"{one.family.name} {one.coordinates['choice']}" for one in found.uses]
    sentences = [levels.contradiction(one, facts.levels) for one in choices]
    if not choices:
        return found
    reason = facts.unknown_oid or (None if None in sentences else sentences[0])
    return Mapped(reason=reason, at_best=found.uses) if reason else found


def _any_of(row: Row, facts: Facts, known: Mapping[str, Family]) -> tuple[AssetUse, ...]:
    """Return the choices that a row makes of each value of a contradicted fact; empty if one is not a choice."""
    made: dict[str, list[str]] = {}
    # The algorithm decides the meaning of a number, so with several algorithms it is unknown.
    of_several = row.at_best if len(facts.found.get(ALGORITHM, {})) < 2 else ()
    for template in row.choices or of_several:
        for name in fields(template):
            for value in _readings(name, facts) if name != ALGORITHM else ():
                if all(one in facts.values for one in fields(template)):
                    made.setdefault(value, []).append(template.format_map({**facts.values, name: value}))
    uses: list[AssetUse] = []
    for some in made.values():
        found = [_use(one, row.settings, facts, known, is_at_best=True) for one in some]
        kept = [one for one in found if isinstance(one, AssetUse)]
        if not kept or (row.choices and len(kept) < len(found)):
            return ()
        uses += kept
    return () if facts.left else tuple({f"{one.family.name} {one.coordinates}": one for one in uses}.values())


def _readings(name: str, facts: Facts) -> list[str]:
    """Return the values that a contradicted fact may have; a size makes no other hash of one that has one size."""
    found = facts.found.get(name, {})
    alone = [value for value in found if value in OF_ONE_SIZE]
    is_size = all(value in alone or value.endswith(" bits") for value in found)
    return alone if is_size and len(alone) == 1 else sorted(found)


def _may_be(
    templates: Sequence[str],
    with_: Mapping[str, Sequence[str]],
    facts: Facts,
    known: Mapping[str, Family],
    *,
    agrees: bool = True,
) -> tuple[AssetUse, ...]:
    """Return the measured choices that the templates may mean: a fact that is not known has each of its values.

    A part of an asset, such as the cipher of a password-based encryption, need not agree with the primitive.
    """
    if facts.left:
        return ()
    found: list[AssetUse] = []
    for template in templates:
        pattern = template.format_map({**dict.fromkeys(fields(template), "*"), **facts.values})
        family_name, choice = pattern.split(" ", 1)
        fitting = _fitting(known[family_name], choice) if "*" in choice else [choice]
        if not fitting and family_name == "cipher" and "bits" not in facts.values:
            # No lab has it in any size of a key: each is judged.
            fitting = [choice.replace("*", size, 1) for size in _KEY_SIZES]
        made = (_use(f"{family_name} {name}", with_, facts, known, is_at_best=True) for name in fitting)
        found += [one for one in made if isinstance(one, AssetUse)]
    if not agrees:
        return tuple(found)
    agreed = _agreed(tuple(found), facts)
    return agreed.uses or agreed.at_best


def _fitting(family: Family, pattern: str) -> list[str]:
    """Return the choices of a pattern: measured ones, and those that an authority may approve.

    A choice with parameters of its own, `argon2id-owasp-19m`, is one of the choice whose parameters may be any.
    """
    measured = [one.name for one in family.choices.values() if not one.setting]
    return [name for name in (*measured, *unmeasured.listed(family)) if is_like(name, pattern)]


def _agreed(uses: tuple[AssetUse, ...], facts: Facts) -> Mapped:
    """Return the uses that the asset's primitive agrees with, or that it contradicts all of them."""
    if contradiction := _other_function(uses, facts):
        return Mapped(reason=contradiction, at_best=uses if _is_broken_in_all(uses, facts.primitive) else ())
    agrees = table().agrees
    if not any(facts.primitive in some for some in agrees.values()):
        return Mapped(uses)
    kept = tuple(one for one in uses if facts.primitive in agrees.get(one.family.name, (facts.primitive,)))
    if kept or not uses:
        return Mapped(kept)
    reason = f"its primitive says {facts.primitive}, and its name says {uses[0].coordinates['choice']}"
    return Mapped(reason=reason, at_best=uses if _is_broken_in_all(uses, facts.primitive) else ())


def _other_function(uses: Sequence[AssetUse], facts: Facts) -> str | None:
    """Return the sentence about a function that none of the uses can have, such as Ed25519 that encrypts, or None.

    Keys of RSA may have each function, and their rows are by function.
    """
    if not uses or facts.values.get(ALGORITHM) == "rsa":
        return None
    cannot = [{*table().not_functions.get(one.family.name, ())} for one in uses]
    other = next((one for one in facts.functions if all(one in some for some in cannot)), None)
    return f"its functions say {other}, and its name says {uses[0].coordinates['choice']}" if other else None


def _is_broken_in_all(uses: Sequence[AssetUse], primitive: str) -> bool:
    """Return whether choices are broken in all that may be made of them, such as a MAC of MD5 or a hash of DES."""
    choices = [(one.family, one.coordinates) for one in uses if primitive != "drbg"]
    return bool(choices) and all(
        family.standing_of(cell) is Standing.BROKEN
        and (family.name == "cipher" or str(cell[unmeasured.CHOICE]) in OF_ONE_SIZE)
        for family, cell in choices
    )


def _use(
    said: str,
    with_: Mapping[str, Sequence[str]],
    facts: Facts,
    known: Mapping[str, Family],
    *,
    is_at_best: bool = False,
) -> AssetUse | str:
    family_name, choice = said.format_map(facts.values).split(" ", 1)
    if family_name not in known:
        return facts.absent()
    family = known[family_name]
    met: list[Unmeasured] = []
    if choice not in family.choices:
        one = unmeasured.find(family, unmeasured.CHOICE, choice)
        if one is None or (one.is_judged_only and not is_at_best):
            return facts.absent() if facts.is_alone else f"Tollbar's family {family_name} has no {choice}"
        family = one.added_to(family)
        met.append(one)
    coordinates: dict[str, Value] = {"choice": choice}
    beyond = []
    for name, templates in with_.items():
        template = next(filter(facts.filled, templates), "")
        filled = facts.filled(template)
        contradiction = facts.contradiction([field for one in templates for field in fields(one)])
        if not filled or name not in settings_at(family, coordinates):
            continue
        try:
            value = family.settings[name].read(filled)
        except ValueError:
            one = unmeasured.find(family, name, filled)
            if one is not None and not contradiction:
                family = one.added_to(family)
                met.append(one)
                coordinates[name] = filled
                continue
            sentence = next(filter(None, map(table().not_had.get, fields(template))), _HAS_NO)
            if is_name(filled.removeprefix("group ")):
                sentence, filled = _HAS_NO, filled.removeprefix("group ")
            beyond.append(sentence.format(family=family_name, setting=name, value=filled))
            continue
        if contradiction:
            beyond.append(contradiction)
        else:
            coordinates[name] = value
    return AssetUse(family, coordinates, (*beyond, *(one.sentence for one in met)), tuple(met))
