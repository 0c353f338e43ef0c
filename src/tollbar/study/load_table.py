"""Reading a study's load: the users and requests of a server's cells."""

from __future__ import annotations

import re
from string import Formatter

from tollbar.catalog.families import Family
from tollbar.core import units
from tollbar.core.errors import TollbarError, unknown
from tollbar.study.keys import WireLoad, WireStudy
from tollbar.study.scenario import WireScenario
from tollbar.study.values import (
    NOT_SETTINGS,
    Load,
    default_load,
)

# Length of a body: digits and coordinates.
_LENGTH = re.compile(r"(?:[0-9]|\{[^{}]+\}){1,10}")


def load_of(study: WireStudy, family: Family, where: str) -> Load | None:
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
