"""Answer of `compare`: tolls of many runs side by side, by machine, and the refused runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tollbar.core.words import counted, enumeration, more
from tollbar.decide.compare import Gathered, Pattern, Patterns, Refused, TollRow
from tollbar.decide.compare.found_runs import Doubt, shown
from tollbar.decide.compare.matrix import matrix
from tollbar.decide.compare.patterns import BY_CHANCE, MOST_SHUFFLES
from tollbar.decide.compare.sentences import (
    DIFFERS,
    Names,
    by_family,
    machine_words,
    ratio_and_ends,
    runs_words,
    title,
    told,
    told_apart,
    verdict_words,
)
from tollbar.report.blocks import (
    Block,
    Brief,
    Column,
    Commands,
    Listing,
    Paragraph,
    Section,
    Table,
    TableCell,
    count_cell,
    numbers,
    row_names,
    texts,
)
from tollbar.report.numbers import NOISY_MARK, apart_words, percent, percent_of
from tollbar.report.standings import standing_words

if TYPE_CHECKING:
    from tollbar.report.page import Page

QUESTION = "What does each choice cost, machine by machine?"
# A terminal has no room for more machines; more rows are for the page and the JSON document.
MOST_MACHINES, MOST_ROWS = 4, 20
# Largest number of characters of a fingerprint, including the kernel's lines on vulnerabilities.
MOST_FACTS = 4000
# Largest number of named rows of one pattern.
MOST_NAMED = 6


def gather_answer(gathered: Gathered, *, everything: bool = False) -> Brief:
    """Return the answer about many runs; without `everything`, cut to a length for a terminal."""
    shown = gathered.rows
    if not everything:
        shown = tuple(sorted(shown, key=lambda row: (not row.differs, not row.is_measured))[:MOST_ROWS])
    machines = told(gathered)[: None if everything else MOST_MACHINES]
    return Brief(
        QUESTION,
        headline(gathered),
        how=tuple(how(gathered)),
        listings=(
            *_toll_listings(shown, machines),
            *_pattern_listings(gathered),
            *([Listing("The machines", tables=[_machines(gathered)])] if gathered.runs else []),
            *([Listing("The runs", tables=[_runs(gathered)])] if gathered.runs and everything else []),
            *_refused_listings(gathered),
        ),
        notes=tuple(_left_out(gathered, len(shown), len(machines))),
    )


def gather_page(gathered: Gathered, command: str, to: Path) -> Page:
    """Return the page of many runs; links to the runs' own pages are relative to `to`, its file."""
    from tollbar.report.page import Page

    parts: tuple[Listing, ...] = (
        *_pattern_listings(gathered),
        Listing("The machines", tables=[_machines(gathered)]),
        Listing("The runs", tables=[_runs(gathered, to)]),
        *_refused_listings(gathered),
    )
    sections: tuple[Section | Listing, ...] = (
        Section("Tolls by machine", [Paragraph(headline(gathered), "answer"), *_notes(gathered), matrix(gathered)]),
        *parts,
        Section("Reproduce", [Commands({"The same runs": command})]),
    )
    return Page(name="many machines", title=QUESTION, note="", contents=(), sections=sections)


def _notes(gathered: Gathered) -> Iterator[Block]:
    yield from (Paragraph(line, "note") for line in how(gathered))


def headline(gathered: Gathered) -> str:
    """Return the number of tolls, runs and machines, and the number of tolls on which the machines agree."""
    runs, machines = counted(len(gathered.runs), "run"), counted(len(gathered.machines), "machine")
    if not gathered.rows:
        return f"{runs} on {machines} have no toll to compare; the reasons are below."
    said = f"{counted(len(gathered.rows), 'toll')} of {runs} on {machines}"
    several = sum(len(row.verdicts) > 1 for row in gathered.rows)
    differ = sum(row.machines_differ for row in gathered.rows)
    contradict = sum(row.runs_differ for row in gathered.rows)
    among = f"; machines disagree on {differ:,} of the {several:,} decided on more than one machine"
    apart = f"; runs of one machine contradict each other on {contradict:,}" if contradict else ""
    return f"{said}{among if several else ': none is decided on more than one machine'}{apart}."


def how(gathered: Gathered) -> Iterator[str]:
    """Yield the definition of a ratio here, and its limits."""
    if made_up := sum("simulated" in machine.fingerprint.model_dump() for machine in gathered.machines):
        yield f"Simulated: {counted(made_up, 'machine')} in namespaces of another machine, without a real network."
    if gathered.rows:
        tolls = [toll for row in gathered.rows for place in row.places.values() for toll in place.ratios]
        marked = f" `{NOISY_MARK}` marks noisy ratios: the core was quiet in too few blocks, or was not probed."
        yield (
            "A ratio is the quiet CPU time of a choice over that of its baseline, everything else equal, as judged in"
            f" its own run.{marked * any(toll.is_noisy for toll in tolls)} Ratios of machines are next to each other"
            " and not averaged; times of two machines are not compared, and machines are not ranked."
        )
    if any(len(place.ratios) > 1 for row in gathered.rows for place in row.places.values()):
        yield (
            "Several runs of one machine are combined by random effects: the ratio and its interval are those of all"
            " runs, and the range of the runs' own ratios is next to them. The verdict judges the combined interval by"
            f" the studies' threshold and the noise of all runs' A/A pairs; `{DIFFERS}` means that decided runs"
            " contradict each other."
        )


def _left_out(gathered: Gathered, rows: int, machines: int) -> Iterator[str]:
    left = [
        more(number, noun)
        for number, noun in (
            (len(gathered.rows) - rows, "toll"),
            (len(told(gathered)) - machines, "machine"),
        )
        if number > 0
    ]
    if left:
        yield f"{enumeration(left)}: `--output page.html`, `--markdown` and `--json` have all."


def _toll_listings(rows: Sequence[TollRow], machines: Sequence[int]) -> Iterator[Listing]:
    for family, some in by_family(rows).items():
        names = Names.of(family, some)
        apart = told_apart(some, names)
        heads = [f"machine {n + 1}" for n in machines]
        columns = (*row_names("choice"), Column("baseline", names=True), *texts(*heads))
        yield Listing(
            title(family),
            tables=[
                Table(
                    "",
                    columns,
                    [
                        [*_row_names(row, names, of_it), *_cells(row, machines)]
                        for row, of_it in zip(some, apart, strict=True)
                    ],
                )
            ],
            caption="Each machine: the ratio, its interval, and the verdict.",
            short_caption="Each machine: the ratio and the verdict; intervals need a wider terminal.",
        )


def _row_names(row: TollRow, names: Names, apart: str) -> tuple[TableCell, TableCell]:
    return TableCell(f"{names.cell(row)} ({standing_words(row.standing)})"), TableCell(names.over(row) + apart)


def _cells(row: TollRow, machines: Sequence[int]) -> Iterator[TableCell]:
    for number in machines:
        place = row.places.get(number)
        if place is None:
            yield TableCell("–")
            continue
        ratio, ends = ratio_and_ends(place)
        verdict = verdict_words(place)
        if not ratio:
            yield TableCell(verdict, verdict=place.verdict)
            continue
        of_runs = f" ({runs})" if (runs := runs_words(place)) else ""
        short = f"×\u00a0{ratio} {verdict}"
        yield TableCell(f"×\u00a0{ratio} [{ends}] {verdict}{of_runs}", verdict=place.verdict, short=short)


def _pattern_listings(gathered: Gathered) -> Iterator[Listing]:
    found = gathered.patterns
    if found.shuffles:
        told = ["A pattern is not a cause: other properties that these processors share go with the verdict too."]
        yield Listing(
            "Flags that go with a verdict",
            [_pattern(one) for one in found.told] or ["No flag goes with verdicts more often than by chance."],
            notes=[*(told if found.told else []), *_shuffled(found)],
        )


def _shuffled(found: Patterns) -> Iterator[str]:
    """Yield the number of patterns that chance gives, next to the number found."""
    of = "all" if found.shuffles < MOST_SHUFFLES else f"{found.shuffles:,}"
    yield (
        f"Flags separate the verdicts of {counted(found.tolls, 'toll')}. In {of} random assignments of flags to"
        f" processors, the median is {found.usual:g} tolls, and {percent(0.95)} have at most {found.most:,}."
    )
    if found.not_told:
        yield (
            f"{counted(found.not_told, 'pattern')} not shown: {percent(BY_CHANCE)} or more of these assignments give"
            " some flag the same number of tolls. Fewer than seven processors are too few to show any."
        )


def _pattern(one: Pattern) -> str:
    shown = []
    for family, some in by_family(one.rows[:MOST_NAMED]).items():
        names = Names.of(family, some)
        shown.append(f"{title(family)}: {enumeration([names.cell(row) for row in some])}")
    left = len(one.rows) - MOST_NAMED
    rest = [more(left, "toll")] if left > 0 else []
    flags = enumeration([f"`{flag}`" for flag in one.flags])
    have, lack = (counted(number, "processor") for number in one.processors)
    return (
        f"{one.have} on processors with {flags} (at least {have}), {one.lack} without (at least {lack}):"
        f" {'; '.join([*shown, *rest])}. {percent_of(one.by_chance)} of random assignments give some flag this many"
        " tolls."
    )


def _machines(gathered: Gathered) -> Table:
    columns = (
        *row_names("machine", "processor"),
        *texts("flags", leaves=2),
        *numbers("runs"),
        *texts("fingerprint", leaves=1),
    )
    rows = [
        [
            TableCell(str(number), number),
            TableCell(shown(machine.processor), small=machine_words(machine)),
            TableCell(" ".join(machine.fingerprint.flags)),
            count_cell(len(machine.runs)),
            TableCell(_fingerprint(machine.fingerprint.model_dump())),
        ]
        for number, machine in enumerate(gathered.machines, 1)
    ]
    return Table("", columns, rows)


def _runs(gathered: Gathered, to: Path | None = None) -> Table:
    machine_of = {run: number for number, one in enumerate(gathered.machines, 1) for run in one.runs}
    columns = (*row_names("run"), *texts("started"), *numbers("machine"), *texts("Tollbar", leaves=1))
    rows = [
        [
            TableCell(run.name, link=_link(run.page, to) if run.page and to else None),
            TableCell(shown(run.started)),
            TableCell(str(machine_of[number]), machine_of[number]),
            TableCell(shown(run.version)),
        ]
        for number, run in enumerate(gathered.runs)
    ]
    return Table("", columns, rows)


def _fingerprint(facts: Mapping[str, Any]) -> str:
    said = (f"{name.replace('_', ' ')} {_fact(fact)}" for name, fact in facts.items() if name not in ("cpu", "flags"))
    return shown("; ".join(said), MOST_FACTS)


def _fact(fact: object) -> str:
    return ", ".join(map(str, fact)) or "none" if isinstance(fact, list) else str(fact)


def _link(page: Path, to: Path) -> str:
    """Return a run's page relative to `to`, quoted so that a foreign name cannot be another kind of address."""
    # A path that is a loop of links stays as it is here.
    page_at, to_at = os.path.realpath(page), os.path.realpath(to)
    return quote(os.path.relpath(page_at, os.path.dirname(to_at)), errors="surrogateescape")


def _refused_listings(gathered: Gathered) -> Iterator[Listing]:
    rows = [[TableCell(one.name, small=one.reason), TableCell("whole run")] for one in gathered.unusable]
    rows += [
        [TableCell(run.name, small=refusal_words(one)), TableCell(one.study.name)]
        for run in gathered.runs
        for one in run.refused
    ]
    if rows:
        columns = (*row_names("run"), *texts("refused part"))
        yield Listing("Refused", tables=[Table("", columns, rows)])


def refusal_words(refused: Refused) -> str:
    """Return the words for the refusal of a study."""
    study = refused.study
    if refused.doubt is Doubt.NOISE:
        return (
            f"A/A pairs differed by {apart_words(study.noise_floor or 1.0)}, more than the"
            f" {percent(study.threshold)} threshold"
        )
    if refused.doubt is Doubt.NEVER_QUIET:
        return "never quiet: the core of no cell was quiet in enough blocks"
    if refused.doubt is Doubt.ELSEWHERE:
        return f"parts of it ran on other machines ({refused.elsewhere}), but a column is one machine"
    wrong = enumeration([f"“{says}”" for says in study.wrong_claims])
    return f"the run's self-test failed: {wrong}" if wrong else "the run's self-test failed"
