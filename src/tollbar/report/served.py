"""The parts of a study that was measured through servers: where the CPU goes, under load, what was negotiated."""

from __future__ import annotations

from collections.abc import Sequence

from tollbar import units
from tollbar.judge import StudyJudgement
from tollbar.report import prose_served, words
from tollbar.report.agreed import agreed_table, agreements, proofs_table
from tollbar.report.cells import MOST_ROWS, at_one_load, by_cell
from tollbar.report.layout import Draw, figure, figures, section
from tollbar.report.load_tables import THROUGHPUT_TITLE, latency_table, throughput_table
from tollbar.report.loads import THROUGHPUT, Facet, facets
from tollbar.report.markup import Cell, Column, bullets, folded, line_legend, paragraph, part_legend, table, tag, text
from tollbar.report.shares import bars, colour_of, parts_of, share_charts
from tollbar.report.timeline import timeline_charts

# A longer proof is there for whoever doubts, and unfolds.
MOST_PROOFS = 12
# Each has three panels.
MOST_FACETS = 4


def where_cpu_goes(study: StudyJudgement, draw: Draw) -> str:
    """Each cell's CPU time per request, stacked: the load client, then the server's components."""
    at = at_one_load(study)
    charts = share_charts(at.study)
    if not charts:
        return ""
    parts = parts_of(study)
    return section(
        "Where the CPU goes",
        paragraph(
            f"Undisturbed CPU time per request, on both sides. {at.note}".strip(),
            class_="note",
        ),
        _legend(parts),
        figures(charts, draw),
        _shares_table(at.study, parts),
    )


def _legend(parts: Sequence[str]) -> str:
    return part_legend((colour_of(parts, part), part) for part in parts)


def _shares_table(study: StudyJudgement, parts: Sequence[str]) -> str:
    columns = [
        Column("cell"),
        *(Column(part, True) for part in parts),
        Column("both sides", True),
        Column("the server's share", True),
    ]
    rows = []
    for bar in bars(study):
        both = sum(bar.parts.values())
        rows.append(
            [
                Cell(bar.label),
                *(
                    Cell(units.show_nanoseconds(bar.parts[part]), bar.parts[part]) if part in bar.parts else Cell("–")
                    for part in parts
                ),
                Cell(units.show_nanoseconds(both), both),
                Cell(f"{bar.server / both:.0%}", bar.server / both),
            ]
        )
    title = "CPU time per request, part by part"
    return folded(f"{title}: {len(rows):,} cells", table(title, columns, rows, sortable=True))


def over_time(study: StudyJudgement, draw: Draw) -> str:
    """How busy each side was while the cells were measured."""
    at = at_one_load(study)
    charts = timeline_charts(at.study)
    if not charts:
        return ""
    return section(
        "CPU over time",
        paragraph(f"Share of one core in each round of a visit, over all visits. {at.note}".strip(), class_="note"),
        _legend(parts_of(study)),
        figures(charts, draw, "panels small"),
    )


def under_load(study: StudyJudgement, draw: Draw) -> str:
    """Requests a second and response time against users, beside the cost; then all of it as tables."""
    if not words.by_row(study, THROUGHPUT):
        return ""
    found = facets(study)
    shown, rest = found[:MOST_FACETS], found[MOST_FACETS:]
    more = "".join(_facet(f, draw) for f in rest)
    told, cells = throughput_table(study), len(by_cell(study.study.rows))
    return section(
        "Requests a second and response time",
        paragraph("All axes are logarithmic." if found else "", class_="note"),
        bullets(prose_served.limited(study)),
        *(_facet(f, draw) for f in shown),
        folded(f"{len(rest)} more: {'; '.join(f.title for f in rest)}", more) if rest else "",
        folded(f"{THROUGHPUT_TITLE}: {cells:,} cells", told) if cells > MOST_ROWS else told,
        latency_table(study),
    )


def _facet(facet: Facet, draw: Draw) -> str:
    panels = tag("div", *(figure(c, draw) for c in facet.charts), class_="panels three")
    title = tag("h4", text(facet.title)) if facet.title else ""
    return title + line_legend([(line.number, line.label) for line in facet.lines]) + panels


def what_was_agreed(study: StudyJudgement) -> str:
    """The proof that each cell measured what it says; nothing where no connection had TLS."""
    found = agreements(study.study.rows)
    if not any(one.version for one in found):
        return ""
    caption = "What the two sides agreed on, over all trials"
    told = agreed_table(study, found, caption)
    proved = "What each cell accepted and refused before it was timed"
    proofs = proofs_table(study, proved)
    return section(
        "What was negotiated",
        paragraph(prose_served.agreed(found), class_="note"),
        folded(f"{caption}: {len(found)} lines", told) if len(found) > MOST_PROOFS else told,
        folded(proved, proofs) if proofs else "",
    )
