"""Kinds of claims: elapsed time, a component's cost, users' waits, several ratios, growth, and figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from builders import claim, row, study, study_run
from claim_lab import cells, interval, results
from tollbar.analysis import ClaimVerdict, judge_study
from tollbar.analysis.claims import judge_ratio
from tollbar.catalog.families import Value
from tollbar.core.records import RUNNER, Chunk, ComponentRecord, LoadRecord, Trial
from tollbar.results import Row
from tollbar.study import Amount, Claim


def with_chunks(one: Row, **changes: Callable[[Chunk], Any]) -> Row:
    """Return the row with each chunk changed."""

    def changed(found: tuple[Trial, ...]) -> tuple[Trial, ...]:
        return tuple(
            replace(t, chunks=tuple(replace(c, **{n: f(c) for n, f in changes.items()}) for c in t.chunks))
            for t in found
        )

    return replace(one, trials=changed(one.trials), repeats=changed(one.repeats))


def test_elapsed_time_is_compared_where_that_was_published() -> None:
    """Both use the same CPU time; one waits as long again."""
    one, other = cells({("a",): 1.0, ("b",): 1.0}, ("choice",))
    other = with_chunks(other, wall_ns=lambda chunk: 2 * chunk.wall_ns)
    of, over = {"choice": "b"}, {"choice": "a"}
    elapsed, cost = results([one, other], claim(of, over, 2.0, metric="wall"), claim(of, over, 2.0, metric="cost"))
    assert (ClaimVerdict.STILL_TRUE, ClaimVerdict.SMALLER) == (elapsed.verdict, cost.verdict)


def test_a_component_s_own_cost_is_compared() -> None:

    def shared(one: Row, web: float) -> Row:
        whole = {RUNNER: lambda chunk: sum(chunk.cpu_ns.values())}
        return with_chunks(
            one, cpu_ns=lambda chunk: {RUNNER: whole[RUNNER](chunk), "web": round(web * whole[RUNNER](chunk))}
        )

    rows = [
        shared(one, web) for one, web in zip(cells({("a",): 1.0, ("b",): 1.0}, ("choice",)), (0.3, 0.6), strict=True)
    ]
    quiet = [100.0 + 0.01 * block for block in range(20)]
    rows.append(shared(row({"choice": "baseline"}, quiet, repeats_ns=quiet), 0.5))
    of, over = {"choice": "a"}, {"choice": "b"}
    about = [claim(of, over, 2.0, component="web"), claim(of, over, 2.0), claim(of, over, 2.0, component="kdc")]
    web, whole, kdc = judge_study(study_run(rows, (20,), study(claims=about))).claims
    assert (ClaimVerdict.STILL_TRUE, ClaimVerdict.SMALLER) == (web.verdict, whole.verdict)
    assert (ClaimVerdict.CANNOT_TELL, "its runners observed no `capacity` of kdc") == (kdc.verdict, kdc.reason)


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        ((1.5, 2.5), ClaimVerdict.STILL_TRUE),
        ((2.5, 3.5), ClaimVerdict.SMALLER),
        ((1.2, 1.5), ClaimVerdict.LARGER),
        ((0.4, 0.6), ClaimVerdict.INVERTED),
        ((0.9, 1.1), ClaimVerdict.LARGER),
        ((0.8, 1.0), ClaimVerdict.INVERTED),
        ((1.0, 1.2), ClaimVerdict.LARGER),
    ],
)
def test_of_several_published_ratios_each_may_be_the_true_one(
    published: tuple[float, float], expected: ClaimVerdict
) -> None:
    assert expected is judge_ratio(interval(1.96, 2.04), published, margin=1.03)


@pytest.mark.parametrize(
    ("order", "last", "expected"),
    [
        ("more", 4.0, ClaimVerdict.STILL_TRUE),
        ("less", 4.0, ClaimVerdict.INVERTED),
        ("more", 1.5, ClaimVerdict.INVERTED),
        ("more", 2.0, ClaimVerdict.SMALLER),
    ],
)
def test_a_difference_may_grow(order: str, last: float, expected: ClaimVerdict) -> None:
    costs: dict[tuple[Value, ...], float] = {("a", 64): 1.0, ("b", 64): 2.0, ("a", 1024): 1.0, ("b", 1024): last}
    grown = claim({"choice": "a"}, {"choice": "b"}, order=order, grows={"bytes": (64, 1024)})
    (found,) = results(cells(costs, ("choice", "bytes")), grown)
    assert expected is found.verdict
    assert found.ratio is not None
    assert last / 2 == pytest.approx(found.ratio.estimate, rel=0.02)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (2.0, 4.0, ClaimVerdict.STILL_TRUE),
        (4.0, 2.0, ClaimVerdict.INVERTED),
        # The first still has more, by less than twice.
        (1.2, 1.6, ClaimVerdict.STILL_TRUE),
        (1.6, 1.2, ClaimVerdict.INVERTED),
        # The second has more at both sizes; from 0.5 to 0.25 the distance grows, too.
        (0.5, 0.25, ClaimVerdict.STILL_TRUE),
        (0.25, 0.5, ClaimVerdict.INVERTED),
        (0.8, 1.5, ClaimVerdict.CANNOT_TELL),
    ],
)
def test_a_difference_is_wider_whichever_has_more(first: float, last: float, expected: ClaimVerdict) -> None:
    costs: dict[tuple[Value, ...], float] = {("a", 64): 1.0, ("b", 64): first, ("a", 1024): 1.0, ("b", 1024): last}
    wider = claim({"choice": "a"}, {"choice": "b"}, order="wider", grows={"bytes": (64, 1024)})
    (found,) = results(cells(costs, ("choice", "bytes")), wider)
    assert expected is found.verdict
    assert ("so the order of the two changes" in str(found.reason)) is (expected is ClaimVerdict.CANNOT_TELL)


@pytest.mark.parametrize(
    ("last", "expected"),
    [(2.0, ClaimVerdict.STILL_TRUE), (1.5, ClaimVerdict.STILL_TRUE), (3.0, ClaimVerdict.INVERTED)],
)
def test_a_difference_that_shrinks_has_not_increased(last: float, expected: ClaimVerdict) -> None:
    costs: dict[tuple[Value, ...], float] = {("a", 64): 1.0, ("b", 64): 2.0, ("a", 1024): 1.0, ("b", 1024): last}
    same = claim({"choice": "a"}, {"choice": "b"}, order="no-wider", grows={"bytes": (64, 1024)})
    (found,) = results(cells(costs, ("choice", "bytes")), same)
    assert expected is found.verdict


@pytest.mark.parametrize(("last", "expected"), [(2.0, ClaimVerdict.STILL_TRUE), (3.0, ClaimVerdict.LARGER)])
def test_a_difference_may_stay_as_it_is(last: float, expected: ClaimVerdict) -> None:
    costs: dict[tuple[Value, ...], float] = {("a", 64): 1.0, ("b", 64): 2.0, ("a", 1024): 1.0, ("b", 1024): last}
    alike = claim({"choice": "a"}, {"choice": "b"}, 1.0, grows={"bytes": (64, 1024)})
    (found,) = results(cells(costs, ("choice", "bytes")), alike)
    assert expected is found.verdict


@pytest.mark.parametrize(
    ("first", "last", "order", "expected", "reason"),
    [
        (2.0, 4.0, "wider", ClaimVerdict.STILL_TRUE, None),
        # The difference grows, but between cells in the reverse order.
        (0.5, 0.25, "wider", ClaimVerdict.INVERTED, "both values"),
        (0.5, 0.5, "no-wider", ClaimVerdict.INVERTED, "both values"),
        (0.8, 1.5, "more", ClaimVerdict.INVERTED, "the first value"),
        (1.5, 0.8, "less", ClaimVerdict.INVERTED, "the second value"),
        (1.5, 1.0, "less", ClaimVerdict.STILL_TRUE, None),
    ],
)
def test_a_reversed_order_is_no_published_growth(
    first: float, last: float, order: str, expected: ClaimVerdict, reason: str | None
) -> None:
    costs: dict[tuple[Value, ...], float] = {("a", 64): 1.0, ("b", 64): first, ("a", 1024): 1.0, ("b", 1024): last}
    grown = claim({"choice": "a"}, {"choice": "b"}, order=order, grows={"bytes": (64, 1024)}, throughout="more")
    (found,) = results(cells(costs, ("choice", "bytes")), grown)
    said = f"at {reason} the order of the two is the reverse of the published one" if reason else None
    assert (expected, said) == (found.verdict, found.reason)
    assert found.ends is not None
    assert [first, last] == pytest.approx([one.estimate for one in found.ends], rel=0.02)


def test_growth_of_what_nothing_observes_says_so() -> None:
    costs: dict[tuple[Value, ...], float] = {("a", 64): 1.0, ("b", 64): 2.0, ("a", 1024): 1.0, ("b", 1024): 3.0}
    grown = claim(
        {"choice": "a"}, {"choice": "b"}, order="more", metric="cost", component="kdc", grows={"bytes": (64, 1024)}
    )
    (found,) = results(cells(costs, ("choice", "bytes")), grown)
    assert (ClaimVerdict.CANNOT_TELL, "its runners observed no `cost` of kdc") == (found.verdict, found.reason)


@pytest.mark.parametrize(("apart", "expected"), [(1.0, ClaimVerdict.STILL_TRUE), (1.04, ClaimVerdict.CANNOT_TELL)])
def test_noise_may_have_taken_both_ratios(apart: float, expected: ClaimVerdict) -> None:
    """A growth of 6 % is undecided with A/A pairs 4 % apart, because either ratio may be off by as much."""
    costs: dict[tuple[Value, ...], float] = {("a", 64): 1.0, ("b", 64): 2.0, ("a", 1024): 1.0, ("b", 1024): 2.12}
    grown = claim({"choice": "a"}, {"choice": "b"}, order="more", grows={"bytes": (64, 1024)})
    (found,) = results(cells(costs, ("choice", "bytes")), grown, apart=apart)
    assert expected is found.verdict


def test_a_difference_at_one_size_alone_does_not_grow() -> None:
    grown = claim({"choice": "a"}, {"choice": "b"}, order="more", grows={"bytes": (64, 1024)})
    (found,) = results(cells({("a", 64): 1.0, ("b", 64): 2.0}, ("choice", "bytes")), grown)
    assert (ClaimVerdict.CANNOT_TELL, "only one of both sizes was measured here") == (found.verdict, found.reason)


def test_a_published_figure_stands_beside_today_s() -> None:
    figure = Claim("says", {"choice": "a"}, {}, "cost", None, None, None, published=(Amount(7.7, "ms", "7.7 ms"),))
    never = Claim("says", {}, {}, "cost", None, None, None, untestable="Linux has no such mode")
    shown, untried = results(cells({("a",): 1.0}, ("choice",)), figure, never)
    assert ClaimVerdict.NOT_JUDGED is shown.verdict
    ((value, unit),) = shown.values
    assert (pytest.approx(100.0, rel=0.01), "ns/op") == (value, unit)
    assert (ClaimVerdict.NOT_TESTABLE, "Linux has no such mode") == (untried.verdict, untried.reason)


@pytest.mark.parametrize(("busy_ns", "expected"), [(0.9, "client-bound"), (0.1, None)])
def test_a_rate_of_a_busy_client_is_not_told(busy_ns: float, expected: str | None) -> None:
    """The rate is twice as high, unless the client was the limit."""

    def loaded(found: tuple[Trial, ...], rate: int) -> tuple[Trial, ...]:
        server = ComponentRecord(cpu_ns=9 * 10**8, memory_bytes=1)
        load = LoadRecord(
            requests=rate, wall_ns=10**9, client_cpu_ns=round(busy_ns * 10**9), components={"web": server}
        )
        return tuple(replace(trial, load=load) for trial in found)

    rows = cells({("a",): 1.0, ("b",): 1.0}, ("choice",))
    quiet = [100.0 + 0.01 * block for block in range(20)]
    rows.append(row({"choice": "baseline"}, quiet, repeats_ns=quiet))
    rows = [
        replace(r, trials=loaded(r.trials, rate), repeats=loaded(r.repeats, rate))
        for r, rate in zip(rows, (2000, 1000, 1000), strict=True)
    ]
    about = claim({"choice": "a"}, {"choice": "b"}, 2.0, metric="throughput")
    (found,) = judge_study(study_run(rows, (20,), study(claims=[about]))).claims
    assert found.ratio is not None
    assert 2.0 == pytest.approx(found.ratio.estimate)
    assert (ClaimVerdict.CANNOT_TELL if expected else ClaimVerdict.STILL_TRUE) is found.verdict
    assert (expected is None) == (found.reason is None)
    assert expected is None or expected in str(found.reason)
