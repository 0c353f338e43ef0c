"""Costs of a study's factors, one by one and together: a waterfall, its table and its sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tollbar.analysis import FactorPart, FactorsResult, StudyJudgement, Together
from tollbar.core.intervals import Interval
from tollbar.core.words import capitalised, enumeration
from tollbar.report.blocks import Block, Chart, Column, Figures, Listing, Table, TableCell, numbers
from tollbar.report.coordinates import named_value
from tollbar.report.costs import cost_words
from tollbar.report.names import place_words, varying
from tollbar.report.numbers import (
    amount,
    change_ends,
    change_words,
    ends_by,
    interval_title,
    percent,
    percent_of,
    signed,
)

TITLE = "Cost of each part, and of all together"
# Kinds of bars: drawn from zero; drawn from the end of the one before; the remainder, decided or not.
WHOLE, ADDS, LEFT, OPEN = "whole", "adds", "left", "open"


@dataclass(frozen=True, slots=True)
class Step:
    """Bar of a waterfall, from one cost to another, in nanoseconds."""

    label: str
    note: str
    start: float
    end: float
    kind: str


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Steps from the cost without any factor to that of all of them, on an axis from zero."""

    steps: Sequence[Step]
    title: str

    @property
    def least(self) -> float:
        return min(0.0, *(step.end for step in self.steps))

    @property
    def most(self) -> float:
        return max(max(step.start, step.end) for step in self.steps)


def told_apart(study: StudyJudgement) -> bool:
    """Return whether all combinations of a study's factors were measured in some place."""
    return any(found.reason is None for found in study.factors)


def factor_sentences(study: StudyJudgement) -> tuple[str, ...]:
    """Return for each place whether the factors add up; places without a result come last."""
    return tuple(_sentence(study, found) for found in sorted(study.factors, key=lambda found: found.reason is not None))


def factors_listing(study: StudyJudgement) -> Listing | None:
    """Return a waterfall, its sentence and its table for each place in which all combinations were measured."""
    told = [found for found in study.factors if found.reason is None]
    if not told:
        return None
    sentences = factor_sentences(study) if len(study.factors) > 1 else ()
    tables = [_table(study, found) for found in told]
    whole = [block for found in told for block in _blocks(study, found)]
    return Listing(TITLE, sentences, tables, heads="at", caption=cost_words(study).title, whole=whole)


def _blocks(study: StudyJudgement, found: FactorsResult) -> Iterator[Block]:
    steps, title = _steps(study, found), _place(study, found)
    said = "; ".join(f"{step.label}: {step.note}" for step in steps)
    letters = max(len(step.label) for step in steps)
    chart = Chart(title, f"{TITLE}. {said}.", Waterfall(steps, cost_words(study).title), letters)
    yield Figures([chart], "panels wide")
    yield _table(study, found)


def _sentence(study: StudyJudgement, found: FactorsResult) -> str:
    """Return the judgement of the parts and the whole."""
    names = enumeration([_with(study, found, name) for name in study.about.factors])
    where = f" ({place})" if (place := _place(study, found)) else ""
    if found.reason is not None or found.ratio is None or found.beyond is None:
        return f"{capitalised(names)}{where} could not be separated: {found.reason}."
    beyond = found.beyond
    ends = ends_by(beyond, signed)
    apart = f"{signed(beyond.estimate)} {ends}, {change_words(found.ratio.estimate)} {change_ends(found.ratio)}"
    parts = f"that without {'them' if len(found.own) > 1 else 'it'} and what each adds by itself"
    return {
        Together.ADDS_UP: f"With {names}{where} the cost is {parts}, within {percent(study.about.threshold)}: {apart}.",
        Together.CHEAPER: f"With {names}{where} the cost is less than {parts}: {apart}.",
        Together.DEARER: f"With {names}{where} the cost is more than {parts}: {apart}.",
        Together.CANNOT_TELL: f"With {names}{where} this run cannot distinguish the cost from {parts}: {apart}.",
    }[found.verdict]


def _steps(study: StudyJudgement, found: FactorsResult) -> list[Step]:
    bare, whole = found.costs[0].estimate, found.costs[-1].estimate
    steps = [Step(_without(study, found), amount(bare), 0.0, bare, WHOLE)]
    at = bare
    for part in found.own:
        added = part.added.estimate
        steps.append(Step(f"+ {_with(study, found, part.factors[0])}", signed(added), at, at + added, ADDS))
        at += added
    told = "" if found.verdict is not Together.CANNOT_TELL else ", undecided"
    steps.append(Step("beyond their sum", f"{signed(whole - at)}{told}", at, whole, LEFT if told == "" else OPEN))
    return [*steps, Step("all together", amount(whole), 0.0, whole, WHOLE)]


def _table(study: StudyJudgement, found: FactorsResult) -> Table:
    columns = (
        Column("part", names=True),
        *numbers("adds"),
        *numbers(interval_title(study), leaves=0),
        *numbers("of the whole", leaves=1),
    )
    parts = [(_label(study, found, part), part.added) for part in found.parts]
    if len(found.parts) > len(found.own) + 1 and found.beyond is not None:
        parts.append(("the rest beyond their sum", found.beyond))
    whole = found.costs[-1].estimate
    rows = [
        _cells(_without(study, found), found.costs[0], whole, amount),
        *(_cells(label, added, whole, signed) for label, added in parts),
        _cells("all together", found.costs[-1], whole, amount),
    ]
    return Table(_place(study, found), columns, rows)


def _label(study: StudyJudgement, found: FactorsResult, part: FactorPart) -> str:
    names = [_with(study, found, name) for name in part.factors]
    return f"{enumeration(names)} together, beyond their sum" if len(names) > 1 else f"+ {names[0]}"


def _cells(label: str, of: Interval, whole: float, words: Callable[[float], str]) -> list[TableCell]:
    ends = ends_by(of, words)
    share = f"{'−' if of.estimate < 0 else ''}{percent_of(abs(of.estimate) / whole)}"
    return [
        TableCell(label),
        TableCell(words(of.estimate), of.estimate),
        TableCell(ends),
        TableCell(share, of.estimate / whole),
    ]


def _without(study: StudyJudgement, found: FactorsResult) -> str:
    at = found.rows[0].coordinates
    named = ((name, study.study.named(name, at[name])) for name in study.about.factors)
    return ", ".join(named_value(study.about.family, name, value) for name, value in named)


def _with(study: StudyJudgement, found: FactorsResult, name: str) -> str:
    return named_value(study.about.family, name, study.study.named(name, found.rows[-1].coordinates[name]))


def _place(study: StudyJudgement, found: FactorsResult) -> str:
    """Return the place of these cells, if a study has several such places."""
    if len(study.factors) < 2:
        return ""
    # The cell with all factors, because the others may lack its settings.
    at = {name: value for name, value in found.rows[-1].coordinates.items() if name not in study.about.factors}
    names = varying([one.rows[-1] for one in study.factors])
    return place_words(study)(at, [name for name in names if name in at])
