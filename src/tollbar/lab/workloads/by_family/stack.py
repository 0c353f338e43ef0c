"""Workload of a whole request: one server that signs users in, speaks TLS, and reads a table for its page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tollbar.catalog import families, servers
from tollbar.catalog.families import MadeOf
from tollbar.catalog.libraries import look_up
from tollbar.catalog.servers import Installed, NotStarted
from tollbar.core.records import Outcome, Proven
from tollbar.lab import workloads
from tollbar.lab.servers.configuration import Request
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import Given, Work
from tollbar.lab.workloads.by_family.database_sign_on import sign_ons
from tollbar.lab.workloads.by_family.storage import ANSWER_LIMIT_S, CHOICES, REACHED, USER
from tollbar.lab.workloads.by_family.web_auth import PROVEN_OTHERWISE_S, PROVEN_S
from tollbar.lab.workloads.request import Client, RequestWorkload, settings_of
from tollbar.lab.workloads.request_work import Target
from tollbar.study.plan.cells import Cell

SIGN_IN, TRANSPORT, STORAGE = "sign-in", "transport", "storage"
# Server with the table in its own process, and the application behind the others.
EMBEDDED, APPLICATION = "embedded", "application"
# Component that clients access, and the folder of SQLite files in the component that has them.
FRONTEND, ROWS = "web", "rows"
# Provider of column encryption: the database's own build, or the application next to a server.
ENCRYPTED_BY = {"sqlite": "sqlite", "postgresql": "aws-lc"}


class StackWorkload(RequestWorkload):
    """Page for authorised users, with a row of a table."""

    def prove(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Return the proof as it will be measured, except for a shorter time to live that a proof can wait for."""
        name = f"{SIGN_IN}-time-to-live"
        if name not in cell.coordinates:
            return super().prove(cell, seed, given)
        time_to_live_s = PROVEN_S.get(str(cell.coordinates[SIGN_IN]), PROVEN_OTHERWISE_S)
        tried = replace(cell, coordinates={**cell.coordinates, name: time_to_live_s})
        return replace(super().prove(tried, seed, given), cell=cell.key)

    @contextmanager
    def up(
        self, cell: Cell, seed: int, sandbox: Sandbox | None, core: int | None, *, begins_on: int | None = None
    ) -> Iterator[Work]:
        """Start the servers, all of which are needed for each page: an idle one fails the trial."""
        # If a process of the database ends with each page, an exact account needs as many pages as sign-ons.
        pages = sign_ons() if "authentication" in cell.coordinates else 1
        with super().up(cell, seed, sandbox, core, begins_on=begins_on) as work:
            yield replace(work, busy=tuple(work.components), fewest=max(pages, work.fewest))

    def request(self, cell: Cell, found: Installed, seed: int, sandbox: Sandbox | None) -> Request:
        """Return the request of its transport, with the words of its sign-in and of its table."""
        transport, sign_in = _part(cell, TRANSPORT), _part(cell, SIGN_IN)
        asked = _requests(transport).request(transport, found, seed, sandbox)
        signed = _requests(sign_in).request(sign_in, found, seed, sandbox)
        if signed.services and _database(cell):
            reason = "the accounts would need a second PostgreSQL next to that of the rows"
            raise NotStarted(Outcome.UNSUPPORTED, f"{reason}; use `{SIGN_IN}-store=file` or `database=sqlite`")
        words = {name: value for name, value in signed.words.items() if name not in asked.words}
        words |= {"rows": _rows(cell, seed)}
        behind = [one for one in (_database(cell), _application(found)) if one]
        return replace(
            asked,
            settings={**signed.settings, **settings_of(cell)},
            words={**asked.words, **words},
            shown_words={**(asked.shown_words or asked.words), **words},
            services=(*signed.services, *behind),
        )

    def clients(self, cell: Cell, sandbox: Sandbox | None) -> list[Client]:
        """Return the clients of its transport."""
        transport = _part(cell, TRANSPORT)
        return _requests(transport).clients(transport, sandbox)

    def exchange(self, cell: Cell, server: Target, sandbox: Sandbox | None) -> dict[str, Any] | None:
        """Return the exchange of its sign-in. Raises NotStarted if the server has not made its table."""
        if sandbox is not None and _database(cell) is None:
            has_rows = server.work_dirs.get(APPLICATION) or server.work_dirs[FRONTEND]
            if not any((has_rows / ROWS).glob("*")):
                raise NotStarted(Outcome.FAILED, "the application did not create its table of rows")
        sign_in = _part(cell, SIGN_IN)
        return _requests(sign_in).exchange(sign_in, server, sandbox)

    def account_like(self, cell: Cell) -> str | None:
        """Return the account that its sign-in needs."""
        sign_in = _part(cell, SIGN_IN)
        return _requests(sign_in).account_like(sign_in)

    def _task(self, cell: Cell, mode: str, seed: int, server: Target, sandbox: Sandbox | None) -> dict[str, Any]:
        """Return the load client's task, including the rows to expect."""
        task = super()._task(cell, mode, seed, server, sandbox)
        rows = {"address": server.addresses.get(APPLICATION), "connection": cell.coordinates["connection"]}
        return {**task, "load": {**task["load"], "rows": rows}}

    def proven_alone(self, cell: Cell, seed: int, given: Given) -> Proven:
        """Return the proof of the table alone: refused wrong inputs, and a search of the database's files."""
        return workloads.of(_part(cell, STORAGE)).prove(_part(cell, STORAGE), seed, given)


def _requests(cell: Cell) -> RequestWorkload:
    workload = workloads.of(cell)
    assert isinstance(workload, RequestWorkload)
    return workload


def _part(cell: Cell, name: str) -> Cell:
    """Return the cell of one of the families that this family combines."""
    whole = families.family(cell.family)
    assert isinstance(whole, MadeOf)
    member = whole.members[name]
    at = member.cell({**cell.coordinates, **cell.choice.setting})
    family, server, provider = member.family, cell.server, cell.provider
    if name == STORAGE:
        database = str(cell.coordinates["database"])
        server = servers.all_servers().get(database)
        at = member.cell({**cell.coordinates, **cell.choice.setting, "server": server.name if server else ""})
        ((provider,), _) = look_up((ENCRYPTED_BY[database],), ())
    return replace(
        cell,
        family=family.name,
        choice=family.choices[str(at["choice"])],
        server=server,
        provider=provider,
        coordinates=at,
        standing=family.standing_of(at),
    )


def _database(cell: Cell) -> Installed | None:
    """Return the database behind the server; None if the table is in the server itself. Raises NotStarted."""
    storage, database = _part(cell, STORAGE), str(cell.coordinates["database"])
    if storage.choice.name not in CHOICES[database]:
        raise NotStarted(Outcome.UNSUPPORTED, f"{database} does not support {storage.choice.name}")
    server = servers.all_servers().get(database)
    return servers.here(server) if server else None


def _application(found: Installed) -> Installed | None:
    """Return the application with the table behind a web server. Raises NotStarted.

    None if the server has the table itself.
    """
    return None if found.server.name == EMBEDDED else servers.service(APPLICATION)


def _rows(cell: Cell, seed: int) -> dict[str, Any]:
    """Return the table's own task; the server's template adds its location."""
    storage, database = _part(cell, STORAGE), str(cell.coordinates["database"])
    task = {name: value for name, value in storage.task("measure", seed).items() if name != "contract"}
    server = None
    if database in REACHED:
        _, name = REACHED[database]
        server = {
            "kind": database,
            "user": USER,
            "database": name,
            "answer_limit_s": ANSWER_LIMIT_S,
            "authentication": cell.coordinates.get("authentication", "trust"),
        }
    return {**task, "store": {"server": server, "connection": cell.coordinates["connection"]}}
