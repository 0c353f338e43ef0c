"""The plan: every cell of every study, what each is compared with, and the order of visits."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tollbar.catalogue import Answer, Choice, Family, Value
from tollbar.errors import TollbarError, unknown
from tollbar.libraries import Provider, resolve
from tollbar.study import Coordinates, Study

Task = Mapping[str, Any]
"""One task of the runner contract."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One choice × provider × setting of a study."""

    study: str
    family: str
    choice: Choice
    provider: Provider
    coordinates: Coordinates
    against: str | None
    """The key of the cell it is compared with: its own where it is a baseline, None where there is none."""

    @property
    def key(self) -> str:
        """Its coordinates as one canonical text."""
        return key_of(self.coordinates)

    @property
    def is_baseline(self) -> bool:
        return self.against == self.key

    @property
    def label(self) -> str:
        """Its coordinates as a person reads them."""
        return " · ".join(str(value) for value in self.coordinates.values())

    def task(self, mode: str, seed: int, answer: Answer | None = None) -> dict[str, Any]:
        """The task for this cell, with a known answer's inputs and settings where one is given."""
        apart = ("choice", "provider", "bed", "op")
        own = {name: value for name, value in self.coordinates.items() if name not in apart}
        inputs = dict(self.choice.inputs)
        if answer is not None:
            inputs |= {**answer.inputs, "expected_hex": answer.expected}
        return {
            "mode": mode,
            "family": self.family,
            "op": self.coordinates["op"],
            "choice": self.choice.name,
            "provider": self.provider.in_task,
            "setting": {**own, **self.choice.setting, **(answer.setting if answer else {})},
            "inputs": inputs,
            "seed": seed,
        }


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """One study's cells."""

    study: Study
    cells: tuple[Cell, ...]
    left_out: tuple[tuple[Coordinates, str], ...]

    @property
    def visits_a_block(self) -> int:
        return len(self.cells) + sum(cell.is_baseline for cell in self.cells)

    @property
    def estimated_s(self) -> float:
        """How long it will take, by what was asked; slow operations take longer."""
        measure = self.study.measure
        proofs = len(self.cells) * PROOF_S
        return proofs + self.visits_a_block * measure.blocks * (measure.trial_s + measure.warm_up_s + START_S)


@dataclass(frozen=True, slots=True)
class Visit:
    """One trial to be made: a cell, or a baseline's twin, in a block."""

    cell: Cell
    twin: bool
    block: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a run will do."""

    studies: tuple[StudyPlan, ...]
    seed: int

    @property
    def estimated_s(self) -> float:
        return sum(study.estimated_s for study in self.studies)

    @property
    def providers(self) -> Mapping[str, Provider]:
        """Every provider that takes part, by name."""
        return {cell.provider.name: cell.provider for study in self.studies for cell in study.cells}


# Found by measuring: process, library, key and commit of a trial; and two or three proofs of a cell.
START_S = 0.012
PROOF_S = 0.02


def key_of(coordinates: Coordinates) -> str:
    """Coordinates as one canonical text: the same cell has the same key in every run."""
    return json.dumps(dict(coordinates), sort_keys=True, separators=(",", ":"))


def make(studies: Sequence[Study], *, seed: int, named_libraries: Sequence[str] = ()) -> Plan:
    """The plan of these studies. Raises TollbarError for a provider that is not here or a study without cells."""
    names = [study.name for study in studies]
    for name in names:
        if names.count(name) > 1:
            raise TollbarError(f"the study `{name}` is asked for twice")
    return Plan(tuple(_plan(study, resolve(study.providers, named_libraries)) for study in studies), seed)


def visits(plan: StudyPlan, seed: int, block: int) -> list[Visit]:
    """One block: every cell once, baselines twice, in an order that depends on nothing but seed and block."""
    found = [Visit(cell, False, block) for cell in plan.cells]
    found += [Visit(cell, True, block) for cell in plan.cells if cell.is_baseline]
    random.Random(f"{seed}/{plan.study.name}/{block}").shuffle(found)
    return found


def _plan(study: Study, providers: Sequence[Provider]) -> StudyPlan:
    grid = _Grid(study, providers)
    kept: dict[str, Cell] = {}
    left_out: dict[str, tuple[Coordinates, str]] = {}
    for cell in grid.cells():
        reason = grid.left_out(cell)
        if reason is None:
            kept.setdefault(cell.key, cell)
        else:
            left_out.setdefault(cell.key, (cell.coordinates, reason))
    if not kept:
        raise TollbarError("every combination is left out: nothing to measure", where=study.name)
    cells = [replace(cell, against=grid.baseline_of(cell, kept)) for cell in kept.values()]
    if not any(cell.is_baseline for cell in cells):
        raise TollbarError(
            f"no cell is the baseline {dict(study.baseline)}",
            where=study.name,
            hint="is the baseline among the choices?",
        )
    return StudyPlan(study, tuple(cells), tuple(left_out.values()))


@dataclass(frozen=True, slots=True)
class _Grid:
    """All combinations of a study, and what is said about them."""

    study: Study
    providers: Sequence[Provider]

    def cells(self) -> Iterator[Cell]:
        study, family = self.study, self.study.family
        varied = {"op": family.operations, **study.vary}
        for name in study.choices:
            for provider in self.providers:
                for values in itertools.product(*varied.values()):
                    wanted = dict(zip(varied, values, strict=True))
                    coordinates = _normal(family, {"choice": name, "provider": provider.name, **wanted})
                    yield Cell(study.name, family.name, family.choices[name], provider, coordinates, None)

    def left_out(self, cell: Cell) -> str | None:
        for item in self.study.leave_out:
            where = {name: self._named(name, values) for name, values in item.where.items()}
            if replace(item, where=where).covers(cell.coordinates):
                return item.because
        return None

    def baseline_of(self, cell: Cell, kept: Mapping[str, Cell]) -> str | None:
        fixed = {name: self._named(name, (value,))[0] for name, value in self.study.baseline.items()}
        key = key_of(_normal(self.study.family, {**cell.coordinates, **fixed}))
        return key if key in kept else None

    def _named(self, name: str, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Providers as rows name them, where the study names them as it does in `providers`."""
        if name != "provider":
            return values
        found: list[Value] = []
        for value in values:
            specs = {provider.spec: provider.name for provider in self.providers}
            known = {"libcrypto": specs.get("libcrypto:system", ""), **specs}
            if value not in known and "*" not in str(value):
                raise unknown("provider", str(value), known, where=self.study.name)
            found.append(known.get(str(value), value))
        return tuple(found)


def _normal(family: Family, wanted: Coordinates) -> dict[str, Value]:
    """Coordinates in the family's order: settings that mean nothing here dropped, unsaid ones at their default."""
    coordinates: dict[str, Value] = {name: wanted[name] for name in ("choice", "provider", "op")}
    for name, setting in family.settings.items():
        if setting.applies(coordinates):
            coordinates[name] = wanted.get(name, setting.default)
    return coordinates
