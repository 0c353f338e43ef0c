"""Files in the directories of components started by root's lab, and files handed from one to another."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from component_lab import FakeServer, start
from conftest import lacking
from tollbar.core.errors import TollbarError
from tollbar.core.runner import confined
from tollbar.lab.servers import handing, shipping
from tollbar.lab.servers.guarded import KEPT_LOG_BYTES
from tollbar.lab.servers.sandbox import Sandbox

GIVES = ["*.keytab", "krb5.conf"]


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "directory-1"
    folder.mkdir()
    return folder


def test_what_the_lab_has_rendered_is_given_as_it_was_rendered(work_dir: Path, tmp_path: Path) -> None:
    """A component that changes its own krb5.conf changes nothing for others."""
    (work_dir / "krb5.conf").write_text("include /of/another")
    (work_dir / "web1.keytab").write_text("key")
    (work_dir / "other.so").write_text("code")
    handing.collect(work_dir, {"krb5.conf": "the lab's", "smb.conf": ""}, GIVES, tmp_path / "given")
    assert {"krb5.conf": "the lab's", "web1.keytab": "key"} == {
        path.name: path.read_text() for path in (tmp_path / "given").iterdir()
    }
    assert 0o700 == stat.S_IMODE((tmp_path / "given").stat().st_mode)
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "given").iterdir()}


def of_another(path: Path) -> None:
    """Make a link to a file that only the lab can read."""
    path.symlink_to("/etc/shadow")


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def too_large(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(shipping.MOST_GIVEN_BYTES + 1)


HOSTILE = {
    "a link": (of_another, "cannot be read as a plain file"),
    "a link to a device": (endless, "cannot be read as a plain file"),
    "a pipe": (os.mkfifo, "must be a regular file"),
    "a folder": (Path.mkdir, "must be a regular file"),
    "a large file": (too_large, "at most 16 MiB"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_plain_file_is_not_given(work_dir: Path, tmp_path: Path, name: str) -> None:
    lay, words = HOSTILE[name]
    lay(work_dir / "web1.keytab")  # type: ignore[operator]
    with pytest.raises(TollbarError, match=words):
        handing.collect(work_dir, {}, GIVES, tmp_path / "given")
    assert [] == [*(tmp_path / "given").iterdir()]


def test_too_many_files_are_not_given(work_dir: Path, tmp_path: Path) -> None:
    for number in range(shipping.MOST_GIVEN + 1):
        (work_dir / f"{number}.keytab").touch()
    with pytest.raises(TollbarError, match="the limit is 64"):
        handing.collect(work_dir, {}, GIVES, tmp_path / "given")


def test_each_reader_has_copies_of_its_own(at: Sandbox) -> None:
    """Only files that the lab alone can read are copied; the longest matching name counts."""
    if os.geteuid() != 0:
        lacking("accounts of their own are for what root has started")
    store, reader = at.directory / "directory-1-given", at.directory / "web-2"
    for folder in (store, reader):
        folder.mkdir()
    for name, mode in (("key", 0o600), ("key.pub", 0o644), ("key2", 0o600)):
        (store / name).write_text(name)
        (store / name).chmod(mode)
    (store / "link").symlink_to("/etc/shadow")
    account = at.account_of("nginx/web")
    assert account is not None
    told = {"environment": {"A": f"x {store}/key, {store}/key2"}, "files": [f"{store}/key.pub {store}/link"]}
    own = handing.own_copies(at, told, reader, account)
    copies = f"{reader}-copies/directory-1-given-key"
    assert {"A": f"x {copies}, {copies}2"} == own["environment"]
    assert told["files"] == own["files"]
    assert ["directory-1-given-key", "directory-1-given-key2"] == sorted(os.listdir(at.copies_of(reader)))
    # The folder is the lab's: no process of the account can replace a copy by a link.
    about = at.copies_of(reader).stat()
    assert (os.geteuid(), 0o711) == (about.st_uid, stat.S_IMODE(about.st_mode))
    for path in at.copies_of(reader).iterdir():
        assert (account.number, 0o600) == (path.stat().st_uid, stat.S_IMODE(path.stat().st_mode))
    assert told == handing.own_copies(at, told, reader, None)


def test_accounts_are_a_run_s_own(at: Sandbox) -> None:
    if not confined.has_accounts():
        assert at.account_of("nginx/web") is None
        return
    names = [f"server-{number}/web" for number in range(confined.ACCOUNTS)]
    accounts = [at.account_of(name) for name in names]
    assert confined.ACCOUNTS == len({account.number for account in accounts if account})
    assert accounts == [at.account_of(name) for name in names]
    known = {line.split(":")[2] for line in Path("/etc/passwd").read_text().splitlines()}
    assert known.isdisjoint(str(account.number) for account in accounts if account)
    with pytest.raises(TollbarError, match="more than 32 components"):
        at.account_of("one more")


def test_accounts_with_processes_are_left_to_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    used = {confined.FIRST_ACCOUNT + confined.ACCOUNTS * number for number in range(13)}
    monkeypatch.setattr(confined, "_users", lambda: used)

    def taken() -> int:
        numbers = confined.take_numbers(tmp_path / "locks")
        numbers.release()
        return numbers.free[0]

    assert {confined.FIRST_ACCOUNT + 13 * confined.ACCOUNTS} == {taken() for _ in range(20)}
    used.add(confined.FIRST_ACCOUNT + 13 * confined.ACCOUNTS)
    with pytest.raises(TollbarError, match="accounts from 60706 to 61183 are in use"):
        taken()


def test_no_two_runs_have_the_same_accounts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This holds between two servers, too, and when both runs have just begun."""
    monkeypatch.setattr(confined, "_users", set)
    runs = [confined.take_numbers(tmp_path / "locks") for _ in range(14)]
    assert 14 * confined.ACCOUNTS == len({number for run in runs for number in run.free})
    with pytest.raises(TollbarError, match="are in use"):
        confined.take_numbers(tmp_path / "locks")
    runs[3].release()
    another = confined.take_numbers(tmp_path / "locks")
    assert runs[3].free == another.free
    for run in [*runs, another]:
        run.release()


def test_runs_take_accounts_where_no_lock_can_be_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If `/run` is read-only or another user's, only running processes are checked."""
    monkeypatch.setattr(confined, "_users", set)
    (tmp_path / "file").touch()
    assert confined.ACCOUNTS == len(confined.take_numbers(tmp_path / "file" / "locks").free)
    if os.geteuid() == 0:
        (tmp_path / "locks").mkdir()
        os.chown(tmp_path / "locks", confined.FIRST_ACCOUNT, confined.FIRST_ACCOUNT)
        assert confined.ACCOUNTS == len(confined.take_numbers(tmp_path / "locks").free)
        assert [] == [*(tmp_path / "locks").iterdir()]


def test_a_link_in_the_place_of_a_log_is_not_followed(at: Sandbox, fake: FakeServer, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    found = fake.of(fake.component())
    (at.directory / "logs" / f"{found.server.name}-web-1-web.log").symlink_to(victim)
    with suppress(Exception), start(at, found):
        pass
    assert "as it was" == victim.read_text()


def test_of_a_log_only_the_end_is_read(at: Sandbox, fake: FakeServer) -> None:
    """A component may make a sparse log of any length: this one is larger than any memory."""
    assert at.logs is not None
    found = fake.of(fake.component())
    with start(at, found) as server:
        log = server.logs["web"]
        os.truncate(log, 1 << 40)
        with open(log, "ab") as file:
            file.write(b"the end")
        server.end()
        server._copy_logs(failed=True)
    (kept,) = at.logs.rglob("failed/web.log")
    assert (KEPT_LOG_BYTES, b"the end") == (kept.stat().st_size, kept.read_bytes().strip(b"\0"))


def test_what_others_can_reach(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    inner = tmp_path / "closed" / "program"
    inner.write_text("")
    inner.chmod(0o755)
    (tmp_path / "link").symlink_to(inner)
    assert confined.can_reach("/bin/sh", confined.FIRST_ACCOUNT)
    assert not confined.can_reach(inner, confined.FIRST_ACCOUNT)
    assert not confined.can_reach(tmp_path / "link", confined.FIRST_ACCOUNT)
    assert not confined.can_reach(tmp_path / "nothing", confined.FIRST_ACCOUNT)
    assert os.geteuid() != 0 or not confined.can_reach("/etc/shadow", confined.FIRST_ACCOUNT)
