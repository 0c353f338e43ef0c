"""Whole runs over servers, some of which are faulty."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from served_lab import Lab
from tollbar import analysis, results
from tollbar.catalog import servers
from tollbar.cli.options import Options
from tollbar.cli.run import run
from tollbar.core.errors import ExitStatus
from tollbar.core.records import Trial
from tollbar.report.json_forms import of_run


def ran(lab: Lab, capsys: pytest.CaptureFixture[str], **more: Any) -> tuple[ExitStatus, dict[str, Any]]:
    """Return a run's exit status, and the one study of its document."""
    lab.study(**more)
    options = Options(runs=lab.folder / "runs", seed=lab.seed, report=False, json=True)
    status = run(str(lab.folder / "served.toml"), options=options)
    (found,) = json.loads(capsys.readouterr().out)["studies"]
    return status, found


def results_of(document: Mapping[str, Any]) -> dict[tuple[str, int], list[tuple[str, str | None, bool]]]:
    """Return outcome, reason and whether there is a number, of every cost, by server and bytes."""
    found: dict[tuple[str, int], list[tuple[str, str | None, bool]]] = {}
    for result in document["results"]:
        if result["metric"] == "server-cpu":
            at = (result["server"], result["setting"]["bytes"])
            found.setdefault(at, []).append((result["outcome"], result["reason"], result["value"] is not None))
    return found


def test_a_server_that_is_not_installed_is_unsupported(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab.server()
    (lab.folder / "fake" / "fake-server").unlink()
    status, document = ran(lab, capsys, servers='["fake", "embedded"]')
    missing = ("unsupported", "not available here: Fake is not installed; to install it: wishing", False)
    assert ExitStatus.DONE == status
    assert {
        ("fake", 1000): [missing],
        ("fake", 2000): [missing],
        ("embedded", 1000): [("ok", None, True)],
        ("embedded", 2000): [("ok", None, True)],
    } == results_of(document)
    assert {"not measured"} == {toll["verdict"] for toll in document["tolls"] if toll["server"] == "fake"}


def test_a_server_that_fails_in_a_trial_has_no_cost(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    # A proof asks twice.
    lab.server("wrong-status-once", after=8)
    status, document = ran(lab, capsys, blocks=2)
    found = results_of(document)
    ((outcome, reason, has_number),) = found["fake", 1000]
    assert (ExitStatus.SOME_FAILED, "failed", False) == (status, outcome, has_number)
    assert "requests failed: wrong status 1 (first: expected status 200, got 503)" in (reason or "")
    assert [("ok", None, True)] == found["fake", 2000]
    assert ["not measured"] == [toll["verdict"] for toll in document["tolls"] if toll["setting"]["bytes"] == 1000]


def test_a_refused_configuration_is_no_failure_of_the_run(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab.server("refuse")
    status, document = ran(lab, capsys)
    found = results_of(document)
    assert ExitStatus.DONE == status
    assert [("unsupported", "fake-server refuses: no such curve in line 7", False)] == found["fake", 1000]
    assert [("ok", None, True)] == found["fake", 2000]
    (kept,) = (lab.folder / "runs").glob("*/servers/fake/*/failed/web.log")
    assert "no such curve" in kept.read_text()


def test_the_document_says_what_limited_and_what_was_negotiated(lab: Lab, tmp_path: Path) -> None:
    lab.server()
    planned = lab.study("tls-1.3", "connect", blocks=4)
    with closing(results.create(planned, tmp_path / "runs", command=(), libraries=(), fingerprint={})) as store:
        for proven in lab.prove(planned).values():
            store.record_proof(proven)
        for trials in lab.batches(planned):
            store.record([busy(trial) for trial in trials])
    (document,) = of_run(analysis.judge(results.read(store.directory)))["studies"]
    limits = {result["metric"]: result.get("limit") for result in document["results"]}
    bound = {"throughput", "latency-p50", "latency-p95", "latency-p99"}
    assert dict.fromkeys(bound, "client-bound") == {m: limit for m, limit in limits.items() if limit}
    assert {"server-cpu", "client-cpu", "server-memory"} <= limits.keys()
    for result in document["results"]:
        (agreed,) = result["negotiated"]
        assert ("TLS 1.3", "ECDSA P-256") == (agreed["version"], agreed["certificate_key"])
        assert agreed["count"] >= 4 * 2
        assert ["rustls"] == [name.split()[0] for name in result["client_libraries"]]


def busy(trial: Trial) -> Trial:
    """Return the trial with a saturated load client."""
    assert trial.load is not None
    return replace(trial, load=trial.load.model_copy(update={"client_cpu_ns": round(0.99 * trial.load.wall_ns)}))


def test_a_path_that_cannot_be_looked_into_hides_no_server(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    # For root no folder is closed; an overlong name gives such an error too.
    monkeypatch.setenv("PATH", f"/{'x' * 300}:{os.environ['PATH']}")
    lab.server()
    assert isinstance(servers.find(servers.all_servers()["fake"]), servers.Installed)
