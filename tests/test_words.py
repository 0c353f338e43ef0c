"""Former words are not keys, values, options or column heads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from conftest import Tollbar
from tollbar.catalog.families import families
from tollbar.cli import COMMANDS, GROUPS
from tollbar.core.metrics import METRICS
from tollbar.core.renamed import COLUMNS, WORDS
from tollbar.decide.schema import DOCUMENTS, json_schema
from tollbar.results.database import TABLES
from tollbar.study import shipped

ROOT = Path(__file__).parents[1]
EARLIER = {
    *(word.removeprefix("--") for word in WORDS), *COLUMNS, "heats", "twins", "looks", "undisturbed", "typical",
    "as disturbed", "moments", "left_alone", "company", "pays for company", "stretches", "in_stretches", "rehearse",
} - {"server"}  # fmt: skip
OPTIONS = {"run": ["--on"], "choose": ["--on", "--page"], "ask": ["--against"], "report": ["--to"],
           "compare": ["--of"], "show": ["--of"], "doctor": ["--no-rehearse"]}  # fmt: skip


def keys_of(said: Any) -> Iterator[str]:
    if isinstance(said, dict):
        for name, value in said.items():
            yield name
            yield from keys_of(value)
            if name in ("enum", "const"):
                yield from value if isinstance(value, list) else [value]
    elif isinstance(said, list):
        for one in said:
            yield from keys_of(one)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_document_has_an_earlier_word(name: str) -> None:
    assert not EARLIER & {*keys_of(json.loads(json_schema(DOCUMENTS[name])))}


def test_no_name_of_the_catalogue_is_an_earlier_word() -> None:
    names = {*shipped(), *METRICS, *COMMANDS, *families()}
    for family in families().values():
        names |= {*family.settings, *family.choices, *family.operations}
    names |= {*re.findall(r"[a-z_]+", TABLES)}
    assert not EARLIER & names


def test_no_study_or_family_that_ships_has_an_earlier_key() -> None:
    found = [*Path(str(files("tollbar"))).rglob("*.toml")]
    assert found
    for path in found:
        keys = {*re.findall(r"^([a-z-]+) *=|[{,] *([a-z-]+) *=", path.read_text("utf-8"), re.MULTILINE)}
        assert not EARLIER & {one for pair in keys for one in pair}, path


@pytest.mark.parametrize(("command", "option"), [(name, one) for name, some in OPTIONS.items() for one in some])
def test_an_earlier_option_is_refused_with_the_new_one(command: str, option: str, tollbar: Tollbar) -> None:
    arguments = {"run": [], "choose": ["digest"], "ask": ["digest", "sha-256"], "report": ["x"], "compare": ["x", "y"],
                 "show": ["digests"], "doctor": []}[command]  # fmt: skip
    done = tollbar(command, *arguments, option, "x")
    assert 2 == done.returncode
    assert re.search(r"did you mean `--[a-z-]+`\?", done.stderr), done.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("plan", "in-company"), "`in-company` is `scaling` now"),
        (("plan", "rehearsal"), "`rehearsal` is `self-test` now"),
        (("gather", "runs"), "`gather` is `compare` now"),
        (("ask", "tls", "tls-1.3", "bed=nginx"), "`bed` is `server` now"),
    ],
)
def test_an_earlier_name_is_refused_with_the_new_one(words: tuple[str, ...], hint: str, tollbar: Tollbar) -> None:
    done = tollbar(*words)
    assert 2 == done.returncode
    assert hint in done.stderr


@pytest.mark.parametrize(
    ("line", "hint"),
    [('beds = ["nginx"]', "`beds` is `servers` now"), ('[judge]\nworth = "3 %"', "`worth` is `threshold` now")],
)
def test_an_earlier_key_of_a_study_is_refused_with_the_new_one(
    line: str, hint: str, tollbar: Tollbar, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(f'question = "?"\nfamily = "digest"\n{line}\n')
    done = tollbar("plan", str(tmp_path / "mine.toml"))
    assert 2 == done.returncode
    assert hint in done.stderr


def test_each_command_is_in_one_group() -> None:
    assert sorted(COMMANDS) == sorted(name for names in GROUPS.values() for name in names)
