"""`tollbar compare`: changes between two runs of a machine, or the tolls of many runs by machine."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from tollbar import results
from tollbar.analysis import Changed
from tollbar.analysis.comparison import compare as compare_judgements
from tollbar.cli.layouts import (
    AcrossMethods,
    AsFormat,
    AsJson,
    AsMarkdown,
    Layout,
    TableFormat,
    check_is_writable,
    command_line,
    layout_of,
    read_share,
    show_answer,
)
from tollbar.cli.runs import judged_run
from tollbar.core import machine
from tollbar.core.errors import ExitStatus, TollbarError, one_line
from tollbar.core.files import is_file
from tollbar.decide import compare as comparing
from tollbar.decide.compare.words import gather_answer, gather_page
from tollbar.report import html, terminal
from tollbar.report.changes import by_cost_lines, headlines, increase_lines

if TYPE_CHECKING:
    from tollbar.report.json_forms.form import Document

By = Literal["change", "machine"]


def compare(
    run: Path,
    /,
    *runs: Path,
    by: By | None = None,
    fail_above: str | None = None,
    of: Annotated[Changed, Parameter(name="--metric")] = "ratio",
    across_machines: Annotated[bool, Parameter(negative="")] = False,
    across_methods: AcrossMethods = False,
    output: Path | None = None,
    parquet: Path | None = None,
    format: AsFormat = "terminal",
    markdown: AsMarkdown = False,
    json: AsJson = False,
) -> ExitStatus:
    """Compare two runs of one machine, or the tolls of several machines.

    tollbar compare runs/before runs/after --fail-above 5%
    tollbar compare here/runs there/runs --output machines.html

    Two runs are compared row by row, also if a library has another version. Machines are compared by ratios only,
    because times of two machines mean little. They are compared by the judgement that each run keeps; `tollbar report
    RUN` makes a current one. A run that cannot be trusted is refused with the reason, and the exit status is 1.

    Parameters
    ----------
    run
        Directory of a run, or a folder of runs.
    runs
        Further runs, or folders of runs.
    by
        `change` compares two runs row by row, `machine` compares any number of runs; default: `change` for two runs of
        one machine, else `machine`.
    fail_above
        Largest accepted increase, such as `5%`. The status is 1 if a row rose by more, its whole interval beyond it,
        or was measured only in the first run, or is not compared. It is 3 if no row could have shown it. Needs two
        runs.
    of
        Quantity that `--fail-above` compares: `ratio`, to the baseline of the same run, or `cost`, which also rises if
        the machine is slower today; default: `ratio`.
    across_machines
        Compare two runs row by row, even if they were measured on different machines.
    output
        File for the comparison of machines, as one self-contained HTML page; an existing file is replaced.
    parquet
        File for a table with a row for each toll of each run, such as `tolls.parquet`. Needs pyarrow.
    """
    layout = layout_of(format, markdown=markdown, json=json)
    above = None if fail_above is None else read_share("--fail-above", fail_above, most=None)
    all_runs = (run, *runs)
    by = by or ("change" if above is not None or across_machines else _usual(all_runs))
    if by == "machine":
        if above is not None or across_machines:
            option = "--fail-above" if above is not None else "--across-machines"
            raise TollbarError(
                f"`{option}` cannot be combined with a comparison by machine", hint="remove `--by machine`"
            )
        return _by_machine(all_runs, layout, output, parquet, across_methods=across_methods)
    if len(all_runs) != 2:
        what = f"a comparison row by row needs two runs; {len(all_runs)} are given"
        raise TollbarError(what, hint="`--by machine` compares any number of runs")
    for option, file in (("--output", output), ("--parquet", parquet)):
        if file is not None:
            raise TollbarError(f"`{option}` needs a comparison by machine", hint="add `--by machine`")
    one, other = all_runs
    judged = [judged_run(each) for each in (one, other)]
    comparison = compare_judgements(*judged, across_machines=across_machines, across_methods=across_methods)
    found = () if above is None else comparison.increases(above, of)
    notes = [] if above is None else increase_lines(comparison, found, above, of)
    if above is not None and of == "ratio" and not found:
        notes += by_cost_lines(comparison, above)
    if layout == "json":
        from tollbar.report.json_forms import of_comparison

        terminal.print_json(of_comparison(comparison, found, above))
    elif layout == "markdown":
        terminal.show_comparison_markdown(comparison, notes, headlines(judged))
    else:
        terminal.show_comparison(comparison, notes)
    if above is None:
        return ExitStatus.DONE
    if found or comparison.gone or comparison.unjudged(of):
        return ExitStatus.SOME_FAILED
    return ExitStatus.DONE if comparison.tellable(of, above) else ExitStatus.CANNOT_TELL


def _usual(runs: Sequence[Path]) -> By:
    """Return the kind of comparison for these runs if the command line gives none.

    Raises TollbarError.
    """
    if len(runs) != 2 or not all(is_file(run / "run.json") for run in runs):
        return "machine"
    first, second = (results.about(run)["fingerprint"] for run in runs)
    return "machine" if machine.differences(first, second) else "change"


def _by_machine(
    runs: Sequence[Path], layout: TableFormat, output: Path | None, parquet: Path | None, *, across_methods: bool
) -> ExitStatus:
    for option, file in (("--output", output), ("--parquet", parquet)):
        if file is not None:
            check_is_writable(option, file)
    gathered = comparing.gather(comparing.read(runs, across_methods=across_methods))
    answer = gather_answer(gathered, everything=layout == "markdown")
    show_answer(answer, lambda: _document(gathered), Layout(format=layout))
    if output is not None:
        html.write_page(gather_page(gathered, shlex.join(command_line()), output), output)
        terminal.say(f"  page       {one_line(str(output))}")
    if parquet is not None:
        from tollbar.decide.compare.document import toll_rows

        results.write(lambda: toll_rows(gathered), "parquet", parquet)
        terminal.say(f"  rows       {one_line(str(parquet))}")
    is_whole = not gathered.unusable and not any(run.refused for run in gathered.runs)
    return ExitStatus.DONE if is_whole and gathered.rows else ExitStatus.SOME_FAILED


def _document(gathered: comparing.Gathered) -> Document:
    from tollbar.decide.compare.document import document

    return document(gathered)
