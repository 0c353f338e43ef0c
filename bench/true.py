"""True: work of known cost, work that varies by nature compared with an independent loop, and `openssl speed`.

`true:self-test` takes a minute, `true:loop` eight, `true:openssl` three.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from math import log, sqrt
from pathlib import Path
from statistics import fmean, median, stdev

import numpy as np

from bench import loop
from bench.figures import ENGINE, Figure, unmeasured
from bench.studies import Document, Unmeasured, half_width, measured
from tollbar.catalog import libraries
from tollbar.core import machine
from tollbar.core.intervals import Moments, best
from tollbar.core.moments import best_known, quickness_of
from tollbar.core.runner import Session
from tollbar.core.stats import cost
from tollbar.core.visits import Visit
from tollbar.lab import probed_machine
from tollbar.lab.measure.probe import Probe

PAIRS = 10
# `openssl speed` counts user time in ticks of 10 ms: below two seconds a tick alone is half a per cent.
SECONDS = 2
GOAL = 0.02
BEST_OF = 20
CHUNK_S = 0.005
LIMIT_S = 60.0

SELF_TESTS = ("self-test", "self-test-uneven")
SELF_TEST_GOAL = 0.01
# A chain of dependent steps takes twice as long for twice the length, on any machine in any moment.
CHAIN_GOAL = 0.005
CHAIN = ("self-test", 2.0)

# The loop and the lab take turns, so that both have some of each part of the time.
TURNS = 4
# With fewer quiet moments the loop's own are too few to compare.
FEWEST_QUIET = 0.1
QUIET = "quiet"
ALONE = """
question  = "What does it cost by itself?"
family    = "signature"
choices   = ["{choice}"]
providers = ["libcrypto:psycopg"]
baseline  = "{choice}"

[vary]
op = ["{op}"]

[measure]
{measure}
"""


@dataclass(frozen=True, slots=True)
class Varying:
    """Work whose operations differ by nature, with its study for the lab and its operation for the loop."""

    what: str
    study: str
    """Text of the study, with a placeholder for its measuring settings."""
    measure: str
    operation: str
    operations: int
    """Number of operations of the loop."""
    a_slice: int
    """Operations between two probes: some milliseconds, and at least one."""


VARYING = (
    Varying(
        "ML-DSA-65 signing",
        ALONE.replace("{choice}", "ml-dsa-65").replace("{op}", "sign"),
        # One signature varies by 90 %: 19,000 of them and four turns have a standard error of 0.4 % at best.
        'chunk  = "20 ms"\nrounds = 40\nblocks = 24',
        "sign",
        60_000,
        8,
    ),
    Varying(
        "RSA-2048 key generation",
        ALONE.replace("{choice}", "rsa-2048").replace("{op}", "generate-key"),
        # A trial may take twice its chunks' time: some forty keys.
        'chunk  = "60 ms"\nrounds = 24\nblocks = 8',
        "generate",
        1_200,
        1,
    ),
)


def figures() -> Iterator[Figure]:
    """Yield all accuracy figures: self-tests, the hand-written loop, and `openssl speed`."""
    yield from self_tests()
    yield from loops()
    yield from openssl()


def self_tests(names: Sequence[str] = SELF_TESTS) -> Iterator[Figure]:
    """Yield for every claim of the self-tests whether its interval covers the truth, and its error."""
    for name in names:
        text = (files("tollbar.study") / "studies" / f"{name}.toml").read_text("utf-8")
        try:
            study = measured(text, name=name)
        except Unmeasured as error:
            yield Figure(f"true: `{name}`", "(not measured)", str(error), False)
            continue
        for claim in study["claims"]:
            yield _claimed(name, claim)
        quiet_share = study["quiet_share"]
        here = "unknown" if quiet_share is None else f"{quiet_share:.0%}"
        yield Figure(f"true: `{name}`, the core quiet", "(for comparison)", here, None)


def _claimed(name: str, claim: Document) -> Figure:
    truth = claim["published"]
    within = CHAIN_GOAL if (name, truth) == CHAIN else SELF_TEST_GOAL
    what, goal = f"true: `{name}`, {claim['says']}: ×{truth:g}", f"covered, and within {within:.1%}"
    if claim["ratio"] is None or claim["high"] is None:
        return Figure(what, goal, claim["reason"] or "without an interval", False)
    off = claim["ratio"] / truth - 1
    covers = claim["low"] <= truth <= claim["high"]
    half = half_width(claim["low"], claim["high"])
    here = f"{off:+.2%} ± {half:.2%}{'' if covers else ', not covered'}"
    return Figure(what, goal, here, covers and abs(off) <= within)


def loops(all_work: Sequence[Varying] = VARYING, turns: int = TURNS) -> Iterator[Figure]:
    """Yield the command's cost of work that varies by nature, compared with thousands of operations in a loop."""
    core = machine.measuring_core() or 0
    path = libraries.libcryptos().get("psycopg")
    for one in all_work:
        name = f"true: {one.what}, cost over that of a loop of {one.operations:,}"
        goal = f"within {GOAL:.0%}, with a standard error of at most half of that"
        if path is None:
            yield unmeasured(name, "no libcrypto of psycopg here", goal)
            continue
        slices: list[list[Slice]] = []
        lab: list[Document] = []
        try:
            for _ in range(turns):
                slices.append(_looped(one, path, core, max(one.operations // turns // one.a_slice, 1)))
                lab.append(_cost(measured(one.study.replace("{measure}", one.measure), name="alone")))
        except (Unmeasured, ValueError) as error:
            yield Figure(name, goal, str(error), False)
            continue
        yield _beside(name, goal, lab, *_selected(slices, lab))


@dataclass(frozen=True, slots=True)
class Slice:
    """Cost of some operations of the loop together, and the probes before and after them."""

    spent_ns: float
    operations: int
    probes_ns: tuple[float, float]


def _looped(one: Varying, library: str, core: int, count: int) -> list[Slice]:
    """Return slices from a fresh process.

    Raises ValueError.
    """
    command = [sys.executable, str(Path(loop.__file__)), library, one.operation, str(core)]
    with (
        _kept_off(core),
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
        Probe(core) as probe,
    ):
        assert process.stdin is not None
        assert process.stdout is not None

        def asked(operations: int) -> float:
            print(operations, file=process.stdin, flush=True)
            return float(process.stdout.readline())  # type: ignore[union-attr]

        if process.stdout.readline() != "ready\n":
            raise ValueError("the loop did not start")
        # The first operations, with cold caches, do not count, as in the lab.
        asked(one.a_slice)
        found = []
        for _ in range(count):
            before_ns = probe.lately()
            spent_ns = asked(one.a_slice)
            found.append(Slice(spent_ns, one.a_slice, (before_ns or np.inf, probe.read() or np.inf)))
        process.stdin.close()
        process.wait()
    return found


@contextmanager
def _kept_off(core: int) -> Iterator[None]:
    """Keep this process on the other cores meanwhile; commands that it starts afterwards may use all."""
    cores = os.sched_getaffinity(0)
    machine.keep_off(core)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _selected(turns: Sequence[Sequence[Slice]], lab: Sequence[Document]) -> tuple[list[list[Slice]], str]:
    """Return each turn's slices of the same kind of moments as the lab's costs, and that kind: quiet or all."""
    found = machine.fingerprint()
    # Both know the machine's earlier best: otherwise the quickest slices of a loop that was never quiet would count as
    # quiet.
    known_ns = best_known(probed_machine(found))
    quickness = quickness_of([ns for slices in turns for one in slices for ns in one.probes_ns], known_ns)
    quiet = [[one for one in slices if all(map(quickness.is_quick, one.probes_ns))] for slices in turns]
    is_lab_quiet = all(one["noisy"] is False for one in lab)
    has_enough = all(len(some) >= FEWEST_QUIET * len(slices) for some, slices in zip(quiet, turns, strict=True))
    if is_lab_quiet and quickness.was_ever_quiet and has_enough:
        return quiet, QUIET
    return [[*slices] for slices in turns], "all"


def _cost(study: Document) -> Document:
    """Return the one cell's CPU nanoseconds for an operation.

    Raises Unmeasured.
    """
    found = [one for one in study["results"] if one["metric"] == "cpu" and one["value"] is not None]
    if len(found) != 1 or found[0]["high"] is None:
        raise Unmeasured(f"{len(found)} costs: {[one['reason'] for one in study['results']]}")
    return {**found[0], "confidence": study["confidence"]}


def _beside(name: str, goal: str, lab: Sequence[Document], turns: Sequence[Sequence[Slice]], which: str) -> Figure:
    """Return the mean of the lab's cost over the loop's in each turn; its standard error is by the turns.

    A turn has both within some two minutes, so that a drift of the machine hits both.
    """
    looped_ns = [sum(one.spent_ns for one in some) / sum(one.operations for one in some) for some in turns]
    offs = [log(one["value"] / ns) for one, ns in zip(lab, looped_ns, strict=True)]
    off, error = float(np.exp(fmean(offs))) - 1, stdev(offs) / sqrt(len(offs))
    operations = sum(one.operations for some in turns for one in some)
    moments = ", ".join(sorted({"noisy" if one["noisy"] else "quiet" for one in lab}))
    lab_us = fmean(one["value"] for one in lab) / 1e3
    return Figure(
        name,
        goal,
        f"{off:+.2%}, standard error {error:.2%} of {len(offs)} turns ({lab_us:,.1f} µs, "
        f"{moments} / {fmean(looped_ns) / 1e3:,.1f} µs, {operations:,} operations, {which} moments)",
        abs(off) <= GOAL and error <= GOAL / 2,
    )


def openssl(pairs: int = PAIRS, best_of: int = BEST_OF) -> Iterator[Figure]:
    """Yield SHA-256 of 4 KiB, and RSA-2048 and ECDSA P-256 signing and verifying, on the same library and core.

    The typical cost is compared in turn with theirs, the quiet one with the best of many short runs of theirs.
    """
    ratios: dict[str, list[float]] = {}
    for _ in range(pairs):
        for what, chunks, there_ns in _pair(SECONDS):
            here_ns = sum(one.spent_ns for one in chunks) / sum(one.operations for one in chunks)
            ratios.setdefault(what, []).append(here_ns / there_ns)
    for what, found in ratios.items():
        off = median(found) - 1
        yield Figure(
            f"true: {what}, cost of all samples over openssl speed",
            f"within {GOAL:.0%}",
            f"{off:+.1%}",
            abs(off) <= GOAL,
        )
    here: dict[str, list[list[Slice]]] = {}
    fastest: dict[str, float] = {}
    for _ in range(best_of):
        for what, chunks, there_ns in _pair(1):
            here.setdefault(what, []).append(chunks)
            fastest[what] = min(there_ns, fastest.get(what, there_ns))
    quickness = quickness_of([ns for runs in here.values() for run in runs for one in run for ns in one.probes_ns])
    for what, runs in here.items():
        visits = [
            Visit(
                number,
                0,
                rounds=np.arange(len(run)),
                costs=np.array([one.spent_ns for one in run]),
                operations=np.array([one.operations for one in run]),
                quiet=np.array([all(map(quickness.is_quick, one.probes_ns)) for one in run]),
                first=np.ones(len(run), bool),
            )
            for number, run in enumerate(runs)
        ]
        found_cost = best(*(cost(visits, moments) for moments in Moments))
        name = f"true: {what}, quiet cost over the best of {best_of} runs of openssl speed"
        if found_cost is None:
            yield Figure(name, f"within {GOAL:.0%}", "not measured", False)
            continue
        off = found_cost.estimate / fastest[what] - 1
        yield Figure(name, f"within {GOAL:.0%}", f"{off:+.1%}, {found_cost.moments}", abs(off) <= GOAL)


def _pair(seconds: int) -> Iterator[tuple[str, list[Slice], float]]:
    rsa, ecdsa = _speed("rsa2048", seconds=seconds), _speed("ecdsap256", seconds=seconds)
    raw = {"digest": "none"}
    yield (
        "SHA-256 4 KiB",
        _engine("digest", "hash", "sha-256", {"bytes": 4096}, seconds),
        4096e9 / _speed("-bytes", "4096", "-evp", "sha256", seconds=seconds)[0],
    )
    # The lengths that `openssl speed` signs: 36 bytes with RSA, 20 with ECDSA, unhashed.
    for choice, name, size, theirs in (("rsa-2048", "RSA-2048", 36, rsa), ("ecdsa-p256", "ECDSA P-256", 20, ecdsa)):
        for op, rate in (("sign", theirs[1]), ("verify", theirs[0])):
            yield f"{name} {op}", _engine("signature", op, choice, {"bytes": size, **raw}, seconds), 1e9 / rate


def _engine(family: str, op: str, choice: str, setting: dict[str, object], seconds: int) -> list[Slice]:
    key = files("tollbar.catalog.families") / "keys" / "rsa-2048.pem"
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
    core = machine.measuring_core() or 0
    found = []
    with _kept_off(core), Session((ENGINE, "op"), task, core=core) as session, Probe(core) as probe:
        session.ready(LIMIT_S)
        for _ in range(round(seconds / CHUNK_S)):
            before_ns = probe.lately() or np.inf
            chunk = session.advance(CHUNK_S, 1, LIMIT_S)
            found.append(Slice(chunk.cpu_ns, chunk.operations, (before_ns, probe.read() or np.inf)))
    return found


def _speed(*arguments: str, seconds: int = 2) -> tuple[float, ...]:
    """Return the rates that `openssl speed` prints: bytes a second, or verifications and signatures a second."""
    printed = _pinned("openssl", "speed", "-mr", "-seconds", str(seconds), *arguments)
    line = next(line for line in printed.splitlines() if line.startswith("+F"))
    fields = line.split(":")
    if line.startswith("+F:"):
        return (float(fields[3]),)
    # OpenSSL 3.0 prints signatures and verifications a second; earlier versions the seconds of one.
    sign, verify = float(fields[3]), float(fields[4])
    return (verify, sign) if sign > 1 else (1 / verify, 1 / sign)


def _pinned(*command: str) -> str:
    guarded = [ENGINE, "guard", "--core", str(machine.measuring_core() or 0), "--", *command]
    return subprocess.run(guarded, capture_output=True, text=True, check=True).stdout
