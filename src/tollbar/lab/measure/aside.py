"""Setting aside: which cells have failed so often that no more of their trials are made."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from tollbar.core.records import Outcome, SetAside, Trial

# One failure may be an accident, whatever share of the trials so far it is.
FEWEST_FAILURES = 2
# Accidents are one in hundreds. A cell of which every fourth trial fails does something else than what was proved, and
# what is left of it is a choice among its trials.
MOST_FAILING = 0.25
# All that is compared needs its baseline: that is given up where so many of its trials in a row have failed.
FEWEST_OF_BASELINE = 4


@dataclass(slots=True)
class Aside:
    """Counts the failures of one stretch of a run, from its beginning or resumption, and sets cells aside."""

    baselines: Collection[tuple[str, str]] = ()
    """(study, cell) of those that others are compared with."""
    set_aside: dict[tuple[str, str], SetAside] = field(default_factory=dict)
    _made: Counter[tuple[str, str]] = field(default_factory=Counter)
    _failed: Counter[tuple[str, str]] = field(default_factory=Counter)
    _in_a_row: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Failures since the last trial that did not fail."""

    def note(self, trials: Iterable[Trial]) -> list[SetAside]:
        """Counts these trials, and gives the cells that are set aside because of them."""
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
