"""Ten rooms: the package has no other folders, and each of the twelve documented changes has one room."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tollbar"
ROOMS = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name not in ("__pycache__", "bin")}


def test_the_package_has_the_ten_rooms_of_the_document() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    # The engine's libraries have a tree of their own.
    tree = re.findall(r"^  (\w+)/ ", text.partition("\nengine/\n")[0], re.M)
    assert sorted(tree) == sorted(ROOMS)
    assert {"__init__.py", "__main__.py"} == {path.name for path in PACKAGE.iterdir() if path.is_file()}


def test_each_written_change_has_a_room() -> None:
    rooms = tomllib.loads((ROOT / "tests" / "rooms.toml").read_text("utf-8"))["rooms"]
    assert 12 == len(rooms)
    assert set(rooms.values()) <= ROOMS


# A decision's folder has these two.
OF_EACH_DECISION = ("words", "document")


def test_at_most_two_modules_or_types_share_a_name() -> None:
    """A reader who searches for a name finds its one place, or two."""
    paths = [path for path in PACKAGE.rglob("*.py") if not path.is_relative_to(PACKAGE / "catalog" / "runners")]
    modules = Counter(
        path.stem
        for path in paths
        if path.stem != "__init__" and not (path.stem in OF_EACH_DECISION and path.parents[1].name == "decide")
    )
    trees = [ast.parse(path.read_text("utf-8")) for path in paths]
    types = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    assert {} == {name: number for names in (modules, types) for name, number in names.items() if number > 2}
