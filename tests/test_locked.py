"""The lock file has what the project asks for: a version of each, that fits."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]


def test_what_is_asked_for_is_locked() -> None:
    """`make lock` resolves it anew; until then what is installed is another than what is asked for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    asked = [
        *project["project"]["dependencies"],
        *(one for extra in project["project"]["optional-dependencies"].values() for one in extra),
        *(one for group in project["dependency-groups"].values() for one in group),
        *project["build-system"]["requires"],
    ]
    locked = dict(
        re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==([\w.]+)", (ROOT / "requirements.lock").read_text("utf-8"), re.M)
    )
    versions = {canonicalize_name(name): version for name, version in locked.items()}
    assert asked
    for requirement in map(Requirement, asked):
        version = versions.get(canonicalize_name(requirement.name))
        assert version is not None, requirement
        assert requirement.specifier.contains(version), (requirement, version)
