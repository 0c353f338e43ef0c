"""Inventories: components are read in each place of CycloneDX, and duplicate keys are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from test_inventory import algorithm, made
from test_price_weak import TODAY
from tollbar.core.errors import TollbarError
from tollbar.decide.price import price
from tollbar.decide.price.document import document
from tollbar.decide.price.inventory import Inventory, parse
from tollbar.decide.price.keys import twice

MD5 = algorithm("MD5", primitive="hash")
HEAD = '"bomFormat": "CycloneDX", "specVersion": "1.6"'


def places(read: Inventory) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.name, one.places) for one in read.assets]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"metadata": {"component": MD5}}, [("MD5", ())]),
        ({"metadata": {"component": {"name": "app", "components": [MD5]}}}, [("MD5", ("app",))]),
        ({"metadata": {"component": MD5 | {"components": [algorithm("SHA-1")]}}}, [("MD5", ()), ("SHA-1", ("MD5",))]),
        ({"formulation": [{}, {"components": None}, {"components": [MD5]}]}, [("MD5", ())]),
        ({"formulation": [{"components": [{"name": "make", "components": [MD5]}]}]}, [("MD5", ("make",))]),
        ({"declarations": {"targets": {"components": [MD5]}}}, [("MD5", ())]),
    ],
)
def test_assets_are_found_in_each_place_of_components(more: dict[str, Any], expected: list[Any]) -> None:
    assert [("SHA-256", ()), *expected] == places(made(algorithm("SHA-256"), **more))
    assert expected == places(parse(json.dumps(json.loads(f"{{{HEAD}}}") | more).encode(), Path("cbom.json")))


@pytest.mark.parametrize("more", [{}, {"metadata": None}, {"metadata": {"component": None}}, {"components": None}])
@pytest.mark.parametrize("other", [{}, {"formulation": None}, {"declarations": None}, {"declarations": {}}])
def test_places_that_are_not_given_hold_nothing(more: dict[str, Any], other: dict[str, Any]) -> None:
    content = json.dumps(json.loads(f"{{{HEAD}}}") | more | other).encode()
    assert [] == places(parse(content, Path("cbom.json")))


def test_what_an_inventory_is_of_is_none_of_its_components() -> None:
    assert 1 == made({"name": "library"}, metadata={"component": {"name": "app"}}).others


@pytest.mark.parametrize(
    ("place", "components", "more"),
    [
        ("pedigree", [{"name": "fork", "pedigree": {"ancestors": [MD5]}}], {}),
        ("metadata.tools", [], {"metadata": {"tools": {"components": [MD5]}}}),
        ("annotations", [], {"annotations": [{"annotator": {"component": MD5}}]}),
        ("vulnerabilities", [], {"vulnerabilities": [{"tools": {"components": [MD5]}}]}),
    ],
)
def test_places_that_are_not_read_are_said(place: str, components: list[Any], more: dict[str, Any]) -> None:
    read = made(*components, **more)
    assert ((place,), ()) == (read.unread, read.assets)
    assert [place] == document(price(read, (), TODAY, TODAY)).unread
    assert () == made(*components, **json.loads(json.dumps(more).replace("crypto", "x"))).unread or components


@pytest.mark.parametrize(
    "more",
    [
        {"components": {"a": MD5}},
        {"components": MD5},
        {"components": "MD5"},
        {"components": [[MD5]]},
        {"components": [{"name": "x", "components": {"a": MD5}}]},
        {"metadata": [{"component": MD5}]},
        {"metadata": {"component": [MD5]}},
        {"metadata": {"component": {"name": "app", "components": {"a": MD5}}}},
        {"formulation": {"components": [MD5]}},
        {"formulation": [{"components": {"a": MD5}}]},
        {"declarations": {"targets": {"components": {"a": MD5}}}},
    ],
)
def test_a_place_of_another_form_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(TollbarError, match=r"not CycloneDX: `(components|metadata|formulation|declarations)") as raised:
        parse(json.dumps(json.loads(f"{{{HEAD}}}") | more).encode(), Path("cbom.json"))
    assert "cbom.json" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{%s, "components": [{"name": "x"}], "components": []}', "components"),
        ('{%s, "components": [{"name": "MD5", "name": "SHA-256"}]}', "name"),
        ('{%s, "components": [{"name": "MD5", "na\\u006de" : "SHA-256"}]}', "name"),
        ('{%s, "components": [{"cryptoProperties": {"oid": "1.2", "oid": "1.3"}}]}', "oid"),
        ('{%s, "metadata": {"component": {}, "component": {}}}', "component"),
        ('{%s, "specVersion": "1.7"}', "specVersion"),
    ],
)
def test_a_key_that_an_object_has_twice_is_refused(text: str, key: str) -> None:
    """Readers differ in which of the two counts."""
    with pytest.raises(TollbarError, match=f"has the key `{key}` twice"):
        parse((text % HEAD).encode(), Path("cbom.json"))


@pytest.mark.parametrize(
    "text",
    [
        '{"name": {"name": 1}, "x": [{"name": 1}, {"name": 2}]}',
        '{"name": "{\\"name\\": 1, \\"name\\": 2}"}',
        '{"x": ["name", "name"], "name": "name"}',
        '{"other": 1, "other": 2}',
    ],
)
def test_a_key_of_several_objects_is_none_of_one_twice(text: str) -> None:
    assert twice(text.encode(), ["name"]) is None
