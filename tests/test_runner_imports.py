"""Routes that import a key in each call do so, and routes that keep one do not: counted inside the platform."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from patience import PATIENCE_S
from tollbar.catalog import families
from tollbar.catalog.runners import Platform, all_platforms, command_of
from tollbar.core.records import CONTRACT

COUNTERS = Path(__file__).parent / "imports"
CHUNKS = 3
OPERATIONS = 40

# Limit of keys read while a route is made ready: the task's own, and eight for a pool.
MOST_AT_START = 20


def node(platform: Platform, _: Path) -> list[str]:
    """Return the Node runner with a counter loaded before it."""
    program, *rest = command_of(platform)
    return [program, "--require", str(COUNTERS / "counting.cjs"), *rest]


def java(platform: Platform, folder: Path) -> list[str]:
    """Return the Java runner behind a provider that counts."""
    command = list(command_of(platform))
    at = command.index("-cp") + 1
    compiler = ["javac", "-d", str(folder), "-cp", command[at], str(COUNTERS / "Counted.java")]
    subprocess.run(compiler, check=True, timeout=PATIENCE_S)
    command[at] = f"{folder}:{command[at]}"
    return [*command[:-1], "Counted"]


COUNTED: dict[str, Callable[[Platform, Path], list[str]]] = {"node": node, "java": java}


@pytest.mark.share(0)
@pytest.mark.parametrize("name", COUNTED)
def test_keys_are_imported_in_each_call_where_the_route_says_so(name: str, tmp_path: Path) -> None:
    platform = all_platforms()[name]
    command = COUNTED[name](platform, tmp_path)
    for choice, imports in {
        "key-cached": False,
        "key-pooled": False,
        "key-from-pem": True,
        "key-from-der": True,
        "key-from-parameters": True,
    }.items():
        inputs = dict(families.family("rsa-api").choices["key-cached"].inputs)
        task = {
            "contract": CONTRACT,
            "mode": "measure",
            "family": "rsa-api",
            # A verification is short, so a session counts many in little time.
            "op": "verify",
            "choice": choice,
            "provider": {"kind": name},
            "setting": {"bytes": 60, "digest": "implicit"},
            "inputs": inputs,
            "seed": 3,
        }
        lines = [task, *[{"advance": {"seconds": 0.0, "operations": OPERATIONS}}] * CHUNKS]
        said = subprocess.run(
            command,
            input="".join(json.dumps(line) + "\n" for line in lines),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        _, *chunks, last = [json.loads(line) for line in said.stdout.splitlines()]
        assert {"outcome": "ok"} == last
        operations = sum(chunk["operations"] for chunk in chunks)
        assert operations >= CHUNKS * OPERATIONS
        counted = json.loads(said.stderr.splitlines()[-1])["imports"]
        if imports:
            assert counted >= operations, choice
        else:
            assert counted <= MOST_AT_START, choice
