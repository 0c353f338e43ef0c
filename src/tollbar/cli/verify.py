"""`tollbar verify`: the correctness of every cell without measuring, and a runner's contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from json import loads
from pathlib import Path

from tollbar import study
from tollbar.catalog import families, libraries
from tollbar.catalog.families import Standing
from tollbar.cli.layouts import AsJson, Libraries
from tollbar.cli.options import make_plan
from tollbar.core import wire
from tollbar.core.errors import ExitStatus, TollbarError
from tollbar.core.files import full_path
from tollbar.core.records import Outcome, Proven
from tollbar.core.words import counted
from tollbar.lab import measure
from tollbar.lab.measure.conformance import Finding, hold
from tollbar.report import terminal
from tollbar.report.terminal.progress import Progress
from tollbar.study import plan as planning
from tollbar.study.plan import Plan


def verify(
    *studies: str,
    library: Libraries = (),
    runner: Path | None = None,
    json: AsJson = False,
) -> ExitStatus:
    """Check that every cell meets known answers and refuses wrong inputs, without measuring.

    tollbar verify
    tollbar verify signatures --library ./libcrypto.so.3
    tollbar verify --runner ./my-runner

    Parameters
    ----------
    studies
        Names of studies or sets (`tollbar list studies`), TOML files, or folders of such files; default: `quick`.
    runner
        Program to check against the runner contract, in everything that it offers (docs/runners.md), such as
        `./my-runner`.
    """
    if runner is not None and studies:
        raise TollbarError(
            "`--runner` cannot be combined with studies, because the runner lists its own choices",
            hint=f"`tollbar verify --runner {runner}`",
        )
    planned = make_plan(studies, library) if runner is None else _of_runner(runner)
    proven = _proven(planned)
    findings = list(_kept(planned, proven)) if runner is not None else []
    if json:
        terminal.print_json([asdict(one) | {"cell": loads(one.cell)} for one in proven])
    else:
        _print(planned, proven, findings)
    bad = [one for one in proven if one.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)]
    lacking = sum(one.outcome is Outcome.UNSUPPORTED for one in proven)
    terminal.say(
        f"{len(proven) - len(bad) - lacking} of {len(proven)} cells proven, {lacking} unsupported, {len(bad)} failed"
    )
    if findings:
        tried = [one for one in findings if one.kept is not None]
        terminal.say(f"{sum(one.kept is True for one in tried)} of {len(tried)} promises of the contract kept")
    failed = bad or (runner is not None and not findings) or any(one.kept is False for one in findings)
    return ExitStatus.SOME_FAILED if failed else ExitStatus.DONE


def _proven(planned: Plan) -> list[Proven]:
    cells = planned.cells
    with Progress() as progress, measure.sandbox_for(planned) as sandbox:
        proofs = measure.prove(cells, planned.seed, sandbox=sandbox)
        labels = planned.labels
        names = [f"{cell.study}: {labels[cell.study, cell.key]}" for cell in cells]
        return list(progress.follow("verify", proofs, len(cells), names))


def _of_runner(path: Path) -> Plan:
    """Return a plan of everything that a runner offers, a study for each family."""
    spec = f"runner:{full_path(path)}"
    (provider,) = libraries.resolve([spec])
    offers = provider.receipt["offers"]
    known = families.families()
    choices = {
        family: [name for name in names if name in known[family].choices]
        for family, names in offers.items()
        if family in known
    }
    if not choices:
        raise TollbarError(
            "offers no choice of any family; its `offers` must name at least one",
            where=str(path),
            hint="docs/runners.md has a complete runner",
        )
    head = {"question": "Does it keep the contract?", "providers": [spec]}
    texts = {name: wire.text_of({"": {**head, "family": name, "choices": some}}) for name, some in choices.items()}
    return planning.make([study.read(name, text, where=str(path)) for name, text in texts.items()], seed=0)


def _kept(planned: Plan, proven: list[Proven]) -> Iterator[Finding]:
    """Yield the findings on the contract, from one proven cell of each family that is not its null choice."""
    good = {(one.study, one.cell) for one in proven if one.outcome is Outcome.OK}
    for one in planned.studies:
        tried = (cell for cell in one.cells if (cell.study, cell.key) in good and cell.standing is not Standing.NULL)
        cell = next(tried, None)
        if cell is not None:
            answers = cell.choice.answers_of(str(cell.coordinates["op"]))
            answer = next((answer for answer in answers if not answer.setting), None)
            measured, verified = cell.task("measure", planned.seed), cell.task("verify", planned.seed, answer)
            yield from hold(cell.provider.runner, measured, verified)


_KEPT = {True: "kept", False: "BROKEN", None: "not tried"}


def _print(planned: Plan, proven: list[Proven], findings: list[Finding]) -> None:
    labels = planned.labels
    for one in proven:
        refused = f"refused {', '.join(one.refused)}" if one.refused else "nothing to refuse"
        right = counted(one.known_answers, "known answer") if one.known_answers else "; ".join(one.accepted)
        said = one.reason or "; ".join([right, refused, *(f"not tried: {what}" for what in one.not_tried)])
        terminal.stdout().print(f"{one.outcome:<12} {labels[(one.study, one.cell)]}: {said}", markup=False)
    for finding in findings:
        terminal.stdout().print(f"{_KEPT[finding.kept]:<12} {finding.promise}: {finding.seen}", markup=False)
