"""Candidates that meet policies and mitigate threats, from the cheapest, and the violations of the others.

Policies and threats alone decide which candidates qualify; judged costs decide the order. Candidates that the run
cannot distinguish from the cheapest share its place. Without a run there is no order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal

from tollbar.analysis.decisions import Terms, jointly
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.tolls import one_of
from tollbar.analysis.verdicts import Toll, Verdict
from tollbar.catalog import policies
from tollbar.catalog.families import Value, is_answer, is_default
from tollbar.catalog.policies import Contradiction, Ruling
from tollbar.core.moments import Quickness
from tollbar.decide.placing import by_place
from tollbar.decide.rulings import Candidate, Coordinates, Wanted, candidate, lacks
from tollbar.results import Row, StudyRun
from tollbar.study import matches

Compare = Callable[[Row, Row], Toll]
"""Judgement of one row's cost relative to another's."""


@dataclass(frozen=True, slots=True)
class Rank:
    """Candidates that the run cannot distinguish from the cheapest of them."""

    number: int
    """Place: one plus the number of candidates in earlier places."""
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Choosing:
    """Candidates of one place, grouped by ruling."""

    wanted: Wanted
    where: Coordinates
    """Coordinates that all candidates share and that are no choice: the operation, the size, the provider."""
    priced: tuple[Candidate, ...]
    """Qualifying candidates with a cost, from the cheapest."""
    unpriced: tuple[Candidate, ...]
    """Qualifying candidates without a cost."""
    refused: tuple[Candidate, ...]
    """Candidates that break a rule or do nothing against a threat, from the cheapest."""
    unsaid: tuple[Candidate, ...]
    """Candidates that break no rule, but miss a fact that a ruling needs."""
    contradictions: tuple[Contradiction, ...]
    """Contradictions of the policies, independent of measurements."""
    dropping: tuple[Candidate, ...] = ()
    """Candidates that qualify today and not on the day in question."""
    nearest: tuple[Candidate, ...] = field(default=())
    """Candidates with the fewest violations, then the fewest missing facts, if none qualifies."""
    compare: Compare = field(default=lambda one, other: Toll(one, other, "cpu"), repr=False, compare=False)
    """Comparison of two qualifying candidates, its verdict adjusted for all their pairs."""
    alone: Compare = field(default=lambda one, other: Toll(one, other, "cpu"), repr=False, compare=False)
    """Comparison of any two candidates, unadjusted."""
    study: str | None = None
    """By which study its costs are; None: nothing was measured."""
    cost: Literal["cpu", "server-cpu", "client-cpu"] = "cpu"
    """Whose CPU time they are, as studies name it."""
    threshold: float = 0.0
    """Smallest relative difference that its verdicts count."""

    @cached_property
    def ranks(self) -> tuple[Rank, ...]:
        """Return the places of qualifying candidates with a cost, computed on demand because few of dozens are printed.

        Among candidates of one place the family's default is first: their order is noise.
        """
        return tuple(replace(rank, candidates=self._default_first(rank.candidates)) for rank in self._ranked)

    @cached_property
    def _ranked(self) -> tuple[Rank, ...]:
        """Return the places before the default is put first; the cost of the first is that of the cheapest of all.

        Pairs may put another candidate first than the one of least cost, whose interval is wider already.
        """
        found = ranked(self.priced, self.compare)
        if not found or found[0].candidates[0] is self.priced[0]:
            return found
        first, *others = found[0].candidates
        wider = replace(first, cost=jointly(first.cost, len(self.priced)) if first.cost else None)
        return (replace(found[0], candidates=(wider, *others)), *found[1:])

    @property
    def cheapest(self) -> Candidate | None:
        """The qualifying candidate with which the others are compared; None if none was measured."""
        return self._ranked[0].candidates[0] if self._ranked else None

    def _default_first(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        family = self.wanted.family
        differ = {name for one in candidates for name in one.coordinates if name == "choice" or name in family.settings}
        return tuple(sorted(candidates, key=lambda one: not is_default(family, one.coordinates, differ)))

    @property
    def qualifies(self) -> tuple[Candidate, ...]:
        return (*self.priced, *self.unpriced)

    def beside_cheapest(self, one: Candidate) -> Toll | None:
        """Return the candidate's toll over the cheapest qualifying candidate; None where either has no cost."""
        first = self.cheapest
        if first is None or first.row is None or one.row is None or one.cost is None or one.row is first.row:
            return None
        return (self.compare if one.ruling is Ruling.MEETS else self.alone)(one.row, first.row)


def choose(
    wanted: Wanted, study_run: StudyRun, given: Mapping[str, Value | tuple[Value, ...]], known: Quickness | None = None
) -> tuple[Choosing, ...]:
    """Return the standings and costs of a run's cells with the given coordinates, place by place.

    Cells share a place if all of `Choosing.where` is equal. Unsupported combinations, such as a hybrid in TLS 1.2, are
    in no run.
    """
    terms = Terms.of(study_run)
    ledger = Ledger(study_run.rows, terms, study_run.study.measure.cost, wanted.family, known)
    rows = [
        row
        for row in study_run.rows
        # An old run may have choices that the family has no more, of which nothing is known.
        if row.choice in wanted.family.choices
        and is_answer(wanted.family, row.choice)
        and all(
            matches(row.coordinates.get(name), value if isinstance(value, tuple) else (value,))
            for name, value in given.items()
        )
    ]

    return tuple(
        replace(
            _chosen_of(wanted, where, [candidate(wanted, row.coordinates, row, ledger) for row in some], ledger),
            study=study_run.study.name,
            cost=study_run.study.measure.cost,
            threshold=study_run.study.threshold,
        )
        for where, some in by_place(wanted, rows)
    )


def _chosen_of(wanted: Wanted, where: Coordinates, candidates: Sequence[Candidate], ledger: Ledger) -> Choosing:
    """Return the candidates of one place, with costs of the same moments: a quiet cost is below all noisy ones."""
    if len({one.cost.moments for one in candidates if one.cost}) > 1:
        candidates = [replace(one, cost=ledger.all_samples(one.row)) if one.row else one for one in candidates]
    made = chosen(wanted, where, candidates)
    number = len(made.priced)
    # The same data select the cheapest, so its interval must hold for whichever candidate is selected.
    of_cheapest = [replace(one, cost=jointly(one.cost, number)) for one in made.priced[:1] if one.cost]
    return replace(
        made,
        priced=(*of_cheapest, *made.priced[1:]),
        compare=partial(_compare, ledger, number * (number - 1) // 2),
        alone=ledger.compare,
    )


def _compare(ledger: Ledger, among: int, row: Row, against: Row) -> Toll:
    """Return a comparison, its verdict adjusted for all pairs: any of them may be one with the cheapest."""
    toll = ledger.compare(row, against)
    return replace(toll, verdict=one_of(among, toll, ledger.terms).verdict)


def chosen(wanted: Wanted, where: Coordinates, candidates: Sequence[Candidate]) -> Choosing:
    """Return the candidates of one place in their groups."""
    cheapest_first = sorted(candidates, key=_cost)
    of = {ruling: tuple(one for one in cheapest_first if one.ruling is ruling) for ruling in Ruling}
    qualifies = of[Ruling.MEETS]
    fewest = min((lacks(one) for one in candidates), default=None)
    return Choosing(
        wanted,
        where,
        priced=tuple(one for one in qualifies if one.cost is not None),
        unpriced=tuple(one for one in qualifies if one.cost is None),
        refused=of[Ruling.BREAKS],
        unsaid=of[Ruling.CANNOT_SAY],
        contradictions=policies.contradictions(wanted.policies, wanted.family, wanted.on),
        dropping=tuple(one for one in cheapest_first if drops(wanted, one)),
        nearest=() if qualifies else tuple(one for one in cheapest_first if lacks(one) == fewest),
    )


def ranked(candidates: Sequence[Candidate], compare: Compare) -> tuple[Rank, ...]:
    """Return the places of candidates in order of cost.

    All are compared with the cheapest; those that cost more, with the first of the place before them. Two separate
    costs may contradict the paired comparison from blocks with both; then the pair is right. Where no block has both,
    the separate costs decide.
    """

    def verdict(one: Candidate, other: Candidate) -> Verdict:
        found = compare(one.row, other.row).verdict if one.row and other.row else Verdict.NOT_MEASURED
        return Verdict.COSTS if found is Verdict.NOT_MEASURED else found

    if not candidates:
        return ()
    cheapest, tried = candidates[0], {id(candidates[0])}
    beside = {id(one): verdict(one, cheapest) for one in candidates[1:]}
    # Verdicts may be circular, each of three saving over the next, so each candidate is cheapest at most once.
    while lower := [one for one in candidates if beside.get(id(one)) is Verdict.SAVES and id(one) not in tried]:
        cheapest = lower[0]
        tried.add(id(cheapest))
        beside = {id(one): verdict(one, cheapest) for one in candidates if one is not cheapest}
    others = [one for one in candidates if one is not cheapest]
    places = [[cheapest, *(one for one in others if beside[id(one)] is not Verdict.COSTS)]]
    for one in others:
        if beside[id(one)] is not Verdict.COSTS:
            continue
        at, found = len(places), Verdict.SAVES
        while at > 1 and (found := verdict(one, places[at - 1][0])) is Verdict.SAVES:
            at -= 1
        if found in (Verdict.COSTS, Verdict.SAVES):
            places.insert(at, [one])
        else:
            places[at - 1].append(one)
    return tuple(
        Rank(1 + sum(len(before) for before in places[:number]), tuple(place)) for number, place in enumerate(places)
    )


def drops(wanted: Wanted, one: Candidate) -> bool:
    """Return true if the candidate qualifies today and not on the day in question."""
    if wanted.on <= wanted.today or one.ruling is Ruling.MEETS:
        return False
    return candidate(replace(wanted, on=wanted.today), one.coordinates).ruling is Ruling.MEETS


def _cost(one: Candidate) -> tuple[bool, float]:
    return (one.cost is None, one.cost.estimate if one.cost else 0.0)
