"""Metrics of a family that runners count: claims and tables about them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from builders import claim, example, study, study_run
from conftest import Tollbar
from tollbar.analysis import ClaimVerdict, StudyJudgement, judge_study
from tollbar.core.errors import TollbarError
from tollbar.core.metrics import Metric
from tollbar.report.blocks import Table
from tollbar.report.sections.crosstables import study_table
from tollbar.results import Row
from tollbar.study import CrossTable, read

HEADER = Metric("request-header", "heads of the requests", "B/op")
TABLE = CrossTable("How large its head is", "choice", "provider", {}, {}, "request-header")
SIGN_ON = """
question = "?"
family   = "web-auth"
servers     = ["embedded"]
choices  = ["anonymous", "basic"]
load     = { request = { get = "/" } }
"""


def with_heads(row: Row, bytes_each: float) -> Row:
    """Return the row with headers of this size observed by its runner."""
    trials = tuple(
        replace(
            trial,
            chunks=tuple(
                replace(one, observed={("", HEADER.name): bytes_each * one.operations}) for one in trial.chunks
            ),
        )
        for trial in row.trials
    )
    return replace(row, trials=trials)


def judged(heads: Mapping[str, float], ratio: float = 2.0) -> StudyJudgement:
    """Return a study with a claim and a table about the metric; unnamed cells observed nothing."""
    says = claim({"choice": "double"}, {"choice": "same"}, ratio, metric=HEADER.name)
    about = study(claims=[says])
    about = replace(about, family=replace(about.family, metrics={HEADER.name: HEADER}), tables=(TABLE,))
    rows = [with_heads(row, heads[row.choice]) if row.choice in heads else row for row in example()]
    return judge_study(study_run(rows, of=about))


def test_a_claim_may_be_about_what_is_counted() -> None:
    """The metric alone decides: costs and their noise have no part in it."""
    (claimed,) = judged({"double": 3000, "same": 1500}).claims
    assert ClaimVerdict.STILL_TRUE == claimed.verdict
    assert claimed.ratio is not None
    assert 2.0 == pytest.approx(claimed.ratio.estimate)
    (claimed,) = judged({"double": 1500, "same": 1500}).claims
    assert ClaimVerdict.SMALLER == claimed.verdict


def test_a_claim_about_what_was_not_seen_says_so() -> None:
    (claimed,) = judged({"double": 3000}).claims
    assert (ClaimVerdict.CANNOT_TELL, None) == (claimed.verdict, claimed.ratio)
    assert "same: its runners observed no `request-header`" == claimed.reason


def test_a_table_may_show_what_is_counted() -> None:
    found = judged({"double": 3000, "same": 1500})
    (result,) = found.tables
    assert {"double": 3000, "same": 1500} == {
        cell.row.choice: round(cell.cost.estimate) for cell in result.cells if cell.cost
    }
    listing = study_table(found, result)
    (brief,), (whole, _) = listing.tables, listing.whole
    assert isinstance(whole, Table)
    for table, caption in ((brief, listing.caption), (whole, whole.caption)):
        assert "heads of the requests" in caption
        assert any("3,000 B/op" == cell.says for row in table.rows for cell in row)
    assert {"none": "its runners observed no `request-header`"} == {
        cell.row.choice: cell.reason for cell in result.cells if cell.cost is None
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[[claim]]\nsays = "x"\nof = { choice = "form" }\nover = { choice = "basic" }\n'
            'metric = "request-heder"\nratio = 2.0',
            "request-heder",
        ),
        ('[[table]]\ntitle = "x"\nrows = "choice"\ncolumns = "op"\nmetric = "cost"', "no such metric: `cost`"),
        (
            '[[table]]\ntitle = "x"\nrows = "choice"\ncolumns = "op"\nmetric = "request-header"\nover = { op = "x" }',
            "both `metric` and `over`",
        ),
    ],
)
def test_a_metric_that_is_none_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(TollbarError) as caught:
        read("x", SIGN_ON + text, where="x.toml")
    assert words in str(caught.value)
    assert "x.toml" in str(caught.value.where)


def test_the_heads_of_anonymous_requests_are_counted(tollbar: Tollbar, tmp_path: Path) -> None:
    """Without them no claim can compare a head that has a credential with one that has none."""
    path = tmp_path / "anonymous.toml"
    path.write_text(
        'question = "?"\nfamily = "web-auth"\nservers = ["embedded"]\nchoices = ["anonymous"]\n'
        '[vary]\nop = ["request"]\ntransport = ["clear"]\nbytes = ["1 KiB"]\n'
        '[load]\nrequest = { get = "/bytes/{bytes}" }\n[measure]\nblocks = 1\nrounds = 1\n'
    )
    done = tollbar("run", path, "--json", "--no-report")
    assert 0 == done.returncode, done.stderr
    (measured,) = json.loads(done.stdout)["studies"]
    found = {one["metric"]: one["value"] for one in measured["results"] if one["component"] is None}
    assert 1 == pytest.approx(found["round-trips"])
    assert len("GET /bytes/1024 HTTP/1.1\r\n\r\n") < found["request-header"] < 100
