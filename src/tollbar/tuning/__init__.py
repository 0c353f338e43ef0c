"""Tuning: a password hash's parameters to a time, with so many at once, above what policies ask for.

The time is elapsed time of one hash while so many are under way, on all that this process may use: where there are more
than cores, each waits for the others. What is proposed was itself measured so.
"""

from tollbar.tuning.algorithms import ALGORITHMS, Algorithm, Parameters
from tollbar.tuning.answers import Asked, Measured, Missed, Tuned, Tuning
from tollbar.tuning.attackers import Attackers, Card, Guesses, Moved, Rate, attackers, guesses
from tollbar.tuning.fitting import FAMILY, NEAR, asked, measure, of, tune
from tollbar.tuning.pasted import PLACES, pasted
from tollbar.tuning.together import MOST_AT_ONCE, Elapsed

__all__ = [
    "ALGORITHMS",
    "FAMILY",
    "MOST_AT_ONCE",
    "NEAR",
    "PLACES",
    "Algorithm",
    "Asked",
    "Attackers",
    "Card",
    "Elapsed",
    "Guesses",
    "Measured",
    "Missed",
    "Moved",
    "Parameters",
    "Rate",
    "Tuned",
    "Tuning",
    "asked",
    "attackers",
    "guesses",
    "measure",
    "of",
    "pasted",
    "tune",
]
