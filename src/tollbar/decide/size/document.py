"""The JSON document of `tollbar size`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from tollbar.catalog.policies import Ruling
from tollbar.decide.rulings import Candidate
from tollbar.decide.shared import reason_words
from tollbar.decide.size.checked import Checked
from tollbar.decide.size.mix import Part
from tollbar.decide.size.sized import Sized, SizedTerm
from tollbar.decide.size.summing import Cell
from tollbar.decide.size.words import questions
from tollbar.report.json_forms.form import Bounded, Document, Form, Number, Values, of, within


class Cores(Form):
    estimate: Number
    interval: Annotated[Bounded, of(lambda cores: cores)]
    """null where there were too few blocks"""
    degrees_of_freedom: Annotated[Number, of(lambda cores: cores.freedom if cores.is_bounded else None)]
    """of Student's distribution; null where they are not limited"""
    noisy: Annotated[bool, of("is_noisy")]
    """whether the core was quiet in too few blocks, so that all samples count"""


class CellForm(Form):
    run: Annotated[str, of("cell.source.run.name")]
    study: Annotated[str, of("cell.source.study_run.study.name")]
    cell: Annotated[Values, of("cell.row.coordinates")]
    share: Annotated[Number, of("part.share")]
    """how often it is performed in each operation of the term; below nought where it is taken off"""


class SwapForm(Form):
    name: str
    """the changed coordinate: `choice` or a setting"""
    value: str | int | float
    cell: Annotated[Values, of("row.coordinates")]
    """in the place of the term's first"""
    standing: Annotated[str, of("row.standing")]
    saves: Annotated[Cores, of("saved")]
    """below nought where it costs more"""
    verdict: str
    """`saves`, `costs`, `free` or `unclear` (the run cannot distinguish the two), as of a toll"""
    ruling: Annotated[str, of(lambda swap: _ruling(swap.judged))]
    """`meets`, `breaks` or `cannot say`"""
    reasons: Annotated[list[str], of(lambda swap: _reasons(swap.judged))]
    """why it breaks a policy, or why that cannot be said"""


class TermForm(Form):
    name: Annotated[str, of("term.name")]
    family: Annotated[str, of("term.family.name")]
    rate_per_s: Annotated[Number, of("term.rate_per_s")]
    cells: Annotated[list[CellForm], of(lambda sized_term: _cells(sized_term))]
    cores: Cores
    share: Annotated[Number, within(lambda sized_term, sized: sized.share(sized_term))]
    """of all cores"""
    at_load: Annotated[bool, of("is_at_load")]
    """whether its servers, if it has any, were kept as busy as the mix's by a client on a core of its own; if not, its
    `cells` say how they were asked"""
    memory_bytes: Number
    """of all that are under way at once"""
    ruling: Annotated[str, of(lambda sized_term: _ruling(sized_term.judged))]
    """of its own cell"""
    reasons: Annotated[list[str], of(lambda sized_term: _reasons(sized_term.judged))]
    swaps: list[SwapForm]


class CheckedForm(Form):
    name: str
    predicted: Cores
    measured: Annotated[Cores | None, of("sides.in_rounds")]
    """in rounds, under a load that keeps the server's core as busy as the mix wants it"""
    in_phases: Annotated[Cores | None, of("sides.in_phases")]
    """the same in throughput phases"""
    reason: str | None
    """why nothing was measured"""


class CheckForm(Form):
    run: Annotated[str, of("run.name")]
    terms: list[CheckedForm]
    total: CheckedForm | None
    """of all that were run"""


class _SizeAnswer(NamedTuple):
    sized: Sized
    checked: Checked | None


class SizeDocument(Document):
    mix: Annotated[str, of(lambda answer: str(answer.sized.mix.path))]
    """the file"""
    utilisation: Annotated[Number, of("sized.mix.utilisation")]
    """the share of the cores' time that is to be used"""
    survive: Annotated[int, of("sized.mix.survive")]
    """machines that may fail"""
    cores_each: Annotated[int | None, of("sized.mix.cores_each")]
    """of a machine"""
    policies: Annotated[list[str], of(lambda answer: [one.name for one in answer.sized.mix.policies])]
    """those of the mix"""
    runs: Annotated[list[str], of(lambda answer: [run.name for run in answer.sized.runs])]
    """those that were named, and the one that measured missing terms"""
    cores: Annotated[Cores | None, of("sized.cores")]
    """at that utilisation; null where a term was not measured"""
    machines: Annotated[
        int | None, of(lambda answer: _machines(answer.sized, answer.sized.cores and answer.sized.cores.high))
    ]
    """by the interval's high end, those that may fail included"""
    machines_at_least: Annotated[
        int | None, of(lambda answer: _machines(answer.sized, answer.sized.cores and answer.sized.cores.low))
    ]
    """by its low end"""
    terms: Annotated[list[TermForm], of("sized.terms")]
    """those that were measured, each with its `cells`, and `swaps`: those that save, by the near end of their interval,
    then those that cost the same, are unclear, and cost more"""
    missing: Annotated[dict[str, str], of("sized.missing")]
    """terms without a cost, each with the reason or the nearest measured row"""
    ask: Annotated[list[str], of(lambda answer: questions(answer.sized))]
    """commands that measure the missing costs"""
    check: Annotated[CheckForm | None, of("checked")]
    """CPU time predicted and measured, in cores that are wholly busy, where that was asked for"""


def document(sized: Sized, checked: Checked | None = None) -> SizeDocument:
    """Return the document of this answer."""
    return SizeDocument.read(_SizeAnswer(sized, checked), sized)


def _machines(sized: Sized, cores: float | None) -> int | None:
    return None if cores is None else sized.machines(cores)


class _Performed(NamedTuple):
    cell: Cell
    part: Part


def _cells(one: SizedTerm) -> Sequence[_Performed]:
    return [_Performed(*both) for both in zip(one.cells, one.term.parts, strict=True)]


def _ruling(judged: Candidate) -> Ruling:
    """Return the policies' rulings; a cell without a rule meets none."""
    return judged.ruling if judged.judged else Ruling.CANNOT_SAY


def _reasons(judged: Candidate) -> Sequence[str]:
    return [reason_words(one) for one in (judged.broken or judged.missing)]
