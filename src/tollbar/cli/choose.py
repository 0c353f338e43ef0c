"""`tollbar choose`: the choice to take under policies and threats, and the costs of the others."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tollbar import results, study
from tollbar.analysis import quickness
from tollbar.catalog import libraries, policies, servers
from tollbar.catalog.families import Family, Standing, Value, is_answer
from tollbar.catalog.libraries import normal
from tollbar.catalog.policies import Ruling
from tollbar.cli.layouts import (
    DEFAULT_LAYOUT,
    Date,
    For,
    Layout,
    Libraries,
    RunsFolder,
    Seed,
    command_line,
    read_run,
    read_seconds,
    show_answer,
)
from tollbar.cli.meant import swapped
from tollbar.core.errors import ExitStatus, TollbarError, nearest, one_line
from tollbar.core.intervals import FEWEST_BLOCKS
from tollbar.core.patterns import is_like
from tollbar.decide.candidates import PROVIDER, Nearby, nearby
from tollbar.decide.choose.answered import Answered
from tollbar.decide.choose.words import answer
from tollbar.decide.choosing import Choosing, chosen
from tollbar.decide.choosing import choose as choose_from
from tollbar.decide.rulings import Candidate, Wanted, turned_on, wanted
from tollbar.report import terminal
from tollbar.results import Run, StudyRun

if TYPE_CHECKING:
    from tollbar.study.plan import Plan

# Choices that do not qualify are measured too, and a server needs time to start.
DEFAULT_FOR, DEFAULT_FOR_SERVED = "15 s", "1 min"
MOST_CELLS = 40
FEWEST_CELLS = 2
# Usual times are those of fast operations: a signature may take a hundred times as long. The rest of the time is for
# more blocks.
USUAL_SHARE = 0.5
# Choices with parameters are slow by design: some tenths of a second an operation, of which a block has a few.
SLOW_CELL_S = 1.5


def choose(
    family: str,
    /,
    *words: str,
    policy: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    threat: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    environment: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    on: Date = None,
    run: Path | None = None,
    for_: For = None,
    seed: Seed = None,
    library: Libraries = (),
    runs: RunsFolder = Path("runs"),
    layout: Layout = DEFAULT_LAYOUT,
) -> ExitStatus:
    """Choose an option that meets policies and mitigates threats.

    Threats and policies decide which choices qualify. The answer is the family's default if it qualifies; then follow
    the saving and the losses of a cheaper choice, and the cost of a stronger one. Deprecated and broken choices never
    qualify. Settings that a policy rules on, or that a threat depends on, are varied unless you give them.

    tollbar choose digest --policy asvs-level-2
    tollbar choose tls server=nginx --policy tlsref-intermediate --threat harvest-now-decrypt-later
    tollbar choose signature --policy tr-02102 --date 2032-01-01
    tollbar choose web-auth server=httpd --environment intranet --environment server-farm
    tollbar choose storage --threat administrator=partly --run runs/2026-11-21-101500-storage-today-sqlite

    Parameters
    ----------
    family
        Family of the choices, such as `digest` (`tollbar list families`).
    words
        Coordinates (`server=nginx`, `bytes=4KiB`), and choices (`aes-*`) to consider; default: all choices.
    policy
        Policy that must be met: a name (its newest edition, unless you name one) or your own TOML file. Repeatable.
    threat
        Threat that must be mitigated, such as `harvest-now-decrypt-later`; `THREAT=partly` accepts a mitigation with a
        condition. Repeatable.
    environment
        Place of use that must suit the choice, such as `intranet` (`tollbar list environments`). Its rules only
        exclude. Repeatable.
    on
        Date to judge by, such as `2032-01-01`; default: today. The answer names the choices that no longer qualify
        then.
    run
        Run whose costs are used, such as `runs/2026-11-21-101500-digests`; default: measure a new run.
    for_
        Approximate time of the whole command, such as `30s`; default: 15 s, or 1 min with a server. As many candidates
        as fit are measured, nearest to the usual settings first. `0s` measures nothing and lists candidates without
        costs.
    """
    began_s = time.monotonic()
    if (typed := swapped(family, [*words, *policy])) is not None:
        raise TollbarError(
            f"`{one_line(family)}` is a policy; the family must be first", hint=f"tollbar choose {typed}"
        )
    asked = wanted(family, policy, threat, on, standing=Standing.ACCEPTABLE)
    policies.refuse_silent(asked.policies, asked.family.name)
    suiting = (policies.environment(one, asked.family.name) for one in dict.fromkeys(environment))
    asked = replace(asked, policies=(*asked.policies, *suiting))
    # Before anything is measured: policies with too many rules cannot be compared.
    policies.contradictions(asked.policies, asked.family, asked.on)
    choices = study.choices_of(asked.family, [word for word in words if "=" not in word])
    _refuse_no_answers(asked.family, choices)
    coordinates = [word for word in words if "=" in word]
    given = _given(asked.family, choices, study.coordinates_of(asked.family, coordinates))
    for one in asked.policies:
        terminal.say(f"  policy     {one.name}: {one.title}, {one.edition}")
    if run is not None and for_ is not None:
        raise TollbarError(
            "cannot be combined with `--run`, which measures nothing", where=f"--for {for_}", hint="remove one of them"
        )
    if run is not None:
        found = _from_run(asked, given, run)
    else:
        usual = DEFAULT_FOR_SERVED if _served(asked.family, given) else DEFAULT_FOR
        within = read_seconds("--for", usual if for_ is None else for_)
        near = _nearby(asked, given)
        if not near.candidates:
            raise TollbarError(near.refusal or "no candidate is left; the words must allow at least one")
        found = (
            _measured(asked, near, coordinates, began_s, within, seed, library, runs)
            if within
            else _unpriced(asked, near, given, seed, library)
        )
        if not found.qualifies and near.refusal is not None:
            # A choice may qualify on another server.
            other = (
                "; `server=NAME` sets another server (`tollbar list servers`)"
                if asked.family.servers and "`server=" not in near.refusal
                else ""
            )
            terminal.say(f"  left out   {near.refusal}{other}")
    if not found.qualifies and asked.on > asked.today:
        found = replace(found, instead=_instead(asked, given))
    said = answer(found)

    def document() -> object:
        from tollbar.decide.choose.document import made

        return made(found, said)

    show_answer(said, document, layout)  # type: ignore[arg-type]
    return ExitStatus.DONE if found.qualifies else ExitStatus.SOME_FAILED


def _refuse_no_answers(family: Family, choices: Sequence[str]) -> None:
    """Raise TollbarError if a choice is named that is measured for comparison only: without protection, or nobody's."""
    for name in choices:
        if name in family.choices and not is_answer(family, name):
            raise TollbarError(
                f"`{name}` is measured for comparison only and is never the answer; another choice is needed",
                hint=f"remove it; its cost is in `tollbar ask {family.name} {name}` with another choice",
            )


def _given(
    family: Family, choices: Sequence[str], said: Mapping[str, tuple[Value, ...]]
) -> dict[str, tuple[Value, ...]]:
    """Return the coordinates of the words, as cells have them."""
    given: dict[str, tuple[Value, ...]] = {"choice": tuple(choices)} if choices else {}
    for name, values in said.items():
        setting = family.settings.get(name)
        if setting is not None and "*" in values:
            continue
        read = (setting.read(value) for value in values) if setting else values
        given[name] = tuple(normal(str(value)) if name == "provider" else value for value in read)
    return given


def _served(family: Family, given: Mapping[str, tuple[Value, ...]]) -> bool:
    return bool(family.servers) or "server" in given


def _from_run(asked: Wanted, given: Mapping[str, tuple[Value, ...]], path: Path) -> Answered:
    found = read_run(path, family=asked.family.name)
    if not found.studies:
        known = ", ".join(sorted({one.family.name for one in results.studies(path)}))
        raise TollbarError(
            f"the run has no cells of the family {asked.family.name}", where=str(path), hint=f"it has {known}"
        )
    if not any(map(_is_of_servers, found.studies)):
        what = f"the run has only the load client's CPU time for {asked.family.name}; the server's is needed"
        hint = "on the server's machine, measure again with `--server-pid PID`"
        raise TollbarError(what, where=str(path), hint=hint)
    places = _places(asked, given, found)
    if not places:
        _refuse_unknown(asked, given, found)
    near = _nearby(asked, given)
    there = [row.coordinates for one in found.studies for row in one.rows]
    return Answered(asked, places, _left(near, there), f"from {found.name}", is_of_run=True)


def _left(near: Nearby, there: Sequence[Mapping[str, Value]]) -> list[Candidate]:
    """Return the candidates that no row has."""
    return [one for one in near.candidates if not any(near.cell(one).items() <= at.items() for at in there)]


def _places(asked: Wanted, given: Mapping[str, tuple[Value, ...]], run: Run) -> list[Choosing]:
    known = quickness(run)
    return [place for one in run.studies if _is_of_servers(one) for place in choose_from(asked, one, given, known)]


def _is_of_servers(of: StudyRun) -> bool:
    """Return true if a study has costs of its family's choices: a load client's CPU time is not a server's."""
    return of.study.measure.cost != "client-cpu"


def _refuse_unknown(asked: Wanted, given: Mapping[str, tuple[Value, ...]], run: Run) -> None:
    """Raise TollbarError that names the coordinate that no row of the run has, and the known values."""
    rows = [row for one in run.studies for row in one.rows]
    for name, values in given.items():
        there = {row.coordinates[name] for row in rows if name in row.coordinates}
        if not any(is_like(str(have), str(value)) for have in there for value in values):
            said, known = ([asked.family.typed(name, one) for one in some] for some in (values, sorted(there, key=str)))
            hint = nearest(said[0], known) or f"it has {', '.join(known[:8]) or 'none'}"
            raise TollbarError(f"no row of the run has `{name}={','.join(said)}`", where=str(run.directory), hint=hint)
    raise TollbarError("no row of the run has all of these coordinates", where=str(run.directory))


def _measured(
    asked: Wanted,
    near: Nearby,
    words: Sequence[str],
    began_s: float,
    within_s: float,
    seed: int | None,
    library: Sequence[Path],
    runs: Path,
) -> Answered:
    """Measure the cells nearest to qualifying, as many as the time allows."""
    if not near.measurable:
        return Answered(asked, (), near.candidates, "nothing was measured")
    # Modules that measure take a fifth of the time that an answer from a run needs without them.
    from tollbar import lab
    from tollbar.cli import measuring
    from tollbar.cli.options import full_paths

    named = full_paths(library)
    planned = _fitting(asked, near, words, within_s, lab.drawn_seed(seed), named)
    store = lab.begin_planned(planned, command=command_line(), runs=runs, named_libraries=named)
    terminal.say(f"  question   {len(near.candidates)} cells to choose from; {len(planned.cells)} are measured")
    how_long = lab.HowLong(until_s=began_s + within_s, wanted=[near.cell(one) for one in near.measurable])
    judged = measuring.carry_out(planned, store, report=False, how_long=how_long)
    places = _places(asked, {}, judged.run)
    there = [row.coordinates for row in judged.run.studies[0].rows]
    return Answered(asked, places, _left(near, there), f"measured now, kept in {store.directory}")


def _unpriced(
    asked: Wanted, near: Nearby, given: Mapping[str, tuple[Value, ...]], seed: int | None, library: Sequence[Path]
) -> Answered:
    """Return the qualifying candidates without costs, with the requested sizes and loads, which decide nothing."""
    for option, said in (("--library", library), ("--seed", seed is not None)):
        if said:
            raise TollbarError(
                "cannot be combined with `--for 0s`, which measures nothing", where=option, hint="remove one of them"
            )
    libraries.resolve([*map(str, given.get(PROVIDER, ()))])
    single = {name: values[0] for name, values in given.items() if len(values) == 1 and name in asked.family.settings}
    asked_for = [
        replace(one, coordinates={**one.coordinates, **{n: v for n, v in single.items() if n in one.coordinates}})
        for one in near.candidates
    ]
    return Answered(asked, [chosen(asked, {}, asked_for)], (), "nothing was measured", is_unpriced=True)


def _nearby(asked: Wanted, given: Mapping[str, tuple[Value, ...]]) -> Nearby:
    """Return the candidates, judged as they will be measured: where a policy rules on providers, by provider."""
    judged_by = dict(_judged_by(asked, given))
    if PROVIDER in given and PROVIDER in turned_on(asked):
        judged_by[PROVIDER] = tuple(one.spec for one in libraries.resolve([*map(str, given[PROVIDER])]))
    found = nearby(asked, judged_by, lambda cell: study.performing(asked.family, cell))
    needed = ((one, study.needs_server(asked.family, one.coordinates)) for one in found.candidates)
    marked = tuple(replace(one, unmeasured=_in_server(names)) if names else one for one, names in needed)
    return replace(found, candidates=marked)


def _instead(asked: Wanted, given: Mapping[str, tuple[Value, ...]]) -> Sequence[Candidate]:
    """Return the candidates that qualify if the words allow other choices, or else other settings too."""
    others = {name: values for name, values in given.items() if name != "choice"}
    places = {name: values for name, values in others.items() if name not in asked.family.settings}
    for fewer in (others, places):
        candidates = _nearby(asked, fewer).candidates if fewer != given else ()
        if found := [one for one in candidates if one.ruling is Ruling.MEETS]:
            return found
    return ()


def _in_server(names: Sequence[str]) -> str:
    """Return that only these servers have a choice, and the command that installs the first if it is not there."""
    found = servers.find(servers.all_servers()[names[0]])
    missing = f"; {found.reason}" if isinstance(found, servers.Unavailable) else ""
    return f"it needs {' or '.join(f'`server={name}`' for name in names)}{missing}"


def _judged_by(asked: Wanted, given: Mapping[str, tuple[Value, ...]]) -> Mapping[str, tuple[Value, ...]]:
    """Return the coordinates that decide a cell's settings, its standing, or a rule's answer.

    Sizes and loads that no rule is on decide none of these; nor do several operations.
    """
    family = asked.family
    servers = {"server": tuple(family.servers)} if family.servers else {}
    deciding = {*family.parameters, *turned_on(asked), *(n for n, one in family.settings.items() if one.values)}
    kept = {
        name: values
        for name, values in given.items()
        if name in ("choice", "server")
        or (name == "op" and len(values) == 1)
        or (name in family.settings and name in deciding)
    }
    return {**servers, **kept}


def _fitting(
    asked: Wanted, near: Nearby, words: Sequence[str], within_s: float, seed: int, named: Sequence[str]
) -> Plan:
    """Return the plan of as many cells as the time allows, by their usual times."""
    from tollbar.lab.measure import schedule
    from tollbar.study import plan

    most = min(MOST_CELLS, len(near.measurable))
    slow_s = SLOW_CELL_S if asked.family.parameters else 0.0
    while True:
        cells = [near.cell(one) for one in near.to_measure(most)]
        question = study.of_candidates(asked.family, words, cells)
        one = study.read(study.ASKED, question.text(FEWEST_BLOCKS), where=study.ASKED)
        planned = plan.make((one,), seed=seed, named_libraries=named)
        needed_s = schedule.of_plan(planned) + slow_s * len(cells)
        if needed_s <= USUAL_SHARE * within_s or most <= FEWEST_CELLS:
            return planned
        most = max(FEWEST_CELLS, min(most - 1, int(most * USUAL_SHARE * within_s / needed_s)))
