"""`tests/again.py`: few failures get a second attempt, alone; repeated or many failures fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

AGAIN = Path(__file__).parent / "again.py"
TESTS = """
from pathlib import Path

import pytest


def test_unstable():
    seen = Path("seen")
    was_seen = seen.exists()
    seen.touch()
    assert was_seen


@pytest.mark.parametrize("build", ["node@22"])
@pytest.mark.xdist_group("one")
def test_broken(build):
    raise ValueError
"""


@pytest.mark.parametrize(
    ("names", "status", "says"),
    [
        (["test_few.py::test_unstable@one"], 0, "passed the second time: unstable"),
        (["test_few.py::test_broken[node@22]@one"], 1, "failed again"),
        ([f"test_few.py::test_unstable[{number}]" for number in range(4)], 1, "4 tests failed: no second attempt"),
        ([], 1, "0 tests failed: no second attempt"),
    ],
)
def test_a_second_attempt_is_for_few(tmp_path: Path, names: list[str], status: int, says: str) -> None:
    """Names come from pytest's cache, with the groups that pytest-xdist adds."""
    (tmp_path / "test_few.py").write_text(TESTS)
    (tmp_path / "seen").touch()
    failed = tmp_path / "lastfailed"
    failed.write_text(json.dumps(dict.fromkeys(names, True)))
    run = f"import sys; sys.path.insert(0, {str(AGAIN.parent)!r}); import again; from pathlib import Path; "
    run += f"sys.exit(again.attempt(Path({str(failed)!r})))"
    quiet = {**os.environ, "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    done = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, env=quiet, capture_output=True, text=True)
    assert status == done.returncode, done.stdout + done.stderr
    assert says in done.stderr
