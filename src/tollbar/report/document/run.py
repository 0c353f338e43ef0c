"""The JSON documents of a run, and of a published source beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from tollbar.analysis import Judgement
from tollbar.report.document.form import JSON, Document, Form, of
from tollbar.report.document.parts import ClaimForm
from tollbar.report.document.study import StudyForm
from tollbar.report.sections.published import Line, Published, sources_of, verdict_counts
from tollbar.results import Run, StudyRun


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
    """Of claims whose study names no source that is known here."""

    claims: Annotated[list[SourceClaimForm], of("lines")]


# The keys of the last base are the first ones.
class SourceForm(UnknownSourceForm, _SourceKeys):
    """Of a published comparison."""


class WholeClaimForm(ClaimForm, _LineForm):
    """A claim with all that was published, and what came of it."""


class SourceDocument(_Outcomes, _SourceKeys, Document):
    claims: Annotated[list[WholeClaimForm], of(lambda part: [_whole(line) for line in part.lines])]


class RunDocument(Document):
    run: Annotated[str, of(lambda judged: str(judged.run.directory))]
    """the run's directory"""
    started: Annotated[str, of("run.started")]
    """when, in UTC"""
    seed: Annotated[int, of("run.seed")]
    """what decided order and data"""
    command: Annotated[list[str], of("run.command")]
    """the command line"""
    fingerprint: Annotated[dict[str, JSON], of("run.fingerprint")]
    """the machine"""
    simulated: Annotated[bool, of("run.is_simulated")]
    """whether that is a node of a simulated cluster, or a role's machine is made up on it: nothing is a network's"""
    nodes: Annotated[dict[str, JSON], of("run.nodes")]
    """the machine of each role that has one of its own: its `address`, `host`, `fingerprint`, and whether it
    `is_simulated`"""
    providers: Annotated[dict[str, JSON], of(lambda judged: _providers(judged.run))]
    """each library by its name with the version: `spec` as studies write it, and its receipt"""
    sources: Annotated[list[SourceForm | UnknownSourceForm], of(lambda judged: _sources(judged))]
    """what became of each published comparison that the run's studies try: `name`, `title`, `by`, `year`, what it
    ran on (`system`) and what `differs` here, its `studies` in this run and those `not_measured`, how many of its
    claims came to each of `verdicts`, and its `claims` in the order of its text, each as its `study`, its place
    in that study's `claims` (`claim`, from 0) and whether it is `ours`"""
    studies: Annotated[list[StudyForm], of(lambda judged: [StudyForm.read(one, one.study) for one in judged.studies])]
    """each study, in the run's order"""


def of_run(judgement: Judgement) -> dict[str, Any]:
    """Return the document of a run: its results, tolls, contrasts, claims and tables, and its published sources."""
    return RunDocument.read(judgement).model_dump(mode="json")


def of_source(part: Published) -> dict[str, Any]:
    """Return the document of a source: all that it published, each claim whole, with what was measured of it."""
    return SourceDocument.read(part).model_dump(mode="json")


def _providers(run: Run) -> Mapping[str, Any]:
    return {str(receipt["name"]): {"spec": spec, **receipt} for spec, receipt in run.providers.items()}


def _sources(judged: Judgement) -> Sequence[SourceForm | UnknownSourceForm]:
    return [(SourceForm if part.source else UnknownSourceForm).read(part) for part in sources_of(judged)]


def _place(line: Line) -> int:
    """Return which of its study's `claims` it is, from 0."""
    results = line.judged.claims if line.judged else ()
    return next(n for n, result in enumerate(results) if result is line.result)


def _whole(line: Line) -> WholeClaimForm:
    run = line.judged.study if line.judged else StudyRun(line.study, (), (), ())
    claim, published = ClaimForm.read(line.result, run), _LineForm.read(line)
    return WholeClaimForm.model_validate({**dict(published), **dict(claim), "verdict": line.verdict})
