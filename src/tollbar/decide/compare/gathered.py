"""The tolls of runs side by side: a row a toll, a column a machine, and processor flags that go with verdicts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tollbar.catalog.families import Value
from tollbar.core.machine import KNOWN_LATER, differences
from tollbar.decide.compare.found_runs import ReadRun, Unusable
from tollbar.decide.compare.patterns import Patterns, find_patterns
from tollbar.decide.compare.places import Machine, MachineToll, Observation, TollRow
from tollbar.results.reading import uncollected


@dataclass(frozen=True, slots=True)
class Gathered:
    """Tolls of many runs, with their machines and patterns."""

    runs: tuple[ReadRun, ...]
    """Runs that could be read."""
    machines: tuple[Machine, ...]
    """Machines, ordered by the names of their processors."""
    rows: tuple[TollRow, ...]
    patterns: Patterns
    unusable: tuple[Unusable, ...]


def gather(found: Sequence[ReadRun | Unusable]) -> Gathered:
    """Sets the tolls of these runs side by side."""
    runs = tuple(one for one in found if isinstance(one, ReadRun))
    machines = _machines(runs)
    with uncollected():
        rows = _rows(runs, machines)
    unusable = tuple(one for one in found if isinstance(one, Unusable))
    return Gathered(runs, machines, rows, find_patterns(rows, machines), unusable)


def _machines(runs: Sequence[ReadRun]) -> tuple[Machine, ...]:
    alike: dict[str, list[Machine]] = defaultdict(list)
    for number, run in enumerate(runs):
        facts = run.fingerprint.model_dump()
        # Runs of one machine may differ in facts that become known later, so these are ignored.
        known = json.dumps({name: fact for name, fact in facts.items() if name not in KNOWN_LATER}, sort_keys=True)
        same = (one for one in alike[known] if not differences(one.fingerprint.model_dump(), facts))
        machine = next(same, None)
        if machine is None:
            machine = Machine(run.fingerprint)
            alike[known].append(machine)
        machine.runs.append(number)
    found = (machine for some in alike.values() for machine in some)
    return tuple(sorted(found, key=lambda machine: (machine.processor, machine.runs)))


def _rows(runs: Sequence[ReadRun], machines: Sequence[Machine]) -> tuple[TollRow, ...]:
    rows: dict[tuple[object, ...], TollRow] = {}
    machine_of = {run: number for number, machine in enumerate(machines) for run in machine.runs}
    # The newest run comes first because its standings are printed.
    for number in sorted(range(len(runs)), key=lambda number: runs[number].began_s or 0.0, reverse=True):
        for study in runs[number].studies:
            # The parameters of a choice distinguish it from one of the same name elsewhere.
            performed = {name: json.dumps(with_, sort_keys=True) for name, with_ in study.parameters.items()}
            cells = [(frozenset(at.items()), performed.get(str(at.get("choice")))) for at, *_ in study.cells]
            same = study.family, study.cost, study.load, study.threshold
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
                        study.threshold,
                        cell.coordinates,
                        over.coordinates,
                        cell.standing,
                    )
                place = row.places.get(machine_of[number])
                if place is None:
                    place = row.places[machine_of[number]] = MachineToll([])
                place.seen.append(Observation(number, study, toll))
    return tuple(sorted(rows.values(), key=lambda row: (row.family, *map(_order, row.at.values()))))


def _order(value: Value) -> tuple[bool, float, str]:
    """Return a sort key: numbers by value, before words."""
    is_word = isinstance(value, str)
    return is_word, 0.0 if is_word else float(value), str(value)
