"""Signing in to PostgreSQL by SCRAM: the server's cost by Tollbar and by hand (`pgbench -C`). Half a minute."""

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

from bench.figures import Figure, unmeasured
from bench.work import SCRAM, core, running

GOAL = 0.03
# Taken in turn, so that both have the same moments.
TURNS, CHUNKS, PGBENCH_S = 5, 4, 3
# The account by hand has the resolution of clock ticks.
CHUNK_S = 0.25
USER, DATABASE, STATEMENT = "tollbar-client", "postgres", "select 1;\n"
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# In /proc/PID/stat, after the name: user and system time, its own and that of waited-for children.
TIMES = slice(11, 15)


def figures() -> Iterator[Figure]:
    """Yield the server's CPU time of a sign-on, found in both ways."""
    if shutil.which("pgbench") is None:
        yield unmeasured("sign-on by SCRAM, the server's part by hand", "no pgbench: apt-get install postgresql")
        return
    here_ns, same_ns, pgbench_ns = _accounts()
    what = "sign-on by SCRAM, the server's part"
    yield Figure(f"{what}, by hand (/proc, the same sign-ons)", "", f"{same_ns / 1e3:.0f} µs", None)
    # Another client makes the next connection while the server's last process is still ending.
    yield Figure(f"{what}, by hand (/proc, pgbench -C)", "", f"{pgbench_ns / 1e3:.0f} µs", None)
    for by_hand_ns, of in ((same_ns, "by hand"), (pgbench_ns, "by hand under pgbench -C")):
        apart = here_ns / by_hand_ns - 1
        here = f"{here_ns / 1e3:.0f} µs ({apart:+.1%})"
        yield Figure(f"{what}, beside that {of}", f"within {GOAL:.0%}", here, abs(apart) <= GOAL)


def _accounts() -> tuple[float, float, float]:
    """Return the cost of a sign-on: by the engine's account, by hand, and by hand for pgbench's sign-ons."""
    with ExitStack() as stack:
        # An account by hand cannot separate a chunk from its lead-in.
        work = running(stack, SCRAM, seed=7, lead=False)
        folder, port = (work.work.task["store"]["server"][name] for name in ("socket", "port"))
        server = int(Path(folder, "data", "postmaster.pid").read_text().split()[0])
        scripts = Path(stack.enter_context(TemporaryDirectory()))
        (scripts / "statement.sql").write_text(STATEMENT)
        # pgbench must not get the engine's password: while it signs on, the role has another.
        password, verifier = secrets.token_hex(16), _verifier(folder, port)
        here, same, pgbench = [], [], []
        for _ in range(TURNS):
            before_ns = _spent_ns(server)
            chunks = [work.chunk(CHUNK_S) for _ in range(CHUNKS)]
            count = sum(chunk.operations for chunk in chunks)
            same.append((_spent_ns(server) - before_ns) / count)
            here.append(sum(work.spent_ns(chunk) for chunk in chunks) / count)
            _tell(folder, port, f"alter role \"{USER}\" password '{password}'")
            before_ns = _spent_ns(server)
            count = _transactions(folder, port, password, scripts / "statement.sql")
            pgbench.append((_spent_ns(server) - before_ns) / count)
            _tell(folder, port, f"alter role \"{USER}\" password '{verifier}'")
        return fmean(here), fmean(same), fmean(pgbench)


def _transactions(folder: str, port: int, password: str, script: Path) -> int:
    """Return pgbench's number of connections, one for each transaction, made on the server's core."""
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
    """Return the server's stored verifier of the engine's password."""
    return _tell(folder, port, f"select rolpassword from pg_authid where rolname = '{USER}'")


def _spent_ns(server: int) -> int:
    """Return the CPU time of the server's first process and of all processes it waited for."""
    times = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[TIMES]
    return sum(map(int, times)) * TICK_NS
