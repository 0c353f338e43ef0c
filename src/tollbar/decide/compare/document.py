"""The JSON document of `tollbar gather`, and its tolls as flat rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from tollbar.decide.compare import Gathered, MachineToll, Observation, ReadRun, TollRow
from tollbar.decide.compare.sentences import DIFFERS
from tollbar.decide.compare.words import refusal_words
from tollbar.report.json_forms.form import JSON, Document, Form, Number, Values, of, within
from tollbar.results import free_names


class GatheredRunForm(Form):
    run: Annotated[str, of("name")]
    """its directory"""
    machine: Annotated[int, within(lambda run, places: places.machine_of(run))]
    """its place in `machines`, from 0"""
    started: str
    tollbar: Annotated[str, of("version")]
    """the version that made it"""
    page: Annotated[str | None, of(lambda run: f"{run.name}/{run.page.name}" if run.page else None)]
    """its report, where there is one"""


class MachineForm(Form):
    processor: str
    fingerprint: Annotated[dict[str, JSON], of(lambda machine: machine.fingerprint.model_dump())]
    runs: list[int]
    """their places in `runs`, from 0"""


class ObservationForm(Form):
    run: int
    study: Annotated[str, of("study.name")]
    provider: Annotated[str, of("cell.provider")]
    """with its version"""
    server_version: Annotated[str | None, of("cell.server_version")]
    ratio: Annotated[Number, of("toll.ratio")]
    low: Annotated[Number, of("toll.low")]
    """null, as `high`, where there were too few blocks for an interval"""
    high: Annotated[Number, of("toll.high")]
    confidence: Annotated[Number, of("study.confidence")]
    noisy: Annotated[bool, of("toll.is_noisy")]
    """whether the ratio is noisy: the core was quiet in too few blocks, or was not probed"""
    verdict: Annotated[str, of("toll.verdict")]
    blocks: Annotated[int, of("toll.blocks")]
    reason: Annotated[str | None, of("toll.reason")]
    """why there is no ratio"""


class TogetherForm(Form):
    ratio: Annotated[Number, of("ratio.estimate")]
    low: Annotated[Number, of("ratio.low")]
    high: Annotated[Number, of("ratio.high")]
    confidence: Annotated[Number, of("ratio.confidence")]
    noise: Annotated[Number, of("floor")]
    """how far from 1 noise alone may take this ratio; null where no run had A/A pairs"""
    noisy: Annotated[bool, of("ratio.is_noisy")]
    """whether the combined runs are noisy: no quiet one has an interval"""
    runs: Annotated[list[int], of(lambda place: [one.run for one in place.combined])]
    """the combined ones, by their places in `runs`"""


class _OnMachine(NamedTuple):
    machine: int
    place: MachineToll


class OnMachineForm(Form):
    machine: int
    verdict: Annotated[str, of(lambda on: DIFFERS if on.place.verdict is None else on.place.verdict)]
    """on the ratio of all runs `together`; `runs differ` where decided runs contradict one another"""
    together: Annotated[TogetherForm | None, of(lambda on: on.place if on.place.ratio else None)]
    """the runs combined by random effects; null where none has an interval"""
    runs: Annotated[list[ObservationForm], of("place.seen")]


class GatheredTollForm(Form):
    family: str
    cell: Annotated[Values, of("at")]
    over: Values
    """its baseline"""
    cost: str
    load: str
    """a digest of the users' requests; empty without a load"""
    parameters: dict[str, Values]
    """the providers of the two choices"""
    threshold: Number
    """the smallest difference that counts"""
    standing: str
    differs: bool
    """whether machines, or runs of one of them, contradict one another"""
    on: Annotated[list[OnMachineForm], of(lambda row: [_OnMachine(*one) for one in sorted(row.places.items())])]


class PatternForm(Form):
    flags: list[str]
    """each of which separates the verdicts"""
    verdict_with: Annotated[str, of("have")]
    verdict_without: Annotated[str, of("lack")]
    processors_with: Annotated[int, of(lambda pattern: pattern.processors[0])]
    """how many decide it, at the least among the tolls"""
    processors_without: Annotated[int, of(lambda pattern: pattern.processors[1])]
    tolls: Annotated[list[int], within(lambda pattern, places: [places.of_row(row) for row in pattern.rows])]
    """their places in `tolls`, from 0"""
    by_chance: Number
    """the share of shuffles in which some flag separates the verdicts of as many tolls"""


class ShuffledForm(Form):
    tolls: int
    """whose verdicts some flag separates"""
    shuffles: int
    """in how many ways the flags were dealt out among the processors; 0: there is no pattern to compare"""
    usual: Number
    """the median of these tolls' number over the shuffles"""
    most: int
    """the number that 95 of 100 shuffles do not exceed"""
    not_shown: Annotated[int, of("not_told")]
    """patterns that 5 % of the shuffles or more equal for some flag"""


class RefusedForm(Form):
    run: str
    study: str | None
    """null: all of the run"""
    reason: str


class GatherDocument(Document):
    runs: list[GatheredRunForm]
    """those that could be read"""
    machines: list[MachineForm]
    """those whose fingerprints differ"""
    tolls: Annotated[list[GatheredTollForm], of("rows")]
    """one for each cell over its baseline, `on` each machine as each run found it, and as its runs `together` do;
    nothing is estimated of several machines"""
    patterns: Annotated[list[PatternForm], of("patterns.told")]
    """processor flags that separate the verdicts on tolls perfectly, which is no cause; fewer than 5 % of the shuffles
    give as many tolls for some flag"""
    shuffled: Annotated[ShuffledForm, of("patterns")]
    """how many tolls have such a flag, and how many where the flags are dealt out among the processors by chance"""
    refused: Annotated[list[RefusedForm], of(lambda gathered: _refused(gathered))]
    """runs and studies of which nothing is told, and why"""


class _Places:
    """The places of machines and tolls in their lists, by which others name them."""

    def __init__(self, gathered: Gathered) -> None:
        machine_of = _machine_of(gathered)
        self._machines = {id(run): machine_of[number] for number, run in enumerate(gathered.runs)}
        self._rows = {id(row): number for number, row in enumerate(gathered.rows)}

    def machine_of(self, run: ReadRun) -> int:
        return self._machines[id(run)]

    def of_row(self, row: TollRow) -> int:
        return self._rows[id(row)]


def document(gathered: Gathered) -> GatherDocument:
    """Return the document of these runs."""
    return GatherDocument.read(gathered, _Places(gathered))


def _refused(gathered: Gathered) -> Sequence[RefusedForm]:
    runs = [RefusedForm(run=one.name, study=None, reason=one.reason) for one in gathered.unusable]
    studies = [
        RefusedForm(run=run.name, study=one.study.name, reason=refusal_words(one))
        for run in gathered.runs
        for one in run.refused
    ]
    return runs + studies


def toll_rows(gathered: Gathered) -> Iterator[dict[str, Any]]:
    """A flat row for each toll of each run: its coordinates, its baseline's, and the result."""
    machine_of = _machine_of(gathered)
    found = [
        (row, _columns(gathered, machine_of[one.run], row, one))
        for row in gathered.rows
        for place in row.places.values()
        for one in place.seen
    ]
    taken = {name for _, columns in found for name in columns}
    # The column `provider` has the version too.
    named = free_names((name for row, _ in found for name in row.at if name != "provider"), taken)
    over = free_names((f"over_{name}" for row, _ in found for name in row.over), {*taken, *named.values()})
    for row, columns in found:
        # A column has one type, and a coordinate of this name may be a number in one family only.
        at = {free: str(row.at[name]) if name in row.at else None for name, free in named.items()}
        yield at | {over[f"over_{name}"]: str(value) for name, value in row.over.items()} | columns


def _columns(gathered: Gathered, number: int, row: TollRow, one: Observation) -> dict[str, Any]:
    machine = gathered.machines[number]
    return {
        "run": gathered.runs[one.run].name,
        "processor": machine.processor,
        "flags": " ".join(machine.fingerprint.flags),
        "machine": number,
        "family": row.family,
        "cost_metric": row.cost,
        "load": row.load,
        "parameters": json.dumps(row.parameters, sort_keys=True),
        "standing": str(row.standing),
        **ObservationForm.read(one).model_dump(exclude={"run"}),
    }


def _machine_of(gathered: Gathered) -> Mapping[int, int]:
    return {run: number for number, machine in enumerate(gathered.machines) for run in machine.runs}
