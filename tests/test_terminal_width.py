"""Every shipped study on terminals of three widths: no necessary part of an answer is cut."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from rich.cells import cell_len

from fabricated import fabricated, shipped
from report_example import digests, judgement, passwords
from tollbar.analysis import StudyJudgement
from tollbar.catalog.families import Standing
from tollbar.core import units
from tollbar.core.markdown import escaped
from tollbar.report.blocks import Table, TableCell, numbers, row_names, texts
from tollbar.report.groups import by_row, cost_metric
from tollbar.report.numbers import ratio_words
from tollbar.report.sections.answer import answer
from tollbar.report.sections.columns import compared
from tollbar.report.sections.results import results
from tollbar.report.table_cells import BAR, INTERVAL, STANDING, bar
from tollbar.report.terminal import layout, show_judgement, show_markdown, streams

WIDTHS = (80, 100, 120)


@pytest.fixture(autouse=True)
def _fresh_console() -> Iterator[None]:
    """Clear the console, which is made once and would keep the first test's standard output."""
    streams.stdout.cache_clear()
    yield
    streams.stdout.cache_clear()


def shown(
    study: StudyJudgement,
    width: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    everything: bool = True,
) -> list[str]:
    """Return the lines on a terminal of this width."""
    monkeypatch.setenv("COLUMNS", str(width))
    streams.stdout.cache_clear()
    show_judgement(judgement([study]), everything=everything)
    return capsys.readouterr().out.splitlines()


@pytest.mark.share(10)
@pytest.mark.parametrize("name", shipped())
def test_no_ratio_or_verdict_of_a_shipped_study_is_cut(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 80, 100 and 120 columns."""
    study = fabricated(name)
    cost = by_row(study, cost_metric(study))
    for width in WIDTHS:
        lines = shown(study, width, capsys, monkeypatch)
        assert [] == [line for line in lines if cell_len(line) > width and len(line.split()) > 1]
        expected = Counter(
            (
                units.show_nanoseconds(cost[toll.row.key].value),
                ratio_words(toll.ratio.estimate) if toll.ratio else "",
                str(toll.verdict),
            )
            for toll in compared(study)
        )
        assert expected
        for (spent, ratio, verdict), count in expected.items():
            whole = re.compile(rf"(?:^|  ){re.escape(spent)}  .*(?<= ){re.escape(ratio)}  .*\b{verdict}\b")
            assert count <= sum(bool(whole.search(line)) for line in lines), (spent, ratio, verdict, width)
        text = " ".join(" ".join(lines).split())
        for choice in {toll.row.choice for toll in compared(study)}:
            assert choice in text
        for contrast in study.contrasts:
            assert re.search(rf"{re.escape(ratio_words(contrast.most))} .*{contrast.verdict}", text)
        for claim in study.claims:
            assert claim.ratio is None or f" {ratio_words(claim.ratio.estimate)} " in text
        for cell in (cell for table in study.tables for cell in table.cells if cell.ratio and cell.verdict):
            assert cell.ratio
            # With its interval, or without one if there is no room.
            ratio = re.escape(ratio_words(cell.ratio.estimate))
            assert re.search(rf" {ratio}(?: \[[^]]+\])? {cell.verdict}", text), (ratio, width)


def table(verdict: str = "unclear", standing: Standing = Standing.DISALLOWED) -> Table:
    columns = (
        *row_names("choice", "server"),
        *numbers("cost", "× baseline"),
        *texts("96 % interval", leaves=INTERVAL),
        *texts("", leaves=BAR),
        *texts("verdict"),
        *texts("standing", leaves=STANDING),
    )
    row = (
        TableCell("sha-256"),
        TableCell("embedded"),
        TableCell("1.23 µs"),
        TableCell("1.04"),
        TableCell("[1.01, 1.07]"),
        TableCell("", bar=0.5),
        TableCell(verdict, small="undecided, about 3 more blocks"),
        TableCell(standing, standing=standing, stays=standing if standing is Standing.DISALLOWED else None),
    )
    return Table("", columns, [row])


def test_bar_standing_and_interval_leave_in_this_order() -> None:
    """Rows stack only when all three are gone."""
    found: list[tuple[str, ...]] = []
    for longer in range(90):
        text = "\n".join(
            line.plain for line in layout.lines([table("v" * longer + "unclear", Standing.RECOMMENDED)], 120)
        )
        if "sha-256 · embedded" in text:
            break
        marks = {"bar": "█", "standing": " recommended", "interval": "[1.01, 1.07]"}
        gone = tuple(name for name, mark in marks.items() if mark not in text)
        assert all(kept in text for kept in ("1.23 µs", "1.04", "unclear", "undecided, about 3 more blocks"))
        if gone not in found:
            found.append(gone)
    # If all three are gone and there is still no room, rows stack.
    assert [(), ("bar",), ("bar", "standing"), ("bar", "standing", "interval")] == found
    assert longer < 89


def test_a_bad_standing_stays_behind_the_name_when_its_column_leaves() -> None:
    for longer in range(90):
        text = "\n".join(line.plain for line in layout.lines([table("v" * longer + "unclear")], 120))
        assert 1 == text.count("disallowed")
    assert "embedded (disallowed)" in text


def test_rows_stack_below_a_hundred_columns() -> None:
    made = table(verdict="v" * 20 + "unclear")
    wide = [line.plain for line in layout.lines([made], 100)]
    narrow = [line.plain for line in layout.lines([made], 80)]
    assert any("sha-256" in line and "1.04" in line for line in wide)
    assert " sha-256 · embedded" in narrow
    assert not any("sha-256" in line and "1.04" in line for line in narrow)
    figures = next(line for line in narrow if "1.04" in line)
    assert "disallowed" in figures
    assert "[1.01, 1.07]" in figures


def test_bars_are_on_one_logarithmic_scale() -> None:
    """No bar within the threshold; never longer for less; ×0.99 never as long as ×0.38, whatever else there is."""
    for widest in (0.05, 1.0, 7.0, 13.0):
        drawn = {r: layout.drawn(bar(r, 0.005, max(widest, 0.97))) for r in (0.38, 0.99, 1.0, 1.004, 1.01, 2.0)}
        filled = {ratio: len(text.strip(" │")) + text.count("█") for ratio, text in drawn.items()}
        assert filled[0.99] < filled[0.38]
        assert filled[1.0] == filled[1.004] == 0
        assert filled[1.01] < filled[2.0]
        assert {layout.BAR_WIDTH} == {len(text) for text in drawn.values()}
    assert layout.drawn(bar(0.5, 0.03, 1.0)).strip() == layout.drawn(bar(2.0, 0.03, 1.0)).strip()[::-1].replace(
        "▌", "▐"
    )
    assert 0.0 == bar(1.02, 0.03, 1.0) == bar(0.98, 0.03, 1.0)


def test_sizes_stand_apart_with_their_baseline_in_its_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(digests(), 120, capsys, monkeypatch)
    small, large = (next(n for n, line in enumerate(lines) if line == f" {size}") for size in ("64 B", "16 KiB"))
    assert small < large
    first = [line.split()[0] for line in lines[small + 1 : large - 1]]
    assert 2 == first.count("sha-256")
    before = first[: first.index("sha-256")]
    assert {"md5", "blake2b"}.isdisjoint(before) is False or "sha-1" in before
    assert all("baseline" in line for line in lines[small:large] if line.startswith(" sha-256"))
    assert any(line.startswith("In every row: ") and "digest" in line for line in lines)
    assert not any("openssl" in line for line in lines if line.startswith("In every row"))


def test_a_choice_that_all_rows_have_is_said_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(fabricated("runtimes/runtimes-ciphers"), 120, capsys, monkeypatch)
    assert any("aes-256-gcm" in line for line in lines if line.startswith("In every row: "))
    assert not any(line.startswith(" choice ") for line in lines)
    assert any(line.startswith(" provider ") for line in lines)


def test_bytes_that_are_worked_on_are_said_by_the_second(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For hashes of kilobytes; a password hash processes no bytes."""
    assert any("per s of CPU" in line for line in shown(digests(), 120, capsys, monkeypatch))
    assert any(" GB/s" in line for line in shown(digests(), 120, capsys, monkeypatch))
    assert not any("per s of CPU" in line for line in shown(passwords(), 120, capsys, monkeypatch))


def test_a_tiny_ratio_is_one_over_something(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(passwords(), 100, capsys, monkeypatch)
    line = next(line for line in lines if "0.0000042" in line)
    assert "[0.0000041, 0.0000042]" in line
    (verdict,) = [
        cell for one in results(passwords()).brief for row in one.rows for cell in row if cell.says == "saves"
    ]
    assert verdict.good is None


@pytest.mark.parametrize("standing", Standing)
def test_only_a_choice_in_good_standing_saves_in_green(standing: Standing) -> None:
    study = passwords()
    tolls = tuple(
        replace(t, row=replace(t.row, standing=standing)) if t.row is not t.against else t for t in study.tolls
    )
    rows = tuple(r if r.against == r.key else replace(r, standing=standing) for r in study.rows)
    found = results(replace(study, tolls=tolls, study=replace(study.study, rows=rows)))
    says = {cell.good for one in found.brief for row in one.rows for cell in row if cell.says == "saves"}
    assert {True if standing in (Standing.RECOMMENDED, Standing.ACCEPTABLE) else None} == says


def test_one_fact_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(digests(), 200, capsys, monkeypatch)
    said = [line for line in lines if "unsupported" in line]
    assert ["  unsupported: blake3 · openssl 3.0.19 (2 cells): OpenSSL 3.0.19 has no digest of the name BLAKE3"] == said


def test_more_than_a_screenful_is_counted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    study = digests()
    whole = sum(len(one.rows) for one in results(study).brief)
    found = results(study, 5)
    assert (5, whole - 5) == (sum(len(one.rows) for one in found.brief), found.hidden)
    lines = shown(study, 80, capsys, monkeypatch, everything=False)
    hidden = results(study, 24).hidden
    assert any(f"… {hidden} more row" in line for line in lines) is (hidden > 0)


def test_columns_are_honoured_in_a_pipe_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for said, width in (("80", 80), ("133", 133)):
        monkeypatch.setenv("COLUMNS", said)
        assert width == streams.table_width()
    monkeypatch.setenv("COLUMNS", "wide")
    assert streams.table_width() >= 80


@pytest.mark.parametrize("name", ["COLUMNS", "LINES"])
@pytest.mark.parametrize("value", ["", "0", "-5", "wide", "²", "٣", "8.5", "9" * 5000, "1" + "0" * 30])
def test_a_size_that_is_no_number_is_passed_over(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python treats `²` as a digit, and refuses to read more than 4,300 digits."""
    monkeypatch.delenv("COLUMNS", raising=False)
    usual = streams.table_width()
    monkeypatch.setenv(name, value)
    assert usual == streams.table_width()
    for console in (streams.stdout.__wrapped__(), streams.stderr.__wrapped__()):
        assert 0 < console.width < 1_000_000


def test_markdown_has_every_column(capsys: pytest.CaptureFixture[str]) -> None:
    show_markdown(judgement([digests()]), everything=True)
    text = capsys.readouterr().out
    heads = [line for line in text.splitlines() if line.startswith("| at |")]
    assert 1 == len(heads)
    assert all(word in heads[0] for word in ("choice", "× baseline", "% interval", "verdict", "standing"))
    rows = [line for line in text.splitlines() if line.startswith("| 64 B |")]
    assert {heads[0].count("|")} == {line.count("|") for line in rows}
    assert sum(t.row.coordinates["bytes"] == 64 for t in digests().tolls if t.ratio) == len(rows)
    assert text.startswith("### What does each hash function cost")
    headline, *paragraphs = answer(digests())
    assert f"\n**{escaped(headline)}**\n" in text
    assert all(f"\n- {escaped(paragraph)}\n" in text for paragraph in paragraphs)
    assert "| 64 B | sha-1 | rustcrypto 0.10.9 |" in text


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "pipe"])
def test_a_sentence_is_wrapped_between_words_on_a_terminal_alone(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "digests: SHA-256: 211 ns of CPU a hash at 64 B. [bold]SHA3-256 costs 276 ns more (×\u00a02.30)."
    file = io.StringIO()
    console = streams._Console(file=file, soft_wrap=True, width=40, force_terminal=is_terminal, no_color=True)
    monkeypatch.setattr(streams, "stderr", lambda: console)
    streams.say_sentence(text)
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert all(line.startswith("  ") for line in lines)
    assert f"  {text}" == "  " + " ".join(line.strip() for line in lines)
    assert ([1] if not is_terminal else [3]) == [len(lines)]
    assert not is_terminal or max(map(cell_len, lines)) <= 40
