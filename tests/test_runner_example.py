"""The example in `docs/runners.md`: what it tells is what runs."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DOCUMENT = Path(__file__).parent.parent / "docs" / "runners.md"
TASK: dict[str, Any] = {
    "contract": 2,
    "mode": "verify",
    "family": "digest",
    "op": "hash",
    "choice": "sha-256",
    "provider": {"kind": "runner"},
    "setting": {"bytes": 64, "cpu": "native"},
    "inputs": {},
    "seed": 7,
}
LIMIT_S = 60


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The document's program, as a file."""
    (program,) = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    path = tmp_path_factory.mktemp("runner") / "mine"
    path.write_text(program)
    return path


def lines(example: Path, *said: dict[str, Any]) -> list[dict[str, Any]]:
    """What the example answers to these lines and the end of its input."""
    told = "".join(json.dumps(line) + "\n" for line in said)
    done = subprocess.run(
        [sys.executable, str(example)], input=told, capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_example_lists_and_proves(example: Path) -> None:
    """It says what it offers, answers a known answer by itself, and refuses a wrong message."""
    (listed,) = lines(example, {**TASK, "mode": "list"})
    assert "ok" == listed["outcome"]
    assert {"family": "digest", "choice": "sha-256"} in listed["offers"]
    (proven,) = lines(example, {**TASK, "inputs": {"of": "abc", "expected_hex": "00"}})
    assert hashlib.sha256(b"abc").hexdigest() == proven["proof"]["answer"]
    assert proven["proof"]["accepted"]
    assert proven["proof"]["refused"]


def test_the_example_is_advanced_chunk_by_chunk(example: Path) -> None:
    """Each line is answered by a chunk at least as long and as many, and the end by an outcome."""
    asked = [
        {"seconds": 0.005, "operations": 1},
        {"seconds": 0.0, "operations": 7},
        {"seconds": 0.001, "operations": 5000},
    ]
    ready, *chunks, last = lines(example, {**TASK, "mode": "measure"}, *({"advance": one} for one in asked))
    assert ready["ready"]["provider"]
    assert ready["ready"]["operation_ns"] > 0
    assert len(asked) == len(chunks)
    for one, chunk in zip(asked, chunks, strict=True):
        assert chunk["operations"] >= one["operations"]
        assert chunk["wall_ns"] >= one["seconds"] * 1e9
        assert 0 < chunk["cpu_ns"] <= chunk["wall_ns"]
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
    """Another contract, what it lacks, and a setting that it does not read."""
    (refusal,) = lines(example, {**TASK, **change})
    assert outcome == refusal["outcome"]
    assert words in refusal["reason"]
