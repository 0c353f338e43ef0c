"""Reading a study's file: from TOML to a `Study`, or a one-line error with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from string import Formatter

from tollbar.catalog import families, servers
from tollbar.catalog.families import LOADS, Family, Value, whole
from tollbar.catalog.families.settings import NotAValue
from tollbar.catalog.libraries import normal
from tollbar.catalog.servers.places import places_of
from tollbar.catalog.servers.remote import Remote
from tollbar.core import spelling, units
from tollbar.core.errors import TollbarError, nearest, unknown
from tollbar.core.limits import THREADS
from tollbar.core.patterns import is_like
from tollbar.core.wire import parse
from tollbar.core.words import counted
from tollbar.study.figures import Figure
from tollbar.study.keys import GONE, WireLoad, WireStudy
from tollbar.study.scenario import WireScenario
from tollbar.study.values import (
    CHOSEN_ELSEWHERE,
    CLIENT_PLACES,
    NOT_SETTINGS,
    Claim,
    Cost,
    CrossTable,
    LeaveOut,
    Load,
    Measure,
    Study,
    default_load,
)

# Metrics that claims may use: in every family, without users, and with users of a server.
JUDGED = ("capacity", "cost")
ELAPSED = ("wall",)
NOTICED = ("throughput", "latency-p50")

# Allowed number of factors: all combinations of two values each run at once, on one core.
FACTORS = (2, 3)

# Length of a body: digits and coordinates.
_LENGTH = re.compile(r"(?:[0-9]|\{[^{}]+\}){1,10}")


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
    if kept is None:
        family = families.family(wire.family, where=f"{where}: `family`")
    else:
        family = families.read_family(kept / wire.family, with_answers=False, read_before=read_before, earlier=earlier)
    wire = _with_server(wire, family)
    load = _load(wire, family, where)
    _check_threads(wire, family, load, where)
    here = None if kept else (*wire.url, *servers.all_servers())
    steps = () if wire.scenario is None else wire.scenario.measured
    reader = _Reader(family, where, here, has_load=load is not None, steps=steps)
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
        remotes=tuple(Remote(url) for url in wire.url),
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


def _load(study: WireStudy, family: Family, where: str) -> Load | None:
    wire, served = study.load, bool(study.servers or study.url)
    if not family.load and (wire or study.url):
        what = "`load`" if wire else "`url`"
        raise TollbarError(
            f"{what} cannot be set for the family {family.name}, which sends its own requests", where=where
        )
    if wire is None:
        if not served or not family.load:
            return None
        if family.servers and not study.url:
            return default_load(family)
        raise TollbarError(
            "`[load]` is missing; a server needs requests",
            where=where,
            hint='for example `load.request.get = "/bytes/4096"`',
        )
    if not served:
        raise TollbarError(
            "`servers` is missing; a load needs a server", where=where, hint='for example `servers = ["nginx"]`'
        )
    if wire.request.get is None and not study.url:
        raise TollbarError(
            "`load.request.get` is missing; a server needs requests",
            where=where,
            hint='for example `get = "/bytes/4096"`',
        )
    if study.url and "beside" in wire.client:
        raise TollbarError(
            "`load.client` cannot be `beside` your own server, whose core is not known",
            where=where,
            hint="remove it; the client then has its own core",
        )
    if study.scenario is not None:
        _check_scenario(study.scenario, wire, where)
    expected = None if wire.expect.bytes is None else str(wire.expect.bytes)
    _check_template(wire.request.get or "", "load.request.get", family, where)
    _check_template(expected or "", "load.expect.bytes", family, where)
    if expected is not None and not _is_length(expected, family):
        what = f"`load.expect.bytes`: `{units.quoted(expected)}` must be the length of a body"
        hint = 'for example `bytes = 4096`, or a coordinate: `bytes = "{bytes}"`'
        raise TollbarError(what, where=where, hint=hint)
    return Load(
        users=wire.users,
        rates_hz=wire.rates,
        utilisations=wire.utilisation,
        think_s=wire.think,
        connection=wire.connection if study.scenario is None else study.scenario.connection,
        get=wire.request.get,
        unique_query=wire.request.unique,
        status=wire.expect.status,
        expected_bytes=expected,
        clients=wire.client,
        scenario=study.scenario,
    )


def _check_scenario(scenario: WireScenario, load: WireLoad, where: str) -> None:
    """Raise TollbarError for a load with requests of its own, and for a text that names no value."""
    if load.model_fields_set & {"request", "expect", "connection", "client"}:
        what = "`load` cannot have requests, answers, connections or clients next to `scenario`, whose steps have them"
        raise TollbarError(what, where=where, hint="keep `users`, `rates` and `think`")
    scenario.check_names(where)


def _check_template(template: str, key: str, family: Family, where: str) -> None:
    known = [*NOT_SETTINGS, *family.settings]
    try:
        fields = [(name, how, kind) for _, name, how, kind in Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise TollbarError(
            f"`{key}`: {error}", where=where, hint="write a literal brace twice, for example `{{`"
        ) from error
    for name, how, kind in fields:
        if name not in known:
            raise unknown("coordinate", name, known, where=f"{where}: `{key}`")
        if how or kind:
            # A format width of a billion would take as much memory.
            what = f"`{key}`: `{{{name}}}` must have only the name in its braces"
            raise TollbarError(what, where=where)


def _is_length(template: str, family: Family) -> bool:
    """Return whether a template gives a whole number at every cell."""
    names = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    numbers = [name for name in names if name in family.settings and family.settings[name].is_number]
    return _LENGTH.fullmatch(template) is not None and len(numbers) == len(names)


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


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reader of the names and values of one family, with errors that name the place."""

    family: Family
    where: str
    servers: tuple[str, ...] | None
    """Existing servers; None: servers need not exist here."""
    has_load: bool = False
    steps: tuple[str, ...] = ()
    """Steps of the scenario with which a pass ends."""

    def choices(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """Return the choices that these names and patterns match, in the family's order, the null one only by name."""
        patterns = [spelling.find(pattern, self.family.choices) or pattern for pattern in patterns]
        for pattern in patterns:
            if not any(is_like(name, pattern) for name in self.family.choices):
                raise unknown("choice", pattern, self.family.choices, where=f"{self.where}: `choices`")
        null = self.family.null.name
        found = tuple(
            name
            for name in self.family.choices
            if any(is_like(name, pattern) and (name != null or pattern == null) for pattern in patterns)
        )
        if not found:
            raise TollbarError(
                "`choices` selects no choice",
                where=self.where,
                hint=f'no pattern selects `{null}`; name it, for example `choices = ["{null}"]`',
            )
        return found

    def claim(self, claim: Claim, servers_of_study: Sequence[str] | None) -> Claim:
        """Return the checked claim of a study with these servers; None: they need not exist here."""
        self._has_metric("claim.metric", claim.metric, *JUDGED, *(NOTICED if self.has_load else ELAPSED))
        self._has_component("claim.component", claim.component, servers_of_study)
        of, over = self.coordinates("claim.of", claim.of), self.coordinates("claim.over", claim.over)
        grows = {}
        for name, ends in claim.grows.items():
            first, second = self.values("claim.grows", name, ends)
            grows[name] = (first, second)
        return replace(claim, of=of, over=over, grows=grows)

    def table(self, table: CrossTable) -> CrossTable:
        for side in ("rows", "columns"):
            self._known(f"table.{side}", getattr(table, side))
        if table.metric:
            self._has_metric("table.metric", table.metric)
        if table.rows == table.columns:
            raise TollbarError(f"`table.columns` cannot be `{table.columns}`, which has the rows", where=self.where)
        over, where = self.coordinates("table.over", table.over), self.coordinates("table.where", table.where)
        return replace(table, over=over, where=where)

    def figure(self, figure: Figure, servers_of_study: Sequence[str] | None) -> Figure:
        """Return the checked figure of a study with these servers; None: they need not exist here."""
        if figure.is_of_a_load and not self.has_load:
            raise TollbarError(f'`figure.draws`: `"{figure.draws}"` needs a load', where=self.where)
        if figure.groups is not None:
            self._known("figure.groups", figure.groups)
        self._has_component("figure.component", figure.component, servers_of_study)
        where = {name: self.patterns("figure.where", name, given) for name, given in figure.where.items()}
        series = tuple(
            replace(one, where={name: self.patterns("figure.series.where", name, v) for name, v in one.where.items()})
            for one in figure.series
        )
        return replace(figure, where=dict(where), series=series)

    def factors(self, wire: WireStudy, choices: Sequence[str]) -> dict[str, tuple[Value, Value]]:
        """Return the two values of each factor, in the study's order."""
        if wire.factors and len(set(wire.factors)) not in FACTORS:
            hint = 'for example `factors = ["choice", "bytes"]`'
            raise TollbarError("`factors` must be two or three different coordinates", where=self.where, hint=hint)
        found = {}
        specs = [normal(spec) for spec in wire.providers or ()]
        lists = {"choice": choices, "provider": specs, "server": list(wire.servers)}
        for name in wire.factors:
            given = lists[name] if name in lists else self.varied(name, wire.vary.get(name, ()))
            if len(given) != 2:
                what = f"`factors`: `{name}` has {counted(len(given), 'value')}; a factor must have two"
                place = f"{name}s" if name in lists else f"vary.{name}"
                raise TollbarError(
                    what, where=self.where, hint=f"set two values in `{place}`: first without the factor, then with it"
                )
            found[name] = (given[0], given[1])
        return found

    def _has_component(self, key: str, name: str | None, servers_of_study: Sequence[str] | None) -> None:
        if name is None or servers_of_study is None:
            return
        found = [*(servers.all_servers()[one] for one in servers_of_study), *servers.services().values()]
        known = dict.fromkeys(component.name for server in found for component in server.components)
        if name not in known:
            raise unknown("component", name, known, where=f"{self.where}: `{key}`")

    def _has_metric(self, key: str, name: str, *others: str) -> None:
        known = (*others, *self.family.metrics)
        if name not in known:
            if name in (*ELAPSED, *NOTICED):
                needs = "needs a load" if name in NOTICED else "cannot be measured with a load"
                raise TollbarError(f"`{key}`: `{name}` {needs}", where=self.where)
            raise TollbarError(f"`{key}`: no such metric: `{name}`", where=self.where, hint=nearest(name, known))

    def coordinates(self, key: str, given: Mapping[str, Value]) -> dict[str, Value]:
        return {name: self.values(key, name, (value,))[0] for name, value in given.items()}

    def varied(self, name: str, given: Sequence[Value]) -> tuple[Value, ...]:
        """Return the values of a setting, each of which makes a cell."""
        if name in CHOSEN_ELSEWHERE:
            raise TollbarError(
                f"`vary.{name}`: `{name}` cannot be in `[vary]`",
                where=self.where,
                hint=f"list its values in `{CHOSEN_ELSEWHERE[name]}`",
            )
        if not given:
            raise TollbarError(
                f"`vary.{name}` needs at least one value", where=self.where, hint="remove it to use the default"
            )
        return self.values(f"vary.{name}", name, given)

    def patterns(self, key: str, name: str, given: Value | tuple[Value, ...]) -> tuple[Value, ...]:
        values = given if isinstance(given, tuple) else (given,)
        if any("*" in str(value) for value in values):
            self._known(key, name)
            return values
        return self.values(key, name, values)

    def values(self, key: str, name: str, given: Sequence[Value]) -> tuple[Value, ...]:
        self._known(key, name)
        if name == "provider":
            return tuple(normal(str(value)) for value in given)
        if name in (*LOADS, "threads"):
            return self._numbers(key, name, given)
        known = {
            "choice": tuple(self.family.choices),
            "op": self.family.operations,
            "server": self.servers,
            "client": CLIENT_PLACES,
            "step": self.steps,
        }
        if name in known:
            return self.known(name, given, known[name], key)
        try:
            return tuple(self.family.settings[name].read(value) for value in given)
        except NotAValue as error:
            raise TollbarError(f"`{key}`: {error.what}", where=self.where, hint=error.hint) from error
        except ValueError as error:
            raise TollbarError(f"`{key}`: {error}", where=self.where) from error

    def known(self, name: str, given: Sequence[Value], known: Sequence[str] | None, key: str) -> tuple[str, ...]:
        """Return these names as known ones, or raise TollbarError."""
        names = [str(value) for value in given]
        if known is None:
            return tuple(names)
        found = {one: spelling.find(one, known) for one in names}
        for one, name_there in found.items():
            if name_there is None:
                raise unknown(name, one, known, where=f"{self.where}: `{key}`")
        return tuple(str(found[one]) for one in names)

    def _numbers(self, key: str, name: str, given: Sequence[Value]) -> tuple[Value, ...]:
        numbers = [whole(value) for value in given if not isinstance(value, str)]
        are_whole = name not in ("users", "threads") or all(isinstance(number, int) for number in numbers)
        if len(numbers) < len(given) or not are_whole or not all(0 <= number < inf for number in numbers):
            wanted = (
                f"{name} must be whole numbers"
                if name in ("users", "threads")
                else f"{name} must be a number without unit"
            )
            raise TollbarError(f"`{key}`: {wanted}, for example 8", where=self.where)
        try:
            for number in numbers if name == "threads" else ():
                THREADS.check(number)
        except ValueError as error:
            raise TollbarError(f"`{key}`: {error}", where=self.where) from error
        return tuple(numbers)

    def _known(self, key: str, name: str) -> None:
        known = [*NOT_SETTINGS, *self.family.settings]
        if name not in known:
            what = f"`{key}`: the family {self.family.name} has no setting `{name}`"
            raise TollbarError(what, where=self.where, hint=nearest_setting(self.family, name))


def nearest_setting(family: Family, name: str) -> str | None:
    """Return a hint for an unknown setting: a similar one, or the families that have it."""
    known = [*NOT_SETTINGS, *family.settings]
    begun = [one for one in known if name and one.startswith(name)]
    hint = nearest(begun[0] if len(begun) == 1 else name, known)
    others = [one.name for one in families.families().values() if name in one.settings]
    if not others or (hint or "").startswith("did you mean"):
        return hint
    said = f"{' and '.join(others)} {'has' if len(others) == 1 else 'have'} it"
    return f"{said}; {hint}" if hint else said
