"""Output of commands that look: the results of a run, its exit status, and tables of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tollbar.analysis import Judgement
from tollbar.core.errors import ExitStatus
from tollbar.core.records import Outcome
from tollbar.report import terminal


def show(judged: Judgement, *, as_json: bool, everything: bool = False, within_s: float | None = None) -> None:
    """Print the results of a run; a limit of the response time is for the JSON document alone."""
    if as_json:
        from tollbar.report.json_forms import of_run

        terminal.print_json(of_run(judged, within_s))
    else:
        terminal.show_judgement(judged, everything=everything)


def print_rows(rows: Sequence[Mapping[str, object]], *, as_json: bool) -> None:
    """Print a table of these rows, or one JSON document."""
    if as_json:
        terminal.print_json([dict(row) for row in rows])
    else:
        terminal.show_rows(rows)


def status_of(judged: Judgement) -> ExitStatus:
    """Return `DONE` if everything available was measured and anything was.

    A choice that a library does not support is no failure, as long as another is measured.
    """
    rows = [row for one in judged.studies for row in one.study.rows]
    bad = any(row.outcome in (Outcome.FAILED, Outcome.TIMED_OUT) or row.set_aside is not None for row in rows)
    return ExitStatus.SOME_FAILED if bad or not any(row.all_trials for row in rows) else ExitStatus.DONE
