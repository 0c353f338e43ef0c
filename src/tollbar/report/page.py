"""The page as a whole: contents, the studies, what they were measured on, and how to do it again."""

from __future__ import annotations

import shlex
from importlib.resources import files
from string import Template

from tollbar import __version__
from tollbar.judge import Judgement
from tollbar.report import bundle, palette
from tollbar.report.charts import Chart, Spec
from tollbar.report.costs import cost_words
from tollbar.report.markup import folded, pairs, paragraph, script_json, tag, text
from tollbar.report.sections import how, study_section
from tollbar.results import Run


def page(judgement: Judgement) -> str:
    """The whole document. Raises TollbarError if the charts' runtime cannot be made."""
    charts: dict[str, Spec] = {}

    def draw(chart: Chart) -> str:
        name = f"chart-{len(charts) + 1}"
        # Vega writes the description onto the drawing itself, where a screen reader meets it.
        charts[name] = {"description": chart.description, **chart.spec}
        return tag("div", class_="plot", id=name)

    run = judgement.run
    body = "".join(
        (
            tag(
                "header",
                tag("h1", text(f"What security costs: {run.name}")),
                _about(run),
                _contents(judgement),
            ),
            tag("main", *(study_section(s, draw) for s in judgement.studies), _how(judgement), _again(run)),
        )
    )
    return Template(_data("page.html")).substitute(
        title=text(f"Tollbar: {run.name}"),
        style=_data("style.css"),
        body=body,
        charts=script_json({"config": palette.config(), "charts": charts}),
        # A page without charts needs no runtime.
        runtime=bundle.script() if charts else "",
        script=_data("page.js"),
    )


def _data(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def _about(run: Run) -> str:
    return paragraph(f"Measured {run.started} with Tollbar {__version__}, seed {run.seed}.", class_="note")


def _contents(judgement: Judgement) -> str:
    links = [(f"study-{s.study.study.name}", s.study.study.question) for s in judgement.studies]
    links += [("how", "How and on what it was measured"), ("again", "Do it again")]
    items = (tag("li", tag("a", text(says), href=f"#{anchor}")) for anchor, says in links)
    return tag("nav", tag("ol", *items), aria_label="Contents")


def _how(judgement: Judgement) -> str:
    run = judgement.run
    receipts = [
        folded(f"Receipt of {name}", pairs(f"What {name} says of itself", receipt))
        for name, receipt in run.providers.items()
    ]
    return tag(
        "section",
        tag("h2", "How and on what it was measured"),
        *(paragraph(said) for said in dict.fromkeys(cost_words(s).method for s in judgement.studies)),
        *(how(study) for study in judgement.studies),
        pairs("The machine", run.fingerprint),
        *receipts,
        id="how",
    )


def _again(run: Run) -> str:
    path = shlex.quote(_run_path(run))
    command = list(run.command) or ["tollbar", "run"]
    if not any(part == "--seed" or part.startswith("--seed=") for part in command):
        command += ["--seed", str(run.seed)]
    lines = (
        ("The same run, the same order", shlex.join(command)),
        ("Judge the same trials again", f"tollbar judge {path}"),
        ("Compare with another run", f"tollbar compare {path} OTHER-RUN"),
        ("The numbers as a file", f"tollbar export {path} --format csv"),
    )
    items = (tag("dt", text(says)) + tag("dd", tag("code", text(line))) for says, line in lines)
    return tag("section", tag("h2", "Do it again"), tag("dl", *items, class_="commands"), id="again")


def _run_path(run: Run) -> str:
    # A report is handed on: where a home directory lies is nobody's business.
    parts = run.directory.parts
    return str(run.directory) if not run.directory.is_absolute() else "/".join(parts[-2:])
