"""Recorded runs in `results/`: readable, small, anonymous, and counted in README."""

from __future__ import annotations

import getpass
import json
import re
import socket
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from bench import results

from fabricated import fabricated
from report_example import judgement
from tollbar.analysis.kept import NUMBERS
from tollbar.decide.compare.found_runs import ReadRun, Unusable, read
from tollbar.report.sections.published.lines import OURS

RECORDED = sorted(path.parent for path in results.RESULTS.glob("*/*/run.json"))
# Folders of a machine, and of this project's own checkouts.
PATHS = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|usr|work|var|opt|mnt|srv|Users)/")
MOST_BYTES = 2_000_000


def test_readme_has_the_sentence_of_the_recorded_runs() -> None:
    readme = (results.ROOT / "README.md").read_text("utf-8")
    assert results.with_sentence(readme, results.RESULTS) == readme
    assert all(f"results/{path.parent.name}/{path.name}/README.md" in readme for path in RECORDED)


def test_readme_and_the_page_of_all_runs_name_them() -> None:
    assert results.index(results.RESULTS) == (results.RESULTS / "README.md").read_text("utf-8")
    readme = (results.ROOT / "README.md").read_text("utf-8")
    assert results.sentence(results.RESULTS) in readme


@pytest.mark.parametrize("folder", [one for one in RECORDED if (one / "claims.json").read_text() != "{}\n"], ids=str)
def test_counts_of_claims_are_those_of_the_pages_tables(folder: Path) -> None:
    """README, the page of the run and the page of each source have the numbers that its tables of claims make."""
    counts = json.loads((folder / "claims.json").read_text("utf-8"))
    for source, said in counts.items():
        page = (folder / f"{source}.md").read_text("utf-8")
        found, claims = verdicts_of(page.partition(f"## {OURS}")[0])
        measured = {verdict: n for verdict, n in found.items() if verdict in results.WORDS}
        assert measured == {verdict: n for verdict, n in said["tests"].items() if verdict in results.WORDS}
        assert found["not measured"] == said["tests"].get("not measured", 0)
        assert claims == said["claims"]
        told = f"{claims} claims in {sum(measured.values())} tests: "
        assert f"Published results: {told}" in page
        assert f"({source}.md): {told}" in (folder / "README.md").read_text("utf-8")
    sentence = results.of_claims(counts)
    assert sentence.startswith(f"{sum(one['claims'] for one in counts.values())} published claims, tested ")
    assert sentence in (folder / "README.md").read_text("utf-8")
    assert sentence in (results.RESULTS / "README.md").read_text("utf-8")


def verdicts_of(page: str) -> tuple[Counter[str], int]:
    """Return the number of rows with each verdict, and of different claims in rows with a test."""
    found: Counter[str] = Counter()
    tested: set[str] = set()
    columns: list[str] = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if cells[0] == "published claim":
            columns = cells
        elif columns and line.startswith("| ") and len(cells) == len(columns):
            verdict = cells[columns.index("verdict")].partition("<br>")[0]
            found[verdict] += 1
            if verdict in results.WORDS:
                tested.add(cells[0].partition("<br>")[0].partition("  ")[2])
        elif not line.startswith("|"):
            columns = []
    return found, len(tested)


def test_a_recorded_run_has_the_claims_of_today() -> None:
    """Its studies may be older: their claims get better words, and their measurements stay."""
    one = fabricated("tls-today/tls-records").study
    old = replace(one, study=replace(one.study, claims=one.study.claims[:1]))
    run = judgement([fabricated("tls-today/tls-records")]).run
    (found,) = results.with_claims_of_today(replace(run, studies=(old,))).studies
    assert one.study.claims == found.study.claims
    assert one.rows == found.rows
    foreign = replace(old, study=replace(old.study, source=None))
    (kept,) = results.with_claims_of_today(replace(run, studies=(foreign,))).studies
    assert foreign == kept


def test_quick_is_recorded() -> None:
    assert "quick" in {path.name for path in RECORDED}


def test_results_are_small() -> None:
    files = [path for path in results.RESULTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
    assert {path.suffix for path in files} <= {".json", ".toml", ".md", ".svg"}


@pytest.mark.parametrize("folder", RECORDED, ids=str)
def test_a_recorded_run_has_no_name_user_or_path(folder: Path) -> None:
    names = [re.compile(rf"\b{re.escape(name)}\b") for name in {socket.gethostname(), getpass.getuser()} - {"root", ""}]
    for path in (path for path in folder.rglob("*") if path.is_file()):
        text = path.read_text("utf-8")
        assert not PATHS.search(text), f"{path}: {PATHS.findall(text)[:3]}"
        assert not [name for name in names if name.search(text)], path
    facts = json.loads((folder / "run.json").read_text("utf-8"))
    assert not {"nodes", "roles"} & facts.keys()
    assert all({*server} == {"version"} for server in facts["servers"].values())


@pytest.mark.parametrize("folder", RECORDED, ids=str)
def test_compare_reads_a_recorded_run(folder: Path) -> None:
    (found,) = read([folder])
    kept = json.loads((folder / "judged.json").read_text("utf-8"))
    # An older judge's numbers are refused until the machine is measured again.
    assert isinstance(found, ReadRun if kept["numbers"] == NUMBERS else Unusable)


def test_verdicts_of_a_source_are_counted_without_ours() -> None:
    judged = judgement([fabricated("tls-certificates/tls-certificates"), fabricated("tls-today/tls-records")])
    (counts,) = results.verdicts(judged).values()
    theirs = [
        claim for one in judged.studies for claim in one.claims if not claim.claim.is_ours and claim.claim.is_judged
    ]
    assert len(theirs) == sum(counts["tests"].values())
    assert len({one.claim.says for one in theirs if one.ratio}) == counts["claims"]


def test_a_page_of_a_source_has_its_figures_as_drawings(tmp_path: Path) -> None:
    judged = judgement([fabricated("tls-certificates/tls-certificates"), fabricated("tls-today/tls-records")])
    found = dict(results.pages(judged, tmp_path))
    assert {"README", "tls-certificates"} == {*found}
    text = "\n".join(found["tls-certificates"])
    drawn = re.findall(r"\(figures/([\w-]+\.svg)\)", text)
    assert {*drawn} == {path.name for path in tmp_path.glob("*.svg")}
    assert "### Performance of different RSA key sizes" in text
    for name in drawn:
        svg = (tmp_path / name).read_text("utf-8")
        assert svg.startswith("<svg")
        assert "prefers-color-scheme: dark" in svg


def test_the_sentence_counts_each_verdict(tmp_path: Path) -> None:
    folder = tmp_path / "cpu" / "sources"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"fingerprint": {"cpu": "CPU", "cores": 2}}))
    counts = {
        "a": {"claims": 2, "tests": {"still true": 3, "smaller": 1}},
        "b": {"claims": 3, "tests": {"still true": 1, "cannot tell": 2, "not measured": 4}},
    }
    (folder / "claims.json").write_text(json.dumps(counts))
    said = (
        "5 published claims, tested with several libraries and settings: still true in 4 tests, a smaller"
        " difference in 1 test and undecided in 2 tests. Another 4 tests had no measurement."
    )
    assert f"- [`sources` on CPU, 2 cores](cpu/sources/README.md): {said}" == results.sentence(tmp_path, to_root=False)


def test_a_place_on_this_machine_is_recorded_by_its_last_name(tmp_path: Path) -> None:
    results._write(
        tmp_path / "page.md", "it looks for one in /usr/lib/psycopg-openssl/ossl-modules, and /v1/usr/ is none"
    )
    assert "it looks for one in …/ossl-modules, and /v1/usr/ is none\n" == (tmp_path / "page.md").read_text("utf-8")


def test_numbers_that_a_drawing_prints_are_whole() -> None:
    drawn = '<g aria-label="a"><path d="M1.234,5.678"/><text x="9.99">× 0.153 of openssl 3.0.19</text></g>'
    small = '<g><path d="M1.2,5.6"/><text x="9.9">× 0.153 of openssl 3.0.19</text></g>'
    assert small == results._small(drawn)
