"""Parity: what one operation of each choice does, counted, and why it does what others of its kind do not. Six minutes.

Of a libcrypto its functions are counted, of what is linked in what the engine tallies (`TOLLBAR_COUNT_CALLS`), and of
everything the system calls and the bytes, by strace: of a runner between a line that it reads and its answer, of a
server for so many requests. `python -m bench parity` writes docs/parity.md, where each difference has its reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure
from bench.parity import counting, document, reasons
from bench.parity.counting import Absent, Row
from bench.parity.document import Part
from bench.parity.parts import PARTS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "parity.md"


def figures() -> Iterator[Figure]:
    """Counts, writes the document, and says what in it has no reason."""
    if not counting.can_trace():
        yield Figure("parity", "(not measured)", "strace is not installed", None)
        return
    parts = {family: counted(family) for family in PARTS}
    # Where nothing may be traced there are no rows, and the document stays.
    if all(part.rows for part in parts.values()):
        DOCUMENT.write_text(document.written(parts), "utf-8")
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


def counted(family: str) -> Part:
    """The rows of a family, and what could not be counted."""
    found = [*counting.count(PARTS[family])]
    return Part([one for one in found if isinstance(one, Row)], [one for one in found if isinstance(one, Absent)])
