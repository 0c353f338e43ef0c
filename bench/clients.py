"""Load clients on one core, ours and others', and the CPU time of their processes for a request."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench.figures import ENGINE, ends_within
from tollbar.core import machine
from tollbar.core.records import CONTRACT

# No round takes a tenth of it; a client that does hangs.
LIMIT_S = 60.0
LEAST_ROUNDS, MOST_ROUNDS = 5, 7
# The middle half of the rounds' ratios, over their median.
STILL = 0.05
PACKAGES = {"wrk": "wrk", "h2load": "nghttp2-client", "ab": "apache2-utils", "openssl": "openssl"}

Contender = Callable[[], float]
"""Function that measures once: microseconds of CPU for one request."""


class Spoilt(Exception):
    """Error of a client that is not installed, or did not do all requests."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Microseconds of CPU for one request that a contender used in each round, or the reason for none."""

    us: tuple[float, ...]
    fault: str | None

    @property
    def median_us(self) -> float:
        """Return the median over all rounds."""
        return median(self.us)


def client_core() -> int:
    """Return the core of every load client here: not the server's, if there are two."""
    cores = sorted(os.sched_getaffinity(0))
    return next((core for core in reversed(cores) if core != machine.measuring_core()), cores[0])


def in_turn(contenders: Mapping[str, Contender]) -> dict[str, Measured]:
    """Measure each once a round, in another order each time, until the ratios of the first to the others are stable."""
    found: dict[str, list[float]] = {name: [] for name in contenders}
    faults: dict[str, str] = {}
    for turn in range(MOST_ROUNDS):
        names = [name for name in contenders if name not in faults]
        start = turn % len(names) if names else 0
        for name in names[start:] + names[:start]:
            try:
                found[name].append(contenders[name]())
            except Spoilt as spoilt:
                faults[name] = str(spoilt)
        if turn + 1 >= LEAST_ROUNDS and _is_still(found, faults):
            break
    return {name: Measured(tuple(us), faults.get(name)) for name, us in found.items()}


def ratio(one: Measured, other: Measured) -> float:
    """Return the median of the ratios within each round."""
    return median(a / b for a, b in zip(one.us, other.us, strict=True))


def _is_still(found: Mapping[str, list[float]], faults: Mapping[str, str]) -> bool:
    first, *others = [us for name, us in found.items() if name not in faults] or [[]]
    for other in others:
        low, middle, high = quantiles([a / b for a, b in zip(first, other, strict=True)], n=4)
        if high - low > STILL * middle:
            return False
    return True


def ours(load: Mapping[str, Any], requests: int) -> float:
    """Return the cost of `tollbar-engine load` with this load, in one chunk.

    Its start, its libraries and its warm-up are included, as for the others.
    """
    task = {"contract": CONTRACT, "mode": "measure", "seed": 1, "load": load}
    lines = (task, {"advance": {"seconds": 0.001, "operations": requests}})
    said, cpu_us = _run(ENGINE, "load", stdin="".join(json.dumps(line) + "\n" for line in lines))
    records: list[dict[str, Any]] = [*map(json.loads, said.splitlines()), {}, {}, {}]
    _, chunk, last, *_ = records
    if last.get("outcome") != "ok":
        raise Spoilt(str((last or chunk).get("reason", said)))
    return float(cpu_us / chunk["operations"])


def wrk(url: str, users: int, seconds: int) -> float:
    """Return the cost of wrk, whose requests are limited by time."""
    said, cpu_us = _run("wrk", "-t1", f"-c{users}", f"-d{seconds}s", url)
    if "Socket errors" in said or "Non-2xx" in said:
        raise Spoilt(f"wrk had errors: {said.strip()}")
    return cpu_us / _number(r"(\d+) requests in", said)


def h2load(url: str, users: int, requests: int) -> float:
    """Return the cost of h2load as a client of HTTP/1.1."""
    said, cpu_us = _run("h2load", "--h1", "-t1", f"-c{users}", f"-n{requests}", url)
    return cpu_us / _all(requests, r"(\d+) succeeded", said)


def ab(url: str, users: int, requests: int, *options: str) -> float:
    """Return the cost of ab; without `-k` it makes a connection for each request."""
    said, cpu_us = _run("ab", "-q", "-d", "-S", *options, f"-c{users}", f"-n{requests}", url)
    if _number(r"Failed requests: +(\d+)", said) or "Non-2xx" in said:
        raise Spoilt(f"ab had errors: {said.strip()}")
    return cpu_us / _all(requests, r"Complete requests: +(\d+)", said)


def s_time(address: str, path: str, seconds: int, *options: str) -> float:
    """Return the cost of `openssl s_time`: one connection after the other."""
    command = ("openssl", "s_time", "-connect", address, "-www", path, "-new", "-time", str(seconds))
    said, cpu_us = _run(*command, *options)
    return cpu_us / _number(r"(\d+) connections in \d+ real seconds", said)


def missing(*programs: str) -> str | None:
    """Return which of these programs are missing, with a hint, or None."""
    absent = [name for name in programs if shutil.which(name) is None]
    if not absent:
        return None
    packages = " ".join(PACKAGES[name] for name in absent)
    return f"no {', '.join(absent)} here; to install them: apt-get install {packages}"


def _run(*command: str, stdin: str = "") -> tuple[str, float]:
    """Return a client's output, and the CPU microseconds, user and system, of its whole life."""
    if command[0] != ENGINE and (why := missing(command[0])):
        raise Spoilt(why)
    # The guard becomes the client, so that its end and its usage are the client's own.
    guarded = [ENGINE, "guard", "--core", str(client_core()), "--", *command]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as given:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(guarded, stdin=given, stdout=out, stderr=subprocess.STDOUT)
        try:
            ended = ends_within(process.pid, LIMIT_S)
        except BaseException:
            process.kill()
            raise
        if not ended:
            process.kill()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read()
    if not ended:
        raise Spoilt(f"{Path(command[0]).name} did not end within {LIMIT_S:.0f} s")
    if process.returncode != 0:
        last = said.strip().splitlines()[-1:]
        raise Spoilt(": ".join([f"{Path(command[0]).name} ended with status {process.returncode}", *last]))
    return said, (usage.ru_utime + usage.ru_stime) * 1e6


def _all(requests: int, pattern: str, said: str) -> float:
    """Return the number of requests, after checking that all were answered.

    An unanswered one cost CPU time too.
    """
    answered = _number(pattern, said)
    if answered != requests:
        raise Spoilt(f"{answered:.0f} of {requests} requests were answered")
    return answered


def _number(pattern: str, said: str) -> float:
    match = re.search(pattern, said)
    if match is None:
        raise Spoilt(f"nothing like `{pattern}` in what was said: {said.strip()}")
    return float(match.group(1))
