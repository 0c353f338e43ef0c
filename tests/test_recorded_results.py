"""Recorded runs in `results/`: readable, small, anonymous, and counted in README."""

from __future__ import annotations

import getpass
import json
import re
import socket
from pathlib import Path

import pytest
from bench import results

from fabricated import fabricated
from report_example import judgement
from tollbar.analysis.kept import NUMBERS
from tollbar.decide.compare.found_runs import ReadRun, Unusable, read

RECORDED = sorted(path.parent for path in results.RESULTS.glob("*/*/run.json"))
# Folders of a machine, and of this project's own checkouts.
PATHS = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|usr|work|var|opt|mnt|srv|Users)/")
MOST_BYTES = 2_000_000


def test_readme_has_the_sentence_of_the_recorded_runs() -> None:
    readme = (results.ROOT / "README.md").read_text("utf-8")
    assert results.with_sentence(readme, results.RESULTS) == readme
    assert all(f"results/{path.parent.name}/{path.name}/README.md" in readme for path in RECORDED)


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
    assert len(theirs) == sum(counts.values())


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
    counts = {"a": {"still true": 3, "smaller": 1}, "b": {"still true": 1, "cannot tell": 2, "not measured": 4}}
    (folder / "claims.json").write_text(json.dumps(counts))
    said = (
        "7 tests of published claims, one for each library and setting: 4 still true, 1 with a smaller difference and"
        " 2 undecided; 4 more could not be measured."
    )
    assert f"- [`sources` on CPU, 2 cores](results/cpu/sources/README.md): {said}" == results.sentence(tmp_path)


def test_a_place_on_this_machine_is_recorded_by_its_last_name(tmp_path: Path) -> None:
    results._write(
        tmp_path / "page.md", "it looks for one in /usr/lib/psycopg-openssl/ossl-modules, and /v1/usr/ is none"
    )
    assert "it looks for one in …/ossl-modules, and /v1/usr/ is none\n" == (tmp_path / "page.md").read_text("utf-8")


def test_numbers_that_a_drawing_prints_are_whole() -> None:
    drawn = '<g aria-label="a"><path d="M1.234,5.678"/><text x="9.99">× 0.153 of openssl 3.0.19</text></g>'
    small = '<g><path d="M1.2,5.6"/><text x="9.9">× 0.153 of openssl 3.0.19</text></g>'
    assert small == results._small(drawn)
