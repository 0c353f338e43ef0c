"""Databases that are killed, run out of disk or miss a feature: rows give the reason, other choices go on."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from bench.ground import mentioning

from conftest import command, here, lacking
from server_lab import query
from test_databases import DATABASES, PATIENCE_S, ROWS, Case, started, store, task
from tollbar.catalog import servers
from tollbar.core import proc
from tollbar.core.records import Outcome
from tollbar.core.runner import Session, Stopped, engine
from tollbar.lab.servers import sandbox
from tollbar.lab.servers.driver import StartedServer
from tollbar.lab.servers.sandbox import Sandbox


@pytest.mark.share(1)
@pytest.mark.parametrize("which", ["first", "newest"])
@pytest.mark.parametrize("name", DATABASES)
def test_a_server_that_is_killed_in_mid_chunk_is_named(at: Sandbox, name: str, which: str) -> None:
    """The reason names the server's first process or that of the connection."""
    case = Case(name, "plaintext")
    with started(at, case) as server:
        asked = task(at, server, case, "measure", "insert")
        with subprocess.Popen([engine(), "store"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            client.stdin.write(json.dumps(asked) + "\n")
            client.stdin.flush()
            assert "ready" in json.loads(client.stdout.readline())
            client.stdin.write(json.dumps({"advance": {"seconds": 30}}) + "\n")
            client.stdin.flush()
            time.sleep(0.3)
            _, *processes = proc.tree(server.components["database"])
            os.kill(processes[0 if which == "first" else -1], signal.SIGKILL)
            said = json.loads(client.stdout.readline())
            client.stdin.close()
        assert "failed" == said["outcome"]
        # The process and its connection end within microseconds of each other.
        assert re.search(f"database|{servers.all_servers()[name].title}", said["reason"])
        if which == "first":
            assert "SIGKILL" in (server.fault(60.0) or "")


# Longer than a statement of these tests takes on a busy machine.
SILENT_S = 3.0


@contextmanager
def standing_still(server: StartedServer) -> Iterator[None]:
    """Stop all processes of the server, as a debugger would."""
    # The first process is the guard, the second the server; its workers may end meanwhile.
    _, main, *workers = proc.tree(server.components["database"])
    os.kill(main, signal.SIGSTOP)
    for pid in workers:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in (*workers, main):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def impatient(asked: dict[str, Any], limit_s: float = SILENT_S) -> dict[str, Any]:
    """Return the task with this limit for an answer."""
    asked["store"]["server"]["answer_limit_s"] = limit_s
    return asked


def silent(name: str) -> str:
    """Return the beginning of the reason for a database that did not answer."""
    return f"{servers.all_servers()[name].title}: the server did not answer within 3 s"


@pytest.mark.share(1)
@pytest.mark.parametrize("name", DATABASES)
def test_a_server_that_hangs_in_mid_trial_fails_the_trial(at: Sandbox, name: str) -> None:
    case = Case(name, "plaintext")
    with started(at, case) as server:
        asked = impatient(task(at, server, case, "measure", "read", rows=ROWS))
        with Session([str(engine()), "store"], asked, account=server.client_account()) as opened:
            opened.ready(PATIENCE_S)
            with standing_still(server), pytest.raises(Stopped) as stopped:
                opened.advance(0.0, 1, PATIENCE_S)
    assert Outcome.FAILED is stopped.value.record.outcome
    assert str(stopped.value.record.reason).startswith(silent(name))


@pytest.mark.share(1)
@pytest.mark.parametrize("name", DATABASES)
def test_a_server_that_takes_up_no_connection_fails_the_proof(at: Sandbox, name: str) -> None:
    case = Case(name, "plaintext")
    with started(at, case) as server:
        asked = impatient(task(at, server, case, "verify", "read"))
        with standing_still(server):
            (said,) = store(asked)
    assert ("failed", True) == (said["outcome"], said["reason"].startswith(silent(name))), said


@pytest.mark.parametrize("limit_s", [0, -1, 1e300])
@pytest.mark.parametrize("name", DATABASES)
def test_a_limit_that_is_none_is_refused(at: Sandbox, name: str, limit_s: float) -> None:
    """A socket would take zero as no limit at all."""
    case = Case(name, "plaintext")
    with started(at, case) as server:
        (said,) = store(impatient(task(at, server, case, "verify", "read"), limit_s))
    assert "failed" == said["outcome"]
    assert "`store.server.answer_limit_s` must be a number of seconds" in said["reason"]


class Retyped(NamedTuple):
    """Database object that gets another type while a client is ready, and the expected reason."""

    what: str
    server: str
    op: str
    sql: str
    words: str


WRONG_TYPE = "PostgreSQL: column 0: cannot convert between the Rust type `&str` and the Postgres type `int4`"
RETYPED = [
    Retyped(
        "the size of what has none",
        "mariadb",
        "insert",
        "rename table cards to kept; create view cards as select * from kept",
        "^MariaDB: column 0: .*`Null`",
    ),
    Retyped(
        "a row's column",
        "mariadb",
        "read",
        "alter table cards modify card_number2 varchar(20)",
        "^row [0-9]+ was read wrongly: no number where one is stored",
    ),
]


@pytest.mark.parametrize("retyped", RETYPED, ids=lambda one: f"{one.server}: {one.what}")
def test_a_column_of_another_type_is_a_failure_with_a_reason(at: Sandbox, retyped: Retyped) -> None:
    """The client library would panic at such a column."""
    case = Case(retyped.server, "plaintext")
    settings = {} if retyped.op == "insert" else {"rows": ROWS}
    with started(at, case) as server:
        asked = task(at, server, case, "measure", retyped.op, **settings)
        with Session([str(engine()), "store"], asked, account=server.client_account()) as opened:
            opened.ready(PATIENCE_S)
            query(server, retyped.sql)
            with pytest.raises(Stopped) as stopped:
                opened.advance(0.0, 1, PATIENCE_S)
    assert Outcome.FAILED is stopped.value.record.outcome
    assert re.search(retyped.words, str(stopped.value.record.reason)), stopped.value.record.reason


def test_an_answer_of_another_type_is_a_failure_with_a_reason(at: Sandbox) -> None:
    case = Case("postgresql", "plaintext")
    with started(at, case) as server:
        query(server, "create function public.current_setting(text) returns integer language sql return 1")
        # A name without its schema means this one before the server's own.
        query(server, "alter role tollbar set search_path = public, pg_catalog")
        (said,) = store(task(at, server, case, "verify", "read"))
    assert ("failed", WRONG_TYPE) == (said["outcome"], said["reason"])


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """Yield a file system of this size that other accounts can enter."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="small-"))
    folder.chmod(0o755)
    options = f"size={megabytes}m,mode=0755"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        folder.rmdir()
        lacking("a small file system that a server's own account can write takes root, and the right to mount it")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


# Space that the started server uses, and some room for rows.
SMALL_MEGABYTES = {"postgresql": 72, "mariadb": 170}


@pytest.mark.share(0)
@pytest.mark.parametrize("name", DATABASES)
def test_a_full_disk_fails_the_trial_in_the_servers_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here(name)
    case = Case(name, "plaintext")
    with small_disk(SMALL_MEGABYTES[name]) as disk, monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(disk))
        with Sandbox() as at:
            assert disk in at.directory.parents
            with started(at, case) as server:
                said = store(
                    task(at, server, case, "measure", "insert"), *[{"seconds": 0.001, "operations": 20_000}] * 100
                )
        assert "failed" == said[-1]["outcome"]
        assert re.search(
            r"No space left on device|could not extend file|is full|ended during the trial|connection",
            said[-1]["reason"],
        )
        assert [] == list(disk.iterdir())


# Removals that imitate an older server or a missing configuration, and the server's error text.
MISSING = [
    (
        Case("postgresql", "pgp-pub-encrypt"),
        "plaintext",
        "create extension pgcrypto; alter extension pgcrypto drop function pgp_pub_encrypt(text, bytea); "
        "drop function pgp_pub_encrypt(text, bytea)",
        r"PostgreSQL: function pgp_pub_encrypt\(text, bytea\) does not exist",
    ),
    (Case("mariadb", "table-encryption"), "plaintext", "select 1", "MariaDB: "),
]


@pytest.mark.parametrize(("case", "started_for", "sql", "words"), MISSING, ids=[str(row[0]) for row in MISSING])
def test_what_a_server_does_not_have_is_unsupported(
    at: Sandbox, case: Case, started_for: str, sql: str, words: str
) -> None:
    with started(at, Case(case.server, started_for)) as server:
        query(server, sql)
        settings = {"log": "plain"} if case.choice == "table-encryption" else {}
        (said,) = store(task(at, server, case, "verify", "insert", **settings))
    assert "unsupported" == said["outcome"]
    assert re.match(words, said["reason"])


@pytest.fixture
def prefix() -> Iterator[Path]:
    """Yield a folder for programs that other accounts can enter."""
    folder = Path(tempfile.mkdtemp(dir=sandbox.folder_for_all(), prefix="prefix-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def another_postgresql(prefix: Path, alter: Callable[[Path, Path], None]) -> Path:
    """Copy the server with altered libraries and extensions, and return the folder of its programs.

    The server looks for these files next to its own program.
    """
    # The program may be found by a link.
    programs = here("postgresql").programs["database"].resolve().parent
    if not (programs / "pg_config").exists():
        lacking("pg_config, which says where the files of PostgreSQL are, is not installed")
    asked = [programs / "pg_config", "--sharedir", "--pkglibdir"]
    shared, libraries = map(Path, subprocess.check_output(asked, text=True).split())
    # The common parent folder of all three.
    common = Path(os.path.commonpath([programs, shared, libraries]))
    new_programs, new_shared, new_libraries = (
        prefix / path.relative_to(common) for path in (programs, shared, libraries)
    )
    new_programs.mkdir(parents=True)
    for name in ("postgres", "initdb", "pg_isready"):
        shutil.copy(programs / name, new_programs)
    linked(shared, new_shared)
    (new_shared / "extension").unlink()
    linked(shared / "extension", new_shared / "extension")
    linked(libraries, new_libraries)
    alter(new_libraries, new_shared / "extension")
    return new_programs


def linked(folder: Path, to: Path) -> None:
    """Fill a folder with links to everything in another."""
    to.mkdir(parents=True)
    for path in folder.iterdir():
        (to / path.name).symlink_to(path)


def without_function(extensions: Path, name: str) -> None:
    """Remove a function from pgcrypto, as in an older version."""
    script = next(path for path in extensions.glob("pgcrypto--*.sql") if path.name.count("--") == 1)
    text = script.read_text()
    fewer = re.sub(rf"CREATE FUNCTION {name}\(.*?;\n", "", text, flags=re.DOTALL)
    assert fewer != text
    script.unlink()
    script.write_text(fewer)


def mariadb_without_plugins(prefix: Path) -> Path:
    """Write a program that starts the server without plugins, and return its folder."""
    program = here("mariadb").programs["database"]
    (prefix / "plugins").mkdir()
    wrapper = prefix / program.name
    wrapper.write_text(f'#!/bin/sh\nexec {program} "$@" --plugin-dir={prefix}/plugins\n')
    wrapper.chmod(0o755)
    return prefix


class Lacking(NamedTuple):
    """Server without a feature: its making, the choice that needs it, one that does not, and the reason."""

    what: str
    server: str
    made: Callable[[Path], Path]
    choice: str
    other: str
    words: str


def no_control_file(libraries: Path, extensions: Path) -> None:
    """Remove the extension's control file, as if its package were not installed."""
    (extensions / "pgcrypto.control").unlink()


INSTALL = "; to install it: apt-get install postgresql-contrib$"
LACKING = [
    Lacking(
        "extension",
        "postgresql",
        lambda prefix: another_postgresql(prefix, no_control_file),
        "encrypt-iv",
        "aes-256-gcm",
        r'^not available here: PostgreSQL: (extension "pgcrypto" is not available|.*pgcrypto\.control.*)' + INSTALL,
    ),
    Lacking(
        "library of the extension",
        "postgresql",
        lambda prefix: another_postgresql(prefix, lambda libraries, _: (libraries / "pgcrypto.so").unlink()),
        "encrypt-iv",
        "aes-256-gcm",
        r'^not available here: PostgreSQL: could not access file "\$libdir/pgcrypto": No such file or directory'
        + INSTALL,
    ),
    Lacking(
        "function to encrypt",
        "postgresql",
        lambda prefix: another_postgresql(prefix, lambda _, extensions: without_function(extensions, "encrypt_iv")),
        "encrypt-iv",
        "pgp-sym-encrypt",
        r"^PostgreSQL: function encrypt_iv\(.*\) does not exist; a newer PostgreSQL has it$",
    ),
    Lacking(
        "function to decrypt",
        "postgresql",
        lambda prefix: another_postgresql(prefix, lambda _, extensions: without_function(extensions, "decrypt_iv")),
        "encrypt-iv",
        "pgp-sym-encrypt",
        r"^PostgreSQL: function decrypt_iv\(.*\) does not exist; a newer PostgreSQL has it$",
    ),
    Lacking(
        "plugin",
        "mariadb",
        mariadb_without_plugins,
        "table-encryption",
        "aes-encrypt",
        r"^mariadbd refuses: Can't open shared library '?\S*/plugins/file_key_management",
    ),
]
STUDY = """
question  = "What can this server do?"
family    = "storage"
servers      = ["{server}"]
providers = ["aws-lc"]
choices   = ["plaintext", "{choice}", "{other}"]
baseline  = "plaintext"

[vary]
op = ["insert"]

[measure]
chunk  = "2 ms"
rounds = 2
blocks = 1
"""


@pytest.mark.share(0)
@pytest.mark.parametrize("lack", LACKING, ids=lambda lack: f"{lack.server}: no {lack.what}")
def test_what_a_server_lacks_is_a_row_and_the_others_go_on(tmp_path: Path, prefix: Path, lack: Lacking) -> None:
    programs = lack.made(prefix)
    text = STUDY.format(server=lack.server, choice=lack.choice, other=lack.other)
    (tmp_path / "lacking.toml").write_text(text)
    temporary = prefix / "tmp"
    temporary.mkdir()
    temporary.chmod(0o711)
    done = subprocess.run(
        [command(), "run", "lacking.toml", "--json", "--no-report"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert 0 == done.returncode, done.stderr
    (study,) = json.loads(done.stdout)["studies"]
    found = {row["choice"]: (row["outcome"], row["reason"]) for row in study["results"]}
    outcome, reason = found.pop(lack.choice)
    assert "unsupported" == outcome
    assert re.search(lack.words, reason), reason
    assert {"plaintext": ("ok", None), lack.other: ("ok", None)} == found
    assert [] == [*temporary.iterdir()]
    assert set() == mentioning(str(prefix))
