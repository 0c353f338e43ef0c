"""The report as a file: its tables, its safety, and its size."""

from __future__ import annotations

import html
import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import share
from report_example import NO_BLAKE3, WRONG_BCRYPT, digests, judgement, large
from report_lab import Pages
from tollbar.core.files import write_atomically
from tollbar.report import html as report
from tollbar.report.html import bundle
from tollbar.report.html.page import marked, script_json


def test_every_row_and_every_reason_is_on_the_page(pages: Pages) -> None:
    text = html.unescape(pages.small.read_text("utf-8"))
    body = text.partition("<main>")[2]
    tables = [part.partition("</table>")[0] for part in body.split("<caption>Every cell of the study")[1:]]
    assert [28, 5] == [table.count("<tr") - 1 for table in tables]
    assert 2 == tables[0].count(NO_BLAKE3)
    assert 1 == tables[1].count(WRONG_BCRYPT)
    assert "2 combinations left out" in body
    assert "Copying the message is measured in the self-test." in body


def test_both_costs_stand_in_the_table_with_the_confidence_that_was_used(pages: Pages) -> None:
    text = html.unescape(pages.small.read_text("utf-8")).partition("<main>")[2].partition('<script type="appl')[0]
    table = text.partition("<caption>Every cell of the study digests, with its 99.5 % interval")[2].partition(
        "</table"
    )[0]
    heads = re.findall(r"<button[^>]*>([^<]*)</button>", table)
    assert {"CPU time per operation, quiet", "all samples", "against SHA-256", "ratio of all samples"} < set(heads)
    assert "95 %" not in text
    assert 1 == table.count("suffers more from neighbours than its baseline")
    assert "Capacity is one over CPU time per operation" in text
    assert "Intervals are at 99.5 % confidence." in text
    # Pairs are printed from the least to the greatest.
    assert "×\u00a00.37 to ×\u00a00.93" in text


def test_every_source_is_named_with_its_date(pages: Pages) -> None:
    text = html.unescape(pages.small.read_text("utf-8"))
    assert "IETF, RFC 6151 section 2: “not where collision resistance is required” (seen 2026-11-21)" in text
    assert "“not for generating signatures” (seen 2026-11-21; clause not re-read)" in text


def test_memory_stands_beside_the_password_hashes_only(pages: Pages) -> None:
    text = pages.small.read_text("utf-8").partition("<main>")[2]
    assert 1 == text.count("Memory and CPU")
    assert text.index("Memory and CPU") > text.index('id="study-passwords"')


def test_the_commands_to_do_it_again(pages: Pages) -> None:
    text = pages.small.read_text("utf-8")
    for command in (
        "tollbar run digests passwords --seed 20261121",
        "tollbar judge runs/2026-11-21-quick",
        "tollbar compare runs/2026-11-21-quick OTHER-RUN",
        "tollbar export runs/2026-11-21-quick --format csv",
    ):
        assert f"<code>{command}</code>" in text


def test_nothing_from_outside_becomes_markup(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    study = digests()
    rows = tuple(replace(r, title=evil, reason=evil if r.reason else None) for r in study.study.rows)
    family = study.study.study.family
    choices = {n: replace(c, title=evil + n, note=evil) for n, c in family.choices.items()}
    about = replace(
        study.study.study,
        question=evil,
        text=evil,
        notes=(evil,),
        family=replace(family, choices=choices, strength_means=evil),
    )
    trust = replace(study.trust, lattices={evil: (evil,)}, failed_trials=1, failures=(evil,))
    study = replace(study, study=replace(study.study, study=about, rows=rows), trust=trust)
    report.write(judgement([study]), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "<script>alert" not in text
    assert "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<img" not in text.replace(bundle.script(), "")
    assert 3 == text.count("</script>")


def test_the_page_loads_nothing(pages: Pages) -> None:
    text = pages.small.read_text("utf-8").replace(bundle.script(), "")
    assert [] == re.findall(r"https?://", text)
    assert {"data:,"} == {a for a in re.findall(r'(?:src|href)="([^"]*)"', text) if not a.startswith("#")}
    assert "url(" not in text
    assert "unsafe-eval" not in text
    assert "default-src &#x27;none&#x27;" in text or "default-src 'none'" in text


@pytest.mark.parametrize("page", ["small", "served"])
def test_headings_are_in_order_and_tables_are_named(pages: Pages, page: str) -> None:
    """No level is skipped; each table has a caption and scoped headers."""
    text = (
        str(getattr(pages, page).read_text("utf-8"))
        .partition("<body>")[2]
        .partition('<script type="application/json"')[0]
    )
    levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
    assert 1 == levels[0]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert text.count("<table") == text.count("<caption>")
    assert [] == re.findall(r"<th(?![^>]*scope=)(?!ead)[^>]*>", text)


@pytest.mark.share(1)
@pytest.mark.parametrize("page", ["small", "served"])
def test_the_charts_are_valid_vega_lite(pages: Pages, page: str) -> None:
    """Making a page does not check the schema, so it is checked here."""
    import altair as alt

    text = str(getattr(pages, page).read_text("utf-8"))
    written = text.partition('<script type="application/json" id="charts">')[2].partition("</script>")[0]
    charts = json.loads(written)
    assert charts["charts"]
    for spec in [*charts["charts"].values()][:: share.of(10, 1)]:
        alt.LayerChart.from_dict(spec).to_dict()
    alt.Config.from_dict(charts["config"])


def test_templates_are_loaded_only_for_a_report() -> None:
    program = (
        "import sys, tollbar.report.terminal, tollbar.report.html; print(*{'altair', 'jinja2'} & sys.modules.keys())"
    )
    assert "\n" == subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    write_atomically(path, "old")
    assert 0o444 == stat.S_IMODE(path.stat().st_mode) & 0o444

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, "new")
    assert [path] == list(tmp_path.iterdir())
    assert "old" == path.read_text("utf-8")


def test_the_runtime_is_kept_and_a_cache_that_cannot_be_written_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def make() -> str:
        made.append("once")
        return "vegaEmbed"

    monkeypatch.setattr(bundle, "_make", make)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert ["vegaEmbed", "vegaEmbed"] == [bundle.script(), bundle.script()]
    assert ["once"] == made
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "vegaEmbed" == bundle.script()
    assert ["once", "once"] == made


# The run of one of the pages takes a while to make.
@pytest.mark.xdist_group("pages")
def test_a_page_of_a_thousand_rows_is_not_heavy(tmp_path: Path) -> None:
    """A few megabytes; the time is a figure of the bench's."""
    report.write(large(), tmp_path / "large.html")
    assert (tmp_path / "large.html").stat().st_size < 5_000_000


def test_backticks_become_code_and_nothing_else_becomes_markup() -> None:
    assert "a &lt;b&gt; <code>c &lt;i&gt;</code>" == marked("a <b> `c <i>`")


def test_script_json_cannot_end_its_element() -> None:
    written = script_json({"a": "</script><!--&\u2028"})
    assert "<" not in written
    assert {"a": "</script><!--&\u2028"} == json.loads(written)


def test_the_top_has_answers_and_neither_seed_nor_contents(pages: Pages) -> None:
    top, _, rest = pages.small.read_text("utf-8").partition("<body>")[2].partition("</header>")
    assert "SHA-256 (acceptable, 128 bits): 174 ns of CPU per digest" in top
    assert "20261121" not in top
    assert "Method and machine" not in top
    assert "21 November 2026 · 2 questions · quiet share of the core not known" in top
    assert "The seed of the random order was 20261121." in rest.partition('id="again"')[2]
