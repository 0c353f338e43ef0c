"""Requested precision: blocks are added until it is reached, or the time is over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import share
from conftest import Tollbar
from tollbar.lab import BLOCKS_FOR_WIDTH, MORE_BLOCKS


def test_blocks_are_added_until_the_precision_is_reached(tollbar: Tollbar, fake_study: Path, tmp_path: Path) -> None:
    """Only widths decide, so it counts as one look, however many blocks it took."""
    longest = share.of("8s", "20s")
    done = tollbar("run", fake_study, "--json", "--no-report", "--precision", "0.2%", "--for", longest, "--seed", 4)
    (study,) = json.loads(done.stdout)["studies"]
    widths = [(toll["high"] / toll["low"]) ** 0.5 - 1 for toll in study["tolls"] if not toll["aa"]]
    # Blocks of the run; a toll has those in which the core was quiet.
    (blocks,) = {kept["blocks"] for kept in studies_of(tmp_path)}
    assert ("0.2 % reached after" in done.stderr) == (max(widths) <= 0.002)
    assert blocks >= BLOCKS_FOR_WIDTH or max(widths) > 0.002
    assert 0.96 == study["confidence"]


def test_a_precision_that_cannot_be_reached_says_what_it_would_take(tollbar: Tollbar, fake_study: Path) -> None:
    done = tollbar("run", fake_study, "--json", "--no-report", "--precision", "0.01%", "--for", "1s")
    said = " ".join(done.stderr.split())
    assert 0 == done.returncode
    assert "not ± 0.01 %" in said
    assert "more blocks (" in said
    assert json.loads(done.stdout)["studies"][0]["tolls"]


def test_blocks_grow_by_a_share_of_what_there_is() -> None:
    """Widths are checked some ten times at most."""
    assert 0 < MORE_BLOCKS <= 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--precision", "2"), "needs a unit"),
        (("--precision", "0%"), "must be greater than 0 %"),
        (("--precision", "2%", "--for", "soon"), "--for soon"),
        (("--for", "5s"), "needs `--precision`"),
    ],
)
def test_a_precision_is_read_or_refused_in_words(
    tollbar: Tollbar, fake_study: Path, words: tuple[str, ...], said: str
) -> None:
    done = tollbar("run", fake_study, *words)
    assert (2, True) == (done.returncode, said in " ".join(done.stderr.split()))


def test_a_study_may_ask_for_it_itself(tollbar: Tollbar, fake_study: Path) -> None:
    text = fake_study.read_text()
    fake_study.write_text(text.replace("[measure]", '[measure]\nprecision = "50 %"\nlongest = "5 s"'))
    done = tollbar("run", fake_study, "--json", "--no-report")
    assert "50 % reached after" in done.stderr
    fake_study.write_text(text.replace("[measure]", '[measure]\nlongest = "5 s"'))
    refused = tollbar("run", fake_study)
    assert (2, True) == (refused.returncode, "`measure.precision`" in refused.stderr)


@pytest.mark.share(0)
def test_a_run_that_is_resumed_keeps_its_precision(tollbar: Tollbar, fake_study: Path, tmp_path: Path) -> None:
    begun = tollbar("run", fake_study, "--json", "--no-report", "--precision", "60%")
    assert "60 % reached after" in begun.stderr
    # The time limit was computed from the initial blocks.
    longest_s = longest(tmp_path)
    assert longest_s > 0
    (run,) = (tmp_path / "runs").iterdir()
    on = tollbar("run", "--resume", run, "--json", "--no-report", "--blocks", "8")
    assert "60 % reached after" in on.stderr
    assert longest_s == longest(tmp_path)
    other = tollbar("run", "--resume", run, "--json", "--no-report", "--precision", "55%")
    assert "55 % reached after" in other.stderr


def studies_of(folder: Path) -> list[dict[str, Any]]:
    """Return the run's records of its studies."""
    (run,) = (folder / "runs").iterdir()
    return [*json.loads((run / "run.json").read_text())["studies"].values()]


def longest(folder: Path) -> float:
    """Return the time limit of the run's one study."""
    (study,) = studies_of(folder)
    return float(study["longest_s"])


def test_a_precision_of_nothing_is_said_to_mean_nothing(tollbar: Tollbar, fake_study: Path) -> None:
    """A study of one cell compares nothing, and ends after its own blocks."""
    text = fake_study.read_text().partition("[[claim]]")[0]
    fake_study.write_text(text.replace('["spin-1", "spin-1-again", "spin-2"]', '["spin-1"]'))
    done = tollbar("run", fake_study, "--json", "--no-report", "--precision", "2%", "--blocks", "5")
    assert 0 == done.returncode, done.stderr
    assert "no cell was compared, so 2 % has no meaning" in " ".join(done.stderr.split())
