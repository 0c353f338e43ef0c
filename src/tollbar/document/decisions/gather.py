"""The JSON document of `tollbar gather`, and its tolls as flat rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from tollbar.document.schema import JSON, Form, Number, Values
from tollbar.gathering import Gathered, Observation, Pattern, Place, TollRow
from tollbar.present.decisions.gather import refusal_words
from tollbar.present.decisions.gather_words import DIFFERS
from tollbar.results import free_names
from tollbar.stats import Moments


class GatheredRunForm(Form):
    run: str
    """its directory"""
    machine: int
    """its place in `machines`, from 0"""
    started: str
    tollbar: str
    """the version that made it"""
    page: str | None
    """its report, where there is one"""


class MachineForm(Form):
    processor: str
    fingerprint: dict[str, JSON]
    runs: list[int]
    """their places in `runs`, from 0"""


class ObservationForm(Form):
    run: int
    study: str
    provider: str
    """with its version"""
    server_version: str | None
    ratio: Number
    low: Number
    """null, as `high`, where there were too few blocks for an interval"""
    high: Number
    confidence: Number
    noisy: bool
    """whether the ratio is noisy: the core was quiet in too few blocks, or was not probed"""
    verdict: str
    blocks: int
    reason: str | None
    """why there is no ratio"""


class TogetherForm(Form):
    ratio: Number
    low: Number
    high: Number
    confidence: Number
    noise: Number
    """how far from 1 noise alone may take this ratio; null where no run had A/A pairs"""
    noisy: bool
    """whether the combined runs are noisy: no quiet one has an interval"""
    runs: list[int]
    """the combined ones, by their places in `runs`"""


class OnMachineForm(Form):
    machine: int
    verdict: str
    """on the ratio of all runs `together`; `runs differ` where decided runs contradict one another"""
    together: TogetherForm | None
    """the runs combined by random effects; null where none has an interval"""
    runs: list[ObservationForm]


class GatheredTollForm(Form):
    family: str
    cell: Values
    over: Values
    """its baseline"""
    cost: str
    load: str
    """a digest of what users ask of a server, and how; empty where there is none"""
    parameters: dict[str, Values]
    """what the two choices are performed with"""
    threshold: Number
    """the smallest difference that counts"""
    standing: str
    differs: bool
    """whether machines, or runs of one of them, contradict one another"""
    on: list[OnMachineForm]


class PatternForm(Form):
    flags: list[str]
    """each of which separates the verdicts"""
    verdict_with: str
    verdict_without: str
    processors_with: int
    """how many decide it, at the least among the tolls"""
    processors_without: int
    tolls: list[int]
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
    not_shown: int
    """patterns that 5 % of the shuffles or more equal for some flag"""


class RefusedForm(Form):
    run: str
    study: str | None
    """null: all of the run"""
    reason: str


class Document(Form):
    schema_: Literal[3] = Field(default=3, alias="schema")
    """the number of this form"""
    runs: list[GatheredRunForm]
    """those that could be read"""
    machines: list[MachineForm]
    """those whose fingerprints differ"""
    tolls: list[GatheredTollForm]
    """one for each cell over its baseline, `on` each machine as each run found it, and as its runs `together` do;
    nothing is estimated of several machines"""
    patterns: list[PatternForm]
    """processor flags that separate the verdicts on tolls perfectly, which is no cause; fewer than 5 % of the shuffles
    give as many tolls for some flag"""
    shuffled: ShuffledForm
    """how many tolls have such a flag, and how many where the flags are dealt out among the processors by chance"""
    refused: list[RefusedForm]
    """runs and studies of which nothing is told, and why"""


def document(gathered: Gathered) -> Document:
    """The document of these runs."""
    machine_of = _machine_of(gathered)
    places = {id(row): number for number, row in enumerate(gathered.rows)}
    return Document(
        runs=[
            GatheredRunForm(
                run=run.name,
                machine=machine_of[number],
                started=run.started,
                tollbar=run.version,
                page=f"{run.name}/{run.page.name}" if run.page else None,
            )
            for number, run in enumerate(gathered.runs)
        ],
        machines=[
            MachineForm(processor=one.processor, fingerprint=one.fingerprint.model_dump(), runs=one.runs)
            for one in gathered.machines
        ],
        tolls=[_toll(row) for row in gathered.rows],
        patterns=[_pattern(one, places) for one in gathered.patterns.told],
        shuffled=ShuffledForm(
            tolls=gathered.patterns.tolls,
            shuffles=gathered.patterns.shuffles,
            usual=gathered.patterns.usual,
            most=gathered.patterns.most,
            not_shown=gathered.patterns.not_told,
        ),
        refused=[
            *(RefusedForm(run=one.name, study=None, reason=one.reason) for one in gathered.unusable),
            *(
                RefusedForm(run=run.name, study=one.study.name, reason=refusal_words(one))
                for run in gathered.runs
                for one in run.refused
            ),
        ],
    )


def toll_rows(gathered: Gathered) -> Iterator[dict[str, Any]]:
    """A flat row for each toll of each run: its coordinates and its baseline's, and what was found."""
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
        **{name: value for name, value in _observed(one).items() if name != "run"},
    }


def _machine_of(gathered: Gathered) -> Mapping[int, int]:
    return {run: number for number, machine in enumerate(gathered.machines) for run in machine.runs}


def _toll(row: TollRow) -> GatheredTollForm:
    return GatheredTollForm(
        family=row.family,
        cell=dict(row.at),
        over=dict(row.over),
        cost=row.cost,
        load=row.load,
        parameters={name: dict(with_) for name, with_ in row.parameters.items()},
        threshold=row.threshold,
        standing=str(row.standing),
        differs=row.differs,
        on=[
            OnMachineForm(
                machine=number,
                verdict=DIFFERS if place.verdict is None else str(place.verdict),
                together=_together(place),
                runs=[ObservationForm(**_observed(one)) for one in place.seen],
            )
            for number, place in sorted(row.places.items())
        ],
    )


def _together(place: Place) -> TogetherForm | None:
    ratio = place.ratio
    if ratio is None:
        return None
    return TogetherForm(
        ratio=ratio.estimate,
        low=ratio.low,
        high=ratio.high,
        confidence=ratio.confidence,
        noise=place.floor,
        noisy=ratio.moments is Moments.ALL,
        runs=[one.run for one in place.combined],
    )


def _observed(one: Observation) -> dict[str, Any]:
    toll, cell = one.toll, one.cell
    return {
        "run": one.run,
        "study": one.study.name,
        "provider": cell.provider,
        "server_version": cell.server_version,
        "ratio": toll.ratio,
        "low": toll.low,
        "high": toll.high,
        "confidence": one.study.confidence,
        "noisy": toll.is_noisy,
        "verdict": str(toll.verdict),
        "blocks": toll.blocks,
        "reason": toll.reason,
    }


def _pattern(one: Pattern, places: Mapping[int, int]) -> PatternForm:
    have, lack = one.processors
    return PatternForm(
        flags=list(one.flags),
        verdict_with=str(one.have),
        verdict_without=str(one.lack),
        processors_with=have,
        processors_without=lack,
        tolls=[places[id(row)] for row in one.rows],
        by_chance=one.by_chance,
    )
