"""A whole request: a family made of others, and one server that signs in, speaks TLS and has a table."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from tollbar import families, plan, results, study, workloads
from tollbar.beds.sandbox import Sandbox
from tollbar.errors import TollbarError
from tollbar.families import Degree, Family, MadeOf, Standing, Value, at_defaults
from tollbar.plan import Cell
from tollbar.records import ChunkRecord, ComponentRecord, Observed, Outcome
from tollbar.workloads import Given, Work

STACK = """
question = "What does a whole request cost?"
family = "stack"
choices = {choices}
beds = ["{bed}"]

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


def cells(tmp_path: Path, vary: str, bed: str = "embedded", choices: str = '["page"]') -> tuple[Cell, ...]:
    path = tmp_path / "study.toml"
    path.write_text(STACK.format(vary=vary, bed=bed, choices=choices))
    return plan.make(study.load([str(path)]), seed=3).studies[0].cells


# What the family says.


def every_cell() -> list[dict[str, Value]]:
    names = ("sign-in", "transport", "storage")
    values = [whole().settings[name].values or () for name in names]
    given = {"choice": "page", "op": "read", "bed": "embedded", "provider": "libcrypto"}
    return [dict(at_defaults(whole(), {**given, **dict(zip(names, at, strict=True))})) for at in product(*values)]


def test_a_cell_is_worth_what_the_least_of_its_parts_is() -> None:
    """Of those that protect something; its strength is the least, and its threats are those of all."""
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
    """What one part knows of another follows the cell."""
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
    """Each means something in some cell; what a part has from the whole is no setting."""
    names = set(whole().settings)
    assert {"sign-in", "sign-in-password-hash", "transport-certificate", "storage-rows", "bytes"} <= names
    assert not {"sign-in-transport", "sign-in-bytes", "transport-bytes", "storage-rows-per-commit"} & names
    used = {name for op in whole().operations for at in every_cell() for name in at_defaults(whole(), {**at, "op": op})}
    # Those of another value than the default of a setting.
    later = {"transport-dh-parameters", "sign-in-hit-share", "sign-in-time-to-live", "sign-in-cache-entries"}
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
    "default": ('family = "tls"\ndefault = "tls-1.4"', "none of its choices"),
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
    """It can be judged when these families have changed."""
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


@pytest.mark.parametrize(("bed", "op", "sign_in", "transport", "storage", "database"), SERVED)
def test_a_whole_request_is_proved_by_each_of_its_parts(
    tmp_path: Path, bed: str, op: str, sign_in: str, transport: str, storage: str, database: str
) -> None:
    """Right users are given the page; wrong ones, wrong rows and wrong connections are refused."""
    vary = VARIED.format(op=op, sign_in=sign_in, transport=transport, storage=storage, database=database)
    if sign_in == "basic":
        vary += '\nsign-in-store = ["file"]\nsign-in-password-hash = ["sha-1"]'
    if op == "read":
        vary += "\nstorage-rows = [200]"
    if sign_in == "api-key":
        vary += '\nsign-in-verified = ["cached"]\nsign-in-accounts = [20000]'
    (cell,) = cells(tmp_path, vary, bed)
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
            front = {"web"} if bed == "embedded" else {"web", "application"}
            assert front | behind == set(work.components) == set(work.busy)


def test_a_database_without_the_choice_is_a_reason(tmp_path: Path) -> None:
    (cell,) = cells(tmp_path, VARIED.format(op="read", sign_in="form", transport="plaintext",
                                            storage="pgp-sym-encrypt", database="sqlite"))  # fmt: skip
    with Sandbox() as sandbox:
        found = proven(cell, sandbox)
    assert Outcome.UNSUPPORTED is found.outcome
    assert "has no pgp-sym-encrypt" in str(found.reason)


# Servers that do not do their part.


def spoiled(monkeypatch: pytest.MonkeyPatch, bed: str, file: str, taken: str, put: str) -> None:
    """One line of a bed's template is another one."""
    from tollbar.beds import configuration

    made = configuration._Filling.file

    def other(self: object, name: str) -> str:
        text = made(self, name)  # type: ignore[arg-type]
        if name == file and self._folder.name == bed:  # type: ignore[attr-defined]
            assert re.search(taken, text), text
            return re.sub(taken, put, text)
        return text

    monkeypatch.setattr(configuration._Filling, "file", other)


def test_a_server_without_a_table_is_no_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = {"op": "read", "sign_in": "anonymous", "transport": "plaintext", "storage": "aes-256-gcm"}
    (cell,) = cells(tmp_path, VARIED.format(**at, database="sqlite"))
    spoiled(monkeypatch, "embedded", "task.json", r'"rows": \{.*\}, "operations"', '"rows": null, "operations"')
    with Sandbox() as sandbox:
        found = proven(cell, sandbox)
    assert (Outcome.FAILED, "has made no table") == (found.outcome, str(found.reason)[-17:])


def test_pages_that_the_application_did_not_give_are_no_chunk() -> None:
    """A web server that has the page itself leaves the others idle."""
    busy = ("web", "application", "database")
    work = Work((), {}, None, components=dict.fromkeys(busy, 1), busy=busy)
    spent = {name: ComponentRecord(cpu_ns=int(name == "web")) for name in busy}
    chunk = ChunkRecord(operations=1, cpu_ns=1, wall_ns=1, observed=Observed(components=spent))
    assert "no CPU time was used by application and database" in str(work.contradiction(chunk))


def test_accounts_and_rows_are_not_in_one_postgresql(tmp_path: Path) -> None:
    """The reason says what to ask instead."""
    at = {"op": "read", "sign_in": "basic", "transport": "tls-1.3", "storage": "aes-256-gcm", "database": "postgresql"}
    (cell,) = cells(tmp_path, VARIED.format(**at) + 'sign-in-password-hash = ["sha-1"]', "httpd")
    with Sandbox() as sandbox:
        found = proven(cell, sandbox)
    assert Outcome.UNSUPPORTED is found.outcome
    assert "`sign-in-store=file`" in str(found.reason)
