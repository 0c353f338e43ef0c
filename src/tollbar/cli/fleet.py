"""`tollbar run --cluster ray`: the studies on each node of a cluster, and their runs side by side."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tollbar import cluster, study
from tollbar.cli.layouts import Layout, command_line, show_answer
from tollbar.cli.options import Options, full_paths
from tollbar.cluster import Fleets
from tollbar.core.errors import ExitStatus, TollbarError, one_line
from tollbar.core.files import full_path, is_file, is_folder, read_text
from tollbar.decide import compare
from tollbar.decide.compare.words import gather_answer, gather_page
from tollbar.report import html, terminal
from tollbar.report.blocks import Paragraph, Section
from tollbar.report.page import Page

if TYPE_CHECKING:
    from tollbar.report.json_forms.form import Document

NO_ROLES = ("cannot be combined with `--cluster`, because each node measures the whole run", "remove one of them")
OF_YOURS = (
    "cannot be combined with `--cluster`, because your own server is measured from one machine",
    "remove `--cluster`",
)


def is_fleet(directory: Path | None) -> bool:
    """Return true if a directory to be resumed is a fleet's."""
    return directory is not None and is_file(directory / cluster.FILE)


def run_on(
    studies: tuple[str, ...], options: Options, on: str | None, nodes: tuple[str, ...], simulate: int | None
) -> ExitStatus:
    """Measure on each node, and compare the runs at home.

    Raises TollbarError.
    """
    labels = cluster.read_labels(nodes)
    for what, asked, why, hint in (
        ("--url", options.url, *OF_YOURS),
        ("--server-pid", options.server_pid, *OF_YOURS),
        ("--roles", options.roles, *NO_ROLES),
    ):
        if asked:
            raise TollbarError(f"`{what}` {why}", hint=hint)
    if options.resume is not None:
        if studies or simulate or _told(options):
            hint = "remove the studies, `--simulate` and the options of the run, for example `tollbar run --resume RUN`"
            raise TollbarError(
                "`--resume` takes studies and options from the fleet; they cannot be given again", hint=hint
            )
        if not is_fleet(options.resume):
            hint = "to continue a single run, remove `--cluster`"
            raise TollbarError(
                f"is not a fleet; a fleet's directory must have a {cluster.FILE}", where=str(options.resume), hint=hint
            )
        fleets = cluster.take_up(options.resume)
        fleets.fleet.on = on or fleets.fleet.on
        cluster.check_can(fleets.fleet.on, fleets.fleet.simulated)
    else:
        on = on or "ray"
        cluster.check_can(on, simulate)
        fleets = _begun(studies or ("quick",), options, on, simulate, labels)
    try:
        cluster.drive(fleets, labels)
    except KeyboardInterrupt:
        terminal.say(f"to continue: {fleets.how_to_go_on()}")
        raise
    except TollbarError:
        # Nothing has begun: no node was asked.
        if options.resume is None and not fleets.fleet.nodes:
            fleets.discard()
        raise
    return _answered(fleets, options)


def _begun(
    studies: Sequence[str], options: Options, on: str, simulate: int | None, labels: Mapping[str, str]
) -> Fleets:
    # The studies are read here too, so that faults are reported before any node is used.
    asked = study.load(tuple(studies))
    for one in asked:
        for key, is_said, (why, hint) in (("url", one.remotes, OF_YOURS), ("roles", one.places, NO_ROLES)):
            if is_said:
                raise TollbarError(f"`{key}` {why}", where=one.name, hint=hint)
    named = [name for name in studies if not _is_own(name)]
    files: dict[str, str] = {}
    for path in (path for name in studies if _is_own(name) for path in _files(Path(name))):
        if files.setdefault(path.name, text := read_text(path)) != text:
            raise TollbarError(
                f"two different studies have the name {path.stem}; each needs its own",
                where=str(path),
                hint="rename one of the files",
            )
    return cluster.begin(
        full_path(options.runs), asked[0].name if len(asked) == 1 else "set", command=command_line(), studies=named,
        files=files, options=_told(options), on=on, simulated=simulate,
        labels=labels,
    )  # fmt: skip


def _told(options: Options) -> list[str]:
    """Return the options passed to a node's own command, in the same words."""
    told = {"--blocks": options.blocks, "--seed": options.seed, "--precision": options.precision, "--for": options.for_}
    words = [word for name, value in told.items() if value is not None for word in (name, str(value))]
    return words + [word for path in full_paths(options.library) for word in ("--library", path)]


def _is_own(name: str) -> bool:
    """Return true if the study is a file or a folder of the user's, which no node has."""
    return Path(name).suffix == ".toml" or is_folder(Path(name))


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.toml")) if is_folder(path) else [path]


def _answered(fleets: Fleets, options: Options) -> ExitStatus:
    done = fleets.finished(report=options.report)
    left = [one for one in fleets.fleet.nodes if one.state != "done"]
    if left:
        terminal.say(
            f"{len(left)} of {len(fleets.fleet.nodes)} nodes are not done; to continue: {fleets.how_to_go_on()}"
        )
    if not done:
        return ExitStatus.SOME_FAILED
    gathered = compare.gather(compare.read(done))
    answer = gather_answer(gathered)
    page = gather_page(gathered, shlex.join(command_line()), fleets.directory / cluster.PAGE)
    if fleets.fleet.simulated is not None:
        said = f"S{cluster.SIMULATED[1:]}."
        answer, page = replace(answer, how=(said, *answer.how)), noted(page, said)
    show_answer(answer, lambda: _document(gathered), Layout(json=options.json))
    if options.report:
        html.write_page(page, fleets.directory / cluster.PAGE)
        terminal.say(f"  page       {one_line(str(fleets.directory / cluster.PAGE))}")
    is_whole = not any(one.reason for one in fleets.fleet.nodes) and not left and not gathered.unusable
    return ExitStatus.DONE if is_whole and gathered.rows else ExitStatus.SOME_FAILED


def noted(page: Page, said: str) -> Page:
    """Return the page with this note above all else."""
    first, *rest = page.sections
    # The page begins with the matrix of tolls.
    assert isinstance(first, Section)
    return replace(page, sections=(replace(first, blocks=(Paragraph(said, "note"), *first.blocks)), *rest))


def _document(gathered: compare.Gathered) -> Document:
    from tollbar.decide.compare.document import document

    return document(gathered)
