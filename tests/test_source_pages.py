"""A page for each published source: all claims once and in order, published and measured in the same units."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from builders import claim, row, study_run
from builders import study as study_of
from conftest import FAKE_STUDY, Tollbar
from fabricated import fabricated
from report_example import digests, judgement, passwords
from tollbar import results, study
from tollbar.analysis import StudyJudgement, judge_study
from tollbar.report import html, json_forms
from tollbar.report.numbers import times
from tollbar.report.sections.published import about_source, meanings_of
from tollbar.report.sections.published.figures import here_figures, here_values, in_its_unit, reading_words
from tollbar.report.sections.published.lines import (
    OURS,
    counted_tests,
    counted_verdicts,
    of_source,
    sources_of,
    together,
    within,
)
from tollbar.report.sections.published.lines import claims_of as claims_count
from tollbar.report.sections.published.tables import published_tables, published_words, said_where
from tollbar.report.terminal import show_judgement, show_markdown, show_published, streams
from tollbar.study import Amount, Claim
from tollbar.study.values import OF_DIFFERENCES

WIDTHS = (80, 100, 120)
SOURCES = study.sources()
# Named as in `fabricated`: set and study.
TLS = ("tls-certificates/tls-certificates", "tls-today/tls-dual-certificates", "tls-today/tls-records")


@pytest.fixture(autouse=True)
def _fresh_console() -> Iterator[None]:
    """Clear the console, which is made once and would keep the first test's standard output."""
    streams.stdout.cache_clear()
    yield
    streams.stdout.cache_clear()


def claims_of(name: str) -> list[tuple[str, Claim]]:
    """Return the claims of a source's studies in the order of its text, Tollbar's own at the end."""
    found = [(one.name, said) for one in study.load(SOURCES[name].studies) for said in one.claims]
    return [one for ours in (False, True) for one in found if one[1].is_ours is ours]


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_has_a_page(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    part = of_source(SOURCES[name])
    assert claims_of(name) == [(line.study.name, line.claim) for line in part.lines]
    untestable = sum(one.untestable is not None for _, one in claims_of(name))
    assert untestable == sum(line.verdict == "not testable here" for line in part.lines)
    assert {"not testable here", "not measured"} >= {line.verdict for line in part.lines}
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        streams.stdout.cache_clear()
        show_published(part)
        lines = capsys.readouterr().out.splitlines()
        assert [] == [line for line in lines if cell_len(line) > width and len(line.split()) > 1]
        text = " ".join(" ".join(lines).split())
        assert all(" ".join(said.split()) in text for said in (SOURCES[name].cited, SOURCES[name].differs))
        assert f"To measure: `tollbar run {' '.join(SOURCES[name].studies)}`." in text
        assert all(" ".join(one.says.split()) in text for _, one in claims_of(name))


@pytest.mark.share(0)
def test_a_run_s_page_has_each_claim_once_with_both_figures() -> None:
    part = of_source(SOURCES["rsa-apis"], judgement([fabricated("rsa-apis/rsa-apis")]))
    tried = dict.fromkeys(line.claim.says for line in part.lines)
    assert [one.says for _, one in claims_of("rsa-apis")] == list(tried)
    assert ((), ("rsa-apis",)) == (part.missing, part.studies)
    shown = [row for table in published_tables(part) for row in table.rows]
    assert len(part.lines) == len(shown)
    beside = 0
    for line, cells in zip(part.lines, shown, strict=True):
        values = here_values(line)
        assert len(values) == len(line.result.values)
        for amount, value in zip(line.claim.published, values, strict=False):
            assert ("ms", "ms") == (amount.unit, value.split()[-1])
            beside += 1
        assert all(value in f"{cells[4].says} {cells[4].small}" for value in values)
    assert beside >= 2


def test_the_source_s_statistic_stands_beside_a_figure() -> None:
    rows = [row({"choice": "baseline"}, [100.0] * 6, repeats_ns=[100.0] * 6), row({"choice": "a"}, [2e6, 2.2e6] * 3)]
    amounts = {name: Amount(float(n), "ms", f"{n} ms") for name, n in (("error", "0.0484"), ("deviation", "0.0429"))}
    figure = Claim(
        "x", {"choice": "a"}, {}, "wall", None, None, None, published=(Amount(7.702, "ms", "7.702 ms"),), **amounts
    )
    about = replace(study_of(claims=[figure]), source="rsa-apis", statistic="mean-error-deviation")
    judged = judge_study(study_run(rows, (6,), about))
    (table,) = published_tables(of_source(SOURCES["rsa-apis"], judgement([replace_name(judged, "rsa-apis")])))
    ((_, _, _, was, here, *_),) = table.rows
    assert ("7.702 ms", "published: error 0.0484 ms, deviation 0.0429 ms") == (was.says, was.small)
    # Student's quantile for five degrees of freedom and 99.9 % is 6.869, and the deviation of six such blocks 0.1095.
    assert "2.10 ms" == here.says
    assert (
        "measured: by the source's statistic: mean 2.10 ms, error 0.307 ms, deviation 0.11 ms, scaled ×\u00a01.00"
        == here.small
    )


def replace_name(judged: StudyJudgement, name: str) -> StudyJudgement:
    """Return the study under this name."""
    return replace(judged, study=replace(judged.study, study=replace(judged.about, name=name)))


@pytest.mark.parametrize(
    ("said", "value", "unit", "size", "expected"),
    [
        ("7.702 ms", 512_000.0, "ns/op", None, "0.512 ms"),
        ("10,750 ms for 10,000 rows", 312_000.0, "ns/op", None, "3,120 ms for 10,000 rows"),
        ("436 ms", 2000.0, "1/s", None, "0.5 ms"),
        ("50.7 MiB/s", 1000.0, "1/s", 1024**2, "1,000 MiB/s"),
        ("50.7 MiB/s", 1000.0, "1/s", None, "1,000\u00a0/s"),
        ("455 requests/s", 2e6, "ns/op", None, "500 requests/s"),
        ("7 KB of ticket", 9500.0, "B/op", None, "9.50 KB"),
        ("128 bytes", 144.0, "B", None, "144 bytes"),
        ("3 round trips", 2.0, "requests/op", None, "2 requests/op"),
        (None, 512_000.0, "ns/op", None, "512 µs"),
    ],
)
def test_a_measured_figure_has_the_source_s_unit(
    said: str | None, value: float, unit: str, size: int | None, expected: str
) -> None:
    amount = None if said is None else Amount(1.0, said.partition(" ")[2], said)
    assert expected == in_its_unit(amount, value, unit, size)


def test_verdicts_are_counted() -> None:
    part = within(judgement([digests()]), digests())
    assert part is not None
    assert "1 still true, 1 smaller, 3 inverted, 1 not measured" == counted_verdicts(part.lines)
    assert "Source: Published comparison of hash functions, 2005." in about_source(part)
    assert "Published and measured" == part.heading


def words_of(words: str | None, least: float, most: float) -> tuple[str, str]:
    said = Claim("x", {"choice": "a"}, {"choice": "b"}, ratio=(least, most), words=words)
    return published_words(said), reading_words(said)


def test_words_without_a_number_are_printed_as_the_source_has_them() -> None:
    assert ("“very similar”", "no number published; read here as ×\u00a00.91 to ×\u00a01.10") == words_of(
        "very similar", 0.91, 1.10
    )
    assert ("“25% slower”", "read here as ×\u00a00.75 to ×\u00a00.80") == words_of("25% slower", 0.75, 0.80)
    assert ("“is high”", "no number published; read here as ×\u00a02.00 or more") == words_of("is high", 2.0, 1e9)
    assert ("×\u00a01.28 to ×\u00a03.71", "") == words_of(None, 1.28, 3.71)


@pytest.mark.parametrize("name", SOURCES)
def test_a_range_is_of_published_numbers_or_has_the_source_s_words(name: str) -> None:
    """A range that the source does not state is the reading of its words, which are printed instead."""
    for _, one in claims_of(name):
        if one.ratio is None or one.is_ours:
            continue
        printed = one.published or one.words or len(re.findall(r"[0-9.]+", one.says)) >= 2
        assert one.ratio[0] == one.ratio[1] or printed, one.says
        # Nobody publishes × 1.00: that is how words are read.
        assert one.one_ratio != 1.0 or one.words or one.published, one.says


@pytest.mark.parametrize("name", SOURCES)
def test_a_difference_that_grows_has_its_published_order(name: str) -> None:
    for _, one in claims_of(name):
        assert one.throughout or one.order not in OF_DIFFERENCES, one.says


def test_growth_has_the_ratios_at_both_values() -> None:
    part = of_source(SOURCES["tls-certificates"], judgement([fabricated(name) for name in TLS]))
    grown = [line for line in part.lines if line.claim.grows and line.result.ratio]
    assert grown
    for line in grown:
        assert line.result.ends is not None
        first, second = (times(one.estimate) for one in line.result.ends)
        words = here_figures(line)
        assert words is not None
        assert re.search(rf"{re.escape(first)} at .+, {re.escape(second)} at .+", words), words
    found = json_forms.of_source(part)["claims"]
    ends = [one["ends"] for one in found if one["grows"] and one["ratio"] is not None]
    assert [2] * len(grown) == [len(one) for one in ends]
    assert all(one["low"] <= one["ratio"] <= one["high"] for both in ends for one in both)


def test_a_row_names_its_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tollbar.analysis.claims.rate_of", lambda row: 1000.0)
    # Judged again, because a cached judgement has claims without rates.
    part = of_source(SOURCES["tls-certificates"], judgement([fabricated.__wrapped__(name) for name in TLS]))
    tables = published_tables(part)
    assert "requests / s under load" in {column.title for column in tables[0].columns}
    line = next(line for line in part.lines if len(line.result.values) == 2)
    assert str(here_figures(line)).startswith("each alone: ")
    notes = " ".join(meanings_of(part))
    assert "“Each alone” is each side over all its samples" in notes
    assert "Requests a second under load are the answered ones" in notes
    assert "that nothing else limits" not in notes
    assert "more may be answered than its capacity" in notes


def test_words_of_the_source_and_of_today_are_apart() -> None:
    part = of_source(SOURCES["security-design-choices"])
    assert any("are the source's, of 2002, the words of that time" in said for said in about_source(part))
    (line,) = [one for one in part.lines if one.claim.says == "At 4 KB DES is faster than RC2"][:1]
    said = said_where(line.claim, line.study.family)
    assert said is not None
    assert said.startswith("In the source: Figure 7")
    assert said.endswith("Today: DES-CBC is broken, RC2-CBC (128-bit key) is disallowed.")


def test_claims_and_tests_are_counted_apart() -> None:
    one = fabricated("tls-today/tls-dual-certificates")
    part = within(judgement([one]), one)
    assert part is not None
    tested = [line for line in part.theirs if line.is_tested]
    assert len(tested) > claims_count(tested) >= 1
    assert counted_tests(part.theirs).startswith(f"{claims_count(tested)} claim")
    assert f" in {len(tested)} tests: " in counted_tests(part.theirs)
    untried = of_source(SOURCES["rsa-apis"])
    assert counted_tests(untried.theirs) == counted_verdicts(untried.theirs)


def test_a_study_without_claims_has_no_part() -> None:
    assert within(judgement([passwords()]), passwords()) is None
    assert () == sources_of(judgement([passwords(), digests()]))


def test_of_several_studies_each_source_comes_first_and_nothing_is_said_twice(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    judged = judgement([fabricated(name) for name in TLS])
    (part,) = together(judged)
    names = ["tls-certificates", "tls-records", "tls-dual-certificates"]
    assert names == [group.title for group in part.groups if group.title != OURS]
    assert [None] * 3 == [within(judged, one) for one in judged.studies]
    monkeypatch.setenv("COLUMNS", "120")
    show_judgement(judged)
    shown = capsys.readouterr().out
    show_markdown(judged)
    marked = capsys.readouterr().out
    html.write(judged, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    for text, question in ((shown, "\n{}\n"), (marked, "### {}\n"), (page, "<h2>{} <small>")):
        assert 1 == text.count("Differences here:")
        first = min(text.index(question.format(one.about.question)) for one in judged.studies)
        assert text.index("Differences here:") < first
    records = "AES-128-GCM is faster than AES-128-CBC: 50.7 against 27.8 MiB/s"
    of = [line for line in part.lines if line.claim.says == records]
    # Its number comes before it; another claim may end the same.
    assert 1 <= len(of) == marked.count(f"  {records}")


def test_of_one_study_the_part_stands_within_it(capsys: pytest.CaptureFixture[str]) -> None:
    one = fabricated("digests/digests")
    judged = judgement([one])
    assert () == together(judged)
    part = within(judged, one)
    assert part is not None
    assert "web-authentication" in part.missing
    assert "digests" not in part.missing
    show_judgement(judged)
    shown = capsys.readouterr().out
    assert shown.index(one.about.question) < shown.index("Differences here:")


def test_the_document_has_each_source_s_claims_in_order() -> None:
    judged = judgement([fabricated(name) for name in TLS])
    found = json.loads(json.dumps(json_forms.of_run(judged), allow_nan=False))
    (source,) = found["sources"]
    assert ("tls-certificates", 2014) == (source["name"], source["year"])
    claims = {one["study"]: one["claims"] for one in found["studies"]}
    said = [claims[one["study"]][one["claim"]]["says"] for one in source["claims"]]
    (part,) = together(judged)
    assert said == [line.claim.says for line in part.lines]
    assert sum(not one["ours"] for one in source["claims"]) == sum(source["verdicts"].values())
    # Claims that are not the source's are on its page, but not among its verdicts.
    mixed = of_source(SOURCES["kernel-mode-authentication"])
    assert 4 == len(mixed.lines) - len(mixed.theirs)


def test_a_page_s_document_has_its_claims_whole() -> None:
    found = json.loads(json.dumps(json_forms.of_source(of_source(SOURCES["rsa-apis"])), allow_nan=False))
    first = found["claims"][0]
    assert (["7.702 ms"], "0.0484 ms", "0.0429 ms") == (
        first["published_figures"],
        first["published_error"],
        first["published_deviation"],
    )
    assert ([], ["rsa-apis"]) == (found["studies"], found["not_measured"])
    assert {"not measured", "not testable here"} == {one["verdict"] for one in found["claims"]}


def test_an_own_study_of_a_source_comes_after_the_shipped_ones() -> None:
    rows = [row({"choice": name}, [100.0] * 6, repeats_ns=[100.0] * 6) for name in ("a", "b")]
    said = claim({"choice": "a"}, {"choice": "b"}, 1.0)
    mine = judge_study(study_run(rows, (6,), replace(study_of(claims=[said]), source="tls-certificates")))
    (part,) = together(judgement([mine, fabricated(TLS[0])]))
    assert ["tls-certificates", "study"] == [one.title for one in part.groups if one.title != OURS]


def test_show_prints_a_source_s_page(tollbar: Tollbar) -> None:
    page = tollbar("show", "security-design-choices")
    assert (0, "") == (page.returncode, page.stderr)
    assert "Published and measured: Performance Comparison: Security Design Choices" in page.stdout
    assert "`tollbar run sources`" in page.stdout
    assert "security-design-choices" == json.loads(tollbar("show", "security-design-choices", "--json").stdout)["name"]


@pytest.mark.share(0)
def test_show_prints_a_source_s_page_after_the_cells_of_its_name(tollbar: Tollbar) -> None:
    both = tollbar("show", "rsa-apis").stdout
    assert both.index("key-from-parameters") < both.index("Published and measured: RSA APIs in .NET")
    assert isinstance(json.loads(tollbar("show", "rsa-apis", "--json").stdout), list)


@pytest.mark.share(0)
def test_show_takes_the_last_run_that_has_the_source_s_studies(tollbar: Tollbar, tmp_path: Path) -> None:
    text = FAKE_STUDY.replace("ratio  = 2.0", 'ratio  = 2.0\npublished = ["2 s", "1 s"]')
    (tmp_path / "rsa-apis.toml").write_text(f'source = "rsa-apis"\n{text}')
    (tmp_path / "other.toml").write_text(FAKE_STUDY)
    # A set with a study of the same name, without the source's claims.
    (tmp_path / "quick").mkdir()
    (tmp_path / "quick" / "rsa-apis.toml").write_text(FAKE_STUDY)
    for name in ("rsa-apis", "other", "quick/rsa-apis"):
        assert 0 == tollbar("run", f"{name}.toml", "--no-report", "--blocks", 4, "--seed", 1).returncode
    of, other = (min((tmp_path / "runs").glob(f"*{name}")) for name in ("rsa-apis", "other"))
    # As an interrupted run leaves it.
    said = results.about(of)["studies"]
    results.update_about(of, {"studies": {name: {**one, "interim_looks": []} for name, one in said.items()}})
    last = tollbar("show", "rsa-apis")
    assert f"of the run {of.relative_to(tmp_path)}" in last.stderr
    # A look at its results, for which later blocks pay.
    assert [1] == [len(one["interim_looks"]) for one in results.about(of)["studies"].values()]
    assert "Twice the work costs twice as much" in last.stdout
    damaged = tmp_path / "runs" / "9999-damaged"
    shutil.copytree(of, damaged)
    (damaged / "results.sqlite").write_bytes(b"no database")
    passed_over = tollbar("show", "rsa-apis").stderr
    assert "warning: runs/9999-damaged is skipped: " in passed_over
    assert f"of the run {of.relative_to(tmp_path)}" in passed_over
    shutil.rmtree(damaged)
    told = json.loads(tollbar("show", "rsa-apis", "--run", of, "--json").stdout)
    assert ["Twice the work costs twice as much"] == [one["says"] for one in told["claims"]]
    assert told["claims"][0]["ratio"] == pytest.approx(2.0, rel=0.2)
    assert ["rsa-apis"] == told["studies"]
    assert "not measured" in tollbar("show", "rsa-apis", "--run", other).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "rsa-api"], "`rsa-api` is a family"),
        (["show", "rsa-apiz"], "did you mean `rsa-apis`"),
        (["show", "people"], ", ".join(SOURCES)),
        (["show", "digests", "--run", "runs/none"], "`--run` needs the name of a source alone"),
        (["show", "security-design-choices", "md5"], "is shown whole"),
        (["show", "security-design-choices", "--library", "libcrypto.so.3"], "is shown whole"),
        (["show", "source"], "did you mean `sources`"),
        (["show", "rsa-apis", "--run", "nowhere"], "not a run"),
    ],
)
def test_a_wrong_name_is_told_the_right_ones(tollbar: Tollbar, arguments: list[str], words: str) -> None:
    done = tollbar(*arguments)
    assert (2, "") == (done.returncode, done.stdout)
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
