"""Supply chain: unreviewed licences, a reproducible bill of materials, byte-identical wheels."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench import supply

from conftest import lacking

MEMBERS = {"tollbar/__init__.py": "one", "tollbar-engine": "two"}


def package(**said: str) -> Any:
    """Return an installed package with this metadata."""
    metadata = Message()
    for name, value in said.items():
        metadata[name.replace("_", "-")] = value
    return SimpleNamespace(metadata=metadata)


@pytest.mark.parametrize(
    ("said", "spdx", "is_known"),
    [
        ({"License_Expression": "MIT"}, "MIT", True),
        ({"License_Expression": "Apache-2.0 OR MIT"}, "Apache-2.0 OR MIT", True),
        ({"Classifier": "License :: OSI Approved :: BSD License"}, "BSD-3-Clause", True),
        ({"License": "Apache 2.0\nand its text"}, "Apache-2.0", True),
        ({"License_Expression": "MIT AND GPL-3.0-only"}, "MIT AND GPL-3.0-only", False),
        ({"License": "as you like it"}, "as you like it", False),
        ({}, "not stated", False),
    ],
)
def test_a_licence_that_was_not_looked_at_is_named(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str], spdx: str, is_known: bool
) -> None:
    monkeypatch.setattr(supply, "packages", lambda: {"usual": package(License="MIT"), "one": package(**said)})
    assert spdx == supply.licence(package(**said))
    assert ([] if is_known else [f"one: {spdx}"]) == supply.licences()


def test_all_that_tollbar_needs_is_looked_at() -> None:
    found = supply.packages()
    assert {"tollbar", "numpy", "psycopg-binary"} <= {*found}
    assert not {"ray", "pytest"} & {*found}
    assert [] == supply.licences()


def test_the_bill_is_the_same_twice() -> None:
    """Same serial number, each part once, no dependency on an unlisted part."""
    if shutil.which("cargo") is None:
        lacking("the bill of materials asks cargo for the engine's crates")
    bill = supply.bill()
    assert bill == supply.bill()
    parts = [one["bom-ref"] for one in (bill["metadata"]["component"], *bill["components"])]
    assert len(parts) == len({*parts})
    assert {*parts} == {one["ref"] for one in bill["dependencies"]}
    assert {inner for one in bill["dependencies"] for inner in one["dependsOn"]} <= {*parts}


def test_a_bill_that_was_not_judged_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault_of(_: str) -> None:
        raise ImportError("no cyclonedx")

    monkeypatch.setattr(supply, "licences", list)
    monkeypatch.setattr(supply, "bill", lambda: {"components": []})
    monkeypatch.setattr(supply, "fault_of", fault_of)
    monkeypatch.setattr(supply, "reproducible", list)
    assert [True, False, True] == [figure.met for figure in supply.figures()]


def archive(path: Path, members: Mapping[str, str], year: int = 2026) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in members.items():
            wheel.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), text)
    return path


@pytest.mark.parametrize(
    ("other", "year", "differ"),
    [
        (MEMBERS, 2026, []),
        (MEMBERS | {"tollbar-engine": "two "}, 2026, ["tollbar-engine"]),
        (MEMBERS | {"more": ""}, 2026, ["more"]),
        (MEMBERS, 2025, ["the archive alone"]),
    ],
    ids=["the same", "a byte", "a file", "a time"],
)
def test_wheels_are_compared_by_their_bytes(
    monkeypatch: pytest.MonkeyPatch, other: Mapping[str, str], year: int, differ: list[str]
) -> None:
    built = iter([(MEMBERS, 2026), (other, year)])
    monkeypatch.setattr(supply, "wheel", lambda folder: archive(folder / "one.whl", *next(built)))
    assert differ == supply.reproducible()
