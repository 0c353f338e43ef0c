"""Repeatable: three studies six times in a row, longer ones twice with the others between, and the quick set once.

About an hour on otherwise idle cores: `repeatable:six` five minutes, `repeatable:twice` fifty, `repeatable:quick` one.
A/A pairs are left out everywhere.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from math import log, sqrt
from pathlib import Path
from statistics import fmean, median, stdev

from bench.figures import TOLLBAR, Figure, Finished, timed, unmeasured
from bench.studies import Document, Unmeasured, half_width, halves
from tollbar.core.intervals import Moments

RUNS = 6
# Coverage of honest 95 % intervals; over some hundred tolls the share itself is known to ± 4 %.
HELD_GOAL = (0.93, 0.97)
QUICK_GOAL_S = 60.0
QUICK_WIDEST = 0.10
# Smallest quiet share of a study to which the goal for the widest interval applies.
QUIET_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Often:
    """Goals for runs of a small study in a row."""

    spread: float
    """Standard deviation of ln ratio over the runs, median over tolls."""
    half: float
    """Half of the printed intervals, median over tolls and runs."""


@dataclass(frozen=True, slots=True)
class Twice:
    """Goals for two runs of a study or a set."""

    tolls: float
    """Median over cells of the relative difference of the two runs' tolls."""
    costs: float
    """Median over cells of the relative difference of the two runs' costs."""
    half: float | None = None
    """Half of the printed intervals, median over tolls."""
    minutes: float | None = None
    """Longest time of one run."""


SIX = {"tls": Often(0.008, 0.025), "signatures": Often(0.004, 0.01), "sign-in": Often(0.005, 0.015)}
TWICE = {
    "digests": Twice(0.003, 0.01),
    "tls-certificates": Twice(0.01, 0.02, 0.02, 8),
    "web-authentication": Twice(0.01, 0.02, None, 8),
    "encrypted-columns": Twice(0.01, 0.02, None, 8),
}
UNTOLD_GOAL = 1
QUIET = str(Moments.QUIET)
# A toll that is quiet in fewer runs has no useful spread.
FEWEST_RUNS = 3


@dataclass(frozen=True, slots=True)
class Said:
    """Run of the command, and its studies' documents."""

    done: Finished
    studies: Mapping[str, Document]
    began: datetime

    @property
    def tolls(self) -> list[Document]:
        """Return the tolls of all its studies."""
        return [toll for study in self.studies.values() for toll in study["tolls"] if not toll["aa"]]


def figures() -> Iterator[Figure]:
    """Yield the figures of `six`, `twice` and `quick`."""
    yield from six()
    yield from twice()
    yield from quick()


def six(names: Sequence[str] = tuple(SIX), runs: int = RUNS) -> Iterator[Figure]:
    """Yield the spread of three small studies over runs in a row, and their intervals' coverage of it."""
    paths = [str(files("tollbar.study") / "studies" / "quick" / f"{name}.toml") for name in names]
    with tempfile.TemporaryDirectory() as folder:
        try:
            said = [_run(paths, Path(folder)) for _ in range(runs)]
        except Unmeasured as error:
            yield Figure("repeatable: runs in a row", "(not measured)", str(error), False)
            return
    took_s = [one.done.wall_s for one in said]
    yield Figure(
        f"repeatable: {runs} runs of {', '.join(names)}",
        "(for comparison)",
        f"{_hours(said)}, a run {min(took_s):.0f} to {max(took_s):.0f} s",
        None,
    )
    held: list[bool] = []
    yield _unbounded(said)
    for name in names:
        studies = [one.studies[name] for one in said]
        yield from _often(name, studies)
        here, endless = _others_inside(studies)
        held += here
        without = f", and {endless} without an interval" if endless else ""
        yield Figure(
            f"repeatable: `{name}`, intervals that hold the mean of the other runs",
            "(for comparison)",
            f"{sum(here)} of {len(here)}{without}",
            None,
        )
    if not held:
        words = f"no toll that {FEWEST_RUNS} runs have quiet"
        yield Figure("repeatable: intervals that hold the mean of the other runs", "(not measured)", words, False)
        return
    share = sum(held) / len(held)
    low, high = HELD_GOAL
    yield Figure(
        # The others' mean has an error of its own, by which the interval is widened.
        f"repeatable: intervals of all, times √(1 + 1/{runs - 1}), that hold the mean of the other {runs - 1} runs",
        f"{low:.0%} to {high:.0%}",
        f"{share:.1%} of {len(held)}",
        low <= share <= high,
    )


def twice(names: Sequence[str] = tuple(TWICE)) -> Iterator[Figure]:
    """Yield time and precision of whole studies, and the difference of two runs in tolls and in costs."""
    with tempfile.TemporaryDirectory() as folder:
        first: dict[str, Said] = {}
        for _ in range(2):
            for name in names:
                try:
                    said = _run([name], Path(folder))
                except Unmeasured as error:
                    yield Figure(f"repeatable: `{name}`", "(not measured)", str(error), False)
                    continue
                yield from _known(name, said)
                if name in first:
                    yield from _two(name, first[name], said)
                first[name] = said


def quick(studies: Sequence[str] = ()) -> Iterator[Figure]:
    """Yield the time of the whole quick set, and its tolls with a half width above a tenth."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            said = _run(studies, Path(folder))
        except Unmeasured as error:
            yield Figure("repeatable: the set `quick`", "(not measured)", str(error), False)
            return
    took_s = said.done.wall_s
    yield Figure(
        "repeatable: the set `quick` whole", f"at most {QUICK_GOAL_S:.0f} s", f"{took_s:.0f} s", took_s <= QUICK_GOAL_S
    )
    yield Figure("repeatable: the set `quick`, the core quiet", "(for comparison)", _quiet_share([said]), None)
    wide = {
        name: [_named(toll) for toll in _own_tolls(study) if _half(toll) > QUICK_WIDEST]
        for name, study in said.studies.items()
    }
    quiet = {name for name, study in said.studies.items() if (study["quiet_share"] or 0.0) >= QUIET_HALF}
    for which, judged in (("where half of the moments were quiet", True), ("elsewhere", False)):
        rows = [f"{name}: {row}" for name, found in wide.items() if (name in quiet) is judged for row in found]
        of = sum(len(_own_tolls(study)) for name, study in said.studies.items() if (name in quiet) is judged)
        what = f"repeatable: the set `quick`, intervals wider than ± {QUICK_WIDEST:.0%} {which}"
        if judged and not of:
            yield unmeasured(what, "half of the moments were quiet in no study", "none")
            continue
        yield Figure(
            what,
            "none" if judged else "(for comparison)",
            f"{len(rows)} of {of}{': ' + '; '.join(rows) if rows else ''}",
            not rows if judged else None,
        )


def _run(studies: Sequence[str], folder: Path) -> Said:
    """Run the command and return its documents.

    Raises Unmeasured.
    """
    began = datetime.now()
    done = timed(TOLLBAR, "run", *studies, "--json", "--no-report", cwd=folder)
    if done.status:
        raise Unmeasured(f"`tollbar run {' '.join(studies)}` ended with status {done.status}")
    return Said(done, {study["study"]: study for study in json.loads(done.out)["studies"]}, began)


def _unbounded(said: Sequence[Said]) -> Figure:
    """Return tolls that the figures of spread and intervals would leave out."""
    tolls = [toll for one in said for toll in one.tolls]
    found = [_named(toll) for toll in tolls if toll["ratio"] is None or toll["low"] is None or toll["high"] is None]
    return Figure(
        f"repeatable: of {len(tolls)} tolls of all runs, those without a ratio or an interval",
        "none",
        f"{len(found)}{': ' + '; '.join(dict.fromkeys(found)) if found else ''}",
        bool(tolls) and not found,
    )


def _often(name: str, studies: Sequence[Document]) -> Iterator[Figure]:
    goal = SIX[name]
    by_toll = _by_toll(studies)
    spreads = [stdev(log(toll["ratio"]) for toll in found) for found in by_toll.values()]
    each = [half for study in studies for half in halves(_quiet(study))]
    if not spreads or not each:
        words = f"no toll that {FEWEST_RUNS} runs have quiet; {_disturbed(studies)}"
        yield Figure(f"repeatable: `{name}`", "(not measured)", words, False)
        return
    spread, half = median(spreads), median(each)
    yield Figure(
        f"repeatable: `{name}` {len(studies)} times, spread of ln ratio (median of {len(spreads)} tolls)",
        f"at most {goal.spread:.1%}",
        f"{spread:.2%} (the widest {max(spreads):.2%})",
        spread <= goal.spread,
    )
    yield Figure(
        f"repeatable: `{name}`, half of the interval (median of tolls and runs)",
        f"at most {goal.half:.1%}",
        f"± {half:.2%} (the widest ± {max(each):.1%})",
        half <= goal.half,
    )
    yield Figure(
        f"repeatable: `{name}`, the core quiet, run by run",
        "(for comparison)",
        f"{', '.join(_share(study['quiet_share']) for study in studies)}; {_disturbed(studies)}",
        None,
    )


def _others_inside(studies: Sequence[Document]) -> tuple[list[bool], int]:
    """Return for each run and toll whether its interval contains the mean of the other runs.

    Also return the number of tolls without an interval. The difference of one from the mean of n others has the
    variance of one, times 1 + 1/n.
    """
    held = []
    endless = 0
    for found in _by_toll(studies).values():
        logs = [log(toll["ratio"]) for toll in found]
        for number, toll in enumerate(found):
            if toll["low"] is None or toll["high"] is None:
                endless += 1
                continue
            others = [other for place, other in enumerate(logs) if place != number]
            wider = sqrt(1 + 1 / len(others))
            held.append(abs(logs[number] - fmean(others)) <= wider * half_width(toll["low"], toll["high"]))
    return held, endless


def _by_toll(studies: Sequence[Document]) -> dict[str, list[Document]]:
    """Return the quiet tolls that enough runs have, run by run.

    A noisy toll is another quantity, which moves with the neighbours of its hour: its row is marked, and the number of
    noisy tolls is printed separately.
    """
    found: dict[str, list[Document]] = {}
    for study in studies:
        for toll in _quiet(study):
            found.setdefault(_key(toll), []).append(toll)
    return {key: tolls for key, tolls in found.items() if len(tolls) >= FEWEST_RUNS}


def _quiet(study: Document) -> list[Document]:
    return [toll for toll in _own_tolls(study) if toll["ratio"] is not None and not toll["noisy"]]


def _known(name: str, said: Said) -> Iterator[Figure]:
    """Yield a run's time, the precision of its tolls, and the claims that it could not judge."""
    goal = TWICE[name]
    took = said.done.wall_s / 60
    yield Figure(
        f"repeatable: `{name}` whole, {said.began:%H:%M}",
        f"at most {goal.minutes:.0f} min" if goal.minutes else "(for comparison)",
        f"{took:.1f} min; the core quiet {_quiet_share([said])}; {_disturbed(said.studies.values())}",
        took <= goal.minutes if goal.minutes else None,
    )
    each = halves(said.tolls)
    half = median(each) if each else float("inf")
    yield Figure(
        f"repeatable: `{name}`, half of the interval (median of {len(each)} tolls)",
        f"at most {goal.half:.0%}" if goal.half else "(for comparison)",
        f"± {half:.2%}",
        half <= goal.half if goal.half else None,
    )
    claims = [claim for study in said.studies.values() for claim in study["claims"]]
    untold = [claim["says"] for claim in claims if claim["verdict"] == "cannot tell"]
    if claims:
        is_judged = goal.minutes is not None
        yield Figure(
            f"repeatable: `{name}`, claims of {len(claims)} that end in *cannot tell*",
            f"at most {UNTOLD_GOAL}" if is_judged else "(for comparison)",
            f"{len(untold)}{': ' + '; '.join(untold) if untold else ''}",
            len(untold) <= UNTOLD_GOAL if is_judged else None,
        )


def _two(name: str, one: Said, other: Said) -> Iterator[Figure]:
    goal = TWICE[name]
    for what, of, at, most in (("tolls", _tolls, "ratio", goal.tolls), ("costs", _costs, "value", goal.costs)):
        before, after = of(one), of(other)
        both = [(found, after[cell]) for cell, found in before.items() if cell in after]
        pairs = [(a, b) for a, b in both if not a["noisy"] and not b["noisy"]]
        off = sorted(abs(b[at] / a[at] - 1) for a, b in pairs)
        if not off:
            yield Figure(f"repeatable: `{name}` twice, {what}", "(not measured)", "nothing that both runs have", False)
            continue
        bounded = [(a, b) for a, b in pairs if a["high"] is not None and b["high"] is not None]
        overlap = sum(a["low"] <= b["high"] and b["low"] <= a["high"] for a, b in bounded)
        yield Figure(
            f"repeatable: `{name}` twice with other work between, median change of {what}",
            f"at most {most:.1%}",
            f"{median(off):.2%} of {len(off)} (9 of 10 within {off[len(off) * 9 // 10]:.2%}; "
            f"{overlap} of {len(bounded)} intervals overlap; {len(both) - len(pairs)} more were noisy in one)",
            median(off) <= most,
        )


def _tolls(said: Said) -> dict[str, Document]:
    """Return every toll with a ratio, by cell."""
    found = [(name, toll) for name, study in said.studies.items() for toll in _own_tolls(study)]
    return {name + _key(toll): toll for name, toll in found if toll["ratio"] is not None}


def _costs(said: Said) -> dict[str, Document]:
    """Return the whole cost, of a runner or of a server, by cell."""
    rows = [(name, row) for name, study in said.studies.items() for row in study["results"]]
    return {
        name + _key(row): row
        for name, row in rows
        if row["metric"] in ("cpu", "server-cpu") and not row["component"] and row["value"] is not None
    }


def _own_tolls(study: Document) -> list[Document]:
    return [toll for toll in study["tolls"] if not toll["aa"]]


def _key(row: Document) -> str:
    return json.dumps([row["metric"], row["choice"], row["provider"], row["server"], row["setting"]], sort_keys=True)


def _half(toll: Document) -> float:
    return half_width(toll["low"], toll["high"])


def _named(toll: Document) -> str:
    """Return a toll in one line: its cell, and its interval."""
    what = " ".join([toll["choice"], *map(str, toll["setting"].values())])
    if toll["ratio"] is None:
        return f"{what}: {toll['reason'] or 'no ratio'}"
    ends = "no interval" if toll["high"] is None else f"{toll['low']:.3g} to {toll['high']:.3g}"
    return f"{what} ×{toll['ratio']:.3g} ({ends}, {'noisy' if toll['noisy'] else 'quiet'})"


def _hours(said: Sequence[Said]) -> str:
    return f"from {said[0].began:%H:%M} to {datetime.now():%H:%M}"


def _quiet_share(said: Sequence[Said]) -> str:
    return ", ".join(f"{name} {_share(study['quiet_share'])}" for one in said for name, study in one.studies.items())


def _share(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.0%}"


def _disturbed(studies: Iterable[Document]) -> str:
    tolls = [toll for study in studies for toll in _own_tolls(study) if toll["ratio"] is not None]
    noisy = sum(toll["noisy"] is True for toll in tolls)
    return f"{noisy} of {len(tolls)} tolls noisy"
