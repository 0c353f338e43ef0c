"""Upgrades: the same library in two runs, under another version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from tollbar.results import Row, Run


def partners(one: Run, other: Run) -> Mapping[str, str]:
    """The other run's name for each provider of the first: `openssl 3.0.19` may be its `openssl 3.0.20`.

    First those that studies name alike and that have the same version, then the same version, then what studies name
    alike (`libcrypto:system`), and last the same name but for the version, where each run has one such left.
    """
    mine, theirs = _providers(one), _providers(other)
    found: dict[str, str] = {}
    alike: tuple[Callable[[str, str], object], ...] = (
        lambda name, spec: (name, spec),
        lambda name, _: name,
        lambda name, spec: spec or name,
        lambda name, _: without_version(name),
    )
    for same in alike:
        left = _only_ones(same, {n: s for n, s in theirs.items() if n not in found.values()})
        for what, name in _only_ones(same, {n: s for n, s in mine.items() if n not in found}).items():
            if what in left:
                found[name] = left[what]
    return found


def upgraded(rows: Iterable[tuple[Row, Row]]) -> tuple[str, ...]:
    """What has another version in the second of two rows that stand for the same, once each."""
    found: dict[str, None] = {}
    for one, other in rows:
        for mine, theirs in ((one.provider, other.provider), (one.server, other.server)):
            if mine is not None and theirs is not None and mine != theirs:
                found[f"{mine} → {theirs}"] = None
    return tuple(found)


def without_version(name: str) -> str:
    """`openssl` of `openssl 3.0.19`; where it comes from, in brackets, stays."""
    return re.sub(r"\s+v?\d\S*", "", name)


def _providers(run: Run) -> Mapping[str, str]:
    """Of each provider that rows name, how studies name it; nothing where there is no receipt."""
    names = dict.fromkeys(row.provider for study in run.studies for row in study.rows)
    return {name: str(run.providers.get(name, {}).get("spec", "")) for name in names}


def _only_ones(same: Callable[[str, str], object], providers: Mapping[str, str]) -> Mapping[object, str]:
    """By what they are alike in, the providers of which there is one such."""
    found: dict[object, list[str]] = {}
    for name, spec in providers.items():
        found.setdefault(same(name, spec), []).append(name)
    return {what: names[0] for what, names in found.items() if len(names) == 1}
