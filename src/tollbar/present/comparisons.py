"""What is compared beside the tolls: the effect of each setting, all else alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tollbar.families import Value
from tollbar.judge import Contrast, StudyJudgement, Verdict
from tollbar.present import notes, words
from tollbar.present.cells import MOST_ROWS, where_words
from tollbar.present.charts import SECOND_LINE, Dot, Dots, scale_over, spoken
from tollbar.present.costs import cost_words
from tollbar.present.shapes import Cell, Chart, Column, Table, texts
from tollbar.present.tables import count_cell


def contrast_table(study: StudyJudgement) -> Table:
    """What one value of a setting costs in place of another, all else alike."""
    family = study.about.family
    rows = [
        (
            Cell(words.column_title(family, c.setting)),
            Cell(pair_words(study, c)),
            Cell(contrast_where(study, c, most=12) or "everywhere"),
            Cell(words.times_range(c.least, c.most), c.least, words.ends(c.low, c.high)),
            Cell(str(c.verdict), mark=words.VERDICT_MARKS[c.verdict], small=notes.undecided(study, c)),
            count_cell(c.pairs),
        )
        for c in study.contrasts
    ]
    columns = (
        *texts("setting", "from → to", "where"),
        Column(f"times the {cost_words(study).short}", True),
        Column("verdict"),
        Column("pairs of cells", True),
    )
    return Table("Effect of each setting, all else alike", columns, rows, sortable=True)


def pair_words(study: StudyJudgement, contrast: Contrast) -> str:
    """`native → no-aes`."""
    both = (study.study.named(contrast.setting, value) for value in (contrast.for_value, contrast.value))
    return " → ".join(words.value_words(study.about.family, contrast.setting, value) for value in both)


def contrast_where(study: StudyJudgement, contrast: Contrast, most: int) -> str:
    """What a contrast's pairs have in common; nothing where it holds all pairs of these two values."""
    alike = [c for c in study.contrasts if _compared(c) == _compared(contrast)]
    # Pairs that share a verdict but no coordinate stand wherever the other lines do not.
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
        if contrast.setting not in words.LOADS:
            by_setting.setdefault(contrast.setting, []).append(contrast)
    charts = []
    for setting, found in by_setting.items():
        dots = [
            Dot(
                label=_contrast_label(study, c),
                note=f"{words.times_range(c.least, c.most)} {c.verdict}",
                value=c.least,
                low=c.low,
                high=c.high,
                decided=c.verdict is not Verdict.UNCLEAR,
                to=c.most,
            )
            # The table below the chart has them all.
            for c in found[:MOST_ROWS]
        ]
        axis = f"{words.opened(cost_words(study).short)}, as a multiple"
        scale = scale_over(axis, dots, worth=study.about.worth)
        title = f"By {words.column_title(family, setting)}"
        charts.append(Chart(title, f"{title}, all else alike. {spoken(dots)}.", Dots(_distinct(dots), scale)))
    return charts


def _contrast_label(study: StudyJudgement, contrast: Contrast) -> str:
    """`native → no-aes`, and on a second line where."""
    where = contrast_where(study, contrast, most=3)
    pair = pair_words(study, contrast)
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
