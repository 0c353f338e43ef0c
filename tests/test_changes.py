"""A run is resumed only with the code and the parameters that it was begun with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import Tollbar
from tollbar import study
from tollbar.catalog import libraries
from tollbar.core import method
from tollbar.results import changes, made_with
from tollbar.study import plan

BEGUN: Mapping[str, Any] = {
    "engine": "tollbar-engine 0.1.0 (optimised) 00aa",
    "providers": {"libcrypto": {"name": "openssl 3.0.19", "cflags": "-O2", "path": "/a", "offers": {}}},
    "servers": {"nginx": {"version": "1.22.1", "program": "/usr/sbin/nginx"}, "httpd": {"unavailable": "not here"}},
    "choices": {"study": {"scrypt": {"setting": {"n": 16384}, "inputs": "00"}}},
}


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the record of a run's versions with one value changed."""
    now: dict[str, Any] = json.loads(json.dumps(BEGUN))
    *outer, last = path.split("/")
    inside = now
    for name in outer:
        inside = inside[name]
    inside[last] = value
    return now


CHANGES: list[tuple[str, object, str]] = [
    (
        "engine",
        "tollbar-engine 0.1.0 (optimised) 00ab",
        "the engine: tollbar-engine 0.1.0 (optimised) 00aa → tollbar-engine 0.1.0 (optimised) 00ab",
    ),
    ("providers/libcrypto/name", "openssl 3.0.20", "libcrypto: openssl 3.0.19 → openssl 3.0.20"),
    ("providers/libcrypto/cflags", "-O3", "libcrypto: its cflags: -O2 → -O3"),
    ("servers/nginx/version", "1.24.0", "nginx: 1.22.1 → 1.24.0"),
    ("servers/nginx", {"unavailable": "gone"}, "nginx: 1.22.1 → not available here"),
    ("choices/study/scrypt/setting/n", 32768, "the choice scrypt: its n: 16384 → 32768"),
    ("choices/study/scrypt/inputs", "01", "the choice scrypt: its key or other inputs are not those of the run"),
]


@pytest.mark.parametrize(("path", "value", "expected"), CHANGES)
def test_what_differs_is_named(path: str, value: object, expected: str) -> None:
    assert [expected] == changes(BEGUN, changed(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("providers/libcrypto/path", "/b"),
        ("providers/libcrypto/offers", {"digest": ["md5"]}),
        ("servers/nginx/program", "/opt/nginx"),
        # httpd has no cell with trials.
        ("servers/httpd", {"version": "2.4", "program": "/usr/sbin/apache2"}),
    ],
)
def test_what_makes_no_other_code_is_no_change(path: str, value: object) -> None:
    assert [] == changes(BEGUN, changed(path, value))


def test_another_build_of_one_version_is_another_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builds = set()
    for content in (b"one build", b"another"):
        program = tmp_path / "tollbar-engine"
        program.write_bytes(content)
        monkeypatch.setattr(libraries, "programs", lambda program=program: [program])
        builds.add(libraries.engine_build())
    assert 2 == len(builds)


def test_what_a_run_was_made_with_has_every_choice(fake_study: Path) -> None:
    planned = plan.make(study.load([str(fake_study)]), seed=1)
    found = made_with(planned)
    assert {"spin-1", "spin-1-again", "spin-2"} == set(found["choices"]["fake"])
    assert [] == changes(json.loads(json.dumps(found)), made_with(planned))


def other_engine(said: dict[str, Any]) -> str:
    said["engine"] += "ff"
    return "the engine: tollbar-engine"


def other_parameters(said: dict[str, Any]) -> str:
    said["choices"]["fake"]["spin-2"]["setting"]["iterations"] = 7
    return "the choice spin-2: its iterations: 7 → "


def other_method(said: dict[str, Any]) -> str:
    del said["method"]
    return f"the version of the method: {method.FIRST} → {method.VERSION}"


@pytest.mark.parametrize("alter", [other_engine, other_method, other_parameters])
def test_a_run_is_not_resumed_by_another_build(
    tollbar: Tollbar, fake_runs: Path, alter: Callable[[dict[str, Any]], str]
) -> None:
    path = fake_runs / "one" / "run.json"
    said = json.loads(path.read_text())
    expected = alter(said)
    path.write_text(json.dumps(said))
    refused = tollbar("run", "--resume", fake_runs / "one", "--blocks", "20", "--no-report")
    assert 2 == refused.returncode
    assert "installed software has changed since the run began" in refused.stderr
    assert expected in refused.stderr
    assert said == json.loads(path.read_text())
