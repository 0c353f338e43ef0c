"""Looking before measuring: `list`, `plan`, `show`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tollbar import (
    console,
    families,
    lab,
    libraries,
    policies,
    results,
    runners,
    servers,
    study,
    units,
    workloads,
)
from tollbar.cli.options import (
    DEFAULTS,
    AsJson,
    Libraries,
    Options,
    full_paths,
    make_plan,
    plan_of,
    resumed,
    studies_of,
)
from tollbar.cli.runs import judged_run
from tollbar.errors import ExitStatus, TollbarError, nearest
from tollbar.families import Family, Setting
from tollbar.judge import Judgement
from tollbar.libraries import Broken
from tollbar.measure import schedule
from tollbar.plan import Cell
from tollbar.present.published import of_source
from tollbar.study import Publication

UNUSABLE = "cannot be used"


def list_(
    what: Literal[
        "studies", "families", "choices", "settings", "threats", "policies", "providers", "servers", "sources"
    ] = "studies",
    family: str | None = None,
    /,
    *,
    library: Libraries = (),
    json: AsJson = False,
) -> ExitStatus:
    """Show what there is: studies, families, choices, settings, threats, policies, providers, servers or sources.

    Sources are the published comparisons that studies try again.

    tollbar list studies
    tollbar list choices digest
    tollbar list policies password-hash
    tollbar list providers --library ./libcrypto.so.3

    Parameters
    ----------
    what
        What to list.
    family
        The one family of which choices, settings, threats or policies are listed. None: all families.
    library
        A libcrypto to list among the providers. May be given again.
    json
        Print one JSON document instead of a table.
    """
    rows = {"studies": _studies, "families": _families, "servers": _servers, "sources": _sources}
    by_family = {
        "choices": lambda some: _choices(some, in_words=not json),
        "settings": _settings,
        "threats": _threats,
        "policies": _policies,
    }
    if family is not None and what not in by_family:
        hint = f"`tollbar list choices {family}`"
        raise TollbarError(f"`tollbar list {what}` takes no family", where=family, hint=hint)
    if what in by_family:
        listed = by_family[what]([*families.families().values()] if family is None else [families.family(family)])
    else:
        listed = _providers(library) if what == "providers" else rows[what]()
    _print(listed, as_json=json)
    return ExitStatus.DONE


def plan(*studies: str, options: Options = DEFAULTS) -> ExitStatus:
    """Show what would run, and how long it would take. Nothing is measured.

    It takes all that `tollbar run` takes, and asks a server of your own once.

    tollbar plan
    tollbar plan digests --blocks 40
    tollbar plan my-study.toml --json
    tollbar plan --resume runs/2026-…
    tollbar plan --url https://localhost:8443/path

    Parameters
    ----------
    studies
        Names of studies or sets, TOML files, or folders of such files. None: `quick`.
    """
    if options.resume is not None:
        asked = resumed(options.resume, studies, options)
    else:
        asked = lab.with_blocks(studies_of(studies, options), options.blocks)
    planned = plan_of(asked, options.library, options.seed or 0)
    rows = [
        {
            "study": one.study.name,
            "cells": len(one.cells),
            "left out": len(one.left_out),
            "blocks": one.study.measure.blocks,
            "rounds": one.study.measure.rounds,
            "about": units.show_seconds(schedule.of_study(one, planned.seed)),
            "question": one.study.question,
        }
        for one in planned.studies
    ]
    if options.json:
        cells = [{"study": cell.study, "key": cell.key, "against": cell.against} for cell in planned.cells]
        console.print_json({"studies": rows, "cells": cells})
    else:
        _print(rows, as_json=False)
        for one in planned.studies:
            for because in dict.fromkeys(because for _, because in one.left_out):
                console.say(f"{one.study.name}: left out: {because}")
    return ExitStatus.DONE


def show(
    name: str,
    /,
    *words: str,
    toml: Annotated[bool, Parameter(negative="")] = False,
    of: Annotated[Path | None, Parameter(name="--run")] = None,
    library: Libraries = (),
    json: AsJson = False,
) -> ExitStatus:
    """Show one cell of a study, its task, configuration and known answers; or what a published source says.

    Without words, a study's cells are listed. A cell is named by words of its line, as many as tell it apart.

    A source is a published comparison (`tollbar list sources`). Its page has all that it says beside what a run has
    measured of it. Where a study has the same name, its cells stand before the page.

    tollbar show digests
    tollbar show digests md5 3.0 4096 native
    tollbar show tls-post-quantum nginx x25519
    tollbar show digests --toml > my-study.toml
    tollbar show security-design-choices
    tollbar show rsa-apis --run runs/2026-11-21-101500-rsa-apis

    Parameters
    ----------
    name
        A study's name, a TOML file, or a source's name.
    words
        Words that occur in the cell's line.
    toml
        Print the study itself, as its file has it: a beginning for one of your own.
    of
        The run that a source's page is of, and the page alone. None: the last one under `runs` that measured any of
        its studies.
    library
        A libcrypto to measure beside those that the study names. May be given again.
    json
        Print one JSON document, whole.
    """
    source = study.sources().get(name)
    if source is None and not study.is_named(name):
        sources = ", ".join(study.sources())
        near = nearest(name, [*study.shipped(), study.AS_PUBLISHED, *study.members(), *study.sources()])
        raise TollbarError(
            f"no such study or source: `{name}`",
            hint=near or f"`tollbar list studies` lists the studies; the sources are {sources}",
        )
    if of is not None and (source is None or words or toml):
        raise TollbarError("`--run` is of a source's page", hint=f"the sources are {', '.join(study.sources())}")
    if toml:
        return _show_text(name, words)
    if source is not None and (of is not None or not study.is_named(name)):
        if words or library:
            what = f"the words `{' '.join(words)}`" if words else "`--library`"
            raise TollbarError(f"{what}: a source's page is shown whole", where=name, hint="leave them out")
        return _show_source(source, of, as_json=json)
    planned = make_plan((name,), library)
    cell = " ".join(words)
    found = [one for one in planned.cells if _is_named(one, cell)]
    if not cell:
        _print([one.coordinates for one in found], as_json=json)
        # A document is one: that of a study's cells, as of any study.
        return ExitStatus.DONE if source is None or json else _show_source(source, of, as_json=False)
    if not found:
        raise TollbarError(
            f"no cell of {name} has all of the words `{cell}`",
            hint=f"`tollbar show {name}` lists the cells",
        )
    if len(found) > 1 and not json:
        console.say(f"{len(found)} cells have these words; the first is shown")
    first = found[0]
    answers = [
        {"inputs": dict(answer.inputs), "setting": dict(answer.setting), "is": answer.expected}
        for answer in first.choice.answers_of(str(first.coordinates["op"]))
    ]
    work = workloads.of(first).shown(first, planned.seed)
    shown: dict[str, object] = {"task": work.task, "runner": list(work.runner), "answers": answers}
    configuration = {"configuration": work.configuration} if work.configuration else {}
    console.print_json(shown | configuration if json else _shortened(shown))
    if configuration and not json:
        console.print_plain(f"\n{work.configuration}")
    return ExitStatus.DONE


def _show_source(source: Publication, run: Path | None, *, as_json: bool) -> ExitStatus:
    """Prints a source's page: of this run, or of the last that measured any of its studies, or without one."""
    judged = judged_run(run) if run else _last_judged(source)
    if judged is not None:
        console.say(f"of the run {judged.run.directory}")
    part = of_source(source, judged)
    if as_json:
        from tollbar import document

        console.print_json(document.of_source(part))
    else:
        console.show_published(part)
    return ExitStatus.DONE


def _last_judged(source: Publication) -> Judgement | None:
    """Return the last run that has studies of the source and trials of them. One that cannot be read is named."""
    # Their names begin with the time.
    for said in sorted(DEFAULTS.runs.glob("*/run.json"), reverse=True):
        try:
            # A study of this name may be another one, as those of the set `quick` are.
            if any(one.source == source.name for one in results.studies(said.parent)):
                run = results.read(said.parent)
                of = [one for one in run.studies if one.study.source == source.name and one.study.claims]
                if any(row.all_trials for one in of for row in one.rows):
                    return judged_run(said.parent)
        except (TollbarError, KeyError) as error:
            why = error.what if isinstance(error, TollbarError) else f"run.json has no {error}"
            console.say(f"warning: {said.parent} is passed over: {why}", "yellow")
    return None


def _show_text(name: str, words: Sequence[str]) -> ExitStatus:
    """Prints a study as it was written. Raises TollbarError for a set, which is several files."""
    if words:
        raise TollbarError(f"`--toml` is of a whole study: `{' '.join(words)}`", where=name)
    found = study.load((name,))
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise TollbarError("a set of several studies", where=name, hint=f"name one of them: {names}")
    console.print_plain(found[0].text.removesuffix("\n"))
    return ExitStatus.DONE


def _is_named(cell: Cell, words: str) -> bool:
    values = " ".join(str(value) for value in (*cell.coordinates.values(), cell.provider.name)).lower()
    return all(word in values.split() or word in values for word in words.lower().split())


def _studies() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for name in (*study.shipped(), study.AS_PUBLISHED):
        members = study.load([name])
        first = members[0].question if len(members) == 1 else f"a set: {', '.join(one.name for one in members)}"
        of = ", ".join(dict.fromkeys(one.family.name for one in members))
        rows.append({"study": name, "family": of, "question": first})
    return rows


def _families() -> list[dict[str, object]]:
    return [
        {
            "family": family.name,
            "title": family.title,
            "choices": len(family.choices),
            "operations": ", ".join(family.operations),
            "settings": ", ".join(family.settings),
        }
        for family in families.families().values()
    ]


def _sources() -> list[dict[str, object]]:
    of = {one.name: one for one in study.load(list(study.shipped())) if one.source}
    found: list[dict[str, object]] = []
    for source in study.sources().values():
        tries = [one for one in of.values() if one.source == source.name]
        claims = [claim for one in tries for claim in one.claims]
        found.append(
            {
                "source": source.name,
                "title": source.title,
                "year": source.year or "",
                "studies": ", ".join(one.name for one in tries),
                "claims": len(claims),
                "not testable here": sum(claim.untestable is not None for claim in claims),
            }
        )
    return found


def _settings(some: Sequence[Family]) -> list[dict[str, object]]:
    return [
        {
            "family": family.name,
            "setting": one.name,
            "default": one.words(one.default),
            "values": ", ".join(map(str, one.values)) if one.values else _bounds(one),
            "means": one.title,
        }
        for family in some
        for one in family.settings.values()
    ]


def _bounds(setting: Setting) -> str:
    if setting.is_share:
        return "0 % to 100 %"
    ends = [one for one in (setting.least, setting.most) if one is not None]
    return " to ".join(map(setting.words, ends)) if len(ends) == 2 else "a number" if setting.is_number else "a word"


def _threats(some: Sequence[Family]) -> list[dict[str, object]]:
    return [
        {"family": family.name, "threat": threat.name, "means": threat.title}
        for family in some
        for threat in family.threats.values()
    ]


def _policies(some: Sequence[Family]) -> list[dict[str, object]]:
    names = [family.name for family in some]
    found = [policies.policy(name) for name in policies.policies()]
    return [
        {
            "policy": one.name,
            "title": one.title,
            "edition": one.edition,
            "families": ", ".join(name for name in families.families() if one.is_about(name)),
        }
        for one in found
        if any(map(one.is_about, names))
    ]


def _choices(some: Sequence[Family], *, in_words: bool) -> list[dict[str, object]]:
    return [
        {
            "family": family.name,
            "choice": choice.name,
            "standing": choice.standing_text if in_words else str(choice.standing),
            "strength": choice.strength,
            "authority": "; ".join(f"{one.by}, {one.where}" for one in choice.authority[:1]),
        }
        for family in some
        for choice in family.choices.values()
    ]


def _providers(library: tuple[Path, ...]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for one in libraries.everything(full_paths(library)):
        row: dict[str, object] = {"provider": one.spec, "name": "", "is": _origin(one.spec), "where": "", "offers": ""}
        if isinstance(one, Broken):
            row |= {"name": UNUSABLE, "where": one.path, "offers": one.reason}
        elif one.fault:
            row |= {"offers": one.fault[1]}
        else:
            offers = {family: len(choices) for family, choices in one.receipt.get("offers", {}).items()}
            counted = ", ".join(f"{family} {count}" for family, count in offers.items())
            row |= {"name": one.name, "where": one.where, "offers": counted}
        rows.append(row)
    ours = [row for row in rows if str(row["provider"]).startswith("libcrypto")]
    usable = ", ".join(str(row["name"]) for row in ours if row["name"] not in ("", UNUSABLE))
    every: dict[str, object] = {"provider": "libcrypto:*", "name": usable, "is": "each libcrypto that was found"}
    return [*ours, every | {"where": "", "offers": ""}, *(row for row in rows if row not in ours)]


def _origin(spec: str) -> str:
    """What a provider is that goes by this name."""
    kind, _, label = spec.partition(":")
    if kind in libraries.built_in():
        return "part of Tollbar's engine"
    platforms = runners.all_platforms()
    if kind in platforms:
        return f"{platforms[kind].title}'s own API, package {label}" if label else f"{platforms[kind].title}'s own API"
    if not label:
        return "the system's own"
    if label in platforms:
        return f"came with the runner of {platforms[label].title}"
    return "named by its file" if "/" in label else f"came with the Python package {label}"


def _servers() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for server in (*servers.all_servers().values(), *servers.services().values()):
        found, runs_on = servers.find(server), ", ".join(server.runs_on) or "(a service behind other servers)"
        if isinstance(found, servers.Installed):
            version, where, install = found.version, str(found.programs[server.frontend.name]), ""
        else:
            version, where, install = "not available here", "", server.install
        rows.append(
            {"server": server.name, "version": version, "where": where, "runs on": runs_on, "to have it": install}
        )
    return rows


def _print(rows: Sequence[Mapping[str, object]], *, as_json: bool) -> None:
    if as_json:
        console.print_json([dict(row) for row in rows])
    else:
        console.show_rows(rows)


def _shortened(value: object) -> object:
    """The same with long texts cut: a key or a signature fills the screen and says nothing."""
    if isinstance(value, dict):
        return {name: _shortened(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_shortened(inner) for inner in value]
    if isinstance(value, str) and len(value) > 120:
        return f"{value[:80]}… ({len(value)} characters; --json shows all)"
    return value
