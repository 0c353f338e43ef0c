"""The tolls of runs side by side: a row a toll, a column a machine, and processor flags that go with verdicts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tollbar.families import Standing, Value
from tollbar.gathering.kept import KeptCell, KeptStudy, KeptToll, Scalar
from tollbar.gathering.reading import Fingerprint, Found, Unusable
from tollbar.judge import Verdict
from tollbar.machine import KNOWN_LATER, differences
from tollbar.results.reading import uncollected

DECIDED = (Verdict.COSTS, Verdict.SAVES, Verdict.FREE)
# On either side of a flag: whatever one processor has by itself goes with its verdict.
FEWEST_PROCESSORS = 2


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, as its fingerprint tells it: two that say the same are one."""

    fingerprint: Fingerprint
    runs: list[int] = field(default_factory=list)
    """By their places among all runs."""

    @property
    def processor(self) -> str:
        """Its model, whatever the machine is otherwise."""
        return self.fingerprint.cpu


@dataclass(frozen=True, slots=True)
class Observation:
    """What one study of one run found of a toll."""

    run: int
    study: KeptStudy
    toll: KeptToll

    @property
    def cell(self) -> KeptCell:
        return self.study.cells[self.toll.cell]


@dataclass(frozen=True)
class Place:
    """A toll on one machine: what every run there found of it. Nothing is estimated of several together."""

    seen: list[Observation]

    @cached_property
    def ratios(self) -> list[KeptToll]:
        """Those that have one."""
        return [one.toll for one in self.seen if one.toll.ratio is not None]

    @cached_property
    def verdict(self) -> Verdict | None:
        """That of every run that has a ratio; unclear where some are; None where runs contradict one another."""
        found = {toll.verdict for toll in self.ratios} or {Verdict.NOT_MEASURED}
        if len(found) == 1:
            return found.pop()
        return Verdict.UNCLEAR if len(found - {Verdict.UNCLEAR}) == 1 else None


@dataclass(frozen=True)
class TollRow:
    """A toll: one cell over its baseline, wherever it was measured."""

    family: str
    cost: str
    load: str
    """A digest of what users ask of a server, and how."""
    parameters: Mapping[str, Mapping[str, Scalar]]
    """What its choice and its baseline's are performed with."""
    worth: float
    at: Mapping[str, Value]
    """The cell's coordinates, its provider without a version."""
    over: Mapping[str, Value]
    """Its baseline's."""
    standing: Standing
    """As the newest of its runs has it."""
    places: dict[int, Place] = field(default_factory=dict)
    """By the machine's place among all machines."""

    @cached_property
    def verdicts(self) -> dict[int, Verdict]:
        """What is decided, by machine."""
        return {
            number: place.verdict
            for number, place in self.places.items()
            if place.verdict is not None and place.verdict in DECIDED
        }

    @property
    def is_measured(self) -> bool:
        """Whether any run has a ratio."""
        return any(place.ratios for place in self.places.values())

    @cached_property
    def machines_differ(self) -> bool:
        return len({*self.verdicts.values()}) > 1

    @cached_property
    def runs_differ(self) -> bool:
        """Whether runs of one machine contradict one another."""
        return any(place.verdict is None for place in self.places.values())

    @property
    def differs(self) -> bool:
        """Whether machines, or runs of one of them, contradict one another."""
        return self.machines_differ or self.runs_differ


@dataclass(frozen=True, slots=True)
class Pattern:
    """Flags that all processors of one verdict have, and none of another verdict's: no cause: more goes with them."""

    flags: tuple[str, ...]
    have: Verdict
    """Of processors that have them."""
    lack: Verdict
    """Of those without."""
    processors: tuple[int, int]
    """How many have them and how many do not, at the least among the rows."""
    rows: list[TollRow]


@dataclass(frozen=True, slots=True)
class Gathered:
    """All that is said of many runs."""

    runs: tuple[Found, ...]
    """Those that could be read."""
    machines: tuple[Machine, ...]
    """Of processors in the order of their names."""
    rows: tuple[TollRow, ...]
    patterns: tuple[Pattern, ...]
    unusable: tuple[Unusable, ...]


def gather(found: Sequence[Found | Unusable]) -> Gathered:
    """Sets the tolls of these runs side by side."""
    runs = tuple(one for one in found if isinstance(one, Found))
    machines = _machines(runs)
    with uncollected():
        rows = _rows(runs, machines)
    unusable = tuple(one for one in found if isinstance(one, Unusable))
    return Gathered(runs, machines, rows, tuple(_patterns(rows, machines)), unusable)


def _machines(runs: Sequence[Found]) -> tuple[Machine, ...]:
    alike: dict[str, list[Machine]] = defaultdict(list)
    for number, run in enumerate(runs):
        facts = run.fingerprint.model_dump()
        # What one of two cannot know yet keeps them from being one machine by their texts.
        known = json.dumps({name: fact for name, fact in facts.items() if name not in KNOWN_LATER}, sort_keys=True)
        same = (one for one in alike[known] if not differences(one.fingerprint.model_dump(), facts))
        machine = next(same, None)
        if machine is None:
            machine = Machine(run.fingerprint)
            alike[known].append(machine)
        machine.runs.append(number)
    found = (machine for some in alike.values() for machine in some)
    return tuple(sorted(found, key=lambda machine: (machine.processor, machine.runs)))


def _rows(runs: Sequence[Found], machines: Sequence[Machine]) -> tuple[TollRow, ...]:
    rows: dict[tuple[object, ...], TollRow] = {}
    machine_of = {run: number for number, machine in enumerate(machines) for run in machine.runs}
    # The newest first: its standings are those that are shown.
    for number in sorted(range(len(runs)), key=lambda number: runs[number].began_s or 0.0, reverse=True):
        for study in runs[number].studies:
            # What a choice is performed with tells it from one of the same name elsewhere.
            performed = {name: json.dumps(with_, sort_keys=True) for name, with_ in study.parameters.items()}
            cells = [(frozenset(at.items()), performed.get(str(at.get("choice")))) for at, *_ in study.cells]
            same = study.family, study.cost, study.load, study.worth
            for toll in study.tolls:
                cell, over = study.cells[toll.cell], study.cells[toll.over]
                row = rows.get(key := (*same, cells[toll.cell], cells[toll.over]))
                if row is None:
                    choices = dict.fromkeys(str(one.coordinates.get("choice")) for one in (cell, over))
                    row = rows[key] = TollRow(
                        study.family,
                        study.cost,
                        study.load,
                        {name: study.parameters[name] for name in choices if name in study.parameters},
                        study.worth,
                        cell.coordinates,
                        over.coordinates,
                        cell.standing,
                    )
                place = row.places.get(machine_of[number])
                if place is None:
                    place = row.places[machine_of[number]] = Place([])
                place.seen.append(Observation(number, study, toll))
    return tuple(sorted(rows.values(), key=lambda row: (row.family, *map(_order, row.at.values()))))


def _order(value: Value) -> tuple[bool, float, str]:
    """Numbers by what they are, before words."""
    is_word = isinstance(value, str)
    return is_word, 0.0 if is_word else float(value), str(value)


def _patterns(rows: Iterable[TollRow], machines: Sequence[Machine]) -> list[Pattern]:
    have = {
        flag: frozenset(n for n, machine in enumerate(machines) if flag in machine.fingerprint.flags)
        for flag in sorted({flag for machine in machines for flag in machine.fingerprint.flags})
    }
    found: dict[tuple[tuple[str, ...], Verdict, Verdict], Pattern] = {}
    for row in rows:
        verdicts = row.verdicts
        if len({*verdicts.values()}) != 2:
            continue
        # What is unclear somewhere may be either.
        by_flags: dict[frozenset[int], list[str]] = defaultdict(list)
        for flag, those in have.items():
            by_flags[those.intersection(verdicts)].append(flag)
        for those, flags in by_flags.items():
            others = frozenset(verdicts) - those
            one, other = ({verdicts[n] for n in side} for side in (those, others))
            processors = tuple(len({machines[n].processor for n in side}) for side in (those, others))
            if len(one) == len(other) == 1 and one != other and min(processors) >= FEWEST_PROCESSORS:
                key = tuple(flags), one.pop(), other.pop()
                known = found.get(key)
                least = processors if known is None else map(min, processors, known.processors)
                with_, without = least
                found[key] = Pattern(*key, (with_, without), [*(known.rows if known else ()), row])
    return sorted(found.values(), key=lambda pattern: -len(pattern.rows))
