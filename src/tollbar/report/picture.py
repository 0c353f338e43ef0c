"""The toll chart as a picture of its own, for a place that shows no HTML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tollbar.judge import StudyJudgement
from tollbar.report import palette, words
from tollbar.report.bundle import VEGA_LITE
from tollbar.report.charts import Spec
from tollbar.report.panels import toll_charts

# Two columns of this width, their labels and notes are about what a README shows.
WIDTH_PX = 260
LABEL_PX = 230
MOST_PANELS = 4


def toll_picture(study: StudyJudgement) -> str:
    """The first panels of the toll chart as SVG text, with the legend that the page writes beside them."""
    import vl_convert

    charts = toll_charts(study)[:MOST_PANELS]
    panels = [_panel(chart.title, chart.spec, legend=i == 0) for i, chart in enumerate(charts)]
    spec = {
        # Vega-Lite looks for named data at the top only.
        "datasets": {name: rows for c in charts for name, rows in c.spec.get("datasets", {}).items()},
        "title": {"text": study.study.study.question, "anchor": "start", "fontSize": 15, "offset": 14},
        "config": palette.config() | {"background": palette.colour("paper"), "axisY": {"labelLimit": LABEL_PX}},
        "padding": {"left": 12, "top": 12, "bottom": 12, "right": 12},
        "columns": 2 if len(panels) > 1 else 1,
        "spacing": {"column": 30, "row": 30},
        "concat": panels,
    }
    svg: str = vl_convert.vegalite_to_svg(json.loads(palette.in_light(json.dumps(spec))), vl_version=VEGA_LITE)
    return svg


def _panel(title: str, spec: Spec, *, legend: bool) -> Spec:
    inside = {k: v for k, v in spec.items() if k not in ("padding", "autosize", "datasets")}
    inside["width"] = WIDTH_PX
    if title:
        inside["title"] = {"text": title, "anchor": "start", "fontSize": 12}
    if legend:
        _with_legend(inside, spec["datasets"])
    return inside


def _with_legend(spec: Spec, datasets: Mapping[str, Any]) -> None:
    """Gives the shapes and their colours one legend in words, above the panel."""
    used: set[str] = set()
    for values in datasets.values():
        used |= {row["standing"] for row in values if "standing" in row}
    shown = [words.standing_words(s) for s in words.STANDINGS if words.standing_words(s) in used]
    for layer in spec.get("layer", ()):
        for name in ("shape", "stroke"):
            channel = layer.get("encoding", {}).get(name, {})
            if channel.get("field") == "standing":
                channel["legend"] = {"orient": "top", "title": None, "values": shown, "columns": 3}
