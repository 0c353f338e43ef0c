"""Recorded runs: `python -m bench.results` measures `quick` and `sources`, and writes their pages into `results/`.

A stopped run is continued. `python -m bench.results record RUN` records a finished run of any studies.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import vl_convert

from bench.figures import TOLLBAR
from tollbar import results, study
from tollbar.analysis import ClaimVerdict, Judgement, judge
from tollbar.analysis.kept import KeptJudgement, keep, state
from tollbar.core.markdown import escaped
from tollbar.core.words import counted, enumeration, slug
from tollbar.report.blocks import Block, Chart, Figures, Folded, Items, Legend, Listing, Paragraph, Section, Table
from tollbar.report.html.drawing import spec_of
from tollbar.report.page import briefs
from tollbar.report.sections.published import blocks_of
from tollbar.report.sections.published.lines import NOT_MEASURED, Published, claims_of, counted_tests, sources_of
from tollbar.report.terminal.markdown import brief_lines, table_lines
from tollbar.results import Run
from tollbar.study import Claim, Study

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
# Runs in progress, ignored by git.
RUNS = ROOT / "runs" / "recorded"
SETS = ("quick", study.AS_PUBLISHED)
WIDTH_PX = 760
PLACE = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|usr|work|var|opt|mnt|srv|Users)/(?:[\w.+-]+/)*([\w.+-]+)")
CLAIMS = "claims.json"
# Marks of the page's stylesheet, as the drawings have them.
SHAPES = {"then": "◇", "here": "●"}
LEGEND = {"title": None, "orient": "top", "labelColor": "var(--ink)", "columns": 3, "labelLimit": 0}
BEGIN, END = "<!-- results -->", "<!-- /results -->"
# Facts of a run's machine and programs, without names, users and paths.
KEPT = ("schema", "tollbar", "libraries", "seed", "started", "fingerprint", "method", "engine", "broken", "studies")
INDEX = """# Recorded runs

Each folder is a machine's: its processor and number of cores. A run has its judgement (`judged.json`), the facts of the
machine (`run.json`), the studies as they were measured, the number of claims and tests by source (`claims.json`), and
pages. A claim is a statement of a published comparison; it has a test for each library and setting that it does not
name. The pages of sources state claims as they are worded now, with the measurements of the run.

`tollbar compare results/*` reads all of them. [CONTRIBUTING](../CONTRIBUTING.md#to-add) says how to add a machine.
"""
WORDS = {
    ClaimVerdict.STILL_TRUE: "still true",
    ClaimVerdict.LARGER: "a larger difference",
    ClaimVerdict.SMALLER: "a smaller difference",
    ClaimVerdict.INVERTED: "the opposite",
    ClaimVerdict.CANNOT_TELL: "undecided",
}


def main(arguments: Sequence[str]) -> None:
    """Measure and record the sets, record one run, or write the sentence of README again."""
    parser = argparse.ArgumentParser(prog="python -m bench.results", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["all", *SETS, "record", "sentence"], default="all")
    parser.add_argument("run", nargs="?", type=Path, help="directory of a finished run, for `record`")
    parser.add_argument("--machine", help="name of the folder in results/; default: made of the processor")
    said = parser.parse_args(arguments)
    if said.what == "record":
        if said.run is None:
            parser.error("`record` needs the directory of a run")
        record(said.run, said.machine)
    elif said.what != "sentence":
        for name in SETS if said.what == "all" else (said.what,):
            record(measured(name), said.machine)
    readme = ROOT / "README.md"
    readme.write_text(with_sentence(readme.read_text("utf-8"), RESULTS), "utf-8")
    (RESULTS / "README.md").write_text(index(RESULTS), "utf-8")


def measured(name: str) -> Path:
    """Return the run of a set: the one in progress, continued, or a new one."""
    runs = RUNS / name
    begun = sorted(path.parent for path in runs.glob("*/run.json"))
    asked = ["--resume", str(begun[-1])] if begun else [name, "--runs", str(runs)]
    # Status 1: some cell could not be measured here, which the page reports.
    status = subprocess.run([TOLLBAR, "run", "--no-report", *asked], check=False, cwd=ROOT, stdout=subprocess.DEVNULL)
    if status.returncode not in (0, 1):
        raise SystemExit(status.returncode)
    return max(path.parent for path in runs.glob("*/run.json"))


def record(directory: Path, machine: str | None, into: Path = RESULTS) -> Path:
    """Write a run's facts, studies, judgement and pages into a folder of its machine, and return the folder."""
    judged = judge(with_claims_of_today(results.read(directory)))
    kept = keep(judged)
    folder = into / (machine or machine_name(judged.run.fingerprint)) / set_name(judged)
    for old in (*folder.glob("studies/*"), *folder.glob("figures/*"), *folder.glob("*.*")):
        old.unlink()
    for inside in ("studies", "figures"):
        (folder / inside).mkdir(parents=True, exist_ok=True)
    about = results.about(directory)
    facts = {name: about[name] for name in KEPT if name in about}
    facts["command"] = ["tollbar", "run", set_name(judged)]
    facts["providers"] = {name: {"name": one["name"]} for name, one in about["providers"].items()}
    facts["servers"] = {name: {"version": one["version"]} for name, one in about["servers"].items() if "version" in one}
    facts["broken"] = {}
    _write(folder / "run.json", json.dumps(facts, indent=1))
    for one in judged.studies:
        _write(folder / "studies" / f"{one.about.name}.toml", one.about.text)
    # The digest is of the recorded files: the database stays with the run.
    _write(folder / "judged.json", KeptJudgement(**{**dict(kept), "of": state(folder)}).model_dump_json())
    _write(folder / CLAIMS, json.dumps(verdicts(judged), indent=1))
    for name, lines in pages(judged, folder / "figures"):
        _write(folder / f"{name}.md", "\n".join(lines))
    return folder


def with_claims_of_today(run: Run) -> Run:
    """Return the run with the claims that its studies have now: their words, readings and notes may be better since.

    Measurements are the run's. A claim about a cell that it did not measure stays untested.
    """
    shipped = {one.name: one for source in study.sources().values() for one in study.load(source.studies)}

    def claims_of(asked: Study) -> Sequence[Claim]:
        now = shipped.get(asked.name)
        return now.claims if now is not None and now.source == asked.source else asked.claims

    found = (replace(one, study=replace(one.study, claims=tuple(claims_of(one.study)))) for one in run.studies)
    return replace(run, studies=tuple(found))


def _write(path: Path, text: str) -> None:
    # A library's own reason may name its place on this machine.
    path.write_text(PLACE.sub(r"…/\1", text).rstrip() + "\n", "utf-8")


def machine_name(fingerprint: Mapping[str, Any]) -> str:
    """Return a folder's name: processor and number of cores."""
    return slug(f"{fingerprint['cpu']} {fingerprint['cores']} cores")


def set_name(judged: Judgement) -> str:
    """Return the set that a run's command names, or the run's own study."""
    # Not by its studies: a later version of the set may have others.
    asked = [word for word in judged.run.command if word in (*SETS, study.SHORT)]
    names = {one.about.name for one in judged.studies}
    return asked[0] if asked else (min(names) if len(names) == 1 else "studies")


def verdicts(judged: Judgement) -> Mapping[str, Mapping[str, Any]]:
    """Return the number of a source's judged claims, and of their tests by verdict, without claims that are ours."""
    found = {}
    for part in sources_of(judged):
        if part.source:
            lines = [line for line in part.theirs if line.claim.is_judged]
            tests = Counter(line.verdict for line in lines)
            found[part.source.name] = {"claims": claims_of(line for line in lines if line.is_tested), "tests": tests}
    return found


def pages(judged: Judgement, figures: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the lines of each page: one for each source, and one for all answers."""
    parts = [part for part in sources_of(judged) if part.source]
    links = [f"- [{escaped(part.heading)}]({part.source.name}.md): {_tests(part)}" for part in parts if part.source]
    answers = [line for brief in briefs(judged, everything=True) for line in brief_lines(brief)]
    told = f"Measured {judged.run.started[:10]} with Tollbar {judged.run.version}, on {judged.run.fingerprint['cpu']}."
    counts = [of_claims(verdicts(judged)), "", *links, ""] if links else []
    yield "README", [f"# `{set_name(judged)}`", "", told, "", *counts, *answers]
    for part in parts:
        assert part.source is not None
        drawn = Drawn(figures, part.source.name)
        blocks = blocks_of(part, judged.run, folding=False)
        yield part.source.name, [f"# {escaped(part.heading)}", "", *drawn.lines(blocks, 2)]


def _tests(part: Published) -> str:
    """Return the first line of a source's page about its results."""
    return f"{counted_tests(part.theirs)}."


class Drawn:
    """Markdown of blocks, whose charts are written as SVG."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name, self.count = folder, name, 0

    def lines(self, blocks: Iterator[Block] | Sequence[Block], level: int) -> Iterator[str]:
        """Yield the lines of these blocks; `level` is that of their headings."""
        for block in blocks:
            if isinstance(block, Items):
                yield from (*(f"- {escaped(item)}" for item in block.items), "")
            elif isinstance(block, Paragraph) and block.says:
                yield from (escaped(block.says), "")
            elif isinstance(block, Table):
                yield from (*([f"**{escaped(block.caption)}**", ""] if block.caption else []), *_table(block))
            elif isinstance(block, Figures):
                for chart in block.charts:
                    yield from (*([f"*{escaped(chart.title)}*", ""] if chart.title else []), self._figure(chart), "")
            elif isinstance(block, Section | Listing):
                yield from (f"{'#' * level} {escaped(block.title)}", "", *self.lines(block.blocks, level + 1))
            elif isinstance(block, Folded):
                yield from self.lines(block.blocks, level)
            else:
                # A drawing on its own has the colours of its legend inside, but not its shapes.
                assert isinstance(block, Legend), block
                shapes = [f"{SHAPES[key.mark]} {key.says}" for key in block.keys if key.mark in SHAPES]
                yield from ([f"{', '.join(shapes)}.", ""] if shapes else [])

    def _figure(self, chart: Chart) -> str:
        self.count += 1
        name = f"{self.name}-{self.count}.svg"
        _write(self.folder / name, svg(chart.data))
        return f"![{escaped(chart.description.partition('. ')[0])}](figures/{name})"


def _table(table: Table) -> Iterator[str]:
    yield from table_lines([Table("", table.columns, table.rows)])


def svg(data: object) -> str:
    """Return a chart's drawing, with a legend and the stylesheet's colours for light and dark."""
    spec: dict[str, Any] = {**spec_of(data), "width": WIDTH_PX}
    _with_legend(spec)
    charts = files("tollbar.report.html")
    config = json.loads((charts / "charts" / "config.json").read_text("utf-8"))
    # A file has room for whole labels, unlike a page.
    config["axis"]["labelLimit"] = 0
    drawn = vl_convert.vegalite_to_svg(spec, config={**config, "background": "var(--paper)"})
    style = (charts / "style.css").read_text("utf-8")
    light, dark = re.findall(r":root \{[^}]*\}", style)[:2]
    rules = f"<style>{light}@media (prefers-color-scheme: dark){{{dark}}}</style>"
    # Descriptions are in the page's text, and tenths of a pixel are enough: half of the size.
    return _small(drawn).replace(">", f">{rules}", 1)


def _small(drawn: str) -> str:
    """Return a drawing without descriptions, and with tenths of a pixel in its attributes; its texts stay whole."""
    small = re.sub(r' (?:aria-[a-z]+|role)="[^"]*"', "", drawn)
    return re.sub(r'(?<==")[^"<>]*', lambda value: re.sub(r"(\.\d)\d+", r"\1", value[0]), small)


def _with_legend(spec: dict[str, Any]) -> None:
    """Give the first colour of a specification, whose legend is a page's, one of its own."""
    for layer in spec.get("layer", ()):
        for channel in ("stroke", "fill", "color"):
            said = layer.get("encoding", {}).get(channel, {})
            if said.get("field") and said.get("legend", False) is None:
                said["legend"] = {
                    "title": None,
                    "orient": "top",
                    "labelColor": "var(--ink)",
                    "columns": 3,
                    "labelLimit": 0,
                }
                return


def with_sentence(text: str, folder: Path) -> str:
    """Return README's text with the sentence on recorded runs, between its marks."""
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    return f"{head}{BEGIN}\n{sentence(folder)}\n{END}{tail}"


def index(folder: Path) -> str:
    """Return the page of all recorded runs."""
    return f"{INDEX}\n{sentence(folder, to_root=False)}\n"


def sentence(folder: Path, *, to_root: bool = True) -> str:
    """Return the words on all recorded runs: their machines and, for `results/`, the counts of the published claims."""
    said = []
    for path in sorted(folder.glob("*/*/run.json")):
        facts = json.loads(path.read_text("utf-8"))
        name, on = path.parent.name, f"{facts['fingerprint']['cpu']}, {counted(facts['fingerprint']['cores'], 'core')}"
        link = f"[`{name}` on {on}]({'results/' if to_root else ''}{path.parent.parent.name}/{name}/README.md)"
        counts = of_claims(json.loads((path.parent / CLAIMS).read_text("utf-8")))
        tested = "which of the published claims are still true." if to_root and counts else counts
        said.append(f"- {link}{f': {tested}' if tested else '.'}")
    return "\n".join(said)


def of_claims(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the results of all sources' claims in a sentence; empty if none was tested."""
    claims = sum(one["claims"] for one in found.values())
    counts: Counter[str] = Counter()
    for one in found.values():
        counts.update(one["tests"])
    judged = sum(counts[verdict] for verdict in WORDS)
    if not judged:
        return ""
    words = [f"{told} in {counted(counts[verdict], 'test')}" for verdict, told in WORDS.items() if counts[verdict]]
    gone = f" Another {counted(counts[NOT_MEASURED], 'test')} had no measurement." if counts[NOT_MEASURED] else ""
    return (
        f"{counted(claims, 'published claim')}, tested with several libraries and settings: {enumeration(words)}.{gone}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
