"""Set-up by role: the machines and programs of a source, next to those of the run, and its recommendations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tollbar.analysis import StudyJudgement
from tollbar.catalog import families, servers
from tollbar.catalog.servers.places import CLIENT
from tollbar.catalog.sources import Advice, Flow
from tollbar.core.words import counted
from tollbar.report.blocks import Table, TableCell, numbers, row_names, texts
from tollbar.report.numbers import amount
from tollbar.report.sections.cpu import components_of
from tollbar.results import Row, Run
from tollbar.study import Publication

APPLICATION = "application"
# A method of an application server is the embedded server's own here.
NO_ROLE = "no role of its own here: with the web server"
NOT_STATED = "not stated"
NOTHING = "–"
ROUND_TRIPS = "requests measured"


def setup_table(source: Publication, studies: Sequence[StudyJudgement], run: Run) -> Table:
    """Return a row for each role of the source or of the run: the source's machine and programs, and the run's."""
    programs = _programs(studies)
    rows = [
        (
            TableCell(role),
            TableCell(source.setup.get(role, NOT_STATED)),
            TableCell(_machine(run, role) if role == CLIENT or role in programs else NOTHING),
            TableCell(_software(run, role, programs)),
        )
        for role in (CLIENT, "web", APPLICATION, "database", "directory")
        if role == CLIENT or role in source.setup or role in programs
    ]
    columns = (
        *row_names("role"),
        *texts(f"in the source ({source.year})" if source.year else "in the source", "machine here", "programs here"),
    )
    return Table("Set-up by role", columns, rows)


def advice_table(source: Publication) -> Table:
    """Return a source's recommendations by environment, as of its year, with the present standing of their subjects."""
    then = f"recommended by the source{_year(source) or ' then'}"
    columns = (*row_names("environment"), *texts(then, "where", "rating today, by Tollbar"))
    rows = [
        (TableCell(one.environment), TableCell(one.says), TableCell(one.where), TableCell(_rating(one) or NOTHING))
        for one in source.advice
    ]
    return Table("The source's recommendations, by environment: of its time, not of today", columns, rows)


def flow_table(source: Publication, studies: Sequence[StudyJudgement]) -> Table:
    """Return the requests and answers of each sign-on that a source draws, with the measured number of requests."""
    columns = (*row_names("mode"), *texts("figure of the source", "requests and answers here"), *numbers(ROUND_TRIPS))
    rows = [
        (TableCell(one.mode), TableCell(one.figure), TableCell(one.requests), TableCell(_round_trips(one, studies)))
        for one in source.flows
    ]
    return Table("Flow of a sign-on", columns, rows)


def _round_trips(flow: Flow, studies: Sequence[StudyJudgement]) -> str:
    """Return the measured requests of a flow; those of a plain request are not counted."""
    for study in (one for one in studies if one.about.name == flow.study):
        for one in study.measurements:
            if one.metric == "round-trips" and flow.cell.items() <= one.row.coordinates.items():
                return f"{one.value:.3g}"
    return NOTHING


def _year(source: Publication) -> str:
    return f" in {source.year}" if source.year else ""


def _rating(advice: Advice) -> str:
    """Return the standings of the subjects of a recommendation, and Tollbar's remark."""
    found = []
    for one in advice.rated:
        family = families.family(one["family"])
        (name, value) = next((name, value) for name, value in one.items() if name != "family")
        part = family.choices[value] if name == "choice" else family.settings[name].about[value]
        found.append(f"{part.title}: {part.standing}")
    return "; ".join([*found, *([advice.note] if advice.note else [])])


def _software(run: Run, role: str, programs: Mapping[str, Sequence[str]]) -> str:
    if role == CLIENT:
        return f"Tollbar {run.version}"
    if role == APPLICATION:
        return NO_ROLE
    return ", ".join(programs.get(role, ())) or NOTHING


def _machine(run: Run, role: str) -> str:
    """Return the machine of a role: the lab's, unless the role has one of its own."""
    node = run.nodes.get(role)
    if node is not None:
        return f"a machine of its own: {_words(node['fingerprint'])}"
    return f"the lab's: {_words(run.fingerprint)}"


def _words(of: Mapping[str, Any]) -> str:
    said = [str(of.get("cpu", NOT_STATED))]
    said += [counted(int(of["cores"]), "core")] if "cores" in of else []
    said += [amount(float(of["memory_bytes"]), "B")] if "memory_bytes" in of else []
    return ", ".join(said)


def _programs(studies: Sequence[StudyJudgement]) -> Mapping[str, Sequence[str]]:
    """Return the measured servers with their versions, and the components of services, by role."""
    found: dict[str, dict[str, None]] = {}
    for study in studies:
        for row in study.rows:
            if any(trial.chunks for trial in row.trials):
                for role, program in _of_row(study, row):
                    found.setdefault(role, {})[program] = None
    return {role: [*programs] for role, programs in found.items()}


def _of_row(study: StudyJudgement, row: Row) -> Iterator[tuple[str, str]]:
    if row.server is None:
        return
    # A family that sends its own requests starts its database itself.
    yield ("web" if study.about.family.load else "database"), row.server_version or row.server
    known = servers.all_servers().get(row.server)
    own = {component.name for component in known.components} if known else set()
    others = {component.name: component.role for one in servers.services().values() for component in one.components}
    yield from ((others[name], name) for name in components_of(row) if name in others and name not in own)
