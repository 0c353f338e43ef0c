"""Limits of the numbers in studies and options, within which no number overflows or exhausts memory.

Each limit is far beyond the needs of a measurement. The comment next to it gives its reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from tollbar.core import units

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Limits:
    """Least and greatest accepted number, both as a person writes them, and an example."""

    least: float
    most: float
    words: str
    example: str

    def takes(self, number: float) -> bool:
        """Return whether the number is within the limits."""
        # False for `nan`, which is neither less nor greater.
        return self.least <= number <= self.most

    def check(self, number: Number) -> Number:
        """Return the number. Raises ValueError with a message that follows the name of a key or an option."""
        if not self.takes(number):
            raise ValueError(
                f"`{units.quoted(number)}` is out of range; it must be {self.words}, for example {self.example}"
            )
        return number


# Each block is measured separately and takes at least 0.01 s.
BLOCKS = Limits(1, 100_000, "at least one block and at most 100,000", "12")
# All rounds of a trial are kept in one row. With chunks of 5 ms, 10,000 rounds take 50 s.
ROUNDS = Limits(1, 10_000, "at least one round and at most 10,000", "10")
# A chunk's clock is reliable to a microsecond. A runner that takes longer than a minute counts as hung.
CHUNK_S = Limits(1e-6, 60, "from 1 us to 60 s", '"5 ms"')
# After a month the machine is no longer comparable with itself.
LONGEST_S = Limits(0, 31 * 86400, "at most 31 days", '"5 min"')
# A server that has not settled after a minute will not.
PAUSE_S = Limits(0, 60, "at most 60 s", '"5 s"')
# The number of blocks grows with the inverse square: 0.01 % needs some hundred million.
PRECISION = Limits(1e-4, 0.999, "from 0.01 % to 99.9 %", '"2 %"')
# Twice the cost is a difference of 100 %.
THRESHOLD = Limits(0, 1, "from 0 % to 100 %", '"3 %"')
# Costs that differ by a factor of a billion cannot be measured in one study.
RATIO = Limits(1e-9, 1e9, "a number above zero, from 1e-9 to 1e9", "2.0")
# Each user has a connection, and the guard allows a server about ten thousand.
USERS = Limits(1, 10_000, "at least one user and at most 10,000", "8")
# At least one request must arrive within the longest chunk, a minute.
RATE_HZ = Limits(0.02, 1_000_000, "from 0.02 /s to 1,000,000 /s", '"200 /s"')
# Each user must send a request within the longest chunk, a minute.
THINK_S = Limits(0, 30, "at most 30 s", '"100 ms"')
# HTTP status codes.
STATUS = Limits(100, 599, "from 100 to 599", "200")
# Runners and servers keep the body in memory.
BODY_BYTES = Limits(0, 1 << 30, "at most 1 GiB", "4096")
# More cores than any machine has.
THREADS = Limits(1, 1024, "at least one thread and at most 1,024", "2")
# The greatest number that fits into a task, a run and its database.
SEED = Limits(0, (1 << 63) - 1, "a whole number from 0 to 2^63 - 1", "1")
# The kernel's greatest process id.
PROCESS = Limits(1, 1 << 22, "a process id, from 1 to 4194304", "1234")
