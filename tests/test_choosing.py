"""Ranking: qualified candidates by cost with shared places, the others with their reasons."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import pytest

import share
from builders import Outcome, lognormal, measured, row, study, study_run
from tollbar.analysis import Toll, Verdict
from tollbar.analysis.decisions import jointly
from tollbar.catalog.families import Standing, Value
from tollbar.core.intervals import Moments
from tollbar.core.records import Chunk
from tollbar.decide.choose.answered import Answered, place_name
from tollbar.decide.choosing import Choosing, choose, ranked
from tollbar.decide.rulings import Wanted, wanted
from tollbar.results import Row, StudyRun

TODAY = date(2026, 11, 23)
# Probe times of a busy core.
BUSY_NS = (100_000.0, 100_000.0)
# Each digest's cost relative to the null choice's.
COSTS = {"sha-256": 4.0, "sha-512": 4.004, "sha3-256": 9.0, "blake3": 1.5, "md5": 3.0, "sha-224": 4.0}


def digests(costs: Mapping[str, float] = COSTS, sizes: tuple[int, ...] = (4096,)) -> StudyRun:
    """Return a run of digests at these costs, and one more digest that failed."""
    rows = []
    for size in sizes:
        true = [1.0, 1.0, *costs.values()]
        base, repeat, *found = measured(true, lognormal(0.003), random.Random(size), blocks=20)
        at = {"op": "hash", "bytes": size}
        rows.append(row({"choice": "none", **at}, base, repeats_ns=repeat, standing=Standing.NULL))
        against = rows[-1].key
        rows += [row({"choice": name, **at}, cost, against=against) for name, cost in zip(costs, found, strict=True)]
        rows.append(
            row({"choice": "sha-384", **at}, against=against, outcome=Outcome.FAILED, reason="the runner fell over")
        )
    return study_run(rows, (20,), study(blocks=20))


def asked(family: str, *policies: str, threats: tuple[str, ...] = (), on: str | None = None) -> Wanted:
    return wanted(family, policies, threats, on, today=TODAY)


def names(found: Choosing) -> list[tuple[int, list[str]]]:
    """Return the numbers and choices of the ranks."""
    return [(rank.number, [str(one.coordinates["choice"]) for one in rank.candidates]) for rank in found.ranks]


def test_what_qualifies_stands_from_the_cheapest_and_shares_places() -> None:
    (found,) = choose(asked("digest", "asvs-level-2-5.0.0"), digests(), {})
    assert [(1, ["blake3"]), (2, ["sha-256", "sha-512"]), (4, ["sha3-256"])] == [
        (number, sorted(some)) for number, some in names(found)
    ]
    failed = [(one.coordinates["choice"], one.unmeasured) for one in found.unpriced]
    assert [("sha-384", "the runner fell over")] == failed
    assert {"provider": "openssl 3.0.19", "op": "hash", "bytes": 4096} == dict(found.where)


@pytest.mark.parametrize("costs", [{"chacha20-poly1305": 1.0, "aes-128-gcm": 1.002}, {"aes-128-gcm": 1.0}])
def test_the_default_is_first_of_those_that_share_its_place(costs: Mapping[str, float]) -> None:
    """The order within a place is noise; ratios are still relative to the cheapest."""
    every = {"aes-256-gcm": 1.001, "aes-256-cbc": 4.0, **costs}
    found, again, *others = measured([1.0, 1.0, *every.values()], lognormal(0.003), random.Random(5), blocks=20)
    at = {"op": "encrypt", "bytes": 4096}
    rows = [row({"choice": "none", **at}, found, repeats_ns=again, standing=Standing.NULL)]
    rows += [row({"choice": name, **at}, cost, against=rows[0].key) for name, cost in zip(every, others, strict=True)]
    (place,) = choose(asked("cipher"), study_run(rows, (20,), study(blocks=20)), {})
    first = place.ranks[0].candidates
    assert "aes-128-gcm" == first[0].coordinates["choice"]
    assert {"aes-128-gcm", "aes-256-gcm", *costs} == {one.coordinates["choice"] for one in first}


def test_costs_are_compared_where_places_are_asked_for() -> None:
    """An answer shows a few of a run's dozens of places, and only those need comparisons."""
    (found,) = choose(asked("digest"), digests(), {})
    compared: list[Row] = []

    def compare(one: Row, other: Row) -> Toll:
        compared.append(one)
        return found.compare(one, other)

    watched = replace(found, compare=compare)
    assert "blake3" == watched.qualifies[0].coordinates["choice"]
    assert not compared
    assert found.ranks == watched.ranks
    assert 2 * (len(watched.priced) - 1) > len(compared)


@pytest.mark.parametrize(
    ("dearer", "places"),
    [
        # Verdicts between pairs, by name: pairs that are absent were not distinguished.
        ({"b": "a", "c": "a b"}, [(1, "a"), (2, "b"), (3, "c")]),
        ({"b": "a"}, [(1, "ac"), (3, "b")]),
        ({"b": "a", "c": "a"}, [(1, "a"), (2, "bc")]),
        ({"a": "b", "c": "a b"}, [(1, "b"), (2, "a"), (3, "c")]),
        ({"a": "c", "b": "a c"}, [(1, "c"), (2, "a"), (3, "b")]),
        ({"b": "a c", "c": "a"}, [(1, "a"), (2, "c"), (3, "b")]),
        # Not lowest by its own cost, yet below the lowest in the same block; and three that each save against the next.
        ({"a": "c", "c": "b"}, [(1, "ba"), (3, "c")]),
        ({"a": "b", "b": "c", "c": "a"}, [(1, "ca"), (3, "b")]),
        ({}, [(1, "abc")]),
    ],
)
def test_a_place_is_by_what_is_judged_side_by_side(dearer: Mapping[str, str], places: list[tuple[int, str]]) -> None:
    """The first place has the cheapest and all that were not distinguished from it, whatever their own costs are."""
    (found,) = choose(asked("digest"), digests(), {})
    three = [
        replace(found.priced[0], row=replace(one.row, coordinates={**one.row.coordinates, "choice": name}))
        for name, one in zip("abc", found.priced, strict=False)
        if one.row
    ]

    def compare(one: Row, other: Row) -> Toll:
        costs, saves = other.choice in dearer.get(one.choice, ""), one.choice in dearer.get(other.choice, "")
        return Toll(one, other, "cpu", verdict=Verdict.COSTS if costs else Verdict.SAVES if saves else Verdict.UNCLEAR)

    said = [
        (rank.number, "".join(one.row.choice for one in rank.candidates if one.row)) for rank in ranked(three, compare)
    ]
    assert places == said


def test_the_cost_of_the_cheapest_is_wider_where_pairs_pick_it() -> None:
    (found,) = choose(asked("digest"), digests(), {})
    least, second, *_ = found.priced

    def compare(one: Row, other: Row) -> Toll:
        saves = one is second.row and other is least.row
        return Toll(one, other, "cpu", verdict=Verdict.SAVES if saves else Verdict.COSTS)

    by_pairs = replace(found, compare=compare)
    first = by_pairs.ranks[0].candidates[0]
    assert first.row is second.row
    assert first.cost is not None
    assert second.cost is not None
    assert jointly(second.cost, len(found.priced)) == first.cost != second.cost
    assert by_pairs.beside_cheapest(second) is None
    assert by_pairs.beside_cheapest(least) is not None


def test_what_costs_least_rests_on_verdicts_that_hold_together() -> None:
    """Verdicts are corrected for the number of candidates, so some stay open; the interval is uncorrected."""
    said = set()
    for step in range(20):
        near = {"sha-256": 1.0, "sha-512": 1.030 + 0.0004 * step, "sha3-256": 1.5, "sha3-512": 1.5, "blake3": 1.5}
        (found,) = choose(asked("digest"), digests(near), {})
        (one,) = (one for one in found.priced if one.coordinates["choice"] == "sha-512")
        first, toll = found.ranks[0].candidates[0], found.beside_cheapest(one)
        assert toll is not None
        assert toll.ratio is not None
        assert one.row is not None
        assert first.row is not None
        assert 0.96 == pytest.approx(toll.ratio.confidence)
        said.add((found.alone(one.row, first.row).verdict, toll.verdict))
    assert (Verdict.COSTS, Verdict.UNCLEAR) in said
    assert (Verdict.UNCLEAR, Verdict.COSTS) not in said


def test_what_no_block_holds_beside_the_cheapest_stands_by_its_cost() -> None:
    """The two have no verdict: only their separate costs are known, one a thousand times the other."""
    (found,) = choose(asked("digest"), digests(), {})

    def compare(one: Row, other: Row) -> Toll:
        return Toll(
            one, other, "cpu", verdict=Verdict.NOT_MEASURED if "c" in (one.choice, other.choice) else Verdict.FREE
        )

    three = [
        replace(one, row=replace(one.row, coordinates={**one.row.coordinates, "choice": name}))
        for name, one in zip("abc", found.priced, strict=False)
        if one.row
    ]
    said = [(rank.number, [one.row.choice for one in rank.candidates if one.row]) for rank in ranked(three, compare)]
    assert [(1, ["a", "b"]), (3, ["c"])] == said


def test_costs_of_one_place_are_of_the_same_moments() -> None:
    """Costs of one place use all samples as soon as one candidate was measured only with neighbours."""
    (found,) = choose(asked("digest"), noisy(digests(), "blake3"), {})
    assert {Moments.ALL} == {one.cost.moments for one in found.priced if one.cost}
    assert "blake3" == found.priced[0].coordinates["choice"]
    (quiet,) = choose(asked("digest"), digests(), {})
    assert {Moments.QUIET} == {one.cost.moments for one in quiet.priced if one.cost}


def noisy(of: StudyRun, *choices: str) -> StudyRun:
    """Return the run with cells whose core was never quiet, which made them cost 1.5 times as much."""

    def busy(chunk: Chunk) -> Chunk:
        cpu_ns = {who: int(1.5 * spent) for who, spent in chunk.cpu_ns.items()}
        return replace(chunk, cpu_ns=cpu_ns, probes_ns=BUSY_NS)

    rows = [
        replace(one, trials=tuple(replace(trial, chunks=tuple(map(busy, trial.chunks))) for trial in one.trials))
        if one.choice in choices
        else one
        for one in of.rows
    ]
    return replace(of, rows=tuple(rows))


def test_what_does_not_qualify_has_its_rules_and_its_cost() -> None:
    (found,) = choose(asked("digest", "asvs-level-2-5.0.0"), digests(), {})
    said = [(one.coordinates["choice"], [r.rule.id for r in one.broken if r.rule]) for one in found.refused]
    assert [("md5", ["11.4.1-digest", "11.2.3"]), ("sha-224", ["11.2.3"])] == said
    for one in found.refused:
        assert one.cost is not None
        assert all(reason.rule and reason.rule.clause for reason in one.broken)
    assert () == found.nearest


def test_costs_are_compared_within_one_place() -> None:
    """64 bytes and 4 KiB are never compared; given coordinates exclude the others."""
    found = choose(asked("digest"), digests(sizes=(64, 4096)), {})
    assert [64, 4096] == [one.where["bytes"] for one in found]
    assert {len(COSTS)} == {sum(len(rank.candidates) for rank in one.ranks) for one in found}
    (one,) = choose(asked("digest"), digests(sizes=(64, 4096)), {"bytes": 64})
    assert 64 == one.where["bytes"]


def stored(*places: Mapping[str, Value]) -> StudyRun:
    """Return a run of encrypted storage in which each place costs more than the one before."""
    rows: list[Row] = []
    for times, at in enumerate(places, 1):
        true = [times * one for one in (1.0, 1.0, 2.0, 4.0)]
        null, repeat, *costs = measured(true, lognormal(0.003), random.Random(times), blocks=20)
        rows.append(row({"choice": "plaintext", **at}, null, repeats_ns=repeat, standing=Standing.NULL))
        against = rows[-1].key
        for name, cost in zip(("aes-256-gcm", "pgp-sym-encrypt"), costs, strict=True):
            rows.append(row({"choice": name, **at}, cost, against=against))
    return study_run(rows, (20,), study(blocks=20))


def test_what_is_asked_makes_the_place() -> None:
    inserts = [{"op": "insert", "rows-per-commit": 250, "durability": one} for one in ("off", "flushed")]
    reads = [{"op": "read", "rows": 10000}, {"op": "read", "rows": 10000, "server": "postgresql", "channel": "tcp"}]
    found = choose(asked("storage"), stored(*inserts, *reads), {})
    assert [*inserts, *reads] == [{n: v for n, v in one.where.items() if n != "provider"} for one in found]
    for one in found:
        assert [["aes-256-gcm"], ["pgp-sym-encrypt"]] == [some for _, some in names(one)]


def test_what_a_setting_means_nothing_to_stands_beside_each_of_its_values() -> None:
    """Padding decides nothing by itself, and a curve has none; where a policy rules on it, it is chosen too."""
    cells: list[dict[str, Value]] = [{"choice": "rsa-3072", "padding": one} for one in ("pkcs1", "pss")]
    cells.append({"choice": "ed25519"})
    null, repeat, *costs = measured([1.0, 1.0, 8.0, 9.0, 2.0], lognormal(0.003), random.Random(3), blocks=20)
    at: dict[str, Value] = {"op": "sign", "bytes": 32}
    rows = [row({"choice": "none", **at}, null, repeats_ns=repeat, standing=Standing.NULL)]
    rows += [row({**at, **cell}, cost, against=rows[0].key) for cell, cost in zip(cells, costs, strict=True)]
    run = study_run(rows, (20,), study(blocks=20))
    found = choose(asked("signature"), run, {})
    assert ["pkcs1", "pss"] == [one.where["padding"] for one in found]
    assert [[(1, ["ed25519"]), (2, ["rsa-3072"])]] * 2 == [names(one) for one in found]
    of = Answered(asked("signature"), found, (), "from a run")
    assert 2 == len({place_name(of, one) for one in found})
    (ruled_on,) = choose(asked("signature", "tr-02102"), run, {})
    assert 3 == sum(len(some) for some in (ruled_on.qualifies, ruled_on.refused, ruled_on.unsaid))


def of_cells(at: Mapping[str, Value], *cells: tuple[Mapping[str, Value], float]) -> StudyRun:
    """Return a run of these cells at these costs relative to the null choice's."""
    true = [1.0, 1.0, *(cost for _, cost in cells)]
    null, repeat, *costs = measured(true, lognormal(0.003), random.Random(3), blocks=20)
    rows = [row({"choice": "none", **at}, null, repeats_ns=repeat, standing=Standing.NULL)]
    rows += [row({**at, **cell}, cost, against=rows[0].key) for (cell, _), cost in zip(cells, costs, strict=True)]
    return study_run(rows, (20,), study(blocks=20))


@pytest.mark.parametrize("policies", [(), ("tr-02102",)])
def test_what_is_done_elsewhere_has_a_place_of_its_own(policies: tuple[str, ...]) -> None:
    """A prehashed signature and one with its own hash are different work and are never ranked together."""
    digests: list[tuple[Mapping[str, Value], float]] = [
        ({"choice": "ecdsa-p256", "digest": "none"}, 7.0),
        ({"choice": "ecdsa-p256", "digest": "sha-256"}, 8.0),
        ({"choice": "ecdsa-p256", "digest": "sha-512"}, 9.0),
        ({"choice": "ed25519"}, 12.0),
    ]
    whole, raw = choose(asked("signature", *policies), of_cells({"op": "sign", "bytes": 32}, *digests), {})
    every = (*whole.qualifies, *whole.refused, *whole.unsaid)
    assert {"sha-256", "sha-512", None} == {one.coordinates.get("digest") for one in every}
    assert "none" == raw.where["digest"]
    assert [bool(policies)] == [bool(one.missing) for one in (*raw.qualifies, *raw.unsaid)]


HANDSHAKES = [
    ({"choice": "tls-1.3", "certificate": certificate, "resumption": one}, cost)
    for one, times in (("none", 8.0), ("ticket", 2.0))
    for certificate, cost in (("ecdsa-p256", times), ("rsa-2048", 2 * times))
]


def test_how_it_is_done_is_not_chosen_unless_that_is_asked_about() -> None:
    """A resumed handshake is not ranked with a full one unless a threat depends on the session's state."""
    run = of_cells({"op": "connect", "server": "embedded"}, *HANDSHAKES)
    found = choose(asked("tls"), run, {})
    assert ["none", "ticket"] == [one.where["resumption"] for one in found]
    assert [2, 2] == [len(one.qualifies) for one in found]
    assert 1 == len(choose(asked("tls", threats=("key-theft=partly",)), run, {}))


def test_threats_come_before_costs() -> None:
    (found,) = choose(asked("digest", threats=("collision",)), digests(), {})
    assert ["md5"] == [one.coordinates["choice"] for one in found.refused]
    assert "two inputs with the same digest are found" in found.refused[0].broken[0].what
    (unsaid,) = found.unsaid
    assert "2^112" in unsaid.missing[0].what
    (in_part,) = choose(asked("digest", threats=("collision=partly",)), digests(), {})
    (one,) = [one for one in in_part.qualifies if one.coordinates["choice"] == "sha-224"]
    assert "2^112" in one.conditions["collision"]


def test_a_contradiction_is_of_the_policies_and_not_of_what_was_measured() -> None:
    """A run in which nothing meets both is no contradiction: SHA-512, unmeasured, would."""
    only = {"sha-256": 4.0, "sha3-256": 9.0}
    (found,) = choose(asked("digest", "cnsa-2.0-2024-12", "asvs-level-2-5.0.0"), digests(only), {})
    assert ["sha-384"] == [one.coordinates["choice"] for one in found.qualifies]
    assert () == found.contradictions


def test_the_cost_of_the_cheapest_of_ten_equals_covers() -> None:
    """The cheapest is the least of eight estimates: its own interval alone would cover in 85 % of cases."""
    equals = ("sha-224", "sha-256", "sha-384", "sha-512", "sha-512-256", "sha3-256", "sha3-512", "blake3")
    number = share.of(60, 400)
    covered = wrong = 0
    for seed in range(number):
        true = [0.01, 0.01, *(1.0 for _ in equals)]
        base, repeat, *found = measured(true, lognormal(0.012), random.Random(seed), blocks=12)
        at = {"op": "hash", "bytes": 4096}
        rows = [row({"choice": "none", **at}, base, repeats_ns=repeat, standing=Standing.NULL)]
        rows += [
            row({"choice": name, **at}, cost, against=rows[0].key) for name, cost in zip(equals, found, strict=True)
        ]
        (place,) = choose(asked("digest"), study_run(rows, (12,), study(blocks=12)), {})
        cost = place.priced[0].cost
        assert cost is not None
        covered += cost.low <= 100.0 <= cost.high
        wrong += len(place.ranks) > 1
    assert covered > 0.93 * number
    assert wrong / number < 0.04 + 2 * (0.04 * 0.96 / number) ** 0.5
