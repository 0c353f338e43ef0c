"""The toy runners in other languages, one of which `docs/runners.md` shows: the text matches the file."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE_S
from test_conformance import TASK as HASH
from test_conformance import held
from tollbar import study
from tollbar.catalog.runners import Platform
from tollbar.study import plan

DOCUMENT = Path(__file__).parent.parent / "docs" / "runners.md"
TOY = Path(__file__).parent / "toy"
TASK: dict[str, Any] = {**HASH, "mode": "verify", "setting": {"bytes": 64, "cpu": "native"}}

KNOWN = hashlib.sha256(b"abc").hexdigest()


@pytest.fixture(autouse=True)
def tools() -> None:
    """Check the programs that the runner in bash needs."""
    assert shutil.which("jq"), "the runner in bash needs jq: apt-get install jq"


@pytest.fixture(params=["bash-runner", "hash-runner"])
def example(request: pytest.FixtureRequest) -> Path:
    """Return one of the programs."""
    return TOY / str(request.param)


def lines(example: Path, *said: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the example's answers to these lines and the end of its input."""
    told = "".join(json.dumps(line) + "\n" for line in said)
    done = subprocess.run([str(example)], input=told, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_example_lists_and_proves(example: Path) -> None:
    (listed,) = lines(example, {**TASK, "mode": "list"})
    assert "ok" == listed["outcome"]
    assert {"family": "digest", "choice": "sha-256"} in listed["offers"]
    (proven,) = lines(example, {**TASK, "inputs": {"of": "abc", "expected_hex": "00"}})
    assert hashlib.sha256(b"abc").hexdigest() == proven["proof"]["answer"]
    assert proven["proof"]["accepted"]
    assert proven["proof"]["refused"]


def test_the_example_is_advanced_chunk_by_chunk(example: Path) -> None:
    asked = [
        {"seconds": 0.005, "operations": 1},
        {"seconds": 0.0, "operations": 7},
        {"seconds": 0.001, "operations": 9},
    ]
    ready, *chunks, last = lines(example, {**TASK, "mode": "measure"}, *({"advance": one} for one in asked))
    assert ready["ready"]["provider"]
    assert len(asked) == len(chunks)
    for one, chunk in zip(asked, chunks, strict=True):
        assert chunk["operations"] >= one["operations"]
        assert chunk["wall_ns"] >= one["seconds"] * 1e9
        assert 0 < chunk["cpu_ns"]
    assert {"outcome": "ok"} == last


@pytest.mark.parametrize(
    ("change", "outcome", "words"),
    [
        ({"contract": 1}, "failed", "contract 2"),
        ({"choice": "md6"}, "unsupported", "md6"),
        ({"setting": {"bytes": 64, "colour": "blue"}}, "failed", "colour"),
        ({"setting": {"cpu": "no-sha"}}, "unsupported", "instruction sets"),
    ],
)
def test_the_example_refuses_in_words(example: Path, change: dict[str, Any], outcome: str, words: str) -> None:
    (refusal,) = lines(example, {**TASK, **change})
    assert outcome == refusal["outcome"]
    assert words in refusal["reason"]


def test_the_document_shows_the_file_that_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    text = DOCUMENT.read_text("utf-8")
    (program,) = re.findall(r"^```bash\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert program in (TOY / "bash-runner").read_text("utf-8")
    stanza = next(
        one for one in re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL) if "question" in one
    )
    monkeypatch.chdir(TOY)
    (planned,) = plan.make([study.read("hashing", stanza, where="docs")], seed=1).studies
    assert 4 == len(planned.cells)


def test_the_document_describes_the_runners_that_come_with_it() -> None:
    text = DOCUMENT.read_text("utf-8")
    told = next(one for one in re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL) if "packages" in one)
    keys = set(tomllib.loads(told))
    known = {field for field in Platform.__pydantic_fields__ if field not in ("folder", "build_of")}
    assert known == keys


def test_the_program_in_bash_keeps_the_contract() -> None:
    path = TOY / "bash-runner"
    verify = {**TASK, "setting": {"bytes": 4096, "cpu": "native"}, "inputs": {"of": "abc", "expected_hex": KNOWN}}
    findings = held([str(path)], {**verify, "mode": "measure"}, verify)
    assert [] == [one for one in findings if one.kept is not True]
