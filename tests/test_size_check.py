"""Checking a sized mix: the load client's requests, and equal moments on both sides."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import run
from size_lab import HANDSHAKE_TERM, HANDSHAKES, HASH_TERM, TODAY, handshakes, hashes, made, mix, sized
from tollbar import lab
from tollbar.analysis.so_far import so_far
from tollbar.catalog.families import Value
from tollbar.cli.size import _checked, _studies
from tollbar.core import machine
from tollbar.core.errors import TollbarError
from tollbar.core.intervals import FEWEST_BLOCKS
from tollbar.core.records import Chunk, ComponentRecord, LoadRecord, Trial
from tollbar.decide.size import size
from tollbar.decide.size.checked import Checked, checked, to_ask
from tollbar.decide.size.document import document
from tollbar.decide.size.sized import Sized
from tollbar.decide.size.words import size_answer
from tollbar.results import Run, StudyRun
from tollbar.study import plan
from tollbar.study.plan.batches import blocks

REQUEST: Mapping[str, Value] = {"choice": "session-cookie", "op": "request", "server": "embedded", "users": 8}
REQUEST_TERM = """
[term.requests]
rate   = "2000 /s"
family = "web-auth"
choice = "session-cookie"
op     = "request"
server    = "embedded"
"""
DATABASE_TERM = """
[term.database]
rate   = "50 /s"
family = "database-sign-on"
choice = "scram-sha-256"
off    = "nothing"
"""
QUIET_NS, BUSY_NS = 24_000.0, 33_000.0


def _answered(one: StudyRun, name: str, costs_ns: Mapping[str, float]) -> StudyRun:
    """Return the renamed study with throughput phases of these choices at these costs."""
    requests = 1000

    def in_phase(trial: Trial, choice: str) -> Trial:
        web = ComponentRecord(cpu_ns=round(costs_ns[choice] * requests))
        return replace(trial, load=LoadRecord(requests=requests, wall_ns=10**9, components={"web": web}))

    rows = [replace(row, trials=tuple(in_phase(one, row.choice) for one in row.trials)) for row in one.rows]
    return replace(one, rows=tuple(rows), study=replace(one.study, name=name))


def test_predicted_and_measured_stand_side_by_side(tmp_path: Path) -> None:
    of = mix(tmp_path, HANDSHAKE_TERM.format(rate=100, resumed=80) + HASH_TERM.format(rate=1, choice="sha-256"))
    found = sized(of, handshakes(), hashes({"sha-256": 7000.0}))
    (asked,) = to_ask(found)
    assert "term-handshakes" == asked.name
    words = {"tls-1.3", "plaintext", "op=connect", "server=nginx", "resumption=ticket", "resumed=80%"}
    assert {*words, "utilisation=60%", "client=apart"} <= {*asked.words}
    cells = {"full": {**HANDSHAKES["resumed"], "resumed": 80}, "bare": HANDSHAKES["bare"]}
    ran = made("tls", cells, {"full": 150_000.0, "bare": 40_000.0})
    side = checked(found, (asked,), run(_answered(ran, asked.name, {"tls-1.3": 170_000.0, "plaintext": 60_000.0})))
    first, second = side.terms
    assert first.sides is not None
    assert [0.011, 0.011, 0.011] == pytest.approx([first.predicted.estimate, *(side.estimate for side in first.sides)])
    assert (None, True) == (second.sides, "no server" in (second.reason or ""))
    assert side.total is not None
    assert 0.011 == pytest.approx(side.total.predicted.estimate)
    assert (
        "used × 1.00 of the predicted CPU time, both quiet: the two intervals overlap."
        in size_answer(found, side).headline
    )
    assert "Predicted and measured" in [one.title for one in size_answer(found, side).listings]
    assert document(found, side).check is not None


def test_what_is_taken_off_is_up_beside_its_term(tmp_path: Path) -> None:
    of = mix(tmp_path, HANDSHAKE_TERM.format(rate=100, resumed=80).replace("op ", 'server = "embedded"\nop '))
    there = {name: {**cell, "server": "embedded", "provider": "libcrypto"} for name, cell in HANDSHAKES.items()}
    found = sized(of, made("tls", there, dict.fromkeys(there, 1e5) | {"bare": 3e4}))
    (planned,) = plan.make(_studies(to_ask(found)), seed=1).studies
    assert {"tls-1.3", "plaintext"} == {cell.choice.name for cell in planned.cells}
    assert 2 == len(planned.cells)
    for batches in blocks(planned, 1, 3):
        assert [{cell.key for cell in planned.cells}] == [
            {visit.cell.key for visit in batch.visits} for batch in batches
        ]


def _beside_neighbours(quiet: Collection[int], chunks: int = 1) -> StudyRun:
    """Return requests of 10 µs, and 1.25 times as much next to a neighbour.

    In these blocks the first `chunks` chunks are quiet.
    """

    def told(trial: Trial, place: int, chunk: Chunk) -> Chunk:
        is_quiet = trial.block in quiet and place < chunks
        probes_ns = (QUIET_NS, QUIET_NS) if is_quiet else (BUSY_NS, BUSY_NS)
        cpu_ns = {name: int(ns * (1.0 if is_quiet else 1.25)) for name, ns in chunk.cpu_ns.items()}
        return replace(chunk, probes_ns=probes_ns, cpu_ns=cpu_ns)

    load = LoadRecord(requests=1000, wall_ns=10**9, components={"web": ComponentRecord(cpu_ns=12_000_000)})

    def noisy(trial: Trial) -> Trial:
        chunks = tuple(told(trial, place, chunk) for place, chunk in enumerate(trial.chunks))
        return replace(trial, chunks=chunks, load=load)

    one = made("web-auth", {"one": REQUEST}, {"one": 10_000.0})
    rows = [
        replace(row, trials=tuple(map(noisy, row.trials)), repeats=tuple(map(noisy, row.repeats))) for row in one.rows
    ]
    return replace(one, rows=tuple(rows))


def _side_by_side(tmp_path: Path, predicted: Run, measured: Run) -> tuple[Sized, Checked]:
    found = size(mix(tmp_path, REQUEST_TERM), [predicted], TODAY)
    asked = to_ask(found)
    (one,) = measured.studies
    named = replace(one, study=replace(one.study, name=asked[0].name))
    return found, checked(found, asked, replace(measured, studies=(named,)))


@pytest.mark.parametrize(
    ("of_prediction", "of_check", "moments"),
    [(12, 12, "quiet"), (12, 3, "noisy"), (3, 12, "noisy"), (12, 0, "noisy")],
)
def test_both_sides_are_of_the_same_moments(tmp_path: Path, of_prediction: int, of_check: int, moments: str) -> None:
    """If one side had too few quiet blocks both are noisy, and that is reported.

    Earlier runs of the machine define quiet: otherwise a check with a constant neighbour would be quiet by its own
    probes.
    """
    predicted, measured = (
        replace(run(_beside_neighbours(range(quiet))), best_probe_ns=QUIET_NS) for quiet in (of_prediction, of_check)
    )
    found, side = _side_by_side(tmp_path, predicted, measured)
    told = document(found, side).check
    assert told is not None
    assert told.total is not None
    assert told.total.measured is not None
    assert [moments == "noisy"] * 2 == [told.total.predicted.noisy, told.total.measured.noisy]
    ratio = told.total.measured.estimate / told.total.predicted.estimate
    # One of four chunks of a quiet block is quiet.
    cost = {blocks: 10_000 * (1.25 - 0.25 * blocks / 12 / 4) for blocks in (of_prediction, of_check)}
    expected = 1.0 if moments == "quiet" else cost[of_check] / cost[of_prediction]
    assert expected == pytest.approx(ratio, rel=1e-3)
    answer = size_answer(found, side)
    assert f"of the predicted CPU time, both {moments}:" in answer.headline
    table = next(one for one in answer.listings if one.title == "Predicted and measured").tables[0]
    assert (f"both {moments}" if moments == "noisy" else None) == table.rows[0][0].small


@pytest.mark.parametrize(("quiet", "is_lacking"), [(0, False), (FEWEST_BLOCKS - 1, True), (FEWEST_BLOCKS, False)])
def test_a_cell_by_itself_is_measured_until_it_had_quiet_blocks(quiet: int, is_lacking: bool) -> None:
    """The cell's repeat is the only one to compare with."""
    assert is_lacking == so_far(_beside_neighbours(range(quiet), chunks=4)).lacks_quiet_blocks


@pytest.mark.parametrize("of_role", [False, True])
def test_a_check_is_of_the_machine_that_was_sized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_role: bool
) -> None:
    """A check has all parts on one machine, so that of a server's part counts, too."""
    here, ran = machine.fingerprint(), run(_beside_neighbours(range(12)))
    web = {"address": "10.0.0.2", "host": "web", "fingerprint": here, "is_simulated": False}
    other = replace(ran, fingerprint=here, nodes={"web": web})
    if not of_role:
        other = replace(ran, fingerprint={**here, "cpu": "another"})
    found = size(mix(tmp_path, REQUEST_TERM), [other], TODAY)

    def begun(*_: Any, **__: Any) -> Any:
        raise AssertionError("begun")

    monkeypatch.setattr(lab, "begin", begun)
    with pytest.raises(TollbarError, match=r"web \(10.0.0.2\)" if of_role else r"another machine.*cpu: another / "):
        _checked(found, 40.0, tmp_path)


def test_what_no_load_client_asks_for_is_left_out_of_a_check(tmp_path: Path) -> None:
    at = {"op": "sign-on", "server": "postgresql", "channel": "socket", "pooler": "none", "scram-iterations": 4096}
    database = made("database-sign-on", {"one": {"choice": "scram-sha-256", **at}}, {"one": 3e6})
    requests = _beside_neighbours(range(12))
    found = sized(mix(tmp_path, REQUEST_TERM + 'off = "nothing"\n' + DATABASE_TERM), requests, database)
    (asked,) = to_ask(found)
    assert "term-requests" == asked.name
    (read,) = _studies([asked])
    assert "web-auth" == read.family.name
    side = checked(found, (asked,), run(replace(requests, study=replace(requests.study, name=asked.name))))
    assert [None, "no load client can send its requests"] == [one.reason for one in side.terms]


def test_what_could_not_be_asked_says_why(tmp_path: Path) -> None:
    requests = _beside_neighbours(range(12))
    found = sized(mix(tmp_path, REQUEST_TERM), requests)
    (asked,) = to_ask(found)
    other = made("web-auth", {"one": {**REQUEST, "op": "sign-on"}}, {"one": 10_000.0})
    side = checked(found, (asked,), run(replace(other, study=replace(other.study, name=asked.name))))
    assert ("it was not measured in this check", None) == (side.terms[0].reason, side.total)
