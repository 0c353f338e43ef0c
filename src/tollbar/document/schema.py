"""The form of the JSON documents, which their JSON Schemas and the tables of docs/json.md are written from.

`python -m tollbar.document.schema` writes both again, into the folder of a checkout that is given.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from math import isfinite
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tollbar.stats import Interval

Number = Annotated[float | None, BeforeValidator(lambda value: value if value is None or isfinite(value) else None)]
"""Null where it is not known, the end of an interval that has none included."""
Ends = tuple[Number, Number] | None
"""The low and the high end of an interval."""


def ends_of(of: Interval | None) -> tuple[float | None, float | None]:
    """Return the two ends of an interval; neither where there were too few blocks for one, or none."""
    return (of.low, of.high) if of is not None and of.is_bounded else (None, None)


Value = str | int | float | bool
"""Of a coordinate."""
Values = dict[str, Value]
JSON = Any
"""What a library or a machine says of itself."""


class Form(BaseModel):
    """Keys are added within a schema's number; here every one of them stands."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class WhereForm(Form):
    """Which cell it is."""

    choice: str
    provider: str
    server: str | None
    server_version: str | None
    setting: Values


class RatioForm(Form):
    ratio: Number
    low: Number
    high: Number


class NegotiatedForm(Form):
    """So many connections of one kind."""

    model_config = ConfigDict(extra="allow")
    count: int


class ResultForm(WhereForm):
    metric: str
    component: str | None
    unit: str
    value: Number
    low: Number
    high: Number
    limit: str | None = None
    blocks: int
    noisy: bool | None
    outcome: str
    reason: str | None
    standing: str
    strength: int | None
    known_answers: int
    accepted: list[str]
    refused: list[str]
    not_tried: list[str]
    negotiated: list[NegotiatedForm] | None = None
    client_libraries: list[str] | None = None


class TollForm(WhereForm, RatioForm):
    against: WhereForm
    metric: str
    difference: Number
    all_: Number = Field(alias="all")
    all_interval: Ends
    suffers: str | None
    noise: Ends
    confidence: Number
    blocks: int
    noisy: bool | None
    noise_floor: Number
    verdict: str
    more_blocks: int | None
    reason: str | None
    aa: bool


class ContrastForm(Form):
    setting: str
    value: Value
    for_value: Annotated[Value, Field(alias="for")]
    where: dict[str, list[Value]]
    low: Number
    high: Number
    least: Number
    most: Number
    pairs: int
    verdict: str
    more_blocks: int | None


class FigureForm(Form):
    value: Number
    unit: str


class BySourceForm(Form):
    """By the statistic of a study's source."""

    statistic: str
    unit: str
    mean: Number
    error: Number
    deviation: Number
    ratio: Number
    blocks: int


class ClaimForm(RatioForm):
    says: str
    where: str | None
    metric: str
    component: str | None
    published: Number
    published_range: list[Number] | None
    order: str | None
    grows: dict[str, list[Value]]
    published_figures: list[str]
    published_error: str | None
    published_deviation: str | None
    figures: list[FigureForm]
    all_: Number = Field(alias="all")
    rates: list[Number] | None
    by_source: BySourceForm | None
    verdict: str
    provider: Value | None
    server: Value | None
    setting: Values
    note: str | None
    reason: str | None


class TableCellForm(WhereForm, RatioForm):
    column: Value
    verdict: str | None
    more_blocks: int | None
    cost: Number
    cost_interval: Ends
    unit: str
    is_over: bool
    outcome: str
    reason: str | None


class TableRowForm(Form):
    row: Value
    cells: list[TableCellForm]


class StudyTableForm(Form):
    title: str
    rows_are: str
    columns_are: str
    metric: str | None
    over: Values
    where: Values
    rows: list[TableRowForm]


class FactorCostForm(WhereForm):
    cost: float
    interval: Ends


class FactorPartForm(Form):
    factors: list[str]
    added: float
    interval: Ends


class FactorsForm(RatioForm):
    factors: dict[str, tuple[Value, Value]]
    at: Values
    costs: list[FactorCostForm]
    parts: list[FactorPartForm]
    beyond: Number
    beyond_interval: Ends
    noisy: bool | None
    verdict: str
    reason: str | None


class ScalingSideForm(RatioForm):
    verdict: str
    noisy: bool | None


class ScalingForm(WhereForm):
    threads: int
    cpu: ScalingSideForm
    elapsed: ScalingSideForm
    verdict: str
    reason: str | None


class LeftOutForm(Form):
    coordinates: Values
    because: str


class SetAsideForm(Form):
    choice: str | None = None
    provider: str | None = None
    server: str | None = None
    server_version: str | None = None
    setting: Values | None = None
    failed: int
    trials: int
    after: int
    reason: str
    at: float
    tried_again: bool


class AnswersForm(Form):
    headline: str
    paragraphs: list[str]
    sentences: list[str]


class PlaceForm(Form):
    at: Values
    cost: float
    ratio: Number
    verdict: str | None


class OfferForm(Form):
    choice: str
    name: str
    op: str
    standing: str
    note: str | None
    places: list[PlaceForm]


class CandidateForm(Form):
    name: str
    mitigates: str
    condition: str | None


class ThreatForm(Form):
    threat: str
    candidates: list[CandidateForm]


class UsesForm(Form):
    sentences: list[str]
    operations: list[OfferForm]
    threats: list[ThreatForm]


class StudyForm(Form):
    study: str
    """its name; `ask` for a question without a file"""
    question: str
    """what it asks"""
    family: str
    """its family"""
    answers: AnswersForm
    """what was found, in words: `headline`, one line; `paragraphs`, as the report has them; `sentences`, how often a
    core can do each in a second, then one for each comparison with its ratio, interval, verdict and standings"""
    threshold: float
    """the share under which differences are ignored"""
    confidence: float
    """that of every interval and verdict"""
    noise_floor: Number
    """the ratio below which there is no verdict"""
    noise: Ends
    """the interval of the A/A pairs"""
    drift: Number
    """what costs were at the end, over the beginning"""
    quiet_share: Number
    """the share of the study's time in which the core was quiet, as probes of it say; `null` where no probe
    shares the core"""
    quiet_known_by: str | None
    """evidence for the duration of a quiet core's probe: `earlier runs`, `chain` (a first run on a listed processor) or
    `nothing` (a steady neighbour cannot be excluded, and `quiet_share` is compared with the run's own probes alone);
    `null` where no probe shares the core, and with roles"""
    results: list[ResultForm]
    """a row for each cell and metric: where it stands, `value`, `low`, `high`, `outcome`, `reason`, `standing`,
    `strength`, what it proved"""
    tolls: list[TollForm]
    """each cell against its baseline: `ratio`, `low`, `high`, `difference`, `all`, `noisy`, `verdict`,
    `more_blocks`; `noisy` tells whether the core was quiet in too few blocks, here
    and in `results`"""
    contrasts: list[ContrastForm]
    """what each value of a setting changes, all else alike"""
    claims: list[ClaimForm]
    """what was published, beside what was measured: `published` is one ratio, `published_range` the least and the
    most of several, `order` and `grows` where there is none, `published_figures` the source's own,
    `published_error` and `published_deviation` what it prints beside the first; `figures` are the same of this
    machine, `by_source` the first by the source's own statistic; `verdict` may be `not judged` (an absolute
    figure) or `not testable here`, whose `reason` says why"""
    tables: list[StudyTableForm]
    """the study's own tables"""
    factors: list[FactorsForm]
    """all combinations of the study's factors taken apart, in nanoseconds per operation: `costs` of each, `parts`
    (each factor's own, then of each two and of all three what they add beyond that), `beyond`, all that goes
    beyond the sum of each one's own, and `ratio`, the cost with all of them over that sum; `verdict` is `adds up`,
    `cheaper together`, `dearer together` or `cannot tell`"""
    scaling: list[ScalingForm]
    """each cell of several `threads` beside the same of one: `cpu` and `elapsed`, each with the ratio of one operation,
    and the `verdict`: `scales`, `contended`, `waits` or `cannot tell`"""
    left_out: list[LeftOutForm]
    """combinations that were not planned, and why"""
    set_aside: list[SetAsideForm]
    """each time that a cell failed too often and had no more trials: the cell, `failed` of its `trials`, the place
    of the last one (`after`), the `reason`, when (`at`, seconds since the epoch), and whether it was
    `tried_again`"""
    uses: UsesForm
    """which choice for what: `sentences`, then `operations` (choices in good standing, each with its cost by place)
    and `threats` (those that mitigate each)"""
    warnings: list[str]
    """what a reader should know first"""


class SourceClaimForm(Form):
    study: str
    claim: int
    ours: bool


class SourceForm(Form):
    name: str | None = None
    title: str | None = None
    by: str | None = None
    year: int | None = None
    system: str | None = None
    differs: str | None = None
    studies: list[str]
    not_measured: list[str]
    verdicts: dict[str, int]
    claims: list[SourceClaimForm]


class DocumentForm(Form):
    number: Literal[3] = Field(alias="schema")
    """the number of this form"""
    run: str
    """the run's directory"""
    started: str
    """when, in UTC"""
    seed: int
    """what decided order and data"""
    command: list[str]
    """the command line"""
    fingerprint: dict[str, JSON]
    """the machine"""
    simulated: bool
    """whether that is a node of a simulated cluster, or a role's machine is made up on it: nothing is a network's"""
    nodes: dict[str, JSON]
    """the machine of each role that has one of its own: its `address`, `host`, `fingerprint`, and whether it
    `is_simulated`"""
    providers: dict[str, JSON]
    """each library by its name with the version: `spec` as studies write it, and its receipt"""
    sources: list[SourceForm]
    """what became of each published comparison that the run's studies try: `name`, `title`, `by`, `year`, what it
    ran on (`system`) and what `differs` here, its `studies` in this run and those `not_measured`, how many of its
    claims came to each of `verdicts`, and its `claims` in the order of its text, each as its `study`, its place
    in that study's `claims` (`claim`, from 0) and whether it is `ours`"""
    studies: list[StudyForm]
    """each study, in the run's order"""


FOLDER = Path("src/tollbar/document")
SCHEMA_FILE = FOLDER / "schema.json"
REFERENCE_FILE = Path("docs/json.md")


def documents() -> Mapping[Path, type[BaseModel]]:
    """The form of each document, by the file that its JSON Schema ships in: a run's, then each decision's."""
    from tollbar.document import decisions

    names = sorted(module.name for module in iter_modules(decisions.__path__))
    found = {FOLDER / "decisions" / f"{n}.json": import_module(f"{decisions.__name__}.{n}").Document for n in names}
    return {SCHEMA_FILE: DocumentForm, **found}


def json_schema(form: type[BaseModel]) -> str:
    """A document's JSON Schema, as it ships."""
    return json.dumps(form.model_json_schema(), indent=1, ensure_ascii=False) + "\n"


def with_tables(reference: str) -> str:
    """The reference with its tables written anew: of a run's document, of each study, then of each decision's.

    Raises ValueError where it has fewer or more.
    """
    tables = [_table(form) for form in documents().values()]
    tables.insert(1, _table(StudyForm))
    lines: list[str] = []
    for line in reference.split("\n"):
        if not line.startswith("|"):
            lines.append(line)
        elif not lines[-1].startswith("|"):
            if not tables:
                raise ValueError(f"no document has the table of {line}")
            lines += tables.pop(0)
    if tables:
        raise ValueError(f"no table for {tables[0][2]}")
    return "\n".join(lines)


def _table(form: type[BaseModel]) -> list[str]:
    rows = [
        f"| `{field.alias or name}` | {' '.join((field.description or '').split())} |"
        for name, field in form.model_fields.items()
    ]
    return ["| key | holds |", "| --- | --- |", *rows]


if __name__ == "__main__":
    checkout = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for file, form in documents().items():
        (checkout / file).write_text(json_schema(form), "utf-8")
    path = checkout / REFERENCE_FILE
    path.write_text(with_tables(path.read_text("utf-8")), "utf-8")
