"""Quarantine: cells that failed too often get no further trials."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from tollbar.core.records import Outcome, SetAside, Trial

# A single failure may be an accident, whatever its share of the trials so far.
FEWEST_FAILURES = 2
# Accidents are one in hundreds. A cell of which every fourth trial fails does not do what was proved, and its
# successful trials are a biased selection.
MOST_FAILING = 0.25
# All comparisons need the baseline, so it is only given up after this number of failures in a row.
FEWEST_OF_BASELINE = 4


@dataclass(slots=True)
class Aside:
    """Counter of the failures since a run's beginning or resumption; it quarantines cells."""

    baselines: Collection[tuple[str, str]] = ()
    """(study, cell) of the baselines."""
    set_aside: dict[tuple[str, str], SetAside] = field(default_factory=dict)
    _made: Counter[tuple[str, str]] = field(default_factory=Counter)
    _failed: Counter[tuple[str, str]] = field(default_factory=Counter)
    _in_a_row: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Failures since the last successful trial."""

    def note(self, trials: Iterable[Trial]) -> list[SetAside]:
        """Count these trials. Return the cells that they quarantine."""
        found = []
        for trial in trials:
            cell = trial.study, trial.cell
            self._made[cell] += 1
            if trial.outcome is Outcome.OK:
                self._in_a_row[cell] = 0
                continue
            self._failed[cell] += 1
            self._in_a_row[cell] += 1
            if cell not in self.set_aside and self._fails_too_often(cell):
                reason = trial.reason or str(trial.outcome)
                counts = self._failed[cell], self._made[cell]
                self.set_aside[cell] = SetAside(*cell, trial.order, *counts, reason, time.time())
                found.append(self.set_aside[cell])
        return found

    def _fails_too_often(self, cell: tuple[str, str]) -> bool:
        failed, made = self._failed[cell], self._made[cell]
        if cell in self.baselines:
            return self._in_a_row[cell] >= FEWEST_OF_BASELINE
        return failed >= FEWEST_FAILURES and failed > MOST_FAILING * made
