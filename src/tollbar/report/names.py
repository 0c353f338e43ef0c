"""Names of cells and places: the coordinates that distinguish them, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tollbar.catalog.families import LOADS, Family, Value
from tollbar.core.words import enumeration, few, quoted
from tollbar.report.coordinates import named_value, value_words
from tollbar.report.view import once

if TYPE_CHECKING:
    # Answers without measurements do without the judge, which takes longer to import than all else.
    from tollbar.analysis import StudyJudgement
    from tollbar.results import Row


def place_of(family: Family, coordinates: Mapping[str, Value], names: Iterable[str]) -> str:
    """Return a cell's values of these coordinates: `SHA-256 · openssl 3.0.19 · 4 KiB`.

    A server and the library that it runs on are one item: `nginx 1.22.1, openssl 3.0.19`.
    """
    said: dict[str, str] = {n: named_value(family, n, coordinates[n]) for n in names if n in coordinates}
    if "server" in said and "provider" in said:
        said["server"] = f"{said['server']}, {said.pop('provider')}"
    return " · ".join(said.values())


def where_in(family: Family, where: Mapping[str, Sequence[Value]], most: int = 4) -> str:
    """Return the coordinates that some cells share: `at 64 B, on openssl 3.0.19`; each list cut to `most` values."""
    parts: list[tuple[str, str]] = []
    for name, values in where.items():
        first = named_value(family, name, values[0])
        words = [first, *(value_words(family, name, v) for v in values[1:])]
        shown = few([quoted(w) if name == "choice" else w for w in words], most)
        setting = family.settings.get(name)
        is_size = name in LOADS or (setting is not None and setting.is_size)
        other = "at" if is_size else "with"
        preposition = {"choice": "for", "provider": "on", "server": "on", "op": "for"}.get(name, other)
        # Consecutive settings have one preposition: `with passes 1, lanes 1`.
        follows = bool(parts) and preposition == parts[-1][0] == "with"
        parts.append((preposition, f"{'' if follows else preposition + ' '}{enumeration(shown)}"))
    return ", ".join(text for _, text in parts)


# A value that this share of the cells have is printed once, not in every name.
PREVAILS = 0.8
# Coordinates that rows print with a version.
VERSIONED = ("server", "provider")
PlaceWords = Callable[[Mapping[str, Value], Iterable[str]], str]
"""Function that returns coordinates in words, along the names given."""


@once
def baseline_words(study: StudyJudgement) -> str:
    """Return the baseline of the tolls as the study names it: `SHA-256`, `RSA-2048 · padding pss`."""
    baseline = study.about.baseline
    named = {name: study.study.named(name, value) for name, value in baseline.items()}
    return place_of(study.about.family, named, baseline) or "the baseline"


def on_one_core(study: StudyJudgement, names: Iterable[str]) -> str:
    """Return ` on one core` if libraries are compared without threads: locks show only with several threads."""
    return " on one core" if "provider" in names and not _has_threads(study) else ""


@once
def _has_threads(study: StudyJudgement) -> bool:
    return any(row.coordinates.get("threads", 1) != 1 for row in study.rows)


def varying(rows: Iterable[Row], always: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the coordinates with more than one value among these rows: choice, server, provider, then the rest.

    Coordinates of `always` that any row has are included, whatever their values.
    """
    first: dict[str, Value] = {}
    found: set[str] = set()
    for row in rows:
        for name, value in row.coordinates.items():
            if first.setdefault(name, value) != value:
                found.add(name)
    found |= first.keys() & {*always}
    # The load comes last, because rows of one cell differ only in it.
    ordered = dict.fromkeys(
        ["choice", "server", "provider", "op", *(name for name in first if name not in LOADS), *LOADS]
    )
    return tuple(name for name in ordered if name in found)


@once
def varied(study: StudyJudgement) -> tuple[str, ...]:
    """Return the coordinates with more than one value among all rows of a study."""
    return varying(study.rows)


@once
def place_words(study: StudyJudgement) -> PlaceWords:
    """Return a function that names places, with versions: `nginx 1.22.1, openssl 3.0.19 · rsa-2048`."""
    family = study.about.family
    versioned = [
        (name, row.coordinates[name], row.shown[name])
        for row in study.rows
        for name in VERSIONED
        if name in row.coordinates
    ]
    named = {(name, value): shown for name, value, shown in versioned}

    def place(coordinates: Mapping[str, Value], names: Iterable[str]) -> str:
        shown = {name: named.get((name, value), value) for name, value in coordinates.items()}
        return place_of(family, shown, names)

    return place


def where_words(study: StudyJudgement, where: Mapping[str, Sequence[Value]], most: int = 4) -> str:
    """Return the coordinates that some cells share: `at 64 B, on openssl 3.0.19`; each list cut to `most` values."""
    named = {name: [study.study.named(name, value) for value in values] for name, values in where.items()}
    return where_in(study.about.family, named, most)


def labels(study: StudyJudgement, names: Sequence[str], *, whole: bool = False) -> Callable[[Row], str]:
    """Return a function that names each row along these coordinates: `RSA-2048`, but `RSA-2048 · padding pss`.

    Values of the baseline are left out, unless the `whole` name is wanted, and so are prevailing values.
    """
    place = place_words(study)
    silent = {**prevailing(study), **({} if whole else study.about.baseline)}

    def label(row: Row) -> str:
        said = [n for n in names if n == "choice" or n not in silent or row.coordinates.get(n) != silent[n]]
        return place(row.coordinates, said) or row.title

    return label


def whole_labels(study: StudyJudgement) -> Callable[[Row], str]:
    """Return a function that gives each row the name of its cell, unique in the study, whatever the load."""
    return labels(study, cell_names(study), whole=True)


def cell_names(study: StudyJudgement) -> list[str]:
    """Return the coordinates that distinguish the study's cells, whatever the load."""
    return [n for n in varied(study) if n not in LOADS] or ["choice"]


@once
def prevailing(study: StudyJudgement) -> Mapping[str, Value]:
    """Return the settings that nearly all cells have at their default, with that default."""
    rows = study.rows
    vary = varied(study)
    found: dict[str, Value] = {}
    for name, setting in study.about.family.settings.items():
        values = [r.coordinates[name] for r in rows if name in r.coordinates]
        if name in vary and not setting.is_size and values.count(setting.default) > PREVAILS * len(values):
            found[name] = setting.default
    return found


def sizes_of(study: StudyJudgement, coordinates: Mapping[str, Value]) -> dict[str, Value]:
    """Return the sizes that an operation works on, without which its cost means nothing."""
    settings = study.about.family.settings
    return {n: v for n, v in coordinates.items() if n in settings and settings[n].is_size}
