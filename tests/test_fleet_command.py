"""The fleet command: errors of cluster and fleet are one line, and a simulated fleet is labelled."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from bench import fleet as made_up

import forked
from conftest import command, ray_is_there
from fleet_lab import begun, spin
from tollbar import cluster
from tollbar.cli.fleet import noted
from tollbar.core.errors import TollbarError
from tollbar.decide import compare
from tollbar.decide.compare.words import gather_page
from tollbar.report import html

THEIRS = """
question = "What does my server cost?"
family   = "tls"
choices  = ["plaintext"]
url      = "http://127.0.0.1:1/"
vary     = { op = ["request"] }
load     = {}
"""
BAD = {
    ("spin", "--cluster", "rey"): "no such engine: `rey`",
    ("spin", "--cluster", "ray:nowhere"): "must be the address of a cluster",
    ("spin", "--cluster", "ray:127.0.0.1:9"): "no cluster answers at this address",
    ("spin", "--cluster", "ray:a..b:6379"): "no cluster answers at this address",
    ("theirs", "--cluster", "ray"): "`url` cannot be combined with `--cluster`",
    ("spin", "--cluster", "ray", "--simulate", "0"): "from 1 to 16 nodes",
    ("spin", "--cluster", "ray:10.1.2.3:6379", "--simulate", "2"): "cannot be combined with `--simulate`",
    ("spin", "--cluster", "ray", "--nodes", "web"): "must be a label with its value",
    ("no-such-study", "--cluster", "ray"): "no such study",
    (
        "spin",
        "--cluster",
        "ray",
        "--roles",
        "web=10.1.2.3",
    ): "`--roles` cannot be combined with `--cluster`",
    ("--url", "http://localhost:1/", "--cluster", "ray"): "cannot be combined with `--cluster`",
    ("--resume", "runs/none", "--cluster", "ray"): "not a fleet",
}


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "nowhere"])
def test_a_cluster_of_the_environment_that_is_not_there_is_one_line(tmp_path: Path, address: str) -> None:
    """Ray would wait for it for ever."""
    ray_is_there()
    (tmp_path / "spin.toml").write_text(spin(1))
    words, environment = [command(), "run", "spin.toml", "--cluster", "ray"], {**os.environ, "RAY_ADDRESS": address}
    done = forked.run(words, tmp_path, environment)
    assert 2 == done.returncode, done.stderr
    assert f"RAY_ADDRESS={address}" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not [*tmp_path.glob("runs/*")]


def test_a_cluster_that_ended_long_ago_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray keeps its address in a file, and would wait for it for ever."""
    ray_is_there()
    from tollbar.cluster import on_ray

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(on_ray.services, "canonicalize_bootstrap_address_or_die", lambda _: "127.0.0.1:9")
    monkeypatch.setattr(on_ray.ray, "init", lambda *_, **__: pytest.fail("is not asked"))
    with pytest.raises(TollbarError) as error:
        on_ray.Cluster(None)
    assert "127.0.0.1:9" in str(error.value.where)


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_input_is_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "spin.toml").write_text(spin(1))
    (tmp_path / "theirs.toml").write_text(THEIRS)
    typed = [f"{word}.toml" if word in {"spin", "theirs"} else word for word in words]
    done = forked.run([command(), "run", *typed], tmp_path)
    assert 2 == done.returncode, done.stderr
    assert BAD[words] in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert "" == done.stdout
    assert not [*tmp_path.glob("runs/*")]


def test_a_fleet_that_is_gone_on_with_is_kept_where_there_is_no_cluster(place: Path) -> None:
    fleets = begun(place)
    fleets.write()
    words = [command(), "run", "--resume", str(fleets.directory), "--cluster", "ray:127.0.0.1:9"]
    assert 2 == forked.run(words, place).returncode
    assert (fleets.directory / cluster.FILE).exists()


@pytest.mark.parametrize(
    "words", [("--precision", "1%"), ("--seed", "1"), ("--library", "libcrypto.so.3"), ("digests",)]
)
def test_what_a_fleet_was_told_is_not_told_again(place: Path, words: tuple[str, ...]) -> None:
    """The nodes go on with their first options, so new ones would be ignored silently."""
    fleets = begun(place)
    fleets.write()
    typed = [command(), "run", *words, "--resume", str(fleets.directory), "--cluster", "ray:127.0.0.1:9"]
    done = forked.run(typed, place)
    assert (2, True) == (done.returncode, "takes studies and options from the fleet" in done.stderr)


def test_the_page_of_a_simulated_fleet_says_so(tmp_path: Path) -> None:
    run = made_up.run_of(tmp_path, made_up.fingerprint("A"), lambda at: 100.0 + 50.0 * (at["choice"] == "sha-512"))
    page = gather_page(compare.gather(compare.read([run])), "tollbar gather", tmp_path / "page.html")
    html.write_page(noted(page, cluster.SIMULATED), tmp_path / "page.html")
    assert 1 == (tmp_path / "page.html").read_text().count("all nodes are on this machine")


@pytest.mark.parametrize("text", ["", "{}", "[]", json.dumps({"schema": 9})])
def test_a_fleet_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / cluster.FILE).write_text(text)
    with pytest.raises(TollbarError):
        cluster.take_up(tmp_path)
