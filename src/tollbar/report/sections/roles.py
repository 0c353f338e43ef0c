"""Roles: the machine of each part of a server, and the traffic between it and the load client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tollbar.analysis import Measurement, StudyJudgement
from tollbar.core.metrics import METRICS, NETWORK
from tollbar.report.blocks import DASH, Column, Listing, Table, TableCell, numbers, row_names
from tollbar.report.names import labels, varying
from tollbar.report.numbers import amount
from tollbar.results import Run

TITLE = "On machines of their own"
ROUND_TRIP_TIME = "network-round-trip-time"
SIMULATED = "Simulated machines on the lab's own: their network is its memory, so no figure is that of a network."

OF_A_NODE = "Simulated node on the lab's machine: no figure is that of a network."


def simulated(run: Run) -> tuple[str, ...]:
    """Return the notice that precedes the results of a simulated cluster's node."""
    return (OF_A_NODE,) if "simulated" in run.fingerprint else ()


def roles_listing(study: StudyJudgement, run: Run) -> Listing | None:
    """Return the machine of each part, and the table; None if all ran on one machine."""
    table = _table(study)
    return Listing(TITLE, [*_sentences(run)], [table]) if run.nodes and table else None


def _sentences(run: Run) -> Iterator[str]:
    for role, node in run.nodes.items():
        yield f"{role}: {node['address']} ({node['host']}, {node['fingerprint']['cpu']})"
    if any(node["is_simulated"] for node in run.nodes.values()):
        yield SIMULATED
    yield (
        "Per operation, from the client's kernel: bytes of the connection's stream, and round trips with that of "
        "connecting. Traffic between the server's own machines is not counted. The round trip before the load is "
        "measured while other servers of the batch may be warming up."
    )


def _table(study: StudyJudgement) -> Table | None:
    found: dict[str, dict[str, list[Measurement]]] = {}
    for one in study.measurements:
        if one.metric in NETWORK or one.metric == ROUND_TRIP_TIME:
            found.setdefault(one.row.key, {}).setdefault(one.metric, []).append(one)
    rows = [row for row in study.rows if row.key in found]
    if not rows:
        return None
    label = labels(study, varying(rows, ("choice",)), whole=True)
    columns: tuple[Column, ...] = (
        *row_names("cell"),
        *numbers("sent", "received", "round trips", "a round trip before the load"),
    )
    return Table(
        "Traffic between the load client and the server, per operation",
        columns,
        [
            [TableCell(label(row)), *(_cell(found[row.key].get(name, ())) for name in (*NETWORK, ROUND_TRIP_TIME))]
            for row in rows
        ],
    )


def _cell(found: Sequence[Measurement]) -> TableCell:
    """Return the value of each machine, if there are several."""
    if not found:
        return DASH
    said = dict.fromkeys(amount(one.value, METRICS[one.metric].unit.removesuffix("/op")) for one in found)
    return TableCell(" · ".join(said), found[0].value)
