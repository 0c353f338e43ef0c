"""JSON documents of a run, and of a published source with the run's results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from tollbar.analysis import Judgement
from tollbar.catalog.families import LOADS
from tollbar.report.json_forms.form import JSON, Document, Form, Number, Value, Values, of
from tollbar.report.json_forms.parts import ClaimForm, WhereForm
from tollbar.report.json_forms.study import StudyForm
from tollbar.report.sections.published.lines import Line, Published, sources_of, verdict_counts
from tollbar.report.sections.within import WithinCell, failed_trials, within_cells
from tollbar.results import Row, Run, StudyRun


class _SourceKeys(Form):
    name: Annotated[str, of("source.name")]
    title: Annotated[str, of("source.title")]
    by: Annotated[str | None, of("source.by")]
    year: Annotated[int | None, of("source.year")]
    system: Annotated[str, of("source.system")]
    differs: Annotated[str, of("source.differs")]


class _Outcomes(Form):
    studies: list[str]
    not_measured: Annotated[list[str], of("missing")]
    verdicts: Annotated[dict[str, int], of(lambda part: verdict_counts(part.theirs))]


class _LineForm(Form):
    study: Annotated[str, of("study.name")]
    ours: Annotated[bool, of("claim.is_ours")]


class SourceClaimForm(_LineForm):
    claim: Annotated[int, of(lambda line: _place(line))]


class UnknownSourceForm(_Outcomes):
    """Claims whose study names no source that is known here."""

    claims: Annotated[list[SourceClaimForm], of("lines")]


# The keys of the last base are the first ones.
class SourceForm(UnknownSourceForm, _SourceKeys):
    """Published comparison."""


class WholeClaimForm(ClaimForm, _LineForm):
    """Claim with everything that was published, and its result."""


class SourceDocument(_Outcomes, _SourceKeys, Document):
    claims: Annotated[list[WholeClaimForm], of(lambda part: [_whole(line) for line in part.lines])]


class LoadForm(Form):
    """Load of a cell with the answers to it."""

    load: Value
    p95_us: Number
    requests_per_s: Number
    failed_trials: int


class WithinForm(WhereForm):
    """Cell with the highest load within a limit of the response time, and the next one."""

    study: str
    setting: Annotated[Values, of(lambda one: {k: v for k, v in one.row.setting.items() if k not in LOADS})]
    by: Annotated[str, of("load")]
    highest: Annotated[LoadForm | None, of(lambda one: _load(one, one.sides.highest))]
    next: Annotated[LoadForm | None, of(lambda one: _load(one, one.sides.beyond))]


class RunDocument(Document):
    run: Annotated[str, of(lambda judged: str(judged.run.directory))]
    """directory of the run"""
    started: Annotated[str, of("run.started")]
    """start of the run, as ISO 8601 with the offset from UTC"""
    seed: Annotated[int, of("run.seed")]
    """seed of the run's order and data"""
    command: Annotated[list[str], of("run.command")]
    """command line of the run"""
    fingerprint: Annotated[dict[str, JSON], of("run.fingerprint")]
    """fingerprint of the machine"""
    simulated: Annotated[bool, of("run.is_simulated")]
    """true if the machine is a node of a simulated cluster, or simulates a role's machine, without a real network"""
    nodes: Annotated[dict[str, JSON], of("run.nodes")]
    """machine of each role that has its own: `address`, `host`, `fingerprint`, and whether it `is_simulated`"""
    providers: Annotated[dict[str, JSON], of(lambda judged: _providers(judged.run))]
    """libraries by name with version: each with its `spec` as studies write it, and its receipt"""
    sources: Annotated[list[SourceForm | UnknownSourceForm], of(lambda judged: _sources(judged))]
    """published comparisons that the run's studies test: `name`, `title`, `by`, `year`, the source's `system`, how it
    `differs` here, its `studies` in this run and those `not_measured`, the number of its claims by verdict
    (`verdicts`), and its `claims` in the order of its text, each with its `study`, its place in that study's
    `claims` (`claim`, from 0) and whether it is `ours`
    """
    studies: Annotated[list[StudyForm], of(lambda judged: [StudyForm.read(one, one.study) for one in judged.studies])]
    """studies in the run's order"""
    within: Annotated[list[WithinForm] | None, of(lambda _: None)] = None
    """null without `judge --within`; with it each cell of a study of several loads, highest first, with the name of
    the load (`by`), the `highest` at which 95 % of the answers came within the limit, null if none did, and the
    `next` one, null if every load met it; a load has its 95th percentile in microseconds (`p95_us`) and the answers
    a second, both null where the load failed; a load with `failed_trials` does not meet the limit
    """


def of_run(judgement: Judgement, within_s: float | None = None) -> dict[str, Any]:
    """Return the document of a run: its results, tolls, contrasts, claims and tables, and its published sources.

    With a limit of the response time it has the highest load of each cell within it.
    """
    document = RunDocument.read(judgement)
    if within_s is not None:
        cells = [cell for one in judgement.studies for cell in within_cells(one, within_s)]
        document = document.model_copy(update={"within": [WithinForm.read(one) for one in cells]})
    return document.model_dump(mode="json")


def of_source(part: Published) -> dict[str, Any]:
    """Return the document of a source: all its claims, each whole, with the measured values."""
    return SourceDocument.read(part).model_dump(mode="json")


def _load(of_cell: WithinCell, row: Row | None) -> LoadForm | None:
    if row is None:
        return None
    p95, answers = of_cell.p95.get(row.key), of_cell.throughput.get(row.key)
    return LoadForm(
        load=row.coordinates[of_cell.load],
        p95_us=p95.value if p95 else None,
        requests_per_s=answers.value if answers else None,
        failed_trials=failed_trials(row),
    )


def _providers(run: Run) -> Mapping[str, Any]:
    return {str(receipt["name"]): {"spec": spec, **receipt} for spec, receipt in run.providers.items()}


def _sources(judged: Judgement) -> Sequence[SourceForm | UnknownSourceForm]:
    return [(SourceForm if part.source else UnknownSourceForm).read(part) for part in sources_of(judged)]


def _place(line: Line) -> int:
    """Return the place of a line among its study's `claims`, from 0."""
    results = line.judged.claims if line.judged else ()
    return next(n for n, result in enumerate(results) if result is line.result)


def _whole(line: Line) -> WholeClaimForm:
    run = line.judged.study if line.judged else StudyRun(line.study, (), (), ())
    claim, published = ClaimForm.read(line.result, run), _LineForm.read(line)
    return WholeClaimForm.model_validate({**dict(published), **dict(claim), "verdict": line.verdict})
