"""What each cell protects against: the threats of its family, and what the cell does about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tollbar.families import Degree, Mitigation, Standing
from tollbar.judge import StudyJudgement
from tollbar.report import words
from tollbar.report.labels import labels
from tollbar.report.layout import section
from tollbar.report.markup import Cell, Column, bullets, paragraph, table, tag, text

MARKS = {Degree.YES: "●", Degree.PARTLY: "◐", Degree.NO: "○"}

# Where something is measured says nothing of what it protects.
_NOT_PROTECTING = ("provider", "bed", "op", *words.LOADS)

Answers = Mapping[str, Mitigation]


def protects(study: StudyJudgement) -> str:
    """A table of cells by threats; nothing for a family without threats."""
    family = study.study.study.family
    groups = alike(study)
    if not family.threats or not groups:
        return ""
    differ = [t for t in family.threats if len({answers[t] for answers, _ in groups}) > 1]
    columns = [Column("cells"), *(Column(family.threats[t].title) for t in differ)]
    rows = [[_named(names), *(_answer(answers[t]) for t in differ)] for answers, names in groups]
    told = table("What each cell does about each threat", columns, rows) if differ else ""
    null = [r.title for r in study.study.rows if r.standing is Standing.NULL]
    return section(
        "What it protects against",
        paragraph(
            "A threat stands here with what is done about it, by this project's own reading of the specifications and"
            " of the authorities named above."
            + (f" {words.opened(words.quoted(null[0]))} protects against none of it." if null else ""),
            class_="note",
        ),
        tag("div", told, class_="protects"),
        bullets(_alike_everywhere(study, groups[0][0], differ)),
    )


def alike(study: StudyJudgement) -> list[tuple[Answers, list[str]]]:
    """The cells that protect something, together where they protect against the same; by their names."""
    family = study.study.study.family
    rows = [r for r in study.study.rows if r.standing is not Standing.NULL and r.choice in family.choices]
    sizes = [name for name, setting in family.settings.items() if setting.is_size or setting.is_share]
    names = [n for n in words.varying(rows) if n not in (*_NOT_PROTECTING, *sizes)] or ["choice"]
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
    mark = tag("span", text(MARKS[mitigation.degree]), class_="mark", aria_hidden="true")
    return Cell(str(mitigation.degree), mark=mark, small=mitigation.condition)


def _alike_everywhere(study: StudyJudgement, answers: Answers, differ: Sequence[str]) -> list[str]:
    """A line for each degree, of the threats about which all cells do the same."""
    threats = study.study.study.family.threats
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
