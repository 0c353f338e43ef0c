"""Waiting times of callers: elapsed time compared with the baseline's, and the events waited for."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from tollbar.analysis import Measurement, StudyJudgement
from tollbar.core.words import capitalised
from tollbar.report.blocks import DASH, Listing, Table, TableCell, numbers, row_names
from tollbar.report.groups import by_row, is_baseline
from tollbar.report.names import labels, place_words, varied, varying
from tollbar.report.numbers import amount, ends_words, measured_words, percent

WAITS = "Waiting time of a caller"
# Number of rows that the source inserted, because the wait added to one row is too small to picture.
OPERATIONS = 10_000


def waits_table(study: StudyJudgement) -> Table:
    """Return a row for each cell that waited: elapsed time, the addition to the baseline's, and the waits.

    Without rows if no wait was timed. No verdict, because disks differ from minute to minute, and the added time
    contains both sides' intervals.
    """
    timed = {
        m.name: found for m in study.about.family.metrics.values() if m.unit == "us" if (found := by_row(study, m.name))
    }
    wall = by_row(study, "wall")
    waited = [
        row for row in study.rows if row.key in wall and timed and all(row.key in seen for seen in timed.values())
    ]
    # Shared coordinates are in the caption, not in every name.
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
    alike = {*varied(study), "op"} - {*varying(waited), "choice"}
    at = waited[0].coordinates if waited else {}
    where = place_words(study)(at, [name for name in at if name in alike])
    what = f"elapsed time over all samples, with its {sure} interval, and its difference from the baseline"
    caption = f"{where}: {what}" if where else what
    return Table(capitalised(caption), columns, rows)


def _added(wall: Measurement, base: Measurement | None) -> TableCell:
    """Return the milliseconds added to the baseline's, with the least and the most that both intervals allow."""
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
    """Return the interval; with too few blocks for one, the warnings report it once."""
    return ends_words(found.low, found.high, found.unit) if isfinite(found.high) else None


def waits_listing(study: StudyJudgement) -> Listing | None:
    """Return the waiting times of callers; None if no wait was timed."""
    table = waits_table(study)
    if not table.rows:
        return None
    return Listing(WAITS, tables=[replace(table, caption="")], caption=table.caption, whole=[table])
