"""Questions without a file: words of a command line become the text of an ordinary study.

A word without `=` is a choice, one with `=` a coordinate and its values. The result is TOML, which is read like any
other study, so that a question and its saved file cannot differ.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tollbar.catalog import families, libraries, servers
from tollbar.catalog.families import OF_A_LOAD, Family, Value
from tollbar.catalog.libraries import Provider, built_in, normal
from tollbar.core import spelling, wire
from tollbar.core.errors import TollbarError
from tollbar.core.patterns import is_like
from tollbar.study.values import DEFAULT_MEASURE, NOT_SETTINGS, USUAL_USERS, default_load
from tollbar.study.words import (
    DEFAULT_SERVER,
    PACES,
    choice_homes,
    choice_of,
    choices_of,
    coordinate_of,
    coordinates_of,
)

ASKED = "ask"
"""Name of a study that was asked for without a file."""


@dataclass(frozen=True, slots=True)
class Question:
    """A study as text, and the interpretation of its words."""

    tables: Mapping[str, Mapping[str, object]]
    """Tables of the study, by their titles; "" has the keys before all tables."""
    echo: Mapping[str, str]
    """Coordinates with their values, for people; sizes that no binary unit divides in bytes."""
    leave_out: Sequence[Mapping[str, object]] = ()
    measure: Mapping[str, object] = field(default_factory=dict)
    """Measuring parameters, except the number of blocks."""

    def text(self, blocks: int = DEFAULT_MEASURE.blocks) -> str:
        """Return the study's text with this number of blocks."""
        return wire.text_of({**self.tables, "leave-out": self.leave_out, "measure": {**self.measure, "blocks": blocks}})


def of_words(family_name: str, words: Sequence[str], against: str | None = None) -> Question:
    """Return the question of these words. Raises TollbarError that names the kind of a misplaced word."""
    family = _family(family_name, words)
    choices = choices_of(family, [word for word in words if "=" not in word])
    varied = coordinates_of(family, [word for word in words if "=" in word])
    if not choices:
        raise TollbarError(
            f"the question needs a choice of {family.name}",
            hint=f"known: {', '.join(family.choices)}; `*` is all of them",
        )
    return _Asked(family, choices, varied, against).question()


def offering(family: Family, choice: str, specs: Sequence[str]) -> str | None:
    """Return the first of these providers that performs a choice by itself; None if none reports that."""
    algorithm = str(family.choices[choice].setting.get("algorithm", choice))
    found = (one.spec for one in libraries.resolve(specs) if algorithm in _offers(one, family.name))
    return next(found, None)


def performing(family: Family, cell: Mapping[str, Value]) -> Sequence[str]:
    """Return the specs of providers that could perform a cell with its choice and server, preferred first."""
    if needs_server(family, cell):
        return ()
    kinds = servers.all_servers()[str(cell["server"])].runs_on if "server" in cell else ()
    if family.servers:
        return kinds
    choice = str(cell["choice"])
    algorithm = str(family.choices[choice].setting.get("algorithm", choice))
    tried = (one for one in _tried(family) if not kinds or one.kind in kinds)
    return [one.spec for one in tried if algorithm in _offers(one, family.name)]


def needs_server(family: Family, cell: Mapping[str, Value]) -> tuple[str, ...]:
    """Return the servers that alone have a cell's choice, if the cell has none; empty if its providers have it."""
    return () if "server" in cell else family.choices[str(cell["choice"])].servers


def _family(name: str, words: Sequence[str]) -> Family:
    try:
        return families.family(name)
    except TollbarError:
        homes = choice_homes(name)
        if not homes:
            raise
    first, choice = next(iter(homes.items()))
    what = f"`{choice}` is a choice of {' and of '.join(homes)}; the family must be first"
    others = [word for word in words if spelling.find(word, homes) is None]
    raise TollbarError(what, hint=shlex.join(["tollbar", "ask", first, choice, *others]))


@dataclass(frozen=True, slots=True)
class _Asked:
    """The requested choices and coordinates, completed by defaults."""

    family: Family
    choices: Sequence[str]
    varied: Mapping[str, tuple[Value, ...]]
    against: str | None

    def question(self) -> Question:
        baseline = self._baseline()
        choices = list(dict.fromkeys([*self.choices, *([str(baseline["choice"])] if "choice" in baseline else [])]))
        if {*baseline} == {"choice"} and self._meant(choices) == [baseline["choice"]]:
            hint = f"add another choice of {self.family.name}, or several values of a coordinate"
            raise TollbarError(f"`{baseline['choice']}` alone cannot be compared; a second cell is needed", hint=hint)
        server_names = self._servers()
        providers = self._providers(choices, server_names)
        in_vary = ("op", "threads")
        vary = {name: values for name, values in self.varied.items() if name not in NOT_SETTINGS or name in in_vary}
        if self._is_served and "op" not in vary:
            # One operation answers a question in one line; the others are requested by name.
            vary = {"op": self.family.operations[:1], **vary}
        tables: dict[str, Mapping[str, object]] = {
            "": {
                "question": self._words(choices, baseline),
                "family": self.family.name,
                **({"servers": server_names} if server_names else {}),
                "providers": providers,
                "choices": choices,
                "baseline": baseline,
            },
            "vary": vary,
            "load": self._load() if server_names and self.family.load else {},
        }
        echo: dict[str, Sequence[Value]] = {"choice": choices, "provider": providers}
        echo |= {"server": server_names} if server_names else {}
        echo |= {**vary, **{name: self.varied[name] for name in OF_A_LOAD if name in self.varied}}
        return Question(tables, {name: self._shown(name, values) for name, values in echo.items()})

    @property
    def _is_served(self) -> bool:
        """True if only servers perform this family."""
        return bool(self.family.servers)

    def _servers(self) -> list[Value]:
        found = [*self.varied.get("server", self.family.servers)]
        for name in OF_A_LOAD:
            if name in self.varied and not (found and self.family.load):
                word = f"{name}={','.join(map(str, self.varied[name]))}"
                if not self.family.load:
                    raise TollbarError(
                        f"the family {self.family.name} has no load; `{name}` cannot be set",
                        where=word,
                        hint=f"remove `{word}`",
                    )
                raise TollbarError(
                    f"`{name}` needs a server", where=word, hint=f"for example `server={DEFAULT_SERVER}`"
                )
        return found

    def _baseline(self) -> dict[str, Value]:
        """Return the baseline: as given; of several choices the first; of one, the first varied coordinate."""
        if self.against is not None:
            if "=" not in self.against:
                return self._with_parameters(choice_of(self.family, self.against))
            name, values = coordinate_of(self.family, self.against)
            if len(values) > 1:
                raise TollbarError(
                    "must have one value",
                    where=f"--baseline {self.against}",
                    hint=f"for example `--baseline {name}={values[0]}`",
                )
            return {name: values[0]}
        named = self._meant(self.choices)
        if len(named) > 1:
            first = self.choices[0]
            return self._with_parameters(
                first if first in named else next(name for name in named if is_like(name, first))
            )
        several = {name: values for name, values in self.varied.items() if len(values) > 1 or "*" in str(values[0])}
        settings: dict[str, Value] = {}
        for name, values in several.items():
            if self._is_plain_setting(name) and self._means_something(name, settings):
                settings[name] = values[0]
        if settings:
            return settings
        sizes = [name for name in several if name in self.family.settings]
        for name in ("threads", "provider", "server", "op", *sizes, "users", "client"):
            if name in several:
                return {name: _named(several[name][0]) if name == "provider" else several[name][0]}
        return {"choice": self.family.null.name}

    def _with_parameters(self, choice: str) -> dict[str, Value]:
        """Return the choice, with the first of several given values of its own parameters."""
        own = {
            name: values[0]
            for name, values in self.varied.items()
            if len(values) > 1
            and name in self.family.parameters
            and self.family.settings[name].applies({"choice": choice})
        }
        return {"choice": choice, **own}

    def _meant(self, choices: Sequence[str]) -> list[str]:
        """Return the choices that these words and patterns match."""
        return [name for name in self.family.choices if any(is_like(name, word) for word in choices)]

    def _means_something(self, name: str, others: Mapping[str, Value]) -> bool:
        """Return whether a setting applies with these values of others, as far as they decide it."""
        setting = self.family.settings[name]
        only = {other: patterns for other, patterns in setting.only.items() if other in others}
        return setting.applies(others, only=only)

    def _is_plain_setting(self, name: str) -> bool:
        setting = self.family.settings.get(name)
        return setting is not None and not setting.is_size

    def _providers(self, choices: Sequence[str], server_names: Sequence[Value]) -> list[Value]:
        """Return the named providers; else the first that performs every choice, or the first for each of them."""
        if "provider" in self.varied:
            return [normal(str(value)) for value in self.varied["provider"]]
        runs_on = [servers.all_servers()[str(name)].runs_on for name in server_names]
        if self._is_served:
            return [*dict.fromkeys(kinds[0] for kinds in runs_on)]
        wanted = {name for name in self._meant(choices) if name != self.family.null.name}
        if not server_names:
            wanted -= {name for name in wanted if self.family.choices[name].servers}
        kinds = {kind for some in runs_on for kind in some}
        found = (one for one in _tried(self.family) if not kinds or one.kind in kinds)
        # Choices that differ only in parameters are offered under one algorithm's name.
        wanted = {str(self.family.choices[name].setting.get("algorithm", name)) for name in wanted}
        lacking, taken = set(wanted), dict[Value, None]()
        for one in found:
            offered = _offers(one, self.family.name)
            if wanted <= offered:
                return [one.spec]
            if lacking & offered:
                taken[one.spec] = None
                lacking -= offered
        # No provider has them all, so each choice gets the first that has it.
        return [*taken] or [*self.family.providers]

    def _load(self) -> dict[str, object]:
        paces = {key: self.varied[name] for name, (key, _) in PACES.items() if name in self.varied}
        users = self.varied.get("users", (USUAL_USERS,))
        load: dict[str, object] = {"shape": "open", **paces} if paces else {}
        load["users"] = users
        if "client" in self.varied:
            load["client"] = self.varied["client"]
        usual = default_load(self.family)
        if usual.connection:
            load["connection"] = usual.connection
        load["request"] = {"get": usual.get}
        load["expect"] = {"status": usual.status, **({"bytes": usual.expected_bytes} if usual.expected_bytes else {})}
        return load

    def _words(self, choices: Sequence[str], baseline: Mapping[str, Value]) -> str:
        """Return the question as a sentence."""
        over = ", ".join(self._over(name, value) for name, value in baseline.items())
        of = [name for name in choices if name != baseline.get("choice")] or [*choices]
        if "*" in of:
            of = ["all others"]
        named = of[0] if len(of) == 1 else f"{', '.join(of[:-1])} and {of[-1]}"
        by = "" if "choice" in baseline else f" by {' and '.join(name.replace('-', ' ') for name in baseline)}"
        return f"What {'does' if named in self.family.choices else 'do'} {named} cost{by}, against {over}?"

    def _over(self, name: str, value: Value) -> str:
        """Return the baseline's value for the question: a number with its unit or name."""
        setting = self.family.settings.get(name)
        if setting is None:
            named = {"client": f"a client {value}", "threads": "one thread" if value == 1 else f"{value} threads"}
            return named.get(name, str(value))
        shown = setting.words(setting.read(value))
        return shown if setting.is_size or setting.values else f"{name} {shown}"

    def _shown(self, name: str, values: Sequence[Value]) -> str:
        setting = self.family.settings.get(name)
        if setting is None:
            return ", ".join(str(value) for value in values)
        return ", ".join(setting.words(setting.read(value)) for value in values)


def _tried(family: Family) -> Iterator[Provider]:
    """Yield the providers in order of preference for a question that names none."""
    seen: set[str] = set()
    for pattern in (*family.providers, *built_in(), "libcrypto:*"):
        for one in libraries.look_up([pattern])[0]:
            if one.spec not in seen:
                seen.add(one.spec)
                yield one


def _offers(provider: Provider, family: str) -> set[str]:
    """Return the choices of a family that a provider performs by itself."""
    return set(provider.receipt.get("offers", {}).get(family, ()))


def _named(spec: Value) -> Value:
    """Return the first provider of a pattern: `libcrypto:*` for the system's own."""
    kind, _, label = str(spec).partition(":")
    return kind if label == "*" else normal(str(spec))
