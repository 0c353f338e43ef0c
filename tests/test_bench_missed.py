"""Figures that could not be measured miss their goal and give the reason."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench import chunks, client_core, database_sign_on, load, parity, probe, servers, upgrade, warm
from bench.clients import Measured
from bench.figures import Figure, Finished
from bench.parity import document
from bench.parity.counting import Absent, Row
from bench.parity.document import Part
from bench.studies import Unmeasured

from tollbar.catalog.libraries import Provider
from tollbar.core.moments import Quickness

true: Any = import_module("bench.true")


def missed(figures: Iterator[Figure] | list[Figure]) -> list[str]:
    """Return why each figure was missed, after checking that none was reached."""
    found = [*figures]
    assert [False] * len(found) == [figure.met for figure in found]
    return [figure.here for figure in found]


@pytest.mark.parametrize("goal", [0.85, None])
@pytest.mark.parametrize("lacking", ["ours", "ab"])
def test_a_load_client_that_is_not_there(goal: float | None, lacking: str) -> None:
    measured = {name: Measured((1.0,), "no such client" if name == lacking else None) for name in ("ours", "ab")}
    assert ["no such client"] == missed([load._beside("load: CPU", measured, "ab", goal)])


def test_a_sign_on_without_pgbench(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    (why,) = missed(database_sign_on.figures())
    assert why.startswith("no pgbench")


def test_a_platform_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = SimpleNamespace(lacks="no node", title="Node", name="node")
    monkeypatch.setattr(warm.runners, "all_platforms", lambda: {"node": lacking})
    assert ["not available here: no node"] == missed(warm.figures())


def test_a_server_that_was_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*_: object, **__: object) -> None:
        raise Unmeasured("`tollbar run` ended with status 2")

    monkeypatch.setattr(client_core, "measured", measured)
    assert ["`tollbar run` ended with status 2"] * 2 == missed(client_core.figures())


@pytest.mark.parametrize(("half", "met"), [(1.001, True), (1.2, False)], ids=["known", "not known"])
def test_ratios_that_are_not_known_so_well(monkeypatch: pytest.MonkeyPatch, half: float, met: bool) -> None:
    monkeypatch.setattr(client_core, "_cost_ns", lambda *_: 1000.0)
    monkeypatch.setattr(client_core, "toll", lambda *_, **__: {"ratio": 2.0, "low": 2.0 / half, "high": 2.0 * half})
    found = [figure.met for figure in client_core._of("nginx", {}) if "the ratio of" in figure.what]
    assert [met, met] == found


def seen(block: int, number: int) -> probe.Seen:
    had_probe = bool(number % 2)
    return probe.Seen(block, number // 2, had_probe, 1000.0 + number, 10, 100.0 + number, (100.0, 100.0))


def test_what_a_probe_does_that_is_not_known() -> None:
    quickness = Quickness(100.0, quick_share=1.0)
    why = missed(probe._effects({"RSA": [], "SHA": [seen(0, 0)]}, quickness))
    assert ["too few quiet moments in 0 chunks", "too few quiet moments in 1 chunks", "none is known"] == why
    missed([probe._done("RSA", 0.0, 2 * probe.EFFECT_GOAL)])
    assert probe._done("RSA", 0.0, probe.EFFECT_GOAL / 2).met is True
    assert ["0 chunks"] == missed([probe._explained("RSA", [], quickness)])


def test_a_bias_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks.machine, "keep_off", lambda _: None)
    monkeypatch.setattr(chunks.work, "core", lambda: 0)
    assert ["too few chunks with an unclocked beginning"] * 2 == missed(chunks.beginnings([("a", "b")] * 2, blocks=0))


def test_an_upgrade_without_a_libssl(system: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    row = ("sha-256", 16384)
    monkeypatch.setattr(upgrade, "open_provider", lambda _: system)
    monkeypatch.setattr(upgrade, "libssl_beside", lambda _: None)
    monkeypatch.setattr(upgrade, "_slower", lambda folder, _: folder / "slower")
    monkeypatch.setattr(upgrade, "_kinds", lambda _, new: {row: "dearer" if new.name == "slower" else "no change"})
    digests, tls, slower = upgrade.figures()
    assert (True, False, True) == (digests.met, tls.met, slower.met)
    assert tls.here.startswith("there is no libssl next to")


@pytest.mark.parametrize(
    ("costs_ns", "met"),
    [([1000.0, 1004.0], True), ([1021.0, 1025.0], False), ([980.0, 1020.0], False)],
    ids=["near", "far", "apart"],
)
def test_a_loop_must_be_near_and_known_well(costs_ns: list[float], met: bool) -> None:
    lab = [{"value": ns, "noisy": False} for ns in costs_ns]
    slices = [true.Slice(10_000.0 + number, 10, (100.0, 100.0)) for number in range(10)]
    assert met == true._beside("true: a loop", "within 2 %", lab, [slices] * 2, "all").met


def test_servers_that_had_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "timed", lambda *_, **__: Finished(1.0, 1, 0, '{"run": "one"}'))
    monkeypatch.setattr(servers.results, "read", lambda _: SimpleNamespace(studies=[]))
    assert ["no trial"] * 3 == missed(servers.figures())


ROW = Row("sha-256", "bytes=4096", "hash", "libcrypto", {"EVP_Digest": 1.0}, {})
OTHER = replace(ROW, choice="sha-512")
ABSENT = Absent("sha-512", "bytes=4096", "hash", "libcrypto", "libcrypto has no sha-512")


def counted(monkeypatch: pytest.MonkeyPatch, folder: Path, before: Part, now: Part) -> Figure:
    """Return the figure of a family's parity if the document has `before` and the count is `now`."""
    monkeypatch.setattr(parity, "DOCUMENT", folder / "parity.md")
    monkeypatch.setattr(parity, "PARTS", {"digest": []})
    monkeypatch.setattr(parity.counting, "lacking", lambda: None)
    monkeypatch.setattr(parity, "counted", lambda _: now)
    parity.DOCUMENT.write_text(document.written({"digest": before}), "utf-8")
    return next(parity.figures())


def test_counting_without_strace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity.counting, "lacking", lambda: "strace is not installed")
    assert ["strace is not installed"] == missed(parity.figures())


@pytest.mark.parametrize(
    ("before", "now", "met"),
    [
        (Part([ROW], []), Part([ROW], [ABSENT]), True),
        (Part([ROW, OTHER], []), Part([ROW, OTHER], []), True),
        (Part([ROW, OTHER], []), Part([ROW], []), True),
        (Part([ROW, OTHER], []), Part([ROW], [ABSENT]), False),
        (Part([ROW], []), Part([ROW], [replace(ABSENT, reason="failed: no answer within 180 s")]), False),
        (Part([ROW], []), Part([], []), False),
    ],
    ids=["never had", "all", "not asked any more", "had and has not", "failed", "nothing"],
)
def test_what_could_be_counted_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: Part, now: Part, met: bool
) -> None:
    assert met == counted(monkeypatch, tmp_path, before, now).met
    kept = document.read(parity.DOCUMENT.read_text("utf-8"))["digest"]
    assert (now if met else before).rows == kept.rows
