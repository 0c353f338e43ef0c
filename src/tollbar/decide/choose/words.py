"""Answer of `choose`: qualifying candidates from the cheapest, the others with reasons, and the undecided ones."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from tollbar.analysis import Toll, Verdict
from tollbar.catalog.families import Degree
from tollbar.catalog.policies import Contradiction, Policy, Rule, Ruling, environments
from tollbar.core.words import capitalised, enumeration, few, left_out, more
from tollbar.decide.choose.answered import Answered, all_of, distinguishing, place_name, typed_name
from tollbar.decide.choose.headline import MOST_NAMES, first_sentences
from tollbar.decide.choosing import Choosing
from tollbar.decide.rulings import Candidate, Reason, Wanted, lacks
from tollbar.decide.shared import ended_words, excepted_words
from tollbar.report.blocks import Brief, Column, Listing, Table, TableCell, numbers, texts
from tollbar.report.coordinates import Form, named_value, value_words
from tollbar.report.numbers import NOISY, NOISY_MARK, amount
from tollbar.report.standings import standing_words
from tollbar.report.table_cells import has_marks, with_ends

# More would hide the answer; the JSON document has all.
MOST_PLACES, MOST_ROWS, MOST_NEAREST = 3, 15, 5
MORE = "`--json` has all"


def answer(of: Answered) -> Brief:
    """Return the whole answer in the brief form."""
    wanted, places = of.wanted, of.places[:MOST_PLACES]
    names = distinguishing(of)
    headline = first_sentences(of, names)
    listings = [
        one
        for one in (
            *_qualifying(of, places, names),
            _contradictions(of),
            _nearest(of, names),
            _dropping(of, names),
            _table(of, names, "Not qualified", Ruling.BREAKS),
            _table(of, names, "Undecided", Ruling.CANNOT_SAY),
            _rules(of),
            _not_judged(wanted),
        )
        if one is not None
    ]
    is_marked = NOISY_MARK in headline or any(has_marks(one.tables) for one in listings)
    marks = [f"{NOISY}."] if is_marked else []
    return Brief(
        _question(wanted),
        headline,
        how=[*_how(of, names)],
        listings=listings,
        notes=[*marks, *_notes(of, names)],
    )


def _question(wanted: Wanted) -> str:
    asked = [one.name for one in wanted.policies]
    threats = [f"{name}{'' if degree is Degree.YES else ' in part'}" for name, degree in wanted.threats.items()]
    under = f" under {enumeration(asked)}" if asked else ""
    against = f" against {enumeration(threats)}" if threats else ""
    on = f" on {wanted.on}" if wanted.on != wanted.today else ""
    return f"Which {wanted.family.name} qualifies{under}{against}{on}, and at what cost?"


def _how(of: Answered, names: Sequence[str]) -> Iterator[str]:
    first = of.places[0] if of.places else None
    every = [one for place in of.places for one in all_of(place)]
    if first is not None and len(of.places) == 1 and (where := place_name(of, first)):
        yield f"Costs of {where}; {of.source}."
    else:
        yield f"{capitalised(of.source)}."
    same = {
        name: {str(one.coordinates.get(name)) for one in every}
        for name in of.wanted.family.settings
        if every and name not in names and not any(name in place.where for place in of.places)
    }
    said = [
        named_value(of.wanted.family, name, every[0].coordinates[name])
        for name, values in same.items()
        if len(values) == 1 and name in every[0].coordinates
    ]
    if said:
        yield f"In every row: {', '.join(said)}."


def _qualifying(of: Answered, places: Sequence[Choosing], names: Sequence[str]) -> Iterator[Listing]:
    tables = []
    for place in places:
        rows = [
            (str(rank.number) if number == 0 else "", one)
            for rank in place.ranks
            for number, one in enumerate(rank.candidates)
        ]
        rows += [("–", one) for one in place.unpriced]
        if rows:
            caption = place_name(of, place) if len(of.places) > 1 else ""
            some = [_row(of, place, one, names, [TableCell(number)]) for number, one in rows[:MOST_ROWS]]
            tables.append(Table(caption, [Column("place"), *_columns(of, names)], _once(some)))
    hidden = [max(0, len(place.qualifies) - MOST_ROWS) for place in places]
    notes = left_out(sum(hidden), "row", MORE)
    if len(of.places) > len(places):
        where = f"{MORE}; to pick one, add a coordinate, for example `{_example(of)}`"
        notes += left_out(len(of.places) - len(places), "place", where)
    if tables:
        is_shared = any(len(rank.candidates) > 1 for place in places for rank in place.ranks)
        shared = "Choices with one place cost the same, or this run cannot distinguish them."
        notes += [shared] if is_shared else []
        order = "nearest to the default settings first" if of.is_unpriced else "cheapest first"
        yield Listing(f"Qualified, {order}", tables=tables, heads="at", notes=notes)


def _once(rows: Sequence[Sequence[TableCell]]) -> Sequence[Sequence[TableCell]]:
    """Return the rows with `as above` in place of small text equal to that of the row above."""
    said = [next((cell.small for cell in row if cell.small), None) for row in rows]
    return [
        [
            replace(cell, small="as above") if cell.small and number and cell.small == said[number - 1] else cell
            for cell in row
        ]
        for number, row in enumerate(rows)
    ]


def _example(of: Answered) -> str:
    one, another = of.places[0].where, of.places[-1].where
    name = next((name for name in one if one[name] != another.get(name)), next(iter(one), "op"))
    return shlex.quote(named_value(of.wanted.family, name, another.get(name, one[name]), Form.TYPED))


def _table(of: Answered, names: Sequence[str], title: str, ruling: Ruling) -> Listing | None:
    """Return the table of candidates with this ruling, each once; unmeasured ones only if no other was measured."""
    found = [(place, one) for place, one in of.candidates(names).values() if one.ruling is ruling]
    measured = [(place, one) for place, one in found if place is not None]
    shown, besides = (measured or found)[:MOST_ROWS], len(found) - len(measured)
    if not shown:
        return None
    tables = []
    for place, some in groupby(shown, key=itemgetter(0)):
        caption = place_name(of, place) if place is not None and len(of.places) > 1 else ""
        rows = [_row(of, place, one, names, [], _why(of, one)) for _, one in some]
        tables.append(Table(caption, _columns(of, names), _once(rows)))
    unmeasured = f", {besides} of them not measured" if measured and besides else ""
    notes = left_out(len(found) - len(shown), "row", MORE, unmeasured)
    return Listing(title, tables=tables, heads="at", notes=notes)


def _why(of: Answered, one: Candidate) -> str:
    """Return the rules that a candidate breaks, by ids (their clauses are below the table), or the missing facts."""
    several = len(of.wanted.policies) > 1
    # Rules with one violation share its words.
    rules: dict[str, dict[str, None]] = {}
    for reason in one.broken or one.missing:
        rule = f"{reason.policy}: {reason.rule.id}" if reason.rule and several else reason.rule and reason.rule.id
        by = rule or reason.policy
        rules.setdefault(reason.what, {}).update({by: None} if by else {})
        if reason.ended:
            rules.setdefault(ended_words(reason.ended), {})
    return "; ".join(f"{what} ({', '.join(names)})" if names else what for what, names in rules.items())


def _columns(of: Answered, names: Sequence[str]) -> list[Column]:
    titles = [Column(name.replace("-", " "), names=True) for name in names]
    leading = (*titles, *texts("standing", leaves=3))
    return [*leading, *numbers("cost", "× cheapest"), *texts("interval", leaves=2)]


def _row(
    of: Answered,
    place: Choosing | None,
    one: Candidate,
    names: Sequence[str],
    before: Sequence[TableCell],
    small: str = "",
) -> list[TableCell]:
    family = of.wanted.family
    notes = [*([small] if small else [])]
    notes += map(excepted_words, one.excepted)
    notes += [f"{threat}: {condition}" for threat, condition in one.conditions.items()]
    notes += [f"against advice: {reason.rule.clause}" for reason in one.advice if reason.rule]
    notes += [f"not measured: {one.unmeasured}"] if one.unmeasured else []
    toll = place.beside_cheapest(one) if place else None
    standing = family.standing_of(one.coordinates)
    at = one.row.shown if one.row else one.coordinates
    words = [value_words(family, name, at.get(name), Form.TABLE) for name in names]
    cells = [
        TableCell(text, small="; ".join(notes) or None if number == 0 else None) for number, text in enumerate(words)
    ]
    return [
        *before,
        *cells,
        TableCell(standing_words(standing), standing=standing if standing.is_of_option else None),
        with_ends(one.cost, amount)[0],
        *_ratio(toll),
    ]


def _ratio(toll: Toll | None) -> tuple[TableCell, TableCell]:
    ratio, ends = with_ends(toll.ratio if toll else None, missing=TableCell(""))
    unclear = " unclear" if toll and toll.ratio and toll.verdict is Verdict.UNCLEAR else ""
    return ratio, TableCell(f"{ends.says}{unclear}")


def _nearest(of: Answered, names: Sequence[str]) -> Listing | None:
    if of.qualifies:
        return None
    every = [one for _, one in of.candidates(names).values()]
    fewest = min(map(lacks, every), default=None)
    found = [one for one in every if lacks(one) == fewest]
    said = [f"{typed_name(of, one, names)}: {_why(of, one)}" for one in found[:MOST_NEAREST]]
    partly = [
        threat
        for threat, degree in of.wanted.threats.items()
        if degree is Degree.YES
        and any(of.wanted.family.mitigations_of(one.coordinates)[threat].degree is Degree.PARTLY for one in found)
    ]
    notes = [
        f"To accept mitigation on a condition, which is printed with the choice, use `--threat {threat}=partly`."
        for threat in partly
    ]
    return Listing("The nearest misses", said, notes=notes)


def _dropping(of: Answered, names: Sequence[str]) -> Listing | None:
    found = {typed_name(of, one, names): _reasons(one) for place in of.places for one in place.dropping}
    if of.wanted.on <= of.wanted.today:
        return None
    title = f"No longer qualified on {of.wanted.on}"
    if not found:
        which = "" if of.is_unpriced else " measured"
        return Listing(title, [f"None: every{which} choice that qualifies today qualifies on {of.wanted.on} too."])
    said = [f"{name}: {why}" for name, why in [*found.items()][:MOST_ROWS]]
    return Listing(title, said, notes=left_out(len(found) - MOST_ROWS, "", MORE))


def _reasons(one: Candidate) -> str:
    reasons = (*one.broken, *one.missing)
    ended = (ended_words(reason.ended) for reason in reasons if reason.ended)
    return "; ".join(dict.fromkeys((*(f"{reason.what}{_by(reason)}" for reason in reasons), *ended)))


def _by(reason: Reason) -> str:
    return f" ({reason.policy}, {reason.rule.clause})" if reason.rule else ""


def _contradictions(of: Answered) -> Listing | None:
    found = contradictions(of)
    if not found:
        return None
    return Listing(
        "Policies that contradict each other",
        [
            f"{_rule_words(one.policy, one.rule)} — {_rule_words(one.other_policy, one.other_rule)}."
            " Nothing meets both."
            for one in found
        ],
    )


def contradictions(of: Answered) -> Sequence[Contradiction]:
    """Return the contradictions of the policies, which are the same in every place."""
    return next((place.contradictions for place in of.places), ())


def _rule_words(policy: str | None, rule: Rule) -> str:
    """Return a rule with its clause; one of an environment has its source, whose year may be long ago."""
    source = f"; source: {rule.source}" if policy in environments() else ""
    read = "" if rule.checked else "; clause not read, known from quotations"
    ours = "; applied to these choices by our reading" if rule.ours else ""
    return f"{policy}: `{rule.id}`, {rule.clause}{source}{read}{ours}"


def _rules(of: Answered) -> Listing | None:
    candidates = [*(one for place in of.places for one in all_of(place)), *of.unmeasured]
    reasons = [reason for one in candidates for reason in (*one.broken, *one.missing, *one.excepted)]
    said = dict.fromkeys(f"{_rule_words(reason.policy, reason.rule)}." for reason in reasons if reason.rule)
    return Listing("Rules named above", list(said)) if said else None


def _not_judged(wanted: Wanted) -> Listing | None:
    said = [line for policy in wanted.policies for line in _of_policy(policy)]
    return Listing("Requirements not judged here", said) if said else None


def _of_policy(policy: Policy) -> Iterator[str]:
    for part in policy.all_of_it:
        asks = "; ".join(f"{one.what} ({one.clause})" for one in part.not_judged)
        if asks:
            yield f"{part.name}, {part.title}: {asks}."


def _notes(of: Answered, names: Sequence[str]) -> Iterator[str]:
    qualify = [one for one in of.unmeasured if one.ruling is Ruling.MEETS]
    why: dict[str, dict[str, None]] = {}
    for one in qualify if of.places else ():
        if one.unmeasured:
            why.setdefault(one.unmeasured, {})[str(one.coordinates["choice"])] = None
    for reason, choices in why.items():
        yield f"Not measured: {enumeration([*choices])}: {reason}."
    left = [typed_name(of, one, names) for one in qualify if not one.unmeasured]
    if left and of.is_of_run:
        some = enumeration(few(left, MOST_NAMES))
        yield f"Not in the run, but would qualify: {some}. To measure them, leave out `--run`."
    elif left:
        yield (
            f"Not measured: {more(len(left), 'cell')} that would qualify, further from the default settings. To measure"
            " them, add a coordinate or a longer `--for`."
        )
    yield "The rules judge the choice and its settings; they are not an audit."
