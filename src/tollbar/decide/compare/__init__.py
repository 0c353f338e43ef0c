"""Comparison of many runs: their tolls side by side, by machine.

Each run's directory keeps its judgement (`kept`), so hundreds are read in seconds; a run without a current judgement is
refused with the command that makes one. `reading` checks directories from others and refuses with a reason; `gathered`
sets tolls side by side. Runs of one machine are observations of one toll: `combining` makes one interval of them, next
to their range. `patterns` compares processor flags with chance.
"""

from tollbar.analysis.kept import keep
from tollbar.decide.compare.found_runs import ReadRun, Refused, Unusable, read
from tollbar.decide.compare.gathered import Gathered, gather
from tollbar.decide.compare.patterns import Pattern, Patterns
from tollbar.decide.compare.places import Machine, MachineToll, Observation, TollRow

__all__ = [
    "Gathered",
    "Machine",
    "MachineToll",
    "Observation",
    "Pattern",
    "Patterns",
    "ReadRun",
    "Refused",
    "TollRow",
    "Unusable",
    "gather",
    "keep",
    "read",
]
