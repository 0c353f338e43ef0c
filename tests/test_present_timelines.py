"""CPU over time: one visit to each cell, chunk by chunk, and its waiting times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders import example, study_run
from report_example import digests
from served_example import handshakes
from tollbar.analysis import Measurement, StudyJudgement, judge_study
from tollbar.core.metrics import Metric
from tollbar.report.groups import at_one_load
from tollbar.report.sections.cpu import (
    MOST_POINTS,
    Timeline,
    bars,
    median_trial,
    moments,
    parts_of,
    per_words,
    put_off_words,
    timeline_charts,
    timeline_parts,
)
from tollbar.report.sections.waits import OPERATIONS, waits_table

PUT_OFF = Metric("put-off", "what is put off", "ns/op")
FLUSH = Metric("flush", "one flush", "us")


def _observing(study: StudyJudgement, seen: Mapping[Metric, float]) -> StudyJudgement:
    """Return the study with these values of the family's own metrics observed in every chunk."""
    observed = {("", metric.name): value for metric, value in seen.items()}
    rows = tuple(
        replace(
            row,
            trials=tuple(
                replace(t, chunks=tuple(replace(c, observed={**c.observed, **observed}) for c in t.chunks))
                for t in row.trials
            ),
        )
        for row in study.rows
    )
    family = replace(study.about.family, metrics={metric.name: metric for metric in seen})
    return replace(study, study=replace(study.study, rows=rows, study=replace(study.about, family=family)))


def test_a_visit_is_drawn_chunk_by_chunk_by_part() -> None:
    study = handshakes()
    row = next(r for r in study.rows if r.choice == "tls-1.2" and r.trials)
    visit = row.trials[0]
    found = moments(study, visit)
    assert len(visit.chunks) == len(found)
    assert sorted(m.at for m in found) == [m.at for m in found]
    assert all(0 < m.at < 1 for m in found)
    for chunk, moment in zip(visit.chunks, found, strict=True):
        assert chunk.cpu_ns["web"] / chunk.operations == pytest.approx(moment.paid["web"])
        assert chunk.cpu_ns["client"] / chunk.operations == pytest.approx(moment.paid["load client"])
    long = replace(visit, chunks=visit.chunks * 50)
    few = moments(study, long)
    assert MOST_POINTS / 2 <= len(few) <= MOST_POINTS
    paid = sum(c.cpu_ns["web"] for c in long.chunks) / long.operations
    assert paid == pytest.approx(sum(m.paid["web"] for m in few) / len(few), rel=0.05)


def test_the_visit_that_is_drawn_is_the_median_one() -> None:
    row = next(r for r in handshakes().rows if len(r.trials) > 2)
    found = median_trial(row)
    assert found is not None
    costs = sorted(t.cost_ns for t in row.trials)
    assert costs[(len(costs) - 1) // 2] == found.cost_ns
    assert None is median_trial(replace(row, trials=()))


def test_what_was_put_off_stands_apart() -> None:
    study = at_one_load(handshakes()).study
    assert "" == put_off_words(study)
    put_off = _observing(study, {PUT_OFF: 1e6})
    assert (*timeline_parts(study), PUT_OFF.title) == timeline_parts(put_off)
    assert PUT_OFF.title in put_off_words(put_off)
    charts = timeline_charts(put_off)
    assert charts
    for data in (chart.data for chart in charts):
        assert isinstance(data, Timeline)
        assert 1 == data.apart
        assert all(PUT_OFF.title in m.paid for phase in data.phases for m in phase.moments)


def test_operations_stand_side_by_side_where_something_is_put_off_or_several_pay() -> None:
    """For a study of one paying process each chart would be one flat line."""
    assert [] == timeline_charts(digests())
    one = _observing(digests(), {PUT_OFF: 1e3})
    names = {title for chart in timeline_charts(one) for phase in chart.data.phases for title in phase.titles}  # type: ignore[attr-defined]
    assert "digest" in names
    assert ("the process itself", PUT_OFF.title) == timeline_parts(one)


def test_what_a_caller_waits_stands_beside_what_was_waited_for() -> None:
    study = digests()
    assert () == tuple(waits_table(study).rows)
    waiting = _observing(study, {FLUSH: 150.0})
    row = next(t.row for t in study.tolls if t.ratio and t.row.key != t.against.key)
    of = {row.key: 3000.0, row.against: 1000.0}
    at = {r.key: r for r in waiting.rows}
    walls = [Measurement(at[key], "wall", "ns/op", ns, 0.9 * ns, 1.1 * ns, 12) for key, ns in of.items() if key]
    flushes = [Measurement(at[key], "flush", "us", 150.0, 140.0, 160.0, 12) for key in of if key]
    table = waits_table(replace(waiting, measurements=(*walls, *flushes)))
    assert f"added per {OPERATIONS:,} operations" in [column.title for column in table.columns]
    added = {cells[2].says: cells[2].interval for cells in table.rows}
    assert {"–": None, "+20 ms": "[+16, +24]"} == added
    assert {"150 µs"} == {cells[3].says for cells in table.rows}


def test_who_pays_is_known_where_a_client_pays_a_part() -> None:
    rows = [
        replace(
            row,
            trials=tuple(
                replace(
                    t,
                    paid_by=("client", "database"),
                    chunks=tuple(
                        replace(c, cpu_ns={"client": sum(c.cpu_ns.values()) // 4, "database": sum(c.cpu_ns.values())})
                        for c in t.chunks
                    ),
                )
                for t in row.trials
            ),
        )
        for row in example(blocks=8)
    ]
    judged = judge_study(study_run(rows))
    assert ("client", "database") == parts_of(judged)
    whole = {m.row.key: m.value for m in judged.measurements if m.metric == "cpu" and m.component is None}
    found = bars(judged)
    assert whole.keys() == {bar.row.key for bar in found}
    for bar in found:
        assert 4 == pytest.approx(bar.parts["database"] / bar.parts["client"], rel=0.01)
        assert whole[bar.row.key] == pytest.approx(sum(bar.parts.values()), rel=0.01)
    assert "CPU time per operation" == per_words(judged)
