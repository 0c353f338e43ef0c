"""Answer of `size`: cores with their interval, machines, memory, each term's part, and savings by swaps."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence

from tollbar.analysis import Verdict
from tollbar.catalog.policies import Ruling
from tollbar.core.intervals import Interval, Moments
from tollbar.core.words import counted, enumeration, more
from tollbar.decide.shared import excepted_words, reason_words
from tollbar.decide.size.checked import Checked, CheckedTerm
from tollbar.decide.size.mix import load_words
from tollbar.decide.size.sized import Sized, SizedTerm
from tollbar.decide.size.swapping import Swap, in_order
from tollbar.report.blocks import DASH, Brief, Listing, Table, TableCell, numbers, row_names, texts
from tollbar.report.coordinates import value_words
from tollbar.report.names import place_of
from tollbar.report.numbers import NOISY, amount, figure_words, percent, percent_of
from tollbar.report.standings import standing_words
from tollbar.report.table_cells import has_marks, with_ends
from tollbar.study import is_paced

# Swaps beyond these hide the rest; the JSON document has all.
MOST_SWAPS = 12
_SWAPS_ORDER = (
    "Swaps that save come first, by the end of their interval that is nearer to zero; swaps that the run cannot"
    " distinguish keep the order of their study."
)
_TOLD = {
    Verdict.SAVES: "saves",
    Verdict.COSTS: "costs more",
    Verdict.FREE: "costs the same",
    Verdict.UNCLEAR: "cannot tell",
}


def size_answer(sized: Sized, checked: Checked | None = None) -> Brief:
    """Return the answer about a mix."""
    names = enumeration([term.name for term in sized.mix.terms])
    return Brief(
        f"How many cores for {names} ({sized.mix.path.name})?",
        " ".join([_headline(sized), *_measured(checked)]),
        how=tuple(_how(sized)),
        listings=tuple(_listings(sized, checked)),
        missing=tuple(f"`{name}` has no cost: {why}." for name, why in sized.missing.items()),
        notes=tuple(_notes(sized)),
        warnings=tuple(_warnings(sized)),
    )


def questions(sized: Sized) -> tuple[str, ...]:
    """Return the commands that measure the missing cells."""
    return tuple(
        shlex.join(["tollbar", "ask", term.family.name, *term.words(sized.mix.utilisation)])
        for term in sized.mix.terms
        if term.name in sized.missing
    )


def cores_words(cores: float) -> str:
    """Return cores in words: `2.41 cores`, `−0.032 cores`."""
    return f"{_signed(cores)} cores"


def _ends(of: Interval) -> str:
    if not of.is_bounded:
        return "too few blocks"
    return f"[{_signed(of.low)}, {_signed(of.high)}]"


def _signed(value: float) -> str:
    """Return a number with three figures, never as a power of ten."""
    size = abs(value)
    words = figure_words(size) if size >= 1 or not size else f"{size:.{2 - math.floor(math.log10(size))}f}"
    return f"{'−' if value < 0 else ''}{words}"


def _headline(sized: Sized) -> str:
    cores = sized.cores
    if cores is None:
        missing = enumeration([f"`{name}`" for name in sized.missing])
        have = "has" if len(sized.missing) == 1 else "have"
        return f"The number of cores is not known, because {missing} {have} no cost: the commands below measure it."
    said = f"{cores_words(cores.estimate)} {_ends(cores)}, each {percent(sized.mix.utilisation)} busy"
    most, least = sized.machines(cores.high), sized.machines(cores.low)
    if most is None:
        return f"{said}."
    of = f"{counted(most, 'machine')} of {counted(sized.mix.cores_each or 0, 'core')}"
    spare = f", {sized.mix.survive} of which may fail" if sized.mix.survive else ""
    other = f"; {least} at the interval's low end" if least != most else ""
    return f"{said}: {of}{spare}{other}."


def _measured(checked: Checked | None) -> Iterator[str]:
    """Yield the sentence that compares a load at the mix's utilisation with the prediction."""
    total = checked.total if checked else None
    if total is None or total.sides is None:
        return
    found, predicted = total.sides.in_rounds, total.predicted
    meet = found.low <= predicted.high and predicted.low <= found.high
    told = "the two intervals overlap" if meet else "size by the larger"
    ratio = f"{found.estimate / predicted.estimate:.2f}"
    yield f"Measured under load, the mix used × {ratio} of the predicted CPU time, both {found.moments}: {told}."


def _how(sized: Sized) -> Iterator[str]:
    if not sized.terms:
        return
    sources = dict.fromkeys(cell.source for term in sized.terms for cell in term.cells)
    runs = enumeration([*dict.fromkeys(one.run.name for one in sources)])
    confidence = max(cell.source.ledger.confidence for term in sized.terms for cell in term.cells)
    told = [sized.cores] if sized.cores else [one.cores for one in sized.terms]
    moments = max((one.moments for one in told), key=[*Moments].index)
    with_client = [f"`{one.term.name}`" for one in sized.terms if _has_client(one)]
    client = f" and for {enumeration(with_client)} of the client" if with_client else ""
    yield (
        "Cores = rate × CPU time per operation ÷ the share of a core to be used. CPU time is that of all processes on"
        f" the server's side{client}, {moments}, measured in {runs}; {percent(confidence)} intervals."
    )
    if sized.cores is not None and len(sources) > 1:
        freedom = sized.cores.freedom
        degrees = f", with {freedom:g} degrees of freedom" if math.isfinite(freedom) and sized.cores.is_bounded else ""
        yield f"Terms of {counted(len(sources), 'study').replace('studys', 'studies')}: their variances add{degrees}."


def _has_client(one: SizedTerm) -> bool:
    """Return true if the term's cost includes the client of its server."""
    return one.term.is_served and any(cell.source.study_run.study.measure.cost == "cpu" for cell in one.cells)


def _listings(sized: Sized, checked: Checked | None) -> Iterator[Listing]:
    if sized.missing:
        yield Listing("To measure the missing costs", [f"`{one}`" for one in questions(sized)])
    if sized.terms:
        terms = [_terms(sized)]
        yield Listing("Cores of each term", tables=terms, notes=_marks(terms))
    swaps = in_order(one for term in sized.terms for one in term.swaps)
    if swaps:
        left = len(swaps) - MOST_SWAPS
        tables = [_swaps(sized, swaps[:MOST_SWAPS])]
        notes = [_SWAPS_ORDER, *([f"{more(left)} in the JSON document."] if left > 0 else [])]
        yield Listing("Cores saved by swapping one choice", tables=tables, notes=[*notes, *_marks(tables)])
    if checked is not None:
        yield Listing(
            "Predicted and measured",
            tables=[_checked(checked)],
            notes=[
                "Cores at full utilisation, at the mix's rates. Each term was loaded alone by a client on its own core,"
                f" with arrivals that keep the server's core {percent(sized.mix.utilisation)} busy. *Measured* is the"
                " server's CPU time in rounds, quiet unless a term says otherwise; *in throughput phases* counts all"
                f" samples ({checked.run.name}).",
            ],
        )


def _marks(tables: Sequence[Table]) -> list[str]:
    return [f"{NOISY}."] if has_marks(tables) else []


def _terms(sized: Sized) -> Table:
    columns = (
        *row_names("term"),
        *numbers("rate"),
        *numbers("CPU time", leaves=2),
        *numbers("cores", "interval"),
        *numbers("share", leaves=3),
        *numbers("memory", leaves=1),
    )
    return Table("", columns, [_term(sized, one) for one in sized.terms])


def _term(sized: Sized, one: SizedTerm) -> list[TableCell]:
    each_ns = one.cores.estimate * sized.mix.utilisation * 1e9 / one.term.rate_per_s
    share = sized.share(one)
    return [
        TableCell(one.term.name, small="; ".join(_made_of(one)), standing=one.cell.row.standing),
        TableCell(f"{figure_words(one.term.rate_per_s)}\u00a0/s", one.term.rate_per_s),
        TableCell(amount(each_ns), each_ns),
        *_cores(one.cores),
        DASH if share is None else TableCell(percent_of(share), share),
        DASH if one.memory_bytes is None else TableCell(amount(one.memory_bytes, "B"), one.memory_bytes),
    ]


def _made_of(one: SizedTerm) -> Iterator[str]:
    family, row = one.term.family, one.cell.row
    yield place_of(family, row.shown, row.shown)
    if one.term.resumed is not None:
        yield f"{percent(one.term.resumed)} resumed by {one.term.parts[1].wanted['resumption']}"
    if one.term.null is not None:
        yield f"less {value_words(family, 'choice', one.term.null.wanted['choice'])}"


def _swaps(sized: Sized, swaps: Sequence[Swap]) -> Table:
    policy = texts("policies") if sized.mix.policies else ()
    columns = (
        *row_names("term", "swap to"),
        *numbers("saves", "interval"),
        *texts("verdict"),
        *texts("standing", leaves=1),
        *policy,
    )
    rows = []
    for one in swaps:
        words = place_of(one.term.family, one.row.coordinates, [one.name, *one.own])
        refused = enumeration([reason_words(reason) for reason in one.judged.broken])
        row = [
            TableCell(one.term.name),
            TableCell(words, small=refused or None),
            *_cores(one.saved),
            TableCell(_TOLD[one.verdict]),
            TableCell(standing_words(one.row.standing), standing=one.row.standing),
        ]
        rows.append([*row, TableCell(_ruling(one))] if policy else row)
    return Table("", columns, rows)


def _ruling(one: Swap) -> str:
    if not one.judged.judged:
        return "no rule"
    return one.judged.ruling.words


def _checked(checked: Checked) -> Table:
    columns = (
        *row_names("term"),
        *numbers("predicted"),
        *numbers("interval", leaves=2),
        *numbers("measured"),
        *numbers("interval", leaves=3),
        *numbers("ratio", "in throughput phases"),
        *numbers("interval", leaves=1),
    )
    total = [checked.total] if checked.total and len(checked.terms) > 1 else []
    return Table("", columns, [_side_by_side(one) for one in (*checked.terms, *total)])


def _side_by_side(one: CheckedTerm) -> list[TableCell]:
    if one.sides is None:
        return [TableCell(one.name, small=one.reason), *_cores(one.predicted), *[DASH] * 5]
    in_rounds, in_phases = one.sides
    ratio = in_rounds.estimate / one.predicted.estimate
    side_by_side = [*_cores(one.predicted), *_cores(in_rounds), TableCell(f"{ratio:.3f}", ratio)]
    moments = None if in_rounds.moments is Moments.QUIET else f"both {in_rounds.moments}"
    return [TableCell(one.name, small=moments), *side_by_side, *_cores(in_phases)]


def _cores(of: Interval) -> tuple[TableCell, TableCell]:
    return with_ends(of, _signed, _ends)


def _notes(sized: Sized) -> Iterator[str]:
    served = [one.term.name for one in sized.terms if one.memory_bytes is None]
    if served:
        yield (
            f"The memory of {enumeration([f'`{name}`' for name in served])} is not known: the growth of a server's"
            " memory with each operation in flight was not measured."
        )
    yield from _unjudged(sized)
    if sized.terms and not sized.missing:
        yield "Terms that run in one process share its caches; the sum does not include this effect."
    load = " ".join(load_words(sized.mix.utilisation))
    others = [one for one in sized.terms if not one.is_at_load]
    busy = [one.term.name for one in others if not _is_paced(one)]
    if busy:
        yield (
            f"The servers of {enumeration([f'`{name}`' for name in busy])} were measured without idle time. A server"
            " that waits between requests is woken for each, which may double the cost of a request of some"
            f" microseconds. Add `{load}` to the question to measure that."
        )
    paced = [f"`{one.term.name}` ({enumeration([*_loads(one)])})" for one in others if _is_paced(one)]
    if paced:
        yield f"Measured under another load than the mix's `{load}`: {enumeration(paced)}."


def _unjudged(sized: Sized) -> Iterator[str]:
    """Yield the policies without a rule on the mix's terms, and rulings that a reader would not expect."""
    judging = {judged.policy.name for one in sized.terms for judged in one.judged.judged}
    silent = [f"`{policy.name}`" for policy in sized.mix.policies if policy.name not in judging]
    if silent and sized.terms:
        has = "has" if len(silent) == 1 else "have"
        yield f"{enumeration(silent)} {has} no rule on the sized choices."
    for one in sized.terms:
        if one.judged.judged and one.judged.ruling is Ruling.CANNOT_SAY:
            why = enumeration([reason_words(reason) for reason in one.judged.missing])
            yield f"It is undecided whether `{one.term.name}` meets the policies: {why}."
        yield from (f"`{one.term.name}` is {excepted_words(reason)}." for reason in one.judged.excepted)
        advice = [reason.rule.clause for reason in one.judged.advice if reason.rule]
        if advice:
            yield f"`{one.term.name}` is against advice: {'; '.join(advice)}."


def _is_paced(one: SizedTerm) -> bool:
    return all(is_paced(cell.row.coordinates) for cell in one.cells)


def _loads(one: SizedTerm) -> Iterator[str]:
    """Yield the loads of the term's cells, each once: `30 % busy`."""
    found: dict[str, None] = {}
    for at in (cell.row.coordinates for cell in one.cells):
        client = "" if at.get("client") == "apart" else " by a client on the server's core"
        found[f"{place_of(one.term.family, at, ('rate', 'utilisation'))}{client}"] = None
    yield from found


def _warnings(sized: Sized) -> Iterator[str]:
    for one in sized.terms:
        if one.judged.ruling is Ruling.BREAKS:
            broken = enumeration([reason_words(reason) for reason in one.judged.broken])
            yield f"`{one.term.name}` breaks the policies: {broken}"
        if one.cores.is_bounded and one.cores.low <= 0:
            yield f"The interval of `{one.term.name}` reaches zero or below; measure longer with `--for`"
    if sized.cores is not None and not sized.cores.is_bounded:
        yield "A term has too few blocks for an interval; measure longer with `--for`"
