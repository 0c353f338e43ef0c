"""Contrasts: what one value of a setting costs beside another, all else equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tollbar.catalogue import Standing, Value
from tollbar.judge.costs import Ledger, mean_by_block
from tollbar.judge.decisions import Terms, decide, more_blocks
from tollbar.judge.splitting import Pair, agreeing_groups
from tollbar.judge.tolls import floor
from tollbar.judge.verdicts import Contrast, Verdict
from tollbar.results import Row, StudyRun
from tollbar.stats import ratio_interval
from tollbar.study import Study

# Choices are compared by their tolls, and the cost of one operation for another answers no question.
_NOT_CONTRASTED = ("choice", "op")


def contrasts(study_run: StudyRun, ledger: Ledger, terms: Terms) -> tuple[Contrast, ...]:
    """For each setting, and the provider, each value against the first one.

    Every two cells that differ in nothing else are a pair. The pairs' logarithms are averaged within each
    block; where the pairs disagree they are split, and each part is a contrast of its own. The null choice
    is left out: a setting that does nothing to nothing says nothing of the choices.
    """
    rows = [r for r in ledger.rows if r.standing is not Standing.NULL and ledger.why_nothing(r) is None]
    return tuple(
        contrast
        for name in _contrasted(study_run.study, rows)
        for contrast in _of_setting(name, _values(study_run.study, name, rows), rows, ledger, terms)
    )


def _contrasted(study: Study, rows: Sequence[Row]) -> list[str]:
    """The coordinates to contrast: the varied ones in the study's order, then the others as they come."""
    names = dict.fromkeys([*study.vary, *(name for row in rows for name in row.coordinates)])
    settings = study.family.settings
    # That more bytes cost more is known, and how much more each choice's curve over sizes shows.
    sizes = {name for name in names if name in settings and settings[name].is_size}
    return [name for name in names if name not in _NOT_CONTRASTED and name not in sizes]


def _values(study: Study, name: str, rows: Sequence[Row]) -> list[Value]:
    present = dict.fromkeys(row.coordinates[name] for row in rows if name in row.coordinates)
    declared = [value for value in study.vary.get(name, ()) if value in present]
    return list(dict.fromkeys([*declared, *present]))


def _of_setting(
    name: str, values: Sequence[Value], rows: Sequence[Row], ledger: Ledger, terms: Terms
) -> Iterator[Contrast]:
    if len(values) < 2:
        return
    # What a row has besides this setting, and the row: two rows with the same besides are a pair.
    besides: dict[Value, dict[frozenset[tuple[str, Value]], Row]] = {value: {} for value in values}
    for row in rows:
        if name in row.coordinates:
            rest = frozenset(item for item in row.coordinates.items() if item[0] != name)
            besides[row.coordinates[name]][rest] = row
    for_value, *others = values
    for value in others:
        found = [(row, besides[for_value].get(rest)) for rest, row in besides[value].items()]
        pairs = _pairs(name, [(row, for_row) for row, for_row in found if for_row is not None], ledger)
        for where, group in agreeing_groups(pairs, terms):
            ratio = ratio_interval(
                list(mean_by_block([pair.logs for pair in group]).values()), confidence=terms.confidence
            )
            noise = floor(ledger, terms, _baselines(group, ledger))
            verdict = decide(ratio, noise, terms)
            more = more_blocks(ratio, noise, terms) if verdict is Verdict.UNCLEAR else None
            yield Contrast(name, value, for_value, where, len(group), ratio, verdict, more)


def _pairs(name: str, rows: Sequence[tuple[Row, Row]], ledger: Ledger) -> list[Pair]:
    pairs = [
        Pair(row, for_row, {k: v for k, v in row.coordinates.items() if k != name}, logs)
        for row, for_row in rows
        if (logs := ledger.log_ratios(row, for_row))
    ]
    # The mean needs blocks that all pairs have: one cell that mostly failed must not cost the others theirs.
    most = max((len(pair.logs) for pair in pairs), default=0)
    return [pair for pair in pairs if 2 * len(pair.logs) >= most]


def _baselines(pairs: Sequence[Pair], ledger: Ledger) -> list[Row]:
    keys = dict.fromkeys(row.against for pair in pairs for row in (pair.row, pair.for_row))
    return [ledger.by_key[key] for key in keys if key in ledger.by_key and key is not None]
