"""Contrasts: all else equal, pairs with one verdict are gathered and never averaged."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import product

import pytest

import share
from builders import lognormal, measured, row, study, study_run
from tollbar.analysis import Contrast, Verdict, judge_study
from tollbar.catalog.families import Standing, Value
from tollbar.core.records import Outcome
from tollbar.results import Row

Cost = Callable[[Mapping[str, Value]], float]
Grid = Mapping[str, tuple[Value, ...]]

DIGESTS = ("md5", "sha-1", "sha-256", "sha-512")


def grid(varied: Grid, cost: Cost, *, noise: float = 0.003, blocks: int = 20, seed: int = 1) -> list[Row]:
    """Return a baseline with its repeat, and a cell for every combination at the given cost."""
    cells = [dict(zip(varied, values, strict=True)) for values in product(*varied.values())]
    true = [1.0, 1.0, *(cost(cell) for cell in cells)]
    base, repeat, *costs = measured(true, lognormal(noise), random.Random(seed), blocks=blocks)
    baseline = row({"choice": "none"}, base, repeats_ns=repeat, standing=Standing.NULL)
    return [baseline, *(row(cell, c, against="none") for cell, c in zip(cells, costs, strict=True))]


def contrasts(rows: list[Row], varied: Grid, setting: str | None = None) -> list[Contrast]:
    blocks = max(len(r.trials) for r in rows)
    judged = judge_study(study_run(rows, (blocks,), study(blocks=blocks, vary=varied)))
    return [c for c in judged.contrasts if setting is None or c.setting == setting]


def parts(found: list[Contrast]) -> list[tuple[Mapping[str, tuple[Value, ...]], float, float, int, Verdict]]:
    return [(c.where, round(c.least, 2), round(c.most, 2), c.pairs, c.verdict) for c in found]


def test_pairs_of_one_verdict_are_one_contrast() -> None:
    varied: Grid = {"choice": DIGESTS, "api": ("evp", "legacy")}
    dearer = dict(zip(DIGESTS, (1.18, 1.14, 1.16, 1.15), strict=True))
    rows = grid(varied, lambda cell: dearer[str(cell["choice"])] if cell["api"] == "legacy" else 1.0)
    (found,) = contrasts(rows, varied)
    assert ("api", "legacy", "evp") == (found.setting, found.value, found.for_value)
    assert ({}, 4, Verdict.COSTS) == (found.where, found.pairs, found.verdict)
    assert pytest.approx((1.14, 1.18), rel=0.005) == (found.least, found.most)
    assert 1.12 < found.low < found.least < found.most < found.high < 1.20


def test_pairs_that_disagree_are_never_averaged() -> None:
    """×1.00 and ×0.94 are a pair that is *free* and one that saves: no pair costs ×0.97."""
    varied: Grid = {"choice": ("x", "y"), "api": ("a", "b")}
    rows = grid(varied, lambda cell: 0.94 if cell == {"choice": "y", "api": "b"} else 1.0)
    assert [
        ({"choice": ("x",)}, 1.0, 1.0, 1, Verdict.FREE),
        ({"choice": ("y",)}, 0.94, 0.94, 1, Verdict.SAVES),
    ] == parts(contrasts(rows, varied))


def test_what_divides_the_pairs_is_said() -> None:
    """SHA-1 and SHA-256 lose a factor of two without the CPU's SHA instructions, MD5 and SHA-512 nothing."""
    varied: Grid = {"choice": DIGESTS, "api": ("sha-ni", "plain"), "bytes": (64, 1024, 16384)}

    def cost(cell: Mapping[str, Value]) -> float:
        slower = cell["api"] == "plain" and cell["choice"] in ("sha-1", "sha-256")
        return int(cell["bytes"]) * (2.1 if slower else 1.0)

    assert [
        ({"choice": ("md5", "sha-512")}, Verdict.FREE, 6),
        ({"choice": ("sha-1", "sha-256")}, Verdict.COSTS, 6),
    ] == [(c.where, c.verdict, c.pairs) for c in contrasts(grid(varied, cost), varied)]


def test_two_settings_together_may_divide_them() -> None:
    """Only one digest at one size is expensive, and its line names both settings."""
    varied: Grid = {"choice": ("md5", "sha-1", "sha-256"), "api": ("a", "b"), "bytes": (64, 16384)}
    dear = {"choice": "sha-1", "api": "b", "bytes": 64}
    rows = grid(varied, lambda cell: 3.0 if cell == dear else 1.0)
    assert [
        ({}, Verdict.FREE, 5),
        ({"choice": ("sha-1",), "bytes": (64,)}, Verdict.COSTS, 1),
    ] == [(c.where, c.verdict, c.pairs) for c in contrasts(rows, varied)]


def test_crossed_settings_are_told_apart_without_words() -> None:
    varied: Grid = {"choice": ("x", "y"), "api": ("a", "b"), "bytes": (1, 2)}

    def cost(cell: Mapping[str, Value]) -> float:
        crossed = (cell["choice"] == "x") == (cell["bytes"] == 1)
        return {True: 2.0, False: 0.5}[crossed] if cell["api"] == "b" else 1.0

    assert [({}, 2.0, 2.0, 2, Verdict.COSTS), ({}, 0.5, 0.5, 2, Verdict.SAVES)] == [
        (w, round(least, 1), round(most, 1), n, v)
        for w, least, most, n, v in parts(contrasts(grid(varied, cost), varied))
    ]


def test_few_blocks_leave_pairs_unclear() -> None:
    """Three blocks give no interval: one line, *unclear*, with the observed range and the missing blocks."""
    varied: Grid = {"choice": ("x", "y"), "api": ("a", "b")}
    rows = grid(varied, lambda cell: 2.0 if cell == {"choice": "y", "api": "b"} else 1.0, blocks=3)
    (found,) = contrasts(rows, varied)
    assert (Verdict.UNCLEAR, 1, 2) == (found.verdict, found.more_blocks, found.pairs)
    assert pytest.approx((1.0, 2.0), rel=0.01) == (found.least, found.most)


def test_each_value_is_held_against_the_first_it_can_be() -> None:
    varied: Grid = {"api": ("fetched", "evp", "legacy")}
    rows = grid({"provider": ("openssl 3", "aws-lc"), "api": ("evp", "legacy", "fetched")}, lambda _: 1.0)
    found = [(c.setting, c.value, c.for_value, c.pairs) for c in contrasts(rows, varied)]
    expected = [
        ("api", "evp", "fetched", 2),
        ("api", "legacy", "fetched", 2),
        ("provider", "aws-lc", "openssl 3", 3),
    ]
    assert expected == found


def test_a_value_without_the_first_is_held_against_another() -> None:
    varied: Grid = {"key-exchange": ("ecdhe-p256", "x25519", "x25519mlkem768")}
    at = [
        {"choice": "tls-1.2", "certificate": "rsa-2048", "key-exchange": "ecdhe-p256"},
        {"choice": "tls-1.3", "certificate": "rsa-2048", "key-exchange": "x25519"},
        {"choice": "tls-1.3", "certificate": "ecdsa-p256", "key-exchange": "x25519"},
        {"choice": "tls-1.3", "certificate": "ecdsa-p256", "key-exchange": "x25519mlkem768"},
    ]
    source = random.Random(1)
    base, repeat, *costs = measured([1.0, 1.0, 1.0, 1.0, 1.0, 1.2], lognormal(0.003), source, blocks=20)
    rows = [row({"choice": "plaintext"}, base, repeats_ns=repeat, standing=Standing.NULL)]
    rows += [row(cell, cost, against="plaintext") for cell, cost in zip(at, costs, strict=True)]
    (found,) = contrasts(rows, varied, "key-exchange")
    assert ("x25519mlkem768", "x25519", Verdict.COSTS, 1) == (
        found.value,
        found.for_value,
        found.verdict,
        found.pairs,
    )


def test_sizes_choices_operations_and_nothing_are_not_contrasted() -> None:
    varied: Grid = {"choice": ("x", "y"), "op": ("sign", "verify"), "bytes": (1, 2)}
    assert [] == contrasts(grid(varied, lambda _: 1.0), varied)
    nulls = [row({"choice": "none", "api": api}, [1.0] * 20, standing=Standing.NULL) for api in ("a", "b")]
    assert [] == contrasts(nulls, {"api": ("a", "b")})


def test_failed_cells_are_in_no_pair() -> None:
    varied: Grid = {"choice": ("x", "y"), "api": ("a", "b")}
    rows = grid(varied, lambda _: 1.0)
    failed = row({"choice": "y", "api": "b"}, against="none", outcome=Outcome.FAILED, reason="no")
    (found,) = contrasts([*rows[:-1], failed], varied)
    assert 1 == found.pairs


@pytest.mark.parametrize("ratio", [1.02, 1.03])
def test_pairs_of_one_true_ratio_are_not_divided(ratio: float) -> None:
    """Near the threshold verdicts differ by chance: without a correction half of all studies would be split."""
    varied: Grid = {"choice": ("x", "y"), "api": ("a", "b"), "bytes": (64, 1024)}
    number, named, split = share.of(60, 400), 0, 0
    for seed in range(number):
        rows = grid(varied, lambda cell: ratio if cell["api"] == "b" else 1.0, noise=0.012, blocks=12, seed=seed)
        found = contrasts(rows, varied, "api")
        split += len(found) > 1
        named += any(one.where for one in found)
    assert split > 0.1 * number
    assert named / number < 0.05 + 2 * (0.05 * 0.95 / number) ** 0.5


def test_halves_that_differ_are_divided() -> None:
    """Differences of 2 % around the threshold are split in nine studies of ten."""
    varied: Grid = {"choice": ("x", "y"), "api": ("a", "b"), "bytes": (64, 1024)}
    number, named = 40, 0
    for seed in range(number):
        rows = grid(
            varied,
            lambda cell: {"a": 1.0, "b": 1.02 if cell["choice"] == "x" else 1.04}[str(cell["api"])],
            noise=0.006,
            blocks=12,
            seed=seed,
        )
        found = contrasts(rows, varied, "api")
        named += len(found) == 1 or any(one.where for one in found)
    assert named >= 0.9 * number
