"""The probe: a session of its own on each core that is measured on, asked before and after every chunk."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from tollbar.core.moments import CHAIN, PROBE, Core, Watch
from tollbar.core.runner import Session, Stopped, engine

_READY_LIMIT_S = 30.0
# It works for some tens of microseconds; on a core that other programs hold it waits for its turn.
_LIMIT_S = 10.0
# A reading is of its moment: what comes later is asked again.
_FRESH_S = 0.002
# Chains read together: enough for a quiet one, within some milliseconds.
_CHAINS = 24
# What a core's best reads as where machines are compared: the same in all batches, and after each resumption.
BASE_NS = 25_000.0


class Probe:
    """A probe of one core, or of several as one: a moment is as quiet as the least quiet of them. A context: outside it
    nothing of it is left.

    One that ends says nothing more: the chunks beside it then have no witness, and count noisy.
    """

    def __init__(self, *cores: Core, best_of: dict[Core, float] | None = None, base_ns: float | None = None) -> None:
        """`best_of`: the least nanoseconds that each core has read in the run, kept there. Cores of several machines
        differ, and what is asked is how disturbed they are: each is held against its own best, and the greatest ratio
        is told as a multiple of `base_ns`; without it, of the first core's best.
        """
        self._sessions: dict[Core, Session] = {}
        self._best_of = {} if best_of is None else best_of
        self._base_ns = base_ns
        self._last_ns: float | None = None
        self._read_s = 0.0
        self.asked_s = 0.0
        """How long all its readings have taken."""
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
        """Whether its readings are the nanoseconds of one core, so that a runner's own may stand among them."""
        return self._base_ns is None and [*map(type, self._sessions)] == [int]

    def read(self) -> float | None:
        """Nanoseconds that the probe's work takes now, on the core where it takes most; None once one has ended."""
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
        """The last reading, if that was a moment ago: what was read after one chunk holds for the start of the next."""
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
    """The chain of dependent steps, which a neighbour hardly slows, in a first run. A context: no process outlives it.

    One session serves all batches, since its start takes longer than its readings. One that ends has no readings in
    this batch, and starts again in the next.
    """

    def __init__(self, watch: Watch) -> None:
        """`watch` takes the readings in."""
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
        """Read it some times in a row on the first of these cores that is this machine's.

        Nothing is read where an earlier run tells the duration of a quiet core's probe.
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
        """Return the session on this core, and start one where there is none. Raises Stopped."""
        if self._session is None or self._core != core:
            self._end()
            self._core, self._session = core, Session((str(engine()), "op"), CHAIN, core=core)
            self._session.ready(_READY_LIMIT_S)
        return self._session

    def _end(self) -> None:
        if self._session is not None:
            self._session.__exit__(None, None, None)
        self._session = None
