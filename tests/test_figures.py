"""Figures of the bench: each can miss its goal, and a failure misses."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import pytest
from bench import __main__ as bench
from bench.figures import Figure, timed
from bench.size import of_check


@pytest.mark.parametrize(("status", "quick"), [(0, True), (1, False), (-9, False)])
def test_a_command_that_fails_is_not_quick(status: int, quick: bool) -> None:
    """A crash within a millisecond meets no goal."""
    code = f"import os, sys; sys.exit({status}) if {status} >= 0 else os.kill(os.getpid(), {-status})"
    found = timed(sys.executable, "-c", code)
    assert (status, quick) == (found.status, math.isfinite(found.wall_s))
    assert math.isfinite(timed(sys.executable, "-c", "raise SystemExit(3)", done=(0, 3)).wall_s)


def test_a_part_that_fails_misses(monkeypatch: pytest.MonkeyPatch) -> None:

    def figures() -> Iterator[Figure]:
        yield Figure("one", "at most 1", "1", True)
        raise OSError("the disk is full")

    monkeypatch.setitem(bench.ALL, "broken", figures)
    one, rest = bench._of_part("broken")
    assert (True, False) == (one.met, rest.met)
    assert "OSError: the disk is full" == rest.here


@pytest.mark.parametrize(
    ("moments", "measured", "met", "here"),
    [
        (("quiet", "quiet"), 1.02, True, "1.020 quiet, intervals meet"),
        (("noisy", "noisy"), 1.02, True, "1.020 noisy, intervals meet"),
        (("quiet", "quiet"), 1.07, False, "1.070 quiet, intervals meet"),
        (("quiet", "noisy"), 1.02, False, "noisy over quiet: 1.020 says nothing"),
    ],
)
def test_sides_of_other_moments_are_no_figure(moments: tuple[str, str], measured: float, met: bool, here: str) -> None:
    sides = {
        name: {"estimate": of, "interval": [of - 0.05, of + 0.05], "noisy": of_moments == "noisy"}
        for name, of, of_moments in zip(
            ("predicted", "measured", "in_phases"), (1.0, measured, 1.2), (*moments, "noisy"), strict=True
        )
    }
    figure = of_check("size", "within 5%", sides)
    assert (met, True) == (figure.met, figure.here.startswith(here))
