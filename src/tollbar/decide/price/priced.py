"""Prices of an inventory, as values: its groups of assets, their uses with rulings and costs, and what to measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from tollbar.catalog.families import Family, settings_at
from tollbar.catalog.policies import STANDINGS, Contradiction, Judged, Policy, Rule, Ruling
from tollbar.decide.price.inventory import Inventory
from tollbar.decide.price.mapping import AssetUse
from tollbar.decide.price.replacing import Cost
from tollbar.decide.price.table import Counts
from tollbar.decide.price.unmeasured import CHOICE
from tollbar.decide.rulings import Candidate, Reason
from tollbar.results import Run


@dataclass(frozen=True, slots=True)
class AssetGroup:
    """Assets that are equal in all facts that matter here."""

    kind: str
    name: str
    """Name of the first asset."""
    names: int
    """Number of different names."""
    count: int
    places: tuple[str, ...]
    """Places where the assets occur, each once."""
    uses: tuple[Priced, ...]
    """Choices of which the assets are instances; several if the inventory leaves them open."""
    reason: str | None
    """Reason why the choice is unknown; then the use is the best that it may be, if even that breaks a policy."""
    is_bad: bool = False
    """True if each possible choice is broken or disallowed by its standing, whatever the policies rule on."""

    @property
    def is_mapped(self) -> bool:
        """Return true if the choice of the assets is known."""
        return bool(self.uses) and self.reason is None

    @property
    def is_whole(self) -> bool:
        """Return whether the parameters of its choice are known too."""
        return self.is_mapped and all(has_parameters(one.use) for one in self.uses)

    @property
    def ruling(self) -> Ruling:
        """Return the ruling of all policies on all uses; `CANNOT_SAY` if these differ, or if there is no use."""
        found = {one.ruling for one in self.uses}
        return found.pop() if len(found) == 1 else Ruling.CANNOT_SAY


@dataclass(frozen=True, slots=True)
class Priced:
    """Use of an asset, with the policies' rulings and its possible replacements."""

    use: AssetUse
    found: Candidate
    """Candidate with the rulings of the policies on its family."""
    unasked: bool
    """True if policies were named and none has a rule on the family."""
    replacements: tuple[Candidate, ...] = ()
    """Cheapest measured choices that meet the policies and that the run cannot distinguish."""
    own: Candidate | None = None
    """Measured cell of the asset; facts that the asset leaves open are the same in the replacements."""
    costs: tuple[Cost, ...] = ()
    """Costs of the first replacement over the asset's own cell, by operation."""
    unpriced: str | None = None
    """Reason why there is no cost, if the asset must be replaced."""
    qualifying: tuple[str, ...] = ()
    """Choices of the family that meet the policies in no bad standing and that the asset's platform has, whatever was
    measured."""
    instead: str | None = None
    """The way to meet the rules that it breaks without replacing it."""
    bound: Counts | None = None
    """The rules that count, if the use is only the best that the asset may be; None: the asset is this use."""

    @property
    def rulings(self) -> Mapping[str, Ruling]:
        """Return the ruling of each policy on the asset, in agreement with the reasons."""
        return {one.policy.name: self._ruling_of(one) for one in self.found.judged}

    def _ruling_of(self, judged: Judged) -> Ruling:
        parts = {part.name for part in judged.policy.all_of_it}
        if any(one.policy in parts for one in self.found.broken):
            return Ruling.BREAKS
        is_whole = self.bound is None and not self.use.beyond
        return Ruling.MEETS if is_whole and judged.ruling is Ruling.MEETS else Ruling.CANNOT_SAY

    @property
    def ruling(self) -> Ruling:
        """Return the ruling; `CANNOT_SAY` if a part beyond the family may break a rule, or if no policy judged."""
        if self.found.ruling is Ruling.MEETS and (self.use.beyond or not self.found.judged):
            return Ruling.CANNOT_SAY
        return self.found.ruling

    @property
    def is_standing_sure(self) -> bool:
        """Return true if no setting that is not given could lower the standing or decides it."""
        family, cell = self.use.family, self.use.coordinates
        worst = STANDINGS.index(family.standing_of(cell))
        open_ = [one for name, one in settings_at(family, cell).items() if name not in cell]
        values = [value.standing for one in open_ for value in one.about.values() if value.standing]
        lower = any(STANDINGS.index(standing) < worst for standing in values)
        return not lower and has_parameters(self.use)

    @property
    def open(self) -> tuple[str, ...]:
        """Return the settings that decide the standing, are not given, and differ from the default in the own cell."""
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
        """Return the reasons why the use breaks a policy, or why the ruling is open."""
        if self.found.broken:
            return self.found.broken
        beyond = tuple(Reason(one) for one in self.use.beyond)
        none = (Reason(f"no policy here has a rule on the family {self.use.family.name}"),) if self.unasked else ()
        return (*beyond, *none, *self.found.missing)


@dataclass(frozen=True, slots=True)
class Pricing:
    """Prices of an inventory's assets."""

    inventory: Inventory
    policies: tuple[Policy, ...]
    on: date
    lines: tuple[AssetGroup, ...]
    """Groups of assets, those that break a policy first."""
    contradictions: tuple[tuple[Family, Contradiction], ...]
    runs: tuple[Run, ...]

    def count(self, ruling: Ruling) -> int:
        """Return the number of assets with this ruling."""
        return sum(line.count for line in self.lines if line.ruling is ruling)

    @property
    def mapped(self) -> int:
        """Return the number of assets that are instances of a choice whose parameters are all given."""
        return sum(line.count for line in self.lines if line.is_whole)

    @property
    def bad_unrefused(self) -> int:
        """Return the number of assets in bad standing that no policy here refuses."""
        return sum(line.count for line in self.lines if line.is_bad and line.ruling is not Ruling.BREAKS)

    @property
    def of_providers(self) -> tuple[tuple[str, Rule], ...]:
        """Return the rules on providers, with their policies; no asset names a provider."""
        families = {use.use.family.name for line in self.lines for use in line.uses}
        parts = {part.name: part for policy in self.policies for part in policy.all_of_it}
        rules = ((name, rule) for name, part in parts.items() for rule in part.rules if rule.holds(self.on))
        return tuple((name, rule) for name, rule in rules if rule.is_of_providers and families & {*rule.families})

    @property
    def broken(self) -> Mapping[tuple[str, str, str], int]:
        """Return the number of assets that break each rule, by policy, rule and clause, the largest first."""
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


def has_parameters(use: AssetUse) -> bool:
    """Return whether each parameter of a choice is given, such as the passes of Argon2id."""
    is_by_parameters = use.family.choices[str(use.coordinates[CHOICE])].is_set_by_study
    return not is_by_parameters or all(
        name in use.coordinates or name not in use.family.parameters
        for name in settings_at(use.family, use.coordinates)
    )
