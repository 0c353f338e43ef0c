"""TOML that people write: a strict reader (kebab-case keys, no unknown ones, one-line errors) and a writer."""

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

from tollbar.core.errors import TollbarError, cut, nearest
from tollbar.core.files import read_text
from tollbar.core.renamed import today

KEYS = ConfigDict(extra="forbid", alias_generator=lambda name: name.replace("_", "-"), defer_build=True)
"""Configuration of models and pydantic's dataclasses: kebab-case keys, and an unknown one is an error.

A model is built at its first use: a file's model contains those of its tables, which are seldom used alone.
"""

MOST_PARTS = 100
"""Limit of the dotted parts of a key."""

MOST_DOTS = 50_000
"""Limit of the dots in a file: Python's reader uses some kB for each part of a key."""

MOST_KEYS = 10_000
"""Limit of the keys of a table: pydantic makes an error of some 4 kB for each unknown one."""

MOST_OF_KEY = 200
"""Limit of the letters of a key: names of uses, terms and choices are printed in tables."""

MOST_OF_TEXT = 10_000
"""Limit of a text, fifteen times the longest of a study or a family that ships."""

MOST_BITS = 14_000
"""Limit of a number: Python reads any in base 16, but cannot print more than 4,300 digits."""

_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
# Python's reader keeps each prefix of a key: one of a hundred thousand parts uses some 40 GB.
_LONG_KEY = re.compile(rf"(?<![\w.-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{MOST_PARTS}}}")

Table = TypeVar("Table")
# Pydantic names the same fault differently in a model and in a dataclass.
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


def is_plain(name: str) -> bool:
    """Return whether this is the name of a file in a folder, without a path."""
    return bool(name.strip(".")) and not {"/", "\0"} & {*name}


def _plain(name: str) -> str:
    if not is_plain(name):
        raise ValueError(f"`{name}` must be a name, not a path")
    return name


Plain = Annotated[str, AfterValidator(_plain)]
"""Name of a folder, without a path."""


class Strict:
    """Base of pydantic models and dataclasses: refuses `true` for a number, and stops at a list's first fault."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _strict(handler(source))


class Wire(Strict, BaseModel):
    """Base of the tables of a file."""

    model_config = ConfigDict(**KEYS, frozen=True)


def _strict(schema: CoreSchema) -> CoreSchema:
    """Make a schema and its parts strict, in place. Pydantic makes an error of some 4 kB for each wrong item."""
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
            # A default is a value, not a schema.
            if key not in ("default", "metadata"):
                yield from _parts(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            yield from _parts(part)


def read(path: Path, table: type[Table], **more: Any) -> Table:
    """Return the file as this table, together with the values `more`. Raises TollbarError as `parse` does."""
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
    """Return the text as this table. Raises TollbarError: one line with the file, the key, and the nearest valid one.

    `known` maps keys and values of earlier versions to hints. `earlier`: the file is of an earlier version, and is
    translated to current words.
    """
    deep = TollbarError("the TOML is nested too deeply or has a number that is too long", where=where)
    if text.count(".") > MOST_DOTS:
        what = f"the TOML has more than {MOST_DOTS:,} dots, the limit"
        raise TollbarError(what, where=where, hint="split it into several files")
    if _LONG_KEY.search(text):
        raise deep
    try:
        # Editors of Windows write a byte order mark.
        said = tomllib.loads(text.removeprefix("\ufeff"))
        check_characters(said, where, most=MOST_OF_TEXT)
        if earlier:
            said = today(said)
        adapter: TypeAdapter[Table] = _adapter(cast("Hashable", table))
        return adapter.validate_python(said | more)
    except tomllib.TOMLDecodeError as error:
        looks = 'it looks like JSON; it must be TOML, for example `name = "value"`'
        hint = looks if text.removeprefix("\ufeff").lstrip()[:1] == "{" else None
        raise TollbarError(f"not TOML: {error}", where=where, hint=hint) from error
    except ValidationError as error:
        raise _fault(error, table, where, known or {}) from error
    except (RecursionError, ValueError) as error:
        raise deep from error


@cache
def _adapter(table: Any) -> TypeAdapter[Any]:
    """Return the reader of such tables; making it takes many times as long as reading a table."""
    return TypeAdapter(table)


def read_json(text: str, most_values: int) -> Any:
    """Return a JSON document. Raises ValueError if it is not JSON, too deep, or has more than `most_values` values.

    An empty list takes three letters and 64 bytes of memory. A comma or a bracket precedes each value but the first.
    """
    if sum(map(text.count, ",[{")) > most_values:
        raise ValueError(f"must have at most {most_values:,} values")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def check_depth(said: object, most: int) -> None:
    """Raise ValueError for a document that is nested more deeply than this."""
    if most == 0:
        raise ValueError("nested too deeply")
    inner = said.values() if isinstance(said, dict) else said if isinstance(said, list) else ()
    for one in inner:
        check_depth(one, most - 1)


def check_characters(said: object, where: str, key: str = "", *, most: int | None = None) -> None:
    """Raise TollbarError for characters that control a terminal or reverse text; values may contain newlines.

    Tables with more than `MOST_KEYS` keys, keys and numbers too long to print, and texts of more than `most` letters
    are refused as well.
    """
    if isinstance(said, Mapping):
        if len(said) > MOST_KEYS:
            what = f"{f'`{key}`' if key else 'the file'} has {len(said):,} keys; the limit is {MOST_KEYS:,} in a table"
            raise TollbarError(what, where=where, hint="split it into several files")
        for name, value in said.items():
            if len(name) > MOST_OF_KEY:
                what = f"the key `{cut(name, MOST_OF_KEY)}` has {len(name):,} letters; the limit is {MOST_OF_KEY}"
                raise TollbarError(what, where=where, hint="use a shorter name")
            check_characters(name.replace("\n", "\x00"), where, key)
            check_characters(value, where, f"{key}.{name}".lstrip("."), most=most)
    elif isinstance(said, list):
        for value in said:
            check_characters(value, where, key, most=most)
    elif isinstance(said, str) and most is not None and len(said) > most:
        what = f"`{key}`: the text has {len(said):,} letters; the limit is {most:,}"
        raise TollbarError(what, where=where, hint="shorten it")
    elif isinstance(said, int) and said.bit_length() > MOST_BITS:
        raise TollbarError(
            f"{f'`{key}`: ' if key else ''}the number is too long; it must have at most {MOST_BITS} bits", where=where
        )
    elif isinstance(said, str) and not said.isprintable():
        for one in said:
            if one not in "\n\t" and unicodedata.category(one).startswith("C"):
                what = f"`{key}`: " if key else ""
                raise TollbarError(
                    f"{what}the control character U+{ord(one):04X} is not allowed; remove it", where=where
                )


def text_of(tables: Mapping[str, Mapping[str, object] | Sequence[Mapping[str, object]]]) -> str:
    """Return tables by their titles as TOML, with aligned keys.

    The keys of "" precede all tables; a list is an array.
    """
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
    """Return a value as TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {written(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    # A TOML string is written as in JSON, except for the one control character that only TOML refuses.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _fault(error: ValidationError, table: type[Any], where: str, known: Mapping[str, str]) -> TollbarError:
    # A misspelt key is also reported as missing, and only the report of the misspelling helps.
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
    """Return the path of a fault as written in the file, and the table of its last key."""
    path: list[str] = []
    holder: type[Any] | None = None
    at: Any = table
    for part in location:
        choices = _alternatives(at)
        tables = [each for each in choices if hasattr(each, "__pydantic_fields__")]
        if len(choices) > 1 and isinstance(part, str) and not any(part in _keys_of(each) for each in tables):
            # This part is not a key: it names the type that the value was tried as.
            at = next((each for each in tables if each.__name__ == part), at)
            continue
        path.append(str(part))
        holder, at = (tables[0], _field(tables[0], part)) if tables else (None, _inside(choices))
    return path, holder


def _field(table: type[Any], key: str | int) -> Any:
    fields = table.__pydantic_fields__
    return next((field.annotation for name, field in fields.items() if key == (field.alias or name)), None)


def _inside(choices: Sequence[Any]) -> Any:
    """Return the type of the items of a list or a table of names."""
    arguments = next((get_args(each) for each in choices if get_args(each)), (None,))
    return arguments[0] if arguments[-1] is Ellipsis else arguments[-1]


def _alternatives(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    several = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    return [each for each in several if each is not type(None)]
