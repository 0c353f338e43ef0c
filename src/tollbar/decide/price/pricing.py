"""Prices of an inventory: the policies' rulings on its assets, and the cost of replacing those that break one.

Standing comes first: a replacement is the cheapest measured choice that meets every policy, and its cost is the
analysis' comparison with the asset's own cell. Nothing is estimated here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from tollbar.catalog import families, policies
from tollbar.catalog.families import Family, Standing, at_defaults, given_up, settings_at
from tollbar.catalog.policies import STANDINGS, Policy, Ruling
from tollbar.core.errors import TollbarError
from tollbar.decide.price import platforms
from tollbar.decide.price.inventory import Inventory
from tollbar.decide.price.limits import MOST_RULED
from tollbar.decide.price.mapping import AssetUse, Mapped, mapped
from tollbar.decide.price.parts import Asset
from tollbar.decide.price.priced import AssetGroup, Priced, Pricing, has_parameters
from tollbar.decide.price.replacing import FamilyOffer
from tollbar.decide.price.table import Counts
from tollbar.decide.price.unmeasured import CHOICE, Unmeasured, is_of_list
from tollbar.decide.rulings import Candidate, Reason, Wanted, candidate
from tollbar.results import Run

# Operations that a user waits for, in families that have rare ones too.
_OPERATIONS = {"signature": ("op=sign,verify",), "cipher": ("op=encrypt,decrypt",)}
# Families whose choice is not by least cost, with the command that helps.
_NOT_BY_COST = {
    "password-hash": "a password hash must be as expensive as you can afford; `tollbar tune password-hash` finds it"
}

_PLATFORMS = {"java": "Java", "go": "Go", "python": "Python", "node": "Node", "dotnet": ".NET"}
_WORST_FIRST = (Ruling.BREAKS, Ruling.CANNOT_SAY, Ruling.MEETS)


@dataclass(frozen=True, slots=True)
class FamilyQuestion:
    """Choices and settings of a family to be measured."""

    own: tuple[str, ...]
    """The choices of assets."""
    able: tuple[str, ...]
    """Possible replacements, in the best standing first."""
    settings: Mapping[str, tuple[str, ...]]
    """Settings that the assets give."""

    def words(self, family: str, most: int) -> tuple[str, ...]:
        """Return the words of `tollbar ask`, with at most `most` replacements."""
        said = (f"{name}={','.join(dict.fromkeys(values))}" for name, values in self.settings.items())
        return (*dict.fromkeys((*self.own, *self.able[:most])), *said, *_OPERATIONS.get(family, ()))


def price(inventory: Inventory, asked: Sequence[Policy], on: date, today: date, runs: Sequence[Run] = ()) -> Pricing:
    """Return the policies' rulings on an inventory's assets on a day, and the costs of replacements by these runs."""
    market = _Market(asked, on, today, runs)
    lines = tuple(_lines(inventory, market))
    ahead = sorted(lines, key=lambda line: (_WORST_FIRST.index(line.ruling), line.reason is not None))
    met = {use.use.family.name: use.use.family for line in lines for use in line.uses}
    contradicting = tuple(
        (family, one) for family in met.values() for one in policies.contradictions(market.about(family), family, on)
    )
    return Pricing(inventory, tuple(asked), on, tuple(ahead), contradicting, tuple(runs))


def to_measure(pricing: Pricing) -> Mapping[str, FamilyQuestion]:
    """Return by family the cells that a run would have to measure for the missing costs.

    Choices that only servers perform are not included: a study defines their load.
    """
    found: dict[str, FamilyQuestion] = {}
    for line in pricing.lines:
        for priced in line.uses:
            family, cell = priced.use.family, priced.use.coordinates
            is_measured = not priced.use.unmeasured
            if priced.found.broken and priced.qualifying and not priced.costs and _can_be_asked(family) and is_measured:
                before = found.get(family.name, FamilyQuestion((), (), {}))
                settings = dict(before.settings)
                for name, value in cell.items():
                    if name != "choice":
                        settings[name] = (*settings.get(name, ()), str(value))
                found[family.name] = FamilyQuestion(
                    (*before.own, str(cell["choice"])),
                    tuple(dict.fromkeys((*before.able, *priced.qualifying))),
                    settings,
                )
    return found


def _can_be_asked(family: Family) -> bool:
    return not family.servers and family.name not in _NOT_BY_COST


def is_named(asset: Asset) -> bool:
    """Return true if an asset is known by its name: a key or a certificate is one of many of its kind."""
    return asset.kind not in ("certificate", "related-crypto-material")


def _lines(inventory: Inventory, market: _Market) -> Iterator[AssetGroup]:
    alike: dict[tuple[object, ...], list[int]] = {}
    found = mapped(inventory)
    # Thousands of assets have few different keys, so each is computed once.
    keys: dict[int, tuple[object, ...]] = {}
    for number, (asset, what) in enumerate(zip(inventory.assets, found, strict=True)):
        if id(what) not in keys:
            uses = tuple((one.family.name, *one.coordinates.items(), one.beyond) for one in what.uses)
            best = tuple((one.family.name, *one.coordinates.items()) for one in what.at_best)
            keys[id(what)] = uses, what.reason, best
        name = asset.name.casefold() if is_named(asset) else ""
        alike.setdefault((asset.kind, name, keys[id(what)], asset.platform), []).append(number)
    for numbers in alike.values():
        assets = [inventory.assets[number] for number in numbers]
        first: Mapped = found[numbers[0]]
        yield AssetGroup(
            assets[0].kind,
            assets[0].said.get("name", assets[0].name) if not is_named(assets[0]) else assets[0].name,
            len({asset.name for asset in assets}),
            len(assets),
            tuple(dict.fromkeys(place for asset in assets for place in asset.places)),
            market.priced_of(first, assets[0].platform),
            first.reason,
            _is_bad(first),
        )


def _is_bad(what: Mapped) -> bool:
    may_be = what.uses or (what.at_best if what.counts is Counts.ALL else ())
    standings = [one.family.standing_of(one.coordinates) for one in may_be]
    # A parameter that is not given may have a value in good standing.
    is_sure = all(map(has_parameters, may_be))
    return bool(standings) and is_sure and all(policies.is_worse(one, Standing.DEPRECATED) for one in standings)


def _from_best(priced: Priced) -> tuple[int, int, int]:
    """Return the sort key of uses that break a policy: the fewest rules, the best standing, the most strength."""
    family, cell = priced.use.family, priced.use.coordinates
    standing, strength = family.standing_of(cell), family.strength_of(cell)
    return len(priced.found.broken), -STANDINGS.index(standing), -(strength or 0)


class _Market:
    """Offers of each family, computed once."""

    def __init__(self, asked: Sequence[Policy], on: date, today: date, runs: Sequence[Run]) -> None:
        self.asked, self.on, self.today = asked, on, today
        self.runs = runs
        self._offers: dict[str, FamilyOffer] = {}
        self._priced: dict[tuple[object, ...], Priced] = {}
        self._rules: dict[str, int] = {}
        self._ruled = 0

    def about(self, family: Family) -> tuple[Policy, ...]:
        """Return the policies that have rules on a family."""
        return tuple(one for one in self.asked if one.is_about(family.name))

    def priced_of(self, what: Mapped, platform: str | None) -> tuple[Priced, ...]:
        """Return the uses of an asset; for unknown facts the best possible use, if all break a policy."""
        if what.uses or not self.asked:
            return tuple(self.priced(use, platform) for use in what.uses)
        may_be = [self._less_uncounted(self.priced(use, platform), what.counts) for use in what.at_best]
        if not may_be or any(one.found.ruling is not Ruling.BREAKS for one in may_be):
            return ()
        return (replace(min(may_be, key=_from_best), bound=what.counts),)

    def _asked_instead(self, use: AssetUse) -> str:
        """Return the words for measures of the policies that are not a choice of the family."""
        parts = [part for policy in self.about(use.family) for part in policy.all_of_it]
        rules = ((part.name, rule) for part in parts for rule in part.rules if use.family.name in rule.families)
        ways = [
            f"{name} asks for {way} ({rule.id})" for name, rule in rules if (way := platforms.instead(name, rule.id))
        ]
        return f"; {ways[0]}" if ways else ""

    def _less_uncounted(self, priced: Priced, counts: Counts) -> Priced:
        """Return the candidate without the rules that cannot judge an asset with a missing fact."""
        if counts is Counts.ALL:
            return priced
        kept = tuple(one for one in priced.found.broken if one.rule and one.rule.strength is None)
        return replace(priced, found=replace(priced.found, broken=kept))

    def priced(self, use: AssetUse, platform: str | None) -> Priced:
        # Parts beyond the family have no price, and thousands of assets may differ in them alone.
        key = (use.family.name, *sorted(use.coordinates.items()), use.unmeasured, platform)
        if key not in self._priced:
            self._count(use.family)
            self._priced[key] = self._price(use, platform)
        return replace(self._priced[key], use=use)

    def _count(self, family: Family) -> None:
        """Count the rules that judge one more asset.

        Raises TollbarError above the limit, because files from elsewhere can have both many assets and many rules.
        """
        if family.name not in self._rules:
            parts = [part for policy in self.about(family) for part in policy.all_of_it]
            self._rules[family.name] = sum(family.name in rule.families for part in parts for rule in part.rules)
        self._ruled += self._rules[family.name]
        if self._ruled > MOST_RULED:
            what = f"different assets and the policies' rules on them make more than {MOST_RULED:,} pairs, the limit"
            raise TollbarError(what, where="--policy", hint="name fewer policies at once, or split the inventory")

    def _price(self, use: AssetUse, platform: str | None) -> Priced:
        if use.family.name not in self._offers:
            about = self.about(use.family)
            measured = families.families().get(use.family.name, use.family)
            # An inventory names no provider: that some are not governed keeps none of its assets from being judged.
            wanted = Wanted(measured, about, {}, self.on, self.today, Standing.ACCEPTABLE, by_governed=True)
            self._offers[use.family.name] = FamilyOffer(wanted, self.runs)
        offer = self._offers[use.family.name]
        # Policies alone decide on an asset; its replacement must also be in good standing.
        found = _found(replace(offer.wanted, standing=None), use)
        unasked = bool(self.asked) and not offer.wanted.policies
        if not found.broken:
            return Priced(use, found, unasked)
        if instead := _instead(found):
            return Priced(use, found, unasked, instead=instead)
        able = tuple(one for one in offer.qualifying if platforms.has(platform, use.family.name, one))
        why = _NOT_BY_COST.get(use.family.name)
        if why and able and (absent := _absent_default(offer.wanted.family, able, platform)):
            able = _nearest_first(offer.wanted.family, able)
            why = f"{why}; {absent}"
        if not able and (why is None or (platform and offer.qualifying)):
            of = f" that {_PLATFORMS.get(platform, platform)} has" if platform and offer.qualifying else ""
            why = f"nothing of the family {use.family.name}{of} is known to meet the policies{self._asked_instead(use)}"
        if why:
            return Priced(use, found, unasked, unpriced=why, qualifying=able)
        place, why = offer.replacement(use, platform)
        if place is None:
            return Priced(use, found, unasked, unpriced=why, qualifying=able)
        return Priced(use, found, unasked, place.cheapest, place.own, place.costs, why, able)


def _absent_default(family: Family, able: Sequence[str], platform: str | None) -> str | None:
    """Return the sentence about a family's default that a platform does not have; None: it has it."""
    if family.default is None or platform is None or platforms.has(platform, family.name, family.default.choice):
        return None
    titles = {_algorithm(family, one) for one in able}
    default = _algorithm(family, family.default.choice)
    has = f"only {titles.pop()}" if len(titles) == 1 else f"no {default}"
    return f"{_PLATFORMS.get(platform, platform)} itself has {has}: {default} needs a separate package"


def _algorithm(family: Family, name: str) -> str:
    """Return the title of a choice without its parameters: PBKDF2 for `pbkdf2-sha-256-600k`."""
    choice = family.choices[name]
    return family.choices[str(choice.setting.get("algorithm", name))].title.partition("-SHA")[0]


def _nearest_first(family: Family, able: Sequence[str]) -> tuple[str, ...]:
    """Return the choices in order: those that give up the fewest of the default's threats first.

    Of two with as many, the first is the one that keeps the threats which the family names first.
    """
    assert family.default is not None
    default = at_defaults(family, {CHOICE: family.default.choice, **family.default.setting})
    threats = list(family.threats)

    def order(name: str) -> tuple[int, list[int], bool]:
        given = given_up(family, at_defaults(family, {CHOICE: name}), default)
        return len(given), [-threats.index(one) for one in given], not family.choices[name].setting

    return tuple(sorted(able, key=order))


def _instead(found: Candidate) -> str | None:
    """Return the way to meet all broken rules without another choice; None: there is no way."""
    ways = [platforms.instead(one.policy or "", one.rule.id) if one.rule else None for one in found.broken]
    return " and ".join(dict.fromkeys(way for way in ways if way)) if ways and all(ways) else None


def _found(wanted: Wanted, use: AssetUse) -> Candidate:
    """Return the policies' rulings on a use; an unmeasured choice also gets those on its upper bound."""
    found = candidate(replace(wanted, family=use.family), use.coordinates)
    broken = [one for one in found.broken if not _is_unlisted(one, use)]
    for one in use.unmeasured:
        if one.no_better_than is None:
            continue
        near = {**use.coordinates, one.coordinate: one.no_better_than}
        known = settings_at(wanted.family, near) if one.coordinate == CHOICE else use.family.settings
        cell = {name: value for name, value in near.items() if name == CHOICE or name in known}
        if cell[CHOICE] not in wanted.family.choices:
            continue
        seen = {(reason.policy, reason.rule.id) for reason in broken if reason.rule}
        broken += [
            replace(reason, what=reason.what.replace(one.no_better_than, one.value))
            for reason in candidate(wanted, cell).broken
            if reason.rule
            and (reason.policy, reason.rule.id) not in seen
            # A choice's own strength was judged above.
            and (one.strength is None or reason.rule.strength is None)
        ]
    broken += [reason for one in use.unmeasured for reason in _of_same(wanted, one)]
    return replace(found, broken=tuple(broken))


def _of_same(wanted: Wanted, one: Unmeasured) -> list[Reason]:
    """Return the rules that refuse the same algorithm in another family by its name."""
    if one.same_as is None:
        return []
    name, choice = one.same_as.split()
    of_same = candidate(replace(wanted, family=families.family(name)), {CHOICE: choice})
    return [
        replace(reason, what=reason.what.replace(choice, one.value))
        for reason in of_same.broken
        if reason.rule and reason.rule.never
    ]


def _is_unlisted(reason: Reason, use: AssetUse) -> bool:
    """Return true if a rule refuses a choice only because no list has it, though an authority may approve it.

    A list without any choice of the algorithm refuses all of it.
    """
    lists = reason.rule.only if reason.rule else {}
    absent = reason.rule.absent if reason.rule else ()
    return any(
        one.is_listed
        and one.coordinate in lists
        and is_of_list(one, lists[one.coordinate], families.families()[use.family.name], absent)
        for one in use.unmeasured
    )
