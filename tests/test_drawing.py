"""Drawn batches, compared exactly.

A resumed run draws its batches again, with whatever version is installed by then; a batch that differs would be
measured twice or never.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from builders import claim
from tollbar import study
from tollbar.catalog.families import Value
from tollbar.core.errors import TollbarError
from tollbar.study import plan
from tollbar.study.plan import StudyPlan, batches
from tollbar.study.plan.batches import blocks
from tollbar.study.plan.cells import Cell
from tollbar.study.plan.pairs import claimed, contrasted, tabled

SMALL = """
question  = "?"
family    = "digest"
choices   = ["none", "md5", "sha-1", "sha-256", "blake3"]
providers = ["rustcrypto", "aws-lc"]
baseline  = "none"
[vary]
bytes = ["64 B", "1 KiB"]
[[leave-out]]
where   = { choice = "md5", provider = "aws-lc", bytes = "64 B" }
because = "asked"
[[claim]]
says   = "SHA-256 costs twice as much as SHA-1."
of     = { choice = "sha-256" }
over   = { choice = "sha-1" }
metric = "cost"
ratio  = 2
[[claim]]
says   = "The source's baseline: 1.00"
of     = { choice = "md5", bytes = "1 KiB" }
over   = { choice = "md5", bytes = "1 KiB" }
metric = "cost"
ratio  = 1
[[table]]
title   = "By length"
rows    = "choice"
columns = "bytes"
over    = { choice = "sha-1" }
where   = { provider = "rustcrypto", op = "hash" }
"""
# Two compared baselines, and more cells than fit into a block.
WIDE = """
question = "?"
family   = "digest"
choices  = ["md5", "sha-1", "sha-224", "sha-256", "sha-384", "sha-512", "sha3-256"]
providers = ["rustcrypto"]
baseline = "sha-256"
[vary]
bytes    = ["64 B", "1 KiB", "16 KiB"]
[[claim]]
says   = "Sixteen times the bytes cost six times as much."
of     = { choice = "sha-256", bytes = "1 KiB" }
over   = { choice = "sha-256", bytes = "64 B" }
metric = "cost"
ratio  = 6
"""
# The lookup of a digest means nothing to the second provider.
FETCHED = """
question  = "?"
family    = "digest"
choices   = ["none", "sha-256"]
providers = ["libcrypto", "rustcrypto"]
baseline  = "none"
[vary]
threads = [1, 2]
fetch   = ["beforehand", "each-time"]
"""
CALLS = """
question  = "?"
family    = "rsa-api"
choices   = ["key-cached"]
providers = ["libcrypto"]
baseline  = "key-cached"
[vary]
op      = ["sign"]
call    = ["evp", "low-level"]
context = ["new", "reused"]
"""


@cache
def planned(text: str) -> StudyPlan:
    (one,) = plan.make([study.read("small", text, where="small.toml")], seed=4).studies
    return one


def name(cell: Cell) -> str:
    return "/".join(str(cell.coordinates[one]) for one in ("choice", "provider", "bytes"))


def digest(value: object) -> str:
    """Return a short digest and print the value, so that `git diff` shows a change."""
    text = json.dumps(value)
    print(text)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("text", "seed", "expected"),
    [(SMALL, 7, "fd20f103c55f581c"), (SMALL, 8, "6fedbc24db173076"), (WIDE, 7, "4bcddce7ee3ab76b")],
)
def test_the_batches_of_a_seed_are_these(text: str, seed: int, expected: str) -> None:
    one = planned(text)
    found = [
        [batch.study, batch.block, batch.number, [[name(v.cell), v.repeat, v.block, v.batch] for v in batch.visits]]
        for block in blocks(one, seed, 6)
        for batch in block
    ]
    assert expected == digest(found)


# All cells are compared with one, which also meets its claim's cells.
CROWDED = """
question  = "?"
family    = "digest"
choices   = ["none", "md5", "sha-1", "sha-256", "blake3"]
providers = ["rustcrypto", "aws-lc"]
baseline  = { choice = "md5", bytes = "1 B" }
[vary]
op    = ["hash"]
bytes = ["1 B", "2 B", "3 B", "4 B", "5 B"]
[[claim]]
says   = "SHA-256 costs twice as much as MD5 of one byte."
of     = { choice = "sha-256" }
over   = { choice = "md5", bytes = "1 B" }
metric = "cost"
ratio  = 2
"""


@pytest.mark.parametrize("text", [SMALL, WIDE, FETCHED, CROWDED])
def test_a_crowd_is_drawn_from_like_a_few(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at the first of each kind draws the same batches as looking at all cells."""
    drawn = []
    for crowd in (10**9, 0, 2):
        monkeypatch.setattr(batches, "CROWD", crowd)
        drawn.append([[*blocks(planned(text), seed, 8)] for seed in range(20)])
    assert drawn[0] == drawn[1]
    assert drawn[0] == drawn[2]


def test_what_could_not_be_proved_has_no_repeat_for_its_kind() -> None:
    one = planned(SMALL)
    struck = next(cell.key for cell in one.cells if name(cell) == "md5/rustcrypto/64")
    repeats = [
        {name(visit.cell) for batch in next(blocks(one, 7, 1, excluded)) for visit in batch.visits if visit.repeat}
        for excluded in ((), [("small", struck)], [("other", struck)])
    ]
    assert repeats[0] == repeats[2]
    assert {"md5/rustcrypto/64"} == repeats[0] - repeats[1]
    assert {"sha-1/rustcrypto/64"} == repeats[1] - repeats[0]


def test_the_pairs_of_a_study_are_these() -> None:
    one = planned(SMALL)
    first, second = one.study.claims
    places = [(name(of), name(over), dict(at)) for of, over, at in claimed(first, one.cells)]
    assert [
        ("sha-256/rustcrypto/64", "sha-1/rustcrypto/64"),
        ("sha-256/rustcrypto/1024", "sha-1/rustcrypto/1024"),
        ("sha-256/aws-lc/64", "sha-1/aws-lc/64"),
        ("sha-256/aws-lc/1024", "sha-1/aws-lc/1024"),
    ] == [(of, over) for of, over, _ in places]
    alike = {"provider": "rustcrypto", "op": "hash", "bytes": 64, "input": "memory", "cpu": "native"}
    assert alike == places[0][2]
    assert [("md5/rustcrypto/1024",) * 2, ("md5/aws-lc/1024",) * 2] == [
        (name(of), name(over)) for of, over, _ in claimed(second, one.cells)
    ]
    assert [(f"{of}/rustcrypto/{size}", [f"sha-1/rustcrypto/{size}"]) for of in CHOICES for size in (64, 1024)] == [
        (name(cell), [name(over) for over in overs]) for cell, overs in tabled(one.study.tables[0], one.cells)
    ]
    found = [(what, name(cell), name(other)) for what, cell, other in contrasted(one.study, one.cells)]
    both = [f"{choice}/{{}}/{size}" for choice in CHOICES[1:] for size in (64, 1024) if (choice, size) != ("md5", 64)]
    assert sorted(("provider", pair.format("aws-lc"), pair.format("rustcrypto")) for pair in both) == sorted(found)


CHOICES = ["none", "md5", "sha-1", "sha-256", "blake3"]


def test_cells_stand_where_the_study_says() -> None:
    one = planned(SMALL)
    keys = {cell.key: cell for cell in one.cells}
    assert 19 == len(keys)
    assert all(name(keys[cell.against or ""]) == name(cell).replace(cell.choice.name, "none", 1) for cell in one.cells)
    assert [("md5", 64, "asked")] == [(at["choice"], at["bytes"], because) for at, because in one.left_out]
    assert ((), "small") == (one.broken, one.study.name)
    whole = plan.Plan((one,), 4)
    assert {"rustcrypto", "aws-lc"} == set(whole.receipts)
    assert all(receipt["name"] and "path" in receipt for receipt in whole.receipts.values())
    assert ({}, {}, list(keys.values())) == (whole.servers, whole.broken, whole.cells)


def test_only_what_is_claimed_is_planned_where_that_is_asked_for() -> None:
    text = SMALL.replace("[vary]", '[measure]\ncells = "claimed"\n[vary]')
    one = planned(text)
    assert {"none", "md5", "sha-1", "sha-256"} == {cell.choice.name for cell in one.cells}
    assert {1024} == {cell.coordinates["bytes"] for cell in one.cells if cell.choice.name == "md5"}
    # Cells that the study left out keep their reason.
    assert {"asked": 1, "No claim is about it.": 5} == {
        because: sum(one == because for _, one in one.left_out) for _, because in one.left_out
    }


def test_a_study_that_is_asked_for_twice_is_refused() -> None:
    one = study.read("small", SMALL, where="small.toml")
    with pytest.raises(TollbarError) as caught:
        plan.make([one, one], seed=4)
    assert caught.value.what.startswith("the study `small` is given twice")


def test_a_combination_that_contradicts_itself_is_refused() -> None:
    text = """
question  = "?"
family    = "password-hash"
choices   = ["argon2id"]
providers = ["rustcrypto"]
[vary]
memory = ["8 KiB"]
lanes  = [4]
"""
    one = study.read("memory", text, where="memory.toml")
    with pytest.raises(TollbarError) as caught:
        plan.make([one], seed=4)
    assert "need" in caught.value.what
    assert ("memory", "change the values, or exclude the combination with `[[leave-out]]`") == (
        caught.value.where,
        caught.value.hint,
    )


SERVED = """
question = "?"
family   = "tls"
servers     = ["embedded"]
choices  = ["plaintext", "tls-1.3"]
baseline = "plaintext"
[load]
shape   = "open"
rates   = ["20 /s", "0.5 /s"]
client  = ["beside", "apart"]
request = { get = "/bytes/0" }
"""


def test_a_load_is_coordinates_of_its_cells() -> None:
    one = planned(SERVED)
    names = ("choice", "server", "rate", "client")
    assert {
        (choice, "embedded", rate, client)
        for choice in ("plaintext", "tls-1.3")
        for rate in (20, 0.5)
        for client in ("beside", "apart")
    } == {tuple(cell.coordinates[name] for name in names) for cell in one.cells}
    against = {cell.key: cell for cell in one.cells}
    assert all(
        [against[cell.against or ""].coordinates[name] for name in names[1:]]
        == [cell.coordinates[name] for name in names[1:]]
        for cell in one.cells
    )
    servers = plan.Plan((one,), 4).servers
    assert {"embedded": {"version", "program"}} == {name: {*said} for name, said in servers.items()}
    assert {f"embedded {servers['embedded']['version']}"} == {cell.server_version for cell in one.cells}


def test_two_cells_in_one_place_of_a_table_are_refused_with_both() -> None:
    text = SMALL.replace('where   = { provider = "rustcrypto", op = "hash" }', "")
    with pytest.raises(TollbarError) as caught:
        planned(text)
    assert ("small: table “By length”", "set `provider` in `table.where`") == (caught.value.where, caught.value.hint)
    assert caught.value.what.endswith(" have the same place; it must have one cell")


def test_what_would_tell_two_cells_apart_is_told_whole() -> None:
    text = SMALL.replace('where   = { provider = "rustcrypto", op = "hash" }', "").replace('"bytes"', '"op"')
    apart = {"aws-lc": "64 B", "rustcrypto": "1 KiB"}
    left = (
        f'[[leave-out]]\nwhere = {{ provider = "{p}", bytes = "{b}" }}\nbecause = "asked"\n' for p, b in apart.items()
    )
    with pytest.raises(TollbarError) as caught:
        planned(text + "".join(left))
    assert "set `provider` and `bytes` in `table.where`" == caught.value.hint


def test_a_setting_is_varied_only_where_its_provider_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a study of several settings that others read would drop thousands of combinations."""
    one = study.read("fetched", FETCHED, where="fetched.toml")
    grid, asked = plan.Grid(one, *plan.look_up(one.providers, ())), Counter[Value]()
    normal = grid.normal

    def counted(wanted: Mapping[str, Value]) -> dict[str, Value]:
        asked[wanted["provider"]] += 1
        return normal(wanted)

    monkeypatch.setattr(grid, "normal", counted)
    cells = Counter(cell.coordinates["provider"] for cell in grid.places())
    assert {"libcrypto": 8, "rustcrypto": 4} == cells == asked


def test_what_means_nothing_makes_no_second_cell() -> None:
    """The older call has no reusable context: of four combinations three are cells."""
    one = study.read("calls", CALLS, where="calls.toml")
    cells = [plan.key_of(cell.coordinates) for cell in plan.Grid(one, *plan.look_up(one.providers, ())).places()]
    assert 3 == len(cells) == len({*cells})


def test_a_receipt_has_the_name_that_rows_have() -> None:
    one = planned(SMALL)
    receipts = plan.Plan((one,), 4).receipts
    assert {cell.provider.spec: {"name", "path", *cell.provider.receipt} for cell in one.cells} == {
        spec: {*said} for spec, said in receipts.items()
    }
    assert {"rustcrypto", "aws-lc"} == {said["name"].split()[0] for said in receipts.values()}


def test_a_provider_that_the_study_has_not_is_refused() -> None:
    with pytest.raises(TollbarError) as caught:
        planned(
            SMALL.replace('where   = { choice = "md5", provider = "aws-lc"', 'where   = { provider = "libcrypto:x"')
        )
    assert ("no such provider: `libcrypto:x`", "small") == (caught.value.what, caught.value.where)
    assert "known: aws-lc, rustcrypto" == caught.value.hint


def test_what_is_left_out_of_several_providers_is_left_out_of_each() -> None:
    for words in ('["aws-lc", "rustcrypto"]', '["*"]'):
        one = planned(SMALL.replace('provider = "aws-lc", bytes = "64 B" }', f"provider = {words} }}"))
        assert "md5" not in {cell.choice.name for cell in one.cells}
        assert 4 == len(one.left_out)


def test_a_claim_stands_where_either_of_its_cells_does() -> None:
    cells: Any = [
        SimpleNamespace(coordinates={"choice": "a", "op": "sign"}),
        SimpleNamespace(coordinates={"choice": "b", "op": "sign", "context": "new"}),
    ]
    says = claim({"choice": "a"}, {"choice": "b"}, 2.0)
    assert [(*cells, {"op": "sign", "context": "new"})] == [*claimed(says, cells)]
