"""Names and values of a study: those of its family, or a one-line error with their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from tollbar.catalog import families, servers
from tollbar.catalog.families import LOADS, Family, Value, whole
from tollbar.catalog.families.settings import NotAValue
from tollbar.catalog.libraries import normal
from tollbar.core import spelling
from tollbar.core.errors import TollbarError, nearest, unknown
from tollbar.core.limits import THREADS
from tollbar.core.patterns import is_like
from tollbar.core.words import counted
from tollbar.study.figures import Figure
from tollbar.study.keys import WireStudy
from tollbar.study.values import (
    CHOSEN_ELSEWHERE,
    CLIENT_PLACES,
    NOT_SETTINGS,
    Claim,
    CrossTable,
)

# Metrics that claims may use: in every family, without users, and with users of a server.
JUDGED = ("capacity", "cost")
ELAPSED = ("wall",)
NOTICED = ("throughput", "latency-p50")

# Allowed number of factors: all combinations of two values each run at once, on one core.
FACTORS = (2, 3)


@dataclass(frozen=True, slots=True)
class Naming:
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
            raise TollbarError(
                f"`table.columns` and `table.rows` must differ; both are `{table.columns}`", where=self.where
            )
        over, where = self.coordinates("table.over", table.over), self.coordinates("table.where", table.where)
        return replace(table, over=over, where=where)

    def figure(self, figure: Figure, servers_of_study: Sequence[str] | None) -> Figure:
        """Return the checked figure of a study with these servers; None: they need not exist here."""
        if figure.is_of_a_load and not self.has_load:
            raise TollbarError(f'`figure.draws = "{figure.draws}"` needs `[load]`', where=self.where)
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
