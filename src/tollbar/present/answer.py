"""The answer to a study's question: the choice in good standing that costs least, and what others cost beside it.

A cost is what was measured. That one thing costs more or less than another is said only where the two were judged
against each other, and where they could not be told apart that is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from tollbar.families import Degree, Standing, Value
from tollbar.judge import Compared, StudyJudgement, Toll, Verdict
from tollbar.present.against import against_baseline, break_even
from tollbar.present.blocks import Choices, CostBar
from tollbar.present.chart import frontier
from tollbar.present.company import company_sentences, is_asked
from tollbar.present.factors import factor_sentences, told_apart
from tollbar.present.groups import Place, Way, cost_metric, is_of_one_standing, options, places, real_tolls, told_by
from tollbar.present.names import (
    baseline_words,
    capitalised,
    cost_words,
    counted,
    each_words,
    enumeration,
    labels,
    on_one_core,
    place_words,
    quoted,
    sizes_of,
    standing_words,
    varying,
    where_words,
)
from tollbar.present.numbers import amount, percent, ratio_range, times
from tollbar.results import Row

# More names than this in one sentence hide the answer: then the least and the greatest speak for the rest.
MOST_NAMES = 3
# A line at the head of a page has room for so many findings; the answer below it has more.
MOST_IN_HEADLINE = 2
MOST_FINDINGS = 6
# What a small chart shows, and what is said beside it.
MOST_BARS = 5
MOST_STEPS = 2


def headline(study: StudyJudgement) -> str:
    """One line: the choice in good standing that costs least, its cost, and what the next one adds."""
    says = _of_no_alternatives(study)
    return says[0] if says else _Telling(study).headline


def _of_no_alternatives(study: StudyJudgement) -> tuple[str, ...]:
    """The answer of a study whose cells are not to be chosen among for their cost; empty where they are.

    Of factors, whether they add up; of threads that are compared with one, what becomes of them.
    """
    if told_apart(study):
        return factor_sentences(study)
    return company_sentences(study) if is_asked(study) else ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A study's answer, in words and as a small chart."""

    says: tuple[str, ...]
    """The headline, then a paragraph for each finding: what others in good standing cost, then the rest."""
    choices: Choices


def answer(study: StudyJudgement) -> tuple[str, ...]:
    """What the answer says: the headline, then a paragraph for each finding."""
    return whole_answer(study).says


def whole_answer(study: StudyJudgement) -> Answer:
    """The answer, with what may be taken in place of what costs least."""
    if says := _of_no_alternatives(study):
        return Answer(says, Choices(says[0]))
    telling = _Telling(study)
    told = telling.findings[:MOST_FINDINGS]
    rest = [telling.paragraph(finding, first=finding is told[0]) for finding in told]
    more = len(telling.findings) - MOST_FINDINGS
    if more > 0:
        rest.append(f"The charts show {counted(more, 'more place')} with another answer.")
    pays = (break_even(study, one) for one in study.break_evens)
    return Answer((telling.headline, *filter(None, rest), *pays, *company_sentences(study)), telling.choices)


@dataclass(frozen=True, slots=True)
class _Finding:
    """One answer, and the places where it holds."""

    first: str | None
    """The name of what has the least cost there in good standing; None where nothing is in good standing."""
    places: tuple[Place, ...]

    @property
    def operation(self) -> Value | None:
        """What is done there; None where the study has one operation only."""
        return self.places[0].at.get("op")


class _Telling:
    """One study's names, places and pairs, from which its sentences are made."""

    def __init__(self, study: StudyJudgement) -> None:
        self.study = study
        self.pairs = Compared(study)
        self.options = options(study)
        self.places = places(study, self.pairs)
        # That one is the cheapest rests on its comparisons with all others of its place in good standing, of which the
        # sentences tell a few: they hold together.
        self.compared = {
            p.good[0].row.key: max(len(p.good) - 1 + (p.null is not None), 1) for p in self.places if p.good
        }
        self.cpu = cost_words(study).cpu
        self.label = labels(study, told_by(study, self.options), whole=True)
        self.place = place_words(study)
        # Where a choice is what a reader has, its standing and strength are none of the answer.
        self.is_of_one_choice = any(place.is_of_one_choice for place in self.places)
        self.is_of_many_choices = self.is_of_one_choice and len(self.places) > MOST_IN_HEADLINE
        self.of_one_standing = self.is_of_one_choice or is_of_one_standing(study)
        bits = {row.strength for row in study.rows if row.standing is not Standing.NULL}
        self.has_strengths = len(bits - {None}) > 1 and not self.is_of_one_choice
        operations = {row.coordinates.get("op") for row in study.rows}
        self.only_operation = operations.pop() if len(operations) == 1 else None

    @cached_property
    def findings(self) -> tuple[_Finding, ...]:
        """The places gathered by their operation and by what has the least cost there, in the study's order."""
        found: dict[tuple[Value | None, str | None], list[Place]] = {}
        for place in self.places:
            name = self.label(place.good[0].row) if place.good else None
            found.setdefault((place.at.get("op"), name), []).append(place)
        # Operations stand together; of each, an answer before none, and what holds in most places first.
        operations = list(dict.fromkeys(operation for operation, _ in found))
        ordered = sorted(found.items(), key=lambda f: (operations.index(f[0][0]), f[0][1] is None, -len(f[1])))
        return tuple(_Finding(name, tuple(at)) for (_, name), at in ordered)

    def pair(self, row: Row, best: Row) -> Toll | None:
        """What is judged of a cell against the cheapest of its place, as one of the comparisons that this rests on."""
        return self.pairs.of(row, best, self.compared.get(best.key, 1))

    # The line.

    @property
    def headline(self) -> str:
        """What the whole study says in one line; of one finding, with what comes next."""
        return f"{self._in_short}{self._next(self.findings[0]) if len(self.findings) == 1 else ''}."

    @cached_property
    def _in_short(self) -> str:
        findings = self.findings
        if not findings:
            # Of the null choice alone there is no cheapest in good standing, but what was measured can be said.
            is_null = any(row.standing is Standing.NULL and row.trials for row in self.study.rows)
            return (against_baseline(self.study)[0] if is_null else self._nothing).rstrip(".")
        if self.is_of_many_choices:
            return (self._changes or against_baseline(self.study)[0]).rstrip(".")
        if len(findings) == 1:
            return self._line(findings[0], {})
        told = findings
        if len(findings) > MOST_IN_HEADLINE:
            # One of each operation, before a second of any.
            ahead = {f.operation: f for f in reversed(findings)}.values()
            chosen = sorted(findings, key=lambda f: f not in ahead)[:MOST_IN_HEADLINE]
            told = tuple(f for f in findings if f in chosen)
        lines = [self._line(told[0], {}, told)]
        for before, finding in pairwise(told):
            alike = self._where_of(before.places[0]) if before.operation == finding.operation else {}
            lines.append(self._line(finding, alike, told))
        hidden = sum(len(f.places) for f in findings if f not in told and f.first is not None)
        if hidden:
            lines.append(f"in {counted(hidden, 'more place')} the answer is another")
        return "; ".join(lines)

    @property
    def _changes(self) -> str:
        """What another library, or another key, changes for each of many choices: its verdicts, counted."""
        by_name: dict[str, list[Toll]] = {}
        for toll in real_tolls(self.study):
            if toll.ratio is not None:
                by_name.setdefault(self.label(toll.row), []).append(toll)
        said = []
        for name, tolls in by_name.items():
            counts = {of: sum(t.verdict is verdict for t in tolls) for verdict, of in _COUNTED.items()}
            parts = enumeration([f"{of} in {count}" for of, count in counts.items() if count])
            ratios = ratio_range([t.ratio for t in tolls if t.ratio is not None])
            said.append(f"{quoted(name)} is {parts} of {counted(len(tolls), 'cell')} ({ratios} of its {self.cpu})")
        against = quoted(baseline_words(self.study)) + on_one_core(self.study, self.study.about.baseline)
        return f"Against {against}, {'; '.join(said[:MOST_NAMES])}." if said else ""

    @property
    def _nothing(self) -> str:
        reasons = list(dict.fromkeys(r.reason for r in self.study.rows if r.reason))
        because = f" The first reason given: {reasons[0].rstrip('.')}." if reasons else ""
        return f"Nothing was measured.{because}"

    def _line(self, finding: _Finding, said: Mapping[str, Value], told: Sequence[_Finding] = ()) -> str:
        """`TLS 1.3 (128 bits): 94 µs a connection`; without what the line has said of where it stands.

        `told` is all that the line is of: one choice must do for both sides, so that what it costs in their operations
        stands beside its least cost.
        """
        operation = f"{finding.operation}: " if finding.operation is not None else ""
        if finding.first is None:
            least = finding.places[0].others[0]
            name = _with_standing(quoted(self.label(least.row)), least.row)
            costs = self._costs(finding, [finding.places[0]], said)
            none = "nothing recommended or acceptable was measured"
            opened = none if said or operation else capitalised(none)
            return f"{operation}{opened}; the least cost of the others is that of {name}, {costs}"
        name, best = self.label(finding.places[0].good[0].row), finding.places[0].good[0].row
        strengths = {place.good[0].row.strength for place in finding.places}
        # Where the places have strengths of their own, none of them is the answer's.
        bits = f" ({best.strength} bits)" if self.has_strengths and strengths == {best.strength} != {None} else ""
        costs = self._costs(finding, finding.places, said, told)
        said_of = f"{operation}{quoted(name)}{bits}, {costs}" if operation else f"{name}{bits}: {costs}"
        ways = finding.places[0].good
        # Where all protect alike, how far apart the ways are is the finding; after one operation there is little room.
        if operation and self.of_one_standing and len(finding.places) == 1 and len(ways) > MOST_NAMES:
            return f"{said_of} (the highest of {len(ways)} costs is {amount(max(way.cost for way in ways))})"
        return said_of

    def _costs(
        self, finding: _Finding, at: Sequence[Place], said: Mapping[str, Value], told: Sequence[_Finding] = ()
    ) -> str:
        """`94 µs a connection`; of several places the least and the most, with where they stand."""
        found = sorted(((p.good or p.ways)[0].cost, number) for number, p in enumerate(at))
        (least, first), (most, last) = found[0], found[-1]
        one_of = each_words(self.study, self.only_operation) if finding.operation is None else f"of {self.cpu}"
        unit = "" if said else f" {one_of}"
        one, other = self._where_of(at[first]), self._where_of(at[last])
        with_it = self._with_it(finding, at[first], told)
        if first == last:
            return f"{amount(least)}{unit}{self._at(one, said)}{f' ({with_it})' if with_it else ''}"
        joint = " to" if len(found) > 2 else ","
        ends = ("; ".join(filter(None, (self._at(one, said).strip(), with_it))), self._at(other, one).strip())
        at_least, at_most = (f" ({end})" if end else "" for end in ends)
        return f"{amount(least)}{unit}{at_least}{joint} {amount(most)}{at_most}"

    def _with_it(self, finding: _Finding, at: Place, told: Sequence[_Finding]) -> str:
        """`verify with it: 52 µs`: at the same place, of the other operations that are told of another choice."""
        operations = {f.operation for f in told} - {f.operation for f in told if f.first == finding.first}
        alike = [place for place in self.places if _but_operation(place) == _but_operation(at)]
        ways = [(place.at.get("op"), way) for place in alike for way in place.ways]
        said = {
            operation: f"{operation} with it: {amount(way.cost)}"
            for operation, way in ways
            if operation in operations and self.label(way.row) == finding.first
        }
        return ", ".join(said.values())

    def _where_of(self, place: Place) -> dict[str, Value]:
        """Where a cost stands: its size, without which it says nothing, and what tells the place from others."""
        sizes = sizes_of(self.study, place.ways[0].row.coordinates) if cost_metric(self.study) == "cpu" else {}
        return sizes | {name: value for name, value in place.at.items() if name != "op"}

    def _at(self, where: Mapping[str, Value], said: Mapping[str, Value]) -> str:
        shown = where_words(self.study, {n: (v,) for n, v in where.items() if said.get(n) != v})
        return f" {shown}" if shown else ""

    def _next(self, finding: _Finding) -> str:
        """What follows in the headline: the next in good standing, else one that is not, else none."""
        place = finding.places[0]
        if finding.first is None or len(finding.places) > 1 or self.is_of_many_choices:
            return ""
        best, *rest = place.good
        if self.of_one_standing and len(rest) > 1:
            return f"; {self._highest(rest[-1], best)}"
        if rest or place.others:
            return f"; {self._compared([*rest, *place.others][0], best)}"
        return "".join(f"; {said}" for said in self._protection(place))

    # The paragraphs.

    def paragraph(self, finding: _Finding, *, first: bool) -> str:
        """One finding in full: how many it is the cheapest of, the others in good standing, the rest, and none."""
        place = finding.places[0]
        sentences = [] if finding.first is None else [self._counted(finding, first), *self._among(place)]
        sentences += [self._not_good(place), *self._protection(place)]
        where = self._head(place)
        head = f"{capitalised(where)}: " if where else ""
        opening, *others = filter(None, sentences)
        said = [f"{head}{opening if head else capitalised(opening)}.", *(f"{capitalised(o)}." for o in others)]
        return " ".join(said)

    def _counted(self, finding: _Finding, first: bool) -> str:
        """How many it is the cheapest of, or which of them it is not told apart from; and in how many places."""
        name = "it" if len(self.findings) == 1 else quoted(finding.first or "")
        whose = f"by {cost_words(self.study).in_sentence}, " if first and cost_metric(self.study) != "cpu" else ""
        return "; ".join([self._ranked(finding.places[0], name, whose), *self._elsewhere(finding.places[1:])])

    def _ranked(self, place: Place, name: str, whose: str = "") -> str:
        """How many of its place the first is the cheapest of, or which of them it is not told apart from."""
        standing = "" if self.of_one_standing else " in good standing"
        open_ = self._not_told(place)
        if len(place.good) == 1:
            return f"{whose}{name} is the only one{standing} that was measured"
        if not open_:
            return f"{whose}{name} is the cheapest of {len(place.good)}{standing}"
        least = f"{name} has the least cost, not told apart from {self._few(open_)}"
        # A baseline that is free against a lower cost comes first, and has not the least.
        lower = [way for way in open_ if way.cost < place.good[0].cost]
        if lower:
            least = f"{name} costs the same within {percent(self.study.about.worth)} as {self._few(lower)}"
        return f"{whose}of {len(place.good)}{standing} {least}"

    def _few(self, ways: Sequence[Way]) -> str:
        if len(ways) > MOST_NAMES:
            return f"{len(ways)} of them"
        return enumeration([quoted(self.label(way.row)) for way in ways])

    def _head(self, place: Place) -> str:
        """Which place of the study it is, where there are several: `encrypt, at 4 KiB, on openssl 3.0.19`."""
        at = {name: (value,) for name, value in place.at.items() if name != "op"}
        return ", ".join(filter(None, (str(place.at.get("op", "")), where_words(self.study, at))))

    def _elsewhere(self, more: Sequence[Place]) -> Iterator[str]:
        """In how many further places it is the cheapest too, as far as the run can tell."""
        alone = sum(len(place.good) == 1 for place in more)
        open_ = sum(bool(self._not_told(place)) for place in more)
        for number, what in (
            (len(more) - alone - open_, "is the cheapest too"),
            (open_, "has the least cost, or one that is not told apart from it"),
            (alone, "is the only one"),
        ):
            if number:
                yield f"in {counted(number, 'more place')} it {what}"

    def _not_told(self, place: Place) -> list[Way]:
        """Those in good standing that are not judged to cost more than the first one."""
        best, *rest = place.good
        judged = [(way, self.pair(way.row, best.row)) for way in rest]
        return [way for way, toll in judged if toll is None or toll.verdict is not Verdict.COSTS]

    def _among(self, place: Place) -> list[str]:
        """What the others in good standing cost beside it."""
        best, *rest = place.good
        if len(rest) <= MOST_NAMES:
            return [enumeration([self._compared(way, best) for way in rest])]
        standing = "" if self.of_one_standing else " in good standing"
        last = rest[-1]
        said = [f"of the {len(rest)} others{standing}, {self._compared(rest[0], best)}; {self._highest(last, best)}"]
        judged = [self.pair(way.row, best.row) for way in rest[1:-1]]
        undecided = sum(pair is not None and pair.verdict is Verdict.UNCLEAR for pair in judged)
        if undecided:
            cost = "it costs" if undecided == 1 else "they cost"
            said.append(f"for {undecided} of the rest the run cannot tell whether {cost} more")
        return said + self._stronger(place)

    def _stronger(self, place: Place) -> list[str]:
        """What has the least cost in good standing of each strength above that of the first."""
        return [
            f"for {way.row.strength} bits the least cost is that of {quoted(self.label(way.row))}, {amount(way.cost)}"
            for way in self._above(place)
        ][:MOST_NAMES]

    def _above(self, place: Place) -> list[Way]:
        best = place.good[0]
        if not self.has_strengths or best.row.strength is None:
            return []
        found = {(way.row.strength, way.cost): way for way in reversed(place.good) if way.row.strength is not None}
        above = [found[step] for step in frontier([(bits, cost) for bits, cost in found if bits is not None])]
        return [way for way in above if (way.row.strength or 0) > best.row.strength]

    # What else to take, and what that adds.

    @property
    def choices(self) -> Choices:
        """The answer in short, and of the first place that has one: how sure that is, what adds what, and the costs."""
        if self.study.about.family.is_rehearsal:
            return Choices(against_baseline(self.study)[0])
        said = Choices(f"{self._in_short}.")
        finding = next((finding for finding in self.findings if finding.first is not None), None)
        if finding is None or self.is_of_many_choices:
            return said
        place = finding.places[0]
        best, *rest = place.good
        adds = self._adds(place)
        steps = [f"{capitalised(why)}: {self._beside_all(way, best)}" for way, why in adds]
        if not steps:
            steps = [self._beside_all(way, best) for way in rest[-1 if self.of_one_standing else 0 :][:1]]
        head = self._head(place) if len(self.places) > 1 else ""
        steps = [self._ranked(place, "it" if not head else quoted(finding.first or "")), *steps]
        shown = [best, *(way for way, _ in adds)]
        shown += [way for way in rest if way not in shown][: max(MOST_BARS - len(shown), 0)]
        some = f"; {len(shown)} of {len(place.good)}" if len(shown) < len(place.good) else ""
        bars = self._bars([way for way in place.good if way in shown]) if rest else ()
        hollow = "; hollow: not told apart" if not all(bar.is_told for bar in bars) else ""
        return replace(
            said,
            steps=[f"{capitalised(step)}." for step in steps],
            bars=bars,
            caption=f"{cost_words(self.study).title}{f': {head}' if head else ''}{some}{hollow}",
        )

    def _bars(self, ways: Sequence[Way]) -> tuple[CostBar, ...]:
        largest = max(way.cost for way in ways)
        vary = varying([way.row for way in ways])
        name = labels(self.study, [n for n in told_by(self.study, self.options) if n in vary] or ["choice"], whole=True)
        pairs = [self.pair(way.row, ways[0].row) for way in ways]
        return tuple(
            CostBar(
                name(way.row),
                way.row.standing,
                amount(way.cost),
                way.cost / largest,
                way is ways[0] or (pair is not None and pair.verdict in (Verdict.COSTS, Verdict.SAVES)),
            )
            for way, pair in zip(ways, pairs, strict=True)
        )

    def _adds(self, place: Place) -> list[tuple[Way, str]]:
        """Of those in good standing what is more than the first, and in what: its standing, bits, a threat mitigated.

        For each of these what costs least; those that are more in most things, in the order of their costs.
        """
        best, *rest = place.good
        family = self.study.about.family
        wanted = {f"{way.row.strength} bits": way for way in self._above(place)[:1]}
        if best.row.standing is not Standing.RECOMMENDED:
            wanted |= dict([("recommended", way) for way in rest if way.row.standing is Standing.RECOMMENDED][:1])
        known = best.row.choice in family.choices
        done = {way.row.key: family.mitigations_of(way.row.coordinates) if known else {} for way in place.good}
        for threat in (name for name, own in done[best.row.key].items() if own.degree is not Degree.YES):
            better = [way for way in rest if done[way.row.key][threat].degree is Degree.YES]
            if better:
                wanted[threat] = better[0]
        adds: dict[str, list[str]] = {}
        for why, way in wanted.items():
            adds.setdefault(way.row.key, []).append(why)
        kept = sorted(adds, key=lambda key: -len(adds[key]))[:MOST_STEPS]
        return [(way, self._more_of(adds[way.row.key])) for way in rest if way.row.key in kept]

    def _more_of(self, adds: Sequence[str]) -> str:
        """`256 bits, recommended, against tampering and nonce misuse`."""
        threats = [why.replace("-", " ") for why in adds if why in self.study.about.family.threats]
        others = [why for why in adds if why not in self.study.about.family.threats]
        return ", ".join([*others, *([f"against {enumeration(threats)}"] if threats else [])])

    def _beside_all(self, way: Way, best: Way) -> str:
        """The same as `_compared`, with the interval of the ratio; or that there is no verdict."""
        pair, said = self.pair(way.row, best.row), self._compared(way, best)
        if pair is None or pair.ratio is None:
            return f"{said}, not compared"
        said = f"{said.partition(' (the run')[0]}, not told apart" if pair.verdict is Verdict.UNCLEAR else said
        return f"{said.removesuffix(_times(pair))} ({ratio_range([pair.ratio])})"

    def _not_good(self, place: Place) -> str:
        """What those that are deprecated or worse would save or cost."""
        bad, best = place.others, next(iter(place.good), None)
        if len(bad) <= MOST_NAMES:
            return enumeration([self._compared(way, best) for way in bad])
        return f"of {len(bad)} not in good standing, {self._compared(bad[0], best)}; {self._highest(bad[-1], best)}"

    def _protection(self, place: Place) -> list[str]:
        """What there is without any protection, and so what protection costs."""
        null, best = place.null, next(iter(place.good), None)
        if null is None:
            return []
        without = f"without any ({self.label(null.row)}) it is {amount(null.cost)}"
        pair = self.pairs.of(best.row, null.row, self.compared.get(best.row.key, 1)) if best else None
        if best is None or pair is None:
            return [without]
        costs = f"{amount(best.cost - null.cost)} of it" if best.cost > null.cost else "something"
        said = {
            Verdict.COSTS: f"protection costs {costs}{_times(pair)}",
            Verdict.FREE: f"protection is free within {percent(self.study.about.worth)}",
            Verdict.UNCLEAR: "whether protection costs anything, the run cannot tell",
            Verdict.SAVES: f"protection costs nothing{_times(pair)}",
        }[pair.verdict]
        return [f"{said}: {without}"]

    # One beside another.

    def _compared(self, way: Way, best: Way | None) -> str:
        """`ChaCha20-Poly1305 costs 2 µs more (× 1.24)`; with x25519mlkem768 it costs …`."""
        it = "it " if best is not None and way.row.choice == best.row.choice else ""
        return f"{self._named(way, best)} {it}{self._beside(way, best)}"

    def _highest(self, way: Way, best: Way | None) -> str:
        highest = ", the highest cost measured" if best is None or way.cost >= best.cost else ""
        return f"{self._compared(way, best)}{highest}"

    def _beside(self, way: Way, best: Way | None) -> str:
        """What is judged of one beside the best; its cost alone where nothing is."""
        takes = f"takes {amount(way.cost)}"
        pair = self.pair(way.row, best.row) if best else None
        if best is None or pair is None:
            return takes
        would = "costs" if self._is_good(way) else "would cost"
        apart = abs(way.cost - best.cost)
        # Two costs by themselves may contradict the two side by side; then the ratio speaks alone.
        fits = (way.cost > best.cost) is (pair.verdict is Verdict.COSTS)
        return {
            Verdict.COSTS: f"{would} {f'{amount(apart)} ' if fits else ''}more{_times(pair)}",
            Verdict.SAVES: f"would save {amount(apart)}{_times(pair)}" if fits else f"{would} less{_times(pair)}",
            Verdict.FREE: f"{would} the same within {percent(self.study.about.worth)}",
            Verdict.UNCLEAR: f"{takes} (the run cannot tell whether that is more)",
        }[pair.verdict]

    def _named(self, way: Way, best: Way | None) -> str:
        """By what tells it from the best one where both are of one choice; its standing where it is not good."""
        name = quoted(self.label(way.row))
        if best is not None and way.row.choice == best.row.choice:
            differ = {n: v for n, v in way.row.coordinates.items() if n in self.options}
            differ = {n: v for n, v in differ.items() if best.row.coordinates.get(n) != v}
            on = {n: (v,) for n, v in differ.items() if n in ("bed", "provider")}
            set_to = self.place(differ, [n for n in differ if n not in on])
            where = where_words(self.study, on) + on_one_core(self.study, on)
            name = ", ".join(filter(None, (where, f"with {set_to}" if set_to else ""))) or name
        return name if self._is_good(way) else _with_standing(name, way.row)

    def _is_good(self, way: Way) -> bool:
        return way.is_good or self.is_of_one_choice


_COUNTED = {
    Verdict.COSTS: "dearer",
    Verdict.SAVES: "cheaper",
    Verdict.FREE: "not meaningfully different",
    Verdict.UNCLEAR: "undecided",
}


def _but_operation(place: Place) -> Mapping[str, Value]:
    return {name: value for name, value in place.at.items() if name != "op"}


def _with_standing(name: str, row: Row) -> str:
    return f"{name} ({standing_words(row.standing)})"


def _times(pair: Toll) -> str:
    return f" ({times(pair.ratio.estimate)})" if pair.ratio else ""
