"""True: the engine and `openssl speed`, in turn, on the same library and core."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from statistics import median

from bench.figures import ENGINE, Figure

PAIRS = 10
# `openssl speed` counts user time in ticks of 10 ms: below two seconds a tick alone is half a per cent.
SECONDS = 2
GOAL = 0.03


def figures() -> Iterator[Figure]:
    """SHA-256 of 4 KiB, and RSA-2048 and ECDSA P-256 signing and verifying."""
    ratios: dict[str, list[float]] = {}
    for _ in range(PAIRS):
        for what, here_ns, there_ns in _pair():
            ratios.setdefault(what, []).append(here_ns / there_ns)
    for what, found in ratios.items():
        off = median(found) - 1
        yield Figure(f"true: {what}, engine over openssl speed", f"within {GOAL:.0%}", f"{off:+.1%}", abs(off) <= GOAL)


def _pair() -> Iterator[tuple[str, float, float]]:
    rsa, ecdsa = _speed("rsa2048"), _speed("ecdsap256")
    raw = {"digest": "none"}
    yield (
        "SHA-256 4 KiB",
        _engine("digest", "hash", "sha-256", {"bytes": 4096}),
        4096e9 / _speed("-bytes", "4096", "-evp", "sha256")[0],
    )
    # The lengths that `openssl speed` signs: 36 bytes with RSA, 20 with ECDSA, as they are.
    yield "RSA-2048 sign", _engine("signature", "sign", "rsa-2048", {"bytes": 36, **raw}), 1e9 / rsa[1]
    yield "RSA-2048 verify", _engine("signature", "verify", "rsa-2048", {"bytes": 36, **raw}), 1e9 / rsa[0]
    yield "ECDSA P-256 sign", _engine("signature", "sign", "ecdsa-p256", {"bytes": 20, **raw}), 1e9 / ecdsa[1]
    yield (
        "ECDSA P-256 verify",
        _engine("signature", "verify", "ecdsa-p256", {"bytes": 20, **raw}),
        1e9 / ecdsa[0],
    )


def _engine(family: str, op: str, choice: str, setting: dict[str, object]) -> float:
    """CPU nanoseconds per operation."""
    key = files("tollbar.catalogue") / "keys" / "rsa-2048.pem"
    task = {
        "mode": "measure",
        "family": family,
        "op": op,
        "choice": choice,
        "provider": {"kind": "libcrypto"},
        "setting": setting,
        "inputs": {"private_key_pem": key.read_text()},
        "warm_up_s": 0.05,
        "duration_s": SECONDS,
        "seed": 1,
    }
    record = json.loads(_pinned(ENGINE, "op", text=json.dumps(task)))
    return float(record["cpu_ns"] / record["operations"])


def _speed(*arguments: str) -> tuple[float, ...]:
    """The rates that `openssl speed` prints: bytes a second for a digest; for a signature (verify, sign) a second."""
    printed = _pinned("openssl", "speed", "-mr", "-seconds", str(SECONDS), *arguments)
    line = next(line for line in printed.splitlines() if line.startswith("+F"))
    fields = line.split(":")
    if line.startswith("+F:"):
        return (float(fields[3]),)
    # OpenSSL 3.0 prints signatures and verifications a second; earlier versions the seconds of one.
    sign, verify = float(fields[3]), float(fields[4])
    return (verify, sign) if sign > 1 else (1 / verify, 1 / sign)


def _pinned(*command: str, text: str | None = None) -> str:
    core = max(os.sched_getaffinity(0))
    guarded = [ENGINE, "guard", "--core", str(core), "--", *command]
    return subprocess.run(guarded, input=text, capture_output=True, text=True, check=True).stdout
