"""Kills of `python -m bench survive`: all means, by fixed seeds, on kinds of run that take a second or two."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import ground
from bench.ground import a_ground
from bench.survival import looking, striking
from bench.survival.kinds import KINDS, study_of
from bench.survival.means import MEANS, Kill, Means
from bench.survival.striking import Survivors
from bench.survive import outcome

import share
from conftest import here, lacking

KILLS = share.of(9, 26)
# A run may end before its moment; about one in five does.
ATTEMPTS = 5
# Such a run may succeed each time without more of the resource.
WITHOUT_MORE = share.of(2, ATTEMPTS)
# Means that refuse a run more of a resource.
REFUSED = ("disk full", "memory limit", "descriptors")
SEED = 43
# Each kind needs a quiet run of its own, so these are quick; together every means has a kind to strike. The values are
# the servers that must be installed; sorted by time, the fastest first.
QUICK = {
    "primitives": (),
    "sqlite": (),
    "embedded": ("embedded",),
    "nginx": ("nginx",),
    "accounts": ("httpd", "postgresql-accounts"),
}


def drawn() -> list[tuple[str, str, int]]:
    """Return kind, means and seed of each kill: every means once, some twice.

    A share has some of them, mostly of kinds that end soon.
    """
    chance = random.Random(SEED)
    means = [*MEANS, *chance.sample([*MEANS], KILLS - len(MEANS))] if share.IS_WHOLE else chance.sample([*MEANS], KILLS)
    struck = ([kind for kind in QUICK if kind in MEANS[name].kinds] for name in means)
    kinds = (chance.choices(some, [share.of(0.25, 1.0) ** place for place in range(len(some))])[0] for some in struck)
    return [(kind, name, seed) for seed, (kind, name) in enumerate(zip(kinds, means, strict=True), SEED)]


@pytest.fixture(scope="module")
def survivors() -> Iterator[Survivors]:
    """Yield one ground for all kills, with the results of quiet runs of each kind."""
    with a_ground() as place:
        yield Survivors(place, suspended_s=0.5)


# One worker gets all kills of a kind, and its one quiet run.
@pytest.mark.parametrize(
    ("kind", "means", "seed"),
    [
        pytest.param(*kill, id="-".join(map(str, kill)), marks=pytest.mark.xdist_group(f"kills-{kill[0]}"))
        for kill in sorted(drawn())
    ],
)
def test_a_kill_is_survived(survivors: Survivors, kind: str, means: str, seed: int) -> None:
    if MEANS[means].needs == "mounts" and os.geteuid() != 0:
        lacking("the disks of a kill are mounted, which is for root")
    for server in QUICK[kind]:
        here(server)
    outcomes: list[str] = []
    for attempt in range(ATTEMPTS):
        line = survivors.kill(kind, means, seed + attempt * KILLS)
        assert [] == line["wrong"], line
        outcomes.append(outcome(line))
        if outcomes[-1] == "survived" or (means in REFUSED and outcomes.count("not struck") == WITHOUT_MORE):
            break
    # The run may never have needed the refused resource.
    assert "survived" in outcomes or (means in REFUSED and "not struck" in outcomes), (outcomes, line)


def test_all_means_are_drawn() -> None:
    assert KILLS == len(drawn())
    if share.IS_WHOLE:
        assert {*MEANS} == {name for _, name, _ in drawn()}
        assert {*QUICK} == {kind for kind, _, _ in drawn()}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_a_study_of_the_fewest_blocks(kind: str) -> None:
    assert "\nblocks = 4\n" in study_of(kind)


# Strikes when about two thirds of the measuring are done.
WITH_BATCHES = 21


def leave_a_process(kill: Kill) -> None:
    """Leave a process that outlives the run."""
    os.posix_spawnp("sleep", ["sleep", "60"], os.environ)
    kill.run.kill()


def lose_a_trial(kill: Kill) -> None:
    """Remove half of the first committed batch."""
    kill.run.kill()
    kill.run.wait()
    with contextlib.closing(sqlite3.connect(kill.ground.runs[0] / "results.sqlite")) as database:
        database.execute("delete from trial where ord = (select min(ord) from trial)")
        database.commit()


def committed_in_time(runs: Path) -> list[ground.Kept]:
    """Return the committed batches once there are some."""
    deadline = time.monotonic() + ground.RUN_LIMIT_S
    while not (found := looking.committed_in(runs)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def leave_a_file(kill: Kill) -> None:
    """Leave a file next to the run."""
    (kill.ground.folder / "stray").write_text("")
    kill.run.kill()


@pytest.mark.share(0)
@pytest.mark.xdist_group("kills-primitives")
@pytest.mark.parametrize(
    ("strike", "found"),
    [(leave_a_process, "left: {'processes': "), (lose_a_trial, "that were committed"), (leave_a_file, "['stray']")],
)
def test_what_is_left_or_lost_is_noticed(
    survivors: Survivors, monkeypatch: pytest.MonkeyPatch, strike: object, found: str
) -> None:
    monkeypatch.setitem(MEANS, "wrong", Means(strike, (0, -signal.SIGKILL)))  # type: ignore[arg-type]
    # Leftovers are waited for as long as the limit; ordinary ends need less, on a busy machine too.
    monkeypatch.setattr(ground, "PATIENCE_S", 5.0)
    # There is a batch to lose, however busy the machine is.
    monkeypatch.setattr(striking, "committed_in", committed_in_time)
    line = survivors.kill("primitives", "wrong", WITH_BATCHES)
    assert any(found in wrong for wrong in line["wrong"]), line
    survivors.clear()


@pytest.mark.parametrize(
    ("line", "counts_as"),
    [
        ({"wrong": [], "late": False, "struck": True}, "survived"),
        ({"wrong": [], "late": False, "struck": False}, "not struck"),
        ({"wrong": [], "late": True, "struck": True}, "too late"),
        ({"wrong": ["status 1"], "late": True, "struck": True}, "wrong"),
        ({"wrong": [], "not_run": "it did not end"}, "not run"),
    ],
)
def test_only_a_run_that_was_struck_has_survived(line: dict[str, object], counts_as: str) -> None:
    assert counts_as == outcome(line)


@pytest.mark.parametrize(
    ("means", "late", "status", "lived_s", "lost"),
    [
        ("SIGTERM", False, 0, 9.0, True),
        ("SIGINT", False, 0, 9.0, True),
        ("SIGINT twice", False, 0, 9.0, True),
        # Ending anyway.
        ("SIGTERM", False, 0, 0.3, False),
        ("SIGTERM", True, 0, 9.0, False),
        # Slow to end, and ended by the signal.
        ("SIGTERM", False, -signal.SIGTERM, 9.0, False),
        ("clock set", False, 0, 9.0, False),
    ],
)
def test_a_run_that_goes_on_though_it_was_asked_to_end_is_noticed(
    means: str, late: bool, status: int, lived_s: float, lost: bool
) -> None:
    assert lost == MEANS[means].was_lost(late, status, lived_s)


@pytest.mark.parametrize(
    ("means", "note", "status", "has_struck"),
    [
        ("SIGKILL of the lab", {}, -signal.SIGKILL, True),
        ("SIGKILL of the lab", {}, 0, False),
        ("SIGKILL of the engine", {"part": "engine"}, 0, True),
        ("SIGKILL of the engine", {"part": None}, 0, False),
        ("memory limit", {}, 0, False),
        ("memory limit", {}, 2, True),
        ("clock set", {"asked": 3}, 0, True),
        ("slow disk", {"asked": 0}, 0, False),
        ("disk read-only", {"refused": 2}, -signal.SIGKILL, True),
        ("disk read-only", {"refused": None}, -signal.SIGKILL, False),
        ("suspended", {}, 0, True),
    ],
)
def test_a_means_has_struck_if_it_did_anything(
    survivors: Survivors, means: str, note: dict[str, object], status: int, has_struck: bool
) -> None:
    kill = Kill(survivors.ground, random.Random(0), None, 0.0, note=note)  # type: ignore[arg-type]
    assert has_struck == MEANS[means].has_struck(kill, status)


GOOD = ground.Kept(1, "one", "cell", False, 0, 0, "ok", None, "[]")
BAD = GOOD._replace(outcome="failed", reason="it went wrong")


@pytest.mark.parametrize(
    ("before", "after", "trials", "said"),
    [
        (["ok", None], [("ok", None), ("ok", None)], [GOOD], ""),
        (["failed"], [("failed", "it was killed")], [], ""),
        (["ok"], [("failed", "no port")], [], "cells that failed"),
        ([], [("unsupported", "no port")], [], "cells that failed"),
        ([None], [(None, None)], [], "cells that failed"),
        (["ok"], [("ok", None)], [GOOD, BAD], "trials that failed in the resumed run: ['it went wrong']"),
    ],
)
def test_what_fails_in_the_resumed_run_is_no_harm_of_the_strike(
    before: list[str | None], after: list[tuple[str | None, str | None]], trials: list[ground.Kept], said: str
) -> None:
    found = list(looking._failed_anew(after, before, trials))
    assert len(found) == (said != "")
    assert all(one.startswith(said) for one in found)


TOLL = {"low": 1.0, "high": 1.2, "ratio": 1.1, "verdict": "costs", "reason": None}


@pytest.mark.parametrize(
    ("now", "harmed", "found"),
    [
        ({}, False, {"verdict": 1, "interval": 1}),
        ({"low": 1.19, "high": 1.3, "ratio": 1.25}, False, {"verdict": 1, "interval": 1}),
        ({"low": 1.21, "high": 1.22, "ratio": 1.205}, False, {"verdict": 1, "near": 1}),
        ({"low": 8.0, "high": 9.0, "ratio": 8.5}, False, "another answer"),
        ({"low": 8.0, "high": 9.0, "ratio": 8.5}, True, "another answer"),
        ({"low": None, "reason": "too few blocks"}, True, {}),
        ({"low": None, "reason": "too few blocks"}, False, "no toll"),
        (None, True, {}),
        (None, False, "no toll"),
    ],
)
def test_an_answer_is_the_same_by_its_interval(now: dict[str, object] | None, harmed: bool, found: object) -> None:
    """An equal verdict is not enough: a cost of nine times as much has the same."""
    agree, apart = looking.answers(
        {} if now is None else {"key": {**TOLL, **now}}, as_uninterrupted(TOLL), harmed=harmed
    )
    if isinstance(found, dict):
        assert ([], found) == (apart, agree)
    else:
        assert [found] == [one[: len(found)] for one in apart]


@pytest.mark.parametrize(
    ("now", "is_apart"), [({"low": 1.9, "high": 2.1, "ratio": 2.0}, False), ({"low": 1.0, "high": 1.2}, True)]
)
def test_another_answer_is_none_if_an_uninterrupted_run_has_it_now(
    survivors: Survivors, monkeypatch: pytest.MonkeyPatch, now: dict[str, object], is_apart: bool
) -> None:
    """The machine may have changed since the first quiet run; then the strike is not the cause."""
    resumed = {**TOLL, "low": 1.8, "high": 2.0, "ratio": 1.9}
    monkeypatch.setattr(striking, "tolls_of", lambda _: {"key": resumed})
    monkeypatch.setitem(survivors._uninterrupted, "kind", as_uninterrupted(TOLL))
    made: list[str] = []
    monkeypatch.setattr(survivors, "uninterrupted", lambda kind: made.append(kind) or as_uninterrupted({**TOLL, **now}))
    kill = Kill(survivors.ground, random.Random(0), None, 0.0)  # type: ignore[arg-type]
    apart = survivors._apart(kill, "kind", as_uninterrupted(TOLL))
    assert (["kind"], is_apart) == (made, bool(apart))
    assert "another answer" in kill.note["apart"][0]


def test_another_answer_stands_where_no_uninterrupted_run_can_be_made(
    survivors: Survivors, monkeypatch: pytest.MonkeyPatch
) -> None:

    def fails(_: str) -> looking.Uninterrupted:
        raise RuntimeError("no port")

    monkeypatch.setattr(striking, "tolls_of", lambda _: {"key": {**TOLL, "low": 1.8, "high": 2.0, "ratio": 1.9}})
    monkeypatch.setitem(survivors._uninterrupted, "kind", as_uninterrupted(TOLL))
    monkeypatch.setattr(survivors, "uninterrupted", fails)
    kill = Kill(survivors.ground, random.Random(0), None, 0.0)  # type: ignore[arg-type]
    assert ["another answer"] == [one[:14] for one in survivors._apart(kill, "kind", as_uninterrupted(TOLL))]
    assert "no port" == kill.note["not_compared_anew"]


def as_uninterrupted(toll: dict[str, object]) -> looking.Uninterrupted:
    """Return a quiet run with this toll."""
    return looking.Uninterrupted(Path("study.toml"), 1.0, 1.0, 4, {"key": toll})
