"""Client core: the cost of a client on the server's core in the server's caches, by a busy server. A minute.

With many users the server always has a next request, so it hardly sleeps. The remaining difference between a client on
the server's core and one on another core is their effect on each other's caches.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Figure, unmeasured
from bench.studies import HANDSHAKES, Document, Unmeasured, half_width, measured, toll

LOAD = """
[load]
users   = [32]
client  = ["beside", "apart"]
request = { get = "/bytes/{bytes}" }
expect  = { status = 200, bytes = "{bytes}" }
"""
SERVERS = ("nginx", "embedded")
CERTIFICATES = ("rsa-2048", "ecdsa-p256")
# A ratio of two choices must not depend on the client's core.
RATIOS_GOAL = 0.03


def figures() -> Iterator[Figure]:
    """Yield for each server every cost and ratio, with the client on the server's core over one on its own."""
    for server in SERVERS:
        try:
            text = HANDSHAKES.format(servers=f'["{server}"]', served=LOAD, measure="blocks = 12")
            yield from _of(server, measured(text, name="client-core"))
        except Unmeasured as why:
            yield unmeasured(f"client core: {server}", why)


def _of(server: str, study: Document) -> Iterator[Figure]:
    for name in ("plaintext", *CERTIFICATES):
        shared_us, own_us = (_cost_ns(study, name, client) / 1e3 for client in ("beside", "apart"))
        yield Figure(
            f"client core: server CPU a connection, {name} on {server}, on the server's core over on its own",
            "(for comparison)",
            f"{shared_us / own_us - 1:+.1%} ({shared_us:.1f} / {own_us:.1f} µs)",
            None,
        )
    for name in CERTIFICATES:
        shared, own = (toll(study, "tls-1.3", certificate=name, client=client) for client in ("beside", "apart"))
        change = shared["ratio"] / own["ratio"] - 1
        sure = half_width(shared["low"], shared["high"]) + half_width(own["low"], own["high"])
        yield Figure(
            f"client core: the ratio of {name} to plaintext on {server}, on the server's core over on its own",
            f"within {RATIOS_GOAL:.0%}, and both known to that",
            f"{change:+.1%} ± {sure:.1%} ({shared['ratio']:.2f} / {own['ratio']:.2f})",
            sure <= RATIOS_GOAL and abs(change) <= RATIOS_GOAL + sure,
        )


def _cost_ns(study: Document, name: str, client: str) -> float:
    """Return the server's quiet CPU nanoseconds for a connection.

    Raises Unmeasured.
    """
    found = [
        one["value"]
        for one in study["results"]
        if one["metric"] == "server-cpu"
        and one["component"] is None
        and name in (one["choice"], one["setting"].get("certificate"))
        and one["setting"].get("client") == client
    ]
    if len(found) != 1 or found[0] is None:
        raise Unmeasured(f"{len(found)} costs of {name} with the client {client}")
    return float(found[0])
