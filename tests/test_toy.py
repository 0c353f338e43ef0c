"""A toy family with its server, service, metric, workload, and a runner in another language.

Everything is in `tests/toy`, found by the search path: no stage has a line for it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tollbar as package
from conftest import Tollbar
from tollbar import study
from tollbar.catalog import families, libraries, servers
from tollbar.core.errors import TollbarError
from tollbar.core.records import Outcome
from tollbar.lab import measure, workloads
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.study import plan

TOY = Path(__file__).parent / "toy"
SOURCE = Path(package.__file__).parent

ALONE = f"""
question  = "What does a stamp cost?"
family    = "toy"
providers = ["runner:{TOY / "toy-runner"}"]
choices   = ["none", "once", "often"]
baseline  = "once"

[measure]
rounds = 3
blocks = 1
"""
SERVED = (
    ALONE.replace("[measure]", '[load]\nusers = [2]\nrequest = { get = "/stamp" }\n\n[measure]')
    .replace("choices", 'servers = ["toy"]\nchoices')
    .replace("[load]", '[vary]\nledger = ["red", "blue"]\n\n[load]')
)


@pytest.fixture
def env() -> dict[str, str]:
    """Return the environment that adds the toy family and server."""
    return {"TOLLBAR_PATH": str(TOY), "PATH": f"{TOY}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def here(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set that environment in this process."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    yield
    servers.find.cache_clear()
    libraries.open_provider.cache_clear()


def rows(document: dict[str, Any], metric: str) -> dict[tuple[str, str | None, str | None], dict[str, Any]]:
    """Return the results of one metric, by choice, ledger and component."""
    (one,) = document["studies"]
    found = [row for row in one["results"] if row["metric"] == metric]
    return {(row["choice"], row["setting"].get("ledger"), row["component"]): row for row in found}


def test_the_toy_goes_from_study_to_report_and_is_read_without_its_folder(
    tollbar: Tollbar, tmp_path: Path, env: dict[str, str]
) -> None:
    (tmp_path / "toy.toml").write_text(SERVED)
    done = tollbar("run", "toy.toml", "--json", env=env)
    assert 0 == done.returncode, done.stderr
    document = json.loads(done.stdout)
    costs, wire = rows(document, "server-cpu"), rows(document, "wire")
    cells = {(choice, ledger) for choice in ("none", "once", "often") for ledger in ("red", "blue")}
    assert {(*cell, part) for cell in cells for part in (None, "gate", "ledger")} == costs.keys()
    assert {(*cell, None) for cell in cells} == wire.keys()
    assert {("B/op", "ok", "toy 1.0", "hashlib 1.0")} == {
        (row["unit"], row["outcome"], row["server_version"], row["provider"]) for row in wire.values()
    }
    # `blue` is a byte longer than `red`, with both ways of stamping.
    assert {1.0} == {
        round(wire[choice, "blue", None]["value"] - wire[choice, "red", None]["value"], 6)
        for choice in ("none", "once", "often")
    }
    assert {"none": 1, "once": 1, "often": 2} == {choice: row["known_answers"] for (choice, *_), row in costs.items()}
    run = tmp_path / document["run"]
    assert (run / "report.html").stat().st_size > 0
    exported = tollbar("export", run)
    assert "wire" in exported.stdout.splitlines()[0].split(",")
    # Without the search path there is no such family and no such server.
    judged = tollbar("judge", document["run"], "--json")
    assert 0 == judged.returncode, judged.stderr
    assert document == json.loads(judged.stdout)
    assert 2 == tollbar("plan", "toy.toml").returncode


def test_a_run_keeps_what_was_known_of_its_families(tollbar: Tollbar, tmp_path: Path, env: dict[str, str]) -> None:
    shutil.copytree(TOY / "families", tmp_path / "mine" / "families")
    own = {**env, "TOLLBAR_PATH": str(tmp_path / "mine")}
    (tmp_path / "toy.toml").write_text(ALONE)
    done = tollbar("run", "toy.toml", "--json", "--no-report", env=own)
    assert 0 == done.returncode, done.stderr
    document = json.loads(done.stdout)
    family = tmp_path / "mine" / "families" / "toy" / "family.toml"
    for text in (family.read_text().replace("[choice.often]", "[choice.seldom]").replace("B/op", "MB"), "rubbish"):
        family.write_text(text)
        assert document == json.loads(tollbar("judge", document["run"], "--json", env=own).stdout)
    assert 2 == tollbar("run", "--resume", document["run"], env=own).returncode


def test_a_component_is_shared_by_its_setting(here: None, tmp_path: Path) -> None:
    (one,) = plan.make([study.read("toy", SERVED, where="toy.toml")], seed=1).studies
    with Sandbox() as sandbox:
        proven = list(measure.prove(one.cells, 1, sandbox=sandbox))
        assert {(Outcome.OK, None)} == {(each.outcome, each.reason) for each in proven}
        assert 2 == len(sandbox.shared) == len(sandbox.running)
    assert all("a path that is not there" in each.refused for each in proven)


def test_a_service_that_is_not_here_is_a_row_with_what_would_help(
    tollbar: Tollbar, tmp_path: Path, env: dict[str, str]
) -> None:
    shutil.copytree(TOY, tmp_path / "mine")
    ledger = tmp_path / "mine" / "servers" / "ledger" / "server.toml"
    ledger.write_text(ledger.read_text().replace('"toy-server"', '"no-such-server"'))
    own = {**env, "TOLLBAR_PATH": str(tmp_path / "mine")}
    (tmp_path / "toy.toml").write_text(SERVED)
    done = tollbar("run", "toy.toml", "--json", "--no-report", env=own)
    # A run without any measurement has no answer.
    assert 1 == done.returncode, done.stderr
    reason = "not available here: Ledger is not installed; to install it: it comes with the tests"
    costs = rows(json.loads(done.stdout), "server-cpu")
    assert {("unsupported", reason)} == {(row["outcome"], row["reason"]) for row in costs.values()}
    listed = {row["server"]: row for row in json.loads(tollbar("list", "servers", "--json", env=own).stdout)}
    assert ("toy", "not available here") == (listed["toy"]["server"], listed["ledger"]["version"])
    assert "it comes with the tests" == listed["ledger"]["to have it"]


ATTEMPTS = 6


def test_a_runner_in_another_language_is_a_provider(tollbar: Tollbar, tmp_path: Path, env: dict[str, str]) -> None:
    # On a busy machine its answers may come late.
    for _ in range(ATTEMPTS):
        kept = tollbar("verify", "--runner", TOY / "toy-runner", env=env)
        if kept.returncode == 0:
            break
    assert 0 == kept.returncode, kept.stdout + kept.stderr
    (tmp_path / "alone.toml").write_text(ALONE)
    done = tollbar("run", "alone.toml", "--json", "--no-report", env=env)
    assert 0 == done.returncode, done.stderr
    document = json.loads(done.stdout)
    assert {"none", "once", "often"} == {choice for choice, *_ in rows(document, "cpu")}
    assert {3.0} == {round(row["value"], 9) for row in rows(document, "wire").values()}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_module", "ModuleNotFoundError"),
        ("x = 1", "must define one subclass of `tollbar.lab.workloads.Workload`, not 0"),
        ("class ToyWorkload: pass", "must define one subclass of `tollbar.lab.workloads.Workload`, not 0"),
        ("syntax error", "SyntaxError"),
    ],
)
def test_a_workload_that_cannot_be_used_is_one_line(
    here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    shutil.copytree(TOY / "families", tmp_path / "families")
    (tmp_path / "families" / "toy" / "workload.py").write_text(text)
    monkeypatch.setenv("TOLLBAR_PATH", str(tmp_path))
    (one,) = plan.make([study.read("toy", ALONE, where="toy.toml")], seed=1).studies
    with pytest.raises(TollbarError) as caught:
        workloads.of(one.cells[0])
    assert str(tmp_path / "families" / "toy" / "workload.py") == caught.value.where
    assert words in caught.value.what
    assert "\n" not in caught.value.what


STAGES = ("plan", "measure", "results", "judge", "workloads", "servers")


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_knows_a_family(stage: str) -> None:
    # In a load task, `tls` is the client's protocol.
    names = "|".join(re.escape(name) for name in families.families() if (stage, name) != ("workloads", "tls"))
    for path in (SOURCE / stage).glob("*.py"):
        text = path.read_text("utf-8")
        assert [] == re.findall(rf"""["'](?:{names})["']""", text), path
        assert [] == re.findall(r"tollbar\.tls|import .*\btls\b|workloads\.by_family", text), path


def test_what_a_family_adds_has_no_line_elsewhere() -> None:
    assert [] == [path for path in SOURCE.rglob("*.py") if re.search(r"\btoy\b", path.read_text("utf-8"))]
