"""Results: a run's directory, written as each batch ends and read back whole.

It contains the studies and their families as they were, `run.json` (command, seed, fingerprint, receipts, looks),
`results.sqlite` (cells, proofs, batches, trials, observations of their rounds, events), `report.html`, and the
judgement, `judged.json`. No measurement is thrown away.
"""

from tollbar.results.changes import changes, made_with
from tollbar.results.export import export, free_names, write
from tollbar.results.looks import present
from tollbar.results.reading import read, studies
from tollbar.results.run import Row, Run, StudyRun
from tollbar.results.run_json import about, refuse_resumption
from tollbar.results.store import Store, create, measured_as, note_interim_look, reopen, update_about, why_not_begun

__all__ = [
    "Row",
    "Run",
    "Store",
    "StudyRun",
    "about",
    "changes",
    "create",
    "export",
    "free_names",
    "made_with",
    "measured_as",
    "note_interim_look",
    "present",
    "read",
    "refuse_resumption",
    "reopen",
    "studies",
    "update_about",
    "why_not_begun",
    "write",
]
