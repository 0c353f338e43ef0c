"""What each choice does about each threat, who says what it is worth, and which choice is usable for what.

Costs are ratios to the same work without any protection, as they were judged; where nothing was judged, the costs
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from tollbar.families import Authority, Choice, Degree, Mitigation, Part, Standing
from tollbar.judge import Compared, StudyJudgement, Toll, Verdict
from tollbar.present.blocks import (
    DASH,
    Boxed,
    Folded,
    Items,
    Key,
    Legend,
    Listing,
    Paragraph,
    Section,
    Table,
    TableCell,
    figures,
    numbers,
    standing_keys,
    texts,
)
from tollbar.present.chart import strength_charts
from tollbar.present.groups import AtOneLoad, Place, Spot, Way, by_row, cost_metric, options, places, spot, told_by
from tollbar.present.names import (
    LOADS,
    VERDICT_MARKS,
    capitalised,
    enumeration,
    labels,
    quoted,
    standing_words,
    varying,
)
from tollbar.present.numbers import amount, times_range
from tollbar.results import Row

MARKS = {Degree.YES: "●", Degree.PARTLY: "◐", Degree.NO: "○"}
# Where something is measured says nothing of what it protects.
_NOT_PROTECTING = ("provider", "bed", "op", *LOADS)
Answers = Mapping[str, Mitigation]


def threats_table(study: StudyJudgement) -> Table:
    """Cells by the threats in which they differ; without rows where they differ in none."""
    threats, groups = study.about.family.threats, alike(study)
    differ = differing(study)
    columns = texts("cells", *(f"{t.replace('-', ' ')}: {threats[t].title}" for t in differ))
    rows = [[_cells_of(names), *(_answer(answers[t]) for t in differ)] for answers, names in groups] if differ else []
    return Table("What each cell does about each threat", columns, rows)


def unprotected(study: StudyJudgement) -> str:
    """One sentence on the null choice, where the study has it."""
    null = [r.title for r in study.rows if r.standing is Standing.NULL]
    return f"{capitalised(quoted(null[0]))} protects against none of it." if null else ""


def differing(study: StudyJudgement) -> list[str]:
    """The threats about which the cells that protect something do not all do the same."""
    groups = alike(study)
    return [t for t in study.about.family.threats if len({answers[t] for answers, _ in groups}) > 1]


def alike(study: StudyJudgement) -> list[tuple[Answers, list[str]]]:
    """The cells that protect something, together where they protect against the same; by their names."""
    family = study.about.family
    if not family.threats:
        return []
    rows = _that_protect(study)
    label = labels(study, protecting(study), whole=True)
    groups: list[tuple[Answers, list[str]]] = []
    for row in rows:
        answers = family.mitigations_of(row.coordinates)
        inside = next((found for known, found in groups if known == answers), None)
        if inside is None:
            inside = []
            groups.append((answers, inside))
        named = label(row)
        if named not in inside:
            inside.append(named)
    return groups


def protecting(study: StudyJudgement) -> list[str]:
    """The coordinates that decide what a cell does about some threat; all that may, where these do not suffice."""
    family, rows = study.about.family, _that_protect(study)
    sizes = [name for name, setting in family.settings.items() if setting.is_size or setting.is_share]
    names = [n for n in varying(rows) if n not in (*_NOT_PROTECTING, *sizes)] or ["choice"]
    decide = [n for n in names if n == "choice" or _is_divided(study, rows, [m for m in varying(rows) if m != n])]
    return names if _is_divided(study, rows, decide) else decide


def _is_divided(study: StudyJudgement, rows: Sequence[Row], names: Sequence[str]) -> bool:
    """Whether some rows that are alike along these coordinates do different things about a threat."""
    found: dict[Spot, Answers] = {}
    mitigations_of = study.about.family.mitigations_of
    return any(found.setdefault(spot(row, names), done := mitigations_of(row.coordinates)) != done for row in rows)


def _that_protect(study: StudyJudgement) -> list[Row]:
    choices = study.about.family.choices
    return [r for r in study.rows if r.standing is not Standing.NULL and r.choice in choices]


def _cells_of(names: Sequence[str]) -> TableCell:
    if len(names) == 1:
        return TableCell(names[0])
    return TableCell(f"{len(names)} cells", small="; ".join(names))


def _answer(mitigation: Mitigation) -> TableCell:
    return TableCell(str(mitigation.degree), mark=MARKS[mitigation.degree], small=mitigation.condition)


def alike_everywhere(study: StudyJudgement) -> list[str]:
    """A line for each degree, of the threats about which all cells do the same."""
    threats, differ = study.about.family.threats, differing(study)
    answers = alike(study)[0][0]
    lines = []
    for degree, says in (
        (Degree.YES, "All of these protect against"),
        (Degree.PARTLY, "All of these protect in part against"),
        (Degree.NO, "None of these protects against"),
    ):
        same = [
            f"“{threats[t].title}”" + (f" ({answers[t].condition})" if answers[t].condition else "")
            for t in threats
            if t not in differ and answers[t].degree is degree
        ]
        if same:
            lines.append(f"{says} {enumeration(same)}.")
    return lines


USES = "Which choice for what"
# More names than this in one sentence hide the answer: then the first few and the last speak for the rest.
MOST_NAMES = 4
MOST_CANDIDATES = 3


@dataclass(frozen=True, slots=True)
class WayCost:
    """What one way costs in one place."""

    place: Place
    way: Way
    pair: Toll | None
    """Against the same without protection; None where that was not judged."""
    pairs: Compared
    """What the judge makes of any two."""

    @property
    def ratio(self) -> float | None:
        """To the cost without protection."""
        return self.pair.ratio.estimate if self.pair and self.pair.ratio else None

    @property
    def value(self) -> float:
        """The ratio; the cost itself where there is none."""
        return self.way.cost if self.ratio is None else self.ratio

    def is_surely_less(self, than: WayCost) -> bool:
        """Whether the judge calls it so; where two were never compared, whether their ratios' intervals lie apart.

        Intervals that lie apart may be nearer than what the study ignores.
        """
        toll = self.pairs.of(self.way.row, than.way.row)
        if toll is not None:
            return toll.verdict is Verdict.SAVES
        if self.pair and self.pair.ratio and than.pair and than.pair.ratio:
            return self.pair.ratio.high < than.pair.ratio.low
        return False


@dataclass(frozen=True, slots=True)
class Offer:
    """What one way costs in all places of one operation where it is to be had, and of which it is said."""

    name: str
    operation: str
    costs: tuple[WayCost, ...]

    @property
    def row(self) -> Row:
        """The first of its cells."""
        return self.costs[0].way.row

    @property
    def is_good(self) -> bool:
        """Whether it is recommended or acceptable."""
        return self.costs[0].way.is_good


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way as a whole, for a table or a site that needs all operations: what it costs in each, and what it does."""

    offers: tuple[Offer, ...]
    degree: Degree
    """How far it mitigates the threats it stands against, in whichever of its cells it does so least."""

    @property
    def name(self) -> str:
        """That of the way."""
        return self.offers[0].name

    @property
    def costs(self) -> Mapping[str, WayCost]:
        """The middle one, by operation."""
        return {offer.operation: _middle(offer) for offer in self.offers}

    def is_beaten_by(self, other: Candidate) -> bool:
        """Whether another costs no more wherever this one was measured, and somewhere less for sure.

        They are held against each other in one place at a time: on one server and library, by one operation.
        """
        mine, theirs = self._by_place, other._by_place
        if not mine.keys() <= theirs.keys():
            return False
        both = [(own, rival) for place, costs in mine.items() for own in costs for rival in theirs[place]]
        no_more = all(rival.value <= own.value for own, rival in both)
        return no_more and any(rival.is_surely_less(own) for own, rival in both)

    @property
    def _by_place(self) -> Mapping[object, list[WayCost]]:
        found: dict[object, list[WayCost]] = {}
        for offer in self.offers:
            for cost in offer.costs:
                at = frozenset((name, value) for name, value in cost.place.at.items() if name != "op")
                found.setdefault((offer.operation, at), []).append(cost)
        return found


@dataclass(frozen=True, slots=True)
class Against:
    """What there is against some threats."""

    threats: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    """Of those in good standing that mitigate them, wholly or else in part, the ones that no other beats: first the
    one whose dearest operation is the cheapest."""


class Uses:
    """A study's ways by operation and by threat; nothing where all its cells do the same about every threat."""

    def __init__(self, study: StudyJudgement) -> None:
        self.study = study
        self.threats = differing(study)
        chosen = told_by(study, options(study))
        decide = protecting(study) if self.threats else []
        names = [n for n in varying(study.rows) if n in chosen or n in decide]
        self._label = labels(study, names, whole=True)

    @cached_property
    def costs(self) -> tuple[WayCost, ...]:
        """Every way in every place, those in good standing first."""
        pairs = Compared(self.study)
        judged = {t.row.key: t for t in self.study.tolls if t.metric == cost_metric(self.study)}

        def pair_of(place: Place, way: Way) -> Toll | None:
            toll = judged.get(way.row.key)
            if toll and toll.ratio and toll.against.standing is Standing.NULL:
                return toll
            return pairs.of(way.row, place.null.row) if place.null else None

        found = [
            WayCost(place, way, pair_of(place, way), pairs)
            for place in (places(self.study, pairs) if self.threats else ())
            if not place.is_of_one_choice
            for way in (*place.good, *place.others)
        ]
        # Of one operation all are ratios, or none is: a cost is not to be held against a ratio.
        bare = {_operation(cost) for cost in found if cost.ratio is None}
        return tuple(replace(cost, pair=None) if _operation(cost) in bare else cost for cost in found)

    @cached_property
    def operations(self) -> tuple[str, ...]:
        """In the study's order."""
        return tuple(dict.fromkeys(_operation(cost) for cost in self.costs))

    @cached_property
    def offers(self) -> tuple[Offer, ...]:
        """Every way by operation, whatever its standing; the least first, by the middle one of its costs."""
        found: dict[tuple[str, str], list[WayCost]] = {}
        for cost in self.costs:
            found.setdefault((_operation(cost), self._label(cost.way.row)), []).append(cost)
        offers = [Offer(name, op, tuple(costs)) for (op, name), costs in found.items()]
        return tuple(sorted(offers, key=lambda offer: (self.operations.index(offer.operation), _middle(offer).value)))

    @cached_property
    def against(self) -> tuple[Against, ...]:
        """What there is against each threat about which cells differ; threats with one answer together."""
        found: dict[object, tuple[list[str], tuple[Candidate, ...]]] = {}
        for threat in self.threats:
            candidates = self._against(threat)
            told = tuple((one.name, one.degree) for one in candidates)
            found.setdefault(told, ([], candidates))[0].append(threat)
        return tuple(Against(tuple(threats), candidates) for threats, candidates in found.values())

    @cached_property
    def ways(self) -> Mapping[str, tuple[Offer, ...]]:
        """The offers of each way, by its name."""
        found: dict[str, list[Offer]] = {}
        for offer in self.offers:
            found.setdefault(offer.name, []).append(offer)
        return {name: tuple(offers) for name, offers in found.items()}

    def mitigation(self, way: Sequence[Offer], threat: str) -> Mitigation:
        """What a way does about a threat: the least of what its cells do."""
        mitigations_of = self.study.about.family.mitigations_of
        done = [mitigations_of(cost.way.row.coordinates)[threat] for offer in way for cost in offer.costs]
        return min(done, key=lambda one: list(Degree).index(one.degree))

    def _against(self, threat: str) -> tuple[Candidate, ...]:
        good = [way for way in self.ways.values() if all(offer.is_good for offer in way)]
        done = [Candidate(way, self.mitigation(way, threat).degree) for way in good]
        for degree in (Degree.YES, Degree.PARTLY):
            alike = [one for one in done if one.degree is degree]
            if alike:
                best = [one for one in alike if not any(one.is_beaten_by(other) for other in alike)]
                return tuple(sorted(best, key=lambda one: max(cost.value for cost in one.costs.values())))
        return ()


def use_sentences(uses: Uses) -> list[str]:
    """A sentence for each operation, then one for each threat."""
    return [*_by_operation(uses), *(_by_threat(uses, against) for against in uses.against)]


def losses(uses: Uses) -> list[str]:
    """Of each choice that the sentences on threats name: what it takes away, and what else its family says of it."""
    named = (one for against in uses.against for one in against.candidates[:MOST_CANDIDATES])
    found = dict.fromkeys(one.offers[0].row.choice for one in named)
    choices = (uses.study.about.family.choices[name] for name in found)
    return [f"{choice.title}: {choice.note}" for choice in choices if choice.note]


def uses_table(uses: Uses) -> Table:
    """Every way: its costs by operation, its sizes, and what it takes away."""
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
        *texts("standing", "what it takes away, and what else there is to know"),
    )
    ratios = any(cost.ratio is not None for cost in uses.costs)
    what = "Cost as a multiple of the same without protection" if ratios else "Cost"
    return Table(f"{what}: over all places of an operation, from the least to the most", columns, rows)


def _by_operation(uses: Uses) -> Iterable[str]:
    for operation in uses.operations:
        good = [o for o in uses.offers if o.operation == operation and o.is_good]
        named = [f"{quoted(o.name)} {_cost_words(o.costs)}{_doubt(o.costs)}" for o in good]
        if len(named) > MOST_NAMES:
            named = [*named[: MOST_NAMES - 1], f"{len(named) - MOST_NAMES + 1} more up to {named[-1]}"]
        if named:
            told = all(_is_told_less(one, other) for one, other in pairwise(good))
            order = "from the cheapest" if told else "from the least cost measured, not all told apart"
            yield f"For {operation}{f', {order}' if len(good) > 1 else ''}: {'; '.join(named)}."


def _is_told_less(one: Offer, other: Offer) -> bool:
    """Whether the one costs less than the other for sure in every place that both have, and in one at least."""
    both = [(a, b) for a in one.costs for b in other.costs if a.place.at == b.place.at]
    return bool(both) and all(a.ratio is not None and a.is_surely_less(b) for a, b in both)


def _by_threat(uses: Uses, against: Against) -> str:
    name = enumeration([threat.replace("-", " ") for threat in against.threats])
    if not against.candidates:
        return f"Against {name}: nothing recommended or acceptable that was measured."
    said = [_candidate_words(uses, one) for one in against.candidates[:MOST_CANDIDATES]]
    more = len(against.candidates) - len(said)
    said += [f"{more} more"] if more else []
    in_part = ", in part only" if against.candidates[0].degree is Degree.PARTLY else ""
    return f"Against {name}{in_part}: {'; or '.join(said)}."


def _candidate_words(uses: Uses, one: Candidate) -> str:
    of = {offer.operation: _cost_words(offer.costs) for offer in one.offers}
    costs = [f"{operation} {cost}" if len(uses.operations) > 1 else cost for operation, cost in of.items()]
    lacking = [operation for operation in uses.operations if operation not in of]
    gone = f"; {enumeration(lacking)} not measured" if lacking else ""
    return f"{quoted(one.name)} ({', '.join(costs)}{gone})"


def _cost_words(costs: Sequence[WayCost]) -> str:
    """`× 1.26` or `× 1.15 to × 1.26`; the costs themselves where one of them was not judged."""
    ratios = [cost.ratio for cost in costs if cost.ratio is not None]
    if len(ratios) == len(costs):
        return times_range(min(ratios), max(ratios))
    least, most = (amount(of(cost.way.cost for cost in costs)) for of in _ENDS)
    return least if least == most else f"{least} to {most}"


def _doubt(costs: Sequence[WayCost]) -> str:
    """What a ratio by itself does not say of its verdicts."""
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
    """The middle one of its costs."""
    return sorted(offer.costs, key=lambda cost: cost.value)[(len(offer.costs) - 1) // 2]


def _operation(cost: WayCost) -> str:
    return str(cost.way.row.coordinates.get("op", ""))


def _choice(study: StudyJudgement, row: Row) -> Choice:
    return study.about.family.choices[row.choice]


def sources_table(study: StudyJudgement) -> Table:
    """Who says what the standing and the strength of each choice is."""
    rows = []
    for entry in _entries(study):
        bits = "–" if entry.strength is None else f"{entry.strength} bits"
        year = entry.year if isinstance(entry, Choice) else None
        by = "; ".join(_authority(a) for a in entry.authority)
        standing = entry.standing
        rows.append(
            (
                TableCell(entry.title, small=f"{entry.spec}, {year}" if year else entry.spec),
                DASH if standing is None else TableCell(standing_words(standing), standing=standing),
                TableCell(by or "–", small=entry.note),
                TableCell(bits, None if entry.strength is None else float(entry.strength), entry.strength_from),
            )
        )
    columns = texts("choice", "standing", "who says so", "strength")
    return Table("Who says so: the source of every standing and strength", columns, rows)


def _entries(study: StudyJudgement) -> Iterable[Part]:
    """Each choice of the study, and each value of a setting that has a standing, a strength or a source of its own."""
    family = study.about.family
    # A choice with parameters has a standing, and a source of it, for those of each row.
    found: dict[tuple[bool, str, str], Part] = {}
    for row in study.rows:
        for entry in family.parts_of(row.coordinates) if row.choice in family.choices else ():
            if isinstance(entry, Choice) or entry.authority or entry.strength is not None:
                found.setdefault((not isinstance(entry, Choice), entry.title, str(entry.standing)), entry)
    # All choices first, then what they are combined with.
    return [found[key] for key in sorted(found, key=lambda key: key[0])]


def _authority(authority: Authority) -> str:
    unread = "" if authority.checked else "; clause not re-read"
    seen = authority.seen.isoformat()
    return f"{authority.by}, {authority.where}: “{authority.says}” (seen {seen}{unread})"


def uses_section(study: StudyJudgement) -> Section | None:
    """Which choice is usable for what; None where all cells do the same about every threat."""
    uses = Uses(study)
    said = use_sentences(uses)
    note = (
        "Ratios are to the same without protection. Against each threat stand the recommended and acceptable choices"
        " that no other is sure to undercut; where the run cannot tell two apart, their order is chance."
    )
    return Section(USES, (Paragraph(note, "note"), Items(said), uses_table(uses))) if said else None


def uses_listing(study: StudyJudgement) -> Listing | None:
    """The same without the table."""
    uses = Uses(study)
    said = use_sentences(uses)
    return Listing(USES, said, notes=losses(uses)) if said else None


def strength_section(study: StudyJudgement, at: AtOneLoad) -> Section:
    charts, family = strength_charts(at.study), study.about.family
    means = f"Strength: {family.strength_means}." if family.strength_means else ""
    sources = sources_table(study)
    folded = [Folded(sources.caption, [sources])] if sources.rows else []
    if not charts:
        return Section("What each choice is worth", (Paragraph(means, "note"), *folded))
    costed = [m.row for m in by_row(study, cost_metric(study)).values() if m.row.strength is not None]
    how = (
        f"{means} Down and to the right is better. The dashed line is the least cost that was measured of a"
        f" recommended or acceptable choice of at least that strength. {at.note}"
    )
    frontier = Key("least cost in good standing for at least so many bits", mark="frontier")
    return Section(
        "Cost against strength and standing",
        (
            Paragraph(how.strip(), "note"),
            Legend([*standing_keys(costed), frontier]),
            *figures(charts, "panels strength"),
            *folded,
        ),
    )


def threats_section(study: StudyJudgement) -> Section | None:
    if not alike(study):
        return None
    table = threats_table(study)
    note = (
        "A threat stands here with what is done about it, by this project's own reading of the specifications and of"
        f" the authorities named above. {unprotected(study)}"
    )
    return Section(
        "What it protects against",
        (
            Paragraph(note.strip(), "note"),
            Boxed("protects", [table] if table.rows else []),
            Items(alike_everywhere(study)),
        ),
    )
