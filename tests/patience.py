"""Time limit for events that tests wait for.

It ends only what hangs: next to busy programs an answer of a second may need a hundred. What never comes has a limit of
its own where it is tried.
"""

PATIENCE_S = 600.0
