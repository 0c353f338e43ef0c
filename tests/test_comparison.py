"""Comparison of two runs, whatever the versions of their libraries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf

import pytest

from builders import row, run, study_run, trials
from tollbar.analysis import Changed, Comparison, compare, judge
from tollbar.analysis.comparison import upgrade
from tollbar.core import method
from tollbar.core.errors import TollbarError
from tollbar.core.intervals import Moments
from tollbar.core.records import Trial
from tollbar.report.changes import comparison_notes, comparison_tables
from tollbar.report.terminal import show_comparison, streams
from tollbar.results import Run

BLOCKS = 8


def measured(providers: Mapping[str, tuple[str, float]], server: str | None = None, choices: int = 2) -> Run:
    """Return a run of some choices with these providers: spec, name and cost of a choice."""
    rows = []
    for spec, (name, times) in providers.items():
        at = {"choice": "none", "provider": spec}
        base = [100.0 + 0.01 * block for block in range(BLOCKS)]
        rows.append(replace(row(at, base, repeats_ns=base), provider=name, server_version=server))
        for choice in range(choices):
            cell = row({"choice": f"c{choice}", "provider": spec}, [times * b for b in base], against=f"none {spec}")
            rows.append(replace(cell, provider=name, server_version=server))
    return run(study_run(rows, (BLOCKS,)))


def compared(one: Run, other: Run) -> Comparison:
    return compare(judge(one), judge(other))


SYSTEM, WHEEL = "libcrypto", "libcrypto:psycopg"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # Same versions.
        ({SYSTEM: ("openssl 3.0.19", 2.0)}, {SYSTEM: ("openssl 3.0.19", 2.0)}, ()),
        # Upgrade.
        ({SYSTEM: ("openssl 3.0.19", 2.0)}, {SYSTEM: ("openssl 3.0.20", 2.0)}, ("openssl 3.0.19 → 3.0.20",)),
        # Two providers of one name, one with the other's former version.
        (
            {SYSTEM: ("openssl 3.0.19", 2.0), WHEEL: ("openssl 3.5.4", 3.0)},
            {SYSTEM: ("openssl 3.0.20", 2.0), WHEEL: ("openssl 3.0.19", 3.0)},
            ("openssl 3.0.19 → 3.0.20", "openssl 3.5.4 → 3.0.19"),
        ),
        (
            {SYSTEM: ("openssl 3.0.19", 2.0), "aws-lc": ("aws-lc 1.71.0", 3.0)},
            {"aws-lc": ("aws-lc 1.72.0", 3.0), SYSTEM: ("openssl 3.0.19", 2.0)},
            ("aws-lc 1.71.0 → 1.72.0",),
        ),
    ],
)
def test_an_upgraded_library_is_the_same_row(
    one: Mapping[str, tuple[str, float]], other: Mapping[str, tuple[str, float]], expected: tuple[str, ...]
) -> None:
    found = compared(measured(one), measured(other))
    assert expected == found.upgrades
    # Two choices and their baseline.
    assert 3 * len(one) == len(found.pairs)
    assert (0, 0) == found.without_partner
    assert pytest.approx(0.0, abs=1e-6) == found.median_difference
    assert 1.0 == found.overlapping


def test_an_upgrade_is_shown_by_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    one = measured({SYSTEM: ("openssl 3.0.19", 2.0), "aws-lc": ("aws-lc 1.71.0", 3.0)}, "nginx 1.22.1")
    other = measured({SYSTEM: ("openssl 3.0.20", 2.0), "aws-lc": ("aws-lc 1.71.0", 3.0)}, "nginx 1.24.0")
    streams.stdout.cache_clear()
    show_comparison(compared(one, other))
    streams.stdout.cache_clear()
    said = [line.strip() for line in capsys.readouterr().out.splitlines() if "another version" in line]
    assert ["another version: openssl 3.0.19 → 3.0.20", "another version: nginx 1.22.1 → 1.24.0"] == said


def test_rows_without_a_partner_are_counted() -> None:
    one = measured({SYSTEM: ("openssl 3.0.19", 2.0), "rustcrypto": ("rustcrypto", 2.0)})
    found = compared(one, measured({SYSTEM: ("openssl 3.0.19", 2.0)}, choices=3))
    assert (3, 1) == found.without_partner
    assert {"study": (3, 1)} == found.alone
    assert 3 == len(found.pairs)
    assert [
        "only in example, 3 rows: none · rustcrypto; c0 · rustcrypto; c1 · rustcrypto",
        "only in example, 1 row: c2 · libcrypto",
    ] == [note for note in comparison_notes(found) if note.startswith("only in")]


def test_another_version_of_the_server_is_said() -> None:
    library = {SYSTEM: ("openssl 3.0.19", 2.0)}
    found = compared(measured(library, "nginx 1.22.1"), measured(library, "nginx 1.24.0"))
    assert ("nginx 1.22.1 → 1.24.0",) == found.upgrades


def test_nothing_in_common_is_an_error() -> None:
    one = measured({SYSTEM: ("openssl 3.0.19", 2.0)})
    with pytest.raises(TollbarError, match="no toll in common"):
        compared(one, measured({"rustcrypto": ("rustcrypto", 2.0)}))
    elsewhere = judge(replace(one, fingerprint={"cpu": "another"}))
    with pytest.raises(TollbarError, match="not measured on the same machine"):
        compare(judge(one), elsewhere)
    assert ("cpu: None / another",) == compare(judge(one), elsewhere, across_machines=True).fingerprint_differences


def test_runs_of_two_versions_of_the_method_are_compared_only_where_that_is_asked() -> None:
    one = measured({SYSTEM: ("openssl 3.0.19", 2.0)})
    earlier = judge(replace(one, method=method.FIRST))
    with pytest.raises(TollbarError, match=f"versions {method.FIRST} and {method.VERSION} of the method") as refused:
        compare(judge(one), earlier)
    assert "--across-methods" in (refused.value.hint or "")
    assert compare(judge(one), earlier, across_methods=True).pairs


def test_a_run_from_just_after_boot_is_of_the_same_machine() -> None:
    """The kernel's way of counting interrupts was unknown just after boot."""
    run_of = measured({SYSTEM: ("openssl 3.0.19", 2.0)})
    young, later = (judge(replace(run_of, fingerprint={"interrupts_apart": at})) for at in ("not stated", False))
    assert () == compare(young, later).fingerprint_differences


def altered(of: Run, **changes: object) -> Run:
    """Return the run with its study's question changed."""
    (one,) = of.studies
    return replace(of, studies=(replace(one, study=replace(one.study, **changes)),))  # type: ignore[arg-type]


def test_two_questions_of_one_name_are_not_one() -> None:
    """Every `ask` has the same study name; another question is another study."""
    one = altered(measured({SYSTEM: ("openssl 3.0.19", 2.0)}), name="ask", question="Which digest?")
    other = altered(one, question="Which digest at 4 KiB?")
    assert 3 == len(compared(one, one).pairs)
    with pytest.raises(TollbarError, match="ask: another question"):
        compared(one, other)
    both = replace(one, studies=(*one.studies, *measured({SYSTEM: ("openssl 3.0.19", 2.0)}).studies))
    too = replace(other, studies=(*other.studies, *measured({SYSTEM: ("openssl 3.0.20", 2.0)}).studies))
    found = compared(both, too)
    assert ["study"] == list(found.studies)
    assert [("ask", "another question: “Which digest?” / “Which digest at 4 KiB?”", 3)] == [
        (one.study, one.reason, one.rows) for one in found.left_out
    ]
    assert any("not compared: 3 rows of ask: another question" in note for note in comparison_notes(found))


def test_another_kind_of_cost_is_no_change() -> None:
    one = measured({SYSTEM: ("openssl 3.0.19", 2.0)})
    other = altered(one, measure=replace(one.studies[0].study.measure, cost="client-cpu"))
    with pytest.raises(TollbarError, match="another cost: cpu / client-cpu"):
        compared(one, other)


def test_another_family_is_no_partner() -> None:
    one = measured({SYSTEM: ("openssl 3.0.19", 2.0)})
    other = altered(one, family=replace(one.studies[0].study.family, name="mac"))
    with pytest.raises(TollbarError, match="another family: digest / mac"):
        compared(one, other)


def test_ratios_to_another_baseline_are_left_out() -> None:
    one = measured({SYSTEM: ("openssl 3.0.19", 2.0)})
    (study,) = one.studies
    none, c0, c1 = study.rows
    rows = (
        replace(none, against=c0.key),
        replace(c0, against=c0.key, repeats=none.repeats),
        replace(c1, against=c0.key),
    )
    other = replace(one, studies=(replace(study, rows=rows),))
    found = compared(one, other)
    assert [None] * 3 == [pair.ratio_change for pair in found.pairs]
    assert all(pair.cost_change for pair in found.pairs)
    assert [("study", "ratios to another baseline", 3)] == [(o.study, o.reason, o.rows) for o in found.left_out]
    assert any("3 rows" in note and "another baseline" in note for note in comparison_notes(found))
    assert (None, None) == (found.median_difference, found.overlapping)


def test_a_choice_with_other_parameters_is_no_partner() -> None:
    """`interactive` of one version may be another amount of work in the next."""
    one = measured({SYSTEM: ("openssl 3.0.19", 2.0)})
    family = one.studies[0].study.family
    null = family.choices["none"]
    runs = [
        altered(one, family=replace(family, choices={**family.choices, "c0": replace(null, setting={"n": n})}))
        for n in (16384, 32768)
    ]
    found = compared(*runs)
    assert ["none", "c1"] == [pair.row.choice for pair in found.pairs]
    assert [("study", "another c0: n 16384 / 32768", 1)] == [(o.study, o.reason, o.rows) for o in found.left_out]


def test_the_system_s_libcrypto_is_one_provider_by_either_name() -> None:
    one = measured({SYSTEM: ("openssl 3.0.19", 2.0)})
    found = compared(one, measured({f"{SYSTEM}:system": ("openssl 3.0.22", 2.0)}))
    assert (3, (0, 0)) == (len(found.pairs), found.without_partner)
    assert ("openssl 3.0.19 → 3.0.22",) == found.upgrades


def slower(times: float, baseline: float = 1.0) -> Comparison:
    """Return a comparison of a run and one whose choice and baseline cost this many times as much."""
    one, other = measured({SYSTEM: ("openssl 3.0.19", 2.0)}), measured({SYSTEM: ("openssl 3.0.19", 2.0 * times)})
    (study,) = other.studies
    none, *rest = study.rows
    costs = [100.0 * baseline + 0.01 * block for block in range(BLOCKS)]
    again = replace(none, trials=trials(costs), repeats=trials(costs, repeat=True))
    return compared(one, replace(other, studies=(replace(study, rows=(again, *rest)),)))


@pytest.mark.parametrize(
    ("times", "baseline", "above", "of", "expected"),
    [
        (1.10, 1.0, 0.05, "ratio", {"c0", "c1"}),
        (1.04, 1.0, 0.05, "ratio", set()),
        (0.80, 1.0, 0.05, "ratio", set()),
        # The whole machine is slower: costs show it, ratios do not.
        (1.10, 1.10, 0.05, "ratio", set()),
        (1.10, 1.10, 0.05, "cost", {"none", "c0", "c1"}),
    ],
)
def test_what_became_dearer_is_found(
    times: float, baseline: float, above: float, of: Changed, expected: set[str]
) -> None:
    assert expected == {one.pair.row.choice for one in slower(times, baseline).increases(above, of)}


def test_an_interval_that_reaches_across_the_limit_is_no_increase() -> None:
    found = slower(1.10)
    wide = tuple(
        replace(pair, other=replace(pair.other, low=pair.other.low * 0.9)) if pair.other else pair
        for pair in found.pairs
    )
    assert () == replace(found, studies={"study": wide}).increases(0.05)
    too_few = tuple(
        replace(pair, other=replace(pair.other, low=0.0, high=inf)) if pair.other else pair for pair in found.pairs
    )
    assert () == replace(found, studies={"study": too_few}).increases(0.05)


def test_costs_and_ratios_stand_side_by_side() -> None:
    (table,) = comparison_tables(slower(1.10)).values()
    said = {row[0].says: [cell.says for cell in row[1:]] for row in table.rows}
    assert ["200 ns → 220 ns", "+10 %"] == said["c0"][:2]
    assert ["2.00 → 2.20", "+10 %"] == said["c0"][3:5]
    assert ["100 ns → 100 ns", "baseline"] == [said["none"][0], said["none"][3]]
    assert "apart" == said["c0"][-1]


def busy(of: Run, times: float) -> Run:
    """Return the run with a core that was never quiet: no probe times, and chunks multiplied by this factor."""

    def noisy(one: Trial) -> Trial:
        chunks = tuple(
            replace(c, cpu_ns={name: round(ns * times) for name, ns in c.cpu_ns.items()}, probes_ns=None)
            for c in one.chunks
        )
        return replace(one, chunks=chunks)

    (study,) = of.studies
    rows = tuple(
        replace(r, trials=tuple(map(noisy, r.trials)), repeats=tuple(map(noisy, r.repeats))) for r in study.rows
    )
    return replace(of, studies=(replace(study, rows=rows),))


def half_disturbed(of: Run) -> Run:
    """Return the run with a neighbour that doubles the cost of choices in each cell's second half of rounds."""

    def noisy(one: Trial, times: float) -> Trial:
        later = [
            replace(c, cpu_ns={n: round(ns * times) for n, ns in c.cpu_ns.items()}, probes_ns=(40_000.0, 40_000.0))
            for c in one.chunks[2:]
        ]
        return replace(one, chunks=(*one.chunks[:2], *later))

    (study,) = of.studies
    none, *rest = study.rows
    rows = [
        replace(none, trials=tuple(noisy(t, 1.0) for t in none.trials)),
        *(replace(r, trials=tuple(noisy(t, 1.5) for t in r.trials)) for r in rest),
    ]
    return replace(of, studies=(replace(study, rows=tuple(rows)),))


def test_moments_of_one_kind_are_set_side_by_side() -> None:
    """If one core was never quiet, both runs use all samples; otherwise neighbours look like a change."""
    quiet = half_disturbed(measured({SYSTEM: ("openssl 3.0.19", 2.0)}))
    found = compared(quiet, busy(measured({SYSTEM: ("openssl 3.0.19", 2.5)}), 1.0))
    (pair, *_) = [pair for pair in found.pairs if pair.one is not None]
    assert pair.one is not None
    assert pair.other is not None
    # Quiet samples give 2 for the first run's ratio; all first tries give 2.5.
    assert {Moments.ALL} == {pair.one.moments, pair.other.moments}
    assert pytest.approx((2.5, 2.5), rel=1e-3) == (pair.one.estimate, pair.other.estimate)
    assert pytest.approx(1.0, rel=1e-3) == (pair.cost_change.estimate if pair.cost_change else None)
    assert 2 == found.noisy
    assert any(note.startswith("Compared over all samples in both runs: 2 ratios") for note in comparison_notes(found))
    alike = compared(quiet, quiet)
    assert {Moments.QUIET} == {pair.one.moments for pair in alike.pairs if pair.one}
    assert 0 == alike.noisy


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("openssl 3.0.19", "openssl 3.0.20", "openssl 3.0.19 → 3.0.20"),
        ("node crypto 20.18.0", "node crypto 22.11.0", "node crypto 20.18.0 → 22.11.0"),
        ("openssl 3.0.19", "aws-lc 5.12.0", "openssl 3.0.19 → aws-lc 5.12.0"),
        ("openssl 3.0.19 (a)", "openssl 3.0.19 (b)", "openssl 3.0.19 (a) → 3.0.19 (b)"),
        ("openssl 3.0.19", "openssl 3.0.19", "openssl 3.0.19 → 3.0.19"),
    ],
)
def test_an_upgrade_names_what_both_have_once(one: str, other: str, words: str) -> None:
    assert words == upgrade(one, other)
