"""A study's tables as a terminal has room for them: coordinates as studies write them, one line for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tollbar.families import Value
from tollbar.judge import Contrast, CrossCell, CrossTableResult, StudyJudgement
from tollbar.present import crosstables, notes, words
from tollbar.present.cells import varying
from tollbar.present.costs import cost_words
from tollbar.present.shapes import Cell, Table, numbers, row_names, texts
from tollbar.present.toll_tables import BAR, INTERVAL, good_news, interval_title, plain, said
from tollbar.records import Outcome
from tollbar.results import Row
from tollbar.stats import Interval

# Of one thing that was not measured: enough to see what they are.
MOST_VALUES = 4
CONTRASTS = "Effect of each setting, all else alike"


def how(study: StudyJudgement) -> str:
    """What the ratios are of, against what, and how sure they are."""
    about = study.about
    baseline = ", ".join(words.coordinate(about.family, n, study.study.named(n, v)) for n, v in about.baseline.items())
    blocks = max((toll.ratio.n for toll in study.tolls if toll.ratio), default=0)
    # Without twins nothing is known of the noise: a warning says so.
    twins = [] if study.noise is None else [f"what was measured twice differed by {words.twins_words(study.noise)}"]
    said = (
        f"{cost_words(study).title}, {notes.moments(study)}, against {baseline}, all else alike",
        words.counted(blocks, "block"),
        *twins,
        f"differences under {words.percent(about.worth)} are ignored",
        notes.left_alone(study),
    )
    return " · ".join(said)


def contrast_tables(study: StudyJudgement, most: int | None = None) -> list[Table]:
    """What each value of a setting costs for another, all else equal: a table for each setting."""
    columns = (
        *row_names("from → to", "where"),
        *numbers("ratio"),
        *texts(interval_title(study), leaves=INTERVAL),
        *texts("verdict"),
        *numbers("pairs", leaves=BAR),
    )
    by_setting: dict[str, list[Contrast]] = {}
    for contrast in study.contrasts[:most]:
        by_setting.setdefault(contrast.setting, []).append(contrast)
    return [
        Table("server" if setting == "bed" else setting, columns, [_contrast(study, contrast) for contrast in found])
        for setting, found in by_setting.items()
    ]


def _contrast(study: StudyJudgement, contrast: Contrast) -> tuple[Cell, ...]:
    def named(name: str, value: Value) -> str:
        return plain(study.about.family, name, study.study.named(name, value))

    value, for_value = (named(contrast.setting, v) for v in (contrast.value, contrast.for_value))
    where = {name: [said(study, name, study.study.named(name, v)) for v in of] for name, of in contrast.where.items()}
    least, most = words.ratio_words(contrast.least), words.ratio_words(contrast.most)
    return (
        Cell(f"{for_value} → {value}"),
        Cell("; ".join(", ".join(values) for values in where.values())),
        Cell(least if least == most else f"{least} to {most}"),
        Cell(words.ends(contrast.low, contrast.high)),
        Cell(str(contrast.verdict), verdict=contrast.verdict, small=notes.undecided(study, contrast)),
        Cell(str(contrast.pairs)),
    )


def _named(study: StudyJudgement, name: str, value: Value) -> Value:
    return study.study.named(name, value)


def in_one_line(table: Table) -> Table:
    """A table of the page without its caption and the intervals under its numbers, for which there is no room."""
    return Table("", table.columns, [[replace(cell, small=None) for cell in row] for row in table.rows])


def crosstable(study: StudyJudgement, result: CrossTableResult, *, intervals: bool = True) -> Table:
    """A table that the study asks for, each cell in one line: with its interval, if there is room for that."""
    name = _name_of(study)
    over, where = (
        ", ".join(said(study, at, _named(study, at, value)) for at, value in of.items())
        for of in (result.table.over, crosstables.where(study, result))
    )
    times = f", as a multiple of {over}, all else alike" if over else ""
    about = (
        f"{crosstables.shown(study, result)}{times}",
        where,
        f"{interval_title(study)}s" if intervals else "",
    )

    def written(cell: CrossCell) -> Cell:
        return _cross_cell(cell, intervals)

    return crosstables.laid_out(study, result, name, written, " · ".join(filter(None, about)))


def gaps(study: StudyJudgement, result: CrossTableResult) -> list[str]:
    """For each of its rows and columns without a number, why, in short."""
    return crosstables.gaps(study, result, _name_of(study))


def _name_of(study: StudyJudgement) -> crosstables.NameOf:
    return lambda name, value: plain(study.about.family, name, study.study.named(name, value))


def _cross_cell(cell: CrossCell, intervals: bool) -> Cell:
    if cell.cost is None:
        return Cell("not measured" if cell.row.outcome is Outcome.OK else str(cell.row.outcome))
    if cell.ratio is None:
        return Cell(words.amount(cell.cost.estimate, cell.unit))
    ratio, ends = (part.says for part in _interval(cell.ratio))
    says = f"{ratio} {ends} {cell.verdict}" if intervals and cell.ratio.is_bounded else f"{ratio} {cell.verdict}"
    return Cell(says, verdict=cell.verdict, good=good_news(cell.verdict, cell.row) if cell.verdict else None)


def missing(study: StudyJudgement) -> list[str]:
    """What was not measured, and what is compared with nothing: a line for each outcome and reason."""
    failed = [(str(row.outcome), row, row.reason) for row in study.rows if row.outcome is not Outcome.OK]
    alone = [
        ("not compared", toll.row, toll.reason)
        for toll in study.tolls
        if toll.ratio is None and toll.row.outcome is Outcome.OK and toll.row.against != toll.row.key
    ]
    facts: dict[tuple[str, str], list[Row]] = {}
    for outcome, row, reason in (*failed, *alone):
        facts.setdefault((outcome, " ".join((reason or "no reason was recorded").split())), []).append(row)
    return [f"{outcome}: {_together(study, rows)}: {reason}" for (outcome, reason), rows in facts.items()]


def _together(study: StudyJudgement, rows: Sequence[Row]) -> str:
    """What these rows are: `blake3 · openssl 3.0.19 · 4 KiB, 1 MiB (4 cells)`, without what all of a study are."""
    vary = varying(study.rows, always=("choice",))
    parts = []
    for name in vary:
        values = list(dict.fromkeys(row.shown[name] for row in rows if name in row.shown))
        others = {row.shown[name] for row in study.rows if name in row.shown}
        if not values or (name != "choice" and len(values) == len(others) > 1):
            continue
        more = [f"{len(values) - MOST_VALUES} more"] if len(values) > MOST_VALUES else []
        first, *rest = values[:MOST_VALUES]
        parts.append(
            ", ".join([said(study, name, first), *(plain(study.about.family, name, value) for value in rest), *more])
        )
    return " · ".join(parts) + (f" ({len(rows):,} cells)" if len(rows) > 1 else "")


def _interval(ratio: Interval | None) -> tuple[Cell, Cell]:
    return (Cell(words.ratio_words(ratio.estimate)), Cell(words.bracket(ratio))) if ratio else (Cell(""), Cell(""))
