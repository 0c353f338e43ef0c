"""CPU over time: what each part paid for one operation, chunk by chunk of one visit, operation after operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tollbar.judge import StudyJudgement
from tollbar.metrics import Metric
from tollbar.present import words
from tollbar.present.cells import (
    at_spot,
    by_row,
    cost_metric,
    covers,
    facet_names,
    facet_sizes,
    places,
    spot,
    varying,
)
from tollbar.present.charts import Scale
from tollbar.present.costs import cost_words
from tollbar.present.shapes import Chart
from tollbar.present.shares import payers
from tollbar.records import Chunk, Outcome, Trial
from tollbar.results import Row

# More operations side by side and none has room for its name.
MOST_PHASES = 4
# Of one operation; neighbouring chunks of a longer visit are drawn as one.
MOST_POINTS = 40
# What paid less than this share of a chunk is under the axis: one idle component must not flatten all the others.
LEAST_SHARE = 0.001


@dataclass(frozen=True, slots=True)
class Moment:
    """A chunk, or a few neighbouring ones."""

    at: float
    """The middle of its time, as a share of its phase's."""
    paid: Mapping[str, float]
    """Nanoseconds per operation, by part."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One visit to one cell."""

    titles: Sequence[str]
    """Its operation, then what else sets it apart from its neighbours."""
    lasted_ns: int
    """Elapsed time of all its chunks; between them the others of its heat had the core."""
    moments: Sequence[Moment]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Phases side by side, as if one visit had had one after the other."""

    phases: Sequence[Phase]
    parts: Sequence[str]
    apart: int
    """How many of the parts, the last ones, are no part of a chunk's own cost: work that was put off until after it."""
    scale: Scale


def timeline_parts(study: StudyJudgement) -> tuple[str, ...]:
    """All whose CPU time the study's charts over time tell apart."""
    return (*payers(study).values(), *(metric.title for metric in _put_off(study)))


def put_off_words(study: StudyJudgement) -> str:
    """What the dashed lines are, where there are any."""
    titles = [metric.title for metric in _put_off(study)]
    return (
        f"Dashed, and no part of a chunk's cost: {words.enumeration(titles)}, done after each chunk." if titles else ""
    )


def timeline_charts(study: StudyJudgement) -> list[Chart]:
    """A panel for each choice on its server and library, the operations side by side; nothing where one part pays all.

    Each operation is one visit: of the cell's, the one with the median cost.
    """
    parts = timeline_parts(study)
    if len(parts) < 2:
        return []
    measured = by_row(study, cost_metric(study))
    visits = {row.key: found for row in study.rows if row.key in measured and (found := median_trial(row))}
    rows = [row for row in study.rows if row.key in visits]
    told = [name for name in varying(rows) if name != "op"]
    names = facet_names([r.coordinates for r in rows], told, ("choice", "bed", "provider"), MOST_PHASES)
    place = places(study)
    operations = list(dict.fromkeys(row.coordinates.get("op") for row in rows))
    panels = {
        place(at_spot(names, whole), names): [
            _phase(study, row, names, visits[row.key])
            for row in sorted(rows, key=lambda row: operations.index(row.coordinates.get("op")))
            if covers(spot(row, names), whole)
        ]
        for whole in facet_sizes([r.coordinates for r in rows], names)
    }
    paid = [ns for phases in panels.values() for phase in phases for m in phase.moments for ns in m.paid.values()]
    scale = Scale.over(cost_words(study).title, paid, "ns")
    apart = len(_put_off(study))
    return [_chart(title, Timeline(phases, parts, apart, scale)) for title, phases in panels.items()]


def median_trial(row: Row) -> Trial | None:
    """Of a cell's trials, the one with the median cost; of two in the middle, the cheaper."""
    trials = [t for t in row.trials if t.outcome is Outcome.OK and t.operations > 0]
    return sorted(trials, key=lambda t: t.cost_ns)[(len(trials) - 1) // 2] if trials else None


def moments(study: StudyJudgement, visit: Trial) -> list[Moment]:
    """A visit's chunks in the order of time, no more than a chart can show."""
    paying, put_off = payers(study), _put_off(study)
    chunks = [chunk for chunk in visit.chunks if chunk.operations > 0 and chunk.wall_ns > 0]
    lasted_ns, passed_ns = sum(chunk.wall_ns for chunk in chunks), 0
    found = []
    step = max(1, -(-len(chunks) // MOST_POINTS))
    for first in range(0, len(chunks), step):
        together = chunks[first : first + step]
        wall_ns = sum(chunk.wall_ns for chunk in together)
        spent = dict(_spent(together, paying, put_off))
        least = LEAST_SHARE * sum(spent.values())
        paid = {part: ns / sum(c.operations for c in together) for part, ns in spent.items() if ns > least}
        found.append(Moment((passed_ns + wall_ns / 2) / lasted_ns, paid))
        passed_ns += wall_ns
    return found


def _spent(
    chunks: Sequence[Chunk], paying: Mapping[str, str], put_off: Sequence[Metric]
) -> Iterator[tuple[str, float]]:
    for component, part in paying.items():
        yield part, sum(chunk.cpu_ns.get(component, 0) for chunk in chunks)
    for metric in put_off:
        yield metric.title, sum(chunk.observed.get(("", metric.name), 0.0) for chunk in chunks)


def _put_off(study: StudyJudgement) -> list[Metric]:
    """What runners observed of CPU time beside a chunk's own."""
    seen = {name for r in study.rows for t in r.trials for c in t.chunks[:1] for component, name in c.observed}
    return [m for m in study.about.family.metrics.values() if m.name in seen and m.unit == "ns/op"]


def _phase(study: StudyJudgement, row: Row, names: Sequence[str], visit: Trial) -> Phase:
    """One cell's; what is as by default goes without saying."""
    family = study.about.family
    settings = family.settings
    differ = [n for n in varying(study.rows) if n in row.coordinates and n not in ("op", *names)]
    said = [n for n in differ if n not in settings or row.coordinates[n] != settings[n].default]
    titles = [str(row.coordinates.get("op", "")), *(words.named_value(family, n, row.coordinates[n]) for n in said)]
    return Phase(titles, visit.wall_ns, moments(study, visit))


def _chart(title: str, data: Timeline) -> Chart:
    said = "; ".join(
        f"{', '.join(phase.titles)}: "
        + words.enumeration(
            [
                f"{part} {words.amount(min(paid), 'ns')} to {words.amount(max(paid), 'ns')}"
                for part in data.parts
                if (paid := [m.paid[part] for m in phase.moments if part in m.paid])
            ]
        )
        for phase in data.phases
    )
    return Chart(title, f"CPU time per operation over one visit, {title}. {said}.", data)
