"""The tables of the terminal, as a user reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from report_example import digests, judgement, passwords
from served_example import arrivals, asked_only, handshakes
from tollbar.analysis import Comparison, RowChange, StudyJudgement, Verdict
from tollbar.report import json_forms
from tollbar.report.terminal import show_comparison, show_judgement, streams


@pytest.fixture(autouse=True)
def _fresh_console(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the console wide enough for every column.

    The console is made once and would keep the first test's standard output.
    """
    monkeypatch.setenv("COLUMNS", "200")
    streams.stdout.cache_clear()
    yield
    streams.stdout.cache_clear()


def _shown(capsys: pytest.CaptureFixture[str], study: StudyJudgement) -> str:
    show_judgement(judgement([study]), everything=True)
    return capsys.readouterr().out


def _line(text: str, *words: str) -> str:
    return next(line for line in text.splitlines() if all(word in line for word in words))


@pytest.mark.parametrize("study", [digests(), passwords(), arrivals(), asked_only()], ids=lambda s: s.study.study.name)
@pytest.mark.parametrize(("confidence", "said"), [(0.95, "95 %"), (0.975, "97.5 %"), (1 - 0.05 / 3, "98.33 %")])
def test_intervals_are_headed_by_the_confidence_used(
    capsys: pytest.CaptureFixture[str], study: StudyJudgement, confidence: float, said: str
) -> None:
    text = _shown(capsys, replace(study, confidence=confidence))
    heads = [line for line in text.splitlines() if "% interval" in line]
    assert heads
    assert [] == [line for line in heads if f" {said} interval" not in line]


def test_both_ratios_are_shown_and_what_neighbours_do_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    text = _shown(capsys, digests())
    large = text.partition("\n 16 KiB\n")[2]
    assert ["1.84", "1.97"] == [w for w in _line(large, "blake2b", "openssl").split() if w in ("1.84", "1.97")]
    assert "costs ↑" in _line(large, "blake2b", "openssl")
    assert 1 == text.count("costs ↑")
    assert "↑ suffers more from neighbours than its baseline" in text
    assert "↓" not in text
    assert "↓ suffers less from neighbours than its baseline" in _shown_again(capsys, handshakes())


def _shown_again(capsys: pytest.CaptureFixture[str], study: StudyJudgement) -> str:
    streams.stdout.cache_clear()
    return _shown(capsys, study)


def test_pairs_are_shown_by_their_range(capsys: pytest.CaptureFixture[str]) -> None:
    text = _shown(capsys, digests())
    assert re.search(r"0\.37 to 0\.93  \[0\.37, 0\.94\] +saves +6\n", text)
    # One pair is no range.
    assert " to " not in _line(text, "16 KiB; sha3-256")


def test_capacity_is_named_so(capsys: pytest.CaptureFixture[str]) -> None:
    text = _shown(capsys, digests())
    assert "capacity" in _line(text, "MD5 runs at 1.6 times")
    assert " cost " in _line(text, "SHA-512 costs more")
    assert "Capacity is one over CPU time per operation: the work for which one core has time" in text
    study = digests()
    rated = replace(study, claims=tuple(replace(c, rates=(1204.5, 455.0)) for c in study.claims))
    assert "1,204 / 455" in _line(_shown_again(capsys, rated), "MD5 runs at 1.6 times")


def test_a_cell_that_is_compared_with_nothing_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    study = digests()
    why = "none of the study's baselines is on this server"
    tolls = tuple(
        replace(t, against=t.row, ratio=None, all_samples=None, verdict=Verdict.NOT_MEASURED, reason=why, suffers=None)
        if t.row.choice == "md5"
        else t
        for t in study.tolls
    )
    text = _shown(capsys, replace(study, tolls=tolls))
    assert f"  not compared: md5 (4 cells): {why}" in text
    assert 1 == text.count(why)


def test_a_comparison_names_upgrades_and_what_has_no_partner(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = tuple(RowChange(t.row, t.row, t.ratio, t.ratio) for t in digests().tolls if t.ratio is not None)
    upgrade = "openssl 3.0.19 → 3.0.20"
    gone = tuple(pair.row for pair in pairs[:2])
    comparison = Comparison("one", "other", (), (upgrade,), {"digests": pairs}, {"digests": (gone, ())})
    show_comparison(comparison)
    text = capsys.readouterr().out
    assert f"another version: {upgrade}" in text
    assert "only in one, 2 rows: md5 · libcrypto · " in text
    assert "only in other" not in text
    assert "Median relative difference of the ratios 0.00 %; 100 % of intervals overlap." in text
    found = json_forms.of_comparison(comparison)
    assert (3, [upgrade], [2, 0]) == (found["schema"], found["upgrades"], found["studies"][0]["without_partner"])
    assert {"ratios", "intervals", "other"} < set(found["studies"][0]["tolls"][0])


def test_what_all_rows_have_alike_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    text = _shown(capsys, arrivals())
    assert "Tollbar's own server" in _line(text, "In every row: ")
    assert "server " not in _line(text, "choice", "verdict").replace("server CPU", "")
    heads = [line for line in _shown_again(capsys, handshakes()).splitlines() if line.endswith(" 16 users")]
    assert [" Tollbar's own server, 16 users", " httpd 2.4.71, 16 users"] == heads
