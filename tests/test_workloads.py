"""Workloads: the workload of a cell, and the general ones for families without their own."""

from __future__ import annotations

import pytest

from tollbar import study
from tollbar.catalog import families
from tollbar.core.records import ChunkRecord, Outcome
from tollbar.lab import measure, workloads
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import Work
from tollbar.lab.workloads.by_family.storage import CHOICES, EMBEDDED
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

ALONE = """
question  = "What does a hash cost?"
family    = "digest"
providers = ["libcrypto"]
choices   = ["none", "sha-256"]
baseline  = "none"
"""
SERVED = (
    ALONE
    + """
servers = ["embedded"]
[load]
users   = [2]
request = { get = "/op/digest/{choice}?bytes={bytes}" }
"""
)
TLS = """
question  = "What does TLS cost?"
family    = "tls"
servers      = ["embedded"]
choices   = ["plaintext", "tls-1.3"]
load      = { request = { get = "/bytes/{bytes}" } }
"""


def cells(text: str) -> tuple[Cell, ...]:
    """Return the cells of a study."""
    (one,) = plan.make([study.read("some", text, where="some.toml")], seed=1).studies
    return one.cells


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ALONE, "tollbar.lab.workloads.operation"),
        (SERVED, "tollbar.lab.workloads.request"),
        (TLS, "tollbar.lab.workloads.by_family.tls"),
    ],
)
def test_a_cell_has_its_family_s_workload_or_a_general_one(text: str, expected: str) -> None:
    assert {expected} == {type(workloads.of(cell)).__module__ for cell in cells(text)}


def test_an_operation_behind_a_request_is_proved_as_one_alone_is() -> None:
    with Sandbox() as sandbox:
        none, sha_256 = measure.prove(cells(SERVED), 1, sandbox=sandbox)
    assert (Outcome.OK, None, 0) == (none.outcome, none.reason, none.known_answers)
    assert (Outcome.OK, None) == (sha_256.outcome, sha_256.reason)
    alone = list(measure.prove(cells(ALONE), 1))[1]
    assert alone.known_answers == sha_256.known_answers > 0
    assert {*alone.refused, "a path that is not there"} == {*sha_256.refused}


def test_a_server_that_performs_nothing_is_unsupported() -> None:
    """nginx serves files, and performs no operation of a provider."""
    with Sandbox() as sandbox:
        proven = list(measure.prove(cells(SERVED.replace("embedded", "nginx")), 1, sandbox=sandbox))
    assert {Outcome.UNSUPPORTED} == {one.outcome for one in proven}
    words = ("does not perform operations of libcrypto", "not available here")
    assert all(any(word in (one.reason or "") for word in words) for one in proven)


def test_a_cell_is_shown_without_being_started() -> None:
    cell = cells(TLS)[-1]
    shown = workloads.of(cell).shown(cell, 1)
    assert "ADDRESS:PORT" == shown.task["load"]["address"]
    assert "tls-1.3" in (shown.configuration or "")
    assert "PRIVATE KEY" not in f"{shown}"


def test_what_a_runtime_does_between_chunks_is_observed() -> None:
    said = {"operations": 3, "cpu_ns": 900, "wall_ns": 1000, "observed": {"background_ns": 60}}
    work = Work((), {}, None)
    assert {("", "background"): 60} == work.observed(ChunkRecord.model_validate(said))
    assert {} == work.observed(ChunkRecord.model_validate({**said, "observed": {}}))


def test_choices_of_one_server_are_those_that_no_other_database_has() -> None:
    for name, choice in families.family("storage").choices.items():
        having = {database for database, choices in CHOICES.items() if name in choices}
        assert not choice.servers or having == {*choice.servers}
        assert choice.servers or having & {*EMBEDDED}
