"""What `gather` answers: tolls of many runs side by side, by machine, and what was refused."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from tollbar import families
from tollbar.errors import TollbarError
from tollbar.families import Family, Value
from tollbar.gathering import Gathered, Machine, Pattern, Place, Refused, TollRow
from tollbar.gathering.reading import Doubt, shown
from tollbar.present.blocks import (
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
from tollbar.present.decisions import part_of
from tollbar.present.names import VERDICT_MARKS, counted, enumeration, place_of, standing_words
from tollbar.present.numbers import AS_DISTURBED, apart_words, percent, ratio_words

if TYPE_CHECKING:
    from tollbar.present.page import Page

QUESTION = "What does each choice cost, machine by machine?"
DIFFERS = "runs differ"
"""In place of a verdict: runs of one machine contradict one another."""
# A terminal has no room for more machines; more rows are for the page and the JSON document.
MOST_MACHINES, MOST_ROWS = 4, 20
# Letters of a fingerprint, with what the kernel says of each vulnerability.
MOST_FACTS = 4000
# Of rows that one pattern is seen in.
MOST_NAMED = 6


def gather_answer(gathered: Gathered, *, everything: bool = False) -> Brief:
    """All that is said of many runs; for a terminal without `everything`, so that it can be read there."""
    shown = gathered.rows
    if not everything:
        shown = tuple(sorted(shown, key=lambda row: (not row.differs, not row.is_measured))[:MOST_ROWS])
    machines = _told(gathered)[: None if everything else MOST_MACHINES]
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
    """The page of many runs, that is written to this file: links to the runs' own pages are relative to it."""
    from tollbar.present.page import Page

    parts = (
        *_pattern_listings(gathered),
        Listing("The machines", tables=[_machines(gathered)]),
        Listing("The runs", tables=[_runs(gathered, to)]),
        *_refused_listings(gathered),
    )
    sections = (
        Section("Tolls by machine", [Paragraph(headline(gathered), "answer"), *_notes(gathered), _matrix(gathered)]),
        *(part_of(one) for one in parts),
        Section("Do it again", [Commands({"The same runs": command})]),
    )
    return Page(name="many machines", title=QUESTION, note="", contents=(), sections=sections)


def _notes(gathered: Gathered) -> Iterator[Block]:
    yield from (Paragraph(line, "note") for line in how(gathered))


def headline(gathered: Gathered) -> str:
    """How much was gathered, and of how much the machines say the same."""
    runs, machines = counted(len(gathered.runs), "run"), counted(len(gathered.machines), "machine")
    if not gathered.rows:
        return f"No toll can be told of {runs} on {machines}: below is why."
    said = f"{counted(len(gathered.rows), 'toll')} of {runs} on {machines}"
    several = sum(len(row.verdicts) > 1 for row in gathered.rows)
    differ = sum(row.machines_differ for row in gathered.rows)
    contradict = sum(row.runs_differ for row in gathered.rows)
    among = f"; of {several:,} that are decided on more than one machine, {differ:,} come out differently"
    apart = f"; of {contradict:,}, runs of one machine contradict one another" if contradict else ""
    return f"{said}{among if several else ': none is decided on more than one machine'}{apart}."


def how(gathered: Gathered) -> Iterator[str]:
    """What a ratio here is, and what is not done with it."""
    if made_up := sum("simulated" in machine.fingerprint.model_dump() for machine in gathered.machines):
        yield f"Simulated: {counted(made_up, 'machine')} made up on another, and nothing of it is a network's."
    if gathered.rows:
        tolls = [toll for row in gathered.rows for place in row.places.values() for toll in place.ratios]
        marked = (
            f"; where `{AS_DISTURBED}` stands, as disturbed, because the core was left alone in too few blocks or was"
            " not probed"
        )
        yield (
            "A ratio is the CPU time of a choice over that of its baseline, all else alike, as its own run was judged:"
            f" in undisturbed moments{marked * any(toll.is_disturbed for toll in tolls)}. Ratios of machines stand side"
            " by side and are not averaged; times of two machines are not compared, and there is no rank among"
            " machines."
        )
    if any(len(place.ratios) > 1 for row in gathered.rows for place in row.places.values()):
        yield (
            "Where several runs of one machine have a toll, it is their range, from the least to the most, with the"
            " furthest ends of their intervals. A verdict is that of all of them; `unclear` where some are, and"
            f" `{DIFFERS}` where they contradict one another."
        )


def _left_out(gathered: Gathered, rows: int, machines: int) -> Iterator[str]:
    more = [
        counted(number, noun)
        for number, noun in (
            (len(gathered.rows) - rows, "more toll"),
            (len(_told(gathered)) - machines, "more machine"),
        )
        if number > 0
    ]
    if more:
        yield f"{enumeration(more)}: `--output page.html`, `--markdown` and `--json` have all."


def _told(gathered: Gathered) -> list[int]:
    """The machines of which any toll is told, by their places."""
    return sorted({number for row in gathered.rows for number in row.places})


@cache
def _family(name: str) -> Family | None:
    """The family as it is installed; None where it is not."""
    try:
        return families.family(name)
    except TollbarError:
        return None


def _title(name: str) -> str:
    family = _family(name)
    return family.title if family else name


@dataclass(frozen=True, slots=True)
class _Names:
    """What rows of one family are called: by what they differ in."""

    family: str
    varying: tuple[str, ...]

    @classmethod
    def of(cls, family: str, rows: Iterable[TollRow]) -> _Names:
        some = list(rows)
        values: dict[str, set[Value | None]] = {"choice": set(), "bed": set(), "provider": set(), "op": set()}
        for name in dict.fromkeys(name for row in some for name in row.at):
            values.setdefault(name, set()).update(row.at.get(name) for row in some)
        return cls(family, tuple(name for name, found in values.items() if name == "choice" or len(found) > 1))

    def cell(self, row: TollRow) -> str:
        return self._words(row.at, self.varying)

    def over(self, row: TollRow) -> str:
        """Its baseline, by what that has otherwise."""
        return self._words(row.over, [name for name, value in row.over.items() if row.at.get(name) != value])

    def _words(self, at: Mapping[str, Value], names: Sequence[str]) -> str:
        family = _family(self.family)
        if family is None:
            # Others' own: without its file a value says by itself what it can.
            return " · ".join(str(at[name]) for name in names if name in at)
        return place_of(family, at, names)


def _by_family(rows: Sequence[TollRow]) -> dict[str, list[TollRow]]:
    found: dict[str, list[TollRow]] = {}
    for row in rows:
        found.setdefault(row.family, []).append(row)
    return found


def _verdict(place: Place) -> str:
    return DIFFERS if place.verdict is None else str(place.verdict)


def _ratio(place: Place) -> tuple[str, str]:
    """A ratio, marked where it is as disturbed, and the ends of its interval; the range of several. Empty: none."""
    tolls = place.ratios
    if not tolls:
        return "", ""
    mark = AS_DISTURBED if any(toll.is_disturbed for toll in tolls) else ""
    found = [toll.ratio for toll in tolls if toll.ratio is not None]
    low, high = ratio_words(min(found)), ratio_words(max(found))
    ends = [(toll.low, toll.high) for toll in tolls]
    least = None if any(end is None for end, _ in ends) else min(end for end, _ in ends if end is not None)
    most = None if any(end is None for _, end in ends) else max(end for _, end in ends if end is not None)
    return (low if low == high else f"{low} to {high}") + mark, _ends(least, most)


def _ends(low: float | None, high: float | None) -> str:
    return "too few blocks" if low is None or high is None else f"{ratio_words(low)}, {ratio_words(high)}"


def _reason(place: Place) -> str:
    """Why there is no ratio, as the first of its runs says."""
    return shown(next((one.toll.reason for one in place.seen if one.toll.reason), "not measured"))


def _toll_listings(rows: Sequence[TollRow], machines: Sequence[int]) -> Iterator[Listing]:
    for family, some in _by_family(rows).items():
        names = _Names.of(family, some)
        apart = _apart(some, names)
        columns = (*row_names("choice"), Column("over", names=True), *texts(*(f"machine {n + 1}" for n in machines)))
        yield Listing(
            _title(family),
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


def _row_names(row: TollRow, names: _Names, apart: str) -> tuple[TableCell, TableCell]:
    return TableCell(f"{names.cell(row)} ({standing_words(row.standing)})"), TableCell(names.over(row) + apart)


def _studies(row: TollRow) -> str:
    return enumeration(sorted({shown(one.study.name) for place in row.places.values() for one in place.seen}))


def _apart(rows: Sequence[TollRow], names: _Names) -> list[str]:
    """Of each row: what tells it from others that are called the same, if any are."""
    alike: dict[tuple[str, str], list[TollRow]] = {}
    for row in rows:
        alike.setdefault((names.cell(row), names.over(row)), []).append(row)
    found: dict[int, str] = {}
    for same in alike.values():
        said = [f"{row.cost}; {percent(row.worth)} is worth telling" for row in same]
        if len(set(said)) < len(same):
            said = [f"{words}; as {_studies(row)} asks" for words, row in zip(said, same, strict=True)]
        # Studies of one name, of which one was changed.
        counts = Counter(said)
        numbers: Counter[str] = Counter()
        for row, words in zip(same, said, strict=True):
            numbers[words] += 1
            way = f", way {numbers[words]} of {counts[words]}" if counts[words] > 1 else ""
            found[id(row)] = f"; {words}{way}" if len(same) > 1 else ""
    return [found[id(row)] for row in rows]


def _cells(row: TollRow, machines: Sequence[int]) -> Iterator[TableCell]:
    for number in machines:
        place = row.places.get(number)
        if place is None:
            yield TableCell("–")
            continue
        ratio, ends = _ratio(place)
        verdict = _verdict(place)
        if not ratio:
            yield TableCell(verdict, verdict=place.verdict)
            continue
        yield TableCell(f"×\u00a0{ratio} [{ends}] {verdict}", verdict=place.verdict, short=f"×\u00a0{ratio} {verdict}")


def _pattern_listings(gathered: Gathered) -> Iterator[Listing]:
    if gathered.patterns:
        yield Listing(
            "Flags that go with a verdict",
            [_pattern(one) for one in gathered.patterns],
            notes=[
                "A pattern and not a cause: whatever else these processors have in common goes with the verdict as"
                " well. With few processors some flag separates them by chance."
            ],
        )


def _pattern(one: Pattern) -> str:
    shown = []
    for family, some in _by_family(one.rows[:MOST_NAMED]).items():
        names = _Names.of(family, some)
        shown.append(f"{_title(family)}: {enumeration([names.cell(row) for row in some])}")
    more = [f"{len(one.rows) - MOST_NAMED:,} more tolls"] if len(one.rows) > MOST_NAMED else []
    flags = enumeration([f"`{flag}`" for flag in one.flags])
    have, lack = (counted(number, "processor") for number in one.processors)
    return (
        f"{one.have} on processors with {flags} (at least {have}), {one.lack} without (at least {lack}):"
        f" {'; '.join([*shown, *more])}."
    )


def _machine_words(machine: Machine) -> str:
    """What tells it from another machine of the same processor."""
    facts = machine.fingerprint.model_dump()
    cores = facts.get("cores")
    said = ["simulated" if facts.get("simulated") else "", f"kernel {facts['kernel']}" if facts.get("kernel") else ""]
    return shown(", ".join(filter(None, [*said, counted(cores, "core") if isinstance(cores, int) else ""])))


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
            TableCell(shown(machine.processor), small=_machine_words(machine)),
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
    """Where a run's page is, from that of all: quoted, so that a name of others is never another kind of address."""
    # A path that is a loop of links stays as it is here.
    page_at, to_at = os.path.realpath(page), os.path.realpath(to)
    return quote(os.path.relpath(page_at, os.path.dirname(to_at)), errors="surrogateescape")


def _refused_listings(gathered: Gathered) -> Iterator[Listing]:
    rows = [[TableCell(one.name, small=one.reason), TableCell("the run")] for one in gathered.unusable]
    rows += [
        [TableCell(run.name, small=refusal_words(one)), TableCell(one.study.name)]
        for run in gathered.runs
        for one in run.refused
    ]
    if rows:
        columns = (*row_names("run"), *texts("what"))
        yield Listing("Refused", tables=[Table("", columns, rows)])


def refusal_words(refused: Refused) -> str:
    """Why nothing is told of a study."""
    study = refused.study
    if refused.doubt is Doubt.NOISE:
        return (
            f"what was measured twice differed by {apart_words(study.noise_floor or 1.0)}, and"
            f" {percent(study.worth)} is worth telling"
        )
    if refused.doubt is Doubt.NEVER_QUIET:
        return "never a quiet moment: no cell's core was left alone in blocks enough"
    if refused.doubt is Doubt.ELSEWHERE:
        return f"parts of it ran on other machines: {refused.elsewhere}; a column is one machine"
    wrong = enumeration([f"“{says}”" for says in study.wrong_claims])
    return f"the run's rehearsal failed: {wrong}" if wrong else "the run's rehearsal failed"


_CODES: Mapping[str, str] = {
    "costs": "c",
    "saves": "s",
    "free": "f",
    "unclear": "u",
    "not measured": "n",
    DIFFERS: "d",
}
"""A letter for each verdict: two hundred thousand of them are most of a page's weight."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """All tolls by machine, which the page's script lays out as it is filtered: no words are made there."""

    kind: ClassVar[str] = "matrix"
    families: Sequence[str]
    processors: Sequence[str]
    flags: Sequence[str]
    data: Mapping[str, Any]
    """`columns` (title, small, number of its processor, of its flags), `rows` (number of its family, name, smaller
    line, standing and its words, whether machines differ, and its cells) and the words for `verdicts` and `reasons`.
    Cells are one text, `|` between them: a verdict's letter, the ratio, `~` if as disturbed, `;`, its interval, and
    where there are several runs `;` and how many. Of what was not measured: its letter and the number of the reason."""


def _matrix(gathered: Gathered) -> Matrix:
    by_family = _by_family(gathered.rows)
    told = {number: gathered.machines[number] for number in _told(gathered)}
    processors = list(dict.fromkeys(machine.processor for machine in told.values()))
    flags = sorted({flag for machine in told.values() for flag in machine.fingerprint.flags})
    reasons: dict[str, int] = {}
    rows = []
    for number, (family, some) in enumerate(by_family.items()):
        names = _Names.of(family, some)
        for row, apart in zip(some, _apart(some, names), strict=True):
            cell, over = names.cell(row), names.over(row)
            cells = "|".join(_written(row.places.get(n), reasons) for n in told)
            standing = [str(row.standing), standing_words(row.standing)]
            rows.append([number, cell, f"over {over}{apart}", *standing, int(row.differs), cells])
    columns = [
        [
            shown(machine.processor),
            f"machine {number + 1}" + (f" · {words}" if (words := _machine_words(machine)) else ""),
            processors.index(machine.processor),
            [flags.index(flag) for flag in machine.fingerprint.flags],
        ]
        for number, machine in told.items()
    ]
    verdicts = {code: [VERDICT_MARKS.get(verdict, "≠"), verdict] for verdict, code in _CODES.items()}
    data = {"columns": columns, "rows": rows, "verdicts": verdicts, "reasons": list(reasons)}
    return Matrix([_title(family) for family in by_family], [shown(one) for one in processors], flags, data)


def _written(place: Place | None, reasons: dict[str, int]) -> str:
    if place is None:
        return ""
    code = _CODES[_verdict(place)]
    ratio, ends = _ratio(place)
    if not ratio:
        return f"{code}{reasons.setdefault(_reason(place), len(reasons))}"
    several = f";{len(place.ratios)}" if len(place.ratios) > 1 else ""
    return f"{code}{ratio};{ends}{several}"
