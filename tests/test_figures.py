"""Figures of the bench: each can miss, and what fails misses."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import pytest
from bench import __main__ as bench
from bench.figures import Figure, timed


@pytest.mark.parametrize(("status", "quick"), [(0, True), (1, False), (-9, False)])
def test_a_command_that_fails_is_not_quick(status: int, quick: bool) -> None:
    """Whatever it took: a crash within a millisecond meets no goal."""
    code = f"import os, sys; sys.exit({status}) if {status} >= 0 else os.kill(os.getpid(), {-status})"
    found = timed(sys.executable, "-c", code)
    assert (status, quick) == (found.status, math.isfinite(found.wall_s))
    assert math.isfinite(timed(sys.executable, "-c", "raise SystemExit(3)", done=(0, 3)).wall_s)


def test_a_part_that_fails_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had found stays, and the parts after it are measured."""

    def figures() -> Iterator[Figure]:
        yield Figure("one", "at most 1", "1", True)
        raise OSError("the disk is full")

    monkeypatch.setitem(bench.ALL, "broken", figures)
    one, rest = bench._of_part("broken")
    assert (True, False) == (one.met, rest.met)
    assert "OSError: the disk is full" == rest.here
