"""`tollbar show`: a cell of a study, or the page of a published source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tollbar import results, study
from tollbar.analysis import Judgement
from tollbar.cli.layouts import AsJson, Libraries
from tollbar.cli.meant import elsewhere
from tollbar.cli.options import DEFAULTS, make_plan
from tollbar.cli.output import print_rows
from tollbar.cli.runs import judged_run
from tollbar.core.errors import ExitStatus, TollbarError, nearest, one_line
from tollbar.lab import workloads
from tollbar.report import terminal
from tollbar.report.sections.published.lines import of_source
from tollbar.study import Publication
from tollbar.study.plan.cells import Cell


def show(
    name: str,
    /,
    *words: str,
    toml: Annotated[bool, Parameter(negative="")] = False,
    of: Annotated[Path | None, Parameter(name="--run")] = None,
    library: Libraries = (),
    json: AsJson = False,
) -> ExitStatus:
    """Show one cell of a study, or a published source and its claims.

    For a study without words, its cells are listed. For a cell, its task, configuration and known answers are printed.
    Words select a cell: give enough of its line to distinguish it.

    A source is a published comparison (`tollbar list sources`). Its page lists its claims next to the results of a
    run. If a study has the same name, its cells are printed before the page.

    tollbar show digests
    tollbar show digests md5 3.0 4096 native
    tollbar show tls-post-quantum nginx x25519
    tollbar show digests --toml > my-study.toml
    tollbar show security-design-choices
    tollbar show rsa-apis --run runs/2026-11-21-101500-rsa-apis

    Parameters
    ----------
    name
        Name of a study or a source, or a TOML file.
    words
        Words in the cell's line, such as `md5 4096`.
    toml
        Print the study's file, for example to edit a copy of it.
    of
        Run whose results the source's page shows, without the study's cells; default: the latest run under `runs` that
        measured one of the source's studies.
    """
    source = study.sources().get(name)
    if source is None and not study.is_named(name):
        sources = ", ".join(study.sources())
        near = nearest(name, [*study.shipped(), *study.SETS_OF_SOURCES, *study.members(), *study.sources()])
        raise TollbarError(
            f"no such study or source: `{name}`",
            hint=elsewhere(name) or near or f"`tollbar list studies` lists the studies; the sources are {sources}",
        )
    if of is not None and (source is None or words or toml):
        raise TollbarError(
            "`--run` needs the name of a source alone", hint=f"the sources are {', '.join(study.sources())}"
        )
    if toml:
        return _show_text(name, words)
    if source is not None and (of is not None or not study.is_named(name)):
        if words or library:
            what = f"the words `{' '.join(words)}`" if words else "`--library`"
            raise TollbarError(
                f"{what} cannot be used with a source, whose page is shown whole",
                where=name,
                hint=f"`tollbar show {name}`",
            )
        return _show_source(source, of, as_json=json)
    planned = make_plan((name,), library)
    cell = " ".join(words)
    found = [one for one in planned.cells if _is_named(one, cell)]
    if not cell:
        print_rows([one.coordinates for one in found], as_json=json)
        # A document is one: that of a study's cells, as of any study.
        return ExitStatus.DONE if source is None or json else _show_source(source, of, as_json=False)
    if not found:
        raise TollbarError(
            f"no cell of {name} has all words of `{cell}`",
            hint=f"`tollbar show {name}` lists the cells",
        )
    if len(found) > 1 and not json:
        terminal.say(f"{len(found)} cells have these words; the first is shown")
    first = found[0]
    answers = [
        {"inputs": dict(answer.inputs), "setting": dict(answer.setting), "is": answer.expected}
        for answer in first.choice.answers_of(str(first.coordinates["op"]))
    ]
    work = workloads.of(first).shown(first, planned.seed)
    shown: dict[str, object] = {"task": work.task, "runner": list(work.runner), "answers": answers}
    configuration = {"configuration": work.configuration} if work.configuration else {}
    terminal.print_json(shown | configuration if json else _shortened(shown))
    if configuration and not json:
        terminal.print_plain(f"\n{work.configuration}")
    return ExitStatus.DONE


def _show_source(source: Publication, run: Path | None, *, as_json: bool) -> ExitStatus:
    """Print a source's page: of this run, of the last that measured any of its studies, or without a run."""
    judged = judged_run(run) if run else _last_judged(source)
    if judged is not None:
        terminal.say(f"of the run {one_line(str(judged.run.directory))}")
    part = of_source(source, judged)
    if as_json:
        from tollbar.report import json_forms

        terminal.print_json(json_forms.of_source(part))
    else:
        terminal.show_published(part)
    return ExitStatus.DONE


def _last_judged(source: Publication) -> Judgement | None:
    """Return the last run that has studies of the source and trials of them. One that cannot be read is named."""
    # Their names begin with the time.
    for said in sorted(DEFAULTS.runs.glob("*/run.json"), reverse=True):
        try:
            # A study of this name may be another one, as those of the set `quick` are.
            if any(one.source == source.name for one in results.studies(said.parent)):
                run = results.read(said.parent)
                of = [one for one in run.studies if one.study.source == source.name and one.study.claims]
                if any(row.all_trials for one in of for row in one.rows):
                    return judged_run(said.parent)
        except (TollbarError, KeyError) as error:
            why = error.what if isinstance(error, TollbarError) else f"run.json has no {error}"
            terminal.say(f"warning: {said.parent} is skipped: {why}", "yellow")
    return None


def _show_text(name: str, words: Sequence[str]) -> ExitStatus:
    """Print a study as it was written. Raises TollbarError for a set, which is several files."""
    if words:
        raise TollbarError(
            f"`--toml` prints a whole study; `{' '.join(words)}` cannot select a part",
            where=name,
            hint=f"`tollbar show {name} --toml`",
        )
    found = study.load((name,))
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise TollbarError(
            "is a set of several studies; `--toml` needs one", where=name, hint=f"name one of them: {names}"
        )
    terminal.print_plain(found[0].text.removesuffix("\n"))
    return ExitStatus.DONE


def _is_named(cell: Cell, words: str) -> bool:
    values = " ".join(str(value) for value in (*cell.coordinates.values(), cell.provider.name)).lower()
    return all(word in values.split() or word in values for word in words.lower().split())


def _shortened(value: object) -> object:
    """Return the value with long texts cut: a key or a signature would fill the screen."""
    if isinstance(value, dict):
        return {name: _shortened(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_shortened(inner) for inner in value]
    if isinstance(value, str) and len(value) > 120:
        return f"{value[:80]}… ({len(value)} characters; --json shows all)"
    return value
