"""Limits of a cell's request rate: the server, its client, or other programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders
from tollbar.analysis import Limit, limit_of
from tollbar.core.records import ComponentRecord, LoadRecord, Trial

# For a microsecond: the client's busy share, the server's nanoseconds, and both sides' waits for other programs.
Given = tuple[float, int | None] | tuple[float, int, float, int]

LIMITS: dict[str, tuple[Limit | None, list[Given]]] = {
    "a busy client": (Limit.CLIENT_BOUND, [(0.9, 950)]),
    "a busy client and an idle server": (Limit.CLIENT_BOUND, [(0.71, 10)]),
    "an idle server": (Limit.NOT_SATURATED, [(0.3, 690)]),
    "a busy server": (None, [(0.3, 990)]),
    "both at the edge": (None, [(0.7, 700)]),
    "a server of which nothing is known": (None, [(0.3, None)]),
    "one busy moment": (None, [(0.9, 990), (0.3, 990), (0.3, 990)]),
    "one idle moment": (None, [(0.3, 10), (0.3, 990), (0.3, 990)]),
    "others on the server's core": (Limit.CONTENDED, [(0.3, 500, 0.0, 300)]),
    "others on the client's core": (Limit.CONTENDED, [(0.5, 500, 0.3, 0)]),
    "others on either core, for a while": (Limit.NOT_SATURATED, [(0.4, 500, 0.2, 100)]),
    "others on the core of a server of which nothing is known": (None, [(0.3, None), (0.3, None)]),
    "others, and busy all the same": (None, [(0.3, 710, 0.6, 290)]),
    "others for one moment": (None, [(0.3, 500, 0.0, 500), (0.3, 990), (0.3, 990)]),
    "nothing": (None, []),
}


@pytest.mark.parametrize("what", LIMITS)
def test_what_limited_a_cell_is_told_from_its_loads(what: str) -> None:
    """The median of its trials decides."""
    expected, given = LIMITS[what]
    assert expected == limit_of([trial_of_load(*one) for one in given])


def trial_of_load(
    client_busy: float, server_ns: int | None, client_run_queue_wait: float = 0.0, server_run_queue_wait_ns: int = 0
) -> Trial:
    """Return a trial of a microsecond with these CPU times and waits."""
    component = ComponentRecord(cpu_ns=server_ns or 0, run_queue_wait_ns=server_run_queue_wait_ns)
    load = LoadRecord(
        requests=10,
        wall_ns=1000,
        client_cpu_ns=round(1000 * client_busy),
        client_run_queue_wait_ns=round(1000 * client_run_queue_wait),
        components={} if server_ns is None else {"web": component},
    )
    return replace(builders.trial(1.0), load=load)
