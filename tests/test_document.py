"""The JSON document: schema 3, as other programs rely on it."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

import share
from fabricated import fabricated, shipped
from report_example import NO_BLAKE3, digests, example, judgement, passwords
from served_example import arrivals, handshakes
from tollbar.analysis import StudyJudgement
from tollbar.core.intervals import Interval
from tollbar.decide.reference import with_tables
from tollbar.decide.schema import DOCUMENTS, json_schema
from tollbar.report import json_forms
from tollbar.report.json_forms.whole_run import RunDocument
from tollbar.report.sections.against import first_sentences
from tollbar.report.sections.answer import answer

STUDY = {
    "study",
    "family",
    "answers",
    "confidence",
    "noise_floor",
    "noise",
    "results",
    "tolls",
    "contrasts",
    "claims",
    "tables",
    "warnings",
}
WHERE = {"choice", "provider", "server", "setting"}
RESULT = WHERE | {
    *("server_version", "metric", "component", "unit", "value", "low", "high"),
    *("blocks", "outcome", "reason", "standing", "strength"),
}
TOLL = WHERE | {"against", "metric", "ratio", "low", "high", "difference", "all", "verdict", "suffers", "aa"}
CONTRAST = {"setting", "value", "for", "where", "low", "high", "least", "most", "pairs", "verdict"}
CLAIM = {"says", "metric", "published", "ratio", "low", "high", "all", "rates", "by_source", "verdict"} | {
    *("where", "component", "published_range", "order", "grows", "published_figures", "figures"),
    *("published_error", "published_deviation"),
}


def _read(*studies: StudyJudgement) -> Any:
    """Return these studies as read back from strict JSON, without infinite numbers."""
    return json.loads(json.dumps(json_forms.of_run(judgement(studies)), allow_nan=False))["studies"]


GOLDEN = Path(__file__).parent / "golden" / "document.json"
DIGESTS = GOLDEN.with_name("schemas.sha256")


def _rounded(value: Any) -> Any:
    """Round numbers to nine figures, because the last digits depend on the mathematics library."""
    if isinstance(value, dict):
        return {name: _rounded(inside) for name, inside in value.items()}
    if isinstance(value, list):
        return [_rounded(inside) for inside in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def test_the_document_is_what_it_was() -> None:
    # The served study has facts that trials of one cell agreed on; the first has contrasts, claims and left-out cells.
    served = arrivals()
    rows = served.study.rows[::3]
    measured = tuple(m for m in served.measurements if m.row in rows)
    served = replace(served, study=replace(served.study, rows=rows), measurements=measured, tolls=served.tolls[::3])
    few = replace(digests(), measurements=digests().measurements[:6], tolls=digests().tolls[:6])
    found = json_forms.of_run(judgement([few, passwords(), served]))
    assert GOLDEN.read_text("utf-8") == json.dumps(_rounded(found), indent=1, allow_nan=False) + "\n"


def test_the_document_has_the_form_of_its_schema() -> None:
    found = json.loads(json.dumps(json_forms.of_run(example()), allow_nan=False))
    assert 3 == found["schema"]
    assert {"schema", "run", "fingerprint", "studies"} <= set(found)
    for study in found["studies"]:
        assert set(study) >= STUDY
        for part, keys in (("results", RESULT), ("tolls", TOLL), ("contrasts", CONTRAST), ("claims", CLAIM)):
            assert [] == [entry for entry in study[part] if not set(entry) >= keys]
        assert [] == [toll for toll in study["tolls"] if not set(toll["against"]) >= WHERE]


ROOT = Path(__file__).parent.parent
REFERENCE = (ROOT / "docs" / "json.md").read_text("utf-8")
OF_A_RUN = REFERENCE.partition("\n## ")[0]


def test_the_documents_are_what_the_schema_says() -> None:
    golden = json.loads(GOLDEN.read_text("utf-8"))
    assert golden == RunDocument.model_validate(golden).model_dump(mode="json")
    studies = (
        example(),
        judgement([handshakes()]),
        judgement([arrivals()]),
        *map(judgement, ([fabricated(n)] for n in shipped()[:: share.of(5, 1)])),
    )
    for judged in studies:
        found = json.loads(json.dumps(json_forms.of_run(judged), allow_nan=False))
        assert found == RunDocument.model_validate(found).model_dump(mode="json")


def test_schemas_change_on_purpose() -> None:
    """A changed digest is a changed promise: record it in CHANGELOG.md, then put the new digest into the file."""
    found = {name: hashlib.sha256(json_schema(form).encode()).hexdigest() for name, form in DOCUMENTS.items()}
    assert DIGESTS.read_text("utf-8") == "".join(f"{digest}  {name}\n" for name, digest in found.items())


def test_the_reference_has_the_tables_of_the_forms() -> None:
    assert REFERENCE == with_tables(REFERENCE)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_document_has_the_number_of_its_form(name: str) -> None:
    schema = json.loads(json_schema(DOCUMENTS[name]))
    assert 3 == schema["properties"]["schema"]["const"]
    assert "schema" in schema["required"]


def test_the_reference_has_every_key_of_a_document_and_of_a_study() -> None:
    tables = [re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) for part in OF_A_RUN.split("Each study:")]
    found = json_forms.of_run(example())
    assert [list(found), list(found["studies"][0])] == tables


def test_answers_are_those_of_terminal_and_report() -> None:
    for judged, study in zip(example().studies, json_forms.of_run(example())["studies"], strict=True):
        headline, *paragraphs = answer(judged)
        said = study["answers"]
        assert (headline, paragraphs) == (said["headline"], said["paragraphs"])
        assert first_sentences(judged)[0] == said["sentences"][0]
        comparisons = [toll for toll in study["tolls"] if not toll["aa"]]
        assert len(said["sentences"]) - len(comparisons) in (0, 1)


def test_both_costs_are_rows_and_both_ratios_stand_in_a_toll() -> None:
    (study,) = _read(digests())
    cells: dict[str, dict[str, float]] = {}
    for row in study["results"]:
        if row["value"] is not None:
            cells.setdefault(str((row["choice"], row["provider"], row["setting"])), {})[row["metric"]] = row["value"]
    assert 26 == len(cells)
    assert [] == [c for c in cells.values() if not c["cpu"] < c["cpu-all"]]
    judged = {toll.row.key: toll for toll in digests().tolls}
    for toll, mine in zip(study["tolls"], judged.values(), strict=True):
        expected = mine.all_samples.estimate if mine.all_samples else None
        assert expected == toll["all"]
        assert mine.suffers == toll["suffers"]
    assert ["more"] == [toll["suffers"] for toll in study["tolls"] if toll["suffers"]]


def test_the_confidence_and_the_noise_are_those_of_the_study() -> None:
    (study,) = _read(digests())
    noise = digests().noise
    assert noise is not None
    assert (0.995, [noise.low, noise.high]) == (study["confidence"], study["noise"])
    assert {True, False} == {toll["aa"] for toll in study["tolls"]}


def test_a_server_and_its_parts_have_columns_of_their_own() -> None:
    (study,) = _read(handshakes())
    assert {("openssl 3.0.19", "httpd", "httpd 2.4.71"), ("openssl 3.0.19", "nginx", None)} < {
        (row["provider"], row["server"], row["server_version"]) for row in study["results"]
    }
    parts = {(row["metric"], row["component"]) for row in study["results"] if row["server"] == "httpd"}
    assert {
        ("server-cpu", None),
        ("server-cpu", "web"),
        ("server-cpu", "directory"),
        ("server-cpu-all", None),
    } < parts


def test_a_cell_without_a_number_keeps_its_row() -> None:
    (study,) = _read(digests())
    missing = [row for row in study["results"] if row["value"] is None]
    assert [("cpu", None, "unsupported", NO_BLAKE3)] * 2 == [
        (row["metric"], row["component"], row["outcome"], row["reason"]) for row in missing
    ]


def test_an_end_that_is_not_known_is_null() -> None:
    unknown = Interval(1.1, 0.0, inf, 0.975, 3)
    study = digests()
    tolls = tuple(replace(t, ratio=unknown, all_samples=unknown) for t in study.tolls)
    (found,) = _read(replace(study, tolls=tolls, noise=unknown, noise_floor=inf))
    assert (None, [None, None], {None}) == (found["noise_floor"], found["noise"], {t["high"] for t in found["tolls"]})


@pytest.mark.parametrize("rates", [None, (1204.5, 455.0)])
def test_a_claim_names_what_it_was_judged_by(rates: tuple[float, float] | None) -> None:
    """Capacity, with the measured rates if there are any."""
    study = digests()
    claims = tuple(replace(c, rates=rates) for c in study.claims)
    (found,) = _read(replace(study, claims=claims))
    assert ["capacity", "capacity", "capacity", "cost", "capacity", "capacity"] == [
        c["metric"] for c in found["claims"]
    ]
    assert (list(rates) if rates else None) == found["claims"][0]["rates"]
