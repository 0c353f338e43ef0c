"""What a person writes in TOML, read strictly: kebab-case keys, nothing unknown, and one line where it is wrong."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from tollbar.errors import TollbarError, nearest


class Wire(BaseModel):
    """A table of a file. Kebab-case keys; an unknown one is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"))


def fault(
    error: ValidationError,
    model: type[BaseModel],
    where: str,
    *,
    gone: Mapping[str, str] | None = None,
    renamed: Mapping[str, str] | None = None,
    example: str | None = None,
) -> TollbarError:
    """The first thing wrong with a file, in this project's words: the file, the key, and the nearest right one.

    `gone` are keys, `renamed` values of earlier versions, each with what is said instead; `example` says where a file
    with everything that may not be missing is to be found.
    """
    # A key that is misspelt is missing as well, and its nearest right one says both.
    faults = error.errors()
    first = next((each for each in faults if each["type"] == "extra_forbidden"), faults[0])
    path, table = _walk(model, first["loc"])
    key = ".".join(path)
    said = first["msg"].removeprefix("Value error, ")
    if not key:
        return TollbarError(said, where=where)
    if first["type"] == "literal_error":
        what = f"`{key}`: `{first['input']}` is not one of {first['ctx']['expected']}"
        return TollbarError(what, where=where, hint=(renamed or {}).get(str(first["input"])))
    if first["type"] == "extra_forbidden":
        close = nearest(path[-1], keys_of(table)) if table else None
        prefix = "".join(f"{part}." for part in path[:-1])
        hint = close.replace("`", f"`{prefix}", 1) if close else None
        return TollbarError(f"`{key}`: no such setting", where=where, hint=(gone or {}).get(key, hint))
    if first["type"] == "missing":
        return TollbarError(f"`{key}` is missing", where=where, hint=example)
    return TollbarError(f"`{key}`: {said}", where=where)


def keys_of(table: type[BaseModel]) -> list[str]:
    """The keys that a table may have."""
    return [field.alias or name for name, field in table.model_fields.items()]


def _walk(model: type[BaseModel], location: Sequence[str | int]) -> tuple[list[str], type[BaseModel] | None]:
    """The path of a fault as it is written in the file, and the table that its last key stands in."""
    path: list[str] = []
    table: type[BaseModel] | None = None
    at: Any = model
    for part in location:
        alternatives = [each for each in _alternatives(at) if each is not type(None)]
        tables = [each for each in alternatives if isinstance(each, type) and issubclass(each, BaseModel)]
        holders = [each for each in alternatives if get_origin(each) in (dict, tuple, Mapping, Sequence)]
        if len(alternatives) > 1 and isinstance(part, str) and not any(part in keys_of(each) for each in tables):
            # Not of the file: which of several types the value was tried as.
            at = next((each for each in tables if each.__name__ == part), at)
            continue
        path.append(str(part))
        if tables:
            table = tables[0]
            field = next((f for name, f in table.model_fields.items() if part == (f.alias or name)), None)
            at = field.annotation if field else None
        else:
            table = None
            at = next((get_args(each)[-1 if get_origin(each) in (dict, Mapping) else 0] for each in holders), None)
    return path, table


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
