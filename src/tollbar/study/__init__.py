"""A study: one question, the choices that answer it, what varies, and what was published before.

A study is a TOML file. It becomes a frozen `Study` here, once, and nothing after this checks it again.
Tollbar's own studies are in `studies/`; a folder of files there is a set that runs as one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from tollbar import catalogue, units
from tollbar.catalogue import Family, Value
from tollbar.errors import TollbarError, nearest, unknown

Coordinates = Mapping[str, Value]
"""Where a cell stands: `choice`, `provider`, `bed`, `op` and every setting that applies to it."""


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """Combinations that are not measured, and why."""

    where: Mapping[str, tuple[Value, ...]]
    because: str

    def covers(self, coordinates: Coordinates) -> bool:
        """Whether a cell at these coordinates is left out."""
        return all(matches(coordinates.get(name), values) for name, values in self.where.items())


@dataclass(frozen=True, slots=True)
class Claim:
    """A published comparison, to be tried again: `of` had `ratio` times the metric of `over`."""

    says: str
    of: Coordinates
    over: Coordinates
    metric: Literal["throughput", "cost"]
    ratio: float | None
    order: Literal["more", "less"] | None
    note: str | None


@dataclass(frozen=True, slots=True)
class Measure:
    """How long and how often each cell is measured."""

    trial_s: float
    warm_up_s: float
    blocks: int


@dataclass(frozen=True, slots=True)
class Study:
    """One question and all it takes to answer it."""

    name: str
    text: str
    """The file as it was."""
    question: str
    family: Family
    source: str | None
    choices: tuple[str, ...]
    providers: tuple[str, ...]
    vary: Mapping[str, tuple[Value, ...]]
    baseline: Coordinates
    leave_out: tuple[LeaveOut, ...]
    measure: Measure
    worth: float
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]


# A trial shorter than this is mostly clock reads and start-up; longer ones drift within the trial.
DEFAULT_MEASURE = Measure(trial_s=0.1, warm_up_s=0.02, blocks=20)


def matches(value: Value | None, patterns: Sequence[Value]) -> bool:
    """Whether a coordinate's value is one of these, where a word may hold `*`."""
    return value is not None and any(fnmatchcase(str(value), str(pattern)) for pattern in patterns)


def load(names: Sequence[str]) -> tuple[Study, ...]:
    """The studies of these names, sets or files, in that order. Raises TollbarError before anything starts."""
    return tuple(study for name in names for study in _load_one(name))


def shipped() -> Mapping[str, tuple[Traversable, ...]]:
    """The studies that come with Tollbar: a name, and the one file or the set of files behind it."""
    root = files(__name__) / "studies"
    found: dict[str, tuple[Traversable, ...]] = {}
    for path in sorted(root.iterdir(), key=lambda p: p.name):
        if path.is_dir():
            found[path.name] = tuple(
                sorted((p for p in path.iterdir() if p.name.endswith(".toml")), key=lambda p: p.name)
            )
        elif path.name.endswith(".toml"):
            found[path.name.removesuffix(".toml")] = (path,)
    return found


def _load_one(name: str) -> Iterator[Study]:
    known = shipped()
    if name in known:
        for path in known[name]:
            yield read(path.name.removesuffix(".toml"), path.read_text("utf-8"), where=path.name)
        return
    path = Path(name)
    if not path.suffix == ".toml":
        raise unknown("study", name, known)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TollbarError(
            f"cannot read the study: {error}", where=name, hint="give a study's name or a .toml file"
        ) from error
    yield read(path.stem, text, where=name)


# What is written in a study's file.


def _unit(reader: object) -> BeforeValidator:
    return BeforeValidator(reader)  # type: ignore[arg-type]


Seconds = Annotated[float, _unit(units.seconds)]
Share = Annotated[float, _unit(units.share)]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"))


class _WireLeaveOut(_Wire):
    where: dict[str, Value | tuple[Value, ...]]
    because: str


class _WireMeasure(_Wire):
    cost: Literal["cpu"] = "cpu"
    trial: Seconds = DEFAULT_MEASURE.trial_s
    warm_up: Seconds = DEFAULT_MEASURE.warm_up_s
    blocks: int = DEFAULT_MEASURE.blocks


class _WireJudge(_Wire):
    worth: Share = 0.03


class _WireClaim(_Wire):
    says: str
    of: dict[str, Value]
    over: dict[str, Value]
    metric: Literal["throughput", "cost"] = "throughput"
    ratio: float | None = None
    order: Literal["more", "less"] | None = None
    note: str | None = None

    @model_validator(mode="after")
    def _says_a_number_or_an_order(self) -> _WireClaim:
        if (self.ratio is None) == (self.order is None):
            raise ValueError("a claim gives either a `ratio` or an `order`")
        if self.ratio is not None and self.ratio <= 0:
            raise ValueError("a `ratio` is above zero")
        return self


class _WireStudy(_Wire):
    question: str
    family: str
    source: str | None = None
    choices: tuple[str, ...] = ("*",)
    providers: tuple[str, ...]
    baseline: str | dict[str, Value]
    vary: dict[str, tuple[Value, ...]] = {}
    leave_out: tuple[_WireLeaveOut, ...] = ()
    measure: _WireMeasure = _WireMeasure()
    judge: _WireJudge = _WireJudge()
    claim: tuple[_WireClaim, ...] = ()
    notes: tuple[str, ...] = ()


def read(name: str, text: str, *, where: str) -> Study:
    """A study from its text. Raises TollbarError that names the file, the key and the nearest right one."""
    try:
        wire = _WireStudy.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise TollbarError(f"not TOML: {error}", where=where) from error
    except ValidationError as error:
        raise _fault(error, where) from error
    family = catalogue.families().get(wire.family)
    if family is None:
        raise unknown("family", wire.family, catalogue.families(), where=f"{where}: `family`")
    reader = _Reader(family, where)
    baseline = {"choice": wire.baseline} if isinstance(wire.baseline, str) else wire.baseline
    return Study(
        name=name,
        text=text,
        question=wire.question,
        family=family,
        source=wire.source,
        choices=reader.choices(wire.choices),
        providers=wire.providers,
        vary={key: reader.values(f"vary.{key}", key, values) for key, values in wire.vary.items()},
        baseline=reader.coordinates("baseline", baseline),
        leave_out=tuple(
            LeaveOut({k: reader.patterns("leave-out.where", k, v) for k, v in item.where.items()}, item.because)
            for item in wire.leave_out
        ),
        measure=_measure(wire.measure, where),
        worth=wire.judge.worth,
        claims=tuple(
            Claim(
                c.says,
                reader.coordinates("claim.of", c.of),
                reader.coordinates("claim.over", c.over),
                c.metric,
                c.ratio,
                c.order,
                c.note,
            )
            for c in wire.claim
        ),
        notes=wire.notes,
    )


def _measure(wire: _WireMeasure, where: str) -> Measure:
    if wire.blocks < 1:
        raise TollbarError("`measure.blocks`: at least one block", where=where)
    if wire.trial <= 0:
        raise TollbarError("`measure.trial`: longer than nothing", where=where)
    return Measure(wire.trial, wire.warm_up, wire.blocks)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the names and values of one family, and says where they stood when they are wrong."""

    family: Family
    where: str

    def choices(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """The choices these names and patterns stand for, in the catalogue's order, the null one only by name."""
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in self.family.choices):
                raise unknown("choice", pattern, self.family.choices, where=f"{self.where}: `choices`")
        null = self.family.null.name
        return tuple(
            name
            for name in self.family.choices
            if any(fnmatchcase(name, pattern) and (name != null or pattern == null) for pattern in patterns)
        )

    def coordinates(self, key: str, given: Mapping[str, Value]) -> Coordinates:
        return {name: self.values(key, name, (value,))[0] for name, value in given.items()}

    def patterns(self, key: str, name: str, given: Value | tuple[Value, ...]) -> tuple[Value, ...]:
        values = given if isinstance(given, tuple) else (given,)
        if any("*" in str(value) for value in values):
            self._known(key, name)
            return values
        return self.values(key, name, values)

    def values(self, key: str, name: str, given: Sequence[Value]) -> tuple[Value, ...]:
        self._known(key, name)
        if name == "provider":
            return tuple(given)
        known = {"choice": tuple(self.family.choices), "op": self.family.operations}.get(name)
        for value in given:
            if known is not None and value not in known:
                raise unknown(name, str(value), known, where=f"{self.where}: `{key}`")
        if known is not None:
            return tuple(given)
        try:
            return tuple(self.family.settings[name].read(value) for value in given)
        except ValueError as error:
            raise TollbarError(f"`{key}`: {error}", where=self.where) from error

    def _known(self, key: str, name: str) -> None:
        known = ["choice", "provider", "op", *self.family.settings]
        if name not in known:
            what = f"`{key}`: the family {self.family.name} has no setting `{name}`"
            raise TollbarError(what, where=self.where, hint=nearest(name, known))


def _fault(error: ValidationError, where: str) -> TollbarError:
    """The first thing wrong with a study's text, in this project's words rather than the library's."""
    fault = error.errors()[0]
    path = [str(part) for part in fault["loc"]]
    key = ".".join(path)
    if fault["type"] == "extra_forbidden":
        known = _keys_beside(path)
        close = nearest(path[-1], known)
        hint = close.replace(path[-1], key) if close else None
        prefix = ".".join(path[:-1])
        if close and prefix:
            hint = close.replace("`", f"`{prefix}.", 1)
        return TollbarError(f"`{key}`: no such setting", where=where, hint=hint)
    if fault["type"] == "missing":
        return TollbarError(f"`{key}` is missing", where=where, hint="`tollbar list studies` names examples to copy")
    return TollbarError(f"`{key}`: {fault['msg'].removeprefix('Value error, ')}", where=where)


def _keys_beside(path: Sequence[str]) -> list[str]:
    model: type[BaseModel] = _WireStudy
    nested: dict[str, type[BaseModel]] = {
        "measure": _WireMeasure, "judge": _WireJudge, "claim": _WireClaim, "leave-out": _WireLeaveOut,
    }  # fmt: skip
    if len(path) > 1:
        model = nested.get(path[0], model)
    return [field.alias or name for name, field in model.model_fields.items()]
