"""`make bench`: each figure with its goal.

`python -m bench true` measures one part, `true:loop` a piece of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table

from bench import (
    anonymous,
    answers,
    before,
    cheap,
    check_tolls,
    chunks,
    client_core,
    database_sign_on,
    equal,
    fleet_kills,
    fuzz,
    gather,
    load,
    memory,
    mutants,
    on_ray,
    parity,
    precise,
    probe,
    questions,
    quotient,
    receiver,
    repeatable,
    servers,
    sign_in,
    size,
    slices,
    storage,
    supply,
    survive,
    true,
    tune,
    upgrade,
    warm,
    wheel,
)
from bench.figures import Figure, unmeasured

PARTS = {
    "cheap": cheap.figures,
    "answers": answers.figures,
    "true": true.figures,
    "precise": precise.figures,
    "equal": equal.figures,
    "chunks": chunks.figures,
    "slices": slices.figures,
    "warm": warm.figures,
    "parity": parity.figures,
    "repeatable": repeatable.figures,
    "load": load.figures,
    "servers": servers.figures,
    "client-core": client_core.figures,
    "memory": memory.figures,
    "receiver": receiver.figures,
    "storage": storage.figures,
    "sign-in": sign_in.figures,
    "database-sign-on": database_sign_on.figures,
    "anonymous": anonymous.figures,
    "questions": questions.figures,
    "check-tolls": check_tolls.figures,
    "tune": tune.figures,
    "size": size.figures,
    "gather": gather.figures,
    "upgrade": upgrade.figures,
    "fleet": on_ray.figures,
    "fuzz": fuzz.figures,
    "supply": supply.figures,
    "wheel": wheel.figures,
}
# Pieces of parts that take long.
PIECES = {
    "before:quick": before.quick,
    "before:neighbour": before.neighbour,
    "before:precision": before.precision,
    "before:web": before.web,
    "before:sources": before.sources,
    "repeatable:six": repeatable.six,
    "repeatable:twice": repeatable.twice,
    "repeatable:quick": repeatable.quick,
    "tune:others": tune.others,
    "true:self-test": true.self_tests,
    "true:loop": true.loops,
    "true:openssl": true.openssl,
    "slices:added": slices.added,
    "slices:spread": slices.spread,
    "chunks:beginning": chunks.beginnings,
    "chunks:probe": probe.figures,
    "chunks:quotient": quotient.figures,
    "chunks:rates": chunks.rates,
    "fleet:kills": fleet_kills.figures,
}
ALL = {**PARTS, **PIECES}
# Commands with options of their own, which give no figures to `make bench`.
COMMANDS = {"survive": survive.main, "mutants": mutants.main}


def _of_part(name: str) -> Iterator[Figure]:
    """Yield a part's figures; if it fails, the rest is a missed figure, and the following parts are measured."""
    try:
        yield from ALL[name]()
    except Exception as error:
        yield unmeasured(f"{name}: what is left of it", f"{type(error).__name__}: {error}")


def main() -> None:
    """Print each figure as it comes, and all of them as a table at the end."""
    if sys.argv[1:] and sys.argv[1] in COMMANDS:
        COMMANDS[sys.argv[1]](sys.argv[2:])
        return
    console = Console(highlight=False)
    found: list[Figure] = []
    for name in sys.argv[1:] or PARTS:
        if name not in ALL:
            sys.exit(f"error: no such part: {name}\n\nhint: known: {', '.join(ALL)}")
        cores = os.sched_getaffinity(0)
        for figure in _of_part(name):
            console.print(f"{figure.what}: {figure.here} (goal: {figure.goal})", markup=False)
            found.append(figure)
        # A part that measures in this process keeps off the measuring core, but the next part needs all cores.
        os.sched_setaffinity(0, cores)
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("figure", "goal", "here", ""):
        table.add_column(column)
    for figure in found:
        met = {True: "met", False: "MISSED", None: ""}[figure.met]
        table.add_row(figure.what.replace("[", "\\["), figure.goal, figure.here.replace("[", "\\["), met)
    console.print(table)


if __name__ == "__main__":
    main()
