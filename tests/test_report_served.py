"""The report's page on cells that were measured through servers."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from report_example import judgement
from served_example import MATRIX, NO_NGINX, USERS, WRONG_LENGTH, arrivals, asked_only, handshakes
from tollbar.report import html as report


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("served") / "report.html"
    report.write(judgement([handshakes(), arrivals(), asked_only()]), path)
    return path.read_text("utf-8")


def test_every_served_row_and_every_reason_is_on_the_page(page: str) -> None:
    body = html.unescape(page.partition("<main>")[2].partition('<script type="application/json"')[0])
    tables = [part.partition("</table>")[0] for part in body.split("<caption>Every cell of the study")[1:]]
    assert [(len(MATRIX) + 6) * len(USERS), 6, 9] == [table.count("<tr") - 1 for table in tables]
    assert 1 == tables[0].count(WRONG_LENGTH)
    assert 9 == tables[0].count(NO_NGINX)
    assert "† client-bound" in tables[0]
    assert "CPU time per operation" not in body
    assert "Server CPU per connection" in tables[0]
    assert "Client CPU per connection" in tables[2]


def test_a_server_that_is_only_asked_has_no_bars(page: str) -> None:
    body = page.partition("<main>")[2]
    assert 2 == body.count("<h3>Where the CPU goes</h3>")
    assert 3 == body.count("<h3>Requests a second and response time</h3>")


def test_hollow_points_are_those_that_are_limited(page: str) -> None:
    charts = json.loads(page.partition('<script type="application/json" id="charts">')[2].partition("</script>")[0])
    hollow: dict[str, set[bool]] = {}
    for spec in charts["charts"].values():
        title = str(spec["description"]).partition(" by users")[0]
        for row in _rows(spec):
            if "hollow" in row:
                hollow.setdefault(title, set()).add(row["hollow"])
    assert {True, False} == hollow["Requests a second"]
    assert {False} == hollow["Server CPU per connection"]


def _rows(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = [row for rows in spec.get("datasets", {}).values() for row in rows]
    for layer in [spec, *spec.get("layer", ())]:
        values = layer.get("data", {}).get("values")
        found += values if isinstance(values, list) else []
    return found


def test_markup_in_a_server_s_own_words_is_text(tmp_path: Path) -> None:
    """The negotiated parameters and the reason of a failure come from the server."""
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    study = handshakes()
    rows = tuple(
        replace(
            r,
            reason=evil if r.reason else None,
            accepted=(evil,),
            trials=tuple(
                replace(t, load=t.load.model_copy(update={"negotiated": _evil(t.load.negotiated, evil)}))
                for t in r.trials
                if t.load is not None
            ),
        )
        for r in study.study.rows
    )
    report.write(judgement([replace(study, study=replace(study.study, rows=rows))]), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "<script>alert" not in text
    assert "<img src=x" not in text


def _evil(negotiated: Any, text: str) -> Any:
    return tuple(one.model_copy(update={"suite": text, "group": text}) for one in negotiated)
