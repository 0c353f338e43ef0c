"""Effect of each setting, all else equal: a table, its charts, and the places where each holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tollbar.analysis import Contrast, StudyJudgement, Verdict
from tollbar.catalog.families import LOADS, Value
from tollbar.core.words import capitalised, counted
from tollbar.report.blocks import Chart, Column, Paragraph, Pick, Section, Table, TableCell, count_cell, figures, folds
from tollbar.report.chart import SECOND_LINE, Dot, Dots, scale_over, spoken
from tollbar.report.coordinates import Form, column_title, named_value, value_words
from tollbar.report.costs import cost_words
from tollbar.report.groups import MOST_ROWS
from tollbar.report.names import where_words
from tollbar.report.numbers import VERDICT_MARKS, ends_words, interval_title, ratio_words, times_range, undecided
from tollbar.report.standings import CALLED_OUT, standing_words, worst
from tollbar.report.table_cells import BAR, INTERVAL, STANDING
from tollbar.report.view import once

EFFECTS = "Effect of each setting, everything else equal"
_ALIKE = "ratios equal within noise"


@dataclass(frozen=True, slots=True)
class Effects:
    """Costs of one value of a setting in place of another, all else equal."""

    table: Table
    brief: tuple[Table, ...]
    """Table for each setting."""
    hidden: int
    """Number of lines left out of `brief` for lack of room."""


@once
def effects_table(study: StudyJudgement) -> Table:
    """Return a table with a line for each contrast."""
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
    return Table(EFFECTS, columns, rows, sortable=True)


def effects(study: StudyJudgement, most: int | None = None) -> Effects:
    """Return the table; its brief form has at most `most` lines."""
    table = effects_table(study)
    # The hull of several pairs' intervals is not an interval of that confidence.
    of_several = any(contrast.pairs > 1 for contrast in study.contrasts)
    picks = [
        Pick("pair", "from → to"),
        Pick("where", "where"),
        Pick("ratio", "ratio"),
        Pick("ratio", "all intervals" if of_several else interval_title(study), INTERVAL, "interval"),
        Pick("verdict", "verdict"),
        Pick("pairs", "pairs", BAR),
        *([Pick("standing", "standing", STANDING)] if any(map(_standings, study.contrasts)) else []),
    ]
    by_setting: dict[str, list[int]] = {}
    for number, contrast in enumerate(study.contrasts[:most]):
        by_setting.setdefault(contrast.setting, []).append(number)
    shown = sum(map(len, by_setting.values()))
    return Effects(table, table.picked(picks, by_setting.items()), len(table.rows) - shown)


def _effect(study: StudyJudgement, contrast: Contrast) -> list[TableCell]:
    family = study.about.family
    both = [study.study.named(contrast.setting, value) for value in (contrast.for_value, contrast.value)]
    titles, plains = (
        [value_words(family, contrast.setting, value, form) for value in both] for form in (Form.SENTENCE, Form.TABLE)
    )
    where = {
        name: [named_value(study.about.family, name, study.study.named(name, v), Form.TABLE) for v in of]
        for name, of in contrast.where.items()
    }
    least, most = ratio_words(contrast.least), ratio_words(contrast.most)
    undecided_ = undecided(study, contrast)
    return [
        TableCell(column_title(family, contrast.setting)),
        TableCell(" → ".join(titles), brief=TableCell(" → ".join(plains))),
        TableCell(
            contrast_where(study, contrast, most=12) or "everywhere",
            brief=TableCell("; ".join(", ".join(values) for values in where.values()) or _ALIKE * contrast.are_alike),
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
    """Return the worst standing on either side, if one must be called out: `deprecated → recommended`."""
    sides = [worst(member.against for member in contrast.members), worst(member.row for member in contrast.members)]
    if not any(standing in CALLED_OUT for standing in sides):
        return ""
    return " → ".join(dict.fromkeys(standing_words(standing) for standing in sides if standing is not None))


def contrast_where(study: StudyJudgement, contrast: Contrast, most: int) -> str:
    """Return the coordinates that a contrast's pairs share; empty if it contains all pairs of these two values."""
    if contrast.are_alike:
        return _ALIKE
    alike = [c for c in study.contrasts if _compared(c) == _compared(contrast)]
    # Pairs that share a verdict but no coordinate are everywhere that the other lines are not.
    return where_words(study, contrast.where, most) or ("elsewhere" if len(alike) > 1 else "")


def has_long_places(study: StudyJudgement) -> bool:
    """Return whether pairs are split by several coordinates, whose names are too long for half a page."""
    return any(len(c.where) > 1 or any(len(values) > 1 for values in c.where.values()) for c in study.contrasts)


def _compared(contrast: Contrast) -> tuple[str, Value, Value]:
    return contrast.setting, contrast.value, contrast.for_value


def contrast_charts(study: StudyJudgement) -> list[Chart]:
    """Return a panel for each varied setting: the effect of one value in place of another, all else equal."""
    family = study.about.family
    by_setting: dict[str, list[Contrast]] = {}
    for contrast in study.contrasts:
        # Effects of more users are drawn against the users; here the table has them.
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
        scale = scale_over(axis, dots, threshold=study.about.threshold)
        title = f"By {column_title(family, setting)}"
        charts.append(Chart(title, f"{title}, everything else equal. {spoken(dots)}.", Dots(_distinct(dots), scale)))
    return charts


def _contrast_label(study: StudyJudgement, contrast: Contrast) -> str:
    """Return `native → no-aes`, with the place on a second line."""
    both = [study.study.named(contrast.setting, value) for value in (contrast.for_value, contrast.value)]
    pair = " → ".join(value_words(study.about.family, contrast.setting, one) for one in both)
    where = contrast_where(study, contrast, most=3)
    return f"{pair}{SECOND_LINE}{where}" if where else pair


def _distinct(dots: Sequence[Dot]) -> list[Dot]:
    """Return the dots with distinct labels: two rows of one name would be drawn as one."""
    seen: dict[str, int] = {}
    distinct = []
    for dot in dots:
        seen[dot.label] = seen.get(dot.label, 0) + 1
        label = dot.label if seen[dot.label] == 1 else f"{dot.label} ({seen[dot.label]})"
        distinct.append(replace(dot, label=label))
    return distinct


def effects_section(study: StudyJudgement) -> Section | None:
    if not study.contrasts:
        return None
    table = effects_table(study)
    note = (
        "Each line has pairs of cells that differ in one setting only and have the same verdict: the lowest and the"
        " highest ratio, and in brackets the range of all their intervals. Nothing is averaged."
    )
    charts = figures(contrast_charts(study), "panels wide" if has_long_places(study) else "panels")
    title = f"The {counted(len(table.rows), 'comparison')} as a table"
    return Section(
        "Effect of each setting", (Paragraph(note, "note"), *charts, *folds(title, table, len(table.rows) > 1))
    )
