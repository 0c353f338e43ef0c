"""What each choice is worth: cost against strength and standing, and who says so."""

from __future__ import annotations

from collections.abc import Iterable

from tollbar.families import Authority, Choice, Part
from tollbar.judge import StudyJudgement
from tollbar.report import words
from tollbar.report.cells import at_one_load
from tollbar.report.layout import Draw, figures, section
from tollbar.report.markup import Cell, Column, folded, legend, paragraph, symbol, table
from tollbar.report.strength import needs_width, strength_charts


def strength_and_standing(study: StudyJudgement, draw: Draw) -> str:
    """Cost against strength, one load for all cells; then every standing's source."""
    family = study.study.study.family
    at = at_one_load(study)
    charts = strength_charts(at.study)
    sources = _sources(study)
    means = f"Strength: {family.strength_means}." if family.strength_means else ""
    if not charts:
        return section("What each choice is worth", paragraph(means, class_="note"), sources)
    note = (
        f"{means} Down and to the right is better. The dashed line is the"
        f" cheapest recommended or acceptable choice of at least that strength. {at.note}"
    )
    measured = [m.row for m in words.by_row(study, words.cost_metric(study)).values()]
    levels = len({r.strength for r in measured if r.strength is not None})
    wide = needs_width(max(c.letters for c in charts), levels)
    standings = [r.standing for r in measured if r.strength is not None]
    return section(
        "Cost against strength and standing",
        paragraph(note, class_="note"),
        legend(standings, ("frontier", "cheapest in good standing for at least so many bits")),
        figures(charts, draw, "panels strength wide" if wide else "panels strength"),
        sources,
    )


def _sources(study: StudyJudgement) -> str:
    rows = []
    for part in _parts(study):
        bits = "–" if part.strength is None else f"{part.strength} bits"
        year = part.year if isinstance(part, Choice) else None
        by = "; ".join(_authority(a) for a in part.authority)
        standing = part.standing
        rows.append(
            (
                Cell(part.title, small=f"{part.spec}, {year}" if year else part.spec),
                Cell(words.standing_words(standing), mark=symbol(standing)) if standing is not None else Cell("–"),
                Cell(by or "–", small=part.note),
                Cell(bits, None if part.strength is None else float(part.strength), part.strength_from),
            )
        )
    columns = (Column("choice"), Column("standing"), Column("who says so"), Column("strength"))
    title = "Who says so: the source of every standing and strength"
    return folded(title, table(title, columns, rows)) if rows else ""


def _parts(study: StudyJudgement) -> Iterable[Part]:
    """Each choice of the study, and each value of a setting that has a standing, a strength or a source of its own."""
    family = study.study.study.family
    found: dict[tuple[bool, str], Part] = {}
    for row in study.study.rows:
        for part in family.parts_of(row.coordinates) if row.choice in family.choices else ():
            if isinstance(part, Choice) or part.authority or part.strength is not None:
                found.setdefault((not isinstance(part, Choice), part.title), part)
    # All choices first, then what they are combined with.
    return [found[key] for key in sorted(found, key=lambda key: key[0])]


def _authority(authority: Authority) -> str:
    unread = "" if authority.checked else "; clause not re-read"
    seen = authority.seen.isoformat()
    return f"{authority.by}, {authority.where}: “{authority.says}” (seen {seen}{unread})"
