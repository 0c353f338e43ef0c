"""If servers are required, a test without one fails instead of being skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import test_negotiate
import test_sign_in
from conftest import here
from tollbar.catalog import servers
from tollbar.core.records import Outcome, Proven
from tollbar.lab import measure
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.study.plan.cells import Cell

PROGRAMS = sorted(
    name
    for name, server in {**servers.all_servers(), **servers.services()}.items()
    if any(one.programs for one in server.components)
)


def of_sign_in(choice: str, store: str) -> Cell:
    """Return one of Apache's cells that test_sign_in proves."""
    found = test_sign_in.cells(test_sign_in.EVERY_WAY, ["httpd"])
    return next(cell for cell in found if (cell.choice.name, cell.coordinates.get("store")) == (choice, store))


# Libraries that servers and clients load, and the tests that need them.
LIBRARIES: dict[str, Callable[[Sandbox], None]] = {
    "mod_auth_gssapi": lambda at: test_negotiate.test_who_is_right_signs_in_and_who_is_wrong_does_not(
        at, "kerberos", {}
    ),
    "gss-ntlmssp": lambda at: test_negotiate.test_who_is_right_signs_in_and_who_is_wrong_does_not(at, "ntlm", {}),
    "libnss-wrapper": lambda at: test_sign_in.holds(at, of_sign_in("basic", "ldaps"), can=True),
    "libaprutil1-dbd-pgsql": lambda at: test_sign_in.holds(at, of_sign_in("form", "sql"), can=True),
}


@pytest.fixture
def nothing_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the programs of all servers."""
    servers.find.cache_clear()
    monkeypatch.setattr(servers, "_folders", lambda component: iter([str(tmp_path)]))
    for name in ("CI", "TOLLBAR_REQUIRE_SERVERS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def found_again() -> Iterator[None]:
    """Let the next test search again for servers that were hidden."""
    yield
    servers.find.cache_clear()


@pytest.mark.usefixtures("nothing_found")
@pytest.mark.parametrize("required", ["CI", "TOLLBAR_REQUIRE_SERVERS"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_missing_server_is_a_failure(name: str, required: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pytest.skip.Exception, match="is not installed; to install it: "):
        here(name)
    monkeypatch.setenv(required, "1")
    with pytest.raises(pytest.fail.Exception, match="is not installed; to install it: "):
        here(name)


def test_a_port_that_may_not_be_had_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory's ports are below 1024, where an ordinary user may not listen."""
    monkeypatch.setattr("conftest.may_listen", lambda port: False)
    monkeypatch.setenv("TOLLBAR_REQUIRE_SERVERS", "1")
    with pytest.raises(pytest.fail.Exception, match="on which this user may not listen"):
        here("samba")


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_missing_library_is_a_failure(library: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The reason in a proof is no cause to skip."""
    reason = f"not available here: {library} is not installed"
    missing = Proven("", "", Outcome.UNSUPPORTED, reason, 0, (), ())
    monkeypatch.setattr(measure, "prove", lambda cells, *arguments, **more: [missing for _ in cells])
    with Sandbox(tmp_path / "logs") as at, pytest.raises(AssertionError):
        LIBRARIES[library](at)
