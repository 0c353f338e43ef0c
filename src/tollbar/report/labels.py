"""What a cell is called beside its line, its bar or its row: as much as tells it from the others, and no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tollbar.catalogue import Value
from tollbar.judge import StudyJudgement
from tollbar.report import words
from tollbar.results import Row

# What this share of the cells have alike is said once, and not in every name.
PREVAILS = 0.8


def labels(study: StudyJudgement, names: Sequence[str], *, whole: bool = False) -> Callable[[Row], str]:
    """Gives each row its name along these coordinates: `RSA-2048`, but `RSA-2048 · padding pss`.

    Without what is as in the baseline, unless the `whole` name is asked for, and without what prevails.
    """
    family = study.study.study.family
    silent: Mapping[str, Value] = prevailing(study) | ({} if whole else dict(study.study.study.baseline))

    def label(row: Row) -> str:
        said = [n for n in names if n == "choice" or n not in silent or row.coordinates.get(n) != silent[n]]
        return words.place(family, row.coordinates, said) or row.title

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


def where_label(study: StudyJudgement, where: Mapping[str, Sequence[Value]], most: int) -> str:
    """Where cells of a contrast stand: a server by its short name where that says it all."""
    vary = words.varying(study.study.rows)
    if "provider" in where and "provider" not in vary and "bed" in vary:
        beds = {r.provider: r.bed for r in study.study.rows if r.bed is not None}
        said = {n: [beds.get(str(v), v) for v in values] if n == "provider" else values for n, values in where.items()}
        return words.where_words(study.study.study.family, said, most)
    return words.where_words(study.study.study.family, where, most)
