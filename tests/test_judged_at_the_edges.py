"""Judgements with missing parts or outliers."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import builders
from builders import claim, row, study_run, trial
from claim_lab import interval, results
from tollbar.analysis import ClaimVerdict, judge_study
from tollbar.analysis.comparison import Comparison
from tollbar.analysis.decisions import Terms, reach
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.noise import _at_least
from tollbar.analysis.tolls import Compared
from tollbar.core.metrics import BACKGROUND
from tollbar.core.records import LoadRecord, Outcome
from tollbar.decide import placing
from tollbar.results import Row


def unprobed(of: Row) -> Row:
    """Return the row as measured without a probe on the core."""
    made = tuple(replace(t, chunks=tuple(replace(c, probes_ns=None) for c in t.chunks)) for t in of.trials)
    return replace(of, trials=made, repeats=())


def test_where_no_core_was_probed_no_block_was_quiet() -> None:
    rows = [row({"choice": "none"}, [100.0] * 8, repeats_ns=[100.0] * 8), row({"choice": "x"}, [200.0] * 6)]
    assert 6 == Ledger(rows, Terms(0.03, 1)).compare(rows[1], rows[0]).quiet_blocks
    rows = [unprobed(one) for one in rows]
    assert 0 == Ledger(rows, Terms(0.03, 1)).compare(rows[1], rows[0]).quiet_blocks


def test_comparisons_that_were_expected_are_those_that_were_not() -> None:
    costs_ns = {"none": [100.0] * 8, "a": [210.0, 200.0] * 4, "b": [190.0, 201.0, 205.0] * 2, "c": [300.0]}
    rows = [row({"choice": name}, each, repeats_ns=each[::-1]) for name, each in costs_ns.items()]
    rows.append(row({"choice": "d"}, outcome=Outcome.FAILED, reason="it fell over"))
    pairs = [(one, other) for one in rows for other in rows]
    alone, together = Ledger(rows, Terms(0.03, 1)), Ledger(rows, Terms(0.03, 1))
    together.expect(pairs)
    assert [alone.compare(*pair) for pair in pairs] == [together.compare(*pair) for pair in pairs]


def test_cells_of_the_same_batches_share_their_frame() -> None:
    """So that which of their rounds meet is found once for all of them."""
    rows = [row({"choice": name}, [100.0] * blocks) for name, blocks in (("none", 8), ("a", 8), ("b", 6))]
    ledger = Ledger(rows, Terms(0.03, 1))
    none, a, b = (ledger.visits(one).frame for one in rows)
    assert none is a
    assert a is not b


def test_what_was_not_measured_has_no_quiet_blocks() -> None:
    """Otherwise the lab would continue until it had more of them."""
    rows = [row({"choice": "none"}, [100.0] * 8), row({"choice": "x"}, outcome=Outcome.FAILED, reason="it fell over")]
    toll = Ledger(rows, Terms(0.03, 1)).compare(rows[1], rows[0])
    assert (None, 0) == (toll.ratio, toll.quiet_blocks)


def test_noise_that_reaches_to_nothing_reaches_everywhere() -> None:
    assert [2.0, 4.0, math.inf] == [reach(interval(low, high)) for low, high in ((0.9, 2.0), (0.25, 2.0), (0.0, 2.0))]


def test_a_table_of_another_metric_says_nothing_of_the_cost_of_two_cells() -> None:
    rows = [row({"choice": "none"}, [100.0] * 8, repeats_ns=[100.0] * 8), row({"choice": "x"}, [200.0] * 8)]
    toll = Ledger(rows, Terms(0.03, 1)).compare(rows[1], rows[0])
    of: Any = SimpleNamespace(study=study_run(rows), noise=None, ledger=None, contrasts=(), tolls=())
    for metric, found in ((None, toll), ("memory", None)):
        of.tables = [SimpleNamespace(table=SimpleNamespace(metric=metric), cells=[SimpleNamespace(toll=toll)])]
        assert found == Compared(of).of(rows[1], rows[0])
        assert (found and found.turned) == Compared(of).of(rows[0], rows[1])


def test_two_servers_are_two_places_whatever_a_rule_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row({"choice": choice, "server": server}, [1.0]) for choice in ("a", "b") for server in ("nginx", "httpd")]
    wanted: Any = SimpleNamespace(family=SimpleNamespace(settings={}, parameters=()))
    monkeypatch.setattr(placing, "turned_on", lambda wanted: {"server"})
    places = placing.by_place(wanted, rows)
    assert [{"server": "nginx"}, {"server": "httpd"}] == [{"server": at["server"]} for at, _ in places]
    assert [["a", "b"]] * 2 == [[one.coordinates["choice"] for one in part] for _, part in places]


def test_only_what_has_an_interval_can_be_told() -> None:
    changes = [None, replace(interval(1.0, 2.0), high=math.inf), interval(1.0, 2.0)]
    pairs: Any = tuple(
        SimpleNamespace(changes={"ratio": one, "cost": None}, is_near=lambda of, above: False) for one in changes
    )
    found = Comparison("one", "other", (), (), {"study": pairs}, {})
    assert (1, 0) == (found.tellable(), found.tellable("cost"))
    assert (0, 1) == (found.tellable(above=0.05), found.tellable(above=0.5))


def test_an_order_that_cannot_be_told_says_at_which_edge() -> None:
    costs = [100.0 * (1.2 if block % 2 else 0.9) for block in range(20)]
    rows = [row({"choice": "a"}, [100.0] * 20), row({"choice": "b"}, costs)]
    (found,) = results(rows, claim({"choice": "a"}, {"choice": "b"}, order="more"))
    assert ClaimVerdict.CANNOT_TELL == found.verdict
    assert "the interval crosses ×1, or the threshold below it; add blocks" == found.reason


def test_what_runners_saw_stands_by_its_name_and_component() -> None:
    seen = {("", BACKGROUND.name): 5.0, ("db", "network-sent"): 700.0}
    rows = [
        replace(
            one,
            trials=tuple(
                replace(
                    t,
                    chunks=tuple(replace(c, observed={k: v * c.operations for k, v in seen.items()}) for c in t.chunks),
                )
                for t in one.trials
            ),
        )
        for one in builders.example(8)[:1]
    ]
    found = [
        (m.metric, m.component, m.unit, pytest.approx(m.value)) for m in judge_study(study_run(rows, (8,))).measurements
    ]
    assert [("background", None, "ns/op", 5.0), ("network-sent", "db", "B/op", 700.0)] == [
        one for one in found if one[0] in ("background", "network-sent")
    ]


def test_a_round_trip_is_told_in_microseconds_by_component() -> None:
    load = LoadRecord(requests=10, wall_ns=1000, round_trip_ns={"db": 120_000, "web": 0})
    trials = tuple(replace(trial(100.0, block=block), load=load) for block in range(8))
    rows = [replace(builders.example(8)[0], trials=trials)]
    found = [m for m in judge_study(study_run(rows, (8,))).measurements if m.metric == "network-round-trip-time"]
    assert [("db", "us", 8)] == [(m.component, m.unit, m.blocks) for m in found]
    assert pytest.approx(120.0) == found[0].value


def test_noise_of_thousands_of_pairs_has_a_probability() -> None:
    """The binomial coefficients of 1,100 pairs exceed a double."""
    assert pytest.approx(1.0) == _at_least(1, 12_000, 0.05)
    assert 0.05 == pytest.approx(_at_least(1, 1, 0.05))
    assert 1 - 0.95**20 - 20 * 0.05 * 0.95**19 == pytest.approx(_at_least(2, 20, 0.05))
