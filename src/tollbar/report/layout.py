"""How the parts of a study are laid out: sections with headings, and charts in a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tollbar.report import prose
from tollbar.report.charts import Chart
from tollbar.report.markup import folded, paragraph, tag, text

Draw = Callable[[Chart], str]
"""Puts a chart on the page and gives the markup of its place."""

# The panels beyond these are drawn when the reader unfolds them: a thousand cells must not cost a slow page.
MOST_PANELS = 6


def section(title: str, *inside: str) -> str:
    return tag("section", tag("h3", text(title)), *inside)


# Longer names beside the rows leave too little of half a page.
MOST_LETTERS = 34


def figures(charts: Sequence[Chart], draw: Draw, style: str = "panels") -> str:
    """The charts in a grid, as many side by side as fit; the later ones folded."""
    if max((c.letters for c in charts), default=0) > MOST_LETTERS and "wide" not in style:
        style = f"{style} wide"
    shown, rest = charts[:MOST_PANELS], charts[MOST_PANELS:]
    grid = tag("div", *(figure(c, draw) for c in shown), class_=style)
    if not rest:
        return grid
    more = tag("div", *(figure(c, draw) for c in rest), class_=style)
    said = paragraph(prose.not_drawn(len(shown), len(rest)), class_="note")
    return grid + said + folded(f"{len(rest)} more panels", more)


def figure(chart: Chart, draw: Draw) -> str:
    title = tag("figcaption", text(chart.title)) if chart.title else ""
    return tag("figure", title, draw(chart))
