"""Ten rooms: the package has no other folders, and each of the twelve documented changes has one room."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tollbar"
ROOMS = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name not in ("__pycache__", "bin")}


def test_the_package_has_the_ten_rooms_of_the_document() -> None:
    tree = re.findall(r"^  (\w+)/ ", (ROOT / "docs" / "architecture.md").read_text("utf-8"), re.M)
    assert sorted(tree) == sorted(ROOMS)
    assert {"__init__.py", "__main__.py"} == {path.name for path in PACKAGE.iterdir() if path.is_file()}


def test_each_written_change_has_a_room() -> None:
    rooms = tomllib.loads((ROOT / "tests" / "rooms.toml").read_text("utf-8"))["rooms"]
    assert 12 == len(rooms)
    assert set(rooms.values()) <= ROOMS
