"""A whole request: a composed family, and one server that signs in, speaks TLS and has a table."""

from __future__ import annotations

import re
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import product
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from patience import PATIENCE_S
from tollbar import results, study
from tollbar.catalog import families
from tollbar.catalog.families import Degree, Family, MadeOf, Standing, Value, at_defaults
from tollbar.core.errors import TollbarError
from tollbar.core.records import ChunkRecord, ComponentRecord, Observed, Outcome, Record
from tollbar.core.runner import Session, ask
from tollbar.lab import workloads
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import Given, Work
from tollbar.lab.workloads.by_family.database_sign_on import sign_ons
from tollbar.lab.workloads.request import PROOF_LIMIT_S, RequestWorkload, command
from tollbar.lab.workloads.request_work import RequestWork
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

STACK = """
question = "What does a whole request cost?"
family = "stack"
choices = {choices}
servers = ["{server}"]

[vary]
{vary}

[load]
request = {{ get = "/bytes/{{bytes}}" }}
expect  = {{ bytes = "{{bytes}}" }}
"""
WORST_FIRST = [Standing.BROKEN, Standing.DISALLOWED, Standing.DEPRECATED, Standing.ACCEPTABLE, Standing.RECOMMENDED]


def whole() -> MadeOf:
    family = families.family("stack")
    assert isinstance(family, MadeOf)
    return family


def cells(tmp_path: Path, vary: str, server: str = "embedded", choices: str = '["page"]') -> tuple[Cell, ...]:
    path = tmp_path / "study.toml"
    path.write_text(STACK.format(vary=vary, server=server, choices=choices))
    return plan.make(study.load([str(path)]), seed=3).studies[0].cells


# The family.


def every_cell() -> list[dict[str, Value]]:
    names = ("sign-in", "transport", "storage")
    values = [whole().settings[name].values or () for name in names]
    given = {"choice": "page", "op": "read", "server": "embedded", "provider": "libcrypto"}
    return [dict(at_defaults(whole(), {**given, **dict(zip(names, at, strict=True))})) for at in product(*values)]


def test_a_cell_has_the_standing_of_its_worst_part() -> None:
    """Only protecting parts count; the strength is the least, and the threats are those of all parts."""
    seen = set()
    for at in every_cell():
        parts = [(member.family, cell) for member, cell in whole().cells_at(at)]
        standings = [family.standing_of(cell) for family, cell in parts]
        protecting = [WORST_FIRST.index(one) for one in standings if one is not Standing.NULL]
        found = whole().standing_of(at)
        assert found is (WORST_FIRST[min(protecting)] if protecting else Standing.NULL)
        bits = [bits for family, cell in parts if (bits := family.strength_of(cell)) is not None]
        assert min(bits, default=None) == whole().strength_of(at)
        assert sum(len(family.threats) for family, _ in parts) == len(whole().mitigations_of(at))
        seen.add(found)
    assert {Standing.NULL, Standing.DISALLOWED, Standing.ACCEPTABLE, Standing.RECOMMENDED} <= seen


def test_the_transport_says_whether_a_password_can_be_read_on_the_way() -> None:
    given = {"choice": "page", "op": "read", "sign-in": "basic", "storage": "plaintext"}
    clear, tls = (at_defaults(whole(), {**given, "transport": to}) for to in ("plaintext", "tls-1.3"))
    sniffing = "sign-in-sniffing"
    assert (Standing.DISALLOWED, Degree.NO) == (
        whole().standing_of(clear),
        whole().mitigations_of(clear)[sniffing].degree,
    )
    assert Degree.YES is whole().mitigations_of(tls)[sniffing].degree
    assert "transport" == whole().lowered_by(clear)


def test_settings_have_their_part_in_front() -> None:
    """Settings have a meaning in some cell; values that a part gets from the whole are no settings."""
    names = set(whole().settings)
    assert {"sign-in", "sign-in-password-hash", "transport-certificate", "storage-rows", "bytes"} <= names
    assert not {"sign-in-transport", "sign-in-bytes", "transport-bytes", "storage-rows-per-commit"} & names
    used = {name for op in whole().operations for at in every_cell() for name in at_defaults(whole(), {**at, "op": op})}
    # Settings that only apply beyond another setting's default.
    later = {
        "authentication",
        "transport-dh-parameters",
        "transport-mac-order",
        "sign-in-hit-share",
        "sign-in-time-to-live",
        "sign-in-cache-entries",
    }
    assert names - used <= later


def _toml(part: str) -> str:
    return f"""
[family]
title = "Two"
operations = ["do"]
[choice.none]
title = "nothing"
spec = "none"
standing = "null"
[choice.both]
title = "both"
spec = "none"
standing = "recommended"
[part.one]
title = "the one"
{part}
"""


REFUSED = {
    "family": ('family = "tsl"\ndefault = "x"', "no such family"),
    "default": ('family = "tls"\ndefault = "tls-1.4"', "must be one of its choices"),
    "operation": ('family = "tls"\ndefault = "tls-1.3"\nop = "conect"', "no such operation"),
    "given": ('family = "tls"\ndefault = "tls-1.3"\n[part.one.given]\ncertficate = "rsa-2048"', "no such setting"),
    "key": ('family = "tls"\ndefault = "tls-1.3"\nchoises = ["*"]', "no such key"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_part_that_cannot_be_is_refused(tmp_path: Path, name: str) -> None:
    part, words = REFUSED[name]
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "family.toml").write_text(_toml(part))
    with pytest.raises(TollbarError) as error:
        families.read_family(tmp_path / "two")
    assert words in str(error.value)


def test_a_users_own_family_is_made_of_tollbars(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "family.toml").write_text(_toml('family = "tls"\ndefault = "tls-1.3"'))
    found: Family = families.read_family(tmp_path / "two")
    assert isinstance(found, MadeOf)
    assert "one-certificate" in found.settings


def test_a_run_keeps_the_parts(tmp_path: Path) -> None:
    """The run can be judged after these families have changed."""
    (planned,) = study.load(["combinations"])
    made = plan.make([planned], seed=1)
    store = results.create(made, tmp_path, command=(), libraries=(), fingerprint={})
    store.close()
    kept = store.directory / "families"
    assert {"stack", "web-auth", "tls", "storage"} == {folder.name for folder in kept.iterdir()}
    (again,) = results.read(store.directory).studies
    assert again.study.family.folder == kept / "stack"
    assert whole().settings.keys() == again.study.family.settings.keys()


# The servers.


def proven(cell: Cell, sandbox: Sandbox):  # type: ignore[no-untyped-def]
    return workloads.of(cell).prove(cell, 5, Given(sandbox))


def ask_of(cell: Cell, sandbox: Sandbox) -> Record:
    """Return the load client's record of the cell's server."""
    workload = workloads.of(cell)
    assert isinstance(workload, RequestWorkload)
    with workload._server(cell, 5, sandbox, None) as server:
        return ask(command(), workload._task(cell, "verify", 5, server, sandbox), limit_s=PROOF_LIMIT_S)


VARIED = """
op = ["{op}"]
sign-in = ["{sign_in}"]
transport = ["{transport}"]
storage = ["{storage}"]
database = ["{database}"]
"""
SERVED = [
    ("embedded", "read", "api-key", "plaintext", "aes-256-gcm", "sqlite"),
    ("embedded", "read", "form", "tls-1.3", "aes-256-gcm", "sqlite"),
    ("embedded", "insert", "jwt", "plaintext", "aes-256-gcm", "sqlite"),
    ("embedded", "read", "hmac", "tls-1.2", "pgp-sym-encrypt", "postgresql"),
    ("nginx", "read", "basic", "tls-1.3", "aes-256-gcm", "postgresql"),
    ("httpd", "insert", "basic", "tls-1.3", "plaintext", "postgresql"),
]


@pytest.mark.share(1)
@pytest.mark.parametrize(("server", "op", "sign_in", "transport", "storage", "database"), SERVED[::-1])
def test_a_whole_request_is_proved_by_each_of_its_parts(
    tmp_path: Path, server: str, op: str, sign_in: str, transport: str, storage: str, database: str
) -> None:
    vary = VARIED.format(op=op, sign_in=sign_in, transport=transport, storage=storage, database=database)
    if sign_in == "basic":
        vary += '\nsign-in-store = ["file"]\nsign-in-password-hash = ["sha-1"]'
    if op == "read":
        vary += "\nstorage-rows = [200]"
    if sign_in == "api-key":
        vary += '\nsign-in-verified = ["cached"]\nsign-in-accounts = [20000]'
    (cell,) = cells(tmp_path, vary, server)
    with Sandbox() as sandbox:
        found = proven(cell, sandbox)
        assert found.outcome is Outcome.OK, found.reason
        refused = " ".join(found.refused)
        assert "password" in refused or "signature" in refused or "key" in refused
        if storage != "plaintext":
            assert "a changed value" in refused
            assert "searched for in all files" in refused
        with workloads.of(cell).up(cell, 5, sandbox, None) as work:
            behind = {"database"} if database == "postgresql" else set()
            front = {"web"} if server == "embedded" else {"web", "application"}
            assert front | behind == set(work.components) == set(work.busy)


def test_a_database_without_the_choice_is_a_reason(tmp_path: Path) -> None:
    (cell,) = cells(tmp_path, VARIED.format(op="read", sign_in="form", transport="plaintext",
                                            storage="pgp-sym-encrypt", database="sqlite"))  # fmt: skip
    with Sandbox() as sandbox:
        found = proven(cell, sandbox)
    assert Outcome.UNSUPPORTED is found.outcome
    assert "does not support pgp-sym-encrypt; use the server postgresql" in str(found.reason)


CONNECTIONS = [
    ("sqlite", "kept", None),
    ("sqlite", "each-request", None),
    ("postgresql", "kept", None),
    ("postgresql", "each-request", "scram-sha-256"),
    ("postgresql", "each-request", "trust"),
]


CHUNKS = 10


@pytest.mark.share(2)
@pytest.mark.parametrize(("database", "connection", "authentication"), CONNECTIONS)
@pytest.mark.parametrize("op", ["read", "insert"])
def test_a_connection_lasts_as_long_as_was_asked_for(
    tmp_path: Path, op: str, database: str, connection: str, authentication: str | None
) -> None:
    """The database counts connections itself; the cost of an ended process is in its account."""
    vary = VARIED.format(op=op, sign_in="anonymous", transport="plaintext", storage="aes-256-gcm", database=database)
    vary += f'\nconnection = ["{connection}"]\n'
    vary += f'authentication = ["{authentication}"]\n' if authentication else ""
    (cell,) = cells(tmp_path, vary)
    assert authentication == cell.coordinates.get("authentication")
    with Sandbox() as sandbox:
        found = proven(cell, sandbox)
        assert found.outcome is Outcome.OK, found.reason
        each = connection == "each-request"
        ends = "no connection to the table between them" if each else "over the one connection that is kept"
        assert any(words.endswith(ends) for words in found.accepted)
        with workloads.of(cell).up(cell, 5, sandbox, None) as work:
            assert isinstance(work, RequestWork)
            before = sessions(work) if database == "postgresql" else 0
            with Session(work.command, work.task, core=work.core, account=work.account) as session:
                session.ready(PROOF_LIMIT_S)
                # On a busy machine the database may not come to rest in time, and then its account is not exact.
                for _ in range(CHUNKS):
                    chunk = session.advance(0.0, work.fewest, PROOF_LIMIT_S)
                    if chunk.observed.is_exact:
                        break
                session.finish()
            made = sessions(work) - before if database == "postgresql" else 0
    assert work.contradiction(chunk) is None
    assert chunk.observed.is_exact
    if database == "postgresql":
        assert (sign_ons() if each else 2) == work.fewest
        # The queries of this test and of the lab open few sessions.
        assert made >= chunk.operations if each else made < 10


def sessions(work: RequestWork) -> int:
    """Return the number of sessions that the database counts."""
    server = work.server
    port = server.addresses["database"].rpartition(":")[2]
    count = "select sessions from pg_stat_database where datname = current_database()"
    words = [
        "psql",
        "-X",
        "-At",
        "-U",
        "tollbar",
        "-h",
        str(server.work_dirs["database"]),
        "-p",
        port,
        "-d",
        "postgres",
    ]
    done = subprocess.run([*words, "-c", count], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return int(done.stdout)


# Servers that do not do their part.


def spoiled(monkeypatch: pytest.MonkeyPatch, server: str, file: str, taken: str, put: str) -> None:
    """Replace one line of a server's template."""
    from tollbar.lab.servers import configuration

    made = configuration._Filling.file

    def other(self: object, name: str) -> str:
        text = made(self, name)  # type: ignore[arg-type]
        if name == file and self._folder.name == server:  # type: ignore[attr-defined]
            assert re.search(taken, text), text
            return re.sub(taken, put, text)
        return text

    monkeypatch.setattr(configuration._Filling, "file", other)


class Tells(BaseHTTPRequestHandler):
    """Application that reports prepared numbers of rows, one for each answer."""

    def do_GET(self) -> None:
        told: list[int] = self.server.told  # type: ignore[attr-defined]
        body = f"{told.pop(0) if told else 0} rows, connections: one that is kept\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Suppress the log on standard error."""


@pytest.mark.share(1)
@pytest.mark.parametrize("used", [0, 1])
@pytest.mark.parametrize("sign_in", [one for one in whole().members["sign-in"].choices if one != "anonymous"])
def test_a_row_for_a_wrong_credential_is_no_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign_in: str, used: int
) -> None:
    """For each scheme the first refused request is the one without credentials."""
    (cell,) = cells(tmp_path, VARIED.format(op="read", sign_in=sign_in, transport="plaintext",
                                            storage="plaintext", database="sqlite"))  # fmt: skip
    workload = workloads.of(cell)
    assert isinstance(workload, RequestWorkload)
    asked = workload._task
    with HTTPServer(("127.0.0.1", 0), Tells) as application:
        # Before the first three pages, after them, before the refused request, after it.
        application.told = [0, 3, 0, used]  # type: ignore[attr-defined]
        Thread(target=application.serve_forever, daemon=True).start()

        def told(*words: Any) -> dict[str, Any]:
            task = asked(*words)
            task["load"]["rows"]["address"] = f"127.0.0.1:{application.server_port}"
            return task

        monkeypatch.setattr(workload, "_task", told)
        with Sandbox() as sandbox:
            record = ask_of(cell, sandbox)
        application.shutdown()
    if used:
        assert Outcome.FAILED is record.outcome
        assert "no credentials: rows that were used: it was to find 0 rows" in str(record.reason)
    else:
        # Later credentials may get a page before they are refused, which this application does not know.
        assert "no credentials" not in str(record.reason)


@pytest.mark.parametrize(("asked", "done"), [("kept", "each-request"), ("each-request", "kept")])
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_another_connection_than_was_asked_for_is_no_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str, asked: str, done: str
) -> None:
    """The database reports whether there is a connection between requests."""
    at = {"op": "read", "sign_in": "anonymous", "transport": "plaintext", "storage": "plaintext"}
    (cell,) = cells(tmp_path, VARIED.format(**at, database=database) + f'connection = ["{asked}"]')
    spoiled(monkeypatch, "embedded", "task.json", f'"connection": "{asked}"', f'"connection": "{done}"')
    with Sandbox() as sandbox:
        found = proven(cell, sandbox)
    assert Outcome.FAILED is found.outcome
    assert "rows that were used: it was to find 3 rows" in str(found.reason)


def test_a_server_without_a_table_is_no_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = {"op": "read", "sign_in": "anonymous", "transport": "plaintext", "storage": "aes-256-gcm"}
    (cell,) = cells(tmp_path, VARIED.format(**at, database="sqlite"))
    spoiled(monkeypatch, "embedded", "task.json", r'"rows": \{.*\}, "operations"', '"rows": null, "operations"')
    with Sandbox() as sandbox:
        found = proven(cell, sandbox)
    assert Outcome.FAILED is found.outcome
    assert str(found.reason).endswith("did not create its table of rows")


def test_pages_that_the_application_did_not_give_are_no_chunk() -> None:
    """A web server that has the page itself leaves the others idle."""
    busy = ("web", "application", "database")
    work = Work((), {}, None, components=dict.fromkeys(busy, 1), busy=busy)
    spent = {name: ComponentRecord(cpu_ns=int(name == "web")) for name in busy}
    chunk = ChunkRecord(operations=1, cpu_ns=1, wall_ns=1, observed=Observed(components=spent))
    assert "application and database used no CPU time" in str(work.contradiction(chunk))


def test_accounts_and_rows_are_not_in_one_postgresql(tmp_path: Path) -> None:
    at = {"op": "read", "sign_in": "basic", "transport": "tls-1.3", "storage": "aes-256-gcm", "database": "postgresql"}
    (cell,) = cells(tmp_path, VARIED.format(**at) + 'sign-in-password-hash = ["sha-1"]', "httpd")
    with Sandbox() as sandbox:
        found = proven(cell, sandbox)
    assert Outcome.UNSUPPORTED is found.outcome
    assert "`sign-in-store=file`" in str(found.reason)
