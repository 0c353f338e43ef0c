"""Factors: all combinations meet in one batch; the sum of parts and the whole are distinguished."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from math import exp, inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import share
from builders import row, study, study_run
from tollbar import study as studies
from tollbar.analysis import FactorsResult, StudyJudgement, Together, judge_study
from tollbar.analysis.decisions import Terms
from tollbar.analysis.ledger import Ledger
from tollbar.catalog.families import Value
from tollbar.core import stats
from tollbar.core.errors import TollbarError
from tollbar.core.intervals import Moments
from tollbar.core.records import Outcome
from tollbar.report.sections.answer import answer
from tollbar.report.sections.factors import factor_sentences, factors_listing
from tollbar.study import plan
from tollbar.study.plan.batches import blocks
from tollbar.study.plan.pairs import factored

BLOCKS = 12
NAMES = ("first", "second", "third")
# Nanoseconds that each part adds to 1000 ns.
PARTS = (300.0, 500.0, 1200.0)
BARE = 1000.0


def judged(
    beyond: float, *, count: int = 3, noise: float = 0.002, gone: int | None = None, seed: int = 0
) -> StudyJudgement:
    """Return the judged combinations, whose whole costs `beyond` ns more than the sum of its parts."""
    source = random.Random(f"{beyond}/{count}/{seed}")
    rows = []
    for number, at in enumerate(product((0, 1), repeat=count)):
        cost = BARE + sum(part for part, there in zip(PARTS, at, strict=False) if there)
        cost += beyond if all(at) else 0.0
        costs, repeats = ([cost * exp(source.gauss(0, noise)) for _ in range(BLOCKS)] for _ in range(2))
        coordinates: dict[str, Value] = {"choice": "x", **dict(zip(NAMES, at, strict=False))}
        failed = {"outcome": Outcome.UNSUPPORTED, "reason": "no such part"} if number == gone else {}
        rows.append(row(coordinates, costs, repeats_ns=() if number else repeats, against=row_key(count), **failed))
    about = replace(study(blocks=BLOCKS), factors=dict.fromkeys(NAMES[:count], (0, 1)))
    return judge_study(study_run(rows, (BLOCKS,), about))


def row_key(count: int) -> str:
    """Return the key of the cell without any part."""
    return row({"choice": "x", **dict.fromkeys(NAMES[:count], 0)}).key


def only(judgement: StudyJudgement) -> FactorsResult:
    (found,) = judgement.factors
    return found


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    ("beyond", "verdict"), [(0.0, Together.ADDS_UP), (400.0, Together.DEARER), (-400.0, Together.CHEAPER)]
)
def test_parts_and_whole_are_told_apart(count: int, beyond: float, verdict: Together) -> None:
    found = only(judged(beyond, count=count))
    assert verdict is found.verdict
    # The bare cost and all parts sum to the whole, to the last digit of a float.
    total = found.costs[0].estimate + sum(part.added.estimate for part in found.parts)
    assert total == pytest.approx(found.costs[-1].estimate, rel=1e-12)
    own = found.costs[0].estimate + sum(part.added.estimate for part in found.own)
    assert found.ratio is not None
    assert found.ratio.estimate == pytest.approx(found.costs[-1].estimate / own, rel=1e-12)


def test_intervals_cover_what_was_made() -> None:
    """At 96 %, four of 100 labs miss on average, eleven once in 500 times, and six of 30 once in 1,000."""
    labs, most = share.of((30, 5), (100, 10))
    found = [only(judged(200.0, seed=seed, noise=0.01)) for seed in range(labs)]
    for place, true in enumerate(PARTS):
        assert most >= sum(not one.own[place].added.low < true < one.own[place].added.high for one in found)
    assert most >= sum(not one.beyond.low < 200.0 < one.beyond.high for one in found if one.beyond)
    assert most >= sum(not one.ratio.low < 3200.0 / 3000.0 < one.ratio.high for one in found if one.ratio)


def test_wide_intervals_tell_nothing() -> None:
    assert Together.CANNOT_TELL is only(judged(0.0, noise=0.3)).verdict


def test_a_missing_cell_is_a_reason() -> None:
    judgement = judged(0.0, gone=3)
    found = only(judgement)
    assert (None, Together.CANNOT_TELL) == (found.ratio, found.verdict)
    assert "no such part" in factor_sentences(judgement)[0]
    assert factors_listing(judgement) is None


def test_what_is_said_has_the_judged_numbers() -> None:
    judgement = judged(400.0)
    listing = factors_listing(judgement)
    assert listing is not None
    assert "the cost is more than that without them and what each adds by itself" in answer(judgement)[0]
    assert {"figures", "table"} == {block.kind for block in listing.blocks}
    (table,) = listing.tables
    assert 10 == len(table.rows)
    names = [line[0].says for line in table.rows]
    assert names[-1] == "all together"
    assert names[-2] == "the rest beyond their sum"


def test_a_study_without_factors_says_nothing_of_them() -> None:
    about = judge_study(study_run([row({"choice": "x"}, [1.0] * BLOCKS, repeats_ns=[1.0] * BLOCKS)], (BLOCKS,)))
    assert ((), None) == (about.factors, factors_listing(about))


def test_noise_is_worked_out_once_for_all_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a cache each of a thousand cells computed the noise of each of a thousand baselines."""
    rows = [row({"choice": str(n)}, [1.0] * BLOCKS, repeats_ns=[1.0] * BLOCKS) for n in range(20)]
    ledger = Ledger(rows, Terms(0.03, 1), "cpu")
    asked = []
    noises = Ledger.noises
    monkeypatch.setattr(Ledger, "noises", lambda *words: asked.append(1) or noises(*words))
    alone = [row({"choice": "alone"}, [1.0] * BLOCKS)] * 20
    assert {ledger.noise_for([one]) for one in alone} == {ledger.noise_for(alone)}
    assert 2 >= len(asked)


# Numbers.


def test_a_sum_is_of_the_blocks_that_all_have() -> None:
    one, other = (row({"choice": name}, costs) for name, costs in (("x", [10.0] * 6), ("y", [4.0] * 5 + [400.0])))
    ledger = Ledger([one, other], Terms(0.03, 1), "cpu")
    found = ledger.added([one, other], [1.0, -1.0])
    assert found is not None
    # Chunks have whole numbers of operations.
    assert (6, pytest.approx(10 - 70.0, rel=1e-4)) == (found.n, found.estimate)
    assert stats.added([[], ledger.visits(one)], [1.0, 1.0], Moments.ALL) is None
    few = stats.added([[*ledger.visits(one)][:3]], [1.0], Moments.ALL)
    assert few is not None
    assert (-inf, inf) == (few.low, few.high)


@given(st.lists(st.lists(st.floats(1.0, 1e6), min_size=8, max_size=8), min_size=2, max_size=4), st.data())
def test_a_sum_of_means_is_linear(costs: list[list[float]], data: st.DataObject) -> None:
    rows = [row({"choice": str(number)}, one) for number, one in enumerate(costs)]
    ledger = Ledger(rows, Terms(0.03, 1), "cpu")
    weights = data.draw(st.lists(st.floats(-4, 4), min_size=len(rows), max_size=len(rows)))
    once, twice = (ledger.added(rows, [times * weight for weight in weights]) for times in (1.0, 2.0))
    assert once is not None
    assert twice is not None
    scale = 1e-9 * max(max(one) for one in costs) * 10
    assert twice.estimate == pytest.approx(2 * once.estimate, rel=1e-9, abs=scale)
    assert twice.high - twice.low == pytest.approx(2 * (once.high - once.low), rel=1e-6, abs=scale)


# From a study's file to batches.

STUDY = """
question = "What do they cost together?"
family = "spin"
choices = ["spin-parts"]
providers = ["spin"]
factors = [{factors}]

[vary]
first = [0, 1000]
second = {second}
third = [0, 4000]
"""


def planned(tmp_path: Path, factors: str = '"first", "second", "third"', second: str = "[0, 2000]") -> plan.Plan:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(factors=factors, second=second))
    return plan.make(studies.load([str(path)]), seed=3)


@pytest.mark.parametrize("factors", ['"first", "second", "third"', '"first", "third"'])
def test_all_combinations_share_a_batch(tmp_path: Path, factors: str) -> None:
    (one,) = planned(tmp_path, factors).studies
    groups = [{cell.key for cell in group} for group in factored(one.study, one.cells)]
    assert 8 == sum(map(len, groups))
    for block in blocks(one, 5, 6):
        batches = [{visit.cell.key for visit in batch.visits} for batch in block]
        for group in groups:
            assert any(group <= batch for batch in batches)
        real = [visit.cell.key for batch in block for visit in batch.visits if not visit.repeat]
        for cell in one.cells:
            assert cell.is_baseline or 1 == real.count(cell.key)


def test_the_order_within_a_batch_is_drawn(tmp_path: Path) -> None:
    (one,) = planned(tmp_path).studies
    orders = {tuple(visit.cell.key for visit in block[0].visits) for block in blocks(one, 5, 6)}
    assert len(orders) > 1


REFUSED = {
    "one": ('"first"', "[0, 2000]", "two or three"),
    "one twice": ('"first", "first"', "[0, 2000]", "two or three"),
    "unknown": ('"first", "fourth"', "[0, 2000]", "needs at least one value"),
    "not varied": ('"first", "together"', "[0, 2000]", "needs at least one value"),
    "one value": ('"first", "second"', "[0]", "has 1 value"),
    "a provider": ('"first", "provider"', "[0, 2000]", "a factor must have two"),
    "one choice": ('"first", "choice"', "[0, 2000]", "has 1 value"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_factors_that_cannot_be_are_refused(tmp_path: Path, name: str) -> None:
    factors, second, words = REFUSED[name]
    with pytest.raises(TollbarError) as error:
        planned(tmp_path, factors, second)
    assert words in str(error.value)
