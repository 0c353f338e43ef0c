"""Preparation of components: done once and reused; an interrupted one leaves nothing half-made."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from component_lab import FakeServer, kept, start, work_dir_of
from patience import PATIENCE_S
from tollbar.catalog import servers
from tollbar.core.records import Outcome
from tollbar.lab.servers import configuration, prepared
from tollbar.lab.servers.driver import NotStarted
from tollbar.lab.servers.guarded import Guarded
from tollbar.lab.servers.sandbox import Sandbox


def test_a_preparation_is_done_once_and_used_again(fake: FakeServer) -> None:
    found = fake.of(fake.component(prepare=fake.preparation()))
    for _ in range(2):
        with Sandbox() as at:
            for _ in range(2):
                with start(at, found):
                    assert "whole" == (work_dir_of(at, "web") / "state").read_text()
    assert 1 == fake.times_prepared
    assert [".tar"] == kept(fake)
    (folder,) = (fake.folder.parent / "cache").rglob("prepared")
    assert [0o700, 0o600] == [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())]


def test_what_prepares_packs_and_unpacks_has_no_more_than_its_component(
    at: Sandbox, fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These processes read files that a server's own commands have made."""
    seen: list[tuple[str, Any]] = []

    class Seen(Guarded):
        def __init__(self, words: Sequence[str], **options: Any) -> None:
            seen.append((Path(words[0]).name, options.get("account")))
            super().__init__(words, **options)

    monkeypatch.setattr(prepared, "Guarded", Seen)
    found = fake.of(fake.component(prepare=fake.preparation()))
    (component,) = found.server.components
    with start(at, found):
        pass
    assert ["tar", "tar"] == [name for name, *_ in seen][-2:]
    assert 3 <= len(seen)
    assert {at.account_of(f"{found.server.name}/{component.name}")} == {account for _, account in seen}


def test_what_takes_long_to_prepare_is_printed(
    at: Sandbox, fake: FakeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(prepared, "QUICK_S", 0.0)
    with caplog.at_level("INFO", "tollbar"), start(at, fake.of(fake.component(prepare=fake.preparation()))):
        pass
    assert any("the accounts and data of its component web" in line for line in caplog.messages)
    caplog.clear()
    monkeypatch.setattr(prepared, "STILL_S", 0.01)
    with caplog.at_level("INFO", "tollbar"), prepared.told_meanwhile("making accounts"):
        while len(caplog.messages) < 3:
            time.sleep(0.01)
    assert "making accounts" == caplog.messages[0]
    assert "making accounts (0 s by now)" == caplog.messages[1]
    monkeypatch.setattr(prepared, "QUICK_S", 60.0)
    caplog.clear()
    with caplog.at_level("INFO", "tollbar"), prepared.told_meanwhile("making accounts"):
        pass
    assert [] == caplog.messages


def test_what_a_preparation_depends_on_makes_another_one(
    at: Sandbox, fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = fake.folder / "accounts.jinja"
    template.write_text("{{ settings.users }} accounts")
    component = fake.component(prepare=fake.preparation(settings=["users"], render=["accounts"]))

    def text(**settings: str | int) -> str:
        # A process reads a server once; these are the servers of four processes.
        servers.find.cache_clear()
        configuration._templates.cache_clear()
        with start(at, fake.of(component), settings):
            return (work_dir_of(at, "web") / "accounts").read_text()

    assert ("10 accounts", 1) == (text(users=10), fake.times_prepared)
    assert ("10 accounts", 1) == (text(users=10, groups=50), fake.times_prepared)
    assert ("20 accounts", 2) == (text(users=20), fake.times_prepared)
    template.write_text("{{ settings.users }} users")
    assert ("10 users", 3) == (text(users=10), fake.times_prepared)
    monkeypatch.setenv("FAKE_VERSION", "1.3")
    assert ("10 users", 4) == (text(users=10), fake.times_prepared)


@pytest.mark.parametrize(
    ("fault", "outcome", "words"),
    [
        ("fails", Outcome.FAILED, "preparing the component web: fake-component ended with status 1: no more than half"),
        ("hangs", Outcome.TIMED_OUT, "preparing the component web: fake-component did not end within its time limit"),
    ],
)
def test_a_preparation_that_does_not_end_well_leaves_nothing(
    at: Sandbox, fake: FakeServer, fault: str, outcome: Outcome, words: str
) -> None:
    limit = "0.5 s" if fault == "hangs" else "20 s"
    with pytest.raises(NotStarted) as caught:
        start(at, fake.of(fake.component(prepare=fake.preparation(fault, limit=limit))))
    assert (outcome, words) == (caught.value.outcome, caught.value.reason)
    assert at.logs is not None
    assert ("no more than half" if fault == "fails" else "") in (at.logs / "fake" / "web-preparing.log").read_text()
    assert [] == kept(fake)
    assert [] == [*at.directory.glob("*prepare-*"), *at.directory.glob("fake-*"), *at.directory.glob("*.tar")]
    assert [] == at.running
    with start(at, fake.of(fake.component(prepare=fake.preparation()))):
        assert "whole" == (work_dir_of(at, "web") / "state").read_text()
    assert 2 == fake.times_prepared


def test_the_reason_of_a_full_disk_is_not_the_last_line(at: Sandbox) -> None:
    full = "initdb: error: could not create directory: No space left on device"
    script = f"echo one; echo '{full}'; echo 'initdb: removing data directory'; exit 1"
    command = Guarded(["sh", "-c", script], sandbox=at, work_dir=at.directory, log=at.directory / "log")
    assert not command.ends_well(time.monotonic() + PATIENCE_S)
    assert command.fault() == f"sh ended with status 1: {full}"


def test_a_refused_preparation_is_unsupported(at: Sandbox, fake: FakeServer) -> None:
    component = fake.component(prepare=fake.preparation("fails"), refusals=["(no more than .*)"])
    with pytest.raises(NotStarted, match="preparing the component web: fake-component refuses: no more than") as caught:
        start(at, fake.of(component))
    assert Outcome.UNSUPPORTED == caught.value.outcome


def test_a_damaged_archive_is_met_once(at: Sandbox, fake: FakeServer) -> None:
    found = fake.of(fake.component(prepare=fake.preparation()))
    with start(at, found):
        (archive,) = (fake.folder.parent / "cache").rglob("*.tar")
    archive.write_bytes(b"rubbish" * 1000)
    with pytest.raises(NotStarted, match="unpacking the component web: tar ended with status 2"):
        start(at, found)
    with start(at, found):
        assert "whole" == (work_dir_of(at, "web") / "state").read_text()
    assert 2 == fake.times_prepared


def test_a_run_without_a_cache_prepares_for_itself(fake: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials of a run share prepared state that others cannot read.

    It has keys, and may pass through the run's directory.
    """
    Path(fake.folder / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(fake.folder / "file"))
    found = fake.of(fake.component(prepare=fake.preparation()))
    for runs in (1, 2):
        with Sandbox() as at:
            for _ in range(2):
                with start(at, found):
                    assert "whole" == (work_dir_of(at, "web") / "state").read_text()
            assert [0o600] == [stat.S_IMODE(path.stat().st_mode) for path in at.directory.glob("*.tar")]
        assert runs == fake.times_prepared


def test_a_cache_that_takes_nothing_is_done_without(
    at: Sandbox, fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, or a file system without unnamed files, costs the next run time and nothing else."""

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    found = fake.of(fake.component(prepare=fake.preparation()))
    for _ in range(2):
        with start(at, found):
            assert "whole" == (work_dir_of(at, "web") / "state").read_text()
    assert 1 == fake.times_prepared
    assert [] == kept(fake)


def test_state_that_no_run_has_used_is_removed(at: Sandbox, fake: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    component = fake.component(prepare=fake.preparation(settings=["users"]))
    for users in (1, 2):
        with start(at, fake.of(component), {"users": users}):
            pass
    first, second = sorted((fake.folder.parent / "cache").rglob("*.tar"), key=lambda path: path.stat().st_mtime)
    long_ago = time.time() - prepared.UNUSED_LIMIT_S - 60
    for archive in (first, second):
        os.utime(archive, (long_ago, long_ago))
    with start(at, fake.of(component), {"users": 2}):
        pass
    with start(at, fake.of(component), {"users": 3}):
        assert (False, True) == (first.exists(), second.exists())


def test_two_starts_at_once_prepare_once(fake: FakeServer) -> None:
    found = fake.of(fake.component(prepare=fake.preparation()))
    with Sandbox() as one, Sandbox() as other, ThreadPoolExecutor(4) as pool:
        for server in pool.map(lambda at: start(at, found), (one, other, one, other)):
            server.stop()
    assert 1 == fake.times_prepared
