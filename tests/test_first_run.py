"""First runs on a processor: the chain detects a steady neighbour, and an idle machine counts as quiet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from disturbed import Disturbance, Kind, Work, lognormal
from simulated import CHAIN_NS, FINGERPRINT, PROBE_NS, PROCESSOR, Lab
from test_coverage import MACHINES
from tollbar.analysis import StudyJudgement, judge
from tollbar.analysis.quotients import by_chain_ns, listed
from tollbar.analysis.trust import STEADY_NEIGHBOUR, Trust, is_near
from tollbar.core.intervals import Interval, Moments
from tollbar.core.moments import Known, Watch, keep_best, quickness_of
from tollbar.report.sections.accuracy import quiet_share_words
from tollbar.report.sections.warnings import warnings

# Equal costs on a quiet core; a neighbour slows one more and one less than the baseline.
WORKS = (Work(20_000), Work(20_000, suffers=1.3), Work(20_000, suffers=0.6))
NEVER_QUIET = replace(MACHINES["never quiet"], best_probe_ns=None)
# The probe takes 1.3 times as long throughout: the weakest neighbour that must be detected.
WEAK = Kind((Disturbance(((math.log(1.3) / 0.9, lognormal(5.0)), (math.log(1.32) / 0.9, lognormal(5.0)))),))
# Spread of the quotient between machines of a model, and between hours.
NOISE = 0.02
IDLE = Kind((), quotient_noise=NOISE)


def found(kind: Kind, seed: int, blocks: int = 4) -> StudyJudgement:
    with Lab(kind, WORKS, 5000 + seed, blocks=blocks) as lab:
        lab.measure(blocks)
        (study,) = judge(lab.look()).studies
    return study


def is_called_noisy(study: StudyJudgement) -> bool:
    """Return whether no ratio and no moment is called quiet."""
    moments = {toll.ratio.moments for toll in study.tolls if toll.ratio is not None}
    return {Moments.ALL} == moments and 0.0 == study.trust.quiet_share


def is_called_quiet(study: StudyJudgement) -> bool:
    moments = {toll.ratio.moments for toll in study.tolls if toll.ratio is not None}
    return {Moments.QUIET} == moments and study.trust.slower_than_known is None


def is_not_accused(study: StudyJudgement) -> bool:
    """Return whether the chain reports no steady neighbour, however seldom the core was quiet."""
    return study.trust.slower_than_known is None


def check(kind: Kind, is_called: Callable[[StudyJudgement], bool], runs: int) -> None:
    called = sum(is_called(found(kind, seed)) for seed in range(runs))
    print(f"{is_called.__name__} in {called} of {runs}")
    assert called >= 0.95 * runs


@pytest.mark.parametrize("kind", [NEVER_QUIET, WEAK], ids=["never quiet", "weak"])
def test_a_steady_neighbour_is_told(kind: Kind) -> None:
    for seed in range(2):
        study = found(kind, seed)
        assert is_called_noisy(study)
        assert Known.CHAIN is study.trust.known_by
        assert any("estimated from a chain of dependent steps" in line for line in warnings(study))
        assert not any("Cannot exclude" in line for line in warnings(study))


def test_an_idle_machine_is_called_quiet() -> None:
    for seed in range(4):
        study = found(IDLE, seed)
        assert is_called_quiet(study)
        assert ((), Known.CHAIN) == (warnings(study), study.trust.known_by)


@pytest.mark.coverage
@pytest.mark.parametrize("kind", [NEVER_QUIET, WEAK], ids=["never quiet", "weak"])
def test_a_steady_neighbour_is_told_in_many_first_runs(kind: Kind) -> None:
    check(kind, is_called_noisy, 100)
    check(replace(kind, quotient_noise=NOISE), is_called_noisy, 100)


@pytest.mark.coverage
def test_an_idle_machine_is_called_quiet_in_many_first_runs() -> None:
    check(IDLE, is_called_quiet, 100)


@pytest.mark.coverage
@pytest.mark.parametrize("name", ["on and off", "three levels", "frequency", "bursts"])
def test_no_steady_neighbour_is_told_where_one_comes_and_goes(name: str) -> None:
    check(replace(MACHINES[name], quotient_noise=NOISE), is_not_accused, 100)


def test_on_an_unlisted_processor_a_steady_neighbour_cannot_be_excluded() -> None:
    study = found(replace(NEVER_QUIET, is_listed=False), 0)
    assert (Known.NOTHING, True) == (study.trust.known_by, study.trust.may_have_neighbour)
    (line,) = [line for line in warnings(study) if "first run" in line]
    assert line.startswith("Cannot exclude a steady neighbour: first run on this processor.")
    assert "not known: first run on this processor" in quiet_share_words(study)


def test_with_history_the_chain_is_not_read() -> None:
    with Lab(MACHINES["never quiet"], WORKS, 1, blocks=4) as lab:
        lab.measure(4)
        run = lab.look()
    assert run.chain_ns is None
    (study,) = judge(run).studies
    assert (Known.EARLIER_RUNS, True) == (study.trust.known_by, is_called_noisy(study))


def test_a_first_run_keeps_its_chain() -> None:
    with Lab(Kind(()), WORKS, 1, blocks=4) as lab:
        lab.measure(4)
        assert CHAIN_NS == pytest.approx(lab.look().chain_ns, rel=0.03)


def test_quotients_are_found_by_model() -> None:
    for family in (f"{PROCESSOR.family}/0", f"{PROCESSOR.family}/1"):
        assert PROBE_NS == pytest.approx(by_chain_ns({**FINGERPRINT, "family": family}, CHAIN_NS))
    assert by_chain_ns(FINGERPRINT, None) is None
    assert by_chain_ns({**FINGERPRINT, "family": f"{PROCESSOR.family}0/1"}, CHAIN_NS) is None
    assert by_chain_ns({"cpu": "aarch64", "family": "//"}, CHAIN_NS) is None
    assert by_chain_ns({}, CHAIN_NS) is None
    assert len({(one.cpu, one.family) for one in listed()}) == len(listed())


def test_the_chain_counts_where_nothing_is_known_of_earlier_runs() -> None:
    slow = [1.3 * PROBE_NS] * 60
    assert pytest.approx(1.3) == quickness_of(slow, None, PROBE_NS).slower_than_known
    assert quickness_of(slow, 1.3 * PROBE_NS, PROBE_NS).was_ever_quiet
    assert quickness_of(slow).was_ever_quiet
    assert quickness_of([1.06 * PROBE_NS] * 60, None, PROBE_NS).was_ever_quiet
    assert not quickness_of([1.1 * PROBE_NS] * 60, None, PROBE_NS).was_ever_quiet


def test_readings_next_to_a_neighbour_are_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[str] = []
    monkeypatch.setattr("tollbar.core.moments.write_atomically", lambda path, text: kept.append(text))
    monkeypatch.setattr("tollbar.core.moments.best_known", lambda machine: None)
    keep_best(("a", "b"), [1.3 * PROBE_NS] * 60, PROBE_NS)
    assert [] == kept
    keep_best(("a", "b"), [1.05 * PROBE_NS] * 60, PROBE_NS)
    assert 1 == len(kept)


def test_one_lucky_chain_is_not_the_quickest() -> None:
    watch = Watch()
    watch.note_chains([])
    assert watch.chain_ns is None
    watch.note_chains([100.0, *[200.0] * 20])
    assert 200.0 == watch.chain_ns
    watch.note_chains([190.0] * 3)
    watch.note_chains([195.0])
    assert 190.0 == watch.chain_ns


@pytest.mark.parametrize(
    ("ends", "is_so"),
    [((1.0, 1.04), False), ((1.0, 1.05), True), ((1.25, 1.3), True), ((1.39, 1.4), False), ((0.9, 1.6), True)],
)
def test_a_ratio_near_a_limit(ends: Sequence[float], is_so: bool) -> None:
    limit, (low, high) = 1.2, ends
    ratio = Interval(math.sqrt(low * high), low, high, 0.96, 12, Moments.QUIET)
    unsure, sure = (Trust(4, 4, 4, 4, known_by=known) for known in (Known.NOTHING, Known.CHAIN))
    assert 1.15 == STEADY_NEIGHBOUR
    assert is_so == is_near(ratio, limit, sure, unsure)
    assert not is_near(ratio, limit, sure)
