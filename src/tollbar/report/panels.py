"""The charts of a study that are rows of dots: tolls, contrasts, memory, and what was published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import log

from tollbar.families import Value
from tollbar.judge import ClaimResult, Contrast, StudyJudgement, Toll, Verdict
from tollbar.judge.noise import reach
from tollbar.report import words
from tollbar.report.cells import MOST_ROWS, split, spot
from tollbar.report.charts import SECOND_LINE, Chart, Dot, dot_rows, scale_over
from tollbar.report.costs import cost_words
from tollbar.report.labels import Place, labels, places, prevailing
from tollbar.report.scales import BYTES, NANOSECONDS
from tollbar.results import Row

# A longer baseline does not fit under a panel; the answer above the chart names it.
LONGEST_IN_TITLE = 30


def toll_charts(study: StudyJudgement) -> list[Chart]:
    """A panel for each setting: choices (and providers) as rows, the ratio to the baseline across.

    Panels of one operation share their axis and the order of their rows; making a key and checking a
    signature have nothing to share.
    """
    tolls = words.real_tolls(study)
    # A cell without a baseline among the cells stands as its own.
    baselines = {t.against.key: t.against for t in tolls if t.against.key != t.row.key}
    rows = [t.row for t in tolls] + list(baselines.values())
    in_rows, in_panels = split(study, rows)
    shared: dict[Value | None, list[Toll]] = {}
    for toll in tolls:
        operation = toll.row.coordinates.get("op") if "op" in in_panels else None
        shared.setdefault(operation, []).append(toll)
    charts: dict[str, Chart] = {}
    for alike in shared.values():
        charts |= _alike_panels(study, alike, in_rows, in_panels)
    titles = [title for title, _ in _panels(places(study), _with_something(study, rows, in_panels), in_panels)]
    return [charts[title] for title in titles if title in charts]


def _with_something(study: StudyJudgement, rows: Sequence[Row], in_panels: Sequence[str]) -> Sequence[Row]:
    """The rows without those of panels in which nothing was measured; all of them where nothing was anywhere."""
    measured = words.by_row(study, words.cost_metric(study))
    spots = {spot(r, in_panels) for r in rows if r.key in measured}
    return [r for r in rows if spot(r, in_panels) in spots] or rows


def _alike_panels(
    study: StudyJudgement, tolls: Sequence[Toll], in_rows: Sequence[str], in_panels: Sequence[str]
) -> dict[str, Chart]:
    baselines = {t.against.key: t.against for t in tolls if t.against.key != t.row.key}
    label = labels(study, in_rows)
    dots = {t.row.key: _toll_dot(label(t.row), t) for t in tolls}
    dots |= {r.key: _baseline_dot(label(r), study, r) for r in baselines.values()}
    order = _order(tolls, in_rows)
    noises = {t.row.key: reach(t.noise) for t in tolls if t.noise is not None}
    baseline = words.baseline_words(study)
    against = baseline if len(baseline) <= LONGEST_IN_TITLE else "the baseline"
    title = f"{cost_words(study).title}, as a multiple of {against} (log scale)"
    scale = scale_over(title, list(dots.values()), worth=study.study.study.worth)
    charts = {}
    rows = [*(t.row for t in tolls), *baselines.values()]
    for name, panel in _panels(places(study), rows, in_panels):
        shown = [dots[r.key] for r in sorted(panel, key=lambda r: order.get(spot(r, in_rows), 0.0))]
        heard = "; ".join(f"{d.label}: {d.note}" for d in shown)
        described = f"Tolls against {baseline}{', ' + name if name else ''}. {heard}."
        noise = max((noises[r.key] for r in panel if r.key in noises), default=None)
        letters = max(len(d.label) for d in shown)
        charts[name] = Chart(name, described, dot_rows(shown, replace(scale, noise=noise)), letters)
    return charts


def memory_charts(study: StudyJudgement) -> list[Chart]:
    """CPU time and memory of the same cells in the same order; nothing where memory does not matter."""
    memory = words.by_row(study, words.MEMORY)
    cost = words.by_row(study, words.cost_metric(study))
    rows = [m.row for m in cost.values() if m.row.key in memory]
    if not words.matters(memory):
        return []
    label = labels(study, words.varying(rows) or ("choice",), whole=True)
    rows.sort(key=lambda r: cost[r.key].value)
    charts = []
    for title, found, ticks, binary in (
        (cost_words(study).title, cost, NANOSECONDS, False),
        ("Memory that one operation holds", memory, BYTES, True),
    ):
        dots = [
            Dot(
                label=label(r),
                note=words.amount(m.value, m.unit),
                value=m.value if m.value > 0 else None,
                low=m.low,
                high=m.high,
                standing=r.standing,
            )
            for r in rows
            for m in [found[r.key]]
        ]
        scale = scale_over(f"{title} (log scale)", dots, labels=ticks, binary=binary)
        heard = "; ".join(f"{d.label}: {d.note}" for d in dots)
        charts.append(Chart(title, f"{title}. {heard}.", dot_rows(dots, scale)))
    return charts


def contrast_charts(study: StudyJudgement) -> list[Chart]:
    """A panel for each varied setting: one value for another, all else equal."""
    family = study.study.study.family
    by_setting: dict[str, list[Contrast]] = {}
    for contrast in study.contrasts:
        # What more users change is drawn against the users; here the table has it.
        if contrast.setting in words.LOADS:
            continue
        by_setting.setdefault(contrast.setting, []).append(contrast)
    charts = []
    for setting, found in by_setting.items():
        dots = [
            Dot(
                label=contrast_label(study, c),
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
        scale = scale_over(
            f"{words.opened(cost_words(study).short)}, as a multiple (log scale)", dots, worth=study.study.study.worth
        )
        title = f"By {words.column_title(family, setting)}"
        heard = "; ".join(f"{d.label}: {d.note}" for d in dots)
        charts.append(Chart(title, f"{title}, all else equal. {heard}.", dot_rows(_distinct(dots), scale)))
    return charts


def contrast_label(study: StudyJudgement, contrast: Contrast) -> str:
    """`no-aes for native`, and on a second line where."""
    family = study.study.study.family
    pair = " for ".join(words.value_words(family, contrast.setting, v) for v in (contrast.value, contrast.for_value))
    where = contrast_where(study, contrast, most=3)
    return f"{pair}{SECOND_LINE}{where}" if where else pair


def contrast_where(study: StudyJudgement, contrast: Contrast, most: int) -> str:
    """What a contrast's pairs have in common; nothing where it holds all pairs of these two values."""
    alike = [c for c in study.contrasts if _compared(c) == _compared(contrast)]
    # Pairs that share a verdict but no coordinate stand wherever the other lines do not.
    return words.where_words(study.study.study.family, contrast.where, most) or ("elsewhere" if len(alike) > 1 else "")


def _compared(contrast: Contrast) -> tuple[str, Value, Value]:
    return contrast.setting, contrast.value, contrast.for_value


def claim_chart(study: StudyJudgement) -> Chart | None:
    """What was published beside what is measured here; nothing where no claim gives a ratio."""
    numbers = claim_numbers(study.claims)
    dots = [
        Dot(
            label=f"{number}  {claim_place(study, c) or 'everywhere'}",
            note=f"{f'{c.metric} {words.times(c.ratio.estimate)}' if c.ratio else ''} {c.verdict}".strip(),
            value=c.ratio.estimate if c.ratio else None,
            low=c.ratio.low if c.ratio else None,
            high=c.ratio.high if c.ratio else None,
            then=c.published,
        )
        # The table beside the chart has them all.
        for number, c in zip(numbers[:MOST_ROWS], study.claims, strict=False)
    ]
    if not any(d.then for d in dots):
        return None
    scale = scale_over("the claim's own ratio, then and here (log scale)", dots, worth=0.0)
    heard = "; ".join(
        f"{d.label}: published {words.times(d.then) if d.then else 'an order'}, here {d.note}" for d in dots
    )
    return Chart("", f"Published ratios and the same ratios here. {heard}.", dot_rows(dots, scale))


def claim_numbers(claims: Sequence[ClaimResult]) -> list[str]:
    """A number for each result, `2` or `2.1`, `2.2` where one claim was tried in several places."""
    says = [c.says for c in claims]
    order = {text: i for i, text in enumerate(dict.fromkeys(says), 1)}
    seen: dict[str, int] = {}
    numbers = []
    for text in says:
        seen[text] = seen.get(text, 0) + 1
        numbers.append(f"{order[text]}.{seen[text]}" if says.count(text) > 1 else str(order[text]))
    return numbers


def claim_place(study: StudyJudgement, claim: ClaimResult) -> str:
    """Where both cells of a claim stand alike, in words; only what differs among the study's cells."""
    vary = words.varying(study.study.rows)
    usual = prevailing(study)
    names = [n for n in claim.at if n in vary and claim.at[n] != usual.get(n)]
    return places(study)(claim.at, names)


def _toll_dot(label: str, toll: Toll) -> Dot:
    if toll.ratio is None:
        outcome = str(toll.verdict) if toll.row.reason is None else str(toll.row.outcome)
        return Dot(label, outcome, None, standing=toll.row.standing)
    return Dot(
        label=label,
        note=f"{words.times(toll.ratio.estimate)} {toll.verdict}",
        value=toll.ratio.estimate,
        low=toll.ratio.low,
        high=toll.ratio.high,
        standing=toll.row.standing,
        decided=toll.verdict is not Verdict.UNCLEAR,
    )


def _baseline_dot(label: str, study: StudyJudgement, row: Row) -> Dot:
    measured = row.key in words.by_row(study, words.cost_metric(study))
    return Dot(label, "baseline" if measured else str(row.outcome), 1.0 if measured else None, standing=row.standing)


def _order(tolls: Sequence[Toll], names: Sequence[str]) -> Mapping[tuple[Value | None, ...], float]:
    """Each row's place: its mean log ratio over the panels, so that every panel has the same order.

    Over the fullest panels: where some have few of the rows, a mean over all would compare what is not alike.
    """
    panels: dict[str, dict[tuple[Value | None, ...], float]] = {}
    for toll in tolls:
        if toll.ratio is not None:
            panels.setdefault(toll.against.key, {})[spot(toll.row, names)] = log(toll.ratio.estimate)
    most = max(map(len, panels.values()), default=0)
    logs: dict[tuple[Value | None, ...], list[float]] = {}
    for fullest in (True, False):
        added: dict[tuple[Value | None, ...], list[float]] = {}
        for found in panels.values():
            for where, value in found.items():
                if (len(found) == most) is fullest and where not in logs:
                    added.setdefault(where, []).append(value)
        logs |= added
    order = {where: sum(found) / len(found) for where, found in logs.items()}
    # What was not measured anywhere stands last, where a reader looks for what is missing.
    unmeasured = {spot(t.row, names): float("inf") for t in tolls if spot(t.row, names) not in order}
    return order | unmeasured


def _panels(place: Place, rows: Iterable[Row], names: Sequence[str]) -> list[tuple[str, list[Row]]]:
    panels: dict[tuple[Value | None, ...], list[Row]] = {}
    for row in rows:
        panels.setdefault(spot(row, names), []).append(row)
    found = [
        (
            place({n: v for n, v in zip(names, where, strict=True) if v is not None}, names),
            where,
            inside,
        )
        for where, inside in panels.items()
    ]
    found.sort(
        key=lambda panel: [(v is not None, isinstance(v, str), v if isinstance(v, int) else 0) for v in panel[1]]
    )
    return [(title, inside) for title, _, inside in found]


def _distinct(dots: Sequence[Dot]) -> list[Dot]:
    """The same dots with every label different: two rows of one name would be drawn as one."""
    seen: dict[str, int] = {}
    distinct = []
    for dot in dots:
        seen[dot.label] = seen.get(dot.label, 0) + 1
        label = dot.label if seen[dot.label] == 1 else f"{dot.label} ({seen[dot.label]})"
        distinct.append(replace(dot, label=label))
    return distinct
