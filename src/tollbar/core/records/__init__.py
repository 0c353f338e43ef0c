"""Records: the answers of runners, and the data that measuring keeps of them.

Measuring writes them, results store them, judging reads them. They import nothing else of Tollbar.
"""

from tollbar.core.records.chunks import Chunk, Chunks, Observations
from tollbar.core.records.contract import (
    CONTRACT,
    MOST_OF_REASON,
    ChunkRecord,
    Made,
    Observed,
    Outcome,
    Proof,
    Ready,
    Record,
    SliceRecord,
    failed,
)
from tollbar.core.records.load import ComponentRecord, LoadRecord, Negotiated, Requested, Steady, Totals
from tollbar.core.records.trial import CLIENT, RUNNER, Proven, SetAside, Trial, TrialKey

__all__ = [
    "CLIENT",
    "CONTRACT",
    "MOST_OF_REASON",
    "RUNNER",
    "Chunk",
    "ChunkRecord",
    "Chunks",
    "ComponentRecord",
    "LoadRecord",
    "Made",
    "Negotiated",
    "Observations",
    "Observed",
    "Outcome",
    "Proof",
    "Proven",
    "Ready",
    "Record",
    "Requested",
    "SetAside",
    "SliceRecord",
    "Steady",
    "Totals",
    "Trial",
    "TrialKey",
    "failed",
]
