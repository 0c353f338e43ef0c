"""Open intervals, thresholds of several runs, and shares: each has one meaning in all outputs."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from conftest import Tollbar
from size_lab import HANDSHAKE_TERM, handshakes, mix, sized
from tollbar.analysis import Verdict
from tollbar.cli.layouts import read_share
from tollbar.core.errors import TollbarError
from tollbar.core.intervals import Interval
from tollbar.report.json_forms.form import ends_of


def test_an_open_interval_has_no_ends() -> None:
    assert (None, None) == ends_of(Interval(1.0, 0.0, inf, 0.96, 3))
    assert (None, None) == ends_of(None)
    assert (0.9, 1.1) == ends_of(Interval(1.0, 0.9, 1.1, 0.96, 12))


@pytest.mark.parametrize(("times", "verdict"), [(1.01, Verdict.FREE), (2.0, Verdict.COSTS), (0.1, Verdict.SAVES)])
def test_a_swap_over_several_runs_has_a_threshold(times: float, verdict: Verdict, tmp_path: Path) -> None:
    """The threshold is that of a single run: 1 % is no relevant difference in either direction."""
    of = mix(tmp_path, HANDSHAKE_TERM.format(rate=1000, resumed=50))
    full = handshakes({"full": 300_000.0, "rsa": 300_000.0 * times, "bare": 30_000.0})
    resumed = handshakes({"resumed": 100_000.0, "rsa resumed": 100_000.0 * times, "bare": 30_000.0}, seed=5)
    (swap,) = sized(of, full, resumed).terms[0].swaps
    assert ("rsa-2048", verdict) == (swap.value, swap.verdict)


def test_a_share_above_zero_is_asked_for_by_each_command(tollbar: Tollbar, fake_runs: Path) -> None:
    """`--fail-above 0%` could never report that nothing rose."""
    for words in (
        ("compare", fake_runs / "one", fake_runs / "one"),
        ("upgrade", "libcrypto", "libcrypto:psycopg"),
    ):
        done = tollbar(*words, "--fail-above", "0%")
        assert (2, "") == (done.returncode, done.stdout)
        assert "must be greater than 0 %" in done.stderr
    assert 9.0 == read_share("--fail-above", "900%", most=None)
    with pytest.raises(TollbarError):
        read_share("--precision", "900%")
