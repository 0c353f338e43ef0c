"""Reading a study's file: from TOML to a `Study`, or a one-line error with its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tollbar.catalog import families, servers
from tollbar.catalog.families import Family
from tollbar.catalog.libraries import normal
from tollbar.catalog.servers.places import places_of
from tollbar.catalog.servers.remote import Remote
from tollbar.core.errors import TollbarError
from tollbar.core.wire import parse
from tollbar.study.keys import GONE, WireStudy
from tollbar.study.load_table import load_of
from tollbar.study.naming import NOTICED, Naming
from tollbar.study.values import (
    Cost,
    LeaveOut,
    Load,
    Measure,
    Study,
)


def read(
    name: str,
    text: str,
    *,
    where: str,
    kept: Path | None = None,
    read_before: dict[Path, Family] | None = None,
    earlier: bool = False,
) -> Study:
    """Return a study from its text. Raises TollbarError with the file, the key and the nearest valid one.

    `kept` holds the folders of families at the time of measuring, so that families and servers need not exist here any
    more. Families in `read_before` are not read again, and those that are read are added to it. `earlier`: all of these
    are in words of an earlier version.
    """
    wire = parse(text, WireStudy, where=where, known=GONE, earlier=earlier)
    remotes = tuple(map(Remote, wire.url))
    shown = _without_values(text, remotes, where)
    if shown != text:
        text, wire = shown, parse(shown, WireStudy, where=where, known=GONE, earlier=earlier)
    if kept is None:
        family = families.family(wire.family, where=f"{where}: `family`")
    else:
        family = families.read_family(kept / wire.family, with_answers=False, read_before=read_before, earlier=earlier)
    wire = _with_server(wire, family)
    load = load_of(wire, family, where)
    _check_threads(wire, family, load, where)
    here = None if kept else (*wire.url, *servers.all_servers())
    steps = () if wire.scenario is None else wire.scenario.measured
    reader = Naming(family, where, here, has_load=load is not None, steps=steps)
    choices = reader.choices(wire.choices)
    baseline = wire.baseline or choices[0]
    return Study(
        name=name,
        text=text,
        question=wire.question,
        family=family,
        source=wire.source,
        choices=choices,
        providers=tuple(map(normal, wire.providers or family.providers)),
        servers=reader.known("server", wire.servers, reader.servers, "servers"),
        factors=reader.factors(wire, choices),
        remotes=remotes,
        places=places_of(wire.roles.model_dump(exclude_none=True), where),
        load=load,
        vary={key: reader.varied(key, values) for key, values in wire.vary.items()},
        baseline=reader.coordinates("baseline", {"choice": baseline} if isinstance(baseline, str) else baseline),
        leave_out=tuple(
            LeaveOut({k: reader.patterns("leave-out.where", k, v) for k, v in item.where.items()}, item.because)
            for item in wire.leave_out
        ),
        measure=_measure(wire, family, where),
        threshold=wire.judge.threshold,
        claims=tuple(reader.claim(claim, None if kept else wire.servers) for claim in wire.claim),
        notes=wire.notes,
        statistic=wire.statistic,
        tables=tuple(reader.table(table) for table in wire.table),
        figures=tuple(reader.figure(figure, None if kept else wire.servers) for figure in wire.figure),
    )


def _without_values(text: str, remotes: Sequence[Remote], where: str) -> str:
    """Return a study's text with the printed names of its servers: a query's values may be secrets.

    Raises TollbarError for URLs with equal names, and for one whose text is not that of the URL.
    """
    names = [remote.name for remote in remotes]
    for name in names:
        if names.count(name) > 1:
            what = "two URLs differ in the values of their queries only, which are never printed"
            raise TollbarError(what, where=name, hint="give one of them another path or another name of a value")
    # Longest first, because one URL may be the beginning of another.
    for remote in sorted(remotes, key=lambda one: len(one.url), reverse=True):
        if remote.name != remote.url and remote.url not in text:
            what = "a URL with a query needs its quotation marks and other special characters as `%22`"
            raise TollbarError(what, where=where, hint='for example `url = "https://localhost/?name=%22anna%22"`')
        text = text.replace(remote.url, remote.name)
    return text


def _with_server(wire: WireStudy, family: Family) -> WireStudy:
    """Return the study with its family's own servers, if it names none and only servers perform the family.

    The operation then defaults to the family's first, because not every choice has the others.
    """
    if wire.servers or wire.url or not family.servers:
        return wire
    vary = {"op": family.operations[:1], **wire.vary}
    return wire.model_copy(update={"servers": family.servers, "vary": vary})


def _check_threads(wire: WireStudy, family: Family, load: Load | None, where: str) -> None:
    """Raise TollbarError if threads are varied for work that the lab cannot run on several cores at once."""
    if "threads" not in wire.vary:
        return
    if wire.url or not family.load:
        subject = "your own server" if wire.url else f"the family {family.name}"
        what = f"the lab does not start {subject}, so its threads cannot be varied"
        hint = "`threads` needs a runner, or one of the lab's own servers, for example nginx or httpd"
        raise TollbarError(f"`vary.threads`: {what}", where=where, hint=hint)
    if load is not None and (load.is_open or load.think_s):
        what = "`vary.threads` needs a load without rate and thinking time, so that no core waits for arrivals"
        raise TollbarError(what, where=where, hint="remove `rates`, `utilisation` and `think` from `[load]`")


def _measure(wire: WireStudy, family: Family, where: str) -> Measure:
    measure = wire.measure
    costs = _costs(wire, family)
    cost = measure.cost or costs[0]
    if cost not in costs:
        hint = f"use `{'` or `'.join(costs)}`"
        raise TollbarError(f"`measure.cost`: `{cost}` cannot be measured here", where=where, hint=hint)
    if measure.longest is not None and measure.precision is None:
        raise TollbarError(
            "`measure.longest` needs `measure.precision`", where=where, hint='for example `precision = "2 %"`'
        )
    if measure.cells == "claimed" and not any(claim.of for claim in wire.claim):
        raise TollbarError('`measure.cells = "claimed"` needs a `[[claim]]` about a cell', where=where)
    is_adapted = not {"chunk", "rounds"} & measure.model_fields_set
    made = Measure(
        cost,
        measure.chunk,
        measure.rounds,
        measure.blocks,
        measure.pause,
        measure.precision,
        cells=measure.cells,
        is_adapted=is_adapted,
    )
    # Figures and rates of a source are of a throughput phase in each block, as its runs were.
    noticed = wire.statistic == "rate-after-first" or any(claim.metric in NOTICED for claim in wire.claim)
    return replace(made, longest_s=measure.longest, phase_every=1 if noticed else made.phase_every)


def _costs(wire: WireStudy, family: Family) -> tuple[Cost, ...]:
    """Return the possible costs; the first is the default."""
    if wire.url:
        return ("client-cpu", "server-cpu")
    if not wire.servers:
        return ("cpu",)
    # A load client is not part of the requested work; a client that does a share of the work is.
    return ("server-cpu", "client-cpu") if family.load else ("cpu", "server-cpu", "client-cpu")
