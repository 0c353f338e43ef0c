"""Parity: what one operation of each choice does, counted, and why it does what others of its kind do not. Two minutes.

Of a libcrypto its functions are counted (`TOLLBAR_COUNT_CALLS`), of everything the system calls, by strace: of a
runner those between a line that it reads and its answer, of a server those of so many requests. `python -m bench
parity` writes docs/parity.md, where each thing that only some choices of a family do has its reason beside it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure
from tollbar import beds, plan, study, workloads
from tollbar.beds import proc
from tollbar.beds.sandbox import Sandbox
from tollbar.plan import Cell
from tollbar.runner import Session, Stopped
from tollbar.runner.records import CONTRACT
from tollbar.workloads.request import RequestWork

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "parity.md"
LIMIT_S = 60.0
# Operations that are counted of a runner, and requests of a server.
OPERATIONS, REQUESTS = 10, 200
# What a server does now and then, for itself, is no part of a request.
LEAST = 0.05
# A runner reads its clock between batches, and its heap grows now and then.
OWN = ("clock_gettime", "brk")

RUNNERS = """
question  = "What does each choice do?"
family    = "{family}"
providers = ["{provider}"]
choices   = ["*"]
vary      = {{ op = {ops} }}
"""
SERVED = """
question  = "What does each choice do?"
family    = "{family}"
providers = ["aws-lc"]
choices   = {choices}
beds      = ["embedded"]
load      = {{ users = [2], request = {{ get = "/bytes/{{bytes}}" }} }}
[vary]
op        = ["{op}"]
bytes     = ["4 KiB"]
{settings}
"""
SIGN_IN = """
accounts         = [1000]
transport        = ["clear"]
password-hash    = ["bcrypt"]
signature        = ["es256"]
digest-algorithm = ["sha-256"]
"""
# What is counted: a title, and the study whose cells are rows of its table.
PARTS = {
    "digest": RUNNERS.format(family="digest", provider="libcrypto", ops='["hash"]'),
    "mac": RUNNERS.format(family="mac", provider="libcrypto", ops='["authenticate"]'),
    "cipher": RUNNERS.format(family="cipher", provider="libcrypto", ops='["encrypt", "decrypt"]'),
    "signature": RUNNERS.format(family="signature", provider="libcrypto", ops='["sign", "verify"]'),
    "key-exchange": RUNNERS.format(family="key-exchange", provider="libcrypto", ops='["client", "server"]'),
    "password-hash": RUNNERS.format(family="password-hash", provider="rustcrypto", ops='["hash"]').replace(
        '["*"]', '["salted-sha-1", "pbkdf2-sha-256-600k", "bcrypt-10", "argon2id-owasp-19m"]'
    ),
    "rsa-api": RUNNERS.format(family="rsa-api", provider="libcrypto", ops='["sign"]'),
    "web-auth": SERVED.format(
        family="web-auth",
        choices='["anonymous", "basic", "digest", "form", "session-cookie", "jwt", "opaque-token", "hmac"]',
        op="request",
        settings=SIGN_IN,
    ),
}

ANY = "*"
# Why only some choices of a family do something, by the family and what it is.
REASONS: Mapping[tuple[str, str], str] = {
    ("cipher", "RAND_bytes"): "an IV of CBC must not be foreseen, and is drawn for each message",
    ("cipher", "EVP_CIPHER_CTX_ctrl"): "takes the tag, or sets the one that is checked",
    ("key-exchange", ANY): "Diffie-Hellman, RSA and a KEM have other steps, and each row has all that its side pays",
    ("cipher", "getpid"): "the library's random numbers see whether the process has forked since",
    ("signature", "getpid"): "the same, where a signature is made with random numbers",
    ("web-auth", "fcntl"): "what is looked up in SQL is locked for reading; forms and JWTs look nothing up",
    ("rsa-api", ANY): "how the key comes to the library is what the choices are",
}


@dataclass(frozen=True, slots=True)
class Row:
    """What one operation of a cell does."""

    cell: Cell
    calls: Mapping[str, float]
    """Into the library, by function."""
    system: Mapping[str, float]
    """System calls, by name."""

    @property
    def does(self) -> dict[str, float]:
        """All of it."""
        return {**self.calls, **self.system}


def figures() -> Iterator[Figure]:
    """Counts, writes the document, and says what in it has no reason."""
    if shutil.which("strace") is None:
        yield Figure("parity", "(not measured)", "strace is not installed", None)
        return
    parts = {name: [*rows(text)] for name, text in PARTS.items()}
    # Where nothing may be traced there are no rows, and the document stays.
    if all(parts.values()):
        DOCUMENT.write_text(document(parts), "utf-8")
    for name, found in parts.items():
        unexplained = [what for what in unlike(found) if reason(name, what) is None]
        yield Figure(
            f"parity: `{name}`, of {len(found)} rows what only some do, without a reason",
            "nothing",
            ", ".join(unexplained) or "nothing",
            bool(found) and not unexplained,
        )


def rows(text: str) -> Iterator[Row]:
    """The cells of a study that can be had here, counted."""
    (one,) = plan.make([study.read("parity", text, where="bench")], seed=1).studies
    for cell in one.cells:
        with suppress(Stopped, beds.NotStarted):
            yield of_server(cell) if cell.bed else of_runner(cell)


def of_runner(cell: Cell) -> Row:
    """Its library's functions, and the system calls between a line and its answer. Raises Stopped."""
    task = {"contract": CONTRACT, **cell.task("measure", 1), "lead": False}
    asked = json.dumps({"advance": {"seconds": 0, "operations": OPERATIONS}})
    # The first chunk may make something ready that the next ones have.
    lines = "\n".join([json.dumps(task), asked, asked]) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        words = ["strace", "-f", "-o", str(trace), "-e", "trace=all", *cell.provider.runner]
        environment = {**os.environ, "TOLLBAR_COUNT_CALLS": "1"}
        done = subprocess.run(words, input=lines, capture_output=True, text=True, env=environment, timeout=LIMIT_S)
        said = [json.loads(line) for line in done.stdout.splitlines()]
        if len(said) < 3 or "ready" not in said[0] or "operations" not in said[2]:
            from tollbar.runner import failed

            raise Stopped(failed(done.stdout[-200:]))
        counted = [Counter(json.loads(line[6:])) for line in done.stderr.splitlines() if line.startswith("calls:")]
        operations = said[2]["operations"]
        calls = {name: count / operations for name, count in (counted[1] - counted[0]).items()} if counted else {}
        return Row(cell, calls, per(_between(trace.read_text(errors="replace")), operations))


def _between(trace: str) -> Counter[str]:
    """The system calls of the last chunk: between the answer before it, or the line that asks for it, and its own."""
    answers: list[Counter[str]] = []
    calls: Counter[str] = Counter()
    for line in trace.splitlines():
        match = re.match(r"\d+ +(\w+)\((\w*)", line)
        if match is None:
            continue
        name, first = match.groups()
        if (name, first) == ("write", "1"):
            answers.append(calls)
            calls = Counter()
        elif (name, first) == ("read", "0"):
            calls = Counter()
        # What was counted is said on standard error, behind a chunk.
        elif (name, first) != ("write", "2"):
            calls[name] += 1
    # Ready, two chunks, and how the session went.
    return answers[2]


def of_server(cell: Cell) -> Row:
    """The system calls of a server for each of so many requests. Raises NotStarted or Stopped."""
    workload = workloads.of(cell)
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox())
        work = stack.enter_context(workload.up(cell, 1, sandbox, None))
        assert isinstance(work, RequestWork)
        session = stack.enter_context(Session(work.command, work.task))
        session.ready(LIMIT_S)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        trace = folder / "trace"
        # The root of a component is its guard; what it started was there before the trace.
        roots = work.server.components.values()
        pids = [f"--attach={pid}" for root in roots for pid in proc.tree(root)]
        watching = subprocess.Popen(["strace", "-f", "-c", "-o", str(trace), *pids], stderr=subprocess.DEVNULL)
        stack.callback(watching.wait, LIMIT_S)
        stack.callback(watching.send_signal, signal.SIGINT)
        time.sleep(0.5)
        chunk = session.advance(0.0, REQUESTS, LIMIT_S)
        watching.send_signal(signal.SIGINT)
        watching.wait(LIMIT_S)
        counts: Counter[str] = Counter()
        for line in trace.read_text().splitlines():
            fields = line.split()
            if len(fields) >= 5 and fields[0].replace(".", "").isdigit() and fields[-1] != "total":
                counts[fields[-1]] = int(fields[3])
        return Row(cell, {}, per(counts, chunk.operations))


def reason(family: str, what: str) -> str | None:
    """Why only some choices of a family do this; None where that is not known."""
    return REASONS.get((family, what), REASONS.get((family, ANY)))


def per(counts: Mapping[str, int], operations: int) -> dict[str, float]:
    """Of one operation, without what there is hardly of."""
    each = {name: count / operations for name, count in sorted(counts.items())}
    return {name: round(count, 1) for name, count in each.items() if count >= LEAST and name not in OWN}


def unlike(found: Sequence[Row]) -> list[str]:
    """What some cells of an operation do and others do not; null choices left out, which do nothing."""
    names: dict[str, None] = {}
    for op in dict.fromkeys(str(row.cell.coordinates["op"]) for row in found):
        alike = [set(row.does) for row in found if row.cell.coordinates["op"] == op and row.cell.choice.name != "none"]
        if alike:
            names.update(dict.fromkeys(sorted(set.union(*alike) - set.intersection(*alike))))
    return list(names)


def document(parts: Mapping[str, Sequence[Row]]) -> str:
    """The tables, and the reasons under each."""
    text = [
        "# Parity: what one operation of each choice does",
        "",
        "Counted and not read off the code: functions of the libcrypto that is bound, and system calls. Choices are",
        "compared fairly where they do the same but for what they are; what only some of a family do has its reason",
        "under the table, whatever the number. A choice without a row is not offered by what was counted; TLS, storage",
        "and other servers are not counted yet. `python -m bench parity` writes this file.",
        "",
    ]
    for name, found in parts.items():
        text += [f"## {name}", "", "| choice | operation | library | system calls |", "| --- | --- | --- | --- |"]
        for row in found:
            what = f"`{row.cell.choice.name}` | `{row.cell.coordinates['op']}`"
            text.append(f"| {what} | {_listed(row.calls)} | {_listed(row.system)} |")
        reasons: dict[str, list[str]] = {}
        for what in unlike(found):
            reasons.setdefault(reason(name, what) or "no reason is known", []).append(f"`{what}`")
        text += ["", *(f"- {', '.join(whats)}: {why}." for why, whats in reasons.items()), *([""] if reasons else [])]
    return "\n".join(text).rstrip() + "\n"


def _listed(counts: Mapping[str, float]) -> str:
    said = (f"{name} × {count:g}" if count != 1 else name for name, count in counts.items())
    return ", ".join(said) or "–"
