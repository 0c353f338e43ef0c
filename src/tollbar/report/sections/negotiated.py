"""Agreements of clients and servers on their connections, and the proofs of each cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tollbar.analysis import StudyJudgement
from tollbar.core.records import Negotiated
from tollbar.core.words import counted
from tollbar.report.blocks import (
    Folded,
    Paragraph,
    Section,
    Table,
    TableCell,
    folds,
    numbers,
    texts,
)
from tollbar.report.groups import by_cell
from tollbar.report.names import whole_labels
from tollbar.results import Row

# A longer table of negotiated parameters is folded, because few readers need it.
MOST_AGREED = 12


@dataclass(frozen=True, slots=True)
class Agreed:
    """Connections of one cell that agreed on the same parameters; without a version they had no TLS."""

    row: Row
    version: str
    suite: str
    group: str
    key: str
    """Key of the certificate that the server sent."""
    certificates: tuple[str, ...]
    full: int
    resumed: int
    client_libraries: tuple[str, ...]
    """TLS libraries of the load client."""


def agreements(rows: Iterable[Row]) -> list[Agreed]:
    """Return each cell's kinds of connection, over all its trials and loads."""
    return [agreed for found in by_cell(rows) for agreed in _of_cell(found)]


def _of_cell(rows: Sequence[Row]) -> list[Agreed]:
    loads = [t.load for r in rows for t in r.all_trials if t.load is not None]
    if not loads:
        return []
    kinds: dict[tuple[str, str, str, str], list[Negotiated]] = {}
    for one in (one for load in loads for one in load.negotiated):
        kinds.setdefault((one.version, one.construction, one.group, one.certificate_key), []).append(one)
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
    # Enough of it to distinguish it from any other of the run.
    return f"sha-256 {certificates[0][:12]}…" if certificates else None


def proofs_table(study: StudyJudgement) -> Table:
    """Return the inputs that each cell accepted and refused before it was timed, and those not tried."""
    label = whole_labels(study)
    rows = []
    for found in by_cell(study.rows):
        said = (
            dict.fromkeys(what for r in found for what in r.accepted),
            dict.fromkeys(what for r in found for what in r.refused),
            dict.fromkeys(what for r in found for what in r.not_tried),
        )
        if any(said):
            rows.append((TableCell(label(found[0])), *(TableCell("; ".join(whats) or "–") for whats in said)))
    columns = texts("cell", "accepted", "refused", "not tried")
    return Table("Accepted and refused by each cell before it was timed", columns, rows)


def agreed_table(study: StudyJudgement, found: Sequence[Agreed]) -> Table:
    """Return a line for each kind of connection of each cell."""
    label = whole_labels(study)
    columns = (
        *texts("cell", "version", "suite", "group", "certificate"),
        *numbers("full handshakes", "resumed"),
        *texts("client"),
    )
    rows = [
        (
            TableCell(label(one.row)),
            TableCell(one.version or "no TLS"),
            TableCell(one.suite or "–"),
            TableCell(one.group or "–"),
            TableCell(one.key or "–", small=_fingerprints(one.certificates)),
            *(
                (TableCell(f"{one.full:,}", float(one.full)), TableCell(f"{one.resumed:,}", float(one.resumed)))
                if one.version
                else (TableCell("–", small=f"{one.full:,} connections"), TableCell("–"))
            ),
            TableCell(", ".join(one.client_libraries) or "–"),
        )
        for one in found
    ]
    return Table("Parameters that the two sides negotiated, over all trials", columns, rows, sortable=True)


def handshakes(found: Sequence[Agreed]) -> str:
    """Return one sentence: the number of handshakes, and of those that were resumed."""
    full = sum(one.full for one in found if one.version)
    resumed = sum(one.resumed for one in found)
    cells = len({one.row.key for one in found if one.version})
    if not full + resumed:
        return "No connection had TLS."
    said = f"{resumed:,} resumed a session" if resumed else "none resumed a session"
    return f"{counted(full + resumed, 'handshake')} in {counted(cells, 'cell')}: {said}."


def negotiated_section(study: StudyJudgement) -> Section | None:
    found = agreements(study.rows)
    if not any(one.version for one in found):
        return None
    table, proofs = agreed_table(study, found), proofs_table(study)
    summary = f"{table.caption}: {counted(len(table.rows), 'line')}"
    return Section(
        "Negotiated parameters",
        (
            Paragraph(handshakes(found), "note"),
            *folds(summary, table, len(table.rows) > MOST_AGREED),
            *([Folded(proofs.caption, [proofs])] if proofs.rows else []),
        ),
    )
