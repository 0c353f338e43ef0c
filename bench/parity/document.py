"""docs/generated/parity.md: written from the counts, and read again, so that tests compare it with the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.parity import reasons
from bench.parity.counting import Absent, Row
from bench.parity.parts import UNCOUNTED

HEAD = """# Parity: the calls of one operation of each choice

`python -m bench parity` counts these calls and writes this file; nothing is read off the code. Choices are compared
fairly if they differ only in the work that defines them. For example, an AEAD cipher may make more calls than CBC, and
the reason is below the table.

- **Library**: functions of the bound libcrypto. For code linked into the engine and its server, the calls that it
  tallies itself (SQL statements, hashes, seals and signatures of sign-in); a dash means that nothing is tallied. For a
  database, the statements of its client.
- **System calls**: for a runner, those between a line that it reads and its answer. For a server, those of all
  processes of each component during a number of requests (`strace -f`). The name of a component behind it comes first.
- **Waits** (`epoll_wait`, `epoll_pwait`, `poll`, `ppoll`, `select`) and **receives** (`recvfrom`, `recvmsg`, `read`,
  `readv`) of servers come from the kernel's tracepoints in a chunk of their own, because strace changes the order of
  turns.
- **Sent** and **received** are bytes between a server and its client, or a database's client and its server.

Within a family, operation, library or server and kind, a call that a choice makes more often than another needs a
reason below the table. The limit is half a call an operation. For `waits` and `receives` with one user it is 0.05, and
for a `request` it applies across kinds, in clear and under TLS. Left out: operations that are two others in turn
(`round-trip`, `insert-and-read`), and those of a library or file alone (`generate-key`, `open`). A family behind the
embedded server (the set `services`) does there the same as in a runner.
"""
VARIES = "Not compared, because the counts vary by themselves:"
COUNTED = ("choice", "settings", "operation", "by", "library", "system calls", "sent", "received")
NOT_COUNTED = ("not counted", "settings", "operations", "by", "why")
NOTHING = "–"
TIMES = " × "


@dataclass(frozen=True, slots=True)
class Part:
    """Counts of a family."""

    rows: Sequence[Row]
    absent: Sequence[Absent]


def written(parts: Mapping[str, Part]) -> str:
    """Return the tables, with the reasons under each."""
    text = [HEAD, VARIES, "", *(f"- {_varying(one)}: {one.why}." for one in reasons.VARYING), ""]
    text += ["Not counted:", "", *(f"- `{family}`: {why}." for family, why in UNCOUNTED.items()), ""]
    for family, part in parts.items():
        text += [f"## {family}", "", *_table(COUNTED, (_cells_of(row) for row in part.rows)), ""]
        kinds = [f"- {kind.name} (`{kind.choices}`): {kind.does}." for kind in reasons.KINDS.get(family, ())]
        text += ["Compared kind by kind:", "", *kinds, ""] if kinds else []
        explained = [*_explained(family, part.rows)]
        text += ["Calls that some choices make more often:", "", *explained, ""] if explained else []
        text += [*_table(NOT_COUNTED, _absent(part.absent)), ""] if part.absent else []
    return "\n".join(text).rstrip() + "\n"


def read(text: str) -> dict[str, Part]:
    """Return the tables, read from the text."""
    parts = {}
    for section in text.split("\n## ")[1:]:
        family, _, rest = section.partition("\n")
        lines = [line[2:-2].split(" | ") for line in rest.splitlines() if line.startswith("| `")]
        rows = [_row(*cells) for cells in lines if len(cells) == len(COUNTED)]
        absent = [
            Absent(_bare(choice), _bare(settings), _bare(operation), _bare(by), why)
            for choice, settings, operations, by, why in (cells for cells in lines if len(cells) == len(NOT_COUNTED))
            for operation in operations.split(", ")
        ]
        parts[family] = Part(rows, absent)
    return parts


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _cells_of(row: Row) -> Sequence[str]:
    named = [_quoted(text) for text in (row.choice, row.settings, row.operation, row.by)]
    moved = [NOTHING if count is None else f"{count:g}" for count in (row.sent, row.received)]
    return [*named, _listed(row.calls), _listed(row.system), *moved]


def _row(choice: str, settings: str, operation: str, by: str, calls: str, system: str, *moved: str) -> Row:
    sent, received = (None if count == NOTHING else float(count) for count in moved)
    choice, settings, operation, by = (_bare(text) for text in (choice, settings, operation, by))
    return Row(choice, settings, operation, by, _unlisted(calls), _unlisted(system), sent, received)


def _absent(absent: Sequence[Absent]) -> Iterator[Sequence[str]]:
    operations: dict[tuple[str, str, str, str], list[str]] = {}
    for one in absent:
        operations.setdefault((one.choice, one.settings, one.by, one.reason), []).append(one.operation)
    for (choice, settings, by, why), several in operations.items():
        yield [_quoted(choice), _quoted(settings), ", ".join(map(_quoted, several)), _quoted(by), why]


def _explained(family: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each reason: the explained counts, and their choices."""
    found: dict[reasons.Reason | None, tuple[dict[str, None], dict[str, None]]] = {}
    for difference in reasons.differences(family, rows):
        whats, choices = found.setdefault(reasons.reason(family, difference), ({}, {}))
        whats[difference.what] = None
        choices[difference.row.choice] = None
    for reason, (whats, choices) in found.items():
        why = reason.why if reason else "no reason is known"
        yield f"- {', '.join(map(_quoted, whats))} of {', '.join(map(_quoted, choices))}: {why}."


def _varying(one: reasons.Reason) -> str:
    named = ", ".join(_quoted(pattern.replace(":_", ": ")) for pattern in one.what.split())
    whose = "" if one.choices == "*" else " " + ", ".join(_quoted(pattern) for pattern in one.choices.split())
    return named if one.family == "*" else f"{named} of `{one.family}`{whose}"


def _listed(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{name}{TIMES}{count:g}" if count != 1 else name for name, count in counts.items()) or NOTHING


def _unlisted(text: str) -> dict[str, float]:
    counts = (one.partition(TIMES) for one in text.split(", ") if one != NOTHING)
    return {name: float(count or 1) for name, _, count in counts}


def _quoted(text: str) -> str:
    return f"`{text}`" if text else NOTHING


def _bare(text: str) -> str:
    return "" if text == NOTHING else text.strip("`")
