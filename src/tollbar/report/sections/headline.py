"""Headline of an answer: the choice to take, its cost, and the losses and gains of cheaper and stronger ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from tollbar.analysis import Toll, Verdict
from tollbar.catalog.families import Value
from tollbar.core.words import capitalised, counted, enumeration, more, quoted
from tollbar.report.costs import each_words
from tollbar.report.groups import cost_metric, real_tolls
from tollbar.report.names import baseline_words, on_one_core, sizes_of, where_words
from tollbar.report.numbers import ratio_range
from tollbar.report.sections.against import against_baseline
from tollbar.report.sections.steps import MOST_NAMES, with_standing
from tollbar.report.sections.telling import MOST_IN_HEADLINE, Finding, Telling
from tollbar.report.standings import standing_words
from tollbar.report.ways import Place


def line(telling: Telling, short: str) -> str:
    """Return the answer to the whole study: `short`, which is `in_short`, and after a single finding the next steps."""
    more = _next(telling, telling.findings[0]) if len(telling.findings) == 1 else []
    return " ".join([f"{short}.", *(f"{capitalised(one)}." for one in more)])


def in_short(telling: Telling) -> str:
    """Return the findings for which there is room, without the next steps and without a full stop."""
    findings = telling.findings
    if not findings:
        # Null choices and references alone have no approved alternative, but their measurements can be reported.
        has_others = any(row.trials and not row.standing.is_of_option for row in telling.study.rows)
        return (against_baseline(telling.study)[0] if has_others else _nothing(telling)).rstrip(".")
    if telling.is_of_many_choices:
        return (_changes(telling) or against_baseline(telling.study)[0]).rstrip(".")
    if len(findings) == 1:
        return _line(telling, findings[0], {})
    told = findings
    if len(findings) > MOST_IN_HEADLINE:
        # One finding of each operation, before a second of any.
        ahead = {f.operation: f for f in reversed(findings)}.values()
        chosen = sorted(findings, key=lambda f: f not in ahead)[:MOST_IN_HEADLINE]
        told = tuple(f for f in findings if f in chosen)
    lines = [_line(telling, told[0], {}, told)]
    for before, finding in pairwise(told):
        alike = _where_of(telling, before.places[0]) if before.operation == finding.operation else {}
        lines.append(_line(telling, finding, alike, told))
    hidden = sum(len(f.places) for f in findings if f not in told and f.first is not None)
    if hidden:
        lines.append(f"the answer differs in {more(hidden, 'place')}")
    return "; ".join(lines)


def _line(telling: Telling, finding: Finding, said: Mapping[str, Value], told: Sequence[Finding] = ()) -> str:
    """Return `TLS 1.3 (128 bits): 94 µs a connection`, without coordinates that the line has already.

    `told` are all findings of the line: one choice must do for both sides, so that its costs in their operations are
    printed next to its least cost.
    """
    operation = f"{finding.operation}: " if finding.operation is not None else ""
    best = finding.places[0].answer
    if finding.first is None or best is None:
        least = finding.places[0].ways[0]
        name = with_standing(quoted(telling.label(least.row)), least.row)
        costs = _costs(telling, finding, [finding.places[0]], said)
        none = f"no {'option to recommend' if finding.places[0].good else 'option in good standing'} was measured"
        opened = none if said or operation else capitalised(none)
        return f"{operation}{opened}; {name} has the lowest cost of the others, {costs}"
    answers = [place.answer.row for place in finding.places if place.answer]
    # If the places differ in strength or standing, the answer has none.
    standing = {row.standing for row in answers} if not telling.of_one_standing else set()
    bits = {row.strength for row in answers} if telling.has_strengths else set()
    properties = [standing_words(one) for one in standing if len(standing) == 1]
    properties += [f"{one} bits" for one in bits if len(bits) == 1 and one is not None]
    name, costs = telling.label(best.row), _costs(telling, finding, finding.places, said, told)
    in_brackets = f" ({', '.join(properties)})" if properties else ""
    shown = f"{quoted(name) if operation else name}{in_brackets}"
    said_of = f"{operation}{shown}, {costs}" if operation else f"{shown}: {costs}"
    said_of += _gives_up(telling, finding, told)
    ways = finding.places[0].good
    # If all protect equally, the spread of costs is the finding; after one operation there is little room.
    if operation and telling.of_one_standing and len(finding.places) == 1 and len(ways) > MOST_NAMES:
        return f"{said_of} (the highest of {len(ways)} costs is {max(ways, key=lambda way: way.cost).words})"
    return said_of


def _gives_up(telling: Telling, finding: Finding, told: Sequence[Finding]) -> str:
    """Return the threats that stay open although the family's default mitigates them; each once in a line."""
    place = finding.places[0]
    before = [one.places[0].gives_up for one in told[: told.index(finding)]] if finding in told else []
    open_ = [threat for threat in place.gives_up if not any(threat in some for some in before)]
    if not open_:
        return ""
    if not any(before):
        return f"; {telling.open_to(place, open_)}"
    assert place.answer is not None
    return f"; it also {enumeration(telling.loss_words(place.answer, open_, 'is open to'))}"


def _next(telling: Telling, finding: Finding) -> list[str]:
    """Return the losses of a cheaper choice and the gains of a stronger one; else the next one, or the null choice."""
    place = finding.places[0]
    if finding.first is None or len(finding.places) > 1 or telling.is_of_many_choices:
        return []
    return telling.next_ones(place) or telling.protection(place)


def _changes(telling: Telling) -> str:
    """Return the counted verdicts of another library, or key, for each of many choices."""
    by_name: dict[str, list[Toll]] = {}
    for toll in real_tolls(telling.study):
        if toll.ratio is not None:
            by_name.setdefault(telling.label(toll.row), []).append(toll)
    said = []
    for name, tolls in by_name.items():
        counts = {of: sum(t.verdict is verdict for t in tolls) for verdict, of in _COUNTED.items()}
        parts = enumeration([f"{of} in {count}" for of, count in counts.items() if count])
        ratios = ratio_range([t.ratio for t in tolls if t.ratio is not None])
        said.append(f"{quoted(name)} is {parts} of {counted(len(tolls), 'cell')} ({ratios} of its {telling.cpu})")
    against = quoted(baseline_words(telling.study)) + on_one_core(telling.study, telling.study.about.baseline)
    return f"Against {against}, {'; '.join(said[:MOST_NAMES])}." if said else ""


def _nothing(telling: Telling) -> str:
    reasons = list(dict.fromkeys(r.reason for r in telling.study.rows if r.reason))
    because = f" The first reason given: {reasons[0].rstrip('.')}." if reasons else ""
    return f"Nothing was measured.{because}"


def _costs(
    telling: Telling, finding: Finding, at: Sequence[Place], said: Mapping[str, Value], told: Sequence[Finding] = ()
) -> str:
    """Return `94 µs a connection`; for several places the least and the most, each with its place."""
    ways = [place.answer or place.ways[0] for place in at]
    by_cost = sorted(range(len(at)), key=lambda number: ways[number].cost)
    first, last = by_cost[0], by_cost[-1]
    least, most = ways[first].words, ways[last].words
    one_of = each_words(telling.study, telling.only_operation) if finding.operation is None else f"of {telling.cpu}"
    unit = "" if said else f" {one_of}"
    one, other = _where_of(telling, at[first]), _where_of(telling, at[last])
    with_it = _with_it(telling, finding, at[first], told)
    if first == last:
        return f"{least}{unit}{_at(telling, one, said)}{f' ({with_it})' if with_it else ''}"
    joint = " to" if len(at) > 2 else ","
    ends = ("; ".join(filter(None, (_at(telling, one, said).strip(), with_it))), _at(telling, other, one).strip())
    at_least, at_most = (f" ({end})" if end else "" for end in ends)
    return f"{least}{unit}{at_least}{joint} {most}{at_most}"


def _with_it(telling: Telling, finding: Finding, at: Place, told: Sequence[Finding]) -> str:
    """Return `verify with it: 52 µs`: costs in the same place, of operations with another answer in the line."""
    operations = {f.operation for f in told} - {f.operation for f in told if f.first == finding.first}
    alike = [place for place in telling.places if _but_operation(place) == _but_operation(at)]
    ways = [(place.at.get("op"), way) for place in alike for way in place.ways]
    said = {
        operation: f"{operation} with it: {way.words}"
        for operation, way in ways
        if operation in operations and telling.label(way.row) == finding.first
    }
    return ", ".join(said.values())


def _where_of(telling: Telling, place: Place) -> dict[str, Value]:
    """Return a cost's size, without which it means nothing, and the coordinates that identify its place."""
    sizes = sizes_of(telling.study, place.ways[0].row.coordinates) if cost_metric(telling.study) == "cpu" else {}
    return sizes | {name: value for name, value in place.at.items() if name != "op"}


def _at(telling: Telling, where: Mapping[str, Value], said: Mapping[str, Value]) -> str:
    shown = where_words(telling.study, {n: (v,) for n, v in where.items() if said.get(n) != v})
    return f" {shown}" if shown else ""


_COUNTED = {
    Verdict.COSTS: "more expensive",
    Verdict.SAVES: "cheaper",
    Verdict.FREE: "not meaningfully different",
    Verdict.UNCLEAR: "undecided",
}


def _but_operation(place: Place) -> Mapping[str, Value]:
    return {name: value for name, value in place.at.items() if name != "op"}
