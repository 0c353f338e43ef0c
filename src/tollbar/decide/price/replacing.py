"""Replacements of an asset that breaks a policy: the offers of a family, its measurements, and the cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tollbar.analysis.probes import readings
from tollbar.analysis.verdicts import Toll
from tollbar.catalog.families import Family, Value, at_defaults, cells_of
from tollbar.catalog.policies import STANDINGS, Ruling
from tollbar.core.moments import quickness_of
from tollbar.decide.candidates import PROVIDER
from tollbar.decide.choosing import Choosing, choose, ranked
from tollbar.decide.price import platforms
from tollbar.decide.price.mapping import AssetUse
from tollbar.decide.rulings import Candidate, Wanted, candidate
from tollbar.results import Run, StudyRun

Coordinates = Mapping[str, Value]

# The most frequent measured operation of a family decides which choice is cheapest.
_DECIDES = ("sign", "server", "connect", "encrypt", "round-trip")


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a replacement relative to the asset, in one operation."""

    where: Coordinates
    toll: Toll


class FamilyOffer:
    """Choices of a family under the policies, and its measurements."""

    def __init__(self, wanted: Wanted, runs: Sequence[Run]) -> None:
        self.wanted = wanted
        self.has_runs = bool(runs)
        of_family = [(run, one) for run in runs for one in run.studies if one.study.family.name == wanted.family.name]
        # A load client's CPU time is not a cost of its server.
        own = [(run, one) for run, one in of_family if one.study.measure.cost != "client-cpu"]
        self.is_of_clients = bool(of_family) and not own
        self.studies = [_MeasuredStudy(wanted, run, one) for run, one in own]

    @cached_property
    def qualifying(self) -> tuple[str, ...]:
        """Choices that meet the policies with some values of their settings, best standing first."""
        family = self.wanted.family
        deciding = {name: ("*",) for name, one in family.settings.items() if one.about and one.values}
        best_first = sorted(
            cells_of(family, deciding), key=lambda cell: STANDINGS.index(family.standing_of(cell)), reverse=True
        )
        # Thousands of cells exist, and the first that meets the policies is enough for its choice.
        found: dict[str, None] = {}
        for cell in best_first:
            if cell["choice"] not in found and candidate(self.wanted, cell).ruling is Ruling.MEETS:
                found[str(cell["choice"])] = None
        return tuple(found)

    def replacement(self, use: AssetUse, platform: str | None) -> tuple[StudyPlace | None, str | None]:
        """Return the place with the asset and its replacement on this platform, or the reason for a missing cost."""
        if not self.studies:
            if self.is_of_clients:
                return None, f"of the family {self.wanted.family.name} the runs have the load client's CPU time alone"
            missing = "no run here has" if self.has_runs else "no run has measured"
            return None, f"{missing} the family {self.wanted.family.name}"
        places = [place for study in self.studies for place in study.places(use, platform)]
        if not places:
            return None, "the runs have no choice that meets the policies"
        best = max(places, key=lambda place: place.rank)
        if best.own:
            return best, None
        if best.not_given:
            verb = "is" if len(best.not_given) == 1 else "are"
            return best, f"{' and '.join(f'`{name}`' for name in best.not_given)} {verb} not given"
        return best, f"{_words(use)} is not in the runs"


@dataclass(frozen=True, slots=True)
class StudyPlace:
    """Place of a study that has a use next to its possible replacements."""

    own: Candidate | None
    cheapest: tuple[Candidate, ...]
    costs: tuple[Cost, ...]
    not_given: tuple[str, ...]
    """Settings in which the use's cell differs from all qualifying cells, though the asset does not give them."""
    rank: tuple[bool, bool, bool, int]
    """Sort key: the place has the use and a replacement, the use was measured, its operation decides, it is usual."""


class _MeasuredStudy:
    """Study of a run, and its qualifying candidates."""

    def __init__(self, wanted: Wanted, run: Run, study_run: StudyRun) -> None:
        self.wanted, self.run, self.study_run = wanted, run, study_run

    @cached_property
    def _chosen(self) -> tuple[Choosing, ...]:
        rows = [row for one in self.run.studies for row in one.rows]
        known = quickness_of(readings(rows), self.run.best_probe_ns)
        return choose(self.wanted, self.study_run, {}, known)

    def places(self, use: AssetUse, platform: str | None) -> Iterator[StudyPlace]:
        """Yield the places in which a choice that meets the policies, and that the platform has, was measured."""
        family = self.wanted.family
        for choosing in self._chosen:
            measured = [
                one for one in choosing.priced if platforms.has(platform, family.name, str(one.coordinates["choice"]))
            ]
            if not measured:
                continue
            alike = self._own(use, choosing)
            # Settings that the asset leaves open are no reason for a difference: its replacement has the same.
            beside = [(own, [one for one in measured if not _not_given(use, own, one)]) for own in alike]
            if len({one.coordinates.get(PROVIDER) for one in alike}) > 1:
                # Where a policy rules on providers, one place has several of them, and they are not compared with each
                # other.
                beside = [(own, [one for one in some if _is_by_same(own, one)]) for own, some in beside] + beside
            own, same = next(((own, same) for own, same in beside if same), (None, measured))
            cheapest = ranked(_in_best_standing(family, same), choosing.compare)[0].candidates
            yield StudyPlace(
                own,
                cheapest,
                tuple(self._costs(choosing, own, cheapest[0])) if own else (),
                _not_given(use, alike[0], cheapest[0]) if alike and own is None else (),
                (own is not None, bool(alike), choosing.where.get("op") in (None, *_DECIDES), self._usual(choosing)),
            )

    def _own(self, use: AssetUse, choosing: Choosing) -> list[Candidate]:
        """Return the use's cells in a place that have all its given settings, those with more defaults first."""
        wanted = at_defaults(self.wanted.family, {**choosing.where, **use.coordinates})
        alike = [
            one for one in _all(choosing) if one.cost is not None and use.coordinates.items() <= one.coordinates.items()
        ]
        return sorted(alike, key=lambda one: _agree(one.coordinates, wanted), reverse=True)

    def _costs(self, choosing: Choosing, own: Candidate, best: Candidate) -> Iterator[Cost]:
        """Yield the costs of the replacement over the use, in this operation and the others."""
        others = (one for one in self._chosen if one is not choosing)
        for other in (choosing, *others):
            if _but_operation(other.where) != _but_operation(choosing.where):
                continue
            of = {frozenset(_but_operation(one.coordinates).items()): one for one in _all(other)}
            found = (of.get(frozenset(_but_operation(one.coordinates).items())) for one in (best, own))
            rows = [one.row for one in found if one and one.row and one.cost]
            if len(rows) == 2:
                yield Cost(other.where, other.alone(*rows))

    def _usual(self, choosing: Choosing) -> int:
        """Return the number of a place's coordinates that are at a study's defaults."""
        settings = {name: one.default for name, one in self.wanted.family.settings.items() if name in choosing.where}
        is_usual = choosing.where.get("provider") in self.wanted.family.providers
        return is_usual + _agree(choosing.where, settings)


def _in_best_standing(family: Family, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates in the best standing: a lower cost is no reason for a worse standing."""
    standings = [STANDINGS.index(family.standing_of(one.coordinates)) for one in candidates]
    return [one for one, standing in zip(candidates, standings, strict=True) if standing == max(standings)]


def _all(choosing: Choosing) -> tuple[Candidate, ...]:
    return (*choosing.qualifies, *choosing.refused, *choosing.unsaid)


def _not_given(use: AssetUse, own: Candidate, other: Candidate) -> tuple[str, ...]:
    """Return the settings that an asset omits, and in which its cell differs from another or the default."""
    return tuple(
        name
        for name, setting in use.family.settings.items()
        if name in own.coordinates
        and name not in use.coordinates
        and own.coordinates[name] != other.coordinates.get(name, setting.default)
    )


def _is_by_same(one: Candidate, other: Candidate) -> bool:
    return one.coordinates.get(PROVIDER) == other.coordinates.get(PROVIDER)


def _agree(one: Coordinates, other: Coordinates) -> int:
    return sum(one.get(name) == value for name, value in other.items())


def _but_operation(coordinates: Coordinates) -> Coordinates:
    return {name: value for name, value in coordinates.items() if name != "op"}


def _words(use: AssetUse) -> str:
    choice, *settings = use.coordinates.items()
    return " ".join([str(choice[1]), *(f"{name}={value}" for name, value in settings)])
