"""The probe: a session on each measured core, read before and after every chunk."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from tollbar.core.moments import CHAIN, PROBE, Core, Watch
from tollbar.core.runner import Session, Stopped, engine

_READY_LIMIT_S = 30.0
# The work takes some tens of microseconds, but waits for its turn if other programs have the core.
_LIMIT_S = 10.0
# Age limit of a reading; a later use reads again.
_FRESH_S = 0.002
# Chains read together: enough for a quiet one, within some milliseconds.
_CHAINS = 24
# Reading of a core's best if machines are compared: equal in all batches, and after each resumption.
BASE_NS = 25_000.0


class Probe:
    """Probe of one core, or of several as one, as a context; after it no process is left.

    The reading of several cores is that of the least quiet one. If a session ends, there are no further readings, and
    chunks without them count as noisy.
    """

    def __init__(self, *cores: Core, best_of: dict[Core, float] | None = None, base_ns: float | None = None) -> None:
        """Start a session on each core.

        `best_of` keeps the least nanoseconds that each core has read in the run. Cores of several machines differ, so
        each is compared with its own best. The greatest ratio is reported as a multiple of `base_ns`, or without it of
        the first core's best.
        """
        self._sessions: dict[Core, Session] = {}
        self._best_of = {} if best_of is None else best_of
        self._base_ns = base_ns
        self._last_ns: float | None = None
        self._read_s = 0.0
        self.asked_s = 0.0
        """Total duration of its readings."""
        try:
            for core in cores:
                command, pinned = ((str(engine()), "op"), core) if isinstance(core, int) else (core, None)
                self._sessions[core] = Session(command, PROBE, core=pinned)
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Probe:
        try:
            for session in self._sessions.values():
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

    @property
    def is_plain(self) -> bool:
        """True if its readings are nanoseconds of one core, comparable with a runner's own."""
        return self._base_ns is None and [*map(type, self._sessions)] == [int]

    def read(self) -> float | None:
        """Return the current duration of the probe's work in nanoseconds, on the slowest core.

        None once a session has ended.
        """
        if not self._sessions:
            return None
        started_s = time.monotonic()
        try:
            self._last_ns = self._compared(
                {core: float(session.advance(0.0, 1, _LIMIT_S).cpu_ns) for core, session in self._sessions.items()}
            )
        except Stopped:
            self._end()
        self._read_s = time.monotonic()
        self.asked_s += self._read_s - started_s
        return self._last_ns

    def lately(self) -> float | None:
        """Return the last reading if it is recent, else a new one: a reading after one chunk also serves the next."""
        return self._last_ns if time.monotonic() - self._read_s <= _FRESH_S else self.read()

    def _compared(self, readings: Mapping[Core, float]) -> float:
        for core, ns in readings.items():
            self._best_of[core] = min(ns, self._best_of.get(core, ns))
        base_ns = self._base_ns or self._best_of[next(iter(readings))]
        return max(ns * base_ns / self._best_of[core] for core, ns in readings.items())

    def _end(self) -> None:
        for session in self._sessions.values():
            session.__exit__(None, None, None)
        self._sessions, self._last_ns = {}, None


class Chain:
    """Chain of dependent steps in a first run, which a neighbour hardly slows, as a context.

    No process outlives it. One session serves all batches, because its start takes longer than its readings. If it
    ends, this batch has no readings, and it starts again in the next.
    """

    def __init__(self, watch: Watch) -> None:
        """Use `watch` to collect the readings."""
        self._watch = watch
        self._core: int | None = None
        self._session: Session | None = None

    def __enter__(self) -> Chain:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def read(self, cores: Sequence[Core]) -> None:
        """Read the chain several times on the first of these cores that is this machine's.

        Nothing is read if an earlier run provides the duration of a quiet core's probe.
        """
        core = next((core for core in cores if isinstance(core, int)), None)
        if core is None or self._watch.best_ns is not None:
            return
        try:
            session = self._on(core)
            readings = [float(session.advance(0.0, 1, _LIMIT_S).cpu_ns) for _ in range(_CHAINS)]
        except Stopped:
            self._end()
        else:
            self._watch.note_chains(readings)

    def _on(self, core: int) -> Session:
        """Return the session on this core, started if necessary. Raises Stopped."""
        if self._session is None or self._core != core:
            self._end()
            self._core, self._session = core, Session((str(engine()), "op"), CHAIN, core=core)
            self._session.ready(_READY_LIMIT_S)
        return self._session

    def _end(self) -> None:
        if self._session is not None:
            self._session.__exit__(None, None, None)
        self._session = None
