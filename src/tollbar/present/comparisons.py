"""What is compared beside the tolls: effects of settings, the tables that a study asks for, what callers wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from tollbar.families import LOADS, Value
from tollbar.judge import Contrast, CrossCell, CrossTableResult, Measurement, StudyJudgement, Verdict
from tollbar.present.blocks import (
    DASH,
    Chart,
    Column,
    Paragraph,
    Pick,
    Section,
    Table,
    TableCell,
    count_cell,
    figures,
    folds,
    numbers,
    row_names,
)
from tollbar.present.chart import SECOND_LINE, Dot, Dots, scale_over, spoken
from tollbar.present.groups import MOST_ROWS, by_row, is_baseline
from tollbar.present.names import (
    CALLED_OUT,
    VERDICT_MARKS,
    capitalised,
    column_title,
    cost_words,
    counted,
    interval_title,
    labels,
    place_words,
    plain,
    said_plain,
    standing_words,
    value_words,
    varying,
    where_words,
    worst,
)
from tollbar.present.numbers import (
    amount,
    bracket,
    ends_words,
    measured_words,
    percent,
    ratio_words,
    times,
    times_range,
    undecided,
)
from tollbar.present.table_cells import BAR, INTERVAL, STANDING, good_news
from tollbar.records import Outcome

EFFECTS = "Effect of each setting, all else alike"
# A reason is told in whole where every result is.
REASON_LETTERS = 160
NameOf = Callable[[str, Value], str]
"""Writes a coordinate's value."""


@dataclass(frozen=True, slots=True)
class Effects:
    """What one value of a setting costs in place of another, all else alike."""

    table: Table
    brief: tuple[Table, ...]
    """A table for each setting."""
    hidden: int
    """How many lines were left out of those for want of room."""


def effects(study: StudyJudgement, most: int | None = None) -> Effects:
    """A line for each contrast; of the brief form no more than `most`, if that is said."""
    standings = [_standings(contrast) for contrast in study.contrasts]
    columns = (
        Column("setting", key="setting"),
        Column("from → to", names=True, key="pair"),
        Column("where", names=True, key="where"),
        Column(f"times the {cost_words(study).short}", True, key="ratio"),
        Column("verdict", key="verdict"),
        Column("pairs of cells", True, key="pairs"),
        *([Column("standing", key="standing")] if any(standings) else []),
    )
    rows = [
        [*_effect(study, contrast), *([TableCell(standing)] if any(standings) else [])]
        for contrast, standing in zip(study.contrasts, standings, strict=True)
    ]
    table = Table(EFFECTS, columns, rows, sortable=True)
    # What all intervals of several pairs cover is no interval of that confidence.
    of_several = any(contrast.pairs > 1 for contrast in study.contrasts)
    picks = [
        Pick("pair", "from → to"),
        Pick("where", "where"),
        Pick("ratio", "ratio"),
        Pick("ratio", "all intervals" if of_several else interval_title(study), INTERVAL, "interval"),
        Pick("verdict", "verdict"),
        Pick("pairs", "pairs", BAR),
        *([Pick("standing", "standing", STANDING)] if any(standings) else []),
    ]
    by_setting: dict[str, list[int]] = {}
    for number, contrast in enumerate(study.contrasts[:most]):
        by_setting.setdefault("server" if contrast.setting == "bed" else contrast.setting, []).append(number)
    shown = sum(map(len, by_setting.values()))
    return Effects(table, table.picked(picks, by_setting.items()), len(rows) - shown)


def _effect(study: StudyJudgement, contrast: Contrast) -> list[TableCell]:
    family = study.about.family
    titles, plains = (
        [name(contrast.setting, value) for value in (contrast.for_value, contrast.value)]
        for name in (_title_of(study), _plain_of(study))
    )
    where = {
        name: [said_plain(study, name, study.study.named(name, v)) for v in of] for name, of in contrast.where.items()
    }
    least, most = ratio_words(contrast.least), ratio_words(contrast.most)
    undecided_ = undecided(study, contrast)
    return [
        TableCell(column_title(family, contrast.setting)),
        TableCell(" → ".join(titles), brief=TableCell(" → ".join(plains))),
        TableCell(
            contrast_where(study, contrast, most=12) or "everywhere",
            brief=TableCell("; ".join(", ".join(values) for values in where.values())),
        ),
        TableCell(
            times_range(contrast.least, contrast.most),
            contrast.least,
            interval=ends_words(contrast.low, contrast.high),
            brief=TableCell(least if least == most else f"{least} to {most}"),
        ),
        TableCell(
            str(contrast.verdict),
            mark=VERDICT_MARKS[contrast.verdict],
            small=undecided_,
            brief=TableCell(str(contrast.verdict), verdict=contrast.verdict, small=undecided_),
        ),
        count_cell(contrast.pairs),
    ]


def _standings(contrast: Contrast) -> str:
    """The worst standing of the cells of either side, where one has to be met: `deprecated → recommended`."""
    sides = [worst(member.against for member in contrast.members), worst(member.row for member in contrast.members)]
    if not any(standing in CALLED_OUT for standing in sides):
        return ""
    return " → ".join(dict.fromkeys(standing_words(standing) for standing in sides if standing is not None))


def contrast_where(study: StudyJudgement, contrast: Contrast, most: int) -> str:
    """What a contrast's pairs have in common; nothing where it holds all pairs of these two values."""
    alike = [c for c in study.contrasts if _compared(c) == _compared(contrast)]
    # Compared that share a verdict but no coordinate stand wherever the other lines do not.
    return where_words(study, contrast.where, most) or ("elsewhere" if len(alike) > 1 else "")


def has_long_places(study: StudyJudgement) -> bool:
    """Whether pairs are split by several things, whose names are too long for half a page."""
    return any(len(c.where) > 1 or any(len(values) > 1 for values in c.where.values()) for c in study.contrasts)


def _compared(contrast: Contrast) -> tuple[str, Value, Value]:
    return contrast.setting, contrast.value, contrast.for_value


def contrast_charts(study: StudyJudgement) -> list[Chart]:
    """A panel for each varied setting: the effect of one value in place of another, all else alike."""
    family = study.about.family
    by_setting: dict[str, list[Contrast]] = {}
    for contrast in study.contrasts:
        # What more users change is drawn against the users; here the table has it.
        if contrast.setting not in LOADS:
            by_setting.setdefault(contrast.setting, []).append(contrast)
    charts = []
    for setting, found in by_setting.items():
        dots = [
            Dot(
                label=_contrast_label(study, c),
                note=f"{times_range(c.least, c.most)} {c.verdict}",
                value=c.least,
                low=c.low,
                high=c.high,
                decided=c.verdict is not Verdict.UNCLEAR,
                to=c.most,
            )
            # The table below the chart has them all.
            for c in found[:MOST_ROWS]
        ]
        axis = f"{capitalised(cost_words(study).short)}, as a multiple"
        scale = scale_over(axis, dots, worth=study.about.worth)
        title = f"By {column_title(family, setting)}"
        charts.append(Chart(title, f"{title}, all else alike. {spoken(dots)}.", Dots(_distinct(dots), scale)))
    return charts


def _contrast_label(study: StudyJudgement, contrast: Contrast) -> str:
    """`native → no-aes`, and on a second line where."""
    name = _title_of(study)
    pair = " → ".join(name(contrast.setting, value) for value in (contrast.for_value, contrast.value))
    where = contrast_where(study, contrast, most=3)
    return f"{pair}{SECOND_LINE}{where}" if where else pair


def _distinct(dots: Sequence[Dot]) -> list[Dot]:
    """The same dots with every label different: two rows of one name would be drawn as one."""
    seen: dict[str, int] = {}
    distinct = []
    for dot in dots:
        seen[dot.label] = seen.get(dot.label, 0) + 1
        label = dot.label if seen[dot.label] == 1 else f"{dot.label} ({seen[dot.label]})"
        distinct.append(replace(dot, label=label))
    return distinct


@dataclass(frozen=True, slots=True)
class StudyTable:
    """A table that a study asks for: a row for each value of one coordinate, a column for each of another."""

    title: str
    table: Table
    gaps: tuple[str, ...]
    """For each row and each column without a number, why, in short."""
    brief: Table
    """As a terminal has it, each cell in one line."""
    short_caption: str
    """Of that, where there is no room for intervals."""
    brief_gaps: tuple[str, ...]


def study_tables(study: StudyJudgement) -> tuple[StudyTable, ...]:
    """All of them, in the study's order."""
    return tuple(study_table(study, result) for result in study.tables)


def study_table(study: StudyJudgement, result: CrossTableResult) -> StudyTable:
    """Every place of the table; a dash where no cell was planned, and in rows and columns that have no number."""
    about, title, plain_name = result.table, _title_of(study), _plain_of(study)
    gone = _gone(result)
    without = {cell.row.key for _, _, cells in gone for cell in cells}

    def cell(row: Value, column: Value) -> TableCell:
        found = result.at(row, column)
        return DASH if found is None or found.row.key in without else _cross_cell(found)

    head = column_title(study.about.family, about.rows)
    table = Table(
        _table_caption(study, result),
        (
            Column(head, names=True, key="row"),
            *(Column(title(about.columns, column), True, key=str(column)) for column in result.columns),
        ),
        [
            (
                TableCell(title(about.rows, row), brief=TableCell(plain_name(about.rows, row))),
                *(cell(row, column) for column in result.columns),
            )
            for row in result.rows
        ],
    )
    picks = [Pick("row", head), *(Pick(str(value), plain_name(about.columns, value)) for value in result.columns)]
    short = " · ".join(_brief_caption(study, result))
    (brief,) = table.picked(picks, [(f"{short} · {interval_title(study)}s", range(len(table.rows)))])
    return StudyTable(about.title, table, _gaps(gone, title), brief, short, _gaps(gone, plain_name))


def _shows(study: StudyJudgement, result: CrossTableResult) -> str:
    """What its numbers are."""
    metric = study.about.family.metrics.get(result.table.metric or "")
    return metric.title if metric else f"{cost_words(study).title}, undisturbed"


def _stands(study: StudyJudgement, result: CrossTableResult) -> dict[str, Value]:
    """Where its cells stand, as far as not all cells of the study stand there."""
    vary = varying(study.rows)
    return {name: value for name, value in result.table.where.items() if name in vary}


def _table_caption(study: StudyJudgement, result: CrossTableResult) -> str:
    over, at = (
        where_words(study, {name: (value,) for name, value in of.items()})
        for of in (result.table.over, _stands(study, result))
    )
    multiple = f", as a multiple of that {over}, all else alike" if over else ""
    sure = f"with {percent(study.confidence)} intervals"
    return "; ".join(filter(None, (f"{_shows(study, result)}{multiple}", at, sure)))


def _brief_caption(study: StudyJudgement, result: CrossTableResult) -> list[str]:
    over, at = (
        ", ".join(said_plain(study, name, study.study.named(name, value)) for name, value in of.items())
        for of in (result.table.over, _stands(study, result))
    )
    multiple = f", as a multiple of {over}, all else alike" if over else ""
    return [f"{_shows(study, result)}{multiple}", *([at] if at else [])]


def _gaps(gone: Sequence[tuple[str, Value, list[CrossCell]]], name: NameOf) -> tuple[str, ...]:
    return tuple(f"{name(side, value)}: {_reason_of(cells)}" for side, value, cells in gone)


def _reason_of(group: Sequence[CrossCell]) -> str:
    """What became of the first of these, in short; that there are other reasons is said."""
    outcome = group[0].row.outcome
    reasons = list(dict.fromkeys(cell.reason or "no reason was recorded" for cell in group))
    short = " ".join(reasons[0].split())
    if len(short) > REASON_LETTERS:
        short = f"{short[: REASON_LETTERS - 1].rstrip()}…"
    more = f" (and {counted(len(reasons) - 1, 'other reason')})" if len(reasons) > 1 else ""
    return f"{'not measured' if outcome is Outcome.OK else outcome}: {short}{more}"


def _gone(result: CrossTableResult) -> list[tuple[str, Value, list[CrossCell]]]:
    """The rows, then the columns, none of whose cells was measured: coordinate, value and cells."""
    about = result.table
    lines = [
        (side, value, [cell for cell in result.cells if cell.row.coordinates[side] == value])
        for side, values in ((about.rows, result.rows), (about.columns, result.columns))
        for value in values
    ]
    return [line for line in lines if all(cell.cost is None for cell in line[2])]


def _title_of(study: StudyJudgement) -> NameOf:
    def title(name: str, value: Value) -> str:
        return value_words(study.about.family, name, study.study.named(name, value))

    return title


def _plain_of(study: StudyJudgement) -> NameOf:
    return lambda name, value: plain(study.about.family, name, study.study.named(name, value))


def _cross_cell(cell: CrossCell) -> TableCell:
    if cell.cost is None:
        return TableCell("not measured" if cell.row.outcome is Outcome.OK else str(cell.row.outcome))
    if cell.ratio is None or cell.verdict is None:
        cost = amount(cell.cost.estimate, cell.unit)
        # In place of the interval, why there is no ratio.
        small = cell.reason or ends_words(cell.cost.low, cell.cost.high, cell.unit)
        return TableCell(cost, small=small, brief=TableCell(cost))
    ratio, interval = ratio_words(cell.ratio.estimate), bracket(cell.ratio)
    return TableCell(
        times(cell.ratio.estimate),
        interval=interval,
        small=str(cell.verdict),
        mark=VERDICT_MARKS[cell.verdict],
        brief=TableCell(
            f"{ratio} {interval} {cell.verdict}" if cell.ratio.is_bounded else f"{ratio} {cell.verdict}",
            short=f"{ratio} {cell.verdict}",
            verdict=cell.verdict,
            good=good_news(cell.verdict, cell.row),
        ),
    )


WAITS = "What a caller waits"
# The source inserted so many rows: what a wait adds to one of them is too little to picture.
OPERATIONS = 10_000


def waits_table(study: StudyJudgement) -> Table:
    """A row for each cell that waited: elapsed time, how much of it the baseline has not, and what was waited for.

    Without rows where nothing of the kind was timed. No verdict: disks differ from minute to minute, and the added
    time has both sides' intervals in it.
    """
    timed = {
        m.name: found for m in study.about.family.metrics.values() if m.unit == "us" if (found := by_row(study, m.name))
    }
    wall = by_row(study, "wall")
    waited = [
        row for row in study.rows if row.key in wall and timed and all(row.key in seen for seen in timed.values())
    ]
    # What all of them have alike stands in the caption, and not in every name.
    label = labels(study, varying(waited) or ("choice",), whole=True)
    rows = [
        (
            TableCell(label(row)),
            TableCell(amount(wall[row.key].value, "ns"), wall[row.key].value, interval=_wait_ends(wall[row.key])),
            _added(wall[row.key], None if is_baseline(row) else wall.get(row.against or "")),
            *(
                TableCell(measured_words(found[row.key]), found[row.key].value, interval=_wait_ends(found[row.key]))
                for found in timed.values()
            ),
        )
        for row in waited
    ]
    titles = (study.about.family.metrics[name].title for name in timed)
    columns = (*row_names("cell"), *numbers("elapsed per operation", f"added per {OPERATIONS:,} operations", *titles))
    sure = percent(study.confidence)
    alike = {*varying(study.rows), "op"} - {*varying(waited), "choice"}
    at = waited[0].coordinates if waited else {}
    where = place_words(study)(at, [name for name in at if name in alike])
    what = f"elapsed time as disturbed, with its {sure} interval, and what it has beyond the baseline's"
    caption = f"{where}: {what}" if where else what
    return Table(capitalised(caption), columns, rows)


def _added(wall: Measurement, base: Measurement | None) -> TableCell:
    """Milliseconds more than the baseline takes for so many; from the least to the most that both intervals allow."""
    if base is None:
        return DASH
    more, least, most = (
        ns * OPERATIONS / 1e6 for ns in (wall.value - base.value, wall.low - base.high, wall.high - base.low)
    )
    known = isfinite(least) and isfinite(most)
    interval = f"[{_signed(least)}, {_signed(most)}]" if known else None
    return TableCell(f"{_signed(more)} ms", more, interval=interval)


def _signed(ms: float) -> str:
    return f"{ms:+,.0f}".replace("-", "−") if abs(ms) >= 100 else f"{ms:+.3g}".replace("-", "−")


def _wait_ends(found: Measurement) -> str | None:
    """Its interval; where blocks are too few for one, the warnings say so once."""
    return ends_words(found.low, found.high, found.unit) if isfinite(found.high) else None


def effects_section(study: StudyJudgement) -> Section | None:
    if not study.contrasts:
        return None
    table = effects(study).table
    note = (
        "All else is alike: each line gathers pairs of cells that differ in one thing only and have the same verdict:"
        " from the least ratio to the most, with what all their intervals cover in brackets. Nothing is averaged."
    )
    charts = figures(contrast_charts(study), "panels wide" if has_long_places(study) else "panels")
    title = f"The {counted(len(table.rows), 'comparison')} as a table"
    return Section(
        "Effect of each setting", (Paragraph(note, "note"), *charts, *folds(title, table, len(table.rows) > 1))
    )


def waits_section(study: StudyJudgement) -> Section | None:
    table = waits_table(study)
    return Section(WAITS, (table,)) if table.rows else None
