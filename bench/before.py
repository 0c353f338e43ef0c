"""Before: answers of this build and of an earlier one, in turns, so that both meet the same neighbours.

`TOLLBAR_BEFORE` names the earlier build's `tollbar`, for example `/tmp/earlier/.venv/bin/tollbar` of a clone in which
`make setup` ran. The goals are ratios to the build of b36b266c. `before:quick` takes half an hour, `before:neighbour`
a quarter, `before:precision` some ten minutes, `before:web` half an hour, `before:sources` three hours, with nothing
else running.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from math import inf, log, sqrt
from pathlib import Path
from statistics import fmean, median, stdev

from bench.figures import TOLLBAR, Figure, timed, unmeasured
from bench.studies import Document, Unmeasured, half_width

EARLIER = "TOLLBAR_BEFORE"
RUNS = 6
BESIDE_RUNS = 3
PRECISE_RUNS = 4
LONG_RUNS = 2
PRECISE = (
    *("ask", "tls", "tls-1.3", "certificate=ecdsa-p256,rsa-2048", "key-exchange=x25519,x25519mlkem768"),
    # The time that the plan allows would end the slower build early, and so make it look quick.
    *("--precision", "1%", "--for", "10min", "--json", "--no-report"),
)
PRECISE_GOAL = 0.40
QUICK = ("run", "--json", "--no-report")
WEB = ("run", "web-authentication", "--json", "--no-report")
SOURCES = ("run", "sources", "--json", "--no-report")
# Half-widths and spreads of the studies of `quick`, as ratios; all other studies have the goal of "others".
HALF_GOALS = {"tls": 0.65, "sign-in": 0.65, "signatures": 0.75, "others": 0.55}
BESIDE_HALF_GOAL = 0.6
BESIDE_OPEN_GOAL = 0.5
SPREAD_GOALS = {"tls": 0.6, "sign-in": 0.6, "signatures": 0.6, "digests": 0.15}
MISSED_GOAL = 0.07
WEB_HALF_GOAL = 0.035
OPEN_CLAIMS_GOAL = 12
# On and off times of the neighbour, and the program that makes one: it ends with its parent's pipe.
BEAT_S = 0.5
NEIGHBOUR = """
import os, select, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
while not select.select([sys.stdin], [], [], float(sys.argv[2]))[0]:
    until = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < until:
        pass
"""


@dataclass(frozen=True, slots=True)
class Toll:
    """A ratio in the words that both builds share."""

    key: str
    ratio: float
    half: float
    verdict: str
    is_aa: bool
    is_noisy: bool


@dataclass(frozen=True, slots=True)
class Said:
    """Run: its seconds, and for each study its tolls, its quiet share and its claims' verdicts."""

    wall_s: float
    tolls: Mapping[str, Sequence[Toll]]
    quiet_share: Mapping[str, float | None]
    claims: Sequence[str]

    def of(self, kind: str) -> list[Toll]:
        """Return the tolls of the studies of one goal, A/A pairs left out."""
        return [one for name, tolls in self.tolls.items() if _kind(name) == kind for one in tolls if not one.is_aa]


@dataclass(frozen=True, slots=True)
class Turns:
    """The runs of both builds, in the order of their turns."""

    new: Sequence[Said]
    old: Sequence[Said]

    @property
    def longer(self) -> float:
        """Return how much more time this build took."""
        return median(one.wall_s for one in self.new) / median(one.wall_s for one in self.old)


def quick() -> Iterator[Figure]:
    """Yield half-widths, spreads, misses and false verdicts of the set `quick`."""
    what = "before: `quick`"
    turns = _turns(QUICK, RUNS)
    yield from _conditions(what, turns)
    yield from _halves(what, turns, HALF_GOALS)
    yield from _spreads(what, turns)
    yield from _misses(what, turns)
    yield _false_verdicts(what, turns)
    yield _open(what, turns, None)


def neighbour() -> Iterator[Figure]:
    """Yield the same next to a program on the measuring core, half a second on and half a second off."""
    what = "before: `quick` next to a neighbour"
    turns = _turns(QUICK, BESIDE_RUNS, _neighbour)
    yield from _conditions(what, turns)
    yield from _halves(what, turns, dict.fromkeys(HALF_GOALS, BESIDE_HALF_GOAL))
    yield _false_verdicts(what, turns)
    yield _open(what, turns, BESIDE_OPEN_GOAL)


def precision() -> Iterator[Figure]:
    """Yield the time until the ratios of a question are known to ± 1 %."""
    what = f"before: `tollbar {' '.join(PRECISE[:-2])}`, time"
    turns = _turns(PRECISE, PRECISE_RUNS)
    yield from _conditions(what, turns)
    new, old = (max(toll.half for one in runs for toll in _own(one)) for runs in (turns.new, turns.old))
    times = f"× {turns.longer:.2f} ({_seconds(turns.new)}, before {_seconds(turns.old)})"
    words = f"{times}; widest ± {new:.1%}, before ± {old:.1%}"
    yield Figure(what, f"at most × {PRECISE_GOAL}", words, turns.longer <= PRECISE_GOAL)


def web() -> Iterator[Figure]:
    """Yield the half-width of `web-authentication`, twice by each build."""
    what = "before: `web-authentication`"
    turns = _turns(WEB, LONG_RUNS)
    yield from _conditions(what, turns)
    new, old = (median(toll.half for one in runs for toll in _own(one)) for runs in (turns.new, turns.old))
    yield Figure(
        f"{what}, half-width",
        f"at most {WEB_HALF_GOAL:.1%}",
        f"± {new:.2%} in {_seconds(turns.new)}, before ± {old:.2%} in {_seconds(turns.old)}",
        new <= WEB_HALF_GOAL,
    )


def sources() -> Iterator[Figure]:
    """Yield the published comparisons that remain open, of the set `sources` once by each build."""
    what = "before: `sources`, claims that *cannot tell*"
    turns = _turns(SOURCES, 1)
    yield from _conditions("before: `sources`", turns)
    ((new,), (old,)) = ([(_untold(one), len(one.claims)) for one in runs] for runs in (turns.new, turns.old))
    yield Figure(
        what,
        f"at most {OPEN_CLAIMS_GOAL}",
        f"{new[0]} of {new[1]}, before {old[0]} of {old[1]}",
        new[0] <= OPEN_CLAIMS_GOAL,
    )


def _turns(
    command: Sequence[str], runs: int, next_to: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Turns:
    """Run the command by both builds, the order reversed in every second turn.

    Raises Unmeasured.
    """
    earlier = os.environ.get(EARLIER)
    if not earlier or not Path(earlier).exists():
        raise Unmeasured(f"{EARLIER} names no `tollbar` of an earlier build")
    said: dict[str, list[Said]] = {TOLLBAR: [], earlier: []}
    with next_to():
        for turn in range(runs):
            for build in sorted(said, reverse=bool(turn % 2)):
                with tempfile.TemporaryDirectory() as folder:
                    # A failed cell, as of a library missing in one build, leaves the others their numbers.
                    done = timed(build, *command, cwd=Path(folder), done=(0, 1))
                try:
                    said[build].append(_read(json.loads(done.out), done.wall_s))
                except ValueError:
                    raise Unmeasured(f"`{build} {' '.join(command)}` ended with status {done.status}") from None
    return Turns(said[TOLLBAR], said[earlier])


@contextmanager
def _neighbour() -> Iterator[None]:
    core = str(max(os.sched_getaffinity(0)))
    process = subprocess.Popen([sys.executable, "-c", NEIGHBOUR, core, str(BEAT_S)], stdin=subprocess.PIPE)
    try:
        yield
    finally:
        assert process.stdin
        process.stdin.close()
        process.wait()


def _read(document: Document, wall_s: float) -> Said:
    """Read a run of either build: the earlier one calls an A/A pair `twin`, and its quiet share `left_alone`."""
    studies = {study["study"]: study for study in document["studies"]}
    return Said(
        wall_s,
        {name: [_toll(toll) for toll in study["tolls"] if toll["ratio"]] for name, study in studies.items()},
        {name: study.get("quiet_share", study.get("left_alone")) for name, study in studies.items()},
        [claim["verdict"] for study in studies.values() for claim in study["claims"]],
    )


def _toll(toll: Document) -> Toll:
    return Toll(
        json.dumps([toll["metric"], toll["choice"], toll["provider"], toll["server"], toll["setting"]], sort_keys=True),
        toll["ratio"],
        half_width(toll["low"], toll["high"]),
        toll["verdict"],
        toll["aa"] if "aa" in toll else toll["twin"],
        toll["noisy"] if "noisy" in toll else toll["moments"] != "undisturbed",
    )


def _conditions(what: str, turns: Turns) -> Iterator[Figure]:
    """Yield the quiet share and the time of both builds' runs."""
    for name, runs in _sides(turns).items():
        shares = [share for one in runs for share in one.quiet_share.values() if share is not None]
        noisy = [toll.is_noisy for one in runs for toll in _own(one)]
        quiet = f"{fmean(shares):.0%}" if shares else "not known"
        words = f"{_seconds(runs)}; the core quiet {quiet}; {sum(noisy)} of {len(noisy)} tolls noisy"
        yield Figure(f"{what}, {name}: {len(runs)} runs", "(for comparison)", words, None)


def _halves(what: str, turns: Turns, goals: Mapping[str, float]) -> Iterator[Figure]:
    for kind, goal in goals.items():
        new, old = (_finite(toll.half for one in runs for toll in one.of(kind)) for runs in (turns.new, turns.old))
        if not new or not old:
            yield unmeasured(f"{what}, half-widths of {kind}", "no tolls")
            continue
        # Widths shrink with the square root of time, so this is the ratio for equal measuring time.
        ratio = median(new) / median(old) * sqrt(turns.longer)
        words = f"× {ratio:.2f} (± {median(new):.2%}, before ± {median(old):.2%}; × {turns.longer:.2f} the time)"
        yield Figure(f"{what}, half-widths of {kind}, at equal time", f"at most × {goal}", words, ratio <= goal)


def _spreads(what: str, turns: Turns) -> Iterator[Figure]:
    for kind, goal in SPREAD_GOALS.items():
        new, old = (_spread(runs, kind) for runs in (turns.new, turns.old))
        if not new or not old:
            yield unmeasured(f"{what}, spread of {kind}", "no tolls that all runs have")
            continue
        words = f"× {median(new) / median(old):.2f} ({median(new):.2%}, before {median(old):.2%}; {len(new)} tolls)"
        met = median(new) <= goal * median(old)
        yield Figure(f"{what}, spread of {kind} over {len(turns.new)} runs", f"at most × {goal}", words, met)


def _misses(what: str, turns: Turns) -> Iterator[Figure]:
    """Yield the share of intervals that miss the mean of the other runs, which has an error of its own."""
    for name, runs in _sides(turns).items():
        missed = []
        for tolls in _by_key(runs):
            logs = [log(toll.ratio) for toll in tolls]
            for number, toll in enumerate(tolls):
                others = [other for place, other in enumerate(logs) if place != number]
                wider = sqrt(1 + 1 / len(others))
                missed.append(abs(logs[number] - fmean(others)) > wider * toll.half)
        share = fmean(missed) if missed else inf
        goal, met = (
            (f"at most {MISSED_GOAL:.0%}", share <= MISSED_GOAL) if name == "new" else ("(for comparison)", None)
        )
        words = f"{share:.1%} of {len(missed)}"
        yield Figure(f"{what}, {name}: intervals that miss the mean of the other runs", goal, words, met)


def _false_verdicts(what: str, turns: Turns) -> Figure:
    new, old = (
        [
            toll.verdict in ("costs", "saves")
            for one in runs
            for tolls in one.tolls.values()
            for toll in tolls
            if toll.is_aa
        ]
        for runs in (turns.new, turns.old)
    )
    words = f"{sum(new)} of {len(new)}, before {sum(old)} of {len(old)}"
    return Figure(f"{what}, false verdicts on A/A pairs", "no more than before", words, sum(new) <= sum(old))


def _open(what: str, turns: Turns, goal: float | None) -> Figure:
    new, old = (
        fmean(toll.verdict == "unclear" for one in runs for toll in _own(one)) for runs in (turns.new, turns.old)
    )
    words = f"{new:.1%}, before {old:.1%}"
    name = f"{what}, undecided tolls"
    return (
        Figure(name, f"at most × {goal}", words, new <= goal * old)
        if goal
        else Figure(name, "(for comparison)", words, None)
    )


def _spread(runs: Sequence[Said], kind: str) -> list[float]:
    return [stdev(log(toll.ratio) for toll in tolls) for tolls in _by_key(runs, kind)]


def _by_key(runs: Sequence[Said], kind: str = "") -> list[list[Toll]]:
    """Return the tolls that every run has, run by run; noisy ones too, because both builds print them."""
    found: dict[str, list[Toll]] = {}
    for one in runs:
        for name, tolls in one.tolls.items():
            if not kind or name == kind or _kind(name) == kind:
                for toll in tolls:
                    if not toll.is_aa:
                        found.setdefault(f"{name} {toll.key}", []).append(toll)
    return [tolls for tolls in found.values() if len(tolls) == len(runs)]


def _own(one: Said) -> list[Toll]:
    return [toll for tolls in one.tolls.values() for toll in tolls if not toll.is_aa and toll.half < inf]


def _kind(study: str) -> str:
    return study if study in HALF_GOALS else "others"


def _sides(turns: Turns) -> dict[str, Sequence[Said]]:
    return {"new": turns.new, "old": turns.old}


def _finite(values: Iterable[float]) -> list[float]:
    return [value for value in values if value < inf]


def _untold(one: Said) -> int:
    return sum(verdict == "cannot tell" for verdict in one.claims)


def _seconds(runs: Sequence[Said]) -> str:
    return ", ".join(f"{one.wall_s:.0f} s" for one in runs)
