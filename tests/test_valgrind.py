"""The engine under valgrind, for compilers without a sanitizer: it starts, works, and makes no error."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from conftest import lacking
from patience import PATIENCE_S
from tollbar.core.records.contract import CONTRACT
from tollbar.core.runner import engine

ERRORS = 9
PROVIDERS = ({"kind": "libcrypto"}, {"kind": "aws-lc"}, {"kind": "rustcrypto"})


def under_valgrind(said: Sequence[dict[str, Any]], *words: str) -> list[dict[str, Any]]:
    """Return the engine's answers to these lines; any memory error fails."""
    valgrind = shutil.which("valgrind") or lacking("valgrind")
    command = [valgrind, "-q", f"--error-exitcode={ERRORS}", str(engine()), *words]
    text = "".join(f"{json.dumps(line)}\n" for line in said)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (0, "") == (done.returncode, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider["kind"])
def test_a_digest_is_measured_without_an_error(provider: dict[str, str]) -> None:
    setting = {"bytes": 64}
    task = {"contract": CONTRACT, "mode": "measure", "family": "digest", "op": "hash", "choice": "sha-256"}
    ready, chunk, last = under_valgrind(
        [{**task, "provider": provider, "setting": setting}, {"advance": {"operations": 5}}], "op"
    )
    assert ready["ready"]["provider"]
    assert 5 <= chunk["operations"]
    assert "ok" == last["outcome"]
