"""`tollbar run`: from a question to its answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tollbar import lab
from tollbar.cli import measuring
from tollbar.cli.layouts import Layout, command_line, read_seconds
from tollbar.cli.options import DEFAULTS, Options, full_paths, places_for, read_precision, resumed, studies_of
from tollbar.cli.output import show, status_of
from tollbar.core.errors import ExitStatus
from tollbar.core.files import is_file

if TYPE_CHECKING:
    from tollbar.cli.upgrade import AskedUpgrade

# File in a fleet's directory, as `tollbar.cluster` names it.
FLEET = "fleet.json"


def run(
    *studies: str,
    options: Options = DEFAULTS,
    on: Annotated[str | None, Parameter(name="--cluster")] = None,
    nodes: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    simulate: int | None = None,
) -> ExitStatus:
    """Measure studies, judge the result and write a report.

    tollbar run                         the set `quick`, about a minute
    tollbar run digests                 one study, whole
    tollbar run my-study.toml --json    yours, as one JSON document
    tollbar run digests --library ./libcrypto.so.3
    tollbar run --resume runs/2026-…    continue a run that was stopped
    tollbar run --resume runs/2026-… --blocks 40
    tollbar run --url https://localhost:8443/path --users 1 --users 16
    tollbar run sign-in-today --roles web=192.0.2.7,database=192.0.2.8
    tollbar run --url https://localhost:8443/ --against http://localhost:8080/ --server-pid 4711
    tollbar run --url https://localhost:8443/ --scenario shop.toml --server-pid 4711
    tollbar run digests --cluster ray        on each node of a cluster (docs/many-machines.md)

    Parameters
    ----------
    studies
        Names of studies or sets (`tollbar list studies`), TOML files, or folders of such files; default: `quick`.
    on
        Cluster to measure on, the whole run on each node: `ray` for the cluster of this machine, or `ray:HOST:PORT`;
        default: this machine only.
    nodes
        Label that a node must have, such as `tollbar.io/role=web`. Repeatable; default: all nodes.
    simulate
        Number of nodes to simulate on this machine, such as `2`, to try a run before you use a real cluster.
    """
    if on is not None or nodes or simulate is not None or (options.resume and is_file(options.resume / FLEET)):
        # Imported here because only users with a cluster need it.
        from tollbar.cli.fleet import run_on

        return run_on(studies, options, on, nodes, simulate)
    # Before its studies are read: it makes their servers and runtimes known.
    upgrade = _upgrade_of(options.resume) if options.resume else None
    asked = resumed(options.resume, studies, options) if options.resume else studies_of(studies, options)
    half = None if options.precision is None else read_precision(options.precision)
    asked = lab.with_precision(asked, half, None if options.for_ is None else read_seconds("--for", options.for_))
    places = places_for(asked, options)
    if options.resume is not None:
        planned, store = measuring.take_up(options.resume, asked, places)
    else:
        asked, named = lab.with_blocks(asked, options.blocks), full_paths(options.library)
        planned, store = lab.begin(
            asked,
            command=command_line(),
            runs=options.runs,
            seed=options.seed,
            named_libraries=named,
            places=places,
        )
    within_s = upgrade.within_s / len(asked) if upgrade and not store.made() else None
    judged = measuring.carry_out(
        planned,
        store,
        report=options.report and upgrade is None,
        how_long=lab.HowLong(within_s=within_s, exactly=options.blocks is not None),
        places=places,
        early=len(asked) > 1 and upgrade is None,
    )
    if upgrade is not None:
        return upgrade.answered(judged, Layout(json=options.json))
    show(judged, as_json=options.json)
    return status_of(judged)


def _upgrade_of(run: Path) -> AskedUpgrade | None:
    """Return the upgrade that a run was made by; None for any other run."""
    # Most runs are none, and need not wait for its imports.
    from tollbar.cli.upgrade import of_run

    return of_run(run)
