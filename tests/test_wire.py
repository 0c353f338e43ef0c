"""Foreign TOML: numbers stay numbers, and a hostile file costs bounded time and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field
from pydantic.dataclasses import dataclass

from tollbar.core import wire
from tollbar.core.errors import TollbarError


class Inner(wire.Wire):
    number: int = 0


class Table(wire.Wire):
    count: Annotated[int, Field(gt=0)] = 1
    ratio: float = 1.0
    either: str | int = ""
    by_name: dict[str, str | int] = Field(default_factory=dict)
    several: tuple[int, ...] = ()
    inner: Inner = Inner()
    inners: tuple[Inner, ...] = ()


@dataclass(config=wire.KEYS, frozen=True, slots=True, kw_only=True)
class OfData(wire.Strict):
    count: int = 1
    inner: Inner = Inner()


@pytest.mark.parametrize("table", [Table, OfData])
@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize("text", ["count = {}", "inner.number = {}"])
def test_a_boolean_is_no_number(table: type, text: str, value: str) -> None:
    with pytest.raises(TollbarError, match=r"number|count"):
        wire.parse(text.format(value), table, where="file")


@pytest.mark.parametrize(
    "text", ["ratio = true", "either = true", "by-name.a = true", "several = [1, true]", "inners = [{ number = true }]"]
)
def test_a_boolean_is_no_number_wherever_one_may_be(text: str) -> None:
    with pytest.raises(TollbarError, match=r"ratio|either|by-name|several|inners"):
        wire.parse(text, Table, where="file")


def test_a_whole_number_is_a_ratio_too() -> None:
    assert 2.0 == wire.parse("ratio = 2", Table, where="file").ratio


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file.toml").write_bytes(b"\xef\xbb\xbfcount = 2\r\n")
    assert 2 == wire.read(tmp_path / "file.toml", Table).count
    assert 2 == wire.parse("\ufeffcount = 2", Table, where="file").count


MANY = 30_000
HOSTILE = {
    "wrong items": f"several = [{'[],' * MANY}]",
    "wrong tables": f"inners = [{'[],' * MANY}]",
    "wrong values": "\n".join(f"by-name.a{number} = []" for number in range(9_000)),
    "unknown keys": "\n".join(f"a{number} = 1" for number in range(MANY)),
    "unknown keys of a table": "[inner]\n" + "\n".join(f"a{number} = 1" for number in range(MANY)),
    "a long key": "a." * MANY + "b = 1",
    "a long key of an inline table": "x = {" + "a." * MANY + "b = 1}",
    "a long key behind a quoted one": '"=".' + "a." * MANY + "b = 1",
    "a long key in pieces": 'x = {"=" . ' + "a . " * MANY + "b = 1}",
    "a long name": f"{'a' * 1_000_000} = 1",
    "a long value": f"count = '{'a' * 1_000_000}'",
    "nested": "x = " + "[" * MANY,
    "a long number": f"count = {'9' * MANY}",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_text_is_refused_in_one_line(what: str) -> None:
    with pytest.raises(TollbarError) as raised:
        wire.parse(HOSTILE[what], Table, where="file")
    assert "\n" not in str(raised.value)
    assert 2_000 > len(str(raised.value))


@pytest.mark.parametrize(
    "text",
    ["x" * 1_000_000, "a." * 90 + "\n", '"' * 1_000_000, "a . " * 99 + "\n"],
    ids=["word", "parts", "quotes", "spaces"],
)
def test_looking_for_long_keys_takes_linear_time(text: str) -> None:
    """Quadratic time would be hours."""
    assert wire._LONG_KEY.search(text) is None
