"""Unmeasured cells, with reasons: failed, quarantined and left-out cells, and unavailable servers."""

from __future__ import annotations

from collections.abc import Sequence

from tollbar.analysis import StudyJudgement
from tollbar.core.records import Outcome
from tollbar.core.words import counted, few, more
from tollbar.report.blocks import Table, TableCell, texts
from tollbar.report.coordinates import Form, named_value, value_words
from tollbar.report.names import place_of, place_words, varying
from tollbar.results import Row

# Limit of the values named for each coordinate: enough to recognise the cells.
MOST_VALUES = 4
# Quarantines beyond these hide the other warnings.
MOST_SET_ASIDE = 50
# Limit of the combinations named for each reason.
MOST_LEFT_OUT = 12


def missing(study: StudyJudgement) -> list[str]:
    """Return unmeasured and uncompared cells, a line for each outcome and reason."""
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
    """Return the rows' coordinates: `blake3 · openssl 3.0.19 · 4 KiB, 1 MiB (4 cells)`.

    Coordinates that do not vary in the study, or of which the rows have all values, are left out.
    """
    vary = varying(study.rows, always=("choice",))
    parts = []
    for name in vary:
        values = list(dict.fromkeys(row.shown[name] for row in rows if name in row.shown))
        others = {row.shown[name] for row in study.rows if name in row.shown}
        if not values or (name != "choice" and len(values) == len(others) > 1):
            continue
        family, (first, *rest) = study.about.family, values
        words = [value_words(family, name, value, Form.TABLE) for value in rest]
        parts.append(", ".join(few([named_value(family, name, first, Form.TABLE), *words], MOST_VALUES)))
    return " · ".join(parts) + (f" ({len(rows):,} cells)" if len(rows) > 1 else "")


def set_aside(study: StudyJudgement) -> list[str]:
    """Return a sentence for each quarantine: the cell, the reason, and whether it was tried again."""
    rows, names = {row.key: row for row in study.rows}, varying(study.rows, always=("choice",))
    said = []
    for one in study.study.set_aside[:MOST_SET_ASIDE]:
        row = rows.get(one.cell)
        named = place_of(study.about.family, row.shown, names) if row else one.cell
        later = (
            "`tollbar run --resume RUN` tries it again"
            if one.tried_again_s is None
            else "it was tried again when the run was resumed"
        )
        said.append(
            f"{named} was quarantined after {one.failed:,} of its {counted(one.trials, 'trial')} failed"
            f" ({one.reason.rstrip('.')}) and has fewer blocks than the others: {later}."
        )
    left = len(study.study.set_aside) - MOST_SET_ASIDE
    return [*said, *([f"{more(left, 'quarantine')} in the JSON document."] if left > 0 else [])]


def unavailable(study: StudyJudgement) -> list[str]:
    """Return a sentence for each server on which nothing could be measured, for one reason."""
    family = study.about.family
    by_server: dict[str, list[Row]] = {}
    for row in study.rows:
        if row.server is not None:
            by_server.setdefault(row.server, []).append(row)
    said = []
    for server, rows in by_server.items():
        reasons = {r.reason for r in rows if r.outcome is Outcome.UNSUPPORTED}
        if all(r.outcome is Outcome.UNSUPPORTED for r in rows) and len(reasons) == 1:
            name, reason = value_words(family, "server", server), (reasons.pop() or "no reason was recorded")
            said.append(f"Not available here, {counted(len(rows), 'cell')} on {name}: {reason.rstrip('.')}.")
    return said


def left_out_table(study: StudyJudgement) -> Table:
    """Return the combinations that were not planned, by their reasons."""
    place = place_words(study)
    by_reason: dict[str, list[str]] = {}
    for coordinates, reason in study.study.left_out:
        by_reason.setdefault(reason, []).append(place(coordinates, coordinates))
    caption = f"{counted(len(study.study.left_out), 'combination')} left out of the study, and why"
    rows = [(TableCell(_some(found)), TableCell(reason)) for reason, found in by_reason.items()]
    return Table(caption, texts("left out", "because"), rows)


def _some(places: Sequence[str]) -> str:
    """Return the first of these, and the number left out: a matrix leaves out a thousand for one reason."""
    left = len(places) - MOST_LEFT_OUT
    return "; ".join([*places[:MOST_LEFT_OUT], f"and {more(left)}"] if left > 1 else places)
