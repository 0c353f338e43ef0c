"""The part of a run's document that is about one study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from tollbar.analysis import Measurement, StudyJudgement
from tollbar.core.records import Negotiated, Outcome, SetAside
from tollbar.report.document.form import OMITTED, Ends, Form, Number, Values, high_of, low_of, of, within
from tollbar.report.document.parts import ClaimForm, WhereForm, names_of
from tollbar.report.document.several import ContrastForm, FactorsForm, ScalingForm, StudyTableForm
from tollbar.report.document.uses import UsesForm
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
    """The number of connections that agreed on one thing."""

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
    """A cell by one metric; without a number where it was not measured."""

    row: Row
    metric: str
    measured: Measurement | None = None
    agreed: Sequence[Negotiated] = ()

    @property
    def is_cut_short(self) -> bool:
        """Whether it was proven and then not measured: there is no number, so the row does not report `ok`."""
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
    """Of a cell that the run no longer has."""

    failed: Annotated[int, of("one.failed")]
    trials: Annotated[int, of("one.trials")]
    after: Annotated[int, of("one.after")]
    reason: Annotated[str, of("one.reason")]
    at: Annotated[float, of("one.at_s")]
    tried_again: Annotated[bool, of(lambda of_row: of_row.one.tried_again_s is not None)]


class SetAsideCellForm(SetAsideForm, WhereForm):
    """Of a cell of the run."""


class _SetAside(NamedTuple):
    row: Row | None
    one: SetAside


class StudyForm(Form):
    study: Annotated[str, of("about.name")]
    """its name; `ask` for a question without a file"""
    question: Annotated[str, of("about.question")]
    """what it asks"""
    family: Annotated[str, of("about.family.name")]
    """its family"""
    answers: Annotated[AnswersForm, of(lambda judged: _answers(judged))]
    """what was found, in words: `headline`, one line; `paragraphs`, as the report has them; `sentences`, how often a
    core can do each in a second, then one for each comparison with its ratio, interval, verdict and standings"""
    threshold: Annotated[float, of("about.threshold")]
    """the share under which differences are ignored"""
    confidence: float
    """that of every interval and verdict"""
    noise_floor: Number
    """the ratio below which there is no verdict"""
    noise: Ends
    """the interval of the A/A pairs"""
    drift: Number
    """what costs were at the end, over the beginning"""
    quiet_share: Annotated[Number, of("trust.quiet_share")]
    """the share of the study's time in which the core was quiet, as probes of it say; `null` where no probe
    shares the core"""
    quiet_known_by: Annotated[str | None, of("trust.known_by")]
    """evidence for the duration of a quiet core's probe: `earlier runs`, `chain` (a first run on a listed processor) or
    `nothing` (a steady neighbour cannot be excluded, and `quiet_share` is compared with the run's own probes alone);
    `null` where no probe shares the core, and with roles"""
    results: Annotated[list[ResultForm], of(lambda judged: _results(judged))]
    """a row for each cell and metric: where it stands, `value`, `low`, `high`, `outcome`, `reason`, `standing`,
    `strength`, what it proved"""
    tolls: list[TollForm]
    """each cell against its baseline: `ratio`, `low`, `high`, `difference`, `all`, `noisy`, `verdict`,
    `more_blocks`; `noisy` tells whether the core was quiet in too few blocks, here
    and in `results`"""
    contrasts: list[ContrastForm]
    """what each value of a setting changes, all else alike"""
    claims: list[ClaimForm]
    """what was published, beside what was measured: `published` is one ratio, `published_range` the least and the
    most of several, `order` and `grows` where there is none, `published_figures` the source's own,
    `published_error` and `published_deviation` what it prints beside the first; `figures` are the same of this
    machine, `by_source` the first by the source's own statistic; `verdict` may be `not judged` (an absolute
    figure) or `not testable here`, whose `reason` says why"""
    tables: list[StudyTableForm]
    """the study's own tables"""
    factors: list[FactorsForm]
    """all combinations of the study's factors taken apart, in nanoseconds per operation: `costs` of each, `parts`
    (each factor's own, then of each two and of all three what they add beyond that), `beyond`, all that goes
    beyond the sum of each one's own, and `ratio`, the cost with all of them over that sum; `verdict` is `adds up`,
    `cheaper together`, `dearer together` or `cannot tell`"""
    scaling: list[ScalingForm]
    """each cell of several `threads` beside the same of one: `cpu` and `elapsed`, each with the ratio of one operation,
    and the `verdict`: `scales`, `contended`, `waits` or `cannot tell`"""
    left_out: Annotated[list[LeftOutForm], of("study.left_out")]
    """combinations that were not planned, and why"""
    set_aside: Annotated[list[SetAsideCellForm | SetAsideForm], of(lambda judged: _set_aside(judged))]
    """each time that a cell failed too often and had no more trials: the cell, `failed` of its `trials`, the place
    of the last one (`after`), the `reason`, when (`at`, seconds since the epoch), and whether it was
    `tried_again`"""
    uses: Annotated[UsesForm, of(uses_of)]
    """which choice for what: `sentences`, then `operations` (choices in good standing, each with its cost by place)
    and `threats` (those that mitigate each)"""
    warnings: Annotated[list[str], of(lambda judged: warnings(judged))]
    """what a reader should know first"""


def _answers(judged: StudyJudgement) -> AnswersForm:
    """Return the answer in the words that terminal and report have."""
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
    """Return what was negotiated in the cell's trials, all together."""
    counts: Counter[Negotiated] = Counter()
    for trial in row.trials:
        for one in trial.load.negotiated if trial.load else ():
            counts[one.model_copy(update={"count": 0})] += one.count
    return [one.model_copy(update={"count": count}) for one, count in counts.items()]


def _set_aside(judged: StudyJudgement) -> Sequence[SetAsideForm]:
    rows = {row.key: row for row in judged.rows}
    found = [_SetAside(rows.get(one.cell), one) for one in judged.study.set_aside]
    return [(SetAsideCellForm if one.row else SetAsideForm).read(one) for one in found]
