"""The lab: measures a plan into a run, yields events, and asks its caller whether there are enough blocks."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tollbar import __version__, results
from tollbar.catalog.servers.places import RoleMachine
from tollbar.core import machine, moments
from tollbar.core.errors import TollbarError, one_line
from tollbar.lab.events import Event, StopRule
from tollbar.lab.measuring import AS_PLANNED, BLOCKS_FOR_WIDTH, MORE_BLOCKS, HowLong, measured_into, probed_machine
from tollbar.results import Store
from tollbar.study import Study, plan
from tollbar.study.plan import Plan

__all__ = [
    "AS_PLANNED",
    "BLOCKS_FOR_WIDTH",
    "MORE_BLOCKS",
    "Event",
    "HowLong",
    "StopRule",
    "TakenUp",
    "begin",
    "begin_planned",
    "drawn_seed",
    "measured_into",
    "probed_machine",
    "take_up",
    "with_blocks",
    "with_precision",
]


def begin(
    asked: Sequence[Study],
    *,
    command: Sequence[str],
    runs: Path,
    seed: int | None = None,
    named_libraries: Sequence[str] = (),
    places: Sequence[RoleMachine] = (),
    more: Mapping[str, Any] | None = None,
) -> tuple[Plan, Store]:
    """Return the plan of these studies and a new run for it, with `more` in its `run.json`.

    Raises TollbarError before anything is started.
    """
    planned = plan.make(asked, seed=drawn_seed(seed), named_libraries=named_libraries)
    store = begin_planned(
        planned, command=command, runs=runs, named_libraries=named_libraries, places=places, more=more
    )
    return planned, store


def drawn_seed(asked: int | None) -> int:
    """Return the seed that was asked for, or a random one."""
    return secrets.randbelow(2**32) if asked is None else asked


def begin_planned(
    planned: Plan,
    *,
    command: Sequence[str],
    runs: Path,
    named_libraries: Sequence[str] = (),
    places: Sequence[RoleMachine] = (),
    more: Mapping[str, Any] | None = None,
) -> Store:
    """Return a new run for a plan, with `more` in its `run.json`. Raises TollbarError before anything is started."""
    if places and not any(cell.server for one in planned.studies for cell in one.cells):
        raise TollbarError(
            "needs a study with servers; none of these has any", where="--roles or `[roles]`", hint="remove it"
        )
    fingerprint = machine.fingerprint()
    return results.create(
        planned,
        runs,
        command=command,
        libraries=named_libraries,
        fingerprint=fingerprint,
        # The best known probe is that of this machine's core, and does not apply to machines of roles.
        best_probe_ns=None if places else moments.best_known(probed_machine(fingerprint)),
        more={**({"roles": {place.role: place.address for place in places}} if places else {}), **(more or {})},
    )


def take_up(directory: Path, asked: Sequence[Study], places: Sequence[RoleMachine] = ()) -> TakenUp:
    """Open a run again to measure these studies. Raises TollbarError if its measurements would change."""
    said = results.about(directory)
    results.refuse_resumption(directory, said)
    began_with, now = said.get("roles", {}), {place.role: place.address for place in places}
    if began_with != now:
        roles = ",".join(f"{role}={address}" for role, address in began_with.items())
        raise TollbarError(
            "the run began with other roles" if roles else "the run began without roles",
            where=str(directory),
            hint=f"pass `--roles {roles}`" if roles else "remove `--roles`",
        )
    found = machine.differences(said["fingerprint"], machine.fingerprint())
    if found:
        what = f"the run began on another machine: {'; '.join(map(one_line, found))}"
        raise TollbarError(what, where=str(directory), hint="continue it there, or begin a new run on this machine")
    planned = plan.make(asked, seed=said["seed"], named_libraries=said["libraries"])
    changed = results.changes(said, results.made_with(planned))
    store = results.reopen(directory)
    cells = {(cell.study, cell.key) for cell in planned.cells}
    if store.cells() != cells:
        gone, new = store.cells() - cells, cells - store.cells()
        changed.append(f"cells: {len(gone)} of the run are not planned now, and {len(new)} are new")
    if changed:
        store.close()
        lines = "".join(f"\n  {one_line(line)}" for line in changed)
        raise TollbarError(
            f"installed software has changed since the run began:{lines}",
            where=str(directory),
            hint="begin a new run with `tollbar run`",
        )
    # Read again under the run's lock, because another process may have noted a look meanwhile.
    said = results.about(directory)
    entries = {one.name: {**said["studies"][one.name], **results.measured_as(one)} for one in asked}
    results.update_about(directory, {"studies": entries, **_with_this_version(said)})
    return TakenUp(planned, store, store.resume(), _other_version(said))


@dataclass(frozen=True, slots=True)
class TakenUp:
    """A run that is being resumed."""

    plan: Plan
    store: Store
    tried_again: int
    """Number of cells that failed too often before and are tried again."""
    began_with: str | None
    """Version of Tollbar that began the run, if it is another one."""


def _other_version(said: Mapping[str, Any]) -> str | None:
    began = said.get("tollbar")
    return None if began in (None, __version__) else str(began)


def _with_this_version(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the note that this version resumed a run of another one, because it may measure blocks differently."""
    if _other_version(said) is None:
        return {}
    return {"resumed_with": list(dict.fromkeys([*said.get("resumed_with", []), __version__]))}


def with_blocks(asked: Sequence[Study], blocks: int | None) -> tuple[Study, ...]:
    """Return the studies with `blocks` blocks; None keeps their own number."""
    return tuple(replace(one, measure=replace(one.measure, blocks=blocks or one.measure.blocks)) for one in asked)


def with_precision(asked: Sequence[Study], half: float | None, longest_s: float | None) -> tuple[Study, ...]:
    """Return the studies with a precision to reach (half of the relative width), within `longest_s` seconds."""
    if half is None:
        return tuple(asked)
    return tuple(replace(one, measure=replace(one.measure, precision=half, longest_s=longest_s)) for one in asked)
