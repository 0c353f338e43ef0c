"""The lock files satisfy the project's requirements: a matching version of each package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
GROUPS = PROJECT["dependency-groups"]
RUNTIME = [*PROJECT["project"]["dependencies"], *GROUPS["build"], *PROJECT["build-system"]["requires"]]
EXTRAS = [one for extra in PROJECT["project"]["optional-dependencies"].values() for one in extra]
DEVELOPMENT = [*RUNTIME, *EXTRAS, *(one for one in GROUPS["dev"] if isinstance(one, str))]
ASKED = {"requirements.lock": RUNTIME, "requirements-dev.lock": DEVELOPMENT}


def _locked(name: str) -> dict[str, set[str]]:
    """Return the versions of each package in a lock file.

    Some packages have a version for each version of Python.
    """
    versions: dict[str, set[str]] = {}
    for package, version in re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==([\w.]+)", (ROOT / name).read_text("utf-8"), re.M):
        versions.setdefault(canonicalize_name(package), set()).add(version)
    return versions


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_for_is_locked(name: str) -> None:
    """Until `make lock` resolves the files again, other versions are installed than the project requires."""
    locked = _locked(name)
    assert ASKED[name]
    for requirement in map(Requirement, ASKED[name]):
        versions = locked.get(canonicalize_name(requirement.name))
        assert versions, requirement
        assert all(requirement.specifier.contains(one) for one in versions), (requirement, versions)


def test_a_developer_has_the_versions_of_a_user() -> None:
    runtime, development = map(_locked, ASKED)
    assert runtime == {name: development[name] for name in runtime}


def test_a_user_installs_nothing_that_only_tests_need() -> None:
    assert not {"ray", "pyarrow", "mypy", "selenium", "altair", "pytest"} & _locked("requirements.lock").keys()
