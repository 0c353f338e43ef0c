"""Sentences that compare the ways of one place with its answer: savings with losses, gains with costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence

from tollbar.analysis import Toll, Verdict
from tollbar.catalog.families import Degree, Family, Standing, Value, given_up
from tollbar.core.words import enumeration, quoted
from tollbar.report.chart import frontier
from tollbar.report.coordinates import named_value, value_words
from tollbar.report.numbers import amount, percent, times
from tollbar.report.standings import STANDINGS, standing_words
from tollbar.report.ways import Place, Way
from tollbar.results import Row

# More names than this in one sentence hide the answer: then the least and the greatest represent the rest.
MOST_NAMES = 3
# More steps up than this need a table, which the report has.
MOST_STEPS = 2
# Verdict on two costs, as in the tables.
CANNOT_DISTINGUISH = "unclear"


class Steps(ABC):
    """Sentences on the ways of a place compared with its answer."""

    noun = "option{} in good standing"
    """Name of one of `Place.good`."""

    def __init__(
        self,
        family: Family,
        threshold: float,
        rows: Iterable[Row],
        options: Sequence[str],
        label: Callable[[Row], str],
        *,
        is_of_one_choice: bool = False,
        of_one_standing: bool = False,
    ) -> None:
        self.family, self.threshold = family, threshold
        self.options, self.label = options, label
        # If the choice is given, its standing and strength do not belong to the answer.
        self.is_of_one_choice = is_of_one_choice
        self.of_one_standing = of_one_standing
        bits = {row.strength for row in rows if row.standing.is_of_option}
        self.has_strengths = len(bits - {None}) > 1 and not is_of_one_choice

    @abstractmethod
    def pair(self, row: Row, best: Row) -> Toll | None:
        """Return the toll of a cell against its place's answer, as one of the comparisons that the answer rests on."""

    @abstractmethod
    def differing(self, differ: Mapping[str, Value]) -> str:
        """Return the coordinates of a way that differ from those of the answer: `with x25519`."""

    def ranked(self, place: Place, name: str, whose: str = "") -> str:
        """Return the rank of the answer by cost, and the ways from which no verdict separates it."""
        others = len(place.good) - 1
        if not others:
            return f"{whose}{name} is the only {self.options_words(1)} measured"
        less, open_ = self._less(place), self._open(place)
        if less:
            costs = "costs" if len(less) == 1 else "cost"
            said = [f"{self._share(len(less), others)} {costs} less than {name}", *self._undecided(name, open_)]
        elif open_:
            said = self._order(place, name, open_)
        else:
            said = [f"{name} is the cheapest of {len(place.good)} {self.options_words(len(place.good))}"]
        return f"{whose}{'; '.join(said)}"

    def options_words(self, number: int) -> str:
        """Return `options in good standing`: recommended or acceptable; `options` where all have one standing."""
        noun = "option{}" if self.of_one_standing else self.noun
        return noun.format("" if number == 1 else "s")

    def _share(self, number: int, others: int) -> str:
        """Return `the other option`, `all 3 other options` or `2 of the 3 other options`."""
        if others == 1:
            return f"the other {self.options_words(1)}"
        some = "all" if number == others else f"{number} of the"
        return f"{some} {others} other {self.options_words(others)}"

    def _undecided(self, name: str, open_: Mapping[Verdict | None, Sequence[Way]]) -> list[str]:
        """Return a clause for each reason why no verdict separates the answer from some ways."""
        said = []
        for verdict, ways in open_.items():
            few = self._few(ways)
            said.append(
                {
                    Verdict.FREE: f"{name} costs the same within {percent(self.threshold)} as {few}",
                    Verdict.UNCLEAR: f"this run cannot distinguish {name} from {few}",
                    None: f"{name} was not compared with {few}",
                }[verdict]
            )
            name = "it"
        return said

    def _order(self, place: Place, name: str, open_: Mapping[Verdict | None, Sequence[Way]]) -> list[str]:
        """Return the rank of an answer that no way is judged to undercut, and the ways that may."""
        assert place.answer is not None
        lower = {verdict for verdict, ways in open_.items() for way in ways if way.cost < place.answer.cost}
        of = f"{len(place.good)} {self.options_words(len(place.good))}"
        if not lower:
            return [f"{name} has the lowest cost of {of}", *self._undecided("it", open_)]
        # A baseline that is free against a lower cost comes first, though its cost is not the least.
        if lower == {Verdict.FREE}:
            return self._undecided(name, open_)
        return [f"no other of {of} is known to cost less than {name}", *self._undecided("it", open_)]

    def others(self, place: Place) -> list[Way]:
        """Return the ways of `Place.good` other than the answer, the cheapest first."""
        return [way for way in place.good if way is not place.answer]

    def _less(self, place: Place) -> list[Way]:
        """Return the recommended or acceptable ways judged to cost less than the answer, the cheapest first."""
        return [way for way in self.others(place) if self._verdict(way, place) is Verdict.SAVES]

    def costs_more(self, place: Place) -> bool:
        """Return whether another recommended or acceptable way is judged to cost less than the answer."""
        return bool(self._less(place))

    def _open(self, place: Place) -> Mapping[Verdict | None, Sequence[Way]]:
        """Return the recommended or acceptable ways that cost neither more nor less than the answer, by their verdict.

        The verdict is *free* or *unclear*; None for ways that were not compared with the answer.
        """
        found = [(self._verdict(way, place), way) for way in self.others(place)]
        by_verdict = {
            verdict: [way for its, way in found if its is verdict] for verdict in (Verdict.FREE, Verdict.UNCLEAR, None)
        }
        return {verdict: ways for verdict, ways in by_verdict.items() if ways}

    def _verdict(self, way: Way, place: Place) -> Verdict | None:
        pair = self.pair(way.row, place.answer.row) if place.answer else None
        return pair.verdict if pair else None

    def _few(self, ways: Sequence[Way]) -> str:
        if len(ways) > MOST_NAMES:
            return f"{len(ways)} of them"
        return enumeration([quoted(self.label(way.row)) for way in ways])

    def above(self, place: Place) -> list[Way]:
        """Return the cheapest way of each strength above the answer's, the weakest first."""
        best = place.answer
        if not self.has_strengths or best is None or best.row.strength is None:
            return []
        found = {(way.row.strength, way.cost): way for way in reversed(place.good) if way.row.strength is not None}
        above = [found[step] for step in frontier([(bits, cost) for bits, cost in found if bits is not None])]
        return [way for way in above if (way.row.strength or 0) > best.row.strength]

    def next_ones(self, place: Place) -> list[str]:
        """Return the losses of a cheaper way and the gains of a stronger one; else the next by cost, if any."""
        best, rest = place.answer, self.others(place)
        cheaper = [self.cheaper(place)] if self.cheaper(place) else []
        if self.of_one_standing and len(rest) > 1:
            return [*cheaper, self.highest(rest[-1], best)]
        stronger = [self.compared(way, best, self.gain_words(way, adds)) for way, adds in self.stronger(place)[:1]]
        if found := [*dict.fromkeys([*cheaper, *stronger])]:
            return found
        return [self.compared(way, best) for way in [*rest, *place.others][:1]]

    def cheaper(self, place: Place) -> str:
        """Return the saving of the cheapest approved way and the threats it gives up; empty if none saves."""
        less = self._less(place)
        if not less or place.answer is None:
            return ""
        adds = next((self.gain_words(way, adds) for way, adds in self.stronger(place) if way is less[0]), "")
        # The first screen names the threats; conditions of partial protection are in the paragraph and the table below.
        said = self.with_losses(less[0], place.answer, adds, with_condition=False)
        return f"{said}{self._why_default(place, less[0])}"

    def _why_default(self, place: Place, way: Way) -> str:
        """Return why the family's default is the answer although another choice costs less and gives up no threat."""
        best, default = place.answer, self.family.default
        assert best is not None
        if default is None or place.default is not None or self.is_of_one_choice or way.row.choice == best.row.choice:
            return ""
        return "" if self.lost(way, best) else f"; {self.label(best.row)} is the default because {default.reason}"

    def with_losses(self, way: Way, best: Way, adds: str = "", *, with_condition: bool = True) -> str:
        """Return a way's cost compared with the answer's, and the threats that a cheaper way gives up."""
        pair = self.pair(way.row, best.row)
        lost = self.lost(way, best) if pair and pair.verdict is Verdict.SAVES else ()
        losses = self.loss_words(way, lost, "gives up protection against", with_condition=with_condition)
        return enumeration([self.compared(way, best, adds), *losses])

    def stronger(self, place: Place) -> list[tuple[Way, Sequence[str]]]:
        """Return the ways that add bits, standing or a mitigated threat and give up nothing, each with its gains.

        A gain is `256 bits`, `recommended`, or the name of a threat.

        The cheapest of each gain; at most `MOST_STEPS` that add most, in the order of their costs.
        """
        best = place.answer
        if best is None:
            return []
        able = [way for way in self.others(place) if not self.lost(way, best) and not is_below(way, best)]
        wanted = {f"{way.row.strength} bits": way for way in [way for way in self.above(place) if way in able][:1]}
        if best.row.standing is not Standing.RECOMMENDED:
            wanted |= dict([("recommended", way) for way in able if way.row.standing is Standing.RECOMMENDED][:1])
        for way in able:
            for threat in self.lost(best, way):
                wanted.setdefault(threat, way)
        adds: dict[str, list[str]] = {}
        for why, way in wanted.items():
            adds.setdefault(way.row.key, []).append(why)
        kept = sorted(adds, key=lambda key: -len(adds[key]))[:MOST_STEPS]
        return [(way, adds[way.row.key]) for way in able if way.row.key in kept]

    def lost(self, way: Way, best: Way) -> tuple[str, ...]:
        """Return the threats that one way mitigates less than another."""
        family = self.family
        if self.is_of_one_choice or not {way.row.choice, best.row.choice} <= family.choices.keys():
            return ()
        return given_up(family, way.row.coordinates, best.row.coordinates)

    def gain_words(self, way: Way, adds: Sequence[str]) -> str:
        """Return gains as properties of a way: `256 bits, recommended, against tampering, in part against relay`."""
        others, wholly, partly = self._gains(way, adds)
        said = [*others, *([f"against {threat_words(wholly)}"] if wholly else [])]
        return ", ".join([*said, *([f"in part against {threat_words(partly)}"] if partly else [])])

    def purpose(self, way: Way, adds: Sequence[str]) -> str:
        """Return gains as a purpose: `for 256-bit strength`, `for protection against tampering`."""
        others, wholly, partly = self._gains(way, adds)
        said = [
            "a recommended standing" if why == "recommended" else f"{why.removesuffix(' bits')}-bit strength"
            for why in others
        ]
        said += [f"protection against {threat_words(wholly)}"] if wholly else []
        said += [f"partial protection against {threat_words(partly)}"] if partly else []
        return f"for {enumeration(said)}"

    def _gains(self, way: Way, adds: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
        """Return the gains that are no threats, the threats that the way mitigates, and those mitigated in part."""
        done = self.family.mitigations_of(way.row.coordinates) if self.family.threats else {}
        wholly = [why for why in adds if why in done and done[why].degree is Degree.YES]
        partly = [why for why in adds if why in done and why not in wholly]
        return [why for why in adds if why not in done], wholly, partly

    def open_to(self, place: Place, threats: Sequence[str]) -> str:
        """Return that the answer leaves threats open which the family's default mitigates."""
        assert place.answer is not None
        losses = enumeration(self.loss_words(place.answer, threats, "is open to"))
        return f"unlike the default ({self.default_words(place)}), it {losses}"

    def loss_words(self, way: Way, lost: Sequence[str], loses: str, *, with_condition: bool = False) -> list[str]:
        """Return `gives up protection against tampering`, and `protects only in part against forgery`.

        `with_condition` adds the condition of partial protection, if all have the same one.
        """
        done = self.family.mitigations_of(way.row.coordinates) if lost else {}
        gone = [threat for threat in lost if done[threat].degree is Degree.NO]
        partly = [threat for threat in lost if threat not in gone]
        said = [f"{loses} {threat_words(gone)}"] if gone else []
        if partly:
            conditions = {done[threat].condition for threat in partly}
            only = f" ({conditions.pop()})" if with_condition and len(conditions) == 1 else ""
            said.append(f"protects only in part against {threat_words(partly)}{only}")
        return said

    def default_words(self, place: Place) -> str:
        """Return the default by its difference from the answer: `TLS 1.3`, `x25519mlkem768`; empty where they agree."""
        if place.default is None or place.answer is None:
            return ""
        family, own = self.family, place.answer.row.coordinates
        differ = {name: value for name, value in place.default.items() if own.get(name) != value}
        # Settings that only another choice has come with it: count those that both have.
        there = [name for name in differ if name in own and name != "choice" and family.settings[name].about]
        choice = [value_words(family, "choice", differ["choice"])] if "choice" in differ else []
        return ", ".join([*choice, *(named_value(family, name, differ[name]) for name in there)])

    def compared(self, way: Way, best: Way | None, adds: str = "") -> str:
        """Return `ChaCha20-Poly1305 (256 bits) costs 2 µs more (× 1.24)`; `with x25519mlkem768 it costs …`."""
        it = "it " if best is not None and way.row.choice == best.row.choice else ""
        return f"{self._named(way, best)}{f' ({adds})' if adds else ''} {it}{self._beside(way, best)}"

    def highest(self, way: Way, best: Way | None) -> str:
        """Return the comparison of the last way of a place, and whether its cost is the highest there."""
        highest = ", the highest cost measured" if best is None or way.cost >= best.cost else ""
        return f"{self.compared(way, best)}{highest}"

    def _beside(self, way: Way, best: Way | None) -> str:
        """Return the judgement of one way compared with the best; its cost alone without one."""
        alone = f"costs {way.words}"
        if best is None:
            return alone
        pair = self.pair(way.row, best.row)
        if pair is None:
            return f"{alone} (not compared)"
        would, saves = ("costs", "saves") if self._is_good(way) else ("would cost", "would save")
        apart = amount(abs(way.cost - best.cost))
        # Noisy costs are of other moments than their ratio, and may contradict it; then only the ratio is printed.
        is_noisy = way.is_noisy or best.is_noisy
        fits = not is_noisy and (way.cost > best.cost) is (pair.verdict is Verdict.COSTS)
        return {
            Verdict.COSTS: f"{would} {f'{apart} ' if fits else ''}more{times_words(pair)}",
            Verdict.SAVES: (f"{saves} {apart}" if fits else f"{would} less") + times_words(pair),
            Verdict.FREE: f"{would} the same within {percent(self.threshold)}",
            Verdict.UNCLEAR: f"{alone} ({CANNOT_DISTINGUISH})",
        }[pair.verdict]

    def _named(self, way: Way, best: Way | None) -> str:
        """Return the difference from the best way if both have one choice, else the name; with a bad standing."""
        name = quoted(self.label(way.row))
        if best is not None and way.row.choice == best.row.choice:
            differ = {n: v for n, v in way.row.coordinates.items() if n in self.options}
            name = self.differing({n: v for n, v in differ.items() if best.row.coordinates.get(n) != v}) or name
        return name if self._is_good(way) else with_standing(name, way.row)

    def _is_good(self, way: Way) -> bool:
        return way.is_good or self.is_of_one_choice


def is_below(way: Way, best: Way) -> bool:
    """Return whether the first way has a worse standing."""
    return STANDINGS.index(way.row.standing) > STANDINGS.index(best.row.standing)


def threat_words(threats: Sequence[str]) -> str:
    """Return `tampering and nonce misuse`."""
    return enumeration([threat.replace("-", " ") for threat in threats])


def with_standing(name: str, row: Row) -> str:
    """Return `md5 (broken)`."""
    return f"{name} ({standing_words(row.standing)})"


def times_words(pair: Toll) -> str:
    """Return ` (× 1.24)`, if there is a ratio."""
    return f" ({times(pair.ratio.estimate)})" if pair.ratio else ""
