"""Candidates that meet policies and mitigate threats, from the cheapest, and the violations of the others.

Policies and threats alone decide which candidates qualify; judged costs decide the order. Candidates that the run
cannot distinguish from the cheapest share its place. Without a run there is no order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, partial
from typing import Literal

from tollbar.analysis.decisions import Terms, jointly
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.tolls import one_of
from tollbar.analysis.verdicts import Toll, Verdict
from tollbar.catalog import families, policies
from tollbar.catalog.families import Degree, Family, Standing, Value, is_answer, is_default
from tollbar.catalog.policies import Contradiction, Except, Judged, Policy, Rule, RuleFinding, Ruling
from tollbar.core.moments import Quickness
from tollbar.core.stats import Interval
from tollbar.results import Row, StudyRun
from tollbar.study import matches

Coordinates = Mapping[str, Value]
Compare = Callable[[Row, Row], Toll]
"""Judgement of one row's cost relative to another's."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Requirements on a choice."""

    family: Family
    policies: tuple[Policy, ...]
    threats: Mapping[str, Degree]
    """Smallest degree of mitigation of each threat."""
    on: date
    today: date
    standing: Standing | None = None
    """Lowest accepted standing, whatever the policies require; None: any."""
    by_governed: bool = False
    """True if a provider that is not given counts as one that the policies govern."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason why a candidate does not qualify, or why its ruling is open."""

    what: str
    """Violation of the rule, or the missing fact."""
    policy: str | None = None
    rule: Rule | None = None
    """Rule of the policy; None: the reason is a threat, or no rule covers such cells."""
    ended: Except | None = None
    """The exception that it had until that ended."""
    excepted: Except | None = None
    """The exception by which the rule need not be met."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Cell with its rulings and its cost."""

    coordinates: Coordinates
    judged: tuple[Judged, ...]
    """By each policy."""
    broken: tuple[Reason, ...]
    missing: tuple[Reason, ...]
    advice: tuple[Reason, ...]
    """Advice of a policy that it does not follow, and meets it all the same."""
    excepted: tuple[Reason, ...]
    """Rules that it does not meet and need not, by an exception that holds."""
    conditions: Mapping[str, str]
    """Conditions of the threats that the cell mitigates in part, where that is enough."""
    row: Row | None = None
    cost: Interval | None = None
    """Nanoseconds per operation; None where it was not measured. Quiet, if all of its place are; noisy
    else, as all of them."""
    unmeasured: str | None = None
    """Reason why the cell was not measured."""

    @property
    def ruling(self) -> Ruling:
        """Return whether the candidate meets, breaks, or cannot be judged by what is wanted."""
        if self.broken:
            return Ruling.BREAKS
        return Ruling.CANNOT_SAY if self.missing else Ruling.MEETS


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

    def _default_first(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        family = self.wanted.family
        differ = {name for one in candidates for name in one.coordinates if name == "choice" or name in family.settings}
        return tuple(sorted(candidates, key=lambda one: not is_default(family, one.coordinates, differ)))

    @property
    def qualifies(self) -> tuple[Candidate, ...]:
        return (*self.priced, *self.unpriced)

    def beside_cheapest(self, one: Candidate) -> Toll | None:
        """Return the candidate's toll over the cheapest qualifying candidate; None where either has no cost."""
        first = self._ranked[0].candidates[0] if self._ranked else None
        if first is None or first.row is None or one.row is None or one.cost is None or one.row is first.row:
            return None
        return (self.compare if one.ruling is Ruling.MEETS else self.alone)(one.row, first.row)


def wanted(
    family: str,
    policy_names: Iterable[str] = (),
    threats: Iterable[str] = (),
    on: str | None = None,
    *,
    today: date | None = None,
    standing: Standing | None = None,
) -> Wanted:
    """Return the requirements from words: `THREAT`, or `THREAT=partly` if a condition is enough, and a day.

    A day is written `2032-01-01`. A policy without an edition is the newest.

    Raises TollbarError with the nearest family, policy, threat or day.
    """
    known = families.family(family)
    now = today or date.today()
    found = tuple(policies.policy(name) for name in dict.fromkeys(map(policies.with_edition, policy_names)))
    mitigated = dict(policies.threat_wanted(known, word) for word in threats)
    return Wanted(known, found, mitigated, now if on is None else policies.day(on), now, standing)


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
        )
        for where, some in _by_place(wanted, rows)
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


def choose_unpriced(wanted: Wanted, cells: Iterable[Coordinates]) -> Choosing:
    """Return the standings of cells, without a run."""
    return chosen(wanted, {}, [candidate(wanted, cell) for cell in cells])


def candidate(
    wanted: Wanted, coordinates: Coordinates, row: Row | None = None, ledger: Ledger | None = None
) -> Candidate:
    """Return the rulings of policies and threats on a cell on the day in question."""
    return _candidate(wanted, coordinates, wanted.on, row, ledger)


def _candidate(wanted: Wanted, coordinates: Coordinates, on: date, row: Row | None, ledger: Ledger | None) -> Candidate:
    judged = tuple(
        policies.judged(policy, wanted.family, coordinates, on, by_governed=wanted.by_governed)
        for policy in wanted.policies
    )
    broken = [_reason(one) for said in judged for one in said.broken]
    missing = [_reason(one) for said in judged for one in said.unknown]
    missing += [Reason(said.missing, said.policy.name) for said in judged if said.missing]
    standing = wanted.family.standing_of(coordinates)
    if wanted.standing and policies.is_worse(standing, wanted.standing):
        broken.append(Reason(f"{standing.words}, below {wanted.standing.words}"))
    conditions: dict[str, str] = {}
    for threat, degree in wanted.threats.items():
        ruling, why = policies.does(wanted.family, coordinates, threat, degree)
        if ruling is not Ruling.MEETS:
            (broken if ruling is Ruling.BREAKS else missing).append(Reason(why))
        elif condition := wanted.family.mitigations_of(coordinates)[threat].condition:
            conditions[threat] = condition
    return Candidate(
        coordinates,
        judged,
        tuple(broken),
        tuple(missing),
        advice=tuple(_reason(one) for said in judged for one in said.advice),
        excepted=tuple(_reason(one) for said in judged for one in said.findings if one.excepted),
        conditions=conditions,
        row=row,
        cost=ledger.best_cost(row) if ledger and row else None,
        unmeasured=ledger.why_unmeasured(row) if ledger and row else None,
    )


def _reason(of: RuleFinding) -> Reason:
    return Reason(of.why, of.policy, of.rule, of.ended, of.excepted)


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
        dropping=tuple(one for one in cheapest_first if _drops(wanted, one)),
        nearest=() if qualifies else tuple(one for one in cheapest_first if lacks(one) == fewest),
    )


def ruled_on(wanted: Wanted) -> set[str]:
    """Return the coordinates named by the policies' rules for the family."""
    return {
        name
        for policy in wanted.policies
        for part in policy.all_of_it
        for rule in part.rules
        for name in (*rule.where, *rule.only, *rule.never)
        if wanted.family.name in rule.families
    }


def turned_on(wanted: Wanted) -> set[str]:
    """Return the coordinates that the policies' rules name or a threat depends on."""
    found = ruled_on(wanted)
    for threat in wanted.threats:
        said = [one for choice in wanted.family.choices.values() for one in choice.mitigates.get(threat, ())]
        for setting in wanted.family.settings.values():
            of_values = [one for value in setting.about.values() for one in value.mitigates.get(threat, ())]
            found |= {setting.name} if of_values else set()
            said += of_values
        found |= {name for one in said for name in one.when}
    return found


def _by_place(wanted: Wanted, rows: Sequence[Row]) -> list[tuple[Coordinates, list[Row]]]:
    """Return the rows by place: one operation, server, load, and value of each setting that decides nothing.

    A row without such a setting, such as padding for a signature by a curve, is in the place of each value. Rows whose
    work is done elsewhere, such as the hash of a signed message, are not compared with rows that do it.
    """
    settings = wanted.family.settings
    of_standing = {name for name, setting in settings.items() if setting.about and not setting.how}
    deciding = {"choice", *wanted.family.parameters, *of_standing, *turned_on(wanted)} - {"op", "server"}
    names = [name for name in dict.fromkeys(name for row in rows for name in row.coordinates) if name not in deciding]
    apart: dict[tuple[tuple[str, Value], ...], list[Row]] = {(): []}
    for row in rows:
        at = row.coordinates
        apart.setdefault(tuple((n, at[n]) for n in settings if wanted.family.done_elsewhere(n, at)), []).append(row)
    places = [some for some in apart.values() if some]
    # Rows without a server or a load are another place; the provider comes last because it is judged within one place.
    for name in sorted(names, key=lambda one: (one in settings, one == "provider")):
        places = [part for place in places for part in _parts(place, name, is_setting=name in settings)]
    # Shared coordinates belong to the place, whether they decide something or not.
    names = [*dict.fromkeys((*names, "provider", *(name for elsewhere in apart for name, _ in elsewhere)))]
    differ = [name for name in names if len({row.coordinates[name] for row in rows if name in row.coordinates}) > 1]
    return [(_common(place, names, differ), place) for place in places if place]


def _parts(rows: list[Row], name: str, *, is_setting: bool) -> Iterator[list[Row]]:
    """Yield the rows by their values of one coordinate; rows without a setting are in every part."""
    values = dict.fromkeys(row.coordinates.get(name) for row in rows if not is_setting or name in row.coordinates)
    if len(values) < 2 or (name == "provider" and _is_each_by_one(rows)):
        yield rows
        return
    for value in values:
        yield [row for row in rows if row.coordinates.get(name, value if is_setting else None) == value]


def _is_each_by_one(rows: Iterable[Row]) -> bool:
    """Return true if each choice has only one provider: a second provider is then no second place."""
    return len({(row.choice, row.coordinates["provider"]) for row in rows}) == len({row.choice for row in rows})


def _common(rows: Sequence[Row], names: Iterable[str], differ: Collection[str]) -> Coordinates:
    """Return the coordinates that these rows share and that distinguish their place from others."""
    found: dict[str, Value] = {}
    for name in names:
        values = [row.coordinates[name] for row in rows if name in row.coordinates]
        if len(set(values)) == 1 and (name in differ or len(values) == len(rows)):
            found[name] = values[0]
    return found


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


def _drops(wanted: Wanted, one: Candidate) -> bool:
    """Return true if the candidate qualifies today and not on the day in question."""
    if wanted.on <= wanted.today or one.ruling is Ruling.MEETS:
        return False
    return _candidate(wanted, one.coordinates, wanted.today, None, None).ruling is Ruling.MEETS


def lacks(one: Candidate) -> tuple[int, int]:
    """Return the number of broken rules, and of rules whose ruling is open."""
    return len(one.broken), len(one.missing)


def _cost(one: Candidate) -> tuple[bool, float]:
    return (one.cost is None, one.cost.estimate if one.cost else 0.0)
