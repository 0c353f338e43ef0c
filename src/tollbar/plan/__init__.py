"""The plan: every cell of every study, what each is compared with, and the order of visits."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tollbar import beds
from tollbar.beds import Bed, Found
from tollbar.catalogue import Answer, Choice, Standing, Value
from tollbar.errors import TollbarError, unknown
from tollbar.libraries import Provider, resolve
from tollbar.study import APART, Coordinates, Load, Study

Task = Mapping[str, Any]
"""One task of the runner contract."""


@dataclass(frozen=True, slots=True)
class Service:
    """How a cell is reached where it is measured through a server."""

    bed: Bed | None
    """None where the server is the user's own."""
    url: str | None
    load: Load


@dataclass(frozen=True, slots=True)
class Cell:
    """One choice × provider × setting of a study."""

    study: str
    family: str
    choice: Choice
    provider: Provider
    service: Service | None
    """The server it is measured through; None where the provider itself is measured."""
    coordinates: Coordinates
    standing: Standing
    """The worst among its choice and its settings."""
    strength: int | None
    """The least among its choice and its settings, in bits."""
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
        own = {name: value for name, value in self.coordinates.items() if name not in APART}
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
        proof_s, start_s = (SERVED_PROOF_S, SERVED_START_S) if self.study.load else (PROOF_S, START_S)
        proofs = len(self.cells) * proof_s
        return proofs + self.visits_a_block * measure.blocks * (measure.trial_s + measure.warm_up_s + start_s)


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
    def receipts(self) -> Mapping[str, Mapping[str, Any]]:
        """Which code every provider is, by the name that rows have for it."""
        return {
            str(cell.coordinates["provider"]): {
                "spec": cell.provider.spec,
                "path": cell.provider.path,
                **cell.provider.receipt,
                **(_server(cell.service.bed) if cell.service and cell.service.bed else {}),
            }
            for study in self.studies
            for cell in study.cells
        }


# Found by measuring: process, library, key and commit of a trial; and two or three proofs of a cell.
START_S = 0.012
PROOF_S = 0.02
# The same with a server: started, ready and stopped for each trial; and proved by a dozen connections.
SERVED_START_S = 0.07
SERVED_PROOF_S = 0.1


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


def _server(bed: Bed) -> dict[str, str]:
    """Which server answers, for a receipt."""
    found = beds.find(bed)
    if not isinstance(found, Found):
        return {"server": found.reason}
    return {"server": f"{bed.title} {found.version}", "program": str(found.programs[bed.face.name])}


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
        varied = {"op": family.operations, **study.vary, **_loads(study)}
        for name in study.choices:
            for bed, provider in self.places():
                for values in itertools.product(*varied.values()):
                    wanted = dict(zip(varied, values, strict=True))
                    at: dict[str, Value] = {"choice": name, "provider": self.label(bed, provider)}
                    at |= {"bed": bed.name if bed else "url"} if study.load else {}
                    coordinates = self.normal({**at, **wanted})
                    yield Cell(
                        study=study.name,
                        family=family.name,
                        choice=family.choices[name],
                        provider=provider,
                        service=Service(bed, study.url, study.load) if study.load else None,
                        coordinates=coordinates,
                        standing=family.standing_of(coordinates),
                        strength=family.strength_of(coordinates),
                        against=None,
                    )

    def normal(self, wanted: Coordinates) -> dict[str, Value]:
        """Coordinates in the family's order: settings that mean nothing here dropped, unsaid ones at their default.

        Of a server that the user has only what was asked is known.
        """
        coordinates: dict[str, Value] = {n: wanted[n] for n in ("choice", "provider", "bed", "op") if n in wanted}
        for name, setting in self.study.family.settings.items():
            if setting.applies(coordinates) and (self.study.url is None or name in wanted):
                coordinates[name] = wanted.get(name, setting.default)
        return coordinates | {n: wanted[n] for n in ("users", "rate") if n in wanted}

    def places(self) -> Iterator[tuple[Bed | None, Provider]]:
        """Each bed with each provider that its server can run on, or just the providers."""
        if not self.study.beds:
            yield from ((None, provider) for provider in self.providers)
            return
        for name in self.study.beds:
            bed = beds.all_beds()[name]
            yield from ((bed, provider) for provider in self.providers if provider.kind in bed.runs_on)

    def label(self, bed: Bed | None, provider: Provider) -> str:
        """The provider's name in rows: with the server in front where there is one."""
        if self.study.url is not None:
            return self.study.url
        if bed is None:
            return provider.name
        found = beds.find(bed)
        return found.label(provider.name) if isinstance(found, Found) else f"{bed.name} ({provider.name})"

    def left_out(self, cell: Cell) -> str | None:
        for item in self.study.leave_out:
            where = {name: self._named(name, values) for name, values in item.where.items()}
            if replace(item, where=where).covers(cell.coordinates):
                return item.because
        return None

    def baseline_of(self, cell: Cell, kept: Mapping[str, Cell]) -> str | None:
        """The key of the cell that stands where this one does, but for what the baseline fixes."""
        fixed = {name: self._named(name, (value,)) for name, value in self.study.baseline.items()}
        for values in itertools.product(*fixed.values()):
            wanted = {**cell.coordinates, **dict(zip(fixed, values, strict=True))}
            key = key_of(self.normal(wanted))
            if key in kept:
                return key
        return None

    def _named(self, name: str, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Providers as rows name them, where the study names them as it does in `providers`."""
        if name != "provider":
            return values
        found: list[Value] = []
        labels: dict[str, list[Value]] = {}
        for bed, provider in self.places():
            labels.setdefault(provider.spec, []).append(self.label(bed, provider))
        known = {"libcrypto": labels.get("libcrypto:system", []), **labels}
        for value in values:
            if value not in known and "*" not in str(value):
                raise unknown("provider", str(value), known, where=self.study.name)
            found += known.get(str(value), [value])
        return tuple(found)


def _loads(study: Study) -> dict[str, tuple[Value, ...]]:
    """What the load adds to what varies."""
    if study.load is None:
        return {}
    if study.load.is_open:
        return {"rate": tuple(int(rate) for rate in study.load.rates_hz)}
    return {"users": study.load.users}
