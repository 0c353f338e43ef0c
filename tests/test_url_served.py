"""Servers of the user's own, measured: accepted versions, costs, and servers that end."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from conftest import Tollbar, command
from own_server import BOTH, Own, nginx, python_server
from patience import PATIENCE_S
from tollbar import results
from tollbar.core import proc
from tollbar.lab.tls.url import text_of

SPOKEN = {"TLSv1.2": ("tls-1.2", "TLS 1.2"), "TLSv1.3": ("tls-1.3", "TLS 1.3")}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Own]:
    """Yield an nginx of the user's own."""
    with nginx(tmp_path / "nginx") as own:
        yield own


def _of_study(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert 0 == done.returncode, done.stderr
    (study,) = json.loads(done.stdout)["studies"]
    assert isinstance(study, dict)
    return study


@pytest.mark.share(1)
def test_the_values_of_a_query_are_only_in_the_description_of_a_run(tollbar: Tollbar, tmp_path: Path) -> None:
    """They may be secrets. A resumed run needs them, so only the user can read the one file that has them."""
    study = tmp_path / "own.toml"
    with nginx(tmp_path / "nginx", more='if ($arg_token != "9Qa") { return 403; }') as own:
        url = f"{own.https}?token=9Qa"
        load = "[load]\nusers = [2]\n"
        study.write_text(f'question = "?"\nfamily = "tls"\nproviders = ["aws-lc"]\nurl = "{url}"\n{load}')
        options = ("--users", 2, "--blocks", 1)
        done = [tollbar("plan", "--url", url, *options), tollbar("plan", study, "--json")]
        done += [tollbar("ask", "tls", "--url", url, "--for", "0s", "--json"), tollbar("run", study, "--blocks", 1)]
        done += [tollbar("run", "--url", url, *options), tollbar("run", "--url", f"{url}9Q", *options)]
        runs = sorted((tmp_path / "runs").iterdir())
        for run in runs:
            done += [tollbar("run", "--resume", run, "--blocks", 2), tollbar("report", run)]
            done += [tollbar("judge", run, *layout) for layout in ((), ("--json",), ("--markdown",))]
            done += [tollbar("export", run, "--per", "cell")]
            assert 0o600 == (run / "run.json").stat().st_mode & 0o777
    assert 2 == len(runs)
    # `ask` finds outdated TLS, and the server refuses the wrong token.
    assert [0, 0, 1, 0, 0, 2] + [0] * 12 == [one.returncode for one in done], [one.stderr for one in done]
    for one in done:
        assert "9Q" not in one.stdout + one.stderr
    assert "token=…" in done[0].stdout
    kept = [path for run in runs for path in run.rglob("*") if path.is_file() and b"9Q" in path.read_bytes()]
    assert [run / "run.json" for run in runs] == kept


def _measured(study: dict[str, Any], metric: str) -> list[dict[str, Any]]:
    return [result for result in study["results"] if result["metric"] == metric and result["component"] is None]


@pytest.mark.share(1)
@pytest.mark.parametrize("versions", [BOTH, BOTH[:1], BOTH[1:]])
def test_what_a_server_offers_is_a_finding(tollbar: Tollbar, tmp_path: Path, versions: tuple[str, ...]) -> None:
    with nginx(tmp_path / "nginx", versions=versions) as own:
        done = tollbar("run", "--url", own.https, "--users", 2, "--blocks", 1)
    assert 0 == done.returncode, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    study = _of_study(tollbar("judge", run, "--json"))
    offered = {SPOKEN[version] for version in versions}
    assert offered == {
        (result["choice"], agreed["version"])
        for result in _measured(study, "client-cpu")
        for agreed in result.get("negotiated", ())
    }
    lacking = [result for result in study["results"] if result["outcome"] != "ok"]
    assert 2 * (2 - len(versions)) == len(lacking)
    by_itself = max(offered)
    for result in lacking:
        assert result["choice"] not in dict(offered)
        assert "unsupported" == result["outcome"]
        asked = dict(SPOKEN.values())[result["choice"]]
        assert result["reason"].startswith(f"not offered: {asked}; the server negotiates {by_itself[1]} by itself")
        assert f"not offered: {asked}" in " ".join(done.stdout.split())
        assert f"not offered: {asked}" in (run / "report.html").read_text("utf-8")
    assert {by_itself[0]} == {toll["against"]["choice"] for toll in study["tolls"]}


@pytest.mark.share(0)
def test_connections_and_requests_have_their_tolls(tollbar: Tollbar, server: Own) -> None:
    study = _of_study(tollbar("run", "--url", server.https, "--users", 2, "--blocks", 2, "--json"))
    # The configuration of a user's server is unknown, so it has no default to compare with.
    assert "unlike the default" not in json.dumps(study)
    ratios = {(toll["choice"], toll["setting"]["op"]): toll["ratio"] for toll in study["tolls"] if not toll["aa"]}
    assert {("tls-1.2", "request"), ("tls-1.2", "connect"), ("tls-1.3", "connect")} == ratios.keys()
    assert all(ratios[choice, "connect"] > 1 for choice in ("tls-1.2", "tls-1.3"))
    # No process of it is named.
    assert [] == _measured(study, "server-cpu")


@pytest.mark.parametrize("named", [False, True])
def test_a_server_that_closes_each_connection_is_measured(tollbar: Tollbar, tmp_path: Path, named: bool) -> None:
    """Python's own server speaks HTTP/1.0: every request has a connection of its own, and the report explains it."""
    with python_server(tmp_path / "python") as own:
        pids = ["--server-pid", own.pid] if named else []
        done = tollbar("run", "--url", own.http, "--users", 2, "--blocks", 1, "--json", *pids)
    study = _of_study(done)
    assert named == bool(_measured(study, "server-cpu"))
    assert _measured(study, "throughput")
    assert any(warning.startswith("The server closed ") for warning in study["warnings"])


@pytest.mark.parametrize(("path", "is_redirected"), [("folder", True), ("nowhere", False)])
def test_a_redirection_has_a_hint(tollbar: Tollbar, tmp_path: Path, path: str, is_redirected: bool) -> None:
    (tmp_path / "python" / "folder").mkdir(parents=True)
    with python_server(tmp_path / "python") as own:
        done = tollbar("run", "--url", own.http.replace("/page", f"/{path}"))
    assert (2, "") == (done.returncode, done.stdout)
    assert f"expected status 200, got {301 if is_redirected else 404}" in done.stderr
    assert is_redirected == ("follows no redirection; pass the URL of the page itself" in done.stderr)


def test_connections_that_the_server_closes_are_counted_and_said(tollbar: Tollbar, tmp_path: Path) -> None:
    with nginx(tmp_path / "nginx", keepalive_requests=10) as own:
        done = tollbar("run", "--url", own.http, "--users", 2, "--blocks", 1, "--json")
    (said,) = [warning for warning in _of_study(done)["warnings"] if "costs there include new connections" in warning]
    (back,) = results.read(tmp_path / json.loads(done.stdout)["run"]).studies
    reopened = {
        op: sum(t.load.reopened for row in back.rows if row.coordinates["op"] == op for t in row.trials if t.load)
        for op in ("connect", "request")
    }
    # If each request has a new connection, no kept one can be closed.
    assert 0 == reopened["connect"]
    assert reopened["request"] > 0
    assert said.startswith("The server closed ")


def test_tls_beside_plaintext_by_what_the_server_pays(tollbar: Tollbar, server: Own) -> None:
    words = ["--url", server.https, "--against", server.http, "--server-pid", server.pid]
    study = _of_study(tollbar("run", *words, "--users", 2, "--blocks", 2, "--json"))
    costs = {
        (result["server"], result["choice"], result["setting"]["op"]): result["value"]
        for result in _measured(study, "server-cpu")
    }
    assert 6 == len(costs)
    assert all(value > 0 for value in costs.values())
    assert {server.http} == {toll["against"]["server"] for toll in study["tolls"]}
    ratios = {
        (toll["choice"], toll["setting"]["op"]): toll["ratio"]
        for toll in study["tolls"]
        if toll["server"] == server.https
    }
    assert 4 == len(ratios)
    assert all(ratios[choice, "connect"] > 1.5 for choice in ("tls-1.2", "tls-1.3"))


@pytest.mark.share(0)
def test_the_cost_is_the_clients_unless_every_server_has_its_process(
    tollbar: Tollbar, server: Own, tmp_path: Path
) -> None:
    with python_server(tmp_path / "python") as other:
        words = ["--url", server.http, "--against", other.http, "--server-pid", server.pid, "--users", 2]
        study = _of_study(tollbar("run", *words, "--blocks", 1, "--json"))
    assert {"client-cpu"} == {toll["metric"] for toll in study["tolls"]}
    assert {server.http} == {result["server"] for result in _measured(study, "server-cpu")}
    assert {server.http, other.http} == {result["server"] for result in _measured(study, "client-cpu")}


def test_a_server_is_compared_with_another_and_what_was_negotiated_is_printed(
    tollbar: Tollbar, server: Own, tmp_path: Path
) -> None:
    with nginx(tmp_path / "other", tickets=False) as other:
        words = ["--url", server.https, "--against", other.https, "--users", 2, "--blocks", 1]
        said = {
            resumption: " ".join(tollbar("run", *words, "--resumption", resumption).stdout.split())
            for resumption in ("none", "ticket")
        }
    for text in said.values():
        hosts = f"{server.https} (TLS 1.3) against {other.https} (TLS 1.3)"
        assert f"{hosts}, by client CPU per operation: `connect` ×" in text
        assert "TLS 1.3, x25519, TLS_AES_256_GCM_SHA384, certificate ECDSA P-256; " in text
    resumed = {
        (resumption, url): re.findall(rf"{re.escape(url)}: TLS [^;]*; ([\d,]+) of ([\d,]+) connections", text)
        for resumption, text in said.items()
        for url in (server.https, other.https)
    }
    assert all(2 == len(counts) for counts in resumed.values()), said
    assert {"0"} == {some for some, _ in resumed["none", server.https]}
    assert {"0"} == {some for some, _ in resumed["ticket", other.https]}
    assert all(some == whole for some, whole in resumed["ticket", server.https])
    assert "The load client offered no session" in said["none"]
    assert "The load client offered no session" not in said["ticket"]


def test_a_worker_that_is_named_beside_its_master_counts_once(tollbar: Tollbar, server: Own) -> None:
    named = [word for pid in reversed(proc.tree(server.pid)) for word in ("--server-pid", pid)]
    words = ["--url", server.http, "--users", 2, "--blocks", 1, "--json"]
    study = _of_study(tollbar("run", *words, *named))
    assert {"server-cpu"} == {toll["metric"] for toll in study["tolls"]}
    # A single component is the whole.
    assert {None} == {result["component"] for result in study["results"]}


def test_a_process_that_is_not_the_servers_is_refused(tollbar: Tollbar, server: Own, tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    deaf = subprocess.Popen(["sleep", "120"])
    worker = proc.tree(server.pid)[1]
    refusals = {
        ended.pid: "no such process",
        deaf.pid: "neither sleep nor a child of it listens on 127.0.0.1:",
        worker: f"nginx (process {server.pid}) also listens there",
    }
    for pid, said in refusals.items():
        for name in ("run", "plan"):
            done = tollbar(name, "--url", server.http, "--server-pid", pid)
            assert (2, "") == (done.returncode, done.stdout)
            assert said in done.stderr.splitlines()[0]
    deaf.kill()
    deaf.wait()
    assert f"`--server-pid {server.pid}`, which counts it" in done.stderr
    for pid in (1, os.getpid(), os.getppid()):
        done = tollbar("run", "--url", server.http, "--server-pid", pid)
        assert (2, "") == (done.returncode, done.stdout)
        assert re.search("has started Tollbar|no such process|another user", done.stderr)
    assert not (tmp_path / "runs").exists()


def test_a_server_that_ends_on_the_way_is_rows_with_the_reason(server: Own, tmp_path: Path) -> None:
    # Batches of some seconds, so that it ends within the first.
    text = text_of({server.http: "plaintext"}, (2,), counts_server=True) + 'rounds = 100\nchunk = "20 ms"\n'
    (tmp_path / "own.toml").write_text(text)
    with _run(tmp_path, "own.toml", "--server-pid", str(server.pid), "--json", "--no-report") as lab:
        os.kill(server.pid, signal.SIGTERM)
        said, _ = lab.communicate(timeout=PATIENCE_S)
    assert 1 == lab.returncode
    (study,) = json.loads(said)["studies"]
    assert {"failed"} == {result["outcome"] for result in study["results"]}
    assert all(f"nginx (process {server.pid}) has ended" in result["reason"] for result in study["results"])


@pytest.mark.share(0)
def test_a_server_that_ends_late_leaves_what_was_measured(server: Own, tmp_path: Path) -> None:
    words = ["--url", server.http, "--server-pid", str(server.pid), "--users", "2", "--blocks", "60"]
    with _run(tmp_path, *words, "--json", "--no-report") as lab:
        (run,) = (tmp_path / "runs").iterdir()
        with closing(sqlite3.connect(f"file:{run}/results.sqlite?mode=ro", uri=True)) as database:
            while database.execute("select count(*) from batch").fetchone()[0] < 5:
                time.sleep(0.05)
        os.kill(server.pid, signal.SIGTERM)
        said, _ = lab.communicate(timeout=PATIENCE_S)
    assert 1 == lab.returncode
    (study,) = json.loads(said)["studies"]
    assert {"ok"} == {result["outcome"] for result in study["results"]}
    assert any("has ended" in warning for warning in study["warnings"])


@contextmanager
def _run(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a run that has begun to measure."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([command(), "run", *words], cwd=folder, **pipes) as lab:
        assert lab.stderr is not None
        assert any(line.lstrip().startswith("measure ") for line in lab.stderr)
        yield lab


@pytest.mark.share(0)
def test_a_run_is_gone_on_with_when_the_process_is_named_again(tollbar: Tollbar, server: Own, tmp_path: Path) -> None:
    """The process id is not kept, because it may belong to another process by now."""
    first = tollbar("run", "--url", server.http, "--server-pid", server.pid, "--users", 2, "--blocks", 1, "--json")
    run = tmp_path / json.loads(first.stdout)["run"]
    refused = tollbar("run", "--resume", run, "--blocks", 2)
    assert 2 == refused.returncode
    assert "no process of" in refused.stderr
    assert "--server-pid PID" in refused.stderr
    again = tollbar("run", "--resume", run, "--blocks", 2, "--url", server.http, "--server-pid", server.pid)
    assert 2 == again.returncode
    assert "leave `--url` and `--against` out" in again.stderr
    done = tollbar("run", "--resume", run, "--blocks", 2, "--server-pid", server.pid, "--json")
    assert _measured(_of_study(done), "server-cpu")
    # All blocks count; a cost may only use those in which the core was quiet.
    (read,) = results.read(run).studies
    assert {(0, 1)} == {tuple(trial.block for trial in row.trials) for row in read.rows}


@pytest.mark.share(0)
def test_an_interrupted_run_says_how_to_go_on(server: Own, tmp_path: Path) -> None:
    with _run(tmp_path, "--url", server.http, "--server-pid", str(server.pid), "--users", "2") as lab:
        lab.send_signal(signal.SIGINT)
        _, said = lab.communicate(timeout=PATIENCE_S)
    assert 130 == lab.returncode
    assert f"--server-pid {server.pid}" in said.partition("tollbar run --resume ")[2]
