"""Contrasts: all else equal, and told apart where the pairs disagree."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import product

import pytest

from builders import lognormal, measured, row, study, study_run
from tollbar.catalogue import Standing, Value
from tollbar.judge import Contrast, Verdict, judge_study
from tollbar.measure import Outcome
from tollbar.results import Row

Cost = Callable[[Mapping[str, Value]], float]
Grid = Mapping[str, tuple[Value, ...]]

DIGESTS = ("md5", "sha-1", "sha-256", "sha-512")


def grid(varied: Grid, cost: Cost, *, noise: float = 0.02, blocks: int = 20, seed: int = 1) -> list[Row]:
    """A baseline with its twin, and a cell for every combination at the cost that is given for it."""
    cells = [dict(zip(varied, values, strict=True)) for values in product(*varied.values())]
    true = [1.0, 1.0, *(cost(cell) for cell in cells)]
    base, twin, *costs = measured(true, lognormal(noise), random.Random(seed), blocks=blocks)
    baseline = row({"choice": "none"}, base, twins_ns=twin, standing=Standing.NULL)
    return [baseline, *(row(cell, c, against="none") for cell, c in zip(cells, costs, strict=True))]


def contrasts(rows: list[Row], varied: Grid, setting: str | None = None) -> list[Contrast]:
    blocks = max(len(r.trials) for r in rows)
    judged = judge_study(study_run(rows, (blocks,), study(blocks=blocks, vary=varied)))
    return [c for c in judged.contrasts if setting is None or c.setting == setting]


def parts(found: list[Contrast]) -> list[tuple[Mapping[str, tuple[Value, ...]], float, int]]:
    return [(c.where, round(c.ratio.estimate, 1), c.pairs) for c in found]


def test_agreeing_pairs_are_one_contrast() -> None:
    """Four digests that all cost a tenth more through another interface are one line of four pairs."""
    varied: Grid = {"choice": DIGESTS, "api": ("evp", "legacy")}
    rows = grid(
        varied,
        lambda cell: (1 + DIGESTS.index(str(cell["choice"]))) * (1.1 if cell["api"] == "legacy" else 1),
    )
    (found,) = contrasts(rows, varied)
    assert ("api", "legacy", "evp", {}, 4) == (
        found.setting,
        found.value,
        found.for_value,
        found.where,
        found.pairs,
    )
    assert pytest.approx(1.1, rel=0.02) == found.ratio.estimate
    assert Verdict.COSTS is found.verdict


def test_pairs_that_disagree_are_split_by_what_divides_them() -> None:
    """SHA-1 and SHA-256 lose a factor of two without the CPU's SHA instructions, MD5 and SHA-512 nothing."""
    varied: Grid = {"choice": DIGESTS, "api": ("sha-ni", "plain"), "bytes": (64, 1024, 16384)}

    def cost(cell: Mapping[str, Value]) -> float:
        slower = cell["api"] == "plain" and cell["choice"] in ("sha-1", "sha-256")
        return int(cell["bytes"]) * (2.1 if slower else 1.0)

    found = contrasts(grid(varied, cost), varied)
    expected = [({"choice": ("md5", "sha-512")}, 1.0, 6), ({"choice": ("sha-1", "sha-256")}, 2.1, 6)]
    assert expected == parts(found)
    assert [Verdict.FREE, Verdict.COSTS] == [c.verdict for c in found]


def test_the_coordinate_that_explains_most_is_chosen() -> None:
    """An overhead for each call matters at 64 bytes and not at 16 KiB, whichever the digest."""
    varied: Grid = {"choice": DIGESTS, "api": ("evp", "fetched"), "bytes": (64, 256, 16384, 65536)}
    rows = grid(varied, lambda cell: 1.5 if cell["api"] == "fetched" and int(cell["bytes"]) < 1024 else 1.0)
    expected = [({"bytes": (64, 256)}, 1.5, 8), ({"bytes": (16384, 65536)}, 1.0, 8)]
    assert expected == parts(contrasts(rows, varied))


def test_splitting_goes_on_while_pairs_disagree() -> None:
    """Only one digest at one size is dear: two cuts single it out."""
    varied: Grid = {"choice": ("md5", "sha-1", "sha-256"), "api": ("a", "b"), "bytes": (64, 16384)}
    dear = {"choice": "sha-1", "api": "b", "bytes": 64}
    found = contrasts(grid(varied, lambda cell: 3.0 if cell == dear else 1.0), varied)
    assert ({"choice": ("sha-1",), "bytes": (64,)}, 3.0, 1) in parts(found)
    assert [1.0, 1.0, 3.0] == sorted(ratio for _, ratio, _ in parts(found))
    assert 6 == sum(c.pairs for c in found)


def test_crossed_settings_are_split_too() -> None:
    """Where two settings cross so that neither alone shows anything, the pairs are still told apart."""
    varied: Grid = {"choice": ("x", "y"), "api": ("a", "b"), "bytes": (1, 2)}

    def cost(cell: Mapping[str, Value]) -> float:
        crossed = (cell["choice"] == "x") == (cell["bytes"] == 1)
        return {True: 2.0, False: 0.5}[crossed] if cell["api"] == "b" else 1.0

    assert [0.5, 0.5, 2.0, 2.0] == sorted(r for _, r, _ in parts(contrasts(grid(varied, cost), varied)))


def test_noise_alone_does_not_split() -> None:
    """A hundred noisy pairs with one true ratio stay together, in ten runs of ten."""
    varied: Grid = {"choice": tuple(f"c{i}" for i in range(25)), "api": ("a", "b"), "bytes": (1, 2, 3, 4)}
    lines = [
        len(contrasts(grid(varied, lambda cell: 1.1 if cell["api"] == "b" else 1.0, noise=0.1, seed=seed), varied))
        for seed in range(10)
    ]
    assert [1] * 10 == lines


def test_few_blocks_still_split() -> None:
    """Five blocks carry no interval, but a ratio of two and one of one are not averaged for that."""
    varied: Grid = {"choice": ("x", "y"), "api": ("a", "b")}
    rows = grid(varied, lambda cell: 2.0 if cell == {"choice": "y", "api": "b"} else 1.0, blocks=5)
    found = contrasts(rows, varied)
    assert [({"choice": ("x",)}, 1.0, 1), ({"choice": ("y",)}, 2.0, 1)] == parts(found)
    assert [(Verdict.UNCLEAR, 2)] * 2 == [(c.verdict, c.more_blocks) for c in found]


def test_each_value_is_held_against_the_first() -> None:
    """The study's order of values decides which is first, and the rows' order for providers."""
    varied: Grid = {"api": ("fetched", "evp", "legacy")}
    rows = grid({"provider": ("openssl 3", "aws-lc"), "api": ("evp", "legacy", "fetched")}, lambda _: 1.0)
    found = [(c.setting, c.value, c.for_value, c.pairs) for c in contrasts(rows, varied)]
    expected = [
        ("api", "evp", "fetched", 2),
        ("api", "legacy", "fetched", 2),
        ("provider", "aws-lc", "openssl 3", 3),
    ]
    assert expected == found


def test_sizes_choices_operations_and_nothing_are_not_contrasted() -> None:
    """More bytes cost more, choices have tolls, and the null choice says nothing of a setting."""
    varied: Grid = {"choice": ("x", "y"), "op": ("sign", "verify"), "bytes": (1, 2)}
    assert [] == contrasts(grid(varied, lambda _: 1.0), varied)
    nulls = [row({"choice": "none", "api": api}, [1.0] * 20, standing=Standing.NULL) for api in ("a", "b")]
    assert [] == contrasts(nulls, {"api": ("a", "b")})


def test_failed_cells_are_in_no_pair() -> None:
    """A cell that failed takes its pair with it and leaves the others."""
    varied: Grid = {"choice": ("x", "y"), "api": ("a", "b")}
    rows = grid(varied, lambda _: 1.0)
    failed = row({"choice": "y", "api": "b"}, against="none", outcome=Outcome.FAILED, reason="no")
    (found,) = contrasts([*rows[:-1], failed], varied)
    assert 1 == found.pairs


def test_one_cell_with_few_blocks_does_not_cost_the_others_theirs() -> None:
    """A pair with less than half of the blocks is left out; one that lacks a few is not."""
    varied: Grid = {"choice": ("x", "y", "z"), "api": ("a", "b")}
    rows = grid(varied, lambda _: 1.0)
    short = row({"choice": "z", "api": "b"}, [1.0] * 3, against="none")
    shorter = row({"choice": "y", "api": "b"}, [100.0 + i % 3 for i in range(18)], against="none")
    (found,) = contrasts([*rows[:4], shorter, rows[5], short], varied)
    assert (2, 18) == (found.pairs, found.ratio.n)
