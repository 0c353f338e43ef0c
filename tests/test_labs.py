"""Labs with each server, in processes of their own: an ordinary user's, a killed and an interrupted one."""

from __future__ import annotations

import functools
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import server_lab
from conftest import here, lacking
from patience import PATIENCE_S
from server_lab import CANNOT_READ
from tollbar.catalog import servers

# Few by default; a lab may be killed at any moment, so `TOLLBAR_KILLS` sets more.
KILLS = int(os.environ.get("TOLLBAR_KILLS", "3"))
ALL = {**servers.all_servers(), **servers.services()}
# Services that start for each trial behind a server are left out: they need a directory (`test_negotiate`).
NAMES = sorted(name for name, server in ALL.items() if not server.is_service or server.frontend.lifetime == "run")
# Servers with a port that not every ordinary user may bind.
PRIVILEGED = {name for name in NAMES if any(one.port and one.port < 1024 for one in ALL[name].components)}
# Prepared servers take longer to start.
PREPARED = {name for name in NAMES if any(one.prepare for one in ALL[name].components)}
# The lab ended by the signal, not by itself.
NOTHING = {"ended": True, "directory": False, "children": [], "listening": []}


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use a cache for these tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def lab(*words: object) -> subprocess.CompletedProcess[str]:
    """Return the result of a lab in a process of its own."""
    command = [sys.executable, server_lab.__file__, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)


def left_after(how: str, name: str, after_s: float, served: int = 0) -> dict[str, object]:
    """Return the remains of a lab that got this signal some seconds after this number of its servers were up."""
    told = lab("end", name, served, after_s, how)
    assert told.stdout, told.stderr
    said = json.loads(told.stdout)
    assert served <= said["trials"], f"it was ended before {served} servers were up: {told.stderr}"
    left: dict[str, object] = said["left"]
    assert left["ended"], told.stderr
    return left


@functools.cache
def prepare(name: str) -> None:
    """Put the server's prepared state into the cache."""
    assert 0 == lab("trials", name).returncode


@pytest.mark.share(1)
@pytest.mark.parametrize("moment", range(KILLS))
@pytest.mark.parametrize("name", NAMES[1:] + NAMES[:1])
def test_nothing_survives_a_killed_lab(name: str, moment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checked within seconds of `kill -9`: processes, listeners and the lab's directory."""
    here(name)
    if moment % 2:
        # Struck when a server is up; on a busy machine that may be just after a start, or long before the next one.
        prepare(name)
    else:
        # Struck during the preparation, if there is one.
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    after_s = random.Random(f"{name} {moment}").uniform(0.0, 1.5 if name in PREPARED else 0.4)
    assert NOTHING == left_after("SIGKILL", name, after_s, served=moment % 2)


@pytest.mark.share(1)
@pytest.mark.parametrize("served", [0, 1], ids=["as it starts", "with a server up"])
@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("name", NAMES[::-1])
def test_nothing_survives_an_interrupted_lab(name: str, how: str, served: int) -> None:
    here(name)
    if served:
        prepare(name)
    assert NOTHING == left_after(how, name, 0.3, served)


@pytest.mark.share(1)
@pytest.mark.parametrize("name", sorted({*NAMES} - PRIVILEGED))
def test_an_ordinary_user_can_start_it(name: str) -> None:
    here(name)
    if os.geteuid() != 0:
        pytest.skip("this is an ordinary user, and all tests have shown it")
    done = lab("user", name)
    if done.returncode == CANNOT_READ:
        lacking("an ordinary user cannot read the engine: put this checkout where others can pass")
    assert 2 == done.stdout.splitlines().count("done"), done.stderr
