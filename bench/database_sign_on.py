"""Signing in to PostgreSQL by SCRAM: what Tollbar says that the server pays, beside an account by hand (`pgbench -C`).
Half a minute.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from bench.figures import Figure
from bench.work import SCRAM, core, running

GOAL = 0.03
# The two in turn, so that a moment of the machine is both's.
TURNS, CHUNKS, PGBENCH_S = 5, 4, 3
USER, DATABASE, STATEMENT = "tollbar-client", "postgres", "select 1;\n"
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# In /proc/PID/stat, behind the name: user and system time, its own and of the children that it waited for.
TIMES = slice(11, 15)


def figures() -> Iterator[Figure]:
    """The server's CPU time of a sign-on, found in both ways."""
    if shutil.which("pgbench") is None:
        yield Figure("sign-on by SCRAM, the server's part by hand", "", "no pgbench: apt-get install postgresql", None)
        return
    here_ns, by_hand_ns = _both()
    apart = here_ns / by_hand_ns - 1
    yield Figure(
        "sign-on by SCRAM, the server's part by hand (/proc, pgbench -C)", "", f"{by_hand_ns / 1e3:.0f} µs", None
    )
    yield Figure(
        "sign-on by SCRAM, the server's part as Tollbar accounts for it",
        f"within {GOAL:.0%} of by hand",
        f"{here_ns / 1e3:.0f} µs ({apart:+.1%})",
        abs(apart) <= GOAL,
    )


def _both() -> tuple[float, float]:
    with ExitStack() as stack:
        work = running(stack, SCRAM, seed=7)
        server = work.work.components["database"]
        folder, port = (work.work.task["store"]["server"][name] for name in ("socket", "port"))
        scripts = Path(stack.enter_context(TemporaryDirectory()))
        (scripts / "statement.sql").write_text(STATEMENT)
        # The engine's own password is told to nobody: where both sign on in turn, each has a role of its own kind.
        password, verifier = secrets.token_hex(16), _verifier(folder, port)
        here, by_hand = [], []
        for _ in range(TURNS):
            chunks = [work.chunk(0.0) for _ in range(CHUNKS)]
            here += [work.spent_ns(chunk) / chunk.operations for chunk in chunks]
            _tell(folder, port, f"alter role \"{USER}\" password '{password}'")
            before_ns = _spent_ns(server)
            count = _transactions(folder, port, password, scripts / "statement.sql")
            by_hand.append((_spent_ns(server) - before_ns) / count)
            _tell(folder, port, f"alter role \"{USER}\" password '{verifier}'")
        return fmean(here), fmean(by_hand)


def _transactions(folder: str, port: int, password: str, script: Path) -> int:
    """How many connections pgbench made, one for each transaction, on the core of the server."""
    command = ["pgbench", "-n", "-C", "-c", "1", "-T", str(PGBENCH_S), "-f", str(script), *_reached(folder, port, USER)]
    done = subprocess.run(
        [*_on_core(), *command], env=os.environ | {"PGPASSWORD": password}, capture_output=True, text=True, check=True
    )
    (line,) = (line for line in done.stdout.splitlines() if "transactions actually processed" in line)
    return int(line.split(":")[1].split("/")[0])


def _on_core() -> Sequence[str]:
    measuring = core()
    return () if measuring is None else ("taskset", "-c", str(measuring))


def _reached(folder: str, port: int, user: str) -> Sequence[str]:
    return "-h", folder, "-p", str(port), "-U", user, DATABASE


def _tell(folder: str, port: int, sql: str) -> str:
    done = subprocess.run(
        ["psql", "-XAtq", "-f", "-", *_reached(folder, port, "tollbar")],
        input=sql,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def _verifier(folder: str, port: int) -> str:
    """What the server has stored of the engine's password."""
    return _tell(folder, port, f"select rolpassword from pg_authid where rolname = '{USER}'")


def _spent_ns(server: int) -> int:
    """By hand: CPU time of the server's first process and of all that it waited for."""
    times = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[TIMES]
    return sum(map(int, times)) * TICK_NS
