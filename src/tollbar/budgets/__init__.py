"""Budgets: what one choice may cost beside another, and what a measured ratio says of that.

Ratios alone, never nanoseconds: a slower machine breaks no budget. `policies.read_project` reads them from a project's
`tollbar.toml`, a run measures each as a study, and `judged` says what came of it.
"""

from tollbar.budgets.accepting import accepted
from tollbar.budgets.judging import (
    PRECISION,
    Check,
    CheckedBudget,
    Found,
    judged,
    left_out,
    processor_of,
    refuse_other_than_one,
    study_of,
)

__all__ = [
    "PRECISION",
    "Check",
    "CheckedBudget",
    "Found",
    "accepted",
    "judged",
    "left_out",
    "processor_of",
    "refuse_other_than_one",
    "study_of",
]
