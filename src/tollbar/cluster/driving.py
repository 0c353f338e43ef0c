"""Driver of a fleet: a study on every qualifying node, each node's run copied home while it grows.

The nodes' runs have the measurements, and each copy at home is an ordinary run.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from tollbar import __version__, analysis, results
from tollbar.cluster import replies
from tollbar.cluster.cluster import Cluster, ClusterNode, Lost, Part, Said
from tollbar.cluster.fleet_file import SCHEMA, Fleet, FleetNode, State, read_fleet
from tollbar.cluster.home import Home
from tollbar.cluster.joining import known_members, new_members
from tollbar.core.errors import TollbarError, one_line
from tollbar.core.files import pasted
from tollbar.core.words import counted, enumeration
from tollbar.decide import compare
from tollbar.decide.compare.found_runs import shown
from tollbar.report import terminal
from tollbar.report.html import write as write_report
from tollbar.report.terminal.progress import Progress
from tollbar.results.directory import LOCK, open_file

# Seconds between polls of a node: short enough for a screen, long enough to use no core's time.
POLL_S = 2.0
# Least seconds between copies of a run's changes: a copy of the results takes some milliseconds of the node.
BROUGHT_S = 10.0
BROUGHT_LIMIT_S = 120.0
# The node gives its run half as long.
STOP_LIMIT_S = 30.0
# Exit statuses of a node's run, as in `errors.ExitStatus`, after which it is complete.
DONE, SOME_FAILED = 0, 1
SIMULATED = "simulated: all nodes are on this machine and measured one after the other; no figure is that of a network"


@dataclass(slots=True)
class Driven:
    """Member of a fleet with the agent on its node."""

    member: FleetNode
    place: ClusterNode
    home: Home
    part: Part | None = None
    brought_s: float = 0.0
    done: int = 0
    planned: int | None = None
    said: str = ""


@dataclass(slots=True)
class Fleets:
    """Directory of one fleet, driven by one process at a time."""

    directory: Path
    fleet: Fleet
    nodes: list[Driven] = field(default_factory=list)
    on_lost: Callable[[str], None] = lambda _: None
    """Callback with the name of a lost node, which may continue to measure."""

    def write(self) -> None:
        """Write the facts of the nodes to `fleet.json`.

        Raises TollbarError.
        """
        self.fleet.write(self.directory)

    def drive(self, cluster: Cluster, places: Sequence[ClusterNode], at_once: int | None) -> None:
        """Drive every unfinished node until it has measured the missing cells.

        KeyboardInterrupt is raised again once all is home.
        """
        with self._held():
            self._join(places)
            terminal.say(f"  data       {one_line(str(self.directory))}/")
            terminal.say(f"  nodes      {enumeration([one.member.name for one in self.nodes])}")
            if self.fleet.simulated is not None:
                terminal.say(f"  {SIMULATED}", "yellow")
            try:
                self._measure(cluster, at_once or len(self.nodes))
            except KeyboardInterrupt:
                busy = self._under_way()
                terminal.say(f"interrupted: {counted(len(busy), 'node')} asked to stop")
                with ThreadPoolExecutor(len(busy) or 1) as pool:
                    list(pool.map(lambda one: self._end(one, State.INTERRUPTED, None), busy))
                raise
            finally:
                for one in self.nodes:
                    if one.part is not None:
                        one.part.end()
                self.write()

    def _join(self, places: Sequence[ClusterNode]) -> None:
        """Match nodes to members, or add each node to a new fleet; nodes of one name are called by their addresses."""
        if self.fleet.nodes:
            members = known_members(places, self.fleet.nodes)
        else:
            # The fleet's once all are: one that has no node has not begun.
            members = new_members(places)
            self.fleet.nodes = [one for one in members if one]
        left = [place.name for place, member in zip(places, members, strict=True) if member is None]
        if left:
            why = "not in this fleet, or its name is not unique or not a host name"
            terminal.say(f"  left out   {enumeration([shown(name) for name in left])}: {why}", "yellow")
        for place, member in zip(places, members, strict=True):
            if member is None or member.state is State.DONE:
                continue
            member.address, member.labels = place.address, dict(place.labels)
            member.state, member.reason = State.WAITING, None
            self.nodes.append(Driven(member, place, Home(self.directory / member.name, member.run)))
        here = {one.member.name for one in self.nodes}
        for member in self.fleet.nodes:
            if member.state is not State.DONE and member.name not in here:
                member.state, member.reason = State.LOST, "is not in the cluster, or not selected by `--nodes`"
        self.write()

    def _measure(self, cluster: Cluster, at_once: int) -> None:
        with Progress() as progress:
            while left := [one for one in self.nodes if one.member.state in (State.WAITING, State.MEASURING)]:
                busy = [one for one in left if one.member.state is State.MEASURING]
                for one in [one for one in left if one.member.state is State.WAITING][: at_once - len(busy)]:
                    self._guarded(one, partial(self._begin, cluster))
                for one in self._under_way():
                    self._guarded(one, self._look_at)
                progress.several({one.member.name: (one.done, one.planned, one.said) for one in self._under_way()})
                if self._under_way():
                    time.sleep(POLL_S)

    def _guarded(self, one: Driven, step: Callable[[Driven], None]) -> None:
        """Run a step of one node; an error ends that node's part, and no other."""
        try:
            step(one)
        except Lost as error:
            self._set(one, State.LOST, str(error))
        except Said as error:
            self._set(one, State.FAILED, str(error))
        except TollbarError as error:
            self._end(one, State.REFUSED, str(error))
        except OSError as error:
            self._end(one, State.FAILED, f"its run here cannot be read or written: {error}")

    def _begin(self, cluster: Cluster, one: Driven) -> None:
        one.part = cluster.start(one.place, one.member.name)
        version = replies.read(replies.VERSION, one.part.call("version"))
        if version != __version__:
            has = f"Tollbar {shown(version)}" if version else "no Tollbar"
            self._end(one, State.REFUSED, f"has {has}; this machine has {__version__}")
            return
        fleet, run = self.directory.name, one.member.run
        if (at_home := one.home.whole) is not None:
            # The node's own copy is newer, if it has any: it continued until it was ended.
            came = sum(trials for _, trials in results.present(at_home).values())
            if replies.read(replies.TRIALS, one.part.call("trials", fleet, run)) < came:
                one.part.call("receive", fleet, run, one.home.content(), limit_s=BROUGHT_LIMIT_S)
        # The node may have begun a run that was never reported here: its batches are not measured again.
        resume = replies.read(replies.TRIALS, one.part.call("trials", fleet, run)) >= 0
        if not resume and at_home is None:
            one.home.give_up()
            one.member.run = None
        studies = [] if resume else [*self.fleet.studies, *(f"studies/{name}" for name in self.fleet.files)]
        words = [*studies, *self.fleet.options]
        made_up = self.fleet.simulated is not None
        one.part.call("begin", fleet, self.fleet.files, words, resume=resume, simulated=made_up)
        one.member.state = State.MEASURING
        self.write()

    def _look_at(self, one: Driven) -> None:
        assert one.part is not None
        found = replies.read(replies.PROGRESS, one.part.call("progress", self.directory.name))
        one.done, one.planned = found.done, found.planned
        if one.member.run is None and found.run is not None:
            # Before any of it is home: that is how it is found again.
            one.home.begin(found.run)
            one.member.run = one.home.run
            self.write()
        lines = [shown(line) for line in found.said.splitlines() if line.strip()]
        one.said = lines[-1] if lines else ""
        # The first batches at once: by then a node may be worth going on with.
        is_first = one.done > 0 and one.home.whole is None
        if found.status is not None or is_first or time.monotonic() - one.brought_s > BROUGHT_S:
            self._bring(one)
        if found.status is None:
            return
        if found.status not in (DONE, SOME_FAILED):
            errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
            self._set(one, State.FAILED, (errors or lines[-1:] or [f"ended with status {found.status}"])[-1])
        elif one.home.whole is None:
            self._set(one, State.FAILED, "sent nothing of its run")
        else:
            one.part.call("forget", self.directory.name)
            self._set(one, State.DONE, "a cell failed, or none could be measured" if found.status else None)

    def _bring(self, one: Driven) -> None:
        """Copy a run's changes home; a copy that does not match its digests is requested again in full."""
        assert one.part is not None
        for known, blocks in (one.home.known(), ({}, [])):
            changed = one.part.call("changed", self.directory.name, known, blocks, limit_s=BROUGHT_LIMIT_S)
            try:
                one.home.take(changed)
                break
            except OSError as error:
                raise TollbarError(f"cannot write what {one.member.name} sends: {error.strerror}") from error
            except TollbarError:
                if not blocks and not known:
                    raise
        if one.member.run != one.home.run:
            one.member.run = one.home.run
            self.write()
        one.brought_s = time.monotonic()

    def _end(self, one: Driven, state: State, reason: str | None) -> None:
        """Stop an agent, and copy its run home."""
        if one.part is not None:
            with suppress(Lost, Said, TollbarError, OSError):
                one.part.call("stop", limit_s=STOP_LIMIT_S)
                if state is not State.REFUSED:
                    self._bring(one)
        self._set(one, state, reason)

    def _set(self, one: Driven, state: State, reason: str | None) -> None:
        if one.part is not None:
            one.part.end()
            one.part = None
        if state is State.LOST:
            self.on_lost(one.member.name)
        one.member.state, one.member.reason = state, reason and shown(reason)
        words = f"  {one.member.name:<10} {state}{f': {one.member.reason}' if reason else ''}"
        terminal.say(words, "yellow" if reason or state is not State.DONE else None)
        self.write()

    def _under_way(self) -> list[Driven]:
        return [one for one in self.nodes if one.member.state is State.MEASURING]

    @contextmanager
    def _held(self) -> Iterator[None]:
        """While this process drives the fleet, no other does."""
        try:
            # The file is never emptied because it may not be a lock.
            lock = os.fdopen(open_file(self.directory / LOCK, os.O_RDWR | os.O_CREAT), "r+b")
        except OSError as error:
            raise TollbarError(f"cannot be opened: {error.strerror}", where=str(self.directory / LOCK)) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                hint = "wait for it to end"
                raise TollbarError("another process drives this fleet", where=str(self.directory), hint=hint) from error
            yield

    def finished(self, *, report: bool) -> list[Path]:
        """Return the runs of finished nodes, with a report each if requested.

        Each was judged on its node, which noted that look. Unfinished runs are not judged: that would cost them
        confidence.
        """
        done = [self.directory / one.name / one.run for one in self.fleet.nodes if one.run and one.state is State.DONE]
        for found in compare.read(done) if report else ():
            if isinstance(found, compare.ReadRun):
                write_report(analysis.judge(results.read(found.directory)))
        return done

    def discard(self) -> None:
        """Remove a fleet's directory that has no run in it."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def how_to_go_on(self) -> str:
        """Return the command that resumes the fleet."""
        return f"tollbar run --resume {pasted(self.directory)}"


def begin(
    runs: Path,
    label: str,
    *,
    command: Sequence[str],
    studies: Sequence[str],
    files: Mapping[str, str],
    options: Sequence[str],
    on: str,
    simulated: int | None,
    labels: Mapping[str, str],
) -> Fleets:
    """Create a new fleet's directory, without nodes.

    Raises TollbarError.
    """
    started = datetime.now().astimezone()
    fleet = Fleet(
        SCHEMA, __version__, [*command], started.isoformat(timespec="seconds"), [*studies], dict(files), [*options], on,
        simulated, [], dict(labels),
    )  # fmt: skip
    for number in range(1, 1000):
        directory = runs / f"{started:%Y-%m-%d-%H%M%S}-{label}-fleet{f'-{number}' if number > 1 else ''}"
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            hint = "choose another with --runs DIRECTORY"
            raise TollbarError(f"cannot make the fleet's directory: {error}", where=str(runs), hint=hint) from error
        return Fleets(directory, fleet)
    raise TollbarError("a new fleet's directory cannot be created after 1,000 attempts in this second", where=str(runs))


def take_up(directory: Path) -> Fleets:
    """Return the fleet of a directory, to be resumed.

    Raises TollbarError.
    """
    return Fleets(directory, read_fleet(directory))
