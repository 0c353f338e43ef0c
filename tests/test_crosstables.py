"""Tables that a study asks for: judged, and laid out on the page, in the terminal and in JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from builders import lognormal, measured, row, study, study_run
from report_example import digests, judgement
from tollbar.analysis import CrossCell, CrossTableResult, StudyJudgement, Verdict, judge_study
from tollbar.catalog.families import Value
from tollbar.core.records import Outcome
from tollbar.report import json_forms
from tollbar.report.blocks import Items
from tollbar.report.html.page import html
from tollbar.report.page import page
from tollbar.report.sections.crosstables import study_table
from tollbar.report.terminal import show_judgement, streams
from tollbar.results import Row
from tollbar.study import CrossTable

BLOCKS = 20
TABLE = CrossTable("By platform", "provider", "choice", {"choice": "kept"}, {"api": "new", "digest": "fetched"})
MISSING = (
    "no `java` on the path; hint: install a JDK, and a good deal more that a reader of a table does not want. " * 3
)


@pytest.fixture(autouse=True)
def _fresh_console(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the console wide enough for every column.

    The console is made once and would keep the first test's standard output.
    """
    monkeypatch.setenv("COLUMNS", "240")
    streams.stdout.cache_clear()
    yield
    streams.stdout.cache_clear()


def result(rows: list[Row], table: CrossTable = TABLE) -> CrossTableResult:
    """Return the judged table of these cells, with a baseline and its repeat."""
    quiet = [100.0 + 0.01 * block for block in range(BLOCKS)]
    baseline = row({"choice": "none", "api": "old"}, quiet, repeats_ns=quiet)
    about = replace(study(blocks=BLOCKS), tables=(table,))
    (found,) = judge_study(study_run([baseline, *rows], (BLOCKS,), about)).tables
    return found


def rows_of(*cells: tuple[dict[str, Value], float]) -> list[Row]:
    found = measured([ratio for _, ratio in cells], lognormal(0.003), random.Random(5), blocks=BLOCKS)
    return [row(at, costs) for (at, _), costs in zip(cells, found, strict=True)]


def cell(found: CrossTableResult, at: Value, column: Value) -> CrossCell:
    one = found.at(at, column)
    assert one is not None
    return one


def ratio(one: CrossCell) -> float | None:
    return round(one.ratio.estimate, 1) if one.ratio else None


def test_each_cell_is_a_multiple_of_the_one_that_differs_in_this_alone() -> None:
    rows = rows_of(
        ({"choice": "kept", "provider": "go", "api": "new", "digest": "fetched"}, 1.0),
        ({"choice": "kept", "provider": "go", "api": "old", "digest": "fetched"}, 7.0),
        ({"choice": "pem", "provider": "go", "digest": "fetched"}, 1.0),
        ({"choice": "pem", "provider": "go", "digest": "implicit"}, 9.0),
        ({"choice": "kept", "provider": "python", "api": "new"}, 1.1),
        ({"choice": "pem", "provider": "python"}, 110.0),
        ({"choice": "der", "provider": "python"}, 0.55),
    )
    found = result(rows)
    assert (("go", "python"), ("kept", "pem", "der")) == (found.rows, found.columns)
    assert 5 == len(found.cells)
    assert [1.0, 100.0, 0.5] == [
        ratio(cell(found, *at)) for at in (("go", "pem"), ("python", "pem"), ("python", "der"))
    ]
    verdicts = [one.verdict for one in found.cells]
    assert [None, Verdict.FREE, None, Verdict.COSTS, Verdict.SAVES] == verdicts
    assert [True, False, True, False, False] == [one.is_over for one in found.cells]
    assert {None} == {one.reason for one in found.cells}
    assert found.at("go", "der") is None


def test_two_cells_that_never_met_in_a_batch_have_a_ratio_with_its_interval() -> None:
    """The ratio combines both cells' costs and is no narrower than either."""
    one, other = rows_of(
        ({"choice": "kept", "provider": "go", "api": "new"}, 1.0), ({"choice": "pem", "provider": "go"}, 3.0)
    )
    together = cell(result([one, other]), "go", "pem")
    for met in (0, 3):
        elsewhere = tuple(replace(t, batch=0 if t.block < met else 1) for t in other.trials)
        apart = cell(result([one, replace(other, trials=elsewhere)]), "go", "pem")
        assert together.ratio is not None
        assert apart.ratio is not None
        assert pytest.approx(3.0, rel=0.01) == apart.ratio.estimate
        assert apart.ratio.is_bounded
        assert apart.ratio.high / apart.ratio.low >= together.ratio.high / together.ratio.low
        assert Verdict.COSTS is apart.verdict


def test_a_few_blocks_in_which_two_cells_met_do_not_take_the_interval_away() -> None:
    """Three of six blocks give no interval; all six are used."""
    one, other = rows_of(
        ({"choice": "kept", "provider": "go", "api": "new"}, 1.0), ({"choice": "pem", "provider": "go"}, 3.0)
    )
    six = [replace(each, trials=each.trials[:6]) for each in (one, other)]
    met = replace(six[1], trials=tuple(replace(t, batch=t.block // 3) for t in six[1].trials))
    found = cell(result([six[0], met]), "go", "pem")
    assert found.ratio is not None
    assert (True, 6) == (found.ratio.is_bounded, found.ratio.n)


def test_what_has_no_ratio_says_why() -> None:
    kept, pem, der = rows_of(
        ({"choice": "kept", "provider": "go", "api": "new"}, 1.0),
        ({"choice": "pem", "provider": "go"}, 3.0),
        ({"choice": "der", "provider": "java"}, 2.0),
    )
    failed = row({"choice": "der", "provider": "go"}, outcome=Outcome.UNSUPPORTED, reason="no DER here")
    late = replace(pem, trials=tuple(replace(t, block=t.block + BLOCKS) for t in pem.trials))
    assert ["no block has both cells", "no DER here"] == [
        cell(result([kept, late, failed]), "go", choice).reason for choice in ("pem", "der")
    ]
    assert "there is no cell to compare it with" == cell(result([kept, der]), "java", "der").reason
    gone = replace(kept, trials=(), outcome=Outcome.FAILED, reason="wrong answer")
    assert f"{kept.title} was not measured: wrong answer" == cell(result([gone, pem]), "go", "pem").reason


def test_without_another_cell_to_compare_with_costs_are_shown() -> None:
    rows = rows_of(({"choice": "pem", "provider": "go"}, 3.0))
    (found,) = result(rows, replace(TABLE, over={})).cells
    assert found.cost is not None
    assert pytest.approx(300.0, rel=0.01) == found.cost.estimate
    assert (None, None, None, False) == (found.ratio, found.verdict, found.reason, found.is_over)


# Layouts.


def shown() -> StudyJudgement:
    """Return the digests by library; BLAKE3 is missing from one library, and one library is not installed."""
    study = digests()
    rows = tuple(
        replace(
            r,
            coordinates={**r.coordinates, "provider": "java"},
            provider="java",
            key=f"{r.key} java",
            trials=(),
            repeats=(),
        )
        for r in study.rows
        if r.provider.startswith("rustcrypto")
    )
    rows = tuple(replace(r, outcome=Outcome.UNSUPPORTED, reason=MISSING, against=None) for r in rows)
    table = CrossTable("What it costs by `library`", "provider", "choice", {"choice": "sha-256"}, {"bytes": 64})
    about = replace(study.about, tables=(table,))
    return judge_study(replace(study.study, study=about, rows=(*study.rows, *rows)))


def test_the_terminal_has_a_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    show_judgement(judgement([shown()]), everything=True)
    text = capsys.readouterr().out
    table = text.partition("What it costs by `library`")[2].partition("Effect of each")[0]
    assert (
        "CPU time per operation, quiet, as a multiple of sha-256, everything else equal · 64 B · 99.5 % intervals"
        in table
    )
    lines = {line.split()[0]: line for line in table.splitlines() if line.strip()}
    assert "unsupported" in lines["openssl"]
    assert "188 ns" in lines["openssl"]
    assert "1.09 [1.08, 1.10] costs" in lines["openssl"]
    assert ["java", *["–"] * 7] == lines["java"].split()
    assert lines["java:"].startswith("  java: unsupported: no `java` on the path; hint: install a JDK")
    assert MISSING.strip() not in " ".join(table.split())


def test_the_page_has_the_table_with_a_scope_for_each_row() -> None:
    text = html(page(judgement([shown()])))
    section = text.partition("<h3>What it costs by <code>library</code></h3>")[2].partition("</section>")[0]
    assert "as a multiple of that for SHA-256, everything else equal; at 64 B; with 99.5 % intervals" in section
    assert 3 == section.count('scope="row"')
    assert 8 == section.count('scope="col"')
    assert ">MD5</th>" in section
    assert "] costs</small>" in section
    assert "<li>java: unsupported: no <code>java</code> on the path" in section


def test_a_column_without_a_number_says_why() -> None:
    study = shown()
    (found,) = study.tables
    kept = replace(found, cells=tuple(c for c in found.cells if c.row.provider.startswith("openssl")))
    _, gaps = study_table(study, kept).whole
    assert Items(("BLAKE3: unsupported: OpenSSL 3.0.19 has no digest of the name BLAKE3",)) == gaps


def test_the_document_has_every_cell_in_its_row() -> None:
    found = json.loads(json.dumps(json_forms.of_run(judgement([shown()])), allow_nan=False))["studies"][0]
    (table,) = found["tables"]
    assert ("What it costs by `library`", "provider", "choice") == (
        table["title"],
        table["rows_are"],
        table["columns_are"],
    )
    assert ({"choice": "sha-256"}, {"bytes": 64}) == (table["over"], table["where"])
    assert ["openssl 3.0.19", "rustcrypto 0.10.9", "java"] == [line["row"] for line in table["rows"]]
    cells = {(line["row"], one["column"]): one for line in table["rows"] for one in line["cells"]}
    md5 = cells["openssl 3.0.19", "md5"]
    assert "costs" == md5["verdict"]
    assert md5["low"] < md5["ratio"] < md5["high"]
    assert md5["cost_interval"][0] < md5["cost"] < md5["cost_interval"][1]
    base = cells["openssl 3.0.19", "sha-256"]
    assert (True, None, None) == (base["is_over"], base["ratio"], base["verdict"])
    gone = cells["java", "md5"]
    assert ("unsupported", None, None, MISSING) == (gone["outcome"], gone["cost"], gone["ratio"], gone["reason"])
