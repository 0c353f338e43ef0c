"""A study's tables: every result, what was measured twice, and the sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tollbar.families import Authority, Choice, Part, Standing
from tollbar.judge import Measurement, StudyJudgement, Toll
from tollbar.judge.noise import reach
from tollbar.metrics import METRICS, TYPICAL
from tollbar.present import cells, notes, words
from tollbar.present.cells import by_row, cost_metric, is_baseline, places, typical_metric, varying
from tollbar.present.costs import cost_words
from tollbar.present.shapes import Cell, Column, Table, numbers, texts
from tollbar.records import Outcome
from tollbar.results import Row
from tollbar.stats import Interval

MOST_LEFT_OUT = 12
# A password hash that means to use memory uses megabytes; a buffer or two is kilobytes whatever the choice.
MEMORY_MATTERS_BYTES = 1024**2


def full_table(study: StudyJudgement) -> Table:
    """Every planned cell in its place, with its failure where it has one."""
    family = study.about.family
    rows = study.rows
    names = [n for n in varying(rows) if n != "choice"]
    metric = cost_metric(study)
    cost, typical = by_row(study, metric), by_row(study, typical_metric(study))
    tolls = {t.row.key: t for t in study.tolls if t.metric == metric}
    others = beside(study)
    # Of a request the inverse is no news: how many a second there were stands beside it.
    speed = metric == "cpu"
    strengths = any(row.strength is not None for row in rows)
    columns = [
        Column("choice"),
        *(Column(words.column_title(family, n), n in words.LOADS) for n in names),
        *numbers(f"{cost_words(study).title}, undisturbed", "typical"),
        *(numbers("per second of CPU") if speed else ()),
        *numbers(f"against {cells.baseline_words(study)}", "typical ratio"),
        Column("verdict"),
        *numbers(*(_metric_title(study, *of) for of in others), "blocks"),
        Column("standing"),
        *(numbers("strength, bits") if strengths else ()),
    ]
    written = [
        [
            Cell(row.title),
            *(_coordinate(study, row, n) for n in names),
            _cost(row, cost.get(row.key)),
            _plain(typical.get(row.key)),
            *([_speed(row, cost.get(row.key))] if speed else []),
            *_judged(study, row, tolls.get(row.key)),
            *(_plain(found.get(row.key)) for found in others.values()),
            count_cell(cost[row.key].blocks if row.key in cost else 0),
            Cell(
                words.standing_words(row.standing),
                float(words.STANDINGS.index(row.standing)),
                standing=row.standing,
            ),
            *([_strength(row)] if strengths else []),
        ]
        for row in rows
    ]
    return Table(_caption(study), columns, written, sortable=True)


def beside(study: StudyJudgement) -> dict[tuple[str, str | None], dict[str, Measurement]]:
    """What was measured beside the cost, by (metric, component) and row, in the order of the table of metrics."""
    order = {name: number for number, name in enumerate(METRICS)}
    found: dict[tuple[str, str | None], dict[str, Measurement]] = {}
    for m in sorted(study.measurements, key=lambda m: order.get(m.metric, len(order))):
        # The parts of the cost have a chart and a table of their own.
        if m.metric != cost_metric(study) and not m.metric.endswith(TYPICAL):
            found.setdefault((m.metric, m.component), {})[m.row.key] = m
    return {of: rows for of, rows in found.items() if of[0] != "memory" or memory_matters(rows.values())}


def _metric_title(study: StudyJudgement, name: str, component: str | None) -> str:
    known = {**METRICS, **study.about.family.metrics}
    title = known[name].title if name in known else name.replace("-", " ")
    return title if component is None else f"{title}, {component}"


def memory_matters(memory: Iterable[Measurement]) -> bool:
    """Whether memory is part of the choice, and not just the runner's own buffers growing by some pages."""
    return any(m.value >= MEMORY_MATTERS_BYTES for m in memory)


def _caption(study: StudyJudgement) -> str:
    family, rows = study.about.family, study.rows
    first = rows[0].coordinates if rows else {}
    alike = [n for n in first if n not in varying(rows) and n != "choice"]
    said = [f"{words.column_title(family, n)} {_coordinate(study, rows[0], n).says}" for n in alike]
    sure = words.percent(study.confidence)
    text = f"Every cell of the study {study.about.name}, with its {sure} interval in brackets"
    found = dict.fromkeys(limit for m in study.measurements if (limit := m.limit))
    marks = ", ".join(f"{words.LIMIT_MARKS[limit]} {limit}" for limit in found)
    return "; ".join(filter(None, (text, f"all at {', '.join(said)}" if said else "", marks)))


def _coordinate(study: StudyJudgement, row: Row, name: str) -> Cell:
    value = row.shown.get(name)
    if value is None:
        return Cell("does not apply")
    if name in words.LOADS:
        return Cell(f"{value:,}", float(value))
    return Cell(
        words.value_words(study.about.family, name, value),
        None if isinstance(value, str) else float(value),
    )


def _cost(row: Row, cost: Measurement | None) -> Cell:
    """The undisturbed cost with its interval; or, in its place, what became of the cell."""
    if cost is None:
        return Cell("not measured" if row.outcome is Outcome.OK else str(row.outcome))
    return Cell(words.amount(cost.value, cost.unit), cost.value, words.ends(cost.low, cost.high, cost.unit))


def _speed(row: Row, cost: Measurement | None) -> Cell:
    if cost is None or cost.value <= 0:
        return Cell("–")
    speed, says = words.per_second(cost.value, row.coordinates)
    return Cell(says, speed)


def _judged(study: StudyJudgement, row: Row, toll: Toll | None) -> tuple[Cell, Cell, Cell]:
    """The undisturbed ratio, the typical one, and the verdict with what a reader should know of it."""
    if is_baseline(row) and row.outcome is Outcome.OK:
        return Cell("×\u00a01", 1.0), Cell("–"), Cell("baseline")
    if toll is None:
        return Cell("–"), Cell("–"), Cell("not compared", small=row.reason)
    missing = (row.reason or toll.reason or "no reason was recorded") if toll.ratio is None else None
    said = (missing, notes.as_disturbed(study, toll), notes.undecided(study, toll), notes.suffers(toll))
    mark = words.VERDICT_MARKS[toll.verdict]
    verdict = Cell(str(toll.verdict), mark=mark, small="; ".join(filter(None, said)) or None)
    return ratio_cell(toll.ratio), ratio_cell(toll.typical), verdict


def ratio_cell(ratio: Interval | None) -> Cell:
    """A ratio with its interval under it."""
    return Cell("–") if ratio is None else Cell(words.times(ratio.estimate), ratio.estimate, words.bracket(ratio))


def _plain(found: Measurement | None) -> Cell:
    return Cell("–") if found is None else Cell(words.measured(found), found.value)


def count_cell(number: int) -> Cell:
    return Cell(f"{number:,}", float(number))


def _strength(row: Row) -> Cell:
    return Cell("–") if row.strength is None or row.standing is Standing.NULL else count_cell(row.strength)


def left_out_table(study: StudyJudgement) -> Table:
    """The combinations that were not planned, by their reasons."""
    place = places(study)
    by_reason: dict[str, list[str]] = {}
    for coordinates, reason in study.study.left_out:
        by_reason.setdefault(reason, []).append(place(coordinates, coordinates))
    caption = f"{words.counted(len(study.study.left_out), 'combination')} left out of the study, and why"
    rows = [(Cell(_few(found)), Cell(reason)) for reason, found in by_reason.items()]
    return Table(caption, texts("left out", "because"), rows)


def _few(places: Sequence[str]) -> str:
    """The first of these, and how many more there are: a matrix leaves out a thousand for one reason."""
    more = len(places) - MOST_LEFT_OUT
    return "; ".join([*places[:MOST_LEFT_OUT], f"and {more:,} more"] if more > 1 else places)


def twins_table(study: StudyJudgement) -> Table:
    """What was measured beside itself: its twin's cost over its own."""
    names = ("choice", *(n for n in varying(study.rows) if n != "choice"))
    place = places(study)
    rows = [
        (
            Cell(place(row.coordinates, names)),
            Cell(words.times_exactly(ratio.estimate), ratio.estimate, words.bracket_exactly(ratio)),
            Cell(words.times_exactly(reach(ratio)), reach(ratio)) if ratio.is_bounded else Cell("–"),
            count_cell(ratio.n),
        )
        for row, ratio in study.twins
    ]
    columns = (Column("cell"), *numbers("measured again", "no verdict within", "blocks"))
    return Table(
        "Each baseline, and a cell of each other kind, measured twice, which should differ by nothing: the second over"
        " the first",
        columns,
        rows,
    )


def sources_table(study: StudyJudgement) -> Table:
    """Who says what the standing and the strength of each choice is."""
    rows = []
    for entry in _entries(study):
        bits = "–" if entry.strength is None else f"{entry.strength} bits"
        year = entry.year if isinstance(entry, Choice) else None
        by = "; ".join(_authority(a) for a in entry.authority)
        standing = entry.standing
        rows.append(
            (
                Cell(entry.title, small=f"{entry.spec}, {year}" if year else entry.spec),
                Cell("–") if standing is None else Cell(words.standing_words(standing), standing=standing),
                Cell(by or "–", small=entry.note),
                Cell(bits, None if entry.strength is None else float(entry.strength), entry.strength_from),
            )
        )
    columns = texts("choice", "standing", "who says so", "strength")
    return Table("Who says so: the source of every standing and strength", columns, rows)


def _entries(study: StudyJudgement) -> Iterable[Part]:
    """Each choice of the study, and each value of a setting that has a standing, a strength or a source of its own."""
    family = study.about.family
    # A choice with parameters has a standing, and a source of it, for those of each row.
    found: dict[tuple[bool, str, str], Part] = {}
    for row in study.rows:
        for entry in family.parts_of(row.coordinates) if row.choice in family.choices else ():
            if isinstance(entry, Choice) or entry.authority or entry.strength is not None:
                found.setdefault((not isinstance(entry, Choice), entry.title, str(entry.standing)), entry)
    # All choices first, then what they are combined with.
    return [found[key] for key in sorted(found, key=lambda key: key[0])]


def _authority(authority: Authority) -> str:
    unread = "" if authority.checked else "; clause not re-read"
    seen = authority.seen.isoformat()
    return f"{authority.by}, {authority.where}: “{authority.says}” (seen {seen}{unread})"
