"""What each cell protects against: the threats of its family, and what the cell does about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tollbar.families import Degree, Mitigation, Standing
from tollbar.judge import StudyJudgement
from tollbar.present import words
from tollbar.present.cells import Spot, labels, spot, varying
from tollbar.present.shapes import Cell, Table, texts
from tollbar.results import Row

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
    rows = _that_protect(study)
    label = labels(study, protecting(study), whole=True)
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


def protecting(study: StudyJudgement) -> list[str]:
    """The coordinates that decide what a cell does about some threat; all that may, where these do not suffice."""
    family, rows = study.about.family, _that_protect(study)
    sizes = [name for name, setting in family.settings.items() if setting.is_size or setting.is_share]
    names = [n for n in varying(rows) if n not in (*_NOT_PROTECTING, *sizes)] or ["choice"]
    decide = [n for n in names if n == "choice" or _is_divided(study, rows, [m for m in varying(rows) if m != n])]
    return names if _is_divided(study, rows, decide) else decide


def _is_divided(study: StudyJudgement, rows: Sequence[Row], names: Sequence[str]) -> bool:
    """Whether some rows that are alike along these coordinates do different things about a threat."""
    found: dict[Spot, Answers] = {}
    mitigations_of = study.about.family.mitigations_of
    return any(found.setdefault(spot(row, names), done := mitigations_of(row.coordinates)) != done for row in rows)


def _that_protect(study: StudyJudgement) -> list[Row]:
    choices = study.about.family.choices
    return [r for r in study.rows if r.standing is not Standing.NULL and r.choice in choices]


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
