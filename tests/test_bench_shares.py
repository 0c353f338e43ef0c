"""Figures of how often the lab is right.

An undecided comparison is no right answer, and a tree that measured nothing has no figure.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench import check_tolls, on_ray, repeatable, sign_in, tune, upgrade
from bench.figures import Finished
from bench.repeatable import Said
from bench.studies import Unmeasured


@pytest.mark.parametrize(("again_s", "met"), [(0.25, True), (0.262, True), (0.2, False), (0.27, False)])
def test_a_proposal_is_near_if_it_is_when_measured_again(
    monkeypatch: pytest.MonkeyPatch, again_s: float, met: bool
) -> None:

    def measured(median_s: float) -> Any:
        return SimpleNamespace(parameters={}, elapsed=SimpleNamespace(median_s=median_s))

    proposed = SimpleNamespace(choice=None, provider=None, measured=measured(0.25))
    monkeypatch.setattr(tune.tune, "asked", lambda *_, **__: None)
    monkeypatch.setattr(tune.tune, "tune", lambda _: [proposed])
    monkeypatch.setattr(tune.tune, "measure", lambda *_: measured(again_s))
    assert met == tune._figure("argon2id", 0.25).met


@pytest.mark.parametrize(
    ("verdicts", "met"),
    [
        ({"within": 40}, True),
        ({"within": 36, "cannot tell": 4}, True),
        ({"within": 35, "cannot tell": 5}, False),
        ({"within": 1, "cannot tell": 39}, False),
        ({"within": 39, "over": 1}, False),
    ],
)
def test_checks_of_no_change_are_to_tell(monkeypatch: pytest.MonkeyPatch, verdicts: dict[str, int], met: bool) -> None:
    given = iter([*Counter(verdicts).elements(), *["over"] * check_tolls.INJECTED])

    def checked(_: Path, *words: str) -> tuple[dict[str, Any], float]:
        return ({"new_limit": 1.02} if words else {"verdict": next(given)}), 10.0

    monkeypatch.setattr(check_tolls, "_checked", checked)
    monkeypatch.setattr(check_tolls, "_neighbour", nullcontext)
    assert [None, met, True] == [figure.met for figure in check_tolls.figures()]


@pytest.mark.parametrize(
    ("rows", "met"),
    [
        ({"no change": 32, "cannot tell": 8}, True),
        ({"no change": 31, "cannot tell": 9}, False),
        ({"no change": 21, "cannot tell": 19}, False),
        ({"no change": 31, "not measured": 9}, False),
        ({"no change": 39, "dearer": 1}, False),
        ({}, False),
    ],
)
def test_upgrades_of_nothing_are_to_tell(rows: dict[str, int], met: bool) -> None:
    assert met == upgrade._of_nothing("upgrades", Counter(rows)).met


@pytest.mark.parametrize(("status", "out"), [(0, '{"changes": []}'), (1, '{"changes": []}'), (2, "")])
def test_an_upgrade_that_compares_nothing_is_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, out: str
) -> None:
    monkeypatch.setattr(upgrade, "timed", lambda *_, **__: Finished(1.0, 1, status, out))
    with pytest.raises(Unmeasured, match=f"status {status}"):
        upgrade._kinds(tmp_path, tmp_path / "libcrypto.so.3")


def said(*, quiet_share: float, **toll: object) -> Said:
    """Return a run of one study with one toll."""
    row = {"metric": "cpu", "choice": "tls-1.3", "provider": "aws-lc", "server": None, "setting": {}, "aa": False}
    judged = {"ratio": 2.0, "low": 1.98, "high": 2.02, "noisy": False, "reason": None, **toll}
    study = {"tolls": [row | judged], "quiet_share": quiet_share, "claims": []}
    return Said(Finished(10.0, 1, 0, ""), {"tls": study}, datetime.now())


@pytest.mark.parametrize(
    ("quiet_share", "toll", "met"),
    [
        (0.9, {}, True),
        (0.9, {"low": 1.0, "high": 4.0}, False),
        (0.9, {"ratio": None, "low": None, "high": None, "reason": "it failed"}, False),
        (0.1, {}, False),
    ],
    ids=["narrow", "wide", "failed", "no study was quiet"],
)
def test_the_quick_set_is_known_where_something_was_quiet(
    monkeypatch: pytest.MonkeyPatch, quiet_share: float, toll: dict[str, object], met: bool
) -> None:
    monkeypatch.setattr(repeatable, "_run", lambda *_: said(quiet_share=quiet_share, **toll))
    (figure,) = (one for one in repeatable.quick() if "where half of the moments were quiet" in one.what)
    assert met == figure.met


@pytest.mark.parametrize(
    ("toll", "met"),
    [
        ({}, True),
        ({"low": None, "high": None}, False),
        ({"ratio": None, "low": None, "high": None, "reason": "it failed"}, False),
    ],
    ids=["an interval", "no interval", "no ratio"],
)
def test_runs_in_a_row_have_each_toll(monkeypatch: pytest.MonkeyPatch, toll: dict[str, object], met: bool) -> None:
    runs = iter([said(quiet_share=0.9, **toll), *(said(quiet_share=0.9) for _ in range(5))])
    monkeypatch.setattr(repeatable, "_run", lambda *_: next(runs))
    (figure,) = (one for one in repeatable.six(["tls"]) if "without a ratio or an interval" in one.what)
    assert met == figure.met


def test_a_run_with_failed_cells_is_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeatable, "timed", lambda *_, **__: Finished(1.0, 1, 1, '{"studies": []}'))
    with pytest.raises(Unmeasured, match="status 1"):
        repeatable._run(["tls"], tmp_path)
    assert [False] == [figure.met for figure in repeatable.six()]


def simulated(monkeypatch: pytest.MonkeyPatch, trials: list[int], status: int = 0) -> None:
    """Simulate fleets that end with this status and have these numbers of trials on each node."""
    runs = {Path(str(number)): [float(trial) for trial in range(count)] for number, count in enumerate(trials)}
    monkeypatch.setattr(on_ray, "timed", lambda *_, **__: Finished(1.0, 1, status, ""))
    monkeypatch.setattr(on_ray, "_runs", lambda _: [*runs])
    monkeypatch.setattr(on_ray, "_moments_s", runs.__getitem__)


def test_a_fleet_has_begun_where_all_of_its_nodes_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated(monkeypatch, [4, 4, 4])
    assert on_ray._start(tmp_path).met is True
    for trials in ([4], [4, 4], [4, 4, 0], [4, 4, 3]):
        simulated(monkeypatch, trials)
        with pytest.raises(Unmeasured, match="3 nodes have"):
            on_ray._start(tmp_path)


def test_a_fleet_that_fails_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated(monkeypatch, [4, 4, 4], status=1)
    found = [*on_ray.figures()]
    assert [False] * 3 == [figure.met for figure in found]
    assert all("ended with status 1" in figure.here for figure in found)


@pytest.mark.parametrize("fails", [False, True])
def test_the_cache_of_the_parts_after_signing_in_is_the_users(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    seen = []

    def start(*_: object) -> Any:
        seen.append(os.environ["XDG_CACHE_HOME"])
        if fails:
            raise OSError("no Samba")
        return nullcontext()

    monkeypatch.setenv("XDG_CACHE_HOME", "/users/own")
    for name in ("here", "service"):
        monkeypatch.setattr(sign_in.servers, name, lambda _: None)
    monkeypatch.setattr(sign_in.libraries, "resolve", lambda _: [None])
    monkeypatch.setattr(sign_in, "Request", lambda *_, **__: None)
    monkeypatch.setattr(sign_in, "Sandbox", nullcontext)
    monkeypatch.setattr(sign_in.driver, "start", start)
    with pytest.raises(OSError, match="no Samba") if fails else nullcontext():
        list(sign_in._directory())
    assert "/users/own" not in seen
    assert "/users/own" == os.environ["XDG_CACHE_HOME"]
