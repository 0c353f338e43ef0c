"""The page as a whole: the templates, what they may call, and the drawings that they place."""

from __future__ import annotations

import json
import re
from importlib import import_module
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tollbar import __version__
from tollbar.judge import Judgement
from tollbar.present import shapes
from tollbar.present.costs import cost_words
from tollbar.report import bundle, drawing, palette
from tollbar.report.drawing import Spec
from tollbar.report.layout import needs_width

# The modules of `present` that templates take names, rows, sentences and charts from: they only lay out.
PRESENT = (
    "against", "agreed", "answers", "cells", "charts", "comparisons", "crosstables", "loads", "notes", "published",
    "rebasing", "shapes", "shares", "tables", "threats", "timelines", "tolls", "uses", "waits", "warnings", "words",
)  # fmt: skip


def page(judgement: Judgement) -> str:
    """The whole document. Raises TollbarError if the charts' runtime cannot be made."""
    drawn: dict[str, Spec] = {}

    def draw(chart: shapes.Chart) -> str:
        name = f"chart-{len(drawn) + 1}"
        # Vega writes the description onto the drawing itself, where a screen reader meets it.
        drawn[name] = {"description": chart.description, **drawing.spec_of(chart.data)}
        return name

    templates = Environment(
        loader=PackageLoader("tollbar.report"),
        autoescape=True,
        undefined=StrictUndefined,
    )
    templates.filters["marked"] = marked
    templates.globals |= {name: import_module(f"tollbar.present.{name}") for name in PRESENT}
    templates.globals |= {"palette": palette, "draw": draw, "needs_width": needs_width}
    return templates.get_template("page.html.jinja").render(
        judgement=judgement,
        run=judgement.run,
        studies=judgement.studies,
        methods=tuple(dict.fromkeys(cost_words(study).method for study in judgement.studies)),
        version=__version__,
        style=Markup(data("style.css")),
        script=Markup(data("page.js")),
        # Called at the end of the page, when all charts have their places.
        drawings=lambda: script_json({"config": json.loads(data("charts/config.json")), "charts": drawn}),
        # A page without charts needs no runtime.
        runtime=lambda: Markup(bundle.script() if drawn else ""),
    )


def data(name: str) -> str:
    """A file of this package."""
    return (files(__package__) / name).read_text("utf-8")


def marked(value: object) -> Markup:
    """The text escaped, with what stands between backticks as code: families and studies write it so."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(value))))


def script_json(value: object) -> Markup:
    """JSON that may stand in a script element, whatever texts it holds."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # The line separators are text in JSON and line ends in older JavaScript.
    for character in "<>&\u2028\u2029":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return Markup(written)
