"""The documents tell the truth: what they name exists, and what they promise is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tollbar import study
from tollbar.cli import COMMANDS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def test_readme_names_every_command_and_study() -> None:
    """README names every command and every study."""
    assert set(COMMANDS) == set(re.findall(r"^\| `tollbar (\w+)", README, re.MULTILINE))
    named = set(re.findall(r"^\| `([a-z-]+)` \| ", README.split("### Studies")[1].split("###")[0], re.MULTILINE))
    assert set(study.shipped()) == named


def test_readme_targets_are_in_the_makefile() -> None:
    """Every `make` target that a document names is there."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md", "METHOD.md"):
        used = re.findall(r"(?:^|`)make ([a-z]+)", (ROOT / name).read_text("utf-8"), re.MULTILINE)
        assert set(used) <= targets, name


def test_readme_shows_real_output_and_a_picture() -> None:
    """The output between the markers is that of a run, and the picture is there."""
    shown = README.split("<!-- quick")[1].split("<!-- /quick -->")[0]
    assert all(word in shown for word in ("× baseline", "96 % interval", "verdict", "report.html", "passed"))
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)
    assert pictures
    assert all((ROOT / picture).read_text("utf-8").startswith("<svg") for picture in pictures)


@pytest.mark.parametrize("name", ["README.md", "METHOD.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_paths_in_documents_exist(name: str) -> None:
    """A file that a document names in backticks is there."""
    for path in re.findall(r"`((?:src|engine|tests|bench)/[\w./-]+)`", (ROOT / name).read_text("utf-8")):
        assert (ROOT / path).exists(), path


# How a runner's folder says what its platform's own tool fetches.
LOCKS = (".csproj", ".lock", ".sha256", ".toml", ".xml")


def test_no_lock_names_a_host() -> None:
    """Dependencies are locked by name, version and hash, wherever they are fetched from."""
    assert "://" not in (ROOT / "requirements.lock").read_text("utf-8")
    hosts = set(re.findall(r"https://([\w.-]+)/", (ROOT / "engine" / "Cargo.lock").read_text("utf-8")))
    assert hosts <= {"github.com"}
    runners = [path for path in (ROOT / "src" / "tollbar" / "runners").rglob("*") if path.suffix in LOCKS]
    assert len(runners) > 3
    assert [] == [path for path in runners if "://" in path.read_text("utf-8")]
