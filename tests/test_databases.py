"""Databases: each server keeps the promise of each choice, and reports its failures."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from bench.ground import mentioning

from component_lab import commands_of
from conftest import here
from patience import PATIENCE_S
from server_lab import database, provider_of, query
from tollbar.catalog import servers
from tollbar.core import proc
from tollbar.core.runner import engine
from tollbar.lab.servers import driver
from tollbar.lab.servers.driver import StartedServer
from tollbar.lab.servers.sandbox import Sandbox

Settings = Mapping[str, str | int]

DATABASES = sorted(name for name, server in servers.all_servers().items() if server.frontend.name == "database")
ROWS = 300
MARK = "TheMarkOfTheseTests-4711"
ASKED_S = 0.01


@dataclass(frozen=True)
class Case:
    """Choice of a database, and its promises."""

    server: str
    choice: str
    settings: Settings = field(default_factory=dict)
    refuses: frozenset[str] = frozenset()
    """Refused faults: a wrong key, a changed value, a value moved from another row or column."""
    hides: bool = True
    """True if the plaintext is in none of the database's files, except its log if `log` is plain."""
    in_server: bool = True
    """True if the database has a loop of its own for this choice."""

    def __str__(self) -> str:
        return "-".join([self.server, self.choice, *map(str, self.settings.values())])


WRONG = {
    "key": "a row, with a wrong key",
    "changed": "a changed value",
    "row": "a value moved from another row",
    "column": "a value moved from another column",
}
KEY, ALL = frozenset({"key"}), frozenset(WRONG)
APPLICATION = [
    Case(server, choice, refuses=ALL, in_server=False)
    for server in DATABASES
    for choice in ("aes-256-gcm", "blind-index", "envelope-aes", "envelope-rsa", "rsa-oaep")
]
PGP = KEY | {"changed"}
CASES = [
    *(Case(server, "plaintext", hides=False) for server in DATABASES),
    *APPLICATION,
    Case("postgresql", "pgp-pub-encrypt", {"rsa-bits": 2048}, refuses=PGP),
    Case("postgresql", "pgp-pub-encrypt", {"rsa-bits": 1024}, refuses=PGP),
    Case("postgresql", "pgp-sym-encrypt", {"s2k-mode": 3}, refuses=PGP),
    Case("postgresql", "pgp-sym-encrypt", {"s2k-mode": 1}, refuses=PGP),
    Case("postgresql", "encrypt-iv", refuses=KEY),
    Case("postgresql", "encrypt-iv-hmac", refuses=KEY),
    Case("mariadb", "aes-encrypt", refuses=KEY),
    Case("mariadb", "table-encryption", {"log": "encrypted"}),
    Case("mariadb", "table-encryption", {"log": "plain"}),
]
OF_SERVER = [case for case in CASES if case.in_server]


def started(at: Sandbox, case: Case, **settings: str | int) -> StartedServer:
    """Return the server as a cell of this choice starts it."""
    found = here(case.server)
    return database(at, found, {"choice": case.choice, **case.settings, **settings})


def task(at: Sandbox, server: StartedServer, case: Case, mode: str, op: str, **settings: str | int) -> dict[str, Any]:
    """Return a task of the runner contract for the engine's `store`."""
    own = at.directory / "store"
    own.mkdir(mode=0o700, exist_ok=True)
    folder = server.work_dirs["database"]
    reached = {
        "kind": case.server,
        "socket": str(folder if case.server == "postgresql" else folder / "private" / "mariadb.sock"),
        "port": int(server.address.rpartition(":")[2]),
        "user": "tollbar",
        "database": "postgres" if case.server == "postgresql" else "tollbar",
        "answer_limit_s": PATIENCE_S,
    }
    return {
        "contract": 2,
        "mode": mode,
        "provider": {"kind": "aws-lc"},
        "family": "storage",
        "op": op,
        "choice": case.choice,
        "setting": {**case.settings, **settings},
        "inputs": {"mark": MARK} if mode == "verify" else {},
        "seed": 4711,
        "store": {"directory": str(own), "server": reached, "components": dict(server.components)},
    }


def store(task: Mapping[str, Any], *advances: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the engine's answers to this task, with its chunks unwrapped."""
    lines = [json.dumps(task), *(json.dumps({"advance": advance}) for advance in advances)]
    done = subprocess.run(
        [engine(), "store"], input="\n".join([*lines, ""]), capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert "panicked" not in done.stderr, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def files_with(folder: Path, words: bytes) -> set[str]:
    """Return the names of files below the folder that contain these bytes."""
    return {path.name for path in folder.rglob("*") if path.is_file() and words in path.read_bytes()}


@pytest.mark.share(4)
@pytest.mark.parametrize("loop", ["client", "server"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_choice_keeps_its_promise(at: Sandbox, case: Case, loop: str) -> None:
    with started(at, case) as server:
        (said,) = store(task(at, server, case, "verify", "insert", loop=loop))
        if loop == "server" and not case.in_server:
            assert "unsupported" == said["outcome"]
            assert "that the application encrypts" in said["reason"]
            return
        assert "ok" == said["outcome"], said
        proof = said["proof"]
        assert ["20 rows, written and read back", "each row, found by its card number"] == proof["accepted"][:2]
        assert [WRONG[wrong] for wrong in WRONG if wrong in case.refuses] == proof["refused"]
        # Every untried fault has its reason.
        assert len(WRONG) - len(case.refuses) == len(proof["not_tried"])
        assert all(": " in words for words in proof["not_tried"])
        for running in at.running[:]:
            running.end()
        found_in = files_with(server.work_dirs["database"], MARK.encode())
    if case.settings.get("log") == "plain":
        assert {"ib_logfile0"} == found_in
    elif case.hides:
        assert set() == found_in
    else:
        log = "ib_logfile0" if case.server == "mariadb" else "000000010000000000000001"
        assert log in found_in
        assert len(found_in) > 1


OPERATIONS = [("insert", {"rows-per-commit": 250}), ("insert", {"rows-per-commit": 1}), ("read", {}), ("find", {})]


@pytest.mark.share(1)
@pytest.mark.parametrize("loop", ["client", "server"])
@pytest.mark.parametrize("name", DATABASES)
def test_every_operation_is_accounted_for(at: Sandbox, name: str, loop: str) -> None:
    case = Case(name, "plaintext")
    for durability in ("off", "flushed"):
        with started(at, case, durability=durability) as server:
            for op, settings in OPERATIONS:
                settings = {**settings, "loop": loop, "durability": durability}
                if op != "insert":
                    settings["rows"] = ROWS
                asked = {"seconds": ASKED_S, "operations": 10}
                ready, *chunks, last = store(task(at, server, case, "measure", op, **settings), asked, asked)
                assert {"outcome": "ok"} == last
                assert "ready" in ready
                assert 2 == len(chunks)
                for chunk in (chunk.get("chunk", chunk) for chunk in chunks):
                    observed = chunk["observed"]
                    assert observed["components"]["database"]["cpu_ns"] > 0
                    assert chunk["cpu_ns"] > 0
                    assert chunk["operations"] >= 10
                    assert 0 == chunk["operations"] % settings.get("rows-per-commit", 1)
                    # A row without its indexes has some 200 bytes.
                    assert 200 < observed["row-size"] < 200_000
                    assert (op == "insert") == ("put-off" in observed)
                    assert (durability == "flushed") == ("flush" in observed)
                if op == "insert":
                    # The table has the chunks' rows, and besides them at most the warm-up's.
                    rows, last_id = map(
                        int, re.split(r"[\t|]", query(server, "select count(*), max(card_id) from cards")[0])
                    )
                    assert rows == last_id
                    assert rows >= sum(chunk.get("chunk", chunk)["operations"] for chunk in chunks)


# The application decrypts, with one key or a key for each row, or the server does.
WITHOUT_INDEX = [case for case in CASES if case.choice in ("aes-256-gcm", "envelope-aes", "encrypt-iv")]


@pytest.mark.parametrize("case", WITHOUT_INDEX, ids=str)
def test_a_search_without_an_index_is_accounted_for(at: Sandbox, case: Case) -> None:
    with started(at, case) as server:
        asked = {"seconds": 0.0, "operations": 3}
        _, said, last = store(task(at, server, case, "measure", "find", rows=ROWS), asked)
    assert {"outcome": "ok"} == last
    chunk = said.get("chunk", said)
    assert 3 == chunk["operations"]
    assert chunk["observed"]["components"]["database"]["cpu_ns"] > 0
    assert chunk["cpu_ns"] > 0


@pytest.mark.parametrize("loop", ["client", "server"])
def test_each_value_has_an_initialisation_vector_of_its_own(at: Sandbox, loop: str) -> None:
    case = Case("postgresql", "encrypt-iv")
    with started(at, case) as server:
        (said,) = store(task(at, server, case, "verify", "insert", loop=loop))
        assert "ok" == said["outcome"]
        columns = [
            f"select substr({name}, 1, 16) v from cards"
            for name in ("card_number1", "security_code1", "secure_string1")
        ]
        assert ["60"] == query(server, f"select count(distinct v) from ({' union all '.join(columns)}) as all_of_them")


@pytest.mark.parametrize("bits", [1024, 2048])
def test_a_session_key_is_encrypted_by_a_key_of_the_length_that_was_asked_for(at: Sandbox, bits: int) -> None:
    case = Case("postgresql", "pgp-pub-encrypt", {"rsa-bits": bits})
    with started(at, case) as server:
        asked = {"seconds": 0.0, "operations": 250}
        _, said, last = store(task(at, server, case, "measure", "insert", loop="server"), asked)
        assert {"outcome": "ok"} == last
        (stored,) = query(server, "select encode(secure_string1, 'hex') from cards where card_id = 1")
    message = bytes.fromhex(stored)
    # RFC 4880: a packet of tag 1 in the new format, its length; version 3, the key's id, RSA, and the number's bits.
    assert 0xC1 == message[0]
    body = message[2 if message[1] < 192 else 3 :]
    assert (3, 1) == (body[0], body[9])
    number = int.from_bytes(body[10:12], "big")
    assert bits - 32 < number <= bits
    size = said.get("chunk", said)["observed"]["value-size"]
    # RSA's random number may begin with a zero byte, which is left out.
    assert abs(size - len(message)) <= 2
    assert bits // 8 < size < bits // 8 + 128


@pytest.mark.parametrize(
    ("choice", "setting", "reason"),
    [
        ("pgp-pub-encrypt", {"rsa-bits": 512}, "no such `rsa-bits`: 512"),
        ("pgp-sym-encrypt", {"s2k-mode": 2}, "no such `s2k-mode`: 2"),
        ("encrypt-iv", {"rsa-bits": 1024}, "rsa-bits"),
    ],
)
def test_a_setting_that_is_not_there_is_refused(at: Sandbox, choice: str, setting: Settings, reason: str) -> None:
    with started(at, Case("postgresql", choice)) as server:
        (said,) = store(task(at, server, Case("postgresql", choice, setting), "verify", "insert"))
    assert "failed" == said["outcome"]
    assert reason in said["reason"]


VALUE_SIZES = {"plaintext": None, "aes-256-gcm": 64, "rsa-oaep": 256, "aes-encrypt": 48, "table-encryption": None}


@pytest.mark.share(4)
@pytest.mark.parametrize("case", [case for case in CASES if case.choice in VALUE_SIZES], ids=str)
def test_a_value_has_its_size_where_it_is_encrypted_by_itself(at: Sandbox, case: Case) -> None:
    """Sizes are of the longest value, 36 characters; an encrypted table has none."""
    with started(at, case) as server:
        asked = {"seconds": 0.0, "operations": 3}
        _, said, last = store(task(at, server, case, "measure", "read", rows=ROWS), asked)
    assert {"outcome": "ok"} == last
    assert VALUE_SIZES[case.choice] == said.get("chunk", said)["observed"].get("value-size")


@pytest.mark.share(3)
@pytest.mark.parametrize("case", [case for case in OF_SERVER if case.refuses], ids=str)
def test_no_key_is_in_a_log_or_a_command(at: Sandbox, case: Case) -> None:
    with started(at, case) as server:
        (said,) = store(task(at, server, case, "verify", "read"))
        assert "ok" == said["outcome"]
        folder = server.work_dirs["database"]
        texts = [path.read_text(errors="replace") for path in at.directory.glob(f"logs/{folder.name}-*.log")]
        commands = commands_of(proc.tree(server.components["database"]))
        assert texts
        assert commands
        texts += commands
        # Keys have 128 or 256 bits; the 160-bit number is MariaDB's revision.
        assert [] == [text for text in texts if re.search(r"\b([0-9a-f]{32}|[0-9a-f]{64})\b", text)]


def test_the_key_of_a_table_is_for_the_servers_account_alone(at: Sandbox) -> None:
    case = Case("mariadb", "table-encryption")
    with started(at, case) as server:
        path = server.work_dirs["database"] / "keys.txt"
        assert 0o600 == path.stat().st_mode & 0o777
        key = path.read_text().strip().removeprefix("1;")
        assert 64 == len(key)
        assert key not in server.configuration
        assert {"keys.txt"} == files_with(server.work_dirs["database"], key.encode())
    assert at.logs is not None
    assert set() == files_with(at.logs, key.encode())
    with started(at, case) as server:
        assert key not in (server.work_dirs["database"] / "keys.txt").read_text()


def test_postgresql_has_one_database(at: Sandbox) -> None:
    """Template databases are dropped, because each start would unpack their files."""
    with started(at, Case("postgresql", "plaintext")) as server:
        assert ["postgres"] == query(server, "select datname from pg_database")


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_starts_and_leaves_nothing(at: Sandbox, name: str) -> None:
    found = here(name)
    before = set(at.directory.iterdir())
    with started(at, Case(name, "plaintext")) as server:
        assert f"{name} {found.version} (" in server.receipt["name"]
        assert ["1"] == query(server, "select 1")
        pids = proc.tree(server.components["database"])
        # The first process is the guard.
        account = at.account_of(f"{name}/database")
        owner = account.number if account else os.geteuid()
        owners: set[int] = set()
        for pid in pids[1:]:
            # The process of the query above may end meanwhile.
            with suppress(FileNotFoundError):
                owners.add(Path(f"/proc/{pid}").stat().st_uid)
        assert {owner} == owners
        listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        inodes = {words[9] for words in listening if words[3] == "0A"}
        opened: set[str] = set()
        for pid in pids:
            with suppress(FileNotFoundError):
                opened |= {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
        assert opened
        assert [] == [inode for inode in inodes if f"socket:[{inode}]" in opened]
    assert server.fault() is None
    assert [] == [pid for pid in pids if proc.start_time(pid)]
    kept = {path.name for path in set(at.directory.iterdir()) - before}
    # Without the cache, prepared state is kept for the run.
    assert all(name.endswith(".tar") for name in kept)


@pytest.mark.parametrize(("name", "choice"), [("postgresql", "aes-encrypt"), ("mariadb", "encrypt-iv")])
def test_a_choice_of_another_database_is_unsupported(at: Sandbox, name: str, choice: str) -> None:
    case = Case(name, choice)
    with started(at, case) as server:
        (said,) = store(task(at, server, case, "verify", "insert"))
    title = servers.all_servers()[name].title
    assert ("unsupported", f"{title} has no `{choice}`") == (said["outcome"], said["reason"])


# Setting that the server starts with, the task's value, and the server's variable in which they differ.
OTHERWISE = [
    (Case("postgresql", "plaintext"), {}, {"durability": "flushed"}, "fsync = off"),
    (Case("postgresql", "plaintext"), {"durability": "flushed"}, {}, "fsync = on"),
    (Case("mariadb", "plaintext"), {}, {"durability": "flushed"}, "innodb_flush_log_at_trx_commit = 0"),
    (Case("mariadb", "table-encryption"), {"log": "plain"}, {"log": "encrypted"}, "innodb_encrypt_log = 0"),
]


@pytest.mark.parametrize(("case", "configured", "asked", "words"), OTHERWISE)
def test_a_server_that_is_configured_otherwise_is_found_out(
    at: Sandbox, case: Case, configured: Settings, asked: Settings, words: str
) -> None:
    with started(at, case, **configured) as server:
        (said,) = store(task(at, server, case, "verify", "insert", **asked))
    assert "failed" == said["outcome"]
    assert words in said["reason"]


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_can_be_shown(name: str) -> None:
    found = here(name)
    words = {"table_key": "SECRET"}
    request = driver.Request(
        found, provider_of(found.server), {"choice": "table-encryption"}, words=words, shown_words={"table_key": "KEY"}
    )
    shown = driver.rendered(request)
    assert str(found.programs["database"]) in shown
    assert "SECRET" not in shown
    assert set() == mentioning("tollbar-RUN")
