"""`tollbar list`: studies, families and their parts, policies, environments, providers, servers and sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from tollbar import study
from tollbar.catalog import families, libraries, policies, runners, servers
from tollbar.catalog.families import Family, Setting
from tollbar.catalog.libraries import Broken
from tollbar.cli.layouts import AsJson, Libraries
from tollbar.cli.options import full_paths
from tollbar.cli.output import print_rows
from tollbar.core import spelling
from tollbar.core.errors import ExitStatus, TollbarError

UNUSABLE = "cannot be used"
What = Literal[
    "studies",
    "families",
    "choices",
    "settings",
    "threats",
    "policies",
    "environments",
    "providers",
    "servers",
    "sources",
]
LISTS: tuple[str, ...] = get_args(What)


def list_(
    what: What = "studies",
    family: str | None = None,
    /,
    *,
    library: Libraries = (),
    json: AsJson = False,
) -> ExitStatus:
    """List studies, families, choices, settings, threats, policies, environments, providers, servers or sources.

    Sources are published comparisons whose claims the studies measure again.

    tollbar list studies
    tollbar list choices digest
    tollbar list policies password-hash
    tollbar list providers --library ./libcrypto.so.3

    Parameters
    ----------
    what
        `studies`, `families`, `choices`, `settings`, `threats`, `policies`, `environments`, `providers`, `servers` or
        `sources`; default: `studies`.
    family
        Family whose choices, settings, threats, policies or environments are listed, such as `digest`; default: all
        families.
    """
    rows = {"studies": _studies, "families": _families, "servers": _servers, "sources": _sources}
    by_family = {
        "choices": lambda some: _choices(some, in_words=not json),
        "settings": _settings,
        "threats": _threats,
        "policies": _policies,
        "environments": _environments,
    }
    if family is not None and what not in by_family:
        is_family = spelling.find(family, families.families()) is not None
        hint = f"for example `tollbar list {f'choices {family}' if is_family else what}`"
        raise TollbarError(f"`tollbar list {what}` cannot be limited to a family", where=family, hint=hint)
    if what in by_family:
        listed = by_family[what]([*families.families().values()] if family is None else [families.family(family)])
    else:
        listed = _providers(library) if what == "providers" else rows[what]()
    print_rows(listed, as_json=json)
    return ExitStatus.DONE


def _studies() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for name in (*study.shipped(), *study.SETS_OF_SOURCES):
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


def _environments(some: Sequence[Family]) -> list[dict[str, object]]:
    names = [family.name for family in some]
    return [
        {
            "environment": one.name,
            "title": one.title,
            "families": ", ".join(name for name in families.families() if one.is_about(name)),
            "source": "; ".join(dict.fromkeys(rule.source for rule in one.rules)),
        }
        for one in map(policies.environment, policies.environments())
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
    """Return the origin of a provider of this name."""
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
