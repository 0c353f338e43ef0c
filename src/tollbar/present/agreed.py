"""What was negotiated: the proof, connection by connection, that each cell measured what it says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tollbar.judge import StudyJudgement
from tollbar.present.cells import by_cell, whole_labels
from tollbar.present.shapes import Cell, Table, numbers, texts
from tollbar.present.words import counted
from tollbar.records import Negotiated
from tollbar.results import Row


@dataclass(frozen=True, slots=True)
class Agreed:
    """What so many connections of one cell came to; without a version they had no TLS."""

    row: Row
    version: str
    suite: str
    group: str
    key: str
    """Of the certificate that the server showed."""
    certificates: tuple[str, ...]
    full: int
    resumed: int
    client_libraries: tuple[str, ...]
    """What the load client spoke through."""


def agreements(rows: Iterable[Row]) -> list[Agreed]:
    """Each cell's kinds of connection, over all its trials and loads."""
    return [agreed for found in by_cell(rows) for agreed in _of_cell(found)]


def _of_cell(rows: Sequence[Row]) -> list[Agreed]:
    loads = [t.load for r in rows for t in r.all_trials if t.load is not None]
    if not loads:
        return []
    kinds: dict[tuple[str, str, str, str], list[Negotiated]] = {}
    for one in (one for load in loads for one in load.negotiated):
        kinds.setdefault((one.version, one.suite, one.group, one.certificate_key), []).append(one)
    if not kinds:
        return [Agreed(rows[0], "", "", "", "", (), sum(load.connections or load.requests for load in loads), 0, ())]
    libraries = tuple(dict.fromkeys(name for row in rows for name in row.client_libraries))
    return [
        Agreed(
            rows[0],
            *kind,
            certificates=tuple(dict.fromkeys(one.certificate for one in found if one.certificate)),
            full=sum(one.count for one in found if not one.resumed),
            resumed=sum(one.count for one in found if one.resumed),
            client_libraries=libraries,
        )
        for kind, found in kinds.items()
    ]


def _fingerprints(certificates: Sequence[str]) -> str | None:
    if len(certificates) > 1:
        return f"{len(certificates)} certificates"
    # Enough of it to tell it from any other of the run.
    return f"sha-256 {certificates[0][:12]}…" if certificates else None


def proofs_table(study: StudyJudgement) -> Table:
    """What each cell accepted and refused before it was timed, and what was not tried."""
    label = whole_labels(study)
    rows = []
    for found in by_cell(study.rows):
        said = (
            dict.fromkeys(what for r in found for what in r.accepted),
            dict.fromkeys(what for r in found for what in r.refused),
            dict.fromkeys(what for r in found for what in r.not_tried),
        )
        if any(said):
            rows.append((Cell(label(found[0])), *(Cell("; ".join(whats) or "–") for whats in said)))
    columns = texts("cell", "accepted", "refused", "not tried")
    return Table("What each cell accepted and refused before it was timed", columns, rows)


def agreed_table(study: StudyJudgement, found: Sequence[Agreed]) -> Table:
    """One line for each kind of connection of each cell."""
    label = whole_labels(study)
    columns = (
        *texts("cell", "version", "suite", "group", "certificate"),
        *numbers("full handshakes", "resumed"),
        *texts("client"),
    )
    rows = [
        (
            Cell(label(one.row)),
            Cell(one.version or "no TLS"),
            Cell(one.suite or "–"),
            Cell(one.group or "–"),
            Cell(one.key or "–", small=_fingerprints(one.certificates)),
            *(
                (Cell(f"{one.full:,}", float(one.full)), Cell(f"{one.resumed:,}", float(one.resumed)))
                if one.version
                else (Cell("–", small=f"{one.full:,} connections"), Cell("–"))
            ),
            Cell(", ".join(one.client_libraries) or "–"),
        )
        for one in found
    ]
    return Table("What the two sides agreed on, over all trials", columns, rows, sortable=True)


def handshakes(found: Sequence[Agreed]) -> str:
    """One sentence: how many handshakes there were, and how many of them were resumed."""
    full = sum(one.full for one in found if one.version)
    resumed = sum(one.resumed for one in found)
    cells = len({one.row.key for one in found if one.version})
    if not full + resumed:
        return "No connection had TLS."
    said = f"{resumed:,} resumed a session" if resumed else "none resumed a session"
    return f"{counted(full + resumed, 'handshake')} in {counted(cells, 'cell')}: {said}."
