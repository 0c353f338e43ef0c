"""Unusable names and folders: a command refuses them in one line, or skips them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from conftest import lacking
from tollbar import cli

STUDY = 'question = "?"\nfamily = "digest"\nchoices = ["md5", "sha-256"]\nproviders = ["libcrypto"]\n'


def _loop(folder: Path) -> str:
    (folder / "loop.toml").symlink_to("loop.toml")
    return "loop.toml"


def _of_another(folder: Path) -> str:
    """Make a folder that only its owner may enter; root may, and finds nothing there."""
    (folder / "closed").mkdir(mode=0)
    return "closed/one.toml"


NAMES: Mapping[str, Callable[[Path], str]] = {
    "too long": lambda folder: "x" * 5000,
    "too long, of TOML": lambda folder: "x" * 300 + ".toml",
    "below a name too long": lambda folder: "x" * 300 + "/one.toml",
    "a link to itself": _loop,
    "below a link to itself": lambda folder: f"{_loop(folder)}/one.toml",
    "in a folder of another user": _of_another,
}
# `{}` is the name.
COMMANDS: Mapping[str, Sequence[str]] = {
    "plan": ["plan", "{}"],
    "show": ["show", "{}"],
    "verify": ["verify", "{}"],
    "a runner": ["verify", "--runner", "{}"],
    "check": ["check", "{}"],
    "size": ["size", "{}"],
    "price": ["price", "{}"],
    "a policy": ["choose", "digest", "--for", "0s", "--policy", "{}"],
    "a library": ["plan", "right.toml", "--library", "{}"],
    "run on": ["run", "--resume", "{}"],
    "judge": ["judge", "{}"],
    "compare by machine": ["compare", "--by", "machine", "{}"],
    "upgrade": ["upgrade", "./{}", "./{}"],
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "right.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for closed in tmp_path.glob("closed"):
        closed.chmod(0o700)


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_that_cannot_be_looked_at_is_one_line(
    kind: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = NAMES[kind](place)
    for command, words in COMMANDS.items():
        assert 2 == cli._status_of([word.format(name) for word in words]), command
        refused = capsys.readouterr().err.splitlines()
        assert 1 == sum(line.startswith("error: ") for line in refused), (command, refused)


@pytest.mark.parametrize("kind", NAMES)
def test_a_folder_of_the_search_path_that_cannot_be_looked_at_is_passed_over(
    kind: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOLLBAR_PATH", os.pathsep.join([NAMES[kind](place), str(place / NAMES["too long"](place))]))
    assert (0, "") == (cli._status_of(["plan", "right.toml"]), capsys.readouterr().err)


def test_a_search_path_from_a_folder_that_is_gone_is_passed_over(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "gone").mkdir()
    monkeypatch.chdir(place / "gone")
    (place / "gone").rmdir()
    monkeypatch.setenv("TOLLBAR_PATH", "own")
    assert (0, "") == (cli._status_of(["plan", str(place / "right.toml")]), capsys.readouterr().err)


@pytest.fixture
def read_only(place: Path) -> Iterator[Path]:
    """Yield a folder in which this user cannot write."""
    (folder := place / "read-only").mkdir()
    if os.geteuid() != 0:
        folder.chmod(0o500)
        yield folder
        folder.chmod(0o700)
        return
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", folder], check=False).returncode:
        lacking("a file system that is mounted read-only")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_page_that_could_not_be_written_is_refused_before_the_answer(
    read_only: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bom.json").write_text(INVENTORY)
    for page in (read_only / "page.html", "x" * 300 + ".html"):
        assert 2 == cli._status_of(["price", "--for", "0s", "bom.json", "--output", str(page)])
        said = capsys.readouterr()
        assert "" == said.out
        assert "cannot be written" in said.err


INVENTORY = '{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": []}'
WRITING: Mapping[str, Sequence[str]] = {
    "new": ["new", "digest", "--output", "{}.toml"],
    "price": ["price", "--for", "0s", "bom.json", "--output", "{}.html"],
}


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.parametrize("name", ["a\nwarning: forged", "a\u2028b", "a b"])
def test_a_written_file_is_named_in_one_line(
    command: str, name: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "bom.json").write_text(INVENTORY)
    assert 0 == cli._status_of([word.format(name) for word in WRITING[command]])
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("  study ", "  page "))]
    assert f" {' '.join(name.split())}." in line
