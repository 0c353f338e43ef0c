"""Versions of the method: METHOD.md explains each, and `price` does not mix two."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from builders import run
from test_inventory import algorithm
from tollbar.cli import price as command
from tollbar.core import method
from tollbar.core.errors import TollbarError


def test_every_version_has_its_line_in_the_page() -> None:
    text = (Path(__file__).parent.parent / "METHOD.md").read_text("utf-8").partition("\n## Versions\n")[2]
    numbers = re.findall(r"(?m)^\| (\d+) \| \S", text.partition("\n## ")[0])
    assert [*range(method.FIRST, method.VERSION + 1)] == [*map(int, numbers)]


@pytest.mark.parametrize(("versions", "for_"), [((method.FIRST, method.VERSION), "0s"), ((method.FIRST,), "2s")])
def test_costs_of_two_versions_are_not_set_side_by_side(
    versions: tuple[int, ...], for_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [algorithm("MD5")]}
    (tmp_path / "cbom.json").write_text(json.dumps(content), "utf-8")
    found = iter([replace(run(), name=f"by {version}", method=version) for version in versions])
    monkeypatch.setattr(command, "read_run", lambda path: next(found))
    monkeypatch.setattr(command, "_measured", lambda *_: pytest.fail("nothing is measured"))
    runs = tuple(Path(f"by {version}") for version in versions)
    with pytest.raises(TollbarError, match=f"versions {method.FIRST} and {method.VERSION} of the method") as refused:
        command.price(tmp_path / "cbom.json", policy=("cnsa-2.0-2024-12",), run=runs, for_=for_)
    assert "--across-methods" in (refused.value.hint or "")
