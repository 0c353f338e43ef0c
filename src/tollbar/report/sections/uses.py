"""Choices for each use: their costs compared with unprotected work, by operation and by threat.

Costs are ratios to the same work without any protection, as judged; without a judgement they are the costs themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from tollbar.analysis import Compared, StudyJudgement, Toll, Verdict
from tollbar.catalog.families import Choice, Degree, Mitigation, Standing
from tollbar.core.words import enumeration, few, more, quoted
from tollbar.report.blocks import DASH, Items, Listing, Paragraph, Table, TableCell, numbers, texts
from tollbar.report.groups import cost_metric
from tollbar.report.names import labels, varied
from tollbar.report.numbers import VERDICT_MARKS, amount, percent, signed_range, times_range
from tollbar.report.sections.protection import differing, protecting
from tollbar.report.standings import standing_words
from tollbar.report.view import once
from tollbar.report.ways import Place, Way, options, pairs_of, places, told_by
from tollbar.results import Row

USES = "Which choice for what"
# More names than this in one sentence hide the answer: then the first few and the last represent the rest.
MOST_NAMES = 4
MOST_CANDIDATES = 3
# A way has a cell in each place. A stranger's run may have hundreds in one, and all of them are compared in pairs.
MOST_PAIRS = 1000
# Each is compared with each.
MOST_WAYS = 60
NOT_COMPARED = "not all were compared"


@dataclass(frozen=True, slots=True)
class WayCost:
    """Cost of one way in one place."""

    place: Place
    way: Way
    pair: Toll | None
    """Toll against the same work without protection; None if that was not judged."""
    pairs: Compared
    """Comparisons of any two cells."""

    @property
    def ratio(self) -> float | None:
        """Ratio to the cost without protection."""
        return self.pair.ratio.estimate if self.pair and self.pair.ratio else None

    @property
    def value(self) -> float:
        """Ratio; the cost itself if there is none."""
        return self.way.cost if self.ratio is None else self.ratio

    def is_surely_less(self, than: WayCost) -> bool:
        """Return whether it is judged to cost less; if never compared, whether the ratios' intervals are disjoint.

        Disjoint intervals may be nearer to each other than the study's threshold.
        """
        toll = self.pairs.of(self.way.row, than.way.row)
        if toll is not None:
            return toll.verdict is Verdict.SAVES
        if self.pair and self.pair.ratio and than.pair and than.pair.ratio:
            return self.pair.ratio.high < than.pair.ratio.low
        return False


@dataclass(frozen=True, slots=True)
class Offer:
    """Costs of one way in all places of one operation where it is available."""

    name: str
    operation: str
    costs: tuple[WayCost, ...]

    @property
    def row(self) -> Row:
        """Row of the first of its cells."""
        return self.costs[0].way.row

    @property
    def is_good(self) -> bool:
        """True if it is recommended or acceptable."""
        return self.costs[0].way.is_good


@dataclass(frozen=True)
class Candidate:
    """Whole way, for a table or a site that needs all operations: its cost in each, and its mitigation."""

    offers: tuple[Offer, ...]
    degree: Degree
    """Degree to which it mitigates the threats it is listed for, the least of all its cells."""

    @property
    def name(self) -> str:
        """Name of the way."""
        return self.offers[0].name

    @cached_property
    def costs(self) -> Mapping[str, WayCost]:
        """Median cost by operation."""
        return {offer.operation: _middle(offer) for offer in self.offers}

    def is_beaten_by(self, other: Candidate) -> bool:
        """Return whether another costs no more in every place where this one was measured, and surely less in one.

        The two are compared in one place at a time: on one server and library, by one operation. With more pairs of
        their cells than `MOST_PAIRS`, neither is said to beat the other.
        """
        mine, theirs = self._by_place, other._by_place
        if not mine.keys() <= theirs.keys():
            return False
        if sum(len(costs) * len(theirs[place]) for place, costs in mine.items()) > MOST_PAIRS:
            return False
        both = [(own, rival) for place, costs in mine.items() for own in costs for rival in theirs[place]]
        no_more = all(rival.value <= own.value for own, rival in both)
        return no_more and any(rival.is_surely_less(own) for own, rival in both)

    @cached_property
    def _by_place(self) -> Mapping[object, list[WayCost]]:
        found: dict[object, list[WayCost]] = {}
        for offer in self.offers:
            for cost in offer.costs:
                at = frozenset((name, value) for name, value in cost.place.at.items() if name != "op")
                found.setdefault((offer.operation, at), []).append(cost)
        return found


@dataclass(frozen=True, slots=True)
class Against:
    """Candidates against some threats."""

    threats: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    """Recommended or acceptable ways that mitigate the threats, and that no other beats.

    Wholly mitigating ways, or else partly mitigating ones; the way whose most expensive operation is cheapest comes
    first.
    """


class Uses:
    """Ways of a study by operation and by threat; empty if all its cells mitigate every threat equally."""

    def __init__(self, study: StudyJudgement) -> None:
        self.study = study
        self.threats = differing(study)
        chosen = told_by(study, options(study))
        decide = protecting(study) if self.threats else []
        names = [n for n in varied(study) if n in chosen or n in decide]
        self._label = labels(study, names, whole=True)

    @cached_property
    def costs(self) -> tuple[WayCost, ...]:
        """Costs of every way in every place, recommended and acceptable ways first."""
        pairs = pairs_of(self.study)
        judged = {t.row.key: t for t in self.study.tolls if t.metric == cost_metric(self.study)}

        def pair_of(place: Place, way: Way) -> Toll | None:
            toll = judged.get(way.row.key)
            if toll and toll.ratio and toll.against.standing is Standing.NULL:
                return toll
            return pairs.of(way.row, place.null.row) if place.null else None

        found = [
            WayCost(place, way, pair_of(place, way), pairs)
            for place in (places(self.study) if self.threats else ())
            if not place.is_of_one_choice
            for way in (*place.good, *place.others)
        ]
        # In one operation all are ratios or none is, because a cost cannot be compared with a ratio.
        bare = {_operation(cost) for cost in found if cost.ratio is None}
        return tuple(replace(cost, pair=None) if _operation(cost) in bare else cost for cost in found)

    @cached_property
    def operations(self) -> tuple[str, ...]:
        """Operations in the study's order."""
        return tuple(dict.fromkeys(_operation(cost) for cost in self.costs))

    @cached_property
    def offers(self) -> tuple[Offer, ...]:
        """Offers of every way by operation, whatever its standing; the least median cost first."""
        found: dict[tuple[str, str], list[WayCost]] = {}
        for cost in self.costs:
            found.setdefault((_operation(cost), self._label(cost.way.row)), []).append(cost)
        offers = [Offer(name, op, tuple(costs)) for (op, name), costs in found.items()]
        return tuple(sorted(offers, key=lambda offer: (self.operations.index(offer.operation), _middle(offer).value)))

    @cached_property
    def against(self) -> tuple[Against, ...]:
        """Candidates against each threat about which cells differ; threats with the same candidates together."""
        found: dict[object, tuple[list[str], tuple[Candidate, ...]]] = {}
        for threat in self.threats:
            candidates = self._against(threat)
            told = tuple((one.name, one.degree) for one in candidates)
            found.setdefault(told, ([], candidates))[0].append(threat)
        return tuple(Against(tuple(threats), candidates) for threats, candidates in found.values())

    @cached_property
    def ways(self) -> Mapping[str, tuple[Offer, ...]]:
        """Offers of each way, by its name."""
        found: dict[str, list[Offer]] = {}
        for offer in self.offers:
            found.setdefault(offer.name, []).append(offer)
        return {name: tuple(offers) for name, offers in found.items()}

    def mitigation(self, way: Sequence[Offer], threat: str) -> Mitigation:
        """Return a way's mitigation of a threat: the least of its cells'."""
        done = [self._mitigations[cost.way.row.key][threat] for offer in way for cost in offer.costs]
        return min(done, key=lambda one: list(Degree).index(one.degree))

    @cached_property
    def _mitigations(self) -> Mapping[str, Mapping[str, Mitigation]]:
        """Mitigation of each threat by each cell, by the cell's key."""
        rows = {cost.way.row.key: cost.way.row for offer in self.offers for cost in offer.costs}
        mitigations_of = self.study.about.family.mitigations_of
        return {key: mitigations_of(row.coordinates) for key, row in rows.items()}

    def _against(self, threat: str) -> tuple[Candidate, ...]:
        good = [way for way in self.ways.values() if all(offer.is_good for offer in way)]
        done = [Candidate(way, self.mitigation(way, threat).degree) for way in good]
        for degree in (Degree.YES, Degree.PARTLY):
            # Only a way of less cost beats another, so that the cheapest decide.
            alike = sorted((one for one in done if one.degree is degree), key=_most_of)[:MOST_WAYS]
            if alike:
                return tuple(one for one in alike if not any(one.is_beaten_by(other) for other in alike))
        return ()


def _most_of(one: Candidate) -> float:
    return max(cost.value for cost in one.costs.values())


@once
def uses_of(study: StudyJudgement) -> Uses:
    """Return the study's uses, made once."""
    return Uses(study)


def use_sentences(uses: Uses) -> list[str]:
    """Return a sentence for each operation, then one for each threat."""
    return [*_by_operation(uses), *(_by_threat(uses, against) for against in uses.against)]


def losses(uses: Uses) -> list[str]:
    """Return the family's note on each choice that the sentences on threats name."""
    named = (one for against in uses.against for one in against.candidates[:MOST_CANDIDATES])
    found = dict.fromkeys(one.offers[0].row.choice for one in named)
    choices = (uses.study.about.family.choices[name] for name in found)
    return [f"{choice.title}: {choice.note}" for choice in choices if choice.note]


def uses_table(uses: Uses) -> Table:
    """Return every way: its costs by operation, its sizes, and its note."""
    study = uses.study
    by_way = {name: {offer.operation: offer for offer in offers} for name, offers in uses.ways.items()}
    sizes = [m for m in study.about.family.metrics.values() if m.unit == "B"]
    known = {(m.row.key, m.metric): m.value for m in study.measurements if m.component is None}
    rows = []
    for name, offers in by_way.items():
        first = next(iter(offers.values())).row
        keys = [cost.way.row.key for offer in offers.values() for cost in offer.costs]
        written = [_cell(offers[op]) if op in offers else DASH for op in uses.operations]
        seen = [[known[key, m.name] for key in keys if (key, m.name) in known] for m in sizes]
        standing = TableCell(standing_words(first.standing), standing=first.standing)
        rows.append(
            (TableCell(name), *written, *map(_size, seen), standing, TableCell(_choice(study, first).note or "–"))
        )
    columns = (
        *texts("choice"),
        *numbers(*uses.operations, *(m.title for m in sizes)),
        *texts("standing", "threats that it mitigates, and notes"),
    )
    ratios = any(cost.ratio is not None for cost in uses.costs)
    what = "Cost as a multiple of the cost without protection" if ratios else "Cost"
    return Table(f"{what}, lowest to highest over all places of an operation", columns, rows)


def _by_operation(uses: Uses) -> Iterable[str]:
    for operation in uses.operations:
        good = [o for o in uses.offers if o.operation == operation and o.is_good]
        named = [f"{quoted(o.name)} {_apart(o)}{_cost_words(o.costs)}{_doubt(o.costs)}" for o in good]
        if len(named) > MOST_NAMES:
            named = [*named[: MOST_NAMES - 1], f"{more(len(named) - MOST_NAMES + 1)} up to {named[-1]}"]
        if named:
            open_ = dict.fromkeys(why for one, other in pairwise(good) for why in why_open(uses.study, one, other))
            order = f"by measured cost ({'; '.join(open_)})" if open_ else "from the cheapest"
            yield f"For {operation}{f', {order}' if len(good) > 1 else ''}: {'; '.join(named)}."


def why_open(study: StudyJudgement, one: Offer, other: Offer) -> list[str]:
    """Return why it is open whether one costs less than the other; empty if it is known wherever both were measured."""
    both = [(a, b) for a in one.costs for b in other.costs if a.place.at == b.place.at]
    if not both:
        return [NOT_COMPARED]
    open_ = [(a, b) for a, b in both if not a.is_surely_less(b)]
    verdicts = {toll.verdict if (toll := a.pairs.of(a.way.row, b.way.row)) else None for a, b in open_}
    why = {
        Verdict.FREE: f"some cost the same within {percent(study.about.threshold)}",
        Verdict.UNCLEAR: "this run cannot distinguish some",
        Verdict.COSTS: "their order differs from place to place",
        None: NOT_COMPARED,
    }
    return [words for verdict, words in why.items() if verdict in verdicts]


def _by_threat(uses: Uses, against: Against) -> str:
    name = enumeration([threat.replace("-", " ") for threat in against.threats])
    if not against.candidates:
        return f"Against {name}: no approved choice was measured."
    said = few((_candidate_words(uses, one) for one in against.candidates), MOST_CANDIDATES)
    in_part = ", in part only" if against.candidates[0].degree is Degree.PARTLY else ""
    return f"Against {name}{in_part}: {'; or '.join(said)}."


def _candidate_words(uses: Uses, one: Candidate) -> str:
    of = {offer.operation: f"{_apart(offer)}{_cost_words(offer.costs)}" for offer in one.offers}
    costs = [f"{operation} {cost}" if len(uses.operations) > 1 else cost for operation, cost in of.items()]
    lacking = [operation for operation in uses.operations if operation not in of]
    gone = f"; {enumeration(lacking)} not measured" if lacking else ""
    return f"{quoted(one.name)} ({', '.join(costs)}{gone})"


def _cost_words(costs: Sequence[WayCost]) -> str:
    """Return `× 1.26` or `× 1.15 to × 1.26`; the costs themselves if one of them was not judged."""
    ratios = [cost.ratio for cost in costs if cost.ratio is not None]
    if len(ratios) == len(costs):
        return times_range(min(ratios), max(ratios))
    least, most = (amount(of(cost.way.cost for cost in costs)) for of in _ENDS)
    return least if least == most else f"{least} to {most}"


def _apart(offer: Offer) -> str:
    """Return the difference of connections, `+61 µs, `: over loopback their ratios are too high (METHOD.md)."""
    pairs = [cost.pair for cost in offer.costs if offer.operation == "connect" and cost.pair and cost.way.row.server]
    known = [pair.difference for pair in pairs if pair.difference is not None]
    return f"{signed_range(known)}, " if known and len(known) == len(offer.costs) else ""


def _doubt(costs: Sequence[WayCost]) -> str:
    """Return the verdicts' reservation that a ratio alone does not show."""
    verdicts = {cost.pair.verdict for cost in costs if cost.pair}
    if Verdict.UNCLEAR in verdicts:
        return " (undecided)" if len(verdicts) == 1 else " (undecided in part)"
    return " (no meaningful difference)" if verdicts == {Verdict.FREE} else ""


_ENDS: tuple[Callable[[Iterable[float]], float], ...] = (min, max)


def _cell(offer: Offer) -> TableCell:
    verdicts = {cost.pair.verdict for cost in offer.costs if cost.pair}
    mark = VERDICT_MARKS[verdicts.pop()] if len(verdicts) == 1 else None
    return TableCell(
        _cost_words(offer.costs), _middle(offer).value, _doubt(offer.costs).strip(" ()") or None, mark=mark
    )


def _size(seen: Sequence[float]) -> TableCell:
    if not seen:
        return DASH
    least, most = (amount(of(seen), "B") for of in _ENDS)
    return TableCell(least if least == most else f"{least} to {most}", max(seen))


def _middle(offer: Offer) -> WayCost:
    """Return the median of its costs."""
    return sorted(offer.costs, key=lambda cost: cost.value)[(len(offer.costs) - 1) // 2]


def _operation(cost: WayCost) -> str:
    return str(cost.way.row.coordinates.get("op", ""))


def _choice(study: StudyJudgement, row: Row) -> Choice:
    return study.about.family.choices[row.choice]


def uses_listing(study: StudyJudgement) -> Listing | None:
    """Return the choices for each use; None if all cells mitigate every threat equally."""
    uses = uses_of(study)
    said = use_sentences(uses)
    if not said:
        return None
    note = (
        "Ratios are to the cost without protection. Each threat lists the approved choices that no other is known to"
        " undercut. The order of two choices is chance if they cost the same or if this run cannot distinguish them."
    )
    whole = (Paragraph(note, "note"), Items(said), uses_table(uses))
    return Listing(USES, said, notes=losses(uses), whole=whole)
