"""A study's tables as a terminal has room for them: coordinates as studies write them, one line for each row."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tollbar import units
from tollbar.families import Value
from tollbar.judge import (
    ClaimResult,
    Comparison,
    Contrast,
    CrossCell,
    CrossTableResult,
    Measurement,
    StudyJudgement,
    Toll,
    Verdict,
)
from tollbar.measure import Outcome
from tollbar.present import crosstables, words
from tollbar.present.cells import by_row, cost_metric, varying
from tollbar.present.comparisons import by_source, by_source_columns
from tollbar.present.costs import cost_words
from tollbar.present.shapes import Cell, Table, numbers, texts
from tollbar.present.tables import beside
from tollbar.results import Row
from tollbar.stats import Interval

# A screenful: more are in the report, or behind `tollbar judge RUN --all`.
ROWS_SHOWN = 24
# Behind the verdict, where the typical ratio is apart from the undisturbed one.
SUFFERS = {"more": "↑", "less": "↓"}
# What stands beside the cost, where it was measured; the report has the rest.
BESIDE = {"throughput": "requests / s", "memory": "memory"}


def how(study: StudyJudgement) -> str:
    """What the ratios are of, against what, and how sure they are."""
    about = study.about
    baseline = ", ".join(str(study.study.named(name, value)) for name, value in about.baseline.items())
    blocks = max((toll.ratio.n for toll in study.tolls if toll.ratio), default=0)
    floor = "unknown" if study.noise_floor is None else f"×{study.noise_floor:.3f}"
    twins = "" if study.noise is None else f", twins {words.bracket_exactly(study.noise)}"
    return (
        f"{cost_words(study).title}, undisturbed, against {baseline}, all else alike · {blocks} blocks · "
        f"noise floor {floor}{twins} · worth {about.worth:.0%}"
    )


def compared(study: StudyJudgement) -> list[Toll]:
    """The tolls that have a ratio, the least first."""
    found = [(t.ratio.estimate, t) for t in study.tolls if t.ratio and t.row.key != t.against.key]
    return [toll for _, toll in sorted(found, key=lambda pair: pair[0])]


def toll_table(study: StudyJudgement, tolls: Sequence[Toll]) -> Table:
    """A row for each toll: its coordinates, its cost, its ratio and its verdict."""
    # Which server it was, with its version, is worth a column wherever there was one.
    names = varying((toll.row for toll in study.tolls), always=("choice", "bed"))
    cost = by_row(study, cost_metric(study))
    others = {title: found for name, title in BESIDE.items() if (found := beside(study).get((name, None)))}
    widest = max((abs(math.log(t.ratio.estimate)) for t in tolls if t.ratio), default=0.0) or 1.0
    columns = (
        *texts(*("server" if name == "bed" else name for name in names)),
        *numbers(cost_words(study).column, *others, "× baseline"),
        *texts(_interval_title(study), ""),
        *numbers("typical"),
        *texts("verdict", "standing"),
    )
    rows = [
        (
            *(Cell(_coordinate(toll.row, name)) for name in names),
            Cell(units.show_nanoseconds(cost[toll.row.key].value)),
            *(Cell(_beside(found.get(toll.row.key))) for found in others.values()),
            *_interval(toll.ratio),
            Cell("", bar=math.log(toll.ratio.estimate) / widest if toll.ratio else 0.0),
            _interval(toll.typical)[0],
            Cell(_verdict(toll), verdict=toll.verdict),
            Cell(str(toll.row.standing)),
        )
        for toll in tolls
    ]
    return Table("", columns, rows)


def contrast_table(study: StudyJudgement) -> Table:
    """One value for another, all else equal: as many as a screen holds."""
    columns = (
        *texts("one for the other", "where"),
        *numbers("ratio"),
        *texts(_interval_title(study), "verdict", "pairs"),
    )
    rows = [_contrast(study, contrast) for contrast in study.contrasts[:ROWS_SHOWN]]
    if len(study.contrasts) > ROWS_SHOWN:
        rows.append((Cell(f"… {len(study.contrasts) - ROWS_SHOWN} more in the report"), *[Cell("")] * 5))
    return Table("All else equal", columns, rows)


def _contrast(study: StudyJudgement, contrast: Contrast) -> tuple[Cell, ...]:
    def said(name: str, value: Value) -> str:
        return plain(name, study.study.named(name, value))

    value, for_value = (said(contrast.setting, v) for v in (contrast.value, contrast.for_value))
    least, most = words.ratio_words(contrast.least), words.ratio_words(contrast.most)
    return (
        Cell(f"{value} for {for_value}"),
        Cell("; ".join(", ".join(said(name, v) for v in values) for name, values in contrast.where.items())),
        Cell(least if least == most else f"{least} to {most}"),
        Cell(words.ends(contrast.low, contrast.high)),
        Cell(str(contrast.verdict), verdict=contrast.verdict),
        Cell(str(contrast.pairs)),
    )


def claim_table(study: StudyJudgement) -> Table:
    """What was published beside what is measured here. What a claim says stands in its first row."""
    rated = any(claim.rates for claim in study.claims)
    columns = (
        *texts("published", "where", "of"),
        *numbers("then", *by_source_columns(study), "here"),
        *texts(_interval_title(study), "verdict"),
        *(numbers("requests / s") if rated else ()),
    )
    named = study.study.named
    before = ("", *(claim.says for claim in study.claims))
    rows = [
        (
            Cell("" if claim.says == said else claim.says),
            Cell(" · ".join(plain(n, named(n, claim.at[n])) for n in ("bed", "provider", "cpu") if n in claim.at)),
            Cell(claim.metric),
            Cell(_then(claim)),
            *map(Cell, by_source(study, claim.by_source)),
            *_interval(claim.ratio),
            Cell(str(claim.verdict) if claim.ratio else "not measured", verdict=claim.verdict),
            *([Cell(" / ".join(f"{rate:,.0f}" for rate in claim.rates or ()))] if rated else []),
        )
        for said, claim in zip(before, study.claims, strict=False)
    ]
    return Table("Then and here", columns, rows)


def crosstable(study: StudyJudgement, result: CrossTableResult) -> Table:
    """A table that the study asks for, each cell in one line."""
    name = _named_in(study)
    over, where = (
        ", ".join(name(*item) for item in of.items()) for of in (result.table.over, crosstables.where(study, result))
    )
    times = f", as a multiple of {over}, all else alike" if over else ""
    said = (f"{crosstables.shown(study, result)}{times}", where, f"{_interval_title(study)}s")
    return crosstables.laid_out(study, result, name, _cross_cell, " · ".join(filter(None, said)))


def gaps(study: StudyJudgement, result: CrossTableResult) -> list[str]:
    """For each of its rows and columns without a number, why, in short."""
    return crosstables.gaps(study, result, _named_in(study))


def _named_in(study: StudyJudgement) -> crosstables.NameOf:
    return lambda name, value: plain(name, study.study.named(name, value))


def _cross_cell(cell: CrossCell) -> Cell:
    if cell.cost is None:
        return Cell("not measured" if cell.row.outcome is Outcome.OK else str(cell.row.outcome))
    if cell.ratio is None:
        return Cell(words.amount(cell.cost.estimate, cell.unit))
    ratio, ends = (part.says for part in _interval(cell.ratio))
    return Cell(f"{ratio} {ends} {cell.verdict}" if cell.ratio.is_bounded else ratio, verdict=cell.verdict)


def missing(study: StudyJudgement) -> list[tuple[str, str, str]]:
    """(outcome, cell, reason) of what was not measured, and of what is compared with nothing."""
    failed = [(str(row.outcome), row, row.reason) for row in study.rows if row.outcome is not Outcome.OK]
    alone = [
        ("not compared", toll.row, toll.reason)
        for toll in study.tolls
        if toll.ratio is None and toll.row.outcome is Outcome.OK and toll.row.against != toll.row.key
    ]
    return [
        (outcome, " · ".join(plain(n, v) for n, v in row.shown.items()), reason or "")
        for outcome, row, reason in (*failed, *alone)
    ]


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Two runs' ratios side by side, a table for each study."""
    return [
        Table(
            f"{name}: {comparison.one} / {comparison.other}",
            (*texts(*names), *numbers("one", "other", "difference"), *texts("intervals")),
            [
                (
                    *(Cell(plain(name, pair.row.coordinates.get(name))) for name in names),
                    *(Cell(" ".join(cell.says for cell in _interval(ratio))) for ratio in (pair.one, pair.other)),
                    Cell(f"{pair.relative_difference:.1%}"),
                    Cell("overlap" if pair.overlap else "apart"),
                )
                for pair in pairs
            ],
        )
        for name, pairs in comparison.studies.items()
        for names in [varying((pair.row for pair in pairs), always=("choice",))]
    ]


def comparison_notes(comparison: Comparison) -> list[str]:
    """What was upgraded between the runs, what only one of them has, and how well the rest agrees."""
    one, other = comparison.without_partner
    alone = f"without a partner: {one:,} rows of {comparison.one}, {other:,} of {comparison.other}"
    return [
        *(f"another version: {change}" for change in comparison.upgrades),
        *([alone] if one or other else []),
        f"Median relative difference {comparison.median_difference:.2%};"
        f" {comparison.overlapping:.0%} of intervals overlap.",
    ]


def plain(name: str, value: Value | None) -> str:
    """A coordinate as a study writes it, but for sizes."""
    if value is None:
        return ""
    return units.show_bytes(value) if name == "bytes" and isinstance(value, int) else str(value)


def _coordinate(row: Row, name: str) -> str:
    return plain(name, row.shown.get(name))


def _interval_title(study: StudyJudgement) -> str:
    return f"{100 * study.confidence:.4g} % interval"


def _interval(ratio: Interval | None) -> tuple[Cell, Cell]:
    return (Cell(words.ratio_words(ratio.estimate)), Cell(words.bracket(ratio))) if ratio else (Cell(""), Cell(""))


def _beside(found: Measurement | None) -> str:
    """The value; requests a second in brackets where the server was not what limited them."""
    if found is None:
        return ""
    number = f"{found.value:,.0f}" if found.unit == "1/s" else words.amount(found.value, found.unit)
    return number if found.limit is None else f"({number}) {found.limit}"


def _then(claim: ClaimResult) -> str:
    if claim.published is not None:
        return words.ratio_words(claim.published)
    return "> 1" if claim.order == "more" else "< 1"


def _verdict(toll: Toll) -> str:
    # About so many more blocks would tell.
    more = f", +{toll.more_blocks} blocks" if toll.verdict is Verdict.UNCLEAR and toll.more_blocks else ""
    return f"{toll.verdict}{more}" + (f" {SUFFERS[toll.suffers]}" if toll.suffers else "")
