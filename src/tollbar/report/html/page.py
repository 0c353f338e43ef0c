"""Whole page: the templates that lay it out, and the drawings that they place."""

from __future__ import annotations

import json
import re
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tollbar.catalog.families import Standing
from tollbar.core.errors import printable
from tollbar.report.blocks import Chart, Figures
from tollbar.report.chart import Strengths
from tollbar.report.html import bundle, drawing, palette
from tollbar.report.html.drawing import Spec
from tollbar.report.html.layout import needs_width
from tollbar.report.page import Page

# Names longer than this next to the rows leave too little of half a page.
MOST_LETTERS = 34


def html(said: Page) -> str:
    """Return the whole document. Raises TollbarError if the charts' runtime cannot be made."""
    drawn: dict[str, Spec] = {}
    # Scripts of blocks, before that of all pages, which marks the page as ready.
    scripts: dict[str, None] = {}

    def placed(chart: Chart) -> str:
        name = f"chart-{len(drawn) + 1}"
        # Vega writes the description onto the drawing itself, where screen readers find it.
        drawn[name] = {"description": chart.description, **drawing.spec_of(chart.data)}
        return name

    def needed(script: str) -> str:
        scripts[script] = None
        return ""

    templates = Environment(
        loader=PackageLoader("tollbar.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
    )
    templates.filters |= {
        "marked": marked,
        "placed": placed,
        "needed": needed,
        "script_json": script_json,
        "classes": classes,
        "standing_shape": palette.SHAPES.get,
        "line_colour": palette.line_colour,
        "line_dash": palette.line_dash,
        "line_shape": palette.line_shape,
        "part_colour": palette.part_colour,
    }
    templates.globals["standings"] = list(Standing)
    # The body first, because it places the drawings.
    laid_out = templates.get_template("blocks.html.jinja").module.laid_out  # type: ignore[attr-defined]
    main = laid_out(said.sections, 2)
    text = templates.get_template("page.html.jinja").render(
        page=said,
        answers=[(entry, laid_out(entry.says, 2)) for entry in said.answers],
        main=main,
        style=Markup(data("style.css")),
        script=Markup("\n".join(map(data, (*scripts, "page.js")))),
        drawings=script_json({"config": json.loads(data("charts/config.json")), "charts": drawn}),
        # A page without charts needs no runtime.
        runtime=Markup(bundle.script() if drawn else ""),
    )
    # Scripts contain tabs.
    return "\t".join(map(printable, text.split("\t")))


def classes(of: Figures) -> str:
    """Return the classes of the stylesheet that lay out panels."""
    if of.layout == "panels strength":
        levels = {point.bits for chart in of.charts if isinstance(chart.data, Strengths) for point in chart.data.points}
        return f"{of.layout} wide" if needs_width(of.letters, len(levels)) else of.layout
    return "panels wide" if of.layout == "panels" and of.letters > MOST_LETTERS else of.layout


def data(name: str) -> str:
    """Return the text of a file of this package."""
    return (files(__package__) / name).read_text("utf-8")


def marked(value: object) -> Markup:
    """Return the text escaped, with text between backticks as code, as families and studies write it."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(value))))


def script_json(value: object) -> Markup:
    """Return JSON that is safe in a script element, whatever texts it contains."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # The line separators are text in JSON and line ends in older JavaScript.
    for character in "<>&\u2028\u2029":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return Markup(written)
