"""Sentences and figures, made only from verdicts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from statistics import median

import pytest

from report_example import BLOCKS, digests, large, passwords
from tollbar.analysis import Measurement, StudyJudgement, Toll, Verdict
from tollbar.core.intervals import Interval
from tollbar.core.records import RUNNER, Outcome
from tollbar.report.chart import block_costs, frontier
from tollbar.report.groups import cost_metric
from tollbar.report.html.layout import log_ticks
from tollbar.report.numbers import TOO_FEW, amount, bracket, excess_words, times, times_range, undecided
from tollbar.report.sections.against import against_baseline
from tollbar.report.sections.effects import contrast_where
from tollbar.report.sections.results import results
from tollbar.report.sections.trust import checked, drift, machine_load, noise, steal, suffers_words, two_costs

X = "×\u00a0"


def test_the_answer_says_what_costs_and_saves_everywhere_and_then_the_rest() -> None:
    expected = (
        f"Against SHA-256, in every cell measured, SHA-512 ({X}1.41 to {X}2.41),"
        f" MD5 (broken, {X}1.09 to {X}2.60) and SHA3-256 ({X}2.31 to {X}4.35) cost more,"
        f" and SHA-1 (disallowed, {X}0.87 to {X}0.95) costs less.",
        f"BLAKE3 costs more at 64 B and costs less at 16 KiB; BLAKE2b-512 ({X}0.99 to {X}1.84) costs more"
        " in 3 and is unclear in 1 of 4 cells; 2 cells could not be measured.",
    )
    assert expected == against_baseline(digests())


def test_names_with_commas_stand_in_quotation_marks() -> None:
    study = passwords()
    expected = (
        f"Against “PBKDF2-SHA256, 600,000”, “scrypt, N = 2^17, r = 8” ({X}4.12 [4.08, 4.16]) costs more, and"
        f" “One SHA-256, salted” (disallowed, {X}0.0000042 [0.0000041, 0.0000042]) costs less.",
        "“Argon2id, 19 MiB, 2 passes” is unclear; “bcrypt, cost 10” (deprecated) was not measured.",
    )
    assert expected == against_baseline(study)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (
            {"md5": Verdict.FREE, "sha-1": Verdict.FREE},
            (
                "Against SHA-256, no option is known to cost more or less.",
                "MD5 (broken) and SHA-1 (disallowed) are free (no meaningful difference: within 3 %).",
            ),
        ),
        (
            {"md5": Verdict.COSTS},
            (
                f"Against SHA-256, MD5 (broken, {X}2.00 [1.90, 2.10]) costs more.",
                "The 1 cell compared is decided.",
            ),
        ),
        (
            {"md5": Verdict.COSTS, "sha3-256": Verdict.UNCLEAR},
            (f"Against SHA-256, MD5 (broken, {X}2.00 [1.90, 2.10]) costs more.", "SHA3-256 is unclear."),
        ),
    ],
)
def test_the_answer_follows_the_verdicts(verdicts: Mapping[str, Verdict], expected: tuple[str, str]) -> None:
    assert expected == against_baseline(_one_size(verdicts))


# The run of one of the pages takes a while to make.
@pytest.mark.xdist_group("pages")
def test_many_choices_are_told_by_the_least_and_the_greatest() -> None:
    expected = (
        "Against Choice 03, in every cell measured, 16 cost more, from Choice 04"
        f" (broken, {X}1.09 to {X}1.10) to Choice 19 (broken, {X}2.47 to {X}2.52),"
        f" and Choice 00 ({X}0.71 to {X}0.73), Choice 01 ({X}0.81 to {X}0.82)"
        f" and Choice 02 (deprecated, {X}0.90 to {X}0.92) cost less.",
        "All 950 cells compared are decided.",
    )
    assert expected == against_baseline(large().studies[0])


def test_each_operation_has_its_own_answer() -> None:
    study = _one_size({"md5": Verdict.COSTS, "sha-1": Verdict.SAVES})
    tolls = [
        replace(t, row=replace(t.row, coordinates={**t.row.coordinates, "op": operation}))
        for t, operation in zip(study.tolls, ("sign", "verify"), strict=True)
    ]
    expected = (
        f"Against SHA-256, for `sign`, MD5 (broken, {X}2.00 [1.90, 2.10]) costs more;"
        f" for `verify`, SHA-1 (disallowed, {X}0.50 [0.45, 0.55]) costs less.",
        "All 2 cells compared are decided.",
    )
    assert expected == against_baseline(replace(study, tolls=tuple(tolls)))


def test_a_baseline_alone_has_its_cost() -> None:
    study = digests()
    ours = [row for row in study.rows if row.against == row.key]
    alone = replace(study, study=replace(study.study, rows=tuple(ours)), tolls=())
    both = replace(alone, measurements=tuple(m for m in study.measurements if m.row in ours))
    first = replace(alone, measurements=tuple(m for m in study.measurements if m.row == ours[0]))
    values = sorted(m.value for m in both.measurements if m.metric == cost_metric(study) and m.component is None)
    least, most = amount(values[0]), amount(values[-1])
    assert (f"SHA-256 costs {least} to {most}.", "No cell is compared with it.") == against_baseline(both)
    assert re.fullmatch(r"SHA-256 costs [\d.]+ [nµm]s\.", against_baseline(first)[0])
    nothing = replace(alone, measurements=())
    assert ("SHA-256 was not measured.", "No reason was recorded.") == against_baseline(nothing)


def test_nothing_measured_is_said_with_its_reason() -> None:
    study = _one_size({"md5": Verdict.NOT_MEASURED})
    rows = tuple(replace(r, outcome=Outcome.FAILED, reason="no library.", trials=()) for r in study.study.rows)
    study = replace(study, study=replace(study.study, rows=rows))
    expected = ("Nothing was measured against SHA-256.", "The first reason given: no library.")
    assert expected == against_baseline(study)


def test_trust_is_told_in_numbers() -> None:
    study = digests()
    expected = [
        "26 of 28 cells passed the correctness check before they were timed; 2 unsupported.",
        "Each block measures every baseline twice (an A/A pair); a baseline that does no work is replaced by a cell"
        f" that does. The pair with the furthest end differed by 0.09 %, a ratio of {X}1.001 [0.988, 1.014]."
        " Differences smaller than the far end of such an interval get no verdict, for a cell's own baseline and kind.",
        "The median cell's cost changed by −0.4 % from the first to the last third of the blocks."
        " A cell and its baseline work milliseconds apart, so drift changes both.",
    ]
    assert expected == [checked(study), noise(study), drift(study)]
    loaded = "The machine's load, including the lab's own processes, was 1.2 (from 0.5 to 1.2)."
    assert loaded == machine_load(study)


def test_what_others_took_of_a_batch_is_counted_once() -> None:
    """Trials of a batch share the time, and each of them reports all of it."""
    study = digests()
    batches = {(t.block, t.batch): t.steal_ns for r in study.study.rows for t in (*r.trials, *r.repeats)}
    touched = sum(steal_ns > 0 for steal_ns in batches.values())
    expected = (
        f"The hypervisor gave {10 * touched} ms of CPU time to others during {touched} of {len(batches)} batches,"
    )
    assert steal(study).startswith(expected)


def test_two_costs_are_told_apart_and_where_they_differ_is_said() -> None:
    said = two_costs(digests())
    assert said.startswith("The quiet cost is that of a quiet core: ")
    assert "The cost of all samples is that of today" in said
    assert said.endswith("than its baseline: 1 more, out of 22 cells.")
    (toll,) = [t for t in digests().tolls if t.suffers]
    assert "suffers more from neighbours than its baseline" == suffers_words(toll)
    alike = replace(digests(), tolls=tuple(t for t in digests().tolls if not t.suffers))
    assert two_costs(alike).endswith("in the first try of every round.")


def test_drift_reads_each_block_s_chunks_together() -> None:
    """A baseline is in several batches of a block, and one disturbed chunk moves no median."""
    row = next(r for r in digests().study.rows if len({t.batch for t in r.trials}) > 1)
    chunks = [c for t in row.trials if t.block == 3 for c in t.chunks]
    trial = row.trials[0]
    assert median(trial.cost_of(c) for c in chunks) == block_costs(row)[3]
    assert {*range(BLOCKS)} == block_costs(row).keys()
    slow = replace(trial.chunks[0], cpu_ns={RUNNER: 100 * trial.cpu_ns})
    slowed = replace(row, trials=(replace(trial, chunks=(slow, *trial.chunks[1:])), *row.trials[1:]))
    assert block_costs(row)[trial.block] == pytest.approx(block_costs(slowed)[trial.block], rel=0.01)


def test_pairs_with_nothing_in_common_but_their_verdict_are_elsewhere() -> None:
    study = digests()
    first, *others = study.contrasts
    apart = replace(first, where={})
    split = replace(study, contrasts=(apart, *others))
    assert "elsewhere" == contrast_where(split, apart, most=3)
    assert "" == contrast_where(replace(study, contrasts=(apart,)), apart, most=3)
    assert "at 64 B" == contrast_where(study, first, most=3)


def test_every_metric_and_component_has_a_column() -> None:
    study = digests()
    row = study.study.rows[0]
    found = [
        Measurement(row, "key-loads", "1/op", 2.0, 1.9, 2.1, BLOCKS, component="cache"),
        Measurement(row, "wall", "ns/op", 5000.0, 4900.0, 5100.0, BLOCKS),
        Measurement(row, "cpu", "ns/op", 100.0, 99.0, 101.0, BLOCKS, component="part"),
    ]
    table = results(replace(study, measurements=(*study.measurements, *found))).table
    heads = [column.title for column in table.columns]
    first = heads.index("ratio of all samples")
    assert ["elapsed time", "key loads, cache", "blocks"] == heads[first + 1 : first + 4]
    assert "2 1/op" == table.rows[0][heads.index("key loads, cache")].says


def test_pairs_of_a_contrast_are_a_range() -> None:
    assert f"{X}1.14 to {X}1.18" == times_range(1.14, 1.18)
    assert f"{X}1.14" == times_range(1.139, 1.141)


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(2.1, f"{X}2.10"), (0.00534, f"{X}0.0053"), (0.0000042, f"{X}0.0000042"), (12345.0, f"{X}12,300")],
)
def test_ratios_have_three_figures(ratio: float, expected: str) -> None:
    assert expected == times(ratio)


def test_too_few_blocks_give_no_interval() -> None:
    """An interval from zero to infinity is printed in words."""
    assert TOO_FEW == bracket(Interval(1.1, 0.0, inf, 0.95, 3))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.4, 6.0, (0.5, 1.0, 2.0, 5.0)),
        (0.95, 1.08, (0.96, 0.98, 1.0, 1.02, 1.04, 1.06, 1.08)),
        (0.5, 300.0, (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)),
        (0.00001, 4.0, (0.00001, 0.0001, 0.001, 0.01, 0.1, 1.0)),
    ],
)
def test_log_axes_are_labelled_at_round_numbers(low: float, high: float, expected: tuple[float, ...]) -> None:
    assert expected == log_ticks(low, high)


def test_the_frontier_is_the_cheapest_for_at_least_so_many_bits() -> None:
    assert [(128, 10.0), (256, 20.0)] == frontier([(112, 15.0), (128, 10.0), (192, 30.0), (256, 20.0), (128, 12.0)])


@pytest.mark.parametrize(
    ("low", "high", "noise", "expected"),
    [
        (0.96, 0.98, 1.002, "less by 2 to 4 %; the interval crosses the 3 % threshold"),
        (1.02, 1.06, 1.002, "more by 2 to 6 %; the interval crosses the 3 % threshold"),
        (1.027, 1.034, None, "more by 2.7 to 3.4 %; the interval crosses the 3 % threshold"),
        (0.984, 1.21, None, "from 1.6 % less to 21 % more; the interval crosses the 3 % threshold"),
        (0.29, 4.01, None, f"from {X}0.29 to {X}4.01; the interval crosses the 3 % threshold"),
        (
            0.99,
            1.01,
            1.08,
            "from 1.0 % less to 1.0 % more, within the 3 % threshold, but A/A pairs may differ by 8.0 %",
        ),
        (1.05, 1.07, 1.08, "more by 5 to 7 %, but A/A pairs may differ by 8.0 %"),
        (0.0, inf, 1.002, "too few blocks for an interval"),
    ],
)
def test_what_is_undecided_says_between_what(low: float, high: float, noise: float | None, expected: str) -> None:
    found = Interval((low * high) ** 0.5 if low else 1.0, low, high, 0.95, 8)
    assert expected == excess_words(found, 0.03, noise)


def test_an_unclear_row_says_what_would_decide_it() -> None:
    (toll,) = _one_size({"sha3-256": Verdict.UNCLEAR}).tolls
    said = "undecided, about 2 more blocks: from 1.0 % less to 7.0 % more; the interval crosses the 3 % threshold"
    assert said == undecided(digests(), replace(toll, more_blocks=2))
    assert undecided(digests(), replace(toll, verdict=Verdict.COSTS)) is None


def _one_size(verdicts: Mapping[str, Verdict]) -> StudyJudgement:
    """Return the digests at one size on one provider, with these verdicts and round ratios."""
    ratios = {
        Verdict.COSTS: Interval(2.0, 1.9, 2.1, 0.95, 20),
        Verdict.SAVES: Interval(0.5, 0.45, 0.55, 0.95, 20),
        Verdict.FREE: Interval(1.0, 0.99, 1.01, 0.95, 20),
        Verdict.UNCLEAR: Interval(1.03, 0.99, 1.07, 0.95, 20),
        Verdict.NOT_MEASURED: None,
    }
    study = digests()
    tolls: list[Toll] = []
    for toll in study.tolls:
        row = toll.row
        if row.choice in verdicts and row.provider.startswith("openssl") and row.coordinates["bytes"] == 64:
            verdict = verdicts[row.choice]
            tolls.append(replace(toll, verdict=verdict, ratio=ratios[verdict]))
    return replace(study, tolls=tuple(tolls))
