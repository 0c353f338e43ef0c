"""Judge of a run: tolls, contrasts and verdicts on published claims, made from its trials.

Reads a `Run` and measures nothing.
"""

from __future__ import annotations

from tollbar.analysis.break_evens import BreakEven, break_evens
from tollbar.analysis.by_source import BySource
from tollbar.analysis.claims import ClaimResult, ClaimVerdict, claim_results
from tollbar.analysis.comparison import Changed, Comparison, Increase, LeftOut, RowChange, compare
from tollbar.analysis.contrasts import Contrast, contrasts
from tollbar.analysis.crosstables import CrossCell, CrossTableResult, crosstables
from tollbar.analysis.decisions import Terms, reach
from tollbar.analysis.factors import FactorPart, FactorsResult, Split, Together, factors, split_as_one_of
from tollbar.analysis.judgement import Judgement, StudyJudgement
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.measurements import Limit, Measurement, limit_of, measurements
from tollbar.analysis.noise import largest_difference, repeats, worst_noise
from tollbar.analysis.probes import quickness
from tollbar.analysis.quotients import by_chain_ns
from tollbar.analysis.scaling import Scaling, ScalingResult, scaling
from tollbar.analysis.tolls import Compared, one_of, tolls
from tollbar.analysis.trust import Trust, drift, trust
from tollbar.analysis.verdicts import Toll, Verdict
from tollbar.core.moments import Quickness
from tollbar.results import Run, StudyRun

__all__ = [
    "BreakEven",
    "BySource",
    "Changed",
    "ClaimResult",
    "ClaimVerdict",
    "Compared",
    "Comparison",
    "Contrast",
    "CrossCell",
    "CrossTableResult",
    "FactorPart",
    "FactorsResult",
    "Increase",
    "Judgement",
    "LeftOut",
    "Limit",
    "Measurement",
    "RowChange",
    "Scaling",
    "ScalingResult",
    "Split",
    "StudyJudgement",
    "Terms",
    "Together",
    "Toll",
    "Trust",
    "Verdict",
    "by_chain_ns",
    "compare",
    "judge",
    "judge_study",
    "limit_of",
    "one_of",
    "quickness",
    "reach",
    "split_as_one_of",
]


def judge(run: Run) -> Judgement:
    """Return the judgement of a run, study by study, made from its trials alone; equal runs give equal judgements."""
    known = quickness(run)
    return Judgement(run, tuple(judge_study(study_run, known) for study_run in run.studies))


def judge_study(study_run: StudyRun, known: Quickness | None = None) -> StudyJudgement:
    """Return the judgement of one study; `known` is its run's quickness, by default that of the study's own probes."""
    study = study_run.study
    terms = Terms.of(study_run)
    ledger = Ledger(study_run.rows, terms, study.measure.cost, study.family, known)
    return StudyJudgement(
        study=study_run,
        confidence=terms.confidence,
        noise_floor=largest_difference(ledger),
        noise=worst_noise(ledger),
        measurements=measurements(ledger),
        tolls=tolls(ledger, study.baseline),
        contrasts=contrasts(study_run, ledger),
        claims=claim_results(study_run, ledger, terms),
        drift=drift(ledger),
        trust=trust(study_run, ledger),
        tables=crosstables(study_run, ledger),
        factors=factors(study_run, ledger),
        scaling=scaling(ledger),
        repeats=repeats(ledger),
        break_evens=break_evens(ledger, study.family),
        ledger=ledger,
    )
