"""The driver: faulty servers of every kind become rows with their reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from server_lab import PLAINTEXT
from tollbar.catalog import servers
from tollbar.catalog.libraries import Provider
from tollbar.core.records import Outcome
from tollbar.lab.servers import driver
from tollbar.lab.servers.driver import NotStarted, Request
from tollbar.lab.servers.sandbox import Sandbox


@pytest.fixture
def fake_server(tmp_path: Path) -> Iterator[type[FakeServer]]:
    """Yield a maker of servers from shell scripts."""
    FakeServer.folder = tmp_path
    yield FakeServer
    servers.find.cache_clear()


class FakeServer:
    """Server made of a shell script."""

    folder: Path

    @classmethod
    def of(cls, script: str, by: str = "http", limit: str = "20 s") -> servers.Installed:
        """Return the server as installed."""
        folder = cls.folder / "fake"
        folder.mkdir(exist_ok=True)
        program = folder / "server"
        program.write_text(f"#!/bin/sh\nif [ $1 = -v ]; then echo fake/1.2; exit; fi\n{script}\n")
        program.chmod(0o755)
        (folder / "server.toml").write_text(cls.toml(folder, by, limit))
        found = servers.find(servers.read(folder))
        assert isinstance(found, servers.Installed)
        return found

    @classmethod
    def toml(cls, folder: Path, by: str, limit: str) -> str:
        """Return a valid description of the server."""
        return f"""
title = "Fake"
install = "wishing"
runs-on = ["libcrypto"]

[[component]]
name = "web"
lifetime = "trial"
program = ["server"]
folders = ["{folder}"]
version = {{ arguments = ["-v"], pattern = 'fake/(\\S+)' }}
start = ["{{{{ port }}}}"]
ready = {{ by = "{by}", limit = "{limit}" }}
grace = "0.3 s"
refusals = ['refused: (.*)']
"""


def test_a_server_that_is_never_ready_times_out(at: Sandbox, system: Provider, fake_server: type[FakeServer]) -> None:
    found = fake_server.of("trap '' TERM; setsid sleep 1234 & sleep 1234", limit="0.3 s")
    with pytest.raises(NotStarted, match="not ready within") as caught:
        driver.start(at, Request(found, system, PLAINTEXT))
    assert Outcome.TIMED_OUT == caught.value.outcome
    assert [] == at.running


DEATHS = {
    "echo 'out of luck' >&2; exit 3": (Outcome.FAILED, "server ended with status 3: out of luck"),
    "kill -SEGV $$": (Outcome.FAILED, "server was ended by SIGSEGV"),
    "exit 0": (Outcome.FAILED, "server ended with status 0"),
    "echo 'refused: this'; echo 'refused: that' >&2; exit 1": (Outcome.UNSUPPORTED, "server refuses: this; that"),
}


@pytest.mark.parametrize("script", DEATHS)
def test_a_server_that_dies_at_its_start_is_a_row(
    at: Sandbox, system: Provider, fake_server: type[FakeServer], script: str
) -> None:
    outcome, words = DEATHS[script]
    with pytest.raises(NotStarted) as caught:
        driver.start(at, Request(fake_server.of(script), system, PLAINTEXT))
    assert (outcome, words) == (caught.value.outcome, caught.value.reason)


def test_rubbish_instead_of_a_line_is_a_failure(at: Sandbox, system: Provider, fake_server: type[FakeServer]) -> None:
    found = fake_server.of("echo rubbish; exit 1", "line")
    with pytest.raises(NotStarted, match="printed 'rubbish' instead of the address") as caught:
        driver.start(at, Request(found, system, PLAINTEXT))
    assert Outcome.FAILED == caught.value.outcome


def test_a_server_that_is_not_installed_says_what_would_help(fake_server: type[FakeServer]) -> None:
    found = fake_server.of("exit 1")
    (fake_server.folder / "fake" / "server").unlink()
    assert servers.Unavailable("fake", "Fake is not installed; to install it: wishing") == servers.find(
        servers.read(found.server.folder)
    )


def test_a_server_without_a_version_is_not_here(fake_server: type[FakeServer]) -> None:
    found = fake_server.of("exit 1")
    (fake_server.folder / "fake" / "server").write_text("#!/bin/sh\nexit 1\n")
    missing = servers.find(servers.read(found.server.folder))
    assert isinstance(missing, servers.Unavailable)
    assert "does not print its version" in missing.reason
