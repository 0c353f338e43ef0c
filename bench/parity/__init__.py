"""Parity: the calls of one operation of each choice, counted, with reasons for the differences. Six minutes.

Functions of a libcrypto are counted, linked-in code is tallied by the engine (`TOLLBAR_COUNT_CALLS`), and system calls
and bytes are counted by strace: for a runner between a line that it reads and its answer, for a server over a number of
requests. `python -m bench parity` writes docs/generated/parity.md, with a reason for each difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.figures import Figure, unmeasured
from bench.parity import counting, document, reasons
from bench.parity.counting import Absent, Row
from bench.parity.document import Part
from bench.parity.parts import PARTS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "generated" / "parity.md"


def figures() -> Iterator[Figure]:
    """Count, write the document, and yield the differences without a reason."""
    if (lacking := counting.lacking()) is not None:
        yield unmeasured("parity", lacking)
        return
    before = document.read(DOCUMENT.read_text("utf-8"))
    parts = {family: counted(family) for family in PARTS}
    lost = {family: _lost(part, before.get(family)) for family, part in parts.items()}
    # The document stays if something cannot be counted any more, or nothing may be traced.
    if all(part.rows for part in parts.values()) and not any(lost.values()):
        DOCUMENT.write_text(document.written(parts), "utf-8")
    yield _all_counted(parts, lost)
    for family, part in parts.items():
        unexplained = [
            str(one) for one in reasons.differences(family, part.rows) if reasons.reason(family, one) is None
        ]
        yield Figure(
            f"parity: `{family}`, of {len(part.rows)} rows what some do more of, without a reason",
            "nothing",
            "; ".join(unexplained) or "nothing",
            bool(part.rows) and not unexplained,
        )
    unused = reasons.unused({family: part.rows for family, part in parts.items()})
    yield Figure(
        "parity: reasons that explain nothing",
        "none",
        "; ".join(f"{one.family}: {one.what} of {one.choices}" for one in unused) or "none",
        not unused,
    )


def _lost(part: Part, before: Part | None) -> list[Absent]:
    """Return cells that were not counted but could be: they failed, or the document has their row."""
    had = {_asked(row) for row in before.rows} if before else set()
    return [one for one in part.absent if one.is_failure or _asked(one) in had]


def _asked(one: Row | Absent) -> tuple[str, str, str, str]:
    return one.choice, one.settings, one.operation, one.by


def _all_counted(parts: Mapping[str, Part], lost: Mapping[str, list[Absent]]) -> Figure:
    said = [f"{family}: {' '.join(filter(None, _asked(one)))}: {one.reason}" for family in lost for one in lost[family]]
    rows = sum(len(part.rows) for part in parts.values())
    what = f"parity: beside {rows} rows, those that failed, or that the document has and are not counted"
    return Figure(what, "none", "; ".join(said) or "none", bool(rows) and not said)


def counted(family: str) -> Part:
    """Return the rows of a family, and the cells that could not be counted."""
    found = [*counting.count(PARTS[family])]
    return Part([one for one in found if isinstance(one, Row)], [one for one in found if isinstance(one, Absent)])
