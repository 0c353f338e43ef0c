"""Gathering: the tolls of many runs side by side, by machine.

What was judged of a run is kept in its directory (`kept`), so that hundreds are read in seconds; a run that keeps
nothing of this version is judged from its chunks. `reading` looks at directories that others may have made, and refuses
with a reason; `gathered` sets tolls side by side. Runs of one machine are observations of one toll: their range
is told, and nothing is estimated of them together.
"""

from tollbar.gathering.gathered import Gathered, Machine, Observation, Pattern, Place, TollRow, gather
from tollbar.gathering.kept import keep
from tollbar.gathering.reading import Found, Refused, Unusable, read

__all__ = [
    "Found",
    "Gathered",
    "Machine",
    "Observation",
    "Pattern",
    "Place",
    "Refused",
    "TollRow",
    "Unusable",
    "gather",
    "keep",
    "read",
]
