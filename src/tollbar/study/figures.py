"""Figures of a source: what it drew, as selections of a study's cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Annotated, Literal, Protocol, TypeVar

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as read_dataclass

from tollbar.catalog.families import LOADS, Value
from tollbar.core.patterns import matches
from tollbar.core.wire import KEYS, Strict


class Placed(Protocol):
    """Planned cell, or a row of a run."""

    @property
    def coordinates(self) -> Mapping[str, Value]: ...


P = TypeVar("P", bound=Placed)

Drawing = Literal["load", "rates", "use"]
"""Kind of a source's figure.

`load`: requests a second and response times against the load; `rates`: requests a second as bars; `use`: the
processor's use over phases, one after another.
"""
# As many as a legend or an axis can name.
MOST_SERIES = 12


@read_dataclass(config=KEYS, frozen=True, slots=True)
class Series(Strict):
    """Line, colour of bars, or phase of a figure."""

    title: str
    where: dict[str, Value | tuple[Value, ...]] = field(default_factory=dict)
    """Coordinates of its cells, each with values or patterns."""


@read_dataclass(config=KEYS, frozen=True, slots=True)
class Figure(Strict):
    """Figure of the source, which is drawn again from the cells here."""

    title: str
    draws: Drawing
    series: Annotated[tuple[Series, ...], Field(min_length=1, max_length=MOST_SERIES)]
    """Lines, colours or phases, in the source's order; each has one cell in each place of the axis."""
    groups: str | None = None
    """Coordinate with a group of bars for each value."""
    where: dict[str, Value | tuple[Value, ...]] = field(default_factory=dict)
    """Coordinates of all its cells."""
    component: str | None = None
    """Component whose CPU time limits the rate that one core could reach; None: all that pay the cost."""

    @model_validator(mode="after")
    def _has_an_axis(self) -> Figure:
        if (self.draws == "rates") != (self.groups is not None):
            raise ValueError('`groups` needs `draws = "rates"`, which needs it, for example `groups = "certificate"`')
        if self.component and self.draws != "rates":
            raise ValueError('`component` needs `draws = "rates"`')
        return self

    @property
    def is_of_a_load(self) -> bool:
        """True if its cells need users, whose requests are counted."""
        return self.draws in ("load", "rates")

    def cells_of(self, series: Series, cells: Iterable[P]) -> list[P]:
        """Return the cells of one of its series, in their order."""
        return [
            cell
            for cell in cells
            if all(
                matches(cell.coordinates.get(name), values if isinstance(values, tuple) else (values,))
                for name, values in (*self.where.items(), *series.where.items())
            )
        ]

    def place_of(self, coordinates: Mapping[str, Value]) -> Value | None:
        """Return a cell's place on the axis: its load, or its group."""
        if self.draws == "load":
            return next((coordinates[name] for name in LOADS if name in coordinates), None)
        return coordinates.get(self.groups) if self.groups else None
