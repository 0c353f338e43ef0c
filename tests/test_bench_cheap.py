"""The bench's figures of the lab's overhead: an engine that refuses its task or a run that fails misses the goal."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import cheap
from bench.studies import Unmeasured

from tollbar.catalog.libraries import Provider

REFUSAL = '{"outcome": "failed", "reason": "it has no key"}'
PROVED = '{"outcome": "ok", "proof": {"accepted": ["the same message again"]}}'
READY, CHUNK, DONE = '{"ready": {}}', '{"operations": 1, "cpu_ns": 1}', '{"outcome": "ok"}'


def program(folder: Path, text: str) -> str:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def engine(folder: Path, verified: str, measured: str) -> str:
    """Return an engine that answers tasks of the contract with these lines, and refuses others with status 0."""
    cases = f"*'\"contract\"'*verify*) printf '%s' '{verified}';; *'\"contract\"'*measure*) printf '%s' '{measured}';;"
    return program(folder, f"read -r task\ncase $task in {cases} *) echo '{REFUSAL}';; esac")


@pytest.mark.parametrize(
    ("verified", "measured", "start", "session"),
    [
        (PROVED, f"{READY}\n{CHUNK}\n{DONE}", True, None),
        (REFUSAL, REFUSAL, False, False),
        (DONE, f"{READY}\n{DONE}", False, False),
        ("", "", False, False),
    ],
    ids=["does all", "refuses", "does nothing", "says nothing"],
)
def test_an_engine_that_refuses_is_not_quick(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verified: str,
    measured: str,
    start: bool,
    session: bool | None,
) -> None:
    monkeypatch.setattr(cheap, "ENGINE", engine(tmp_path, verified, measured))
    monkeypatch.setattr(cheap, "STARTS", 1)
    monkeypatch.setattr(cheap, "START_GOAL_MS", 60_000.0)
    assert [start, session] == [figure.met for figure in cheap._starts("some libcrypto", None)]


def test_the_engine_takes_the_tasks(system: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cheap._start_ms(system.path) > 0
    assert cheap._session_ms(system.path) > 0
    for how in (cheap._start_ms, cheap._session_ms):
        with pytest.raises(Unmeasured):
            how("/nowhere/libcrypto.so.3")


def test_a_run_that_fails_is_neither_quick_nor_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cheap, "TOLLBAR", program(tmp_path, 'echo \'{"run": "runs/one"}\'; exit 1'))
    found = [*cheap._quick()]
    assert 3 == len(found)
    assert {(False, "`tollbar run` ended with status 1")} == {(figure.met, figure.here) for figure in found}
