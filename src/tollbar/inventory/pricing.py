"""Pricing: what policies say of an inventory's assets, what could stand in place of those that break one, and the cost.

Standing comes first: a replacement is the cheapest that was measured of those that meet every policy, and what it costs
is the judge's comparison of it with the asset's own cell. Nothing is estimated here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

from tollbar import policies
from tollbar.families import Family, Standing, Value, at_defaults, cells_of, settings_at
from tollbar.inventory.mapping import Mapped, Use, mapped
from tollbar.inventory.reading import Asset, Inventory
from tollbar.judge.choosing import Candidate, Choosing, Reason, Wanted, candidate, choose, ranked
from tollbar.judge.costs import readings
from tollbar.judge.verdicts import Toll
from tollbar.moments import quickness_of
from tollbar.policies import STANDINGS, Contradiction, Policy, Ruling
from tollbar.results import Run, StudyRun

Coordinates = Mapping[str, Value]

# What is done most often of a family's operations decides what is cheapest, as far as it was measured.
_DECIDES = ("sign", "server", "connect", "encrypt", "round-trip")
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
class Cost:
    """What a replacement costs beside the asset, in one operation."""

    where: Coordinates
    toll: Toll


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
        """What is beyond the family may break what the rest meets."""
        if self.found.ruling is Ruling.MEETS and (self.use.beyond or self.unasked):
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
        self._offers: dict[str, _Offer] = {}
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
            wanted = Wanted(use.family, self.about(use.family), {}, self.on, self.today, Standing.ACCEPTABLE)
            self._offers[use.family.name] = _Offer(wanted, self.runs)
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


class _Offer:
    """What a family offers under the policies, and what was measured of it."""

    def __init__(self, wanted: Wanted, runs: Sequence[Run]) -> None:
        self.wanted = wanted
        self.has_runs = bool(runs)
        self.studies = [
            _Measured(wanted, run, one)
            for run in runs
            for one in run.studies
            if one.study.family.name == wanted.family.name
        ]

    @cached_property
    def qualifying(self) -> tuple[str, ...]:
        """Choices that meet the policies with some values of their settings, in the best standing first."""
        family = self.wanted.family
        worth = {name: ("*",) for name, one in family.settings.items() if one.about and one.values}
        best_first = sorted(
            cells_of(family, worth), key=lambda cell: STANDINGS.index(family.standing_of(cell)), reverse=True
        )
        # Of thousands of cells the few that are asked about: the first that meets the policies settles its choice.
        found: dict[str, None] = {}
        for cell in best_first:
            if cell["choice"] not in found and candidate(self.wanted, cell).ruling is Ruling.MEETS:
                found[str(cell["choice"])] = None
        return tuple(found)

    def replacement(self, use: Use) -> tuple[_Place | None, str | None]:
        """Where what replaces it stands beside it, and why there is no cost, or no such place."""
        if not self.studies:
            missing = "no run here has" if self.has_runs else "nothing was measured of"
            return None, f"{missing} the family {self.wanted.family.name}"
        places = [place for study in self.studies for place in study.places(use)]
        if not places:
            return None, "nothing that meets the policies is in the runs"
        best = max(places, key=lambda place: place.worth)
        if best.own:
            return best, None
        if best.not_given:
            verb = "is" if len(best.not_given) == 1 else "are"
            return best, f"{' and '.join(f'`{name}`' for name in best.not_given)} {verb} not given"
        return best, f"{_words(use)} is not in the runs"


@dataclass(frozen=True, slots=True)
class _Place:
    """One place of a study: where a use stands beside what could replace it."""

    own: Candidate | None
    cheapest: tuple[Candidate, ...]
    costs: tuple[Cost, ...]
    not_given: tuple[str, ...]
    """In what the use's cell differs from all that meets the policies, though the asset does not say it."""
    worth: tuple[bool, bool, bool, int]
    """Whether it is beside the use, or the use was measured there, whether its operation decides, how usual it is."""


class _Measured:
    """A study of a run, and what is chosen of it."""

    def __init__(self, wanted: Wanted, run: Run, study_run: StudyRun) -> None:
        self.wanted, self.run, self.study_run = wanted, run, study_run

    @cached_property
    def _chosen(self) -> tuple[Choosing, ...]:
        rows = [row for one in self.run.studies for row in one.rows]
        known = quickness_of(readings(rows), self.run.best_probe_ns)
        return choose(self.wanted, self.study_run, {}, known)

    def places(self, use: Use) -> Iterator[_Place]:
        """Those in which something that meets the policies was measured."""
        for choosing in self._chosen:
            measured = choosing.priced
            if not measured:
                continue
            alike = self._own(use, choosing)
            # What the asset leaves open is no reason for a difference: its replacement has the same.
            beside = ((own, [one for one in measured if not _not_given(use, own, one)]) for own in alike)
            own, same = next(((own, same) for own, same in beside if same), (None, measured))
            cheapest = ranked(same, choosing.compare)[0].candidates
            yield _Place(
                own,
                cheapest,
                tuple(self._costs(choosing, own, cheapest[0])) if own else (),
                _not_given(use, alike[0], cheapest[0]) if alike and own is None else (),
                (own is not None, bool(alike), choosing.where.get("op") in (None, *_DECIDES), self._usual(choosing)),
            )

    def _own(self, use: Use, choosing: Choosing) -> list[Candidate]:
        """The use's cells in a place: all that is said of it, and first what has at its default what is not said."""
        wanted = at_defaults(self.wanted.family, {**choosing.where, **use.coordinates})
        alike = [
            one for one in _all(choosing) if one.cost is not None and use.coordinates.items() <= one.coordinates.items()
        ]
        return sorted(alike, key=lambda one: _agree(one.coordinates, wanted), reverse=True)

    def _costs(self, choosing: Choosing, own: Candidate, best: Candidate) -> Iterator[Cost]:
        """What the replacement costs beside the use there, and in the other operations."""
        others = (one for one in self._chosen if one is not choosing)
        for other in (choosing, *others):
            if _but_operation(other.where) != _but_operation(choosing.where):
                continue
            of = {frozenset(_but_operation(one.coordinates).items()): one for one in _all(other)}
            found = (of.get(frozenset(_but_operation(one.coordinates).items())) for one in (best, own))
            rows = [one.row for one in found if one and one.row and one.cost]
            if len(rows) == 2:
                yield Cost(other.where, other.compare(*rows))

    def _usual(self, choosing: Choosing) -> int:
        """How many of a place's coordinates are those of a study that says nothing of them."""
        settings = {name: one.default for name, one in self.wanted.family.settings.items() if name in choosing.where}
        is_usual = choosing.where.get("provider") in self.wanted.family.providers
        return is_usual + _agree(choosing.where, settings)


def _all(choosing: Choosing) -> tuple[Candidate, ...]:
    return (*choosing.qualifies, *choosing.refused, *choosing.unsaid)


def _not_given(use: Use, own: Candidate, other: Candidate) -> tuple[str, ...]:
    """The settings that an asset does not say, and that its cell has otherwise than another, or than by default."""
    return tuple(
        name
        for name, setting in use.family.settings.items()
        if name in own.coordinates
        and name not in use.coordinates
        and own.coordinates[name] != other.coordinates.get(name, setting.default)
    )


def _agree(one: Coordinates, other: Coordinates) -> int:
    return sum(one.get(name) == value for name, value in other.items())


def _but_operation(coordinates: Coordinates) -> Coordinates:
    return {name: value for name, value in coordinates.items() if name != "op"}


def _words(use: Use) -> str:
    choice, *settings = use.coordinates.items()
    return " ".join([str(choice[1]), *(f"{name}={value}" for name, value in settings)])
