"""The matrix of the page of many runs: all tolls by machine, as data that the page's script lays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tollbar.decide.compare import Gathered, MachineToll
from tollbar.decide.compare.found_runs import shown
from tollbar.decide.compare.sentences import (
    DIFFERS,
    Names,
    by_family,
    machine_words,
    ratio_and_ends,
    reason,
    runs_words,
    title,
    told,
    told_apart,
    verdict_words,
)
from tollbar.report.numbers import VERDICT_MARKS
from tollbar.report.standings import standing_words

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
    """Table of all tolls by machine, as data that the page's script lays out; the script makes no words."""

    kind: ClassVar[str] = "matrix"
    families: Sequence[str]
    processors: Sequence[str]
    flags: Sequence[str]
    data: Mapping[str, Any]
    """Data of the page's script: columns, rows, and words of verdicts and reasons.

    `columns` (title, small, number of its processor, of its flags), `rows` (number of its family, name, smaller line,
    standing and its words, whether machines differ, and its cells) and the words for `verdicts` and `reasons`. Cells
    are one text, `|` between them: a verdict's letter, the ratio, `~` if noisy, `;`, its interval, and for several runs
    `;` and their number and range. An unmeasured cell is its letter and the number of the reason.
    """


def matrix(gathered: Gathered) -> Matrix:
    families = by_family(gathered.rows)
    machines = {number: gathered.machines[number] for number in told(gathered)}
    processors = list(dict.fromkeys(machine.processor for machine in machines.values()))
    flags = sorted({flag for machine in machines.values() for flag in machine.fingerprint.flags})
    reasons: dict[str, int] = {}
    rows = []
    for number, (family, some) in enumerate(families.items()):
        names = Names.of(family, some)
        for row, apart in zip(some, told_apart(some, names), strict=True):
            cell, over = names.cell(row), names.over(row)
            cells = "|".join(_written(row.places.get(n), reasons) for n in machines)
            standing = [str(row.standing), standing_words(row.standing)]
            rows.append([number, cell, f"over {over}{apart}", *standing, int(row.differs), cells])
    columns = [
        [
            shown(machine.processor),
            f"machine {number + 1}" + (f" · {words}" if (words := machine_words(machine)) else ""),
            processors.index(machine.processor),
            [flags.index(flag) for flag in machine.fingerprint.flags],
        ]
        for number, machine in machines.items()
    ]
    verdicts = {code: [VERDICT_MARKS.get(verdict, "≠"), verdict] for verdict, code in _CODES.items()}
    data = {"columns": columns, "rows": rows, "verdicts": verdicts, "reasons": list(reasons)}
    return Matrix([title(family) for family in families], [shown(one) for one in processors], flags, data)


def _written(place: MachineToll | None, reasons: dict[str, int]) -> str:
    if place is None:
        return ""
    code = _CODES[verdict_words(place)]
    ratio, ends = ratio_and_ends(place)
    if not ratio:
        return f"{code}{reasons.setdefault(reason(place), len(reasons))}"
    of_runs = f";{runs}" if (runs := runs_words(place)) else ""
    return f"{code}{ratio};{ends}{of_runs}"
