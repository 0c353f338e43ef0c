"""Servers of the user: one compared with another, and the parameters that each negotiated with the load client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tollbar.analysis import StudyJudgement, Toll, Verdict
from tollbar.core.words import counted, enumeration
from tollbar.report.blocks import Listing
from tollbar.report.costs import cost_words
from tollbar.report.groups import real_tolls
from tollbar.report.numbers import ratio_range
from tollbar.report.sections.negotiated import Agreed, agreements
from tollbar.results import Row

NEGOTIATED = "Negotiated parameters"
OFFERED_NONE = (
    "The load client offered no session, so each connection had a full handshake. With `--resumption ticket` it"
    " offers its last session."
)
_FOUND: Mapping[Verdict, str] = {
    Verdict.COSTS: "costs more",
    Verdict.SAVES: "costs less",
    Verdict.FREE: "no meaningful difference",
    Verdict.UNCLEAR: "cannot tell",
}


def compared(study: StudyJudgement) -> tuple[str, ...]:
    """Return a sentence for each server that is compared with another one; empty with one server.

    Each server is compared in the highest TLS version that it offers, as its clients use it.
    """
    urls = [remote.name for remote in study.about.remotes]
    if len(urls) < 2 or "server" not in study.about.baseline:
        return ()
    first = str(study.about.baseline["server"])
    return tuple(_compared(study, url, first) for url in urls if url != first)


def _compared(study: StudyJudgement, url: str, first: str) -> str:
    tolls = _as_offered(
        [t for t in real_tolls(study) if t.row.coordinates.get("server") == url and t.ratio is not None]
    )
    if not tolls:
        reason = next((row.reason for row in study.rows if row.reason), None)
        return f"{url} could not be compared with {first}{f': {reason}' if reason else ''}.".replace("..", ".")
    by_place: dict[tuple[str, str], list[Toll]] = {}
    for toll in tolls:
        place = str(toll.row.coordinates["op"]), _FOUND.get(toll.verdict, "undecided")
        by_place.setdefault(place, []).append(toll)
    several = len({toll.row.coordinates.get("users") for toll in tolls}) > 1
    said = [
        f"`{op}` {ratio_range([t.ratio for t in some if t.ratio])} ({found}{_users(some) if several else ''})"
        for (op, found), some in by_place.items()
    ]
    choices = study.about.family.choices
    versions, over = (
        " and ".join(dict.fromkeys(choices[row.choice].title for row in rows))
        for rows in ([toll.row for toll in tolls], [toll.against for toll in tolls])
    )
    return f"{url} ({versions}) against {first} ({over}), by {cost_words(study).in_sentence}: {enumeration(said)}."


def _users(tolls: Sequence[Toll]) -> str:
    """Return `, 1 and 8 users`: the loads of these tolls."""
    users = list(dict.fromkeys(int(toll.row.coordinates["users"]) for toll in tolls if "users" in toll.row.coordinates))
    return f", {enumeration([f'{one:,}' for one in users])} {'user' if users == [1] else 'users'}" if users else ""


def _as_offered(tolls: Sequence[Toll]) -> list[Toll]:
    """Return the tolls of the highest version: `tls-1.3` before `tls-1.2`."""
    best = max((toll.row.choice for toll in tolls), default="")
    return [toll for toll in tolls if toll.row.choice == best]


def negotiated_listing(study: StudyJudgement) -> Listing | None:
    """Return the parameters that each server agreed on: version, group, suite, certificate, and resumed connections."""
    said = [*_negotiated(study)]
    if not said:
        return None
    offers = "resumption" in study.about.vary
    return Listing(NEGOTIATED, said, notes=() if offers else (OFFERED_NONE,))


def _negotiated(study: StudyJudgement) -> Iterator[str]:
    for remote in study.about.remotes:
        rows = [row for row in study.rows if row.coordinates.get("server") == remote.name]
        # A kept connection has one handshake, before the load.
        new = [row for row in rows if row.coordinates.get("op") == "connect"] or rows
        for version in dict.fromkeys(one.version for one in agreements(new) if one.version):
            yield _agreed(remote.name, new, version)


def _agreed(url: str, rows: Sequence[Row], version: str) -> str:
    found = [one for one in agreements(rows) if one.version == version]
    kinds = dict.fromkeys(_kind(one) for one in found)
    full, resumed = sum(one.full for one in found), sum(one.resumed for one in found)
    many = f"{resumed:,} of {counted(full + resumed, 'connection')} resumed a session"
    return f"{url}: {' or '.join(kinds)}; {many}."


def _kind(one: Agreed) -> str:
    """Return `TLS 1.3, x25519, TLS_AES_256_GCM_SHA384, certificate ECDSA P-256`."""
    certificate = f"certificate {one.key}" if one.key else ""
    return ", ".join(filter(None, (one.version, one.group, one.suite, certificate)))
