"""The probe: a session of its own on each core that is measured on, asked before and after every chunk."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from tollbar.moments import PROBE
from tollbar.runner import Session, Stopped, engine

_READY_LIMIT_S = 30.0
# It works for some tens of microseconds; on a core that other programs hold it waits for its turn.
_LIMIT_S = 10.0
# A reading is of its moment: what comes later is asked again.
_FRESH_S = 0.002


class Probe:
    """A probe of one core, or of several as one: a moment is as quiet as the least quiet of them. A context: outside it
    nothing of it is left.

    One that ends says nothing more: the chunks beside it then have no witness, and count as disturbed.
    """

    def __init__(self, *cores: int, elsewhere: Sequence[Sequence[str]] = ()) -> None:
        self._sessions: list[Session] = []
        self._best_ns: list[float] = []
        """The least that each has read: cores of several machines differ; what is asked is how disturbed they are."""
        self._last_ns: float | None = None
        self._read_s = 0.0
        self.asked_s = 0.0
        """How long all its readings have taken."""
        try:
            for core in cores:
                self._sessions.append(Session((str(engine()), "op"), PROBE, core=core))
            for command in elsewhere:
                self._sessions.append(Session(command, PROBE))
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Probe:
        try:
            for session in self._sessions:
                session.ready(_READY_LIMIT_S)
            self.read()
        except Stopped:
            self._end()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def read(self) -> float | None:
        """Nanoseconds that the probe's work takes now, on the core where it takes most; None once one has ended."""
        if not self._sessions:
            return None
        started_s = time.monotonic()
        try:
            readings = [float(session.advance(0.0, 1, _LIMIT_S).cpu_ns) for session in self._sessions]
            self._best_ns = [min(pair) for pair in zip(readings, self._best_ns or readings, strict=True)]
            first_ns = self._best_ns[0]
            self._last_ns = max(ns * first_ns / best for ns, best in zip(readings, self._best_ns, strict=True))
        except Stopped:
            self._end()
        self._read_s = time.monotonic()
        self.asked_s += self._read_s - started_s
        return self._last_ns

    def lately(self) -> float | None:
        """The last reading, if that was a moment ago: what was read after one chunk holds for the start of the next."""
        return self._last_ns if time.monotonic() - self._read_s <= _FRESH_S else self.read()

    def _end(self) -> None:
        for session in self._sessions:
            session.__exit__(None, None, None)
        self._sessions, self._last_ns = [], None
