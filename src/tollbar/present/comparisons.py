"""What is compared beside the tolls: the effect of each setting; and what was published, with what is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tollbar.families import Value
from tollbar.judge import BySource, ClaimResult, Contrast, StudyJudgement, Verdict
from tollbar.present import notes, words
from tollbar.present.cells import MOST_ROWS, places, prevailing, varying, where_words
from tollbar.present.charts import SECOND_LINE, Dot, Dots, scale_over, spoken
from tollbar.present.costs import cost_words
from tollbar.present.shapes import Cell, Chart, Column, Table, numbers, texts
from tollbar.present.tables import count_cell, ratio_cell
from tollbar.study import Claim, Statistic


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


def claim_table(study: StudyJudgement) -> Table:
    """What was published beside what is measured here."""
    rated = any(result.rates is not None for result in study.claims)
    rows = [
        (
            Cell(f"{number}  {result.claim.says}", small=said_where(result.claim)),
            Cell(claim_place(study, result) or "everywhere"),
            Cell(compared_by(result.claim)),
            Cell(published_words(result.claim), result.claim.one_ratio, said_figures(result.claim)),
            *map(Cell, by_source(study, result.by_source)),
            ratio_cell(result.ratio) if result.claim.is_judged else Cell(value_words(result) or "–"),
            ratio_cell(result.typical),
            *([_rates(result)] if rated else []),
            Cell(str(result.verdict), small=result.reason),
        )
        for number, result in zip(claim_numbers(study.claims), study.claims, strict=True)
    ]
    columns = (
        *texts("what was published", "tried at", "compared by"),
        *numbers(
            "published",
            *by_source_columns(study),
            "measured",
            "typical",
            *(["requests a second"] if rated else []),
        ),
        Column("effect on this machine"),
    )
    return Table("Published comparisons, and what is measured here", columns, rows)


def published_words(claim: Claim) -> str:
    """What was published, in a few words: a ratio, the least and the most of several, an order, or a figure."""
    if claim.ratio is not None:
        return f"{words.times_range(*claim.ratio)} of the first" if claim.grows else words.times_range(*claim.ratio)
    if claim.grows and claim.order is not None:
        return {"more": "grows", "less": "shrinks", "wider": "differs by more"}[claim.order]
    if claim.order is not None:
        return claim.order
    return claim.published[0].text if claim.published else "–"


def compared_by(claim: Claim) -> str:
    """The metric, and whose: `capacity of web`."""
    if claim.untestable is not None:
        return "–"
    return f"{claim.metric} of {claim.component}" if claim.component else claim.metric


def value_words(result: ClaimResult) -> str:
    """What was measured here where an absolute figure was published; nothing of a comparison."""
    return "" if result.claim.is_judged or not result.values else words.amount(*result.values[0])


def said_where(claim: Claim) -> str | None:
    """Where it was published, and what is uncertain of it."""
    return " ".join(f"{part.rstrip('.')}." for part in (claim.where, claim.note) if part) or None


def said_figures(claim: Claim) -> str | None:
    """The source's own figures of both sides, a pair for each of several ratios; nothing where it has none."""
    if not claim.is_judged or not claim.published:
        return None
    pairs = zip(claim.published[::2], claim.published[1::2], strict=True)
    return "; ".join(f"{of.text} over {over.text}" for of, over in pairs)


_BY_SOURCE: Mapping[Statistic, tuple[str, ...]] = {
    "mean-error-deviation": ("mean", "error", "deviation", "scaled"),
    "rate-after-first": ("mean", "scaled"),
}


def by_source_columns(study: StudyJudgement) -> tuple[str, ...]:
    """The columns of the statistic that the study's source prints, in BenchmarkDotNet's words; none without one."""
    return _BY_SOURCE[study.about.statistic] if study.about.statistic else ()


def by_source(study: StudyJudgement, found: BySource | None) -> tuple[str, ...]:
    """What stands in them; dashes where the cell has no number, or the source no such figure."""
    columns = by_source_columns(study)
    if found is None:
        return ("–",) * len(columns)
    amounts = {"mean": found.mean, "error": found.error, "deviation": found.deviation}
    said = {name: "–" if amount is None else words.amount(amount, found.unit) for name, amount in amounts.items()}
    said["scaled"] = words.times(found.ratio)
    return tuple(said[name] for name in columns)


def _rates(result: ClaimResult) -> Cell:
    """What both sides were measured at, whatever limited them: beside the capacity, never in its place."""
    return Cell("–") if result.rates is None else Cell(" and ".join(f"{rate:,.0f}" for rate in result.rates))


def claim_numbers(claims: Sequence[ClaimResult]) -> list[str]:
    """A number for each result, `2` or `2.1`, `2.2` where one claim was tried in several places."""
    says = [result.claim.says for result in claims]
    order = {text: i for i, text in enumerate(dict.fromkeys(says), 1)}
    seen: dict[str, int] = {}
    numbers = []
    for text in says:
        seen[text] = seen.get(text, 0) + 1
        numbers.append(f"{order[text]}.{seen[text]}" if says.count(text) > 1 else str(order[text]))
    return numbers


def claim_place(study: StudyJudgement, claim: ClaimResult) -> str:
    """Where both cells of a claim stand alike, in words; only what differs among the study's cells."""
    vary = varying(study.rows)
    usual = prevailing(study)
    names = [n for n in claim.at if n in vary and claim.at[n] != usual.get(n)]
    return places(study)(claim.at, names)


def _compared(result: ClaimResult) -> str:
    """What was measured, as a chart says it: of what grows, how the second ratio is to the first."""
    if result.ratio is None:
        return ""
    times = words.times(result.ratio.estimate)
    return f"{compared_by(result.claim)}: {times} of the first ratio" if result.claim.grows else f"{compared_by(result.claim)} {times}"


def claim_chart(study: StudyJudgement) -> Chart | None:
    """What was published beside what is measured here; nothing where no claim gives a ratio."""
    judged = [(n, c) for n, c in zip(claim_numbers(study.claims), study.claims, strict=True) if c.claim.is_judged]
    # The table beside the chart has them all.
    numbered = judged[:MOST_ROWS]
    dots = [
        Dot(
            label=f"{number}  {claim_place(study, c) or 'everywhere'}",
            note=f"{_compared(c)} {c.verdict}".strip(),
            value=c.ratio.estimate if c.ratio else None,
            low=c.ratio.low if c.ratio else None,
            high=c.ratio.high if c.ratio else None,
            # Of a range nothing between its ends was published.
            then=c.claim.one_ratio,
        )
        for number, c in numbered
    ]
    if not any(d.then for d in dots):
        return None
    scale = scale_over("the claim's own ratio, published and measured", dots, worth=0.0)
    said = "; ".join(
        f"{d.label}: published {words.times_range(*c.claim.ratio) if c.claim.ratio else 'an order'}, here {d.note}"
        for d, (_, c) in zip(dots, numbered, strict=True)
    )
    return Chart("", f"Published ratios and the same ratios here. {said}.", Dots(dots, scale))
