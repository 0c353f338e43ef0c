"""Tuning: password hash parameters for a given time at a given concurrency, within the policies' limits.

The time is elapsed time of one hash while that number is under way, on all cores that this process may use: with more
hashes than cores, each waits for the others. Every proposal was itself measured so.
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
