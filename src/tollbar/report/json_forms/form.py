"""Forms: declarations of JSON documents, each filled from the attributes of a value.

A key has the value of the attribute of its own name, unless `of` or `within` gives its source. A key with a default
and no source is constant.

    class TollForm(Form):
        verdict: str                                            # toll.verdict
        ratio: Annotated[Number, of("ratio.estimate")]          # null where toll.ratio is None
        aa: Annotated[bool, of(lambda toll: toll.row.against == toll.row.key)]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from tollbar.core.intervals import Interval

Value = str | int | float | bool
"""Value of a coordinate."""
Values = dict[str, Value]
JSON = Any
"""Description that a library or a machine gives of itself."""


@dataclass(frozen=True, slots=True)
class Source:
    """Source of a key's value: a function of the value that is read, or of it and the context."""

    read: Callable[..., Any]
    needs_context: bool = False


def of(source: str | Callable[[Any], Any]) -> Source:
    """Return the source of a key: a path of attributes, null beyond one that is None, or a function of the value."""
    return Source(_along(source) if isinstance(source, str) else source)


def within(source: Callable[[Any, Any], Any]) -> Source:
    """Return the source of a key that needs more than its value: a function of it and of `Form.read`'s context."""
    return Source(source, needs_context=True)


def low_of(path: str = "") -> Source:
    """Return the source of the low end of the interval at this path; without one, of the value itself."""
    read = _along(path)
    return of(lambda value: ends_of(read(value))[0])


def high_of(path: str = "") -> Source:
    """Return the source of the high end of the interval at this path; without one, of the value itself."""
    read = _along(path)
    return of(lambda value: ends_of(read(value))[1])


class HasEnds(Protocol):
    """Interval, or a value that has one."""

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


def ends_of(interval: HasEnds | None) -> tuple[float | None, float | None]:
    """Return the two ends of an interval; both None if it has too few blocks, or is None."""
    return (interval.low, interval.high) if interval is not None and isfinite(interval.high) else (None, None)


def _bounded_ends(interval: Interval) -> tuple[float, float] | None:
    return (interval.low, interval.high) if interval.is_bounded else None


def _along(path: str) -> Callable[[Any], Any]:
    names = path.split(".") if path else ()

    def read(value: Any) -> Any:
        for name in names:
            if value is None:
                return None
            value = getattr(value, name)
        return value

    return read


Number = Annotated[float | None, BeforeValidator(lambda value: value if value is None or isfinite(value) else None)]
"""Number; null if it is not known, for example at the end of an interval of too few blocks."""
Ends = Annotated[
    tuple[Number, Number] | None,
    BeforeValidator(lambda value: ends_of(value) if isinstance(value, Interval) else value),
]
"""Ends of an interval, low and high, both null if there were too few blocks for one."""
Bounded = Annotated[
    tuple[Number, Number] | None,
    BeforeValidator(lambda value: _bounded_ends(value) if isinstance(value, Interval) else value),
]
"""Ends of an interval, low and high; null if there were too few blocks for one."""


OMITTED = Field(exclude_if=lambda value: value is None)
"""Field of a key that is left out, instead of null, if there is nothing to report."""


class Form(BaseModel):
    """Declaration of every key of a JSON object. Within one schema number keys are only added."""

    model_config = ConfigDict(
        extra="forbid",
        use_attribute_docstrings=True,
        validate_by_name=True,
        serialize_by_alias=True,
        json_schema_serialization_defaults_required=True,
    )

    @classmethod
    def read(cls, value: object, context: object = None) -> Self:
        """Return the form of a value; sources that need more than the value get the context."""
        return cls.model_validate(value, context=context)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: object, info: ValidationInfo) -> object:
        # A form, and keys that are given by name, are read already.
        if isinstance(value, Mapping | Form):
            return value
        return {
            name: source.read(value, info.context) if source.needs_context else source.read(value)
            for name, source in _sources(cls).items()
        }


class Document(Form):
    """Whole document."""

    number: Literal[3] = Field(default=3, alias="schema")
    """number of this form"""


@cache
def _sources(form: type[Form]) -> Mapping[str, Source]:
    found: dict[str, Source] = {}
    for name, field in form.model_fields.items():
        source = next((one for one in field.metadata if isinstance(one, Source)), None)
        if source or field.is_required():
            found[name] = source or of(name)
    return found
