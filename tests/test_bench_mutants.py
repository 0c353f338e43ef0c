"""Mutants: survivors and killed mutants are counted, and a log counts only for its own tests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import mutants
from bench.mutants import Mutant, Package

SOURCE = "src/tollbar/sums.py"
CODE = "def more(a, b):\n    return a + b\n\n\ndef less(a, b):\n    return a - b\n"
TESTS = "from tollbar.sums import more\n\n\ndef test_more():\n    assert 5 == more(2, 3)\n"
BOTH = "from tollbar.sums import less, more\n\n\ndef test_both():\n    assert (5, 1) == (more(2, 3), less(3, 2))\n"


def changed(was: str, now: str) -> Mutant:
    return Mutant(SOURCE, 1, was, now, CODE.replace(was, now))


TESTED, UNTESTED = changed("return a + b", "return a - b"), changed("return a - b", "return a + b")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a tree with a package of two functions, one of them covered by its tests."""
    root = tmp_path / "root"
    for name, text in {SOURCE: CODE, "src/tollbar/__init__.py": "", "tests/test_sums.py": TESTS}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q", root], check=True)

    def sample(*_: object) -> Iterator[Mutant]:
        yield from (TESTED, UNTESTED)

    # Loading plugins takes pytest longer than these tests do.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(mutants, "ROOT", root)
    monkeypatch.setattr(mutants, "PACKAGES", {"sums": Package("sums.py", "sums")})
    monkeypatch.setattr(mutants, "sample", sample)
    return root


def tried(log: Path) -> tuple[str, bool | None, list[tuple[str, bool]]]:
    """Return the figure's text, its verdict, and whether each tried mutant was killed."""
    before = len(log.read_text().splitlines()) if log.exists() else 0
    (figure,) = mutants.figures(["sums"], jobs=1, log=log)
    lines = [json.loads(line) for line in log.read_text().splitlines()[before:]]
    return figure.here.partition(",")[0], figure.met, [(one["was"], one["by"] is not None) for one in lines]


def test_what_survives_is_counted(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    assert ("1 of 2", False, [(TESTED.was, True), (UNTESTED.was, False)]) == tried(log)
    assert f"{SOURCE}:1\n  - {UNTESTED.was}\n  + {UNTESTED.now}\n" == capsys.readouterr().err
    assert ("1 of 2", False, [(UNTESTED.was, False)]) == tried(log)


def test_a_log_of_other_tests_says_nothing(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    tests, shared, source = root / "tests" / "test_sums.py", root / "tests" / "conftest.py", root / SOURCE
    digests = [mutants.state("sums", root)]
    for path, text in ((tests, BOTH), (shared, "LIMIT = 1\n"), (source, f"{CODE}\n")):
        path.write_text(text)
        digests.append(mutants.state("sums", root))
    assert len(digests) == len({*digests})
    (root / "tests" / "test_other.py").write_text("")
    assert digests[-1] == mutants.state("sums", root), "tests of other packages try nothing of this one"

    source.write_text(CODE)
    assert ("2 of 2", True, [(TESTED.was, True), (UNTESTED.was, True)]) == tried(log)
    tests.write_text(TESTS)
    assert ("1 of 2", False, [(TESTED.was, True), (UNTESTED.was, False)]) == tried(log)


def test_tests_that_fail_without_a_mutant_kill_none(root: Path, tmp_path: Path) -> None:
    (root / "tests" / "test_sums.py").write_text(TESTS.replace("5", "6"))
    with pytest.raises(RuntimeError, match="fail without a mutant"):
        tried(tmp_path / "log")
