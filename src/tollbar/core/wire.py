"""What a person writes in TOML, read strictly: kebab-case keys, nothing unknown, and one line where it is wrong.

And written, for a person to go on with: one line for each key.
"""

from __future__ import annotations

import json
import re
import tomllib
import types
import unicodedata
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema

from tollbar.core.errors import TollbarError, nearest
from tollbar.core.files import read_text
from tollbar.core.renamed import today

KEYS = ConfigDict(extra="forbid", alias_generator=lambda name: name.replace("_", "-"), defer_build=True)
"""For models and pydantic's dataclasses: kebab-case keys, and an unknown one is an error.

A model is built when it first reads: that of a file has those of its tables in it, which by themselves read none.
"""

MOST_PARTS = 100
"""Limit of the parts of a key, with dots between them."""

MOST_DOTS = 50_000
"""Limit of the dots in a file: Python's reader holds some kB for each part of a key."""

MOST_KEYS = 10_000
"""Limit of the keys of a table: pydantic makes an error of some 4 kB for each unknown one."""

MOST_BITS = 14_000
"""Limit of a number: Python reads any of base 16, and writes none of more than 4,300 digits."""

_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
# Python's reader holds each beginning of a key: for one of a hundred thousand parts some 40 GB.
_LONG_KEY = re.compile(rf"(?<![\w.-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{MOST_PARTS}}}")

Table = TypeVar("Table")
# Pydantic calls the same fault otherwise in a model than in a dataclass.
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


def is_plain(name: str) -> bool:
    """Whether this names a file in a folder, and no other place."""
    return bool(name.strip(".")) and not {"/", "\0"} & {*name}


def _plain(name: str) -> str:
    if not is_plain(name):
        raise ValueError(f"a name, and no place: `{name}`")
    return name


Plain = Annotated[str, AfterValidator(_plain)]
"""A name by which a folder is found."""


class Strict:
    """A model or a dataclass of pydantic that takes no `true` for a number, and no more than one fault of a list."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _strict(handler(source))


class Wire(Strict, BaseModel):
    """A table of a file."""

    model_config = ConfigDict(**KEYS, frozen=True)


def _strict(schema: CoreSchema) -> CoreSchema:
    """Change a schema in place, with all that it contains. Pydantic makes an error of some 4 kB for each wrong item."""
    for part in _parts(schema):
        match part.get("type"):
            case "int" | "float":
                part["strict"] = True
            case "list" | "tuple" | "dict" | "set" | "frozenset":
                part["fail_fast"] = True
    return schema


def _parts(schema: object) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for key, part in schema.items():
            # A default is a value, and no schema.
            if key not in ("default", "metadata"):
                yield from _parts(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            yield from _parts(part)


def read(path: Path, table: type[Table], **more: Any) -> Table:
    """The file as this table, with what is known otherwise. Raises TollbarError as `parse` does."""
    return parse(read_text(path), table, where=str(path), **more)


def parse(
    text: str,
    table: type[Table],
    *,
    where: str,
    known: Mapping[str, str] | None = None,
    earlier: bool = False,
    **more: Any,
) -> Table:
    """The text as this table. Raises TollbarError: one line with the file, the key, and the nearest right one.

    `known` are keys and values of earlier versions, each with what is said instead. `earlier`: the file is of an
    earlier version, and is read in words of today.
    """
    deep = TollbarError("not TOML that a person would write: nested too deeply, or too long a number", where=where)
    if text.count(".") > MOST_DOTS:
        what = f"not TOML that a person would write: more than {MOST_DOTS:,} dots"
        raise TollbarError(what, where=where, hint="split it into several files")
    if _LONG_KEY.search(text):
        raise deep
    try:
        # As editors of Windows write it, and as JSON is read.
        said = tomllib.loads(text.removeprefix("\ufeff"))
        check_characters(said, where)
        if earlier:
            said = today(said)
        adapter: TypeAdapter[Table] = _adapter(cast("Hashable", table))
        return adapter.validate_python(said | more)
    except tomllib.TOMLDecodeError as error:
        raise TollbarError(f"not TOML: {error}", where=where) from error
    except ValidationError as error:
        raise _fault(error, table, where, known or {}) from error
    except (RecursionError, ValueError) as error:
        raise deep from error


@cache
def _adapter(table: Any) -> TypeAdapter[Any]:
    """What reads such tables: to make it takes many times what reading one of them takes."""
    return TypeAdapter(table)


def read_json(text: str, most_values: int) -> Any:
    """Return a document of JSON. Raises ValueError where it is none, too deep, or of more than this many values.

    An empty list takes three letters and 64 bytes of memory. A comma or a bracket precedes each value but the first.
    """
    if sum(map(text.count, ",[{")) > most_values:
        raise ValueError(f"more than {most_values:,} values")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def check_characters(said: object, where: str, key: str = "") -> None:
    """Raises TollbarError for a character that steers a terminal or turns text around; lines may end in values.

    And for a number that no message could show.
    """
    if isinstance(said, Mapping):
        if len(said) > MOST_KEYS:
            what = f"{f'`{key}`' if key else 'the file'} has {len(said):,} keys; the limit is {MOST_KEYS:,} in a table"
            raise TollbarError(what, where=where, hint="split it into several files")
        for name, value in said.items():
            check_characters(name.replace("\n", "\x00"), where, key)
            check_characters(value, where, f"{key}.{name}".lstrip("."))
    elif isinstance(said, list):
        for value in said:
            check_characters(value, where, key)
    elif isinstance(said, int) and said.bit_length() > MOST_BITS:
        raise TollbarError(f"{f'`{key}`: ' if key else ''}a number of thousands of digits", where=where)
    elif isinstance(said, str) and not said.isprintable():
        for one in said:
            if one not in "\n\t" and unicodedata.category(one).startswith("C"):
                what = f"`{key}`: " if key else ""
                raise TollbarError(f"{what}a control character, U+{ord(one):04X}", where=where)


def text_of(tables: Mapping[str, Mapping[str, object] | Sequence[Mapping[str, object]]]) -> str:
    """Tables by their titles as TOML, their keys in a column; "" has the keys before all tables. A list is an array."""
    lines: list[str] = []
    for title, said in tables.items():
        head = f"[{title}]" if isinstance(said, Mapping) else f"[[{title}]]"
        for table in [said] if isinstance(said, Mapping) else said:
            if table:
                lines += ["", head] if title else []
                width = max(map(len, table))
                lines += [f"{key:<{width}} = {written(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def written(value: object) -> str:
    """A value as TOML has it."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {written(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    # A TOML string is written as one of JSON is, but for the one control character that only TOML refuses.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _fault(error: ValidationError, table: type[Any], where: str, known: Mapping[str, str]) -> TollbarError:
    # A key that is misspelt is missing as well, and only the first of the two says what to do.
    fault = min(error.errors(include_url=False), key=lambda fault: fault["type"] not in _UNKNOWN)
    path, holder = _walk(table, fault["loc"])
    key, value = ".".join(path), str(fault["input"])
    said = fault["msg"].removeprefix("Value error, ")
    match fault["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            hint = known.get(key) or nearest(path[-1], _keys_of(holder) if holder else ())
            return TollbarError(f"`{key}`: no such key", where=where, hint=hint)
        case "literal_error" | "enum":
            values = re.findall(r"'([^']+)'", fault["ctx"]["expected"])
            hint = known.get(value) or nearest(value, values)
            return TollbarError(f"`{key}`: no such value: `{value}`", where=where, hint=hint)
        case "missing":
            return TollbarError(f"`{key}` is missing", where=where)
    return TollbarError(f"`{key}`: {said}" if key else said, where=where)


def _keys_of(table: type[Any]) -> list[str]:
    return [field.alias or name for name, field in table.__pydantic_fields__.items()]


def _walk(table: type[Any], location: Sequence[str | int]) -> tuple[list[str], type[Any] | None]:
    """The path of a fault as it is written in the file, and the table that its last key is in."""
    path: list[str] = []
    holder: type[Any] | None = None
    at: Any = table
    for part in location:
        choices = _alternatives(at)
        tables = [each for each in choices if hasattr(each, "__pydantic_fields__")]
        if len(choices) > 1 and isinstance(part, str) and not any(part in _keys_of(each) for each in tables):
            # Not of the file: which of several types the value was tried as.
            at = next((each for each in tables if each.__name__ == part), at)
            continue
        path.append(str(part))
        holder, at = (tables[0], _field(tables[0], part)) if tables else (None, _inside(choices))
    return path, holder


def _field(table: type[Any], key: str | int) -> Any:
    fields = table.__pydantic_fields__
    return next((field.annotation for name, field in fields.items() if key == (field.alias or name)), None)


def _inside(choices: Sequence[Any]) -> Any:
    """What a list or a table of names holds."""
    arguments = next((get_args(each) for each in choices if get_args(each)), (None,))
    return arguments[0] if arguments[-1] is Ellipsis else arguments[-1]


def _alternatives(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    several = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    return [each for each in several if each is not type(None)]
