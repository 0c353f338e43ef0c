"""What a cell is called beside its line, its bar or its row: as much as tells it from the others, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tollbar.families import Value
from tollbar.judge import StudyJudgement
from tollbar.report import words
from tollbar.results import Row

Place = Callable[[Mapping[str, Value], Iterable[str]], str]
"""Writes coordinates in words, along the names given."""

# What this share of the cells have alike is said once, and not in every name.
PREVAILS = 0.8


def places(study: StudyJudgement) -> Place:
    """Gives each place its words, servers with their versions: `nginx 1.22.1, openssl 3.0.19 · rsa-2048`."""
    family = study.study.study.family
    servers = {r.bed: r.server for r in study.study.rows if r.bed is not None and r.server is not None}

    def place(coordinates: Mapping[str, Value], names: Iterable[str]) -> str:
        server = servers.get(str(coordinates.get("bed")))
        return words.place(family, {**coordinates, "bed": server} if server else coordinates, names)

    return place


def labels(study: StudyJudgement, names: Sequence[str], *, whole: bool = False) -> Callable[[Row], str]:
    """Gives each row its name along these coordinates: `RSA-2048`, but `RSA-2048 · padding pss`.

    Without what is as in the baseline, unless the `whole` name is asked for, and without what prevails.
    """
    place = places(study)
    silent: Mapping[str, Value] = prevailing(study) | ({} if whole else dict(study.study.study.baseline))

    def label(row: Row) -> str:
        said = [n for n in names if n == "choice" or n not in silent or row.coordinates.get(n) != silent[n]]
        return place(row.coordinates, said) or row.title

    return label


def cell_names(study: StudyJudgement) -> list[str]:
    """The coordinates that tell the study's cells apart, whatever is asked of them."""
    return [n for n in words.varying(study.study.rows) if n not in words.LOADS] or ["choice"]


def prevailing(study: StudyJudgement) -> dict[str, Value]:
    """The settings that nearly all cells have at their default, with that default."""
    rows = study.study.rows
    vary = words.varying(rows)
    found: dict[str, Value] = {}
    for name, setting in study.study.study.family.settings.items():
        values = [r.coordinates[name] for r in rows if name in r.coordinates]
        if name in vary and not setting.is_size and values.count(setting.default) > PREVAILS * len(values):
            found[name] = setting.default
    return found
