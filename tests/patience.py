"""Time limit for events that tests wait for.

It only ends hanging tests: on a busy machine an answer of a second may need a hundred. Tests of events that never come
set limits of their own.
"""

PATIENCE_S = 600.0
