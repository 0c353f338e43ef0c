"""True: the engine and `openssl speed`, in turn, on the same library and core."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from statistics import median

import numpy as np

from bench.figures import ENGINE, Figure
from tollbar.runner import Session
from tollbar.stats import Visit, undisturbed

PAIRS = 10
# `openssl speed` counts user time in ticks of 10 ms: below two seconds a tick alone is half a per cent.
SECONDS = 2
GOAL = 0.02
BEST_OF = 20
CHUNK_S = 0.005
LIMIT_S = 60.0


def figures() -> Iterator[Figure]:
    """SHA-256 of 4 KiB, and RSA-2048 and ECDSA P-256 signing and verifying: the typical cost in turn with theirs, the
    undisturbed one beside the best of many short runs of theirs."""
    ratios: dict[str, list[float]] = {}
    for _ in range(PAIRS):
        for what, (here_ns, _), there_ns in _pair(SECONDS):
            ratios.setdefault(what, []).append(here_ns / there_ns)
    for what, found in ratios.items():
        off = median(found) - 1
        yield Figure(
            f"true: {what}, typical cost over openssl speed", f"within {GOAL:.0%}", f"{off:+.1%}", abs(off) <= GOAL
        )
    here: dict[str, list[float]] = {}
    best: dict[str, float] = {}
    for _ in range(BEST_OF):
        for what, (_, chunks_ns), there_ns in _pair(1):
            here.setdefault(what, []).extend(chunks_ns)
            best[what] = min(there_ns, best.get(what, there_ns))
    for what, chunks_ns in here.items():
        size = len(chunks_ns) // BEST_OF
        visits = [
            Visit(number, 0, np.arange(size), np.log(chunks_ns[number * size : (number + 1) * size]))
            for number in range(BEST_OF)
        ]
        off = undisturbed(visits).estimate / best[what] - 1
        yield Figure(
            f"true: {what}, undisturbed cost over the best of {BEST_OF} runs of openssl speed",
            f"within {GOAL:.0%}",
            f"{off:+.1%}",
            abs(off) <= GOAL,
        )


Ours = tuple[float, list[float]]
"""CPU nanoseconds per operation: over all chunks, and of each."""


def _pair(seconds: int) -> Iterator[tuple[str, Ours, float]]:
    rsa, ecdsa = _speed("rsa2048", seconds=seconds), _speed("ecdsap256", seconds=seconds)
    raw = {"digest": "none"}
    yield (
        "SHA-256 4 KiB",
        _engine("digest", "hash", "sha-256", {"bytes": 4096}, seconds),
        4096e9 / _speed("-bytes", "4096", "-evp", "sha256", seconds=seconds)[0],
    )
    # The lengths that `openssl speed` signs: 36 bytes with RSA, 20 with ECDSA, as they are.
    for choice, name, size, theirs in (("rsa-2048", "RSA-2048", 36, rsa), ("ecdsa-p256", "ECDSA P-256", 20, ecdsa)):
        for op, rate in (("sign", theirs[1]), ("verify", theirs[0])):
            yield f"{name} {op}", _engine("signature", op, choice, {"bytes": size, **raw}, seconds), 1e9 / rate


def _engine(family: str, op: str, choice: str, setting: dict[str, object], seconds: int) -> Ours:
    key = files("tollbar.families") / "keys" / "rsa-2048.pem"
    task = {
        "mode": "measure",
        "family": family,
        "op": op,
        "choice": choice,
        "provider": {"kind": "libcrypto"},
        "setting": setting,
        "inputs": {"private_key_pem": key.read_text()},
        "seed": 1,
    }
    with Session((ENGINE, "op"), task, core=_core()) as session:
        session.ready(LIMIT_S)
        chunks = [session.advance(CHUNK_S, 1, LIMIT_S) for _ in range(round(seconds / CHUNK_S))]
    whole = sum(chunk.cpu_ns for chunk in chunks) / sum(chunk.operations for chunk in chunks)
    return whole, [chunk.cpu_ns / chunk.operations for chunk in chunks]


def _speed(*arguments: str, seconds: int = 2) -> tuple[float, ...]:
    """The rates that `openssl speed` prints: bytes a second for a digest; for a signature (verify, sign) a second."""
    printed = _pinned("openssl", "speed", "-mr", "-seconds", str(seconds), *arguments)
    line = next(line for line in printed.splitlines() if line.startswith("+F"))
    fields = line.split(":")
    if line.startswith("+F:"):
        return (float(fields[3]),)
    # OpenSSL 3.0 prints signatures and verifications a second; earlier versions the seconds of one.
    sign, verify = float(fields[3]), float(fields[4])
    return (verify, sign) if sign > 1 else (1 / verify, 1 / sign)


def _core() -> int:
    return max(os.sched_getaffinity(0))


def _pinned(*command: str) -> str:
    guarded = [ENGINE, "guard", "--core", str(_core()), "--", *command]
    return subprocess.run(guarded, capture_output=True, text=True, check=True).stdout
