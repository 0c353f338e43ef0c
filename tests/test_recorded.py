"""Recorded chunks: halves of a run agree as often as their intervals claim, and A/A pairs cost the same.

`tests/recorded/record.py` makes such a file from a run; each file next to it is replayed here.
"""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import builders
from disturbed import Disturbance, Kind, Work, pareto
from simulated import Lab
from tollbar.analysis import Verdict
from tollbar.analysis.decisions import Terms
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.probes import readings
from tollbar.analysis.tolls import tolls
from tollbar.core import intervals
from tollbar.core.moments import Quickness, quickness_of
from tollbar.core.records import RUNNER, Chunk, Trial
from tollbar.results import Row

FOLDER = Path(__file__).with_name("recorded")
RECORDED = sorted(FOLDER.glob("*.json.gz"))
# All recordings together: they are copied with the sources.
MOST_BYTES = 300_000
TERMS = Terms(threshold=0.03, interim_looks=1)
# Too many or too few misses may come by chance in one check-out of a thousand.
BY_CHANCE = 0.001

Half = Callable[[int, int], bool]
"""Predicate: whether a block, of a number of blocks, belongs to the first of two halves."""
HALVES: dict[str, Half] = {
    "odd and even": lambda block, blocks: block % 2 == 1,
    "first and second": lambda block, blocks: 2 * block < blocks,
}


@dataclass(frozen=True, slots=True)
class Recording:
    """Recorded run of a study, as the judge takes it."""

    rows: tuple[Row, ...]
    quickness: Quickness

    @property
    def blocks(self) -> int:
        return 1 + max(trial.block for row in self.rows for trial in row.all_trials)

    def ledger(self, has: Callable[[int], bool] = lambda block: True) -> Ledger:
        """Return the ledger of these blocks; quiet moments are known from all of the recording."""
        rows = [
            replace(
                row,
                trials=tuple(trial for trial in row.trials if has(trial.block)),
                repeats=tuple(trial for trial in row.repeats if has(trial.block)),
            )
            for row in self.rows
        ]
        return Ledger(rows, TERMS, quickness=self.quickness)


@cache
def recording(path: Path) -> Recording:
    return read(json.loads(gzip.decompress(path.read_bytes())))


def read(said: dict[str, Any]) -> Recording:
    """Read the output of `record.py`."""
    chunks: dict[tuple[int, bool, int, int], list[Chunk]] = defaultdict(list)
    for cell, repeat, block, batch, number, made_up, operations, cost_ns, *probes in said["chunks"]:
        probes_ns = tuple(float(ns) for ns in probes if ns is not None) or None
        chunks[cell, bool(repeat), block, batch].append(
            Chunk(number, operations, cost_ns, {RUNNER: cost_ns}, probes_ns=probes_ns, is_made_up=bool(made_up))
        )
    trials: dict[tuple[int, bool], list[Trial]] = defaultdict(list)
    for (cell, repeat, block, batch), found in sorted(chunks.items(), key=lambda item: item[0]):
        one = builders.trial(1.0, block=block, batch=batch, repeat=repeat)
        trials[cell, repeat].append(replace(one, chunks=tuple(found)))
    names = [f"{place} {title}" for place, (title, _) in enumerate(said["cells"])]
    rows = tuple(
        replace(
            builders.row({"choice": names[place]}, against=None if against is None else names[against]),
            trials=tuple(trials[place, False]),
            repeats=tuple(trials[place, True]),
        )
        for place, (_, against) in enumerate(said["cells"])
    )
    return Recording(rows, quickness_of(readings(rows), said["best_probe_ns"]))


def agreements(of: Recording, is_first: Half) -> Iterator[tuple[str, bool]]:
    """Yield for each toll whether its two halves agree within their intervals."""
    blocks = of.blocks
    one, other = (of.ledger(lambda block, side=side: is_first(block, blocks) is side) for side in (True, False))  # type: ignore[misc]
    for row in of.rows:
        if row.against is None:
            continue
        ratios = [ledger.best_ratio(ledger.by_key[row.key], ledger.by_key[row.against]) for ledger in (one, other)]
        found = [ratio for ratio in ratios if ratio is not None and ratio.is_bounded]
        # A disturbance of one half alone may separate the two.
        if len(found) == 2 and found[0].moments is found[1].moments:
            change = intervals.quotient(*found)
            yield row.key, change.low <= 1 <= change.high


def at_most(number: int, of: int, probability: float) -> float:
    """Return the chance of this number or fewer."""
    return math.fsum(math.comb(of, k) * probability**k * (1 - probability) ** (of - k) for k in range(number + 1))


def test_halves_agree_as_often_as_they_say() -> None:
    """Over all tolls of all recordings: as many misses as chance makes of 93 to 99 % intervals."""
    found = [agrees for path in RECORDED for half in HALVES.values() for _, agrees in agreements(recording(path), half)]
    misses = found.count(False)
    print(f"{len(found)} halves of tolls: {misses} apart by more than their intervals say")
    assert len(found) >= 8
    assert at_most(len(found) - misses, len(found), 0.93) > BY_CHANCE
    assert at_most(misses, len(found), 0.01) > BY_CHANCE


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_repeats_are_told_apart_by_nothing(path: Path) -> None:
    found = tolls(recording(path).ledger(), {"choice": "the baseline"})
    repeats = [toll for toll in found if toll.row is toll.against and toll.ratio is not None and toll.ratio.is_bounded]
    assert repeats
    assert not {Verdict.COSTS, Verdict.SAVES} & {toll.verdict for toll in repeats}
    assert any(Verdict.FREE is toll.verdict for toll in repeats)


def test_recordings_are_small() -> None:
    """Everyone downloads them."""
    assert MOST_BYTES >= sum(path.stat().st_size for path in RECORDED)


def test_a_recording_is_what_was_judged(tmp_path: Path) -> None:
    neighbour = Disturbance(((0.0, pareto(0.05, 1.4)), (0.3, pareto(0.01, 1.4))))
    with Lab(Kind((neighbour,), best_probe_ns=24_900.0), [Work(20_000), Work(90_000)], 3, blocks=5) as lab:
        lab.measure(5)
        run = lab.look()
        command = [sys.executable, str(FOLDER / "record.py"), str(run.directory), "virtual"]
        done = subprocess.run(command, capture_output=True, check=True)
    (tmp_path / "one.json.gz").write_bytes(done.stdout)
    replayed = recording(tmp_path / "one.json.gz")
    (there,) = run.studies
    quickness = quickness_of(readings(there.rows), run.best_probe_ns)
    assert quickness.quick_share == replayed.quickness.quick_share
    ledger, again = Ledger(there.rows, TERMS, quickness=quickness), replayed.ledger()
    for row, same in zip(there.rows, replayed.rows, strict=True):
        assert row.against is not None
        assert same.against is not None
        expected = ledger.best_ratio(row, ledger.by_key[row.against])
        assert expected is not None
        assert expected == again.best_ratio(again.by_key[same.key], again.by_key[same.against])
