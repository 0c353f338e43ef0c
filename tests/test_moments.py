"""Quiet moments: found from a run's probes, and the kept best probe."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from tollbar.core import moments
from tollbar.core.moments import Watch, best_known, keep_best, quickness_of

HERE = ("Some CPU @ 2 GHz", "6.1.0", "engine 1 00aa")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache of the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def probes(quiet: int, busy: int = 0, *, quickest_ns: float = 25_000.0) -> list[float]:
    """Return readings with given numbers of quiet and of disturbed ones, shuffled."""
    source = Random(1)
    found = [quickest_ns * math.exp(source.uniform(0.0, 0.08)) for _ in range(quiet)]
    found += [quickest_ns * math.exp(source.uniform(0.3, 0.5)) for _ in range(busy)]
    return source.sample(found, len(found))


def test_one_mode_is_all_quiet() -> None:
    found = quickness_of(probes(500))
    assert 1.0 == found.quick_share
    assert (True, True, None) == (found.is_known, found.was_ever_quiet, found.slower_than_known)


def test_of_two_modes_the_quick_one_is_quiet() -> None:
    """The neighbour is there for two thirds of the time."""
    readings = probes(100, 200)
    found = quickness_of(readings)
    assert math.isclose(1 / 3, found.quick_share)
    assert found.was_ever_quiet
    assert [True, True, False, False] == [found.is_quick(25_000 * math.exp(d)) for d in (0.0, 0.09, 0.2, 0.4)]


def test_one_lucky_reading_is_not_the_quickest() -> None:
    assert 1.0 == quickness_of([*probes(500), 12_000.0]).quick_share


def test_without_probes_nothing_is_quiet() -> None:
    found = quickness_of([])
    assert (False, False, None, 0.0) == (
        found.is_known,
        found.was_ever_quiet,
        found.slower_than_known,
        found.quick_share,
    )
    assert not quickness_of([], 25_000.0).was_ever_quiet


def test_a_machine_that_was_never_quiet_is_known_by_earlier_runs() -> None:
    """The quickest probes are slower than earlier ones of this machine."""
    readings = probes(300, quickest_ns=25_000 * math.exp(0.3))
    assert quickness_of(readings).was_ever_quiet
    found = quickness_of(readings, 25_000.0)
    assert not found.was_ever_quiet
    assert math.isclose(math.exp(0.3), found.slower_than_known or 0.0, rel_tol=0.01)
    # Faster than ever, or equal: the firmware was changed, or it is a better hour.
    assert quickness_of(readings, 1.09 * 25_000 * math.exp(0.3)).was_ever_quiet
    assert quickness_of(readings, 25_000 * math.exp(0.25)).was_ever_quiet


def test_the_tail_of_one_busy_mode_is_not_quiet() -> None:
    """A few quick readings among thousands are no moments in which a study was measured."""
    readings = probes(30, 970)
    assert 0.03 == quickness_of(readings).quick_share
    assert not quickness_of(readings).was_ever_quiet
    assert quickness_of(probes(60, 940)).was_ever_quiet


def test_a_neighbour_that_is_nearly_always_there_is_not_taken_for_quiet() -> None:
    """The neighbour slows the probe by only a fifth; the few quiet readings show its cost."""
    source = Random(2)
    beside_it = [25_000.0 * math.exp(source.uniform(0.18, 0.35)) for _ in range(3_000)]
    found = quickness_of([*beside_it, *probes(15)])
    assert not found.was_ever_quiet
    assert not found.is_quick(25_000.0 * math.exp(0.2))


def test_a_watch_learns_what_is_quick() -> None:
    """Readings during the measurement improve the estimate; without any there is nothing to wait for."""
    watch = Watch()
    assert not watch.is_quick(25_000.0)
    watch.note(40_000.0)
    assert watch.is_quick(40_000.0)
    for reading in (25_500.0, 26_000.0, 25_000.0):
        watch.note(reading)
    assert [True, False] == [watch.is_quick(reading) for reading in (26_000.0, 40_000.0)]
    assert [25_000.0, 25_500.0, 26_000.0, 40_000.0] == watch.readings


def test_a_watch_that_knows_the_machine_is_not_deceived_by_its_first_readings() -> None:
    watch = Watch(25_000.0)
    assert watch.is_quick(25_000.0)
    watch.note(40_000.0)
    assert not watch.is_quick(40_000.0)
    for _ in range(10):
        watch.note(20_000.0)
    assert not watch.is_quick(25_000.0)


def test_a_watch_says_in_the_end_what_the_judge_says() -> None:
    readings = probes(200, 300)
    watch, found = Watch(), quickness_of(readings)
    for reading in readings:
        watch.note(reading)
    assert [found.is_quick(reading) for reading in readings] == [watch.is_quick(reading) for reading in readings]


def test_the_best_is_kept_for_the_processor_and_kernel(cache: Path) -> None:
    assert best_known(HERE) is None
    keep_best(HERE, [26_000.0] * 60)
    assert 26_000.0 == best_known(HERE)
    keep_best(HERE, [30_000.0] * 60)
    assert 26_000.0 == best_known(HERE)
    keep_best(HERE, [25_000.0] * 60)
    assert 25_000.0 == best_known(HERE)
    assert best_known((*HERE[:1], "6.2.0", HERE[2])) is None
    assert best_known(("Another CPU", *HERE[1:])) is None
    # Another compiler makes another probe.
    assert best_known((*HERE[:2], "engine 1 00ab")) is None


def test_few_readings_are_not_kept(cache: Path) -> None:
    keep_best(HERE, [25_000.0] * 49)
    assert best_known(HERE) is None
    assert not cache.exists()


def test_an_old_entry_says_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a month the firmware, the host or the power supply may differ; a new best is kept then."""
    keep_best(HERE, [25_000.0] * 60)
    now = moments.time.time()
    monkeypatch.setattr(moments.time, "time", lambda: now + 31 * 86400)
    assert best_known(HERE) is None
    keep_best(HERE, [27_000.0] * 60)
    assert 27_000.0 == best_known(HERE)


@pytest.mark.parametrize(
    "text",
    [
        *("", "rubbish", "[]", '{"probe_ns": 25000}', '{"at_s": "x", "probe_ns": 1}', "null"),
        # Impossible probe times, and times in the future.
        *(f'{{"at_s": NOW, "probe_ns": {ns}}}' for ns in ("0", "-5", "1e-9", "1e400", "9" * 400, "true")),
        '{"at_s": 99999999999, "probe_ns": 20000}',
    ],
)
def test_an_unreadable_entry_says_nothing_and_is_replaced(cache: Path, text: str) -> None:
    keep_best(HERE, [25_000.0] * 60)
    (path,) = written(cache)
    path.write_text(text.replace("NOW", str(moments.time.time())))
    assert best_known(HERE) is None
    keep_best(HERE, [25_000.0] * 60)
    assert 25_000.0 == best_known(HERE)
    assert [*HERE] == json.loads(path.read_text())["machine"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    keep_best(HERE, [25_000.0] * 60)
    assert best_known(HERE) is None


def written(cache: Path) -> Sequence[Path]:
    """Return the files of the cache."""
    return [path for path in cache.rglob("*") if path.is_file()]
