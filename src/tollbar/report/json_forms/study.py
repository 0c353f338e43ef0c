"""Part of a run's document that is about one study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from tollbar.analysis import Measurement, StudyJudgement
from tollbar.core.records import Negotiated, Outcome, SetAside
from tollbar.report.json_forms.form import OMITTED, Ends, Form, Number, Values, high_of, low_of, of, within
from tollbar.report.json_forms.parts import ClaimForm, WhereForm, names_of
from tollbar.report.json_forms.several import ContrastForm, FactorsForm, ScalingForm, StudyTableForm
from tollbar.report.json_forms.uses import UsesForm
from tollbar.report.sections.against import sentences
from tollbar.report.sections.answer import answer
from tollbar.report.sections.uses import uses_of
from tollbar.report.sections.warnings import warnings
from tollbar.results import Row


class AnswersForm(Form):
    headline: str
    paragraphs: list[str]
    sentences: list[str]


class NegotiatedForm(Form):
    """Number of connections that agreed on the same parameters."""

    version: str
    suite: str
    # Suites of one construction have no order of their MAC.
    mac_order: Annotated[str | None, of(lambda one: one.mac_order or None), OMITTED] = None
    group: str
    certificate: str
    certificate_key: str
    resumed: bool
    count: int


class _Result(NamedTuple):
    """Metric of a cell; without a number if it was not measured."""

    row: Row
    metric: str
    measured: Measurement | None = None
    agreed: Sequence[Negotiated] = ()

    @property
    def is_cut_short(self) -> bool:
        """True if it was proven and then not measured: there is no number, so the row does not report `ok`."""
        return self.measured is None and self.row.outcome is Outcome.OK


class ResultForm(WhereForm):
    metric: str
    component: Annotated[str | None, of("measured.component")]
    unit: Annotated[str, of(lambda result: result.measured.unit if result.measured else "ns/op")]
    value: Annotated[Number, of("measured.value")]
    low: Annotated[Number, low_of("measured")]
    high: Annotated[Number, high_of("measured")]
    limit: Annotated[str | None, of("measured.limit"), OMITTED] = None
    blocks: Annotated[int, of(lambda result: result.measured.blocks if result.measured else 0)]
    noisy: Annotated[bool | None, of("measured.is_noisy")]
    outcome: Annotated[str, of(lambda result: Outcome.FAILED if result.is_cut_short else result.row.outcome)]
    reason: Annotated[str | None, of(lambda result: "no trial was made" if result.is_cut_short else result.row.reason)]
    standing: Annotated[str, of("row.standing")]
    strength: Annotated[int | None, of("row.strength")]
    known_answers: Annotated[int, of("row.known_answers")]
    accepted: Annotated[list[str], of("row.accepted")]
    refused: Annotated[list[str], of("row.refused")]
    not_tried: Annotated[list[str], of("row.not_tried")]
    negotiated: Annotated[list[NegotiatedForm] | None, of(lambda result: result.agreed or None), OMITTED] = None
    client_libraries: Annotated[
        list[str] | None, of(lambda result: result.row.client_libraries if result.agreed else None), OMITTED
    ] = None


class TollForm(WhereForm):
    against: WhereForm
    metric: str
    ratio: Annotated[Number, of("ratio.estimate")]
    low: Annotated[Number, low_of("ratio")]
    high: Annotated[Number, high_of("ratio")]
    difference: Number
    all_: Annotated[Number, of("all_samples.estimate")] = Field(alias="all")
    all_interval: Annotated[Ends, of("all_samples")]
    suffers: str | None
    noise: Ends
    confidence: Annotated[Number, of("ratio.confidence")]
    blocks: Annotated[int, of(lambda toll: toll.ratio.n if toll.ratio else 0)]
    noisy: Annotated[bool | None, of("ratio.is_noisy")]
    noise_floor: Number
    verdict: str
    more_blocks: int | None
    reason: str | None
    aa: Annotated[bool, of(lambda toll: toll.row.against == toll.row.key)]


class LeftOutForm(Form):
    coordinates: Annotated[Values, within(lambda left, run: names_of(left[0], run))]
    because: Annotated[str, of(lambda left: left[1])]


class SetAsideForm(Form):
    """Quarantine of a cell that the run no longer has."""

    failed: Annotated[int, of("one.failed")]
    trials: Annotated[int, of("one.trials")]
    after: Annotated[int, of("one.after")]
    reason: Annotated[str, of("one.reason")]
    at: Annotated[float, of("one.at_s")]
    tried_again: Annotated[bool, of(lambda of_row: of_row.one.tried_again_s is not None)]


class SetAsideCellForm(SetAsideForm, WhereForm):
    """Quarantine of a cell of the run."""


class _SetAside(NamedTuple):
    row: Row | None
    one: SetAside


class StudyForm(Form):
    study: Annotated[str, of("about.name")]
    """name of the study; `ask` for a question without a file"""
    question: Annotated[str, of("about.question")]
    """question of the study"""
    family: Annotated[str, of("about.family.name")]
    """family of the study"""
    answers: Annotated[AnswersForm, of(lambda judged: _answers(judged))]
    """answer in words: `headline`, one line; `paragraphs`, as in the report; `sentences`: on all cells, such as
    operations a second of one core, then one for each comparison with its ratio, interval, verdict and standings
    """
    threshold: Annotated[float, of("about.threshold")]
    """share under which differences are ignored"""
    confidence: float
    """confidence of every interval and verdict"""
    noise_floor: Number
    """largest distance of an A/A pair from one, as a ratio above one"""
    noise: Ends
    """interval of that A/A pair's ratio; each of `tolls` has the `noise` of its own A/A pairs"""
    drift: Number
    """median change of costs from the first third of the blocks to the last, as a ratio"""
    quiet_share: Annotated[Number, of("trust.quiet_share")]
    """share of the study's time in which the core was quiet, by its probes; `null` if no probe shares the core"""
    quiet_known_by: Annotated[str | None, of("trust.known_by")]
    """evidence for the duration of a quiet core's probe: `earlier runs`, `chain` (a first run on a listed processor) or
    `nothing` (a steady neighbour cannot be excluded, and `quiet_share` is relative to the run's own probes); `null`
    if no probe shares the core, and with roles
    """
    results: Annotated[list[ResultForm], of(lambda judged: _results(judged))]
    """rows for each cell and metric: coordinates, `value`, `low`, `high`, `outcome`, `reason`, `standing`, `strength`,
    proofs
    """
    tolls: list[TollForm]
    """comparison of each cell with its baseline: `ratio`, `low`, `high`, `difference`, `all`, `noisy`, `verdict`,
    `more_blocks`; `noisy` is true if the core was quiet in too few blocks, here and in `results`
    """
    contrasts: list[ContrastForm]
    """effect of each value of a setting, all else equal"""
    claims: list[ClaimForm]
    """published claims with the measured values: `published` is one ratio, `published_range` the least and the most of
    several, `order` and `grows` replace a ratio, `words` are the source's own where the ratio is their reading,
    `throughout` is the published order at both values of `grows`; `published_figures` are the source's own,
    `published_error` and `published_deviation` belong to the first of these; `figures` are measured here, each side
    alone over all samples, `ends` are the ratios at both values of `grows`, `by_source` is the first figure by the
    source's own statistic; `verdict` may be `not judged` (an absolute figure) or `not testable here`, with
    its `reason`
    """
    tables: list[StudyTableForm]
    """tables that the study requests"""
    factors: list[FactorsForm]
    """costs of all combinations of the study's factors, in nanoseconds per operation: `costs` of each, `parts` (each
    factor alone, then what each two and all three add beyond that), `beyond` (the cost with all of them, minus the
    sum of the first cell's and each one's own), and `ratio`, the cost with all of them over that sum; `verdict` is
    `adds up`, `cheaper together`, `dearer together` or `cannot tell`
    """
    scaling: list[ScalingForm]
    """cells of several `threads` compared with the same cells of one: `cpu` and `elapsed`, each with the ratio of one
    operation, and the `verdict`: `scales`, `contended`, `waits` or `cannot tell`
    """
    left_out: Annotated[list[LeftOutForm], of("study.left_out")]
    """combinations that were not planned, with the reason"""
    set_aside: Annotated[list[SetAsideCellForm | SetAsideForm], of(lambda judged: _set_aside(judged))]
    """cells that failed too often and got no more trials, each time: the cell, `failed` of its `trials`, the place of
    the last one (`after`), the `reason`, the time (`at`, seconds since the epoch), and whether it was `tried_again`
    """
    uses: Annotated[UsesForm, of(uses_of)]
    """choices for each use: `sentences`, then `operations` (recommended and acceptable choices, each with its cost by
    place) and `threats` (the choices that mitigate each)
    """
    warnings: Annotated[list[str], of(lambda judged: warnings(judged))]
    """warnings to read before the results"""


def _answers(judged: StudyJudgement) -> AnswersForm:
    """Return the answer in the words of the terminal and the report."""
    headline, *paragraphs = answer(judged)
    return AnswersForm(headline=headline, paragraphs=paragraphs, sentences=list(sentences(judged)))


def _results(judged: StudyJudgement) -> Sequence[_Result]:
    rows = {row.key: row for row in judged.rows}
    agreed = {key: _agreed(rows[key]) for key in {m.row.key for m in judged.measurements}}
    return [
        *(_Result(m.row, m.metric, m, agreed[m.row.key]) for m in judged.measurements),
        *(_Result(row, judged.about.measure.cost) for row in rows.values() if row.key not in agreed),
    ]


def _agreed(row: Row) -> Sequence[Negotiated]:
    """Return the negotiated parameters of the cell's trials, counted over all."""
    counts: Counter[Negotiated] = Counter()
    for trial in row.trials:
        for one in trial.load.negotiated if trial.load else ():
            counts[one.model_copy(update={"count": 0})] += one.count
    return [one.model_copy(update={"count": count}) for one, count in counts.items()]


def _set_aside(judged: StudyJudgement) -> Sequence[SetAsideForm]:
    rows = {row.key: row for row in judged.rows}
    found = [_SetAside(rows.get(one.cell), one) for one in judged.study.set_aside]
    return [(SetAsideCellForm if one.row else SetAsideForm).read(one) for one in found]
