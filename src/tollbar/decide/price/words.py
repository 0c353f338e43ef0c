"""Answer of `price`: the rules that an inventory breaks, the replacements, and their costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tollbar.analysis import Toll, Verdict
from tollbar.catalog.families import Degree, Value
from tollbar.catalog.policies import Ruling
from tollbar.core.words import counted, enumeration, few, more
from tollbar.decide.price.priced import AssetGroup, Priced, Pricing
from tollbar.decide.price.replacing import Cost
from tollbar.decide.price.unmeasured import CHOICE
from tollbar.decide.rulings import Reason
from tollbar.decide.shared import ended_words, excepted_words
from tollbar.report.blocks import Brief, Listing, Table, TableCell, count_cell, numbers, row_names, texts
from tollbar.report.names import place_of
from tollbar.report.numbers import NOISY, bracket, marked, times
from tollbar.report.standings import standing_words
from tollbar.report.table_cells import has_marks

# Rules, rows, places and names beyond these hide the rest; the JSON document has all.
MOST_RULES = 8
MOST_ROWS = 100
MOST_PLACES = 1
MOST_REPLACEMENTS = 3
TITLES = {
    Ruling.BREAKS: "Breaks a policy",
    Ruling.CANNOT_SAY: "Undecided",
    Ruling.MEETS: "Meets every policy that has a rule on it",
}
COLUMNS = (*row_names("asset"), *numbers("assets"), *texts("known as", leaves=1), *texts("standing", leaves=2))
OF_COST = (*texts("replacement"), *numbers("cost ratio"))


def brief(pricing: Pricing) -> Brief:
    """Return the whole answer."""
    inventory = pricing.inventory
    named = [one.name for one in pricing.policies]
    of = inventory.of or inventory.path.name
    to_go = f"Which cryptography of {of} must be replaced under {enumeration(named)}, and at what cost?"
    return Brief(
        question=to_go if named else f"Which cryptography does {of} have, and in which standing?",
        headline=_headline(pricing),
        how=tuple(_how(pricing)),
        listings=tuple(_listings(pricing)),
        notes=tuple(_notes(pricing)),
    )


def _headline(pricing: Pricing) -> str:
    total = len(pricing.inventory.assets)
    if not total:
        others = counted(pricing.inventory.others, "component")
        return f"The inventory has no cryptographic asset among {others}: make it with a tool that lists cryptography."
    in_rows = f"{counted(total, 'asset')} in {counted(len(pricing.lines), 'row')}"
    mapped = f"{pricing.mapped:,} {'has' if pricing.mapped == 1 else 'have'} a known algorithm and all its parameters"
    of_bad = pricing.bad_unrefused
    are_bad = f"{'is' if of_bad == 1 else 'are'} broken or disallowed by standing"
    if not pricing.policies:
        bad = f"; {of_bad:,} {are_bad}" if of_bad else ""
        return f"{in_rows}, judged by no policy{bad}; {mapped}."
    # The counts before have these assets among them.
    bad = f"; {of_bad:,} that {'breaks' if of_bad == 1 else 'break'} no policy {are_bad}" if of_bad else ""
    breaks, meets, unsaid = (pricing.count(one) for one in (Ruling.BREAKS, Ruling.MEETS, Ruling.CANNOT_SAY))
    counts = (
        (breaks, "breaks a policy", "break a policy"),
        (meets, "meets every policy that has a rule on it", "meet every policy that has a rule on it"),
        (unsaid, "is undecided", "are undecided"),
    )
    said = enumeration([f"{number:,} {one if number == 1 else several}" for number, one, several in counts if number])
    return f"{in_rows}: {said}{bad}; {mapped}."


def _how(pricing: Pricing) -> Iterator[str]:
    if pricing.policies:
        yield f"Judged by the rules in force on {pricing.on}."
    for policy, rule in pricing.of_providers:
        yield (
            "An inventory names no provider, so each asset is judged as if a governed one performed it. For other"
            f" providers {policy} ({rule.id}) is undecided: {rule.cannot_say}."
        )
    if pricing.runs:
        runs = enumeration([run.name for run in pricing.runs])
        yield (
            "The replacement is the cheapest measured choice that meets the policies, with those of the same cost or"
            f" that the run cannot distinguish. × 0.50 is half of the asset's CPU time, as measured in {runs}."
        )


def _listings(pricing: Pricing) -> Iterator[Listing]:
    rules = [
        f"{policy}, {clause} ({rule}): {counted(count, 'asset')}"
        for (policy, rule, clause), count in pricing.broken.items()
    ]
    if rules:
        left = len(rules) - MOST_RULES
        notes = [f"{more(left, 'rule')} in the JSON document."] if left > 0 else []
        yield Listing("Broken rules", sentences=rules[:MOST_RULES], notes=notes)
    if pricing.contradictions:
        said = [
            f"{family.name}: {one.policy} ({one.rule.clause}) and {one.other_policy} ({one.other_rule.clause}): nothing"
            " meets both"
            for family, one in pricing.contradictions
        ]
        yield Listing("Where the policies contradict each other", sentences=said)
    groups: dict[str, list[AssetGroup]] = {}
    for line in pricing.lines:
        # Without a policy every known asset meets all of them, so the title only counts the known ones.
        title = TITLES[line.ruling] if pricing.policies or not line.is_mapped else "Known here"
        groups.setdefault(title, []).append(line)
    for title, lines in groups.items():
        is_priced = title == TITLES[Ruling.BREAKS]
        columns = (*COLUMNS, *OF_COST) if is_priced else COLUMNS
        rows = [cells[: len(columns)] for cells in _rows(lines[:MOST_ROWS])]
        tables = [Table("", columns, rows)]
        notes = [f"{NOISY}."] if has_marks(tables) else []
        rest = lines[MOST_ROWS:]
        if rest:
            of_them = counted(sum(line.count for line in rest), "asset")
            notes.append(f"{more(len(rest), 'row')} of {of_them} in the JSON document (`--json`).")
        yield Listing(title, tables=tables, notes=notes)


def _rows(lines: Sequence[AssetGroup]) -> Iterator[tuple[TableCell, ...]]:
    for line in lines:
        if not line.uses:
            yield _row(line, [TableCell(""), TableCell("")], why=line.reason)
        for number, use in enumerate(line.uses):
            if_ = use if len(line.uses) > 1 else None
            yield _row(line, _use_cells(use), if_=if_, first=number == 0, why=line.reason)


def _row(
    line: AssetGroup,
    cells: Sequence[TableCell],
    *,
    if_: Priced | None = None,
    first: bool = True,
    why: str | None = None,
) -> tuple[TableCell, ...]:
    others = f" and {counted(line.names - 1, 'other name')}" if line.names > 1 else ""
    left = len(line.places) - MOST_PLACES
    beside = f" and {more(left, 'place')}" if left > 0 else ""
    where = f"in {enumeration(line.places[:MOST_PLACES])}{beside}" if line.places and first else None
    role = f" (if for {if_.use.family.name})" if if_ else ""
    kind = "" if line.kind == "algorithm" or line.kind in line.name else f"{line.kind.replace('-', ' ')} "
    said = "; ".join(filter(None, (why, where))) or None
    return TableCell(f"{kind}{line.name}{others}{role}", small=said), count_cell(line.count), *cells


def _use_cells(priced: Priced) -> list[TableCell]:
    family, cell = priced.use.family, priced.use.coordinates
    what = place_of(family, cell, cell)
    standing = family.standing_of(cell)
    words = standing_words(standing) if priced.is_standing_sure else _open(priced)
    replaced = [
        str(place_of(family, one.coordinates, _differing(one.coordinates, priced))) for one in priced.replacements
    ]
    cost, others = (priced.costs[0], priced.costs[1:]) if priced.costs else (None, ())
    return [
        TableCell(what, small=_unprotected(priced), stays=what),
        TableCell(words, standing=standing if priced.is_standing_sure else None, small=_why(priced), stays=words),
        TableCell(
            enumeration(few(replaced, MOST_REPLACEMENTS), "or") or _none(priced), small=_also(priced, cost, others)
        ),
        TableCell(_times(cost.toll) if cost else "", verdict=_verdict(cost)),
    ]


def _open(priced: Priced) -> str:
    """Return the standing, with `at best` if settings that are not given may lower or decide it."""
    family, cell = priced.use.family, priced.use.coordinates
    choice = family.choices[str(cell["choice"])]
    return choice.standing_text if choice.is_set_by_study else f"at best {standing_words(family.standing_of(cell))}"


def _verdict(cost: Cost | None) -> Verdict | None:
    return cost.toll.verdict if cost else None


def _differing(coordinates: Mapping[str, Value], priced: Priced) -> list[str]:
    """Return the names of a cell's printed coordinates: its choice, and settings given or not at their defaults."""
    family, shown = priced.use.family, {*priced.use.coordinates, *priced.open}
    said = [
        name
        for name, one in family.settings.items()
        if one.about and name in coordinates and (coordinates[name] != one.default or name in shown)
    ]
    return ["choice", *said]


def _unprotected(priced: Priced) -> str | None:
    """Return the threats that the use does not mitigate, or only on a condition."""
    if any(one.coordinate == CHOICE for one in priced.use.unmeasured):
        # The protection of an unmeasured choice is unknown.
        return None
    said = priced.use.family.mitigations_of(priced.use.coordinates)
    nothing = [threat for threat, what in said.items() if what.degree is Degree.NO]
    return f"does not protect against {enumeration(nothing)}" if nothing else None


def _why(priced: Priced) -> str | None:
    """Return the reasons for its ruling, exceptions that hold and those that ended, and advice it does not follow."""
    against = (f"against advice: {one.rule.clause} ({one.policy})" for one in priced.found.advice if one.rule)
    held = map(excepted_words, priced.found.excepted)
    ended = (ended_words(one.ended, f" to {one.policy} {one.ended.rule}") for one in priced.reasons if one.ended)
    return "; ".join(filter(None, (_reasons(priced.reasons), *held, *ended, *against))) or None


def _reasons(reasons: Sequence[Reason]) -> str | None:
    """Return each rule by its id with the violation; without a rule, the missing fact."""
    said: dict[str, list[str]] = {}
    for one in reasons:
        rule = " ".join(filter(None, (one.policy, one.rule.id if one.rule else None)))
        said.setdefault(one.what, []).append(rule)
    return "; ".join(f"{what} ({', '.join(by)})" if any(by) else what for what, by in said.items()) or None


def _also(priced: Priced, cost: Cost | None, others: Sequence[Cost]) -> str | None:
    """Return the origin of the cost, the costs of other operations, or the reason for a missing cost."""
    if cost is None:
        if priced.instead:
            return f"{priced.instead} would meet the rule"
        if not priced.unpriced:
            return None
        would = priced.qualifying if not priced.replacements else ()
        able = f"; {enumeration(few(would, MOST_REPLACEMENTS), 'or')} would meet them" if would else ""
        return f"not priced: {priced.unpriced}{able}"
    family = priced.use.family
    names = [name for name in ("op", "bytes", "users", "server", "provider") if name in cost.where]
    places = [place_of(family, cost.where, names), *(str(other.where.get("op")) for other in others)]
    said = [f"{place}: {_ratio(one)}, {_told(one)}" for place, one in zip(places, (cost, *others), strict=True)]
    if priced.own and priced.open:
        # The asset does not give all of these settings.
        own = place_of(family, priced.own.coordinates, _differing(priced.own.coordinates, priced))
        said.append(f"compared with {own}")
    return "; ".join(said)


def _none(priced: Priced) -> str:
    """Return the text of a missing replacement whose reason is below: a column without a text is left out."""
    return "–" if priced.instead or priced.unpriced else ""


def _told(cost: Cost) -> str:
    return cost.toll.reason or TOLD[cost.toll.verdict]


TOLD = {
    Verdict.COSTS: "costs more",
    Verdict.SAVES: "costs less",
    Verdict.FREE: "costs the same within the threshold",
    Verdict.UNCLEAR: "this run cannot distinguish the two",
    Verdict.NOT_MEASURED: "not measured",
}


def _ratio(cost: Cost) -> str:
    return f"{_times(cost.toll)} {bracket(cost.toll.ratio)}" if cost.toll.ratio else "no ratio"


def _times(toll: Toll) -> str:
    return marked(times(toll.ratio.estimate), toll.ratio.is_noisy) if toll.ratio else ""


def _notes(pricing: Pricing) -> Iterator[str]:
    if not pricing.policies:
        yield "To see which assets must be replaced, add `--policy NAME`; `docs/policies.md` lists the policies."
    elif not pricing.runs and pricing.count(Ruling.BREAKS):
        yield "No cost was measured. Take costs from a run with `--run RUN`, or measure now with `--for 20s`."
    if any(line.reason and line.uses for line in pricing.lines):
        yield "If a fact about an asset is missing, its best possible choice is judged; here even that breaks a policy."
    if pricing.inventory.others:
        others = pricing.inventory.others
        yield f"Not judged, because not cryptographic: {counted(others, 'component')}."
    if pricing.inventory.unread:
        places = enumeration([f"`{one}`" for one in pricing.inventory.unread])
        yield f"Cryptographic assets in {places} are not read: they do not belong to the product of the inventory."
    if any(line.kind == "certificate" for line in pricing.lines):
        yield "A certificate is judged by its own key; its issuer's key has its own row if the inventory lists it."
