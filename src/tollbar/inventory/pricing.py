"""Pricing: what policies say of an inventory's assets, and what replacing those that break one costs.

Standing comes first: a replacement is the cheapest that was measured of those that meet every policy, and what it costs
is the judge's comparison of it with the asset's own cell. Nothing is estimated here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from tollbar import policies
from tollbar.families import Family, Standing, settings_at
from tollbar.inventory.mapping import Mapped, Use, mapped
from tollbar.inventory.reading import Asset, Inventory
from tollbar.inventory.replacing import Cost, Offer
from tollbar.judge.choosing import Candidate, Reason, Wanted, candidate
from tollbar.policies import STANDINGS, Contradiction, Policy, Rule, Ruling
from tollbar.results import Run

# Those that a user waits for, where a family has others that are rare.
_OPERATIONS = {"signature": ("op=sign,verify",), "cipher": ("op=encrypt,decrypt",)}
# What is chosen by other than the least cost, and how.
_NOT_BY_COST = {"password-hash": "a password hash is to cost what one can pay: `tollbar tune password-hash` finds it"}

_WORST_FIRST = (Ruling.BREAKS, Ruling.CANNOT_SAY, Ruling.MEETS)


@dataclass(frozen=True, slots=True)
class Line:
    """Assets that are alike in all that is known of them here."""

    kind: str
    name: str
    """Of the first."""
    names: int
    """How many there are of them."""
    count: int
    places: tuple[str, ...]
    """Where they occur, each once."""
    uses: tuple[Priced, ...]
    """What they are instances of; several where the inventory does not say which."""
    reason: str | None
    """Why there is none."""

    @property
    def ruling(self) -> Ruling:
        """Of all policies and all uses; where these differ, or one says more than Tollbar knows, it cannot be said."""
        found = {one.ruling for one in self.uses}
        return found.pop() if len(found) == 1 else Ruling.CANNOT_SAY


@dataclass(frozen=True, slots=True)
class Priced:
    """A use of an asset, what the policies say of it, and what could replace it."""

    use: Use
    found: Candidate
    """What the policies that are about its family say."""
    unasked: bool
    """Whether policies were named, and none has a rule on its family."""
    replacements: tuple[Candidate, ...] = ()
    """The cheapest that was measured of those that meet the policies, and what was not told apart from it."""
    own: Candidate | None = None
    """The asset's own cell, as it was measured: what the asset leaves open is the same in the replacements."""
    costs: tuple[Cost, ...] = ()
    """Of the first of them over the asset's own cell, by operation."""
    unpriced: str | None = None
    """Why there is no cost, where something is to be replaced."""
    qualifying: tuple[str, ...] = ()
    """Choices of the family that meet the policies in no bad standing, whatever was measured."""

    @property
    def ruling(self) -> Ruling:
        """What is beyond the family may break what the rest meets; and what no policy judged meets none."""
        if self.found.ruling is Ruling.MEETS and (self.use.beyond or not self.found.judged):
            return Ruling.CANNOT_SAY
        return self.found.ruling

    @property
    def is_standing_sure(self) -> bool:
        """Whether no setting that is not given could lower its standing, or is one that its choice's rests on."""
        family, cell = self.use.family, self.use.coordinates
        worst = STANDINGS.index(family.standing_of(cell))
        open_ = [one for name, one in settings_at(family, cell).items() if name not in cell]
        values = [value.standing for one in open_ for value in one.about.values() if value.standing]
        lower = any(STANDINGS.index(standing) < worst for standing in values)
        return not lower and not any(one.name in family.parameters for one in open_)

    @property
    def open(self) -> tuple[str, ...]:
        """The settings that decide what it is worth, are not given, and that its own cell has not at their defaults."""
        if self.own is None:
            return ()
        settings = settings_at(self.use.family, self.own.coordinates)
        return tuple(
            name
            for name, value in self.own.coordinates.items()
            if name in settings
            and settings[name].about
            and name not in self.use.coordinates
            and value != settings[name].default
        )

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why it breaks a policy, or why that cannot be said."""
        if self.found.broken:
            return self.found.broken
        beyond = tuple(Reason(one) for one in self.use.beyond)
        none = (Reason(f"no policy here has a rule on the family {self.use.family.name}"),) if self.unasked else ()
        return (*beyond, *none, *self.found.missing)


@dataclass(frozen=True, slots=True)
class Pricing:
    """What an inventory comes to."""

    inventory: Inventory
    policies: tuple[Policy, ...]
    on: date
    lines: tuple[Line, ...]
    """What breaks a policy first."""
    contradictions: tuple[tuple[Family, Contradiction], ...]
    runs: tuple[Run, ...]

    def count(self, ruling: Ruling) -> int:
        """How many assets have it."""
        return sum(line.count for line in self.lines if line.ruling is ruling)

    @property
    def mapped(self) -> int:
        """How many assets are instances of a choice."""
        return sum(line.count for line in self.lines if line.uses)

    @property
    def of_providers(self) -> tuple[tuple[str, Rule], ...]:
        """Rules that say of which providers a policy says nothing, with their policy; none of the assets names one."""
        families = {use.use.family.name for line in self.lines for use in line.uses}
        parts = {part.name: part for policy in self.policies for part in policy.all_of_it}
        rules = ((name, rule) for name, part in parts.items() for rule in part.rules if rule.holds(self.on))
        return tuple((name, rule) for name, rule in rules if rule.is_of_providers and families & {*rule.families})

    @property
    def broken(self) -> Mapping[tuple[str, str, str], int]:
        """How many assets break each rule: by policy, rule and clause, the most first."""
        found: Counter[tuple[str, str, str]] = Counter()
        for line in self.lines:
            rules = {
                (one.policy, one.rule.id, one.rule.clause)
                for use in line.uses
                if line.ruling is Ruling.BREAKS
                for one in use.reasons
                if one.policy and one.rule
            }
            found.update(dict.fromkeys(rules, line.count))
        return dict(found.most_common())


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be measured of a family."""

    own: tuple[str, ...]
    """The choices of assets."""
    able: tuple[str, ...]
    """Those that could replace them, in the best standing first."""
    settings: Mapping[str, tuple[str, ...]]
    """What assets say of settings."""

    def words(self, family: str, most: int) -> tuple[str, ...]:
        """The same in words of `tollbar ask`, with so many replacements at most."""
        said = (f"{name}={','.join(dict.fromkeys(values))}" for name, values in self.settings.items())
        return (*dict.fromkeys((*self.own, *self.able[:most])), *said, *_OPERATIONS.get(family, ()))


def price(inventory: Inventory, asked: Sequence[Policy], on: date, today: date, runs: Sequence[Run] = ()) -> Pricing:
    """What policies say of an inventory's assets on a day, and what replacing them costs by these runs."""
    market = _Market(asked, on, today, runs)
    lines = tuple(_lines(inventory, market))
    ahead = sorted(lines, key=lambda line: (_WORST_FIRST.index(line.ruling), line.reason is not None))
    met = {use.use.family.name: use.use.family for line in lines for use in line.uses}
    contradicting = tuple(
        (family, one) for family in met.values() for one in policies.contradictions(market.about(family), family, on)
    )
    return Pricing(inventory, tuple(asked), on, tuple(ahead), contradicting, tuple(runs))


def to_measure(pricing: Pricing) -> Mapping[str, Question]:
    """What a run would have to measure for the costs that are missing, by family.

    What only servers perform is not among them: a study says how these are asked.
    """
    found: dict[str, Question] = {}
    for line in pricing.lines:
        for priced in line.uses:
            family, cell = priced.use.family, priced.use.coordinates
            if priced.found.broken and priced.qualifying and not priced.costs and _can_be_asked(family):
                before = found.get(family.name, Question((), (), {}))
                settings = dict(before.settings)
                for name, value in cell.items():
                    if name != "choice":
                        settings[name] = (*settings.get(name, ()), str(value))
                found[family.name] = Question((*before.own, str(cell["choice"])), priced.qualifying, settings)
    return found


def _can_be_asked(family: Family) -> bool:
    return not family.beds and family.name not in _NOT_BY_COST


def is_named(asset: Asset) -> bool:
    """Whether it is known by its name: a key or a certificate is one of many of its kind."""
    return asset.kind not in ("certificate", "related-crypto-material")


def _lines(inventory: Inventory, market: _Market) -> Iterator[Line]:
    alike: dict[tuple[object, ...], list[int]] = {}
    found = mapped(inventory)
    for number, (asset, what) in enumerate(zip(inventory.assets, found, strict=True)):
        uses = tuple((one.family.name, *one.coordinates.items(), one.beyond) for one in what.uses)
        name = asset.name.casefold() if is_named(asset) else ""
        alike.setdefault((asset.kind, name, uses, what.reason), []).append(number)
    for numbers in alike.values():
        assets = [inventory.assets[number] for number in numbers]
        first: Mapped = found[numbers[0]]
        yield Line(
            assets[0].kind,
            assets[0].said.get("name", assets[0].name) if not is_named(assets[0]) else assets[0].name,
            len({asset.name for asset in assets}),
            len(assets),
            tuple(dict.fromkeys(place for asset in assets for place in asset.places)),
            tuple(market.priced(use) for use in first.uses),
            first.reason,
        )


class _Market:
    """What there is to choose from, by family, worked out once."""

    def __init__(self, asked: Sequence[Policy], on: date, today: date, runs: Sequence[Run]) -> None:
        self.asked, self.on, self.today = asked, on, today
        self.runs = runs
        self._offers: dict[str, Offer] = {}
        self._priced: dict[tuple[object, ...], Priced] = {}

    def about(self, family: Family) -> tuple[Policy, ...]:
        """The policies that have rules on a family."""
        return tuple(one for one in self.asked if one.is_about(family.name))

    def priced(self, use: Use) -> Priced:
        key = (use.family.name, *sorted(use.coordinates.items()), use.beyond)
        if key not in self._priced:
            self._priced[key] = self._price(use)
        return self._priced[key]

    def _price(self, use: Use) -> Priced:
        if use.family.name not in self._offers:
            about = self.about(use.family)
            # An inventory names no provider: that some are not governed keeps none of its assets from being judged.
            wanted = Wanted(use.family, about, {}, self.on, self.today, Standing.ACCEPTABLE, by_governed=True)
            self._offers[use.family.name] = Offer(wanted, self.runs)
        offer = self._offers[use.family.name]
        # Of an asset it is the policies that decide; what replaces it is in no bad standing whatever they say.
        found = candidate(replace(offer.wanted, standing=None), use.coordinates)
        unasked = bool(self.asked) and not offer.wanted.policies
        if not found.broken:
            return Priced(use, found, unasked)
        why = _NOT_BY_COST.get(use.family.name)
        if why is None and not offer.qualifying:
            why = f"nothing of the family {use.family.name} is known to meet the policies"
        if why:
            return Priced(use, found, unasked, unpriced=why, qualifying=offer.qualifying)
        place, why = offer.replacement(use)
        if place is None:
            return Priced(use, found, unasked, unpriced=why, qualifying=offer.qualifying)
        return Priced(use, found, unasked, place.cheapest, place.own, place.costs, why, offer.qualifying)
