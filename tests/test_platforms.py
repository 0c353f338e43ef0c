"""Platforms: a runner is built once, whole or not at all; an unavailable one is a row with its reason."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.ground import mentioning

from conftest import Tollbar
from patience import PATIENCE_S
from tollbar import study
from tollbar.catalog import libraries, runners
from tollbar.catalog.libraries import Broken, Provider
from tollbar.catalog.runners import NotBuilt, Platform
from tollbar.core.errors import TollbarError
from tollbar.core.records import Outcome
from tollbar.lab import measure
from tollbar.study import plan

PROGRAM = Path(__file__).parent / "toy" / "hash-runner"
# The toy platform, with `sh` as its compiler.
TOML = """
title    = "Toy"
packages = ["one", "two"]
programs = ["sh"]
install  = "apt-get install dash"
versions = ["cat", "{versions}"]
build    = [["sh", "-c", "echo built >>{log}; {step}"], ["cp", "{{folder}}/program", "{{build}}/program"]]
ready    = "0.1 s"
command  = ["python3", "{{build}}/program"]
"""
HASHES = """
question  = "What does it cost?"
family    = "digest"
choices   = ["sha-256", "sha-1"]
providers = [{providers}]
"""

BUILD_TOY = 'from tollbar.catalog import runners; runners.command_of(runners.all_platforms()["toy"])'


class Ground:
    """Folder with the toy platform, which can be changed between builds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "runners" / "toy"
        self.folder.mkdir(parents=True)
        self.log, self.versions = folder / "log", folder / "versions"
        self.log.touch()
        self.versions.write_text("toy 1.0")
        shutil.copy(PROGRAM, self.folder / "program")
        self.write()

    def write(self, *, step: str = ":", old: str = "", new: str = "") -> Platform:
        """Write its description with a build step, or with one text replaced, and return the platform."""
        text = TOML.format(log=self.log, versions=self.versions, step=step)
        assert old in text
        (self.folder / "runner.toml").write_text(text.replace(old, new) if old else text)
        runners.read.cache_clear()
        return runners.all_platforms()["toy"]

    @property
    def builds(self) -> int:
        """Return the number of builds that were begun."""
        return len(self.log.read_text().splitlines())


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """Yield the toy platform on the search path, with an empty cache and no opened providers."""
    libraries.open_provider.cache_clear()
    runners.read.cache_clear()
    monkeypatch.setenv("TOLLBAR_PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield Ground(tmp_path)
    libraries.open_provider.cache_clear()
    runners.read.cache_clear()


def test_a_runner_is_built_once(ground: Ground) -> None:
    platform = ground.write()
    assert not runners.is_built(platform)
    command = runners.command_of(platform)
    assert runners.is_built(platform)
    assert command == runners.command_of(platform)
    assert 1 == ground.builds
    ground.versions.write_text("toy 2.0")
    # In another command.
    runners._said.cache_clear()
    assert command != runners.command_of(platform)
    (ground.folder / "program").write_text(PROGRAM.read_text() + "\n")
    runners.command_of(platform)
    assert 3 == ground.builds


def test_versions_are_asked_once(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    run = subprocess.run

    def noted(words: object, **more: Any) -> subprocess.CompletedProcess[bytes]:
        asked.append(words)
        return run(words, **more)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(subprocess, "run", noted)
    platform = ground.write()
    for _ in range(2):
        runners.command_of(platform)
    assert [platform.versions] == asked


def test_a_build_that_fails_says_why_and_is_tried_again(ground: Ground) -> None:
    with pytest.raises(
        NotBuilt, match=r"the runner of Toy cannot be built: sh ended with status 3: no such thing"
    ) as it:
        runners.command_of(ground.write(step="echo no such thing; exit 3"))
    assert Outcome.FAILED == it.value.outcome
    log = Path(it.value.reason.rpartition("(all of it: ")[2].removesuffix(")"))
    assert "no such thing" in log.read_text()
    assert runners.command_of(ground.write())


def test_a_build_that_takes_too_long_is_ended(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "BUILD_LIMIT_S", 0.3)
    marker = f"sleep-{os.getpid()}"
    with pytest.raises(NotBuilt, match="longer than") as it:
        runners.command_of(ground.write(step=f"sh -c 'sleep 60' {marker}; :"))
    assert Outcome.TIMED_OUT == it.value.outcome
    assert set() == mentioning(marker)


def test_a_build_ends_with_the_lab_and_is_made_anew(ground: Ground) -> None:
    marker = f"sleep-{os.getpid()}"
    platform = ground.write(step=f"touch half; sh -c 'sleep 60' {marker}; :")
    words = [sys.executable, "-c", BUILD_TOY]
    lab = subprocess.Popen(words)
    deadline = time.monotonic() + PATIENCE_S
    while not mentioning(marker):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    lab.send_signal(signal.SIGKILL)
    lab.wait()
    while mentioning(marker):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not runners.is_built(platform)
    (program,) = (Path(word) for word in runners.command_of(ground.write()) if word.endswith("program"))
    assert not (program.parent / "half").exists()


def test_two_that_want_the_same_build_make_one(ground: Ground) -> None:
    ground.write(step="sleep 0.3")
    words = [sys.executable, "-c", BUILD_TOY]
    labs = [subprocess.Popen(words) for _ in range(2)]
    assert [0, 0] == [lab.wait(PATIENCE_S) for lab in labs]
    assert 1 == ground.builds


@pytest.mark.parametrize("name", [*runners.all_platforms(), "toy"])
def test_a_platform_that_is_missing_keeps_its_rows(ground: Ground, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    platform = runners.all_platforms()[name]
    monkeypatch.setenv("PATH", "/nonexistent")
    named = f'"libcrypto", "{name}"'
    (one,) = plan.make([study.read("hashes", HASHES.format(providers=named), where="test")], seed=1).studies
    assert 4 == len(one.cells)
    proofs = {cell.provider.spec: proof for cell, proof in zip(one.cells, measure.prove(one.cells, 1), strict=True)}
    assert Outcome.UNSUPPORTED == proofs[name].outcome
    reason = proofs[name].reason or ""
    assert reason.startswith(f"not available here: {platform.title} needs ")
    assert reason.endswith(f"to install it: {platform.install}")
    assert Outcome.OK == proofs["libcrypto"].outcome


def test_a_pattern_means_the_platforms_that_work(ground: Ground) -> None:
    ground.write(old='["sh"]', new='["no-such-compiler"]')
    providers, broken = libraries.look_up(["libcrypto", "toy:*"])
    assert ["libcrypto"] == [one.spec for one in providers]
    assert {"toy", "toy:two"} == {one.spec for one in broken}
    assert all("needs no-such-compiler" in one.reason for one in broken)
    with pytest.raises(TollbarError, match="needs no-such-compiler"):
        libraries.look_up(["toy:*"])


def test_packages_are_providers(ground: Ground) -> None:
    ground.write()
    assert ["toy", "toy:two"] == [one.spec for one in libraries.resolve(["toy:*"])]
    assert ["toy"] == [one.spec for one in libraries.resolve(["toy", "toy:one"])]
    (two,) = libraries.resolve(["toy:two"])
    assert {"kind": "toy", "package": "two"} == two.in_task
    with pytest.raises(TollbarError, match="package of toy") as it:
        libraries.resolve(["toy:twoo"])
    assert "two" in (it.value.hint or "")


def test_a_library_that_a_build_brings_is_a_provider(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    (system,) = libraries.resolve(["libcrypto"])
    assert system.path
    step = f"cp {system.path} {{build}}/libcrypto.so"
    ground.write(step=step, old="command", new='libcrypto = "{build}/libcrypto.so"\ncommand')
    assert "libcrypto:toy" not in [one.spec for one in libraries.resolve(["libcrypto:*"])]
    (one,) = libraries.resolve(["libcrypto:toy"])
    assert one.path
    assert one.path.endswith("/libcrypto.so")
    assert "libcrypto:toy" in [one.spec for one in libraries.resolve(["libcrypto:*"])]
    libraries.open_provider.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(ground.log.parent / "another"))
    ground.write(old="command", new='libcrypto = "{build}/libcrypto.so"\ncommand')
    (one,) = libraries.resolve(["libcrypto:toy"])
    assert one.fault
    assert "no libcrypto of its own" in one.fault[1]


def test_listing_builds_nothing(ground: Ground) -> None:
    ground.write()
    found = {one.spec: one for one in libraries.everything()}
    one = found["toy"]
    assert isinstance(one, Provider)
    assert (Outcome.UNSUPPORTED, libraries.NOT_BUILT_YET) == one.fault
    assert 0 == ground.builds
    assert not any(isinstance(one, Broken) for spec, one in found.items() if spec.startswith("toy"))


def test_a_study_is_measured_on_a_platform(ground: Ground, tollbar: Tollbar, tmp_path: Path) -> None:
    ground.write()
    path = tmp_path / "hashes.toml"
    path.write_text(HASHES.format(providers='"libcrypto", "toy"') + "[measure]\nblocks = 1\nrounds = 3\n")
    done = tollbar("run", str(path), "--json")
    assert "building the runner of Toy, once" in done.stderr
    (judged,) = json.loads(done.stdout)["studies"]
    assert {"ok"} == {row["outcome"] for row in judged["results"]}
    assert any(row["provider"].startswith("hashlib ") for row in judged["results"])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("packages", "package", "`package`: no such key"),
        ('["one", "two"]', "[]", "`packages`"),
        ("install  =", "# install =", "`install` is missing"),
    ],
)
def test_a_bad_description_is_refused_in_words(ground: Ground, old: str, new: str, words: str) -> None:
    with pytest.raises(TollbarError, match=words) as it:
        ground.write(old=old, new=new)
    assert str(ground.folder / "runner.toml") == it.value.where
