"""A server's file: its keys, errors of one line, and the search for its programs."""

from __future__ import annotations

from typing import Any

import pytest

from component_lab import FakeServer
from tollbar.catalog import servers
from tollbar.core.errors import TollbarError
from tollbar.lab.servers.configuration import text_of

WRONG = [
    ({"redy": 1}, "`component.0.redy`: no such key", "did you mean `ready`"),
    ({"ready": {"by": "htpp"}}, "`component.0.ready.by`: no such value: `htpp`", "did you mean `http`"),
    ({"ready": {"by": "tcp", "limt": "1 s"}}, "`component.0.ready.limt`: no such key", "did you mean `limit`?"),
    (
        {"ready": {"by": "tcp", "limit": 5}},
        "`component.0.ready.limit`: `5` needs a unit, for example `5 s` or `5 ms`",
        None,
    ),
    ({"ready": {"by": "command"}}, "`component.0.ready`: `command` and `by = .command.` must be", None),
    (
        {"ready": {"by": "tcp", "command": ["true"]}},
        "`component.0.ready`: `command` and `by = .command.` must be",
        None,
    ),
    ({"lifetime": "day"}, "`component.0.lifetime`: no such value: `day`", "known: run, trial"),
    ({"prepare": {"comands": []}}, "`component.0.prepare.comands`: no such key", "did you mean `commands`?"),
    ({"prepare": {"settings": []}}, "`component.0.prepare.commands` is missing", None),
    ({"shared-by": ["users"]}, "`component.0`: `shared-by`: a component that starts for each trial", None),
    (
        {"lifetime": "run", "prepare": {"commands": [["true"]], "settings": ["users"]}},
        "must also be in `shared-by`",
        None,
    ),
    ({"port": 389}, "`port`: .* needs `address = .own.`", None),
    ({"port": 0, "address": "own"}, "`component.0.port`: ", None),
    ({"grace": "11 s"}, "`component.0.grace`: ", None),
    ({"refusals": ["no group"]}, "`component.0.refusals.0`: the pattern needs a group", None),
    ({"refusals": ["(open"]}, "`component.0.refusals.0`: not a regular expression", None),
    ({"complaints": ["no group"]}, "`component.0.complaints.0`: the pattern needs a group", None),
    ({"lifetime": "run", "complaints": ["(.*)"]}, "`component.0`: `complaints`: the log of a shared component", None),
    ({"ports": ["web"]}, "`component`: two components or ports have the name `web`; each name must be unique", None),
    (
        {"version": {"arguments": [], "pattern": "(.)", "tool": "ask"}},
        "`component.0`: `version.tool`: `ask` must be one of its `tools`",
        None,
    ),
    ({"run-as": "root"}, "`component.0.run-as`: no such key", None),
    ({"capabilities": ["chown"]}, "`component.0.capabilities`: no such key", None),
]


@pytest.mark.parametrize(("keys", "words", "hint"), WRONG)
def test_a_wrong_file_is_one_line(fake: FakeServer, keys: dict[str, Any], words: str, hint: str | None) -> None:
    fake.write(fake.component() | keys)
    with pytest.raises(TollbarError, match=words) as caught:
        servers.read(fake.folder)
    assert str(fake.folder / "server.toml") == caught.value.where
    assert (hint or "") in (caught.value.hint or "")
    assert "\n" not in str(caught.value)


def test_components_of_the_run_come_first(fake: FakeServer) -> None:
    fake.write(fake.component(), fake.component(name="store", lifetime="run"))
    with pytest.raises(TollbarError, match="components of the run must be before"):
        servers.read(fake.folder)


def test_a_service_is_no_server_of_a_study(
    fake: FakeServer, service: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.write(fake.component())
    service.write(service.component(tools={"initdb": ["no-such-program"]}))
    (fake.folder.parent / "servers").symlink_to(fake.folder.parent)
    monkeypatch.setenv("TOLLBAR_PATH", str(fake.folder.parent))
    assert ("fake" in servers.all_servers(), "fake" in servers.services()) == (True, False)
    assert ("fake-service" in servers.all_servers(), "fake-service" in servers.services()) == (False, True)
    with pytest.raises(
        servers.NotStarted, match=r"^unsupported: not available here: initdb is not installed; to install it"
    ):
        servers.service("fake-service")


def test_a_service_performs_nothing(service: FakeServer) -> None:
    service.write(service.component())
    file = service.folder / "server.toml"
    file.write_text(f'performs = ["spin"]\n{file.read_text()}')
    with pytest.raises(TollbarError, match="`performs` needs `runs-on`"):
        servers.read(service.folder)


def test_a_tool_may_say_the_version(fake: FakeServer) -> None:
    version = {"tool": "shell", "arguments": ["-c", "echo 3.4"], "pattern": "(.*)"}
    assert "3.4" == fake.of(fake.component(tools={"shell": ["sh"]}, version=version)).version


def test_a_missing_tool_is_named_with_what_would_help(fake: FakeServer) -> None:
    fake.write(fake.component(tools={"initdb": ["no-such-program"], "shell": ["sh"]}))
    missing = servers.find(servers.read(fake.folder))
    assert servers.Unavailable("fake", "initdb is not installed; to install it: wishing") == missing


def test_the_newest_version_is_found(fake: FakeServer) -> None:
    """A folder with `*` has many versions; 15 is newer than 9."""
    for version in ("9", "15", "8.4"):
        folder = fake.folder / version
        folder.mkdir()
        (folder / "fake-server").symlink_to(fake.program)
    found = fake.of(fake.component(program=["fake-server"], folders=[str(fake.folder / "*")]))
    assert fake.folder / "15" / "fake-server" == found.programs["web"]


def test_a_preparation_depends_on_what_its_files_include() -> None:
    """A line included from another server's file causes a new preparation when it changes."""
    text = text_of(servers.services()["postgresql-accounts"].folder, "one-database.sql")
    assert "include" in text
    assert "DROP DATABASE template0;" in text
