"""A bed's file: what it may say, what is wrong in one line, and where its programs are found."""

from __future__ import annotations

from typing import Any

import pytest

from component_lab import FakeBed
from tollbar import beds
from tollbar.beds.configuration import text_of
from tollbar.errors import TollbarError

WRONG = [
    ({"redy": 1}, "`component.0.redy`: no such key", "did you mean `ready`"),
    ({"ready": {"by": "htpp"}}, "`component.0.ready.by`: no such value: `htpp`", "did you mean `http`"),
    ({"ready": {"by": "tcp", "limt": "1 s"}}, "`component.0.ready.limt`: no such key", "did you mean `limit`?"),
    ({"ready": {"by": "tcp", "limit": 5}}, "`component.0.ready.limit`: say the unit, `5 s` or `5 ms`", None),
    ({"ready": {"by": "command"}}, "`component.0.ready`: `command` is for", None),
    ({"ready": {"by": "tcp", "command": ["true"]}}, "`component.0.ready`: `command` is for", None),
    ({"lifetime": "day"}, "`component.0.lifetime`: no such value: `day`", "known: run, trial"),
    ({"prepare": {"comands": []}}, "`component.0.prepare.comands`: no such key", "did you mean `commands`?"),
    ({"prepare": {"settings": []}}, "`component.0.prepare.commands` is missing", None),
    ({"shared-by": ["users"]}, "`component.0`: `shared-by`: a component that is started for each trial", None),
    ({"lifetime": "run", "prepare": {"commands": [["true"]], "settings": ["users"]}}, "has to be in `shared-by`", None),
    ({"port": 389}, '`port`: .* takes `address = "own"`', None),
    ({"port": 0, "address": "own"}, "`component.0.port`: ", None),
    ({"grace": "11 s"}, "`component.0.grace`: ", None),
    ({"refusals": ["no group"]}, "`component.0.refusals.0`: the pattern has no group", None),
    ({"refusals": ["(open"]}, "`component.0.refusals.0`: not a regular expression", None),
    ({"complaints": ["no group"]}, "`component.0.complaints.0`: the pattern has no group", None),
    ({"lifetime": "run", "complaints": ["(.*)"]}, "`component.0`: `complaints`: a log that other trials write", None),
    ({"ports": ["web"]}, "`component`: two of them, or of their ports, have the name `web`", None),
    (
        {"version": {"arguments": [], "pattern": "(.)", "tool": "ask"}},
        "`component.0`: `version.tool`: `ask` is none of its `tools`",
        None,
    ),
    ({"run-as": "root"}, "`component.0.run-as`: no such key", None),
    ({"capabilities": ["chown"]}, "`component.0.capabilities`: no such key", None),
]


@pytest.mark.parametrize(("keys", "words", "hint"), WRONG)
def test_a_wrong_file_is_one_line(fake: FakeBed, keys: dict[str, Any], words: str, hint: str | None) -> None:
    """It names the file, the key, and the nearest right key or value."""
    fake.write(fake.component() | keys)
    with pytest.raises(TollbarError, match=words) as caught:
        beds.read(fake.folder)
    assert str(fake.folder / "bed.toml") == caught.value.where
    assert (hint or "") in (caught.value.hint or "")
    assert "\n" not in str(caught.value)


def test_components_of_the_run_come_first(fake: FakeBed) -> None:
    """One that outlives the trial cannot need one that does not."""
    fake.write(fake.component(), fake.component(name="store", lifetime="run"))
    with pytest.raises(TollbarError, match="those of the run come first"):
        beds.read(fake.folder)


def test_a_service_is_no_bed_of_a_study(fake: FakeBed, service: FakeBed, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a folder like the others, but for `runs-on`; what is not here says what would help."""
    fake.write(fake.component())
    service.write(service.component(tools={"initdb": ["no-such-program"]}))
    (fake.folder.parent / "beds").symlink_to(fake.folder.parent)
    monkeypatch.setenv("TOLLBAR_PATH", str(fake.folder.parent))
    assert ("fake" in beds.all_beds(), "fake" in beds.services()) == (True, False)
    assert ("fake-service" in beds.all_beds(), "fake-service" in beds.services()) == (False, True)
    with pytest.raises(beds.NotStarted, match=r"^unsupported: not available here: initdb is not installed; to have it"):
        beds.service("fake-service")


def test_a_service_performs_nothing(service: FakeBed) -> None:
    """It stands behind the server that is asked."""
    service.write(service.component())
    file = service.folder / "bed.toml"
    file.write_text(f'performs = ["spin"]\n{file.read_text()}')
    with pytest.raises(TollbarError, match="`performs`: a service"):
        beds.read(service.folder)


def test_a_tool_may_say_the_version(fake: FakeBed) -> None:
    """Where the program cannot."""
    version = {"tool": "shell", "arguments": ["-c", "echo 3.4"], "pattern": "(.*)"}
    assert "3.4" == fake.of(fake.component(tools={"shell": ["sh"]}, version=version)).version


def test_a_missing_tool_is_named_with_what_would_help(fake: FakeBed) -> None:
    """A bed is not here when a program that its commands need is not."""
    fake.write(fake.component(tools={"initdb": ["no-such-program"], "shell": ["sh"]}))
    missing = beds.find(beds.read(fake.folder))
    assert beds.Unavailable("fake", "initdb is not installed; to have it: wishing") == missing


def test_the_newest_version_is_found(fake: FakeBed) -> None:
    """A folder with `*` is one of many versions, of which 15 is newer than 9."""
    for version in ("9", "15", "8.4"):
        folder = fake.folder / version
        folder.mkdir()
        (folder / "fake-server").symlink_to(fake.program)
    found = fake.of(fake.component(program=["fake-server"], folders=[str(fake.folder / "*")]))
    assert fake.folder / "15" / "fake-server" == found.programs["web"]


def test_a_preparation_depends_on_what_its_files_include() -> None:
    """One that is a line of another bed's is made anew when that changes."""
    text = text_of(beds.services()["postgresql-accounts"].folder, "one-database.sql")
    assert "include" in text
    assert "DROP DATABASE template0;" in text
