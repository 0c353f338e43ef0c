"""Results: a run's directory, written as each trial ends and read back whole.

The studies as they were, `run.json` (command, seed, fingerprint, receipts), `results.sqlite` (cells, proofs,
trials with their batches, events), `report.html`. Nothing that was measured is thrown away.
"""

from tollbar.results.export import export
from tollbar.results.reading import about, read, studies
from tollbar.results.run import Row, Run, StudyRun
from tollbar.results.store import Store, create, look, reopen, update_about

__all__ = [
    "Row",
    "Run",
    "Store",
    "StudyRun",
    "about",
    "create",
    "export",
    "look",
    "read",
    "reopen",
    "studies",
    "update_about",
]
