"""Tuning: a password hash's parameters to a time, with so many at once, above what policies ask for.

The time is elapsed time of one hash while so many are under way, on all that this process may use: where there are more
than cores, each waits for the others. What is proposed was itself measured so.
"""

from tollbar.decide.tune.algorithms import ALGORITHMS, Algorithm, Parameters
from tollbar.decide.tune.answers import Asked, Measured, Missed, Tuned, Tuning
from tollbar.decide.tune.attackers import Attackers, Card, Guesses, Moved, Rate, attackers, guesses
from tollbar.decide.tune.fitting import FAMILY, NEAR, asked, measure, of, tune
from tollbar.decide.tune.pasted import PLACES, pasted
from tollbar.decide.tune.together import MOST_AT_ONCE, Elapsed

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
