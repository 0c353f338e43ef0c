"""What a caller waits: elapsed time where work waits for something that was timed beside it, such as a disk's flush."""

from __future__ import annotations

from math import isfinite

from tollbar.judge import Measurement, StudyJudgement
from tollbar.present import words
from tollbar.present.cells import by_row, is_baseline, labels, places, varying
from tollbar.present.shapes import Cell, Table, numbers, row_names

TITLE = "What a caller waits"
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
            Cell(label(row)),
            Cell(words.amount(wall[row.key].value, "ns"), wall[row.key].value, _ends(wall[row.key])),
            _added(wall[row.key], None if is_baseline(row) else wall.get(row.against or "")),
            *(
                Cell(words.measured(found[row.key]), found[row.key].value, _ends(found[row.key]))
                for found in timed.values()
            ),
        )
        for row in waited
    ]
    titles = (study.about.family.metrics[name].title for name in timed)
    columns = (*row_names("cell"), *numbers("elapsed per operation", f"added per {OPERATIONS:,} operations", *titles))
    sure = words.percent(study.confidence)
    alike = {*varying(study.rows), "op"} - {*varying(waited), "choice"}
    at = waited[0].coordinates if waited else {}
    where = places(study)(at, [name for name in at if name in alike])
    what = f"elapsed time as disturbed, with its {sure} interval, and what it has beyond the baseline's"
    caption = f"{where}: {what}" if where else what
    return Table(words.opened(caption), columns, rows)


def _added(wall: Measurement, base: Measurement | None) -> Cell:
    """Milliseconds more than the baseline takes for so many; from the least to the most that both intervals allow."""
    if base is None:
        return Cell("–")
    more, least, most = (
        ns * OPERATIONS / 1e6 for ns in (wall.value - base.value, wall.low - base.high, wall.high - base.low)
    )
    known = isfinite(least) and isfinite(most)
    return Cell(f"{_signed(more)} ms", more, f"[{_signed(least)}, {_signed(most)}]" if known else None)


def _signed(ms: float) -> str:
    return f"{ms:+,.0f}".replace("-", "−") if abs(ms) >= 100 else f"{ms:+.3g}".replace("-", "−")


def _ends(found: Measurement) -> str | None:
    """Its interval; where blocks are too few for one, the warnings say so once."""
    return words.ends(found.low, found.high, found.unit) if isfinite(found.high) else None
