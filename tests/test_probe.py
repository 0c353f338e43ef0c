"""The probe's session: what becomes of it when it is interrupted, ends, or never starts."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest

from tollbar.beds import proc
from tollbar.measure.probe import Probe
from tollbar.records import failed
from tollbar.runner import Session, Stopped


def children() -> set[int]:
    return set(proc._children(os.getpid()))


def test_it_reads_nanoseconds_and_leaves_nothing() -> None:
    """Outside its context there is no process of it, and no reading."""
    before = children()
    with Probe(min(os.sched_getaffinity(0))) as probe:
        assert children() - before
        assert (probe.read() or 0.0) > 1_000
        assert (probe.lately() or 0.0) > 1_000
        assert probe.asked_s > 0
    assert before == children()
    assert probe.read() is None


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), Stopped(failed("it fell over"))])
def test_one_that_is_interrupted_while_it_starts_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    """Its process is there before it is ready, and a context that was not entered is not left."""

    def interrupted(self: Session, limit_s: float) -> None:
        raise raised

    monkeypatch.setattr(Session, "ready", interrupted)
    before = children()
    probe = Probe(min(os.sched_getaffinity(0)))
    assert children() - before
    with suppress(KeyboardInterrupt):
        probe.__enter__()
    assert before == children()
    assert probe.read() is None


def test_one_that_dies_says_nothing_more() -> None:
    """Chunks beside it then have no witness; the heat goes on."""
    with Probe(min(os.sched_getaffinity(0))) as probe:
        for pid in proc.tree(probe._sessions[0].pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert (None, None) == (probe.read(), probe.lately())
