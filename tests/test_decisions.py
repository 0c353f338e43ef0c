"""A decision's answer: one value, laid out in the terminal, as Markdown, as JSON and as a page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tollbar.cli.layouts import Layout, show_answer
from tollbar.core.errors import TollbarError
from tollbar.report.blocks import Listing, Table, TableCell, numbers, row_names
from tollbar.report.json_forms.form import Form, Number
from tollbar.report.page import Brief
from tollbar.report.terminal import streams

ANSWER = Brief(
    "Which <hash> of `digest`?",
    "blake3 costs least.",
    listings=[
        Listing("", ["sha-256 costs twice as much."]),
        Listing(
            "What qualifies",
            tables=[Table("", (*row_names("choice"), *numbers("cost")), [[TableCell("blake3"), TableCell("10 ns")]])],
        ),
        Listing("What does not", ["md5: broken"]),
    ],
    notes=["Nothing else was asked."],
    warnings=["noisy"],
)


class _Document(Form):
    cost: Number


@pytest.fixture(autouse=True)
def _fresh_console(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("COLUMNS", "80")
    streams.stdout.cache_clear()
    yield
    streams.stdout.cache_clear()


def _shown(layout: Layout, capsys: pytest.CaptureFixture[str]) -> str:
    show_answer(ANSWER, lambda: _Document(cost=float("inf")), layout)
    return capsys.readouterr().out


def test_terminal_and_markdown_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    terminal, markdown = _shown(Layout(), capsys), _shown(Layout(markdown=True), capsys)
    for said in ("blake3 costs least.", "sha-256 costs twice", "What qualifies", "10 ns", "md5: broken", "noisy"):
        assert said in terminal
        assert said in markdown
    assert markdown.startswith("### Which \\<hash\\> of `digest`?")


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"cost": None} == json.loads(_shown(Layout(json=True), capsys))


def test_the_page_has_all_of_it_and_asks_for_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answer.html"
    _shown(Layout(page=path), capsys)
    page = path.read_text("utf-8")
    for said in ("Which &lt;hash&gt; of <code>digest</code>?", "blake3 costs least.", "10 ns", "md5: broken"):
        assert said in page
    assert "default-src 'none'" in page
    assert "vegaEmbed =" not in page


def test_what_cannot_be_shown_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(TollbarError, match="cannot be combined"):
        Layout(markdown=True, json=True)
    for path in (tmp_path, tmp_path / "none" / "answer.html"):
        with pytest.raises(TollbarError, match="cannot be written"):
            Layout(page=path)
