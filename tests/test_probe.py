"""The probe's session: interrupted, ended, or never started."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from tollbar.core import proc
from tollbar.core.moments import Core, Watch
from tollbar.core.records import failed
from tollbar.core.runner import Session, Stopped
from tollbar.lab.measure import probe as probe_module
from tollbar.lab.measure.probe import BASE_NS, Chain, Probe

FAST, SLOW = ("fast",), ("slow",)
QUICKEST_NS: dict[Core, float] = {FAST: 20_000.0, SLOW: 60_000.0}


def children() -> set[int]:
    return set(proc._children(os.getpid()))


def test_it_reads_nanoseconds_and_leaves_nothing() -> None:
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
    """The process exists before it is ready, and a context that was not entered is not left."""

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
    with Probe(min(os.sched_getaffinity(0))) as probe:
        for pid in proc.tree(next(iter(probe._sessions.values())).pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert (None, None) == (probe.read(), probe.lately())


def test_a_chain_reads_nanoseconds_and_leaves_nothing() -> None:
    """The chain takes longer than its 20,000 steps could at 10 GHz."""
    before, watch = children(), Watch()
    with Chain(watch) as chain:
        for _ in range(2):
            chain.read([FAST, min(os.sched_getaffinity(0))])
            assert 1 == len(children() - before)
        assert (watch.chain_ns or 0.0) > 8_000
    assert before == children()


def test_a_chain_is_not_read_with_history_or_on_other_machines() -> None:
    before, known, unknown = children(), Watch(25_000.0), Watch()
    with Chain(known) as chain, Chain(unknown) as elsewhere:
        chain.read([min(os.sched_getaffinity(0))])
        elsewhere.read([FAST])
        elsewhere.read([])
        assert before == children()
    assert (None, None) == (known.chain_ns, unknown.chain_ns)


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), Stopped(failed("it fell over"))])
def test_a_chain_that_is_interrupted_while_it_starts_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    def interrupted(self: Session, limit_s: float) -> None:
        raise raised

    monkeypatch.setattr(Session, "ready", interrupted)
    before, watch = children(), Watch()
    with suppress(KeyboardInterrupt), Chain(watch) as chain:
        chain.read([min(os.sched_getaffinity(0))])
    assert (before, None) == (children(), watch.chain_ns)


def test_a_chain_that_dies_starts_again_in_the_next_batch() -> None:
    watch, cores = Watch(), [min(os.sched_getaffinity(0))]
    with Chain(watch) as chain:
        chain.read(cores)
        assert chain._session is not None
        for pid in proc.tree(chain._session.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        watch.chain_ns = None
        chain.read(cores)
        assert watch.chain_ns is None
        chain.read(cores)
        assert watch.chain_ns


class Machines:
    """Probes of two machines of different speed, each slowed by a factor over its best."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slower: dict[Core, float] = {}
        monkeypatch.setattr(probe_module, "Session", self._session)
        self._best_of: dict[Core, float] = {}

    def batch(self, *cores: Core, **slower: float) -> float:
        """Return the reading of a new batch's probe."""
        self.slower = {(name,): times for name, times in slower.items()}
        with Probe(*cores, best_of=self._best_of, base_ns=BASE_NS) as probe:
            return probe.read() or 0.0

    def _session(self, command: Core, task: Any, *, core: int | None) -> Any:
        assert core is None
        return SimpleNamespace(
            ready=lambda limit_s: None,
            advance=lambda *_: SimpleNamespace(cpu_ns=QUICKEST_NS[command] * self.slower.get(command, 1.0)),
            __exit__=lambda *_: None,
        )


@pytest.mark.parametrize("cores", [(FAST, SLOW), (SLOW, FAST), (SLOW,), (FAST,)])
def test_machines_are_held_each_against_its_own_best(monkeypatch: pytest.MonkeyPatch, cores: tuple[Core, ...]) -> None:
    machines = Machines(monkeypatch)
    assert machines.batch(*cores) == machines.batch(*reversed(cores)) == BASE_NS


@pytest.mark.parametrize("cores", [(FAST, SLOW), (SLOW, FAST)])
@pytest.mark.parametrize("noisy", ["fast", "slow"])
def test_a_machine_disturbed_for_a_whole_batch_shows(
    monkeypatch: pytest.MonkeyPatch, cores: tuple[Core, ...], noisy: str
) -> None:
    machines = Machines(monkeypatch)
    machines.batch(*cores)
    assert machines.batch(*cores, **{noisy: 1.5}) == pytest.approx(1.5 * BASE_NS)
    assert machines.batch(*reversed(cores)) == BASE_NS


def test_the_cores_of_one_machine_read_as_its_first(monkeypatch: pytest.MonkeyPatch) -> None:
    Machines(monkeypatch)
    with Probe(SLOW) as probe:
        assert QUICKEST_NS[SLOW] == probe.read()
