"""What each cell protects against: the threats of its family, and what the cell does about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tollbar.families import Degree, Mitigation, Standing
from tollbar.judge import StudyJudgement
from tollbar.present import words
from tollbar.present.cells import labels, varying
from tollbar.present.shapes import Cell, Table, texts

MARKS = {Degree.YES: "●", Degree.PARTLY: "◐", Degree.NO: "○"}

# Where something is measured says nothing of what it protects.
_NOT_PROTECTING = ("provider", "bed", "op", *words.LOADS)

Answers = Mapping[str, Mitigation]


def threats_table(study: StudyJudgement) -> Table:
    """Cells by the threats in which they differ; without rows where they differ in none."""
    threats, groups = study.about.family.threats, alike(study)
    differ = differing(study)
    columns = texts("cells", *(f"{t.replace('-', ' ')}: {threats[t].title}" for t in differ))
    rows = [[_named(names), *(_answer(answers[t]) for t in differ)] for answers, names in groups] if differ else []
    return Table("What each cell does about each threat", columns, rows)


def unprotected(study: StudyJudgement) -> str:
    """One sentence on the null choice, where the study has it."""
    null = [r.title for r in study.rows if r.standing is Standing.NULL]
    return f"{words.opened(words.quoted(null[0]))} protects against none of it." if null else ""


def differing(study: StudyJudgement) -> list[str]:
    """The threats about which the cells that protect something do not all do the same."""
    return [t for t in study.about.family.threats if len({answers[t] for answers, _ in alike(study)}) > 1]


def alike(study: StudyJudgement) -> list[tuple[Answers, list[str]]]:
    """The cells that protect something, together where they protect against the same; by their names."""
    family = study.about.family
    if not family.threats:
        return []
    rows = [r for r in study.rows if r.standing is not Standing.NULL and r.choice in family.choices]
    sizes = [name for name, setting in family.settings.items() if setting.is_size or setting.is_share]
    names = [n for n in varying(rows) if n not in (*_NOT_PROTECTING, *sizes)] or ["choice"]
    label = labels(study, names, whole=True)
    groups: list[tuple[Answers, list[str]]] = []
    for row in rows:
        answers = family.mitigations_of(row.coordinates)
        inside = next((found for known, found in groups if known == answers), None)
        if inside is None:
            inside = []
            groups.append((answers, inside))
        named = label(row)
        if named not in inside:
            inside.append(named)
    return groups


def _named(names: Sequence[str]) -> Cell:
    if len(names) == 1:
        return Cell(names[0])
    return Cell(f"{len(names)} cells", small="; ".join(names))


def _answer(mitigation: Mitigation) -> Cell:
    return Cell(str(mitigation.degree), mark=MARKS[mitigation.degree], small=mitigation.condition)


def alike_everywhere(study: StudyJudgement) -> list[str]:
    """A line for each degree, of the threats about which all cells do the same."""
    threats, differ = study.about.family.threats, differing(study)
    answers = alike(study)[0][0]
    lines = []
    for degree, says in (
        (Degree.YES, "All of these protect against"),
        (Degree.PARTLY, "All of these protect in part against"),
        (Degree.NO, "None of these protects against"),
    ):
        same = [
            f"“{threats[t].title}”" + (f" ({answers[t].condition})" if answers[t].condition else "")
            for t in threats
            if t not in differ and answers[t].degree is degree
        ]
        if same:
            lines.append(f"{says} {words.enumeration(same)}.")
    return lines
