"""Mitigation of each threat by each choice, and the standing of choices with its authority."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tollbar.analysis import StudyJudgement
from tollbar.catalog.families import LOADS, Authority, Choice, Degree, Mitigation, Part, Standing
from tollbar.core.words import capitalised, enumeration, quoted
from tollbar.report.blocks import (
    DASH,
    Boxed,
    Folded,
    Items,
    Key,
    Legend,
    Paragraph,
    Section,
    Table,
    TableCell,
    figures,
    standing_keys,
    texts,
)
from tollbar.report.chart import strength_charts
from tollbar.report.groups import AtOneLoad, Spot, by_row, cost_metric, spot
from tollbar.report.names import labels, varying
from tollbar.report.standings import standing_words
from tollbar.report.view import once
from tollbar.results import Row

MARKS = {Degree.YES: "●", Degree.PARTLY: "◐", Degree.NO: "○"}
# The place of a measurement does not affect the protection.
_NOT_PROTECTING = ("provider", "server", "op", *LOADS)
Answers = Mapping[str, Mitigation]


def threats_table(study: StudyJudgement) -> Table:
    """Return cells by the threats in which they differ; without rows if they differ in none."""
    threats, groups = study.about.family.threats, alike(study)
    differ = differing(study)
    columns = texts("cells", *(f"{t.replace('-', ' ')}: {threats[t].title}" for t in differ))
    rows = [[_cells_of(names), *(_answer(answers[t]) for t in differ)] for answers, names in groups] if differ else []
    return Table("Protection of each cell against each threat", columns, rows)


def unprotected(study: StudyJudgement) -> str:
    """Return one sentence on the null choice, if the study has it."""
    null = [r.title for r in study.rows if r.standing is Standing.NULL]
    return f"{capitalised(quoted(null[0]))} protects against none of them." if null else ""


@once
def differing(study: StudyJudgement) -> Sequence[str]:
    """Return the threats that not all protecting cells mitigate equally."""
    groups = alike(study)
    return [t for t in study.about.family.threats if len({answers[t] for answers, _ in groups}) > 1]


@once
def alike(study: StudyJudgement) -> Sequence[tuple[Answers, list[str]]]:
    """Return the protecting cells by name, grouped by equal mitigations."""
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


@once
def protecting(study: StudyJudgement) -> Sequence[str]:
    """Return the coordinates that decide a cell's mitigations; all candidates if these do not suffice."""
    family, rows = study.about.family, _that_protect(study)
    sizes = [name for name, setting in family.settings.items() if setting.is_size or setting.is_share]
    names = [n for n in varying(rows) if n not in (*_NOT_PROTECTING, *sizes)] or ["choice"]
    decide = [n for n in names if n == "choice" or _is_divided(study, rows, [m for m in varying(rows) if m != n])]
    return names if _is_divided(study, rows, decide) else decide


def _is_divided(study: StudyJudgement, rows: Sequence[Row], names: Sequence[str]) -> bool:
    """Return whether some rows with equal values of these coordinates mitigate a threat differently."""
    found: dict[Spot, Answers] = {}
    mitigations_of = study.about.family.mitigations_of
    return any(found.setdefault(spot(row, names), done := mitigations_of(row.coordinates)) != done for row in rows)


@once
def _that_protect(study: StudyJudgement) -> Sequence[Row]:
    choices = study.about.family.choices
    return [r for r in study.rows if r.standing is not Standing.NULL and r.choice in choices]


def _cells_of(names: Sequence[str]) -> TableCell:
    if len(names) == 1:
        return TableCell(names[0])
    return TableCell(f"{len(names)} cells", small="; ".join(names))


def _answer(mitigation: Mitigation) -> TableCell:
    return TableCell(str(mitigation.degree), mark=MARKS[mitigation.degree], small=mitigation.condition)


def alike_everywhere(study: StudyJudgement) -> list[str]:
    """Return a line for each degree, with the threats that all cells mitigate equally."""
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
            lines.append(f"{says} {enumeration(same)}.")
    return lines


def sources_table(study: StudyJudgement) -> Table:
    """Return the source of the standing and the strength of each choice."""
    rows = []
    for entry in _entries(study):
        bits = "–" if entry.strength is None else f"{entry.strength} bits"
        year = entry.year if isinstance(entry, Choice) else None
        by = "; ".join(_authority(a) for a in entry.authority)
        standing = entry.standing
        rows.append(
            (
                TableCell(entry.title, small=f"{entry.spec}, {year}" if year else entry.spec),
                DASH if standing is None else TableCell(standing_words(standing), standing=standing),
                TableCell(by or "–", small=entry.note),
                TableCell(bits, None if entry.strength is None else float(entry.strength), entry.strength_from),
            )
        )
    columns = texts("choice", "standing", "authority", "strength")
    return Table("Sources of standings and strengths", columns, rows)


def _entries(study: StudyJudgement) -> Iterable[Part]:
    """Return each choice of the study, and each setting's value with a standing, a strength or a source of its own."""
    family = study.about.family
    # A choice with parameters has a standing, and its source, for the parameters of each row.
    found: dict[tuple[bool, str, str], Part] = {}
    for row in study.rows:
        for entry in family.parts_of(row.coordinates) if row.choice in family.choices else ():
            if isinstance(entry, Choice) or entry.authority or entry.strength is not None:
                found.setdefault((not isinstance(entry, Choice), entry.title, str(entry.standing)), entry)
    # All choices first, then the values they are combined with.
    return [found[key] for key in sorted(found, key=lambda key: key[0])]


def _authority(authority: Authority) -> str:
    unread = "" if authority.checked else "; clause not re-read"
    seen = authority.seen.isoformat()
    return f"{authority.by}, {authority.where}: “{authority.says}” (seen {seen}{unread})"


def strength_section(study: StudyJudgement, at: AtOneLoad) -> Section:
    charts, family = strength_charts(at.study), study.about.family
    means = f"Strength: {family.strength_means}." if family.strength_means else ""
    sources = sources_table(study)
    folded = [Folded(sources.caption, [sources])] if sources.rows else []
    if not charts:
        return Section("The standing of each choice", (Paragraph(means, "note"), *folded))
    costed = [m.row for m in by_row(study, cost_metric(study)).values() if m.row.strength is not None]
    how = (
        f"{means} Down and to the right is better. The dashed line is the lowest measured cost of an"
        f" approved choice with at least that strength. {at.note}"
    )
    frontier = Key("lowest cost of an approved choice with at least this strength", mark="frontier")
    return Section(
        "Cost against strength and standing",
        (
            Paragraph(how.strip(), "note"),
            Legend([*standing_keys(costed), frontier]),
            *figures(charts, "panels strength"),
            *folded,
        ),
    )


def threats_section(study: StudyJudgement) -> Section | None:
    if not alike(study):
        return None
    table = threats_table(study)
    note = (
        "Protection against each threat, by this project's own reading of the specifications and of the authorities"
        f" named above. {unprotected(study)}"
    )
    return Section(
        "Protection by threat",
        (
            Paragraph(note.strip(), "note"),
            Boxed("protects", [table] if table.rows else []),
            Items(alike_everywhere(study)),
        ),
    )
