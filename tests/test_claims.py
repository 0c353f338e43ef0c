"""Claims: published ratios, tried again."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import claim, lognormal, measured, row, study, study_run
from claim_lab import cells, interval, results
from tollbar.analysis import ClaimVerdict, judge_study
from tollbar.analysis.claims import _tolerated, _too_few, judge_order, judge_ratio
from tollbar.analysis.decisions import Terms
from tollbar.analysis.ledger import Ledger
from tollbar.catalog.families import Value
from tollbar.core.intervals import Interval
from tollbar.core.records import LoadRecord, Outcome


@pytest.mark.parametrize(
    ("published", "low", "high", "expected"),
    [
        (2.0, 1.92, 2.08, ClaimVerdict.STILL_TRUE),
        (2.0, 1.91, 2.10, ClaimVerdict.STILL_TRUE),
        # The tolerance is a tenth of the difference, and at least the study's threshold.
        (2.0, 1.82, 2.20, ClaimVerdict.CANNOT_TELL),
        (1.12, 1.04, 1.06, ClaimVerdict.SMALLER),
        (1.12, 1.10, 1.14, ClaimVerdict.STILL_TRUE),
        (1.12, 1.18, 1.20, ClaimVerdict.LARGER),
        (1 / 1.12, 0.94, 0.96, ClaimVerdict.SMALLER),
        (10.0, 9.2, 10.8, ClaimVerdict.STILL_TRUE),
        (10.0, 9.0, 9.1, ClaimVerdict.SMALLER),
        (2.0, 1.80, 2.10, ClaimVerdict.CANNOT_TELL),
        (2.0, 2.10, 2.30, ClaimVerdict.CANNOT_TELL),
        (2.0, 1.50, 3.00, ClaimVerdict.CANNOT_TELL),
        (2.0, 2.30, 2.40, ClaimVerdict.LARGER),
        (2.0, 1.50, 1.60, ClaimVerdict.SMALLER),
        (2.0, 0.90, 1.10, ClaimVerdict.SMALLER),
        (2.0, 0.80, 0.90, ClaimVerdict.INVERTED),
        (2.0, 0.98, 0.99, ClaimVerdict.SMALLER),
        (2.0, 0.50, 3.00, ClaimVerdict.CANNOT_TELL),
        (0.5, 0.48, 0.52, ClaimVerdict.STILL_TRUE),
        (0.5, 0.30, 0.40, ClaimVerdict.LARGER),
        (0.5, 0.60, 0.70, ClaimVerdict.SMALLER),
        (0.5, 1.10, 1.20, ClaimVerdict.INVERTED),
        (1.05, 1.03, 1.08, ClaimVerdict.STILL_TRUE),
        (1.05, 0.98, 0.99, ClaimVerdict.SMALLER),
        (1.05, 0.80, 0.90, ClaimVerdict.INVERTED),
        (1.0, 0.98, 1.02, ClaimVerdict.STILL_TRUE),
        (1.0, 0.95, 1.05, ClaimVerdict.CANNOT_TELL),
        (1.0, 1.04, 1.06, ClaimVerdict.LARGER),
        (1.0, 0.70, 0.80, ClaimVerdict.LARGER),
        (1.0, 1.20, 1.30, ClaimVerdict.LARGER),
        (2.0, 0.0, math.inf, ClaimVerdict.CANNOT_TELL),
        (0.5, 0.0, math.inf, ClaimVerdict.CANNOT_TELL),
    ],
)
def test_ratios(published: float, low: float, high: float, expected: ClaimVerdict) -> None:
    assert expected is judge_ratio(interval(low, high), (published, published), margin=1.03)


@pytest.mark.parametrize(
    ("order", "low", "high", "expected"),
    [
        ("more", 1.01, 1.5, ClaimVerdict.STILL_TRUE),
        ("more", 0.99, 1.5, ClaimVerdict.CANNOT_TELL),
        ("more", 0.5, 0.97, ClaimVerdict.INVERTED),
        ("more", 0.5, 0.99, ClaimVerdict.CANNOT_TELL),
        ("more", 0.98, 1.02, ClaimVerdict.SMALLER),
        ("more", 0.98, 0.99, ClaimVerdict.SMALLER),
        ("less", 1.04, 1.5, ClaimVerdict.INVERTED),
        ("less", 0.98, 1.02, ClaimVerdict.SMALLER),
        ("less", 0.99, 1.5, ClaimVerdict.CANNOT_TELL),
        ("less", 0.5, 0.99, ClaimVerdict.STILL_TRUE),
        ("less", 0.0, math.inf, ClaimVerdict.CANNOT_TELL),
    ],
)
def test_orders(order: str, low: float, high: float, expected: ClaimVerdict) -> None:
    assert expected is judge_order(interval(low, high), order, 1.03)


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(1, 2))
def test_a_claim_turned_round_has_the_same_verdict(published: float, low: float, width: float) -> None:
    there = judge_ratio(interval(low, low * width), (published, published), 1.03)
    back = judge_ratio(interval(1 / (low * width), 1 / low), (1 / published, 1 / published), 1.03)
    # On a border the last bit may fall on either side.
    near = any(math.isclose(a, b, rel_tol=1e-9) for a in (low, low * width) for b in borders(published))
    assert near or there is back


def borders(published: float) -> tuple[float, ...]:
    found = [1.0, 1.03, 1 / 1.03, *_tolerated(published, 1.03)]
    return (*found, *(1 / border for border in found))


@given(st.floats(0.1, 10), st.floats(0, 0.01), st.floats(1.001, 1.1))
def test_what_is_still_true_moves_as_little_as_what_was_published(published: float, by: float, margin: float) -> None:
    """Both borders rise with the published ratio, by at most a tenth more than it: there is no jump."""
    here, there = _tolerated(published, margin), _tolerated(published * math.exp(by), margin)
    for one, other in zip(here, there, strict=True):
        assert -1e-9 <= math.log(other / one) <= 1.1 * by + 1e-9
    assert here[0] * margin <= published * (1 + 1e-9)
    assert published * margin <= here[1] * (1 + 1e-9)
    # The borders of the inverse ratio are the inverse borders.
    low, high = _tolerated(1 / published, margin)
    assert (pytest.approx(1 / high), pytest.approx(1 / low)) == here


def test_two_that_are_alike_are_so_within_what_the_study_ignores() -> None:
    """×1.00 has the rule that ×1.01 has; where a toll would be *free*, the claim of equality is still true."""
    assert pytest.approx((1 / 1.03, 1.03)) == _tolerated(1.0, 1.03)
    assert pytest.approx((1.01 / 1.03, 1.01 * 1.03)) == _tolerated(1.01, 1.03)


def test_capacity_is_one_over_cost() -> None:
    """Half the cost is twice the capacity; the ratio keeps the claim's direction and is labelled."""
    rows = cells({("md5",): 1.0, ("sha-1",): 2.0}, ("choice",))
    of, over = {"choice": "md5"}, {"choice": "sha-1"}
    found = results(rows, claim(of, over, 2.0), claim(of, over, 0.5, metric="cost"), claim(over, of, 0.5))
    estimates = [round(r.ratio.estimate, 1) if r.ratio else None for r in found]
    assert [2.0, 0.5, 0.5] == estimates
    assert ["capacity", "cost", "capacity"] == [r.claim.metric for r in found]
    assert estimates == [round(r.all_samples.estimate, 1) if r.all_samples else None for r in found]
    assert {ClaimVerdict.STILL_TRUE} == {r.verdict for r in found}
    assert {None} == {r.rates for r in found}


def test_measured_rates_stand_beside() -> None:
    rows = [
        replace(r, trials=tuple(replace(t, load=LoadRecord(requests=rate, wall_ns=10**9)) for t in r.trials))
        for r, rate in zip(cells({("a",): 1.0, ("b",): 2.0}, ("choice",)), (900, 800), strict=True)
    ]
    (found,) = results(rows, claim({"choice": "a"}, {"choice": "b"}, 2.0))
    assert (ClaimVerdict.STILL_TRUE, (900.0, 800.0)) == (found.verdict, found.rates)


@pytest.mark.parametrize(("apart", "expected"), [(1.0, ClaimVerdict.STILL_TRUE), (1.07, ClaimVerdict.CANNOT_TELL)])
@pytest.mark.parametrize(("ratio", "order"), [(2.1, None), (None, "more")])
def test_nothing_is_told_that_is_nearer_than_repeats(
    apart: float, expected: ClaimVerdict, ratio: float | None, order: str | None
) -> None:
    """A border within the baseline's own A/A difference leaves the claim undecided."""
    changes = {"order": order} if order else {}
    rows = cells({("a",): 1.0, ("b",): 2.06 if ratio else 1.05}, ("choice",))
    (found,) = results(rows, claim({"choice": "a"}, {"choice": "b"}, ratio, **changes), apart=apart)
    assert expected is found.verdict
    assert (expected is ClaimVerdict.CANNOT_TELL) == ("the noise (" in (found.reason or ""))


def test_without_repeats_nothing_is_told() -> None:
    """Without A/A pairs the study does not know its noise."""
    found = judge_study(
        study_run(
            cells({("a",): 1.0, ("b",): 2.0}, ("choice",)),
            (20,),
            study(claims=[claim({"choice": "a"}, {"choice": "b"}, 2.0)]),
        )
    ).claims
    assert [(ClaimVerdict.CANNOT_TELL, "there is no A/A pair, so the noise is not known")] == [
        (r.verdict, r.reason) for r in found
    ]


def test_one_result_for_each_place() -> None:
    costs: dict[tuple[Value, ...], float] = {
        ("md5", "openssl 3", 64): 1.0, ("sha-1", "openssl 3", 64): 2.0,
        ("md5", "openssl 3", 1024): 1.0, ("sha-1", "openssl 3", 1024): 1.5,
        ("md5", "aws-lc", 64): 1.0, ("sha-1", "aws-lc", 64): 0.5,
        ("md5", "aws-lc", 1024): 1.0,
    }  # fmt: skip
    rows = cells(costs, ("choice", "provider", "bytes"))
    found = results(rows, claim({"choice": "md5"}, {"choice": "sha-1"}, 2.0))
    expected = [
        ({"provider": "openssl 3", "bytes": 64}, ClaimVerdict.STILL_TRUE),
        ({"provider": "openssl 3", "bytes": 1024}, ClaimVerdict.SMALLER),
        ({"provider": "aws-lc", "bytes": 64}, ClaimVerdict.INVERTED),
    ]
    assert expected == [(r.at, r.verdict) for r in found]


def test_what_only_one_side_names_is_free_on_the_other() -> None:
    costs: dict[tuple[Value, ...], float] = {("a", "p"): 1.0, ("b", "p"): 2.0, ("b", "q"): 4.0}
    rows = cells(costs, ("choice", "provider"))
    found = results(rows, claim({"choice": "a", "provider": "p"}, {"choice": "b"}, 2.0))
    assert [
        ({"provider": "p"}, ClaimVerdict.STILL_TRUE),
        ({"provider": "q"}, ClaimVerdict.LARGER),
    ] == [(r.at, r.verdict) for r in found]


def test_a_setting_of_one_side_alone_does_not_stand_in_the_way() -> None:
    """RSA has a padding and Ed25519 does not: they are compared, and the padding is named."""
    one, *others = measured([1.0, 2.0, 3.0], lognormal(0.01), random.Random(4), blocks=20)
    rows = [
        row({"choice": "ed25519"}, one),
        row({"choice": "rsa", "padding": "pss"}, others[0]),
        row({"choice": "rsa", "padding": "pkcs1"}, others[1]),
    ]
    found = results(rows, claim({"choice": "ed25519"}, {"choice": "rsa"}, 2.0))
    place = {"provider": "openssl 3.0.19"}
    assert [
        ({**place, "padding": "pss"}, ClaimVerdict.STILL_TRUE),
        ({**place, "padding": "pkcs1"}, ClaimVerdict.LARGER),
    ] == [(r.at, r.verdict) for r in found]


def test_a_cell_over_itself_uses_its_repeat() -> None:
    costs, repeats = measured([1.0, 1.0], lognormal(0.002), random.Random(3), blocks=20)
    same = {"choice": "none"}
    (found,) = results([row(same, costs, repeats_ns=repeats)], claim(same, same, 1.0))
    assert ClaimVerdict.STILL_TRUE is found.verdict
    (alone,) = results([row(same, costs)], claim(same, same, 1.0))
    assert "both sides are one cell, which was not measured twice in a block" == alone.reason


@pytest.mark.parametrize(
    ("both", "carry", "expected"),
    [
        (3, 3, "3 of 5 blocks have both sides: too few for an interval, which needs 4"),
        (5, 5, "5 of 5 blocks have both sides: too few for an interval"),
        (5, 2, "5 of 5 blocks have both sides, of which 2 count: too few for an interval, which needs 4"),
    ],
)
def test_too_few_blocks_do_not_contradict_themselves(both: int, carry: int, expected: str) -> None:
    rows = [row({"choice": "a"}, [100.0] * 5), row({"choice": "b"}, [100.0] * both)]
    ledger = Ledger(rows, Terms(0.03, 1))
    assert expected == _too_few(*rows, Interval(1.0, 0.0, math.inf, 0.95, carry), ledger)


def test_what_cannot_be_tried_says_why() -> None:
    rows = cells({("a", "p"): 1.0, ("b", "q"): 2.0}, ("choice", "provider"))
    failed = row({"choice": "c", "provider": "p"}, outcome=Outcome.FAILED, reason="wrong answer")
    short = row({"choice": "d", "provider": "p"}, [100.0] * 3)
    of = {"choice": "a"}
    found = results(
        [*rows, failed, short],
        claim({"choice": "gone", "bytes": 64}, of, 2.0),
        claim(of, {"choice": "b"}, 2.0),
        claim(of, {"choice": "c"}, 2.0),
        claim(of, {"choice": "d"}, 2.0),
        claim(of, {"choice": "b", "provider": "q"}, 2.1),
    )
    assert {ClaimVerdict.CANNOT_TELL} == {r.verdict for r in found}
    assert [
        "no cell here has choice gone, bytes 64",
        "no two cells here differ only in this",
        "c p was not measured: wrong answer",
        "3 of 20 blocks have both sides: too few for an interval, which needs 4",
        "the interval crosses a limit of the published ratio; add blocks",
    ] == [r.reason for r in found]
