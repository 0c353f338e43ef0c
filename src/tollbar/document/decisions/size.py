"""The JSON document of `tollbar size`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tollbar.document.schema import Ends, Form, Number, Values
from tollbar.judge.choosing import Candidate
from tollbar.policies import Ruling
from tollbar.present.decisions.size import questions
from tollbar.present.decisions.tune import reason_words
from tollbar.sizing.checked import Checked, CheckedTerm
from tollbar.sizing.sized import Sized, SizedTerm
from tollbar.sizing.swapping import Swap
from tollbar.stats import Interval


class Cores(Form):
    estimate: Number
    interval: Ends | None
    """null where there were too few blocks"""
    degrees_of_freedom: Number | None
    """of Student's distribution; null where they are not limited"""
    noisy: bool
    """whether the core was quiet in too few blocks, so that all samples count"""


class CellForm(Form):
    run: str
    study: str
    cell: Values
    share: Number
    """how often it is performed in each operation of the term; below nought where it is taken off"""


class SwapForm(Form):
    name: str
    """what is changed: `choice` or a setting"""
    value: str | int | float
    cell: Values
    """in the place of the term's first"""
    standing: str
    saves: Cores
    """below nought where it costs more"""
    verdict: str
    """`saves`, `costs`, `free` or `unclear` (not told apart), as of a toll"""
    ruling: str
    """`meets`, `breaks` or `cannot say`"""
    reasons: list[str]
    """why it breaks a policy, or why that cannot be said"""


class TermForm(Form):
    name: str
    family: str
    rate_per_s: Number
    cells: list[CellForm]
    cores: Cores
    share: Number | None
    """of all cores"""
    at_load: bool
    """whether its servers, if it has any, were kept as busy as the mix's by a client on a core of its own; if not, its
    `cells` say how they were asked"""
    memory_bytes: Number | None
    """of all that are under way at once"""
    ruling: str
    """of its own cell"""
    reasons: list[str]
    swaps: list[SwapForm]


class CheckedForm(Form):
    name: str
    predicted: Cores
    measured: Cores | None
    """in rounds, under a load that keeps the server's core as busy as the mix wants it"""
    in_phases: Cores | None
    """the same in throughput phases"""
    reason: str | None
    """why nothing was measured"""


class CheckForm(Form):
    run: str
    terms: list[CheckedForm]
    total: CheckedForm | None
    """of all that were run"""


class Document(Form):
    schema_: Literal[3] = Field(default=3, alias="schema")
    """the number of this form"""
    mix: str
    """the file"""
    utilisation: Number
    """the share of the cores' time that is to be used"""
    survive: int
    """machines that may fail"""
    cores_each: int | None
    """of a machine"""
    policies: list[str]
    """those of the mix"""
    runs: list[str]
    """those that were named, and the one that measured missing terms"""
    cores: Cores | None
    """at that utilisation; null where a term was not measured"""
    machines: int | None
    """by the interval's high end, those that may fail included"""
    machines_at_least: int | None
    """by its low end"""
    terms: list[TermForm]
    """those that were measured, each with its `cells`, and `swaps`: those that save, by the near end of their interval,
    then those that make no difference, are not told apart, and cost more"""
    missing: dict[str, str]
    """terms without a cost, each with the reason or the nearest measured row"""
    ask: list[str]
    """commands that measure what is missing"""
    check: CheckForm | None
    """CPU time predicted and measured, in cores that are wholly busy, where that was asked for"""


def document(sized: Sized, checked: Checked | None = None) -> Document:
    """The document of this answer."""
    mix, cores = sized.mix, sized.cores
    return Document(
        mix=str(mix.path),
        utilisation=mix.utilisation,
        survive=mix.survive,
        cores_each=mix.cores_each,
        policies=[one.name for one in mix.policies],
        runs=[run.name for run in sized.runs],
        cores=_cores(cores) if cores else None,
        machines=sized.machines(cores.high) if cores else None,
        machines_at_least=sized.machines(cores.low) if cores else None,
        terms=[_term(sized, one) for one in sized.terms],
        missing=dict(sized.missing),
        ask=list(questions(sized)),
        check=_check(checked) if checked else None,
    )


def _cores(of: Interval) -> Cores:
    bounded = of.is_bounded
    freedom = of.freedom if bounded and of.freedom != float("inf") else None
    interval = (of.low, of.high) if bounded else None
    return Cores(estimate=of.estimate, interval=interval, degrees_of_freedom=freedom, noisy=of.is_noisy)


def _term(sized: Sized, one: SizedTerm) -> TermForm:
    return TermForm(
        name=one.term.name,
        family=one.term.family.name,
        rate_per_s=one.term.rate_per_s,
        cells=[
            CellForm(
                run=cell.source.run.name,
                study=cell.source.study_run.study.name,
                cell=dict(cell.row.coordinates),
                share=part.share,
            )
            for cell, part in zip(one.cells, one.term.parts, strict=True)
        ],
        cores=_cores(one.cores),
        share=sized.share(one),
        at_load=one.is_at_load,
        memory_bytes=one.memory_bytes,
        ruling=_ruling(one.judged),
        reasons=_reasons(one.judged),
        swaps=[_swap(swap) for swap in one.swaps],
    )


def _swap(one: Swap) -> SwapForm:
    return SwapForm(
        name=one.name,
        value=one.value,
        cell=dict(one.row.coordinates),
        standing=one.row.standing.value,
        saves=_cores(one.saved),
        verdict=one.verdict.value,
        ruling=_ruling(one.judged),
        reasons=_reasons(one.judged),
    )


def _ruling(judged: Candidate) -> str:
    """What no policy has a rule on meets none."""
    return (judged.ruling if judged.judged else Ruling.CANNOT_SAY).value


def _reasons(judged: Candidate) -> list[str]:
    return [reason_words(one) for one in (judged.broken or judged.missing)]


def _check(checked: Checked) -> CheckForm:
    return CheckForm(
        run=checked.run.name,
        terms=[_side_by_side(one) for one in checked.terms],
        total=_side_by_side(checked.total) if checked.total else None,
    )


def _side_by_side(one: CheckedTerm) -> CheckedForm:
    return CheckedForm(
        name=one.name,
        predicted=_cores(one.predicted),
        measured=_cores(one.sides.in_rounds) if one.sides else None,
        in_phases=_cores(one.sides.in_phases) if one.sides else None,
        reason=one.reason,
    )
