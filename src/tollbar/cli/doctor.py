"""`tollbar doctor`: is this machine fit for measuring, and does the lab tell the truth on it?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from tollbar import beds, console, judge, libraries, machine, plan, results, study
from tollbar.cli.measuring import measure_into
from tollbar.errors import ExitStatus
from tollbar.judge import ClaimVerdict, Judgement
from tollbar.runner import engine
from tollbar.stats import Interval


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: fit or not, what was found, what would help."""

    good: bool
    what: str
    advice: str | None = None


def doctor(*, rehearse: bool = True) -> ExitStatus:
    """Look whether this machine is fit for measuring, and rehearse on work of a known amount.

    tollbar doctor
    tollbar doctor --no-rehearse

    Parameters
    ----------
    rehearse
        Measure the study `rehearsal`, some ten seconds: ×2.00 must come out as ×2.00.
    """
    findings = [*_machine(), *_providers(), *_beds()]
    if rehearse:
        findings += _rehearsal()
    for finding in findings:
        mark = "[green]good[/]" if finding.good else "[yellow]look[/]"
        console.stdout().print(f"{mark}  {escape(finding.what)}")
        if finding.advice and not finding.good:
            console.stdout().print(f"      [dim]{escape(finding.advice)}[/]")
    return ExitStatus.DONE if all(finding.good for finding in findings) else ExitStatus.SOME_FAILED


def _machine() -> Iterator[Finding]:
    found = machine.fingerprint()
    yield Finding(True, f"engine {engine()}")
    yield Finding(True, f"{found['cpu']}, {found['cores']} cores, kernel {found['kernel']}")
    yield Finding(
        found["cores"] > 1,
        f"runners are kept on core {machine.measuring_core()}, the lab off it",
        "with one core the lab and what it measures take turns: intervals will be wider",
    )
    yield Finding(
        found["governor"] in ("performance", "not stated"),
        f"frequency governor: {found['governor']}",
        "cpupower frequency-set -g performance",
    )
    load = machine.load()
    yield Finding(load < 0.7, f"load {load:.1f}", "wait until nothing else is running")


def _providers() -> Iterator[Finding]:
    for one in libraries.everything():
        if isinstance(one, libraries.Broken):
            yield Finding(False, f"{one.spec}: {one.reason}", "leave it out of studies, or mend it")
        elif one.fault:
            # What is not there is nothing wrong: its cells say so, and the others are measured.
            yield Finding(True, f"{one.spec}: {one.fault[1]}")
        else:
            yield Finding(True, f"{one.name} ({one.where})")


def _beds() -> Iterator[Finding]:
    for bed in (*beds.all_beds().values(), *beds.services().values()):
        found = beds.find(bed)
        if isinstance(found, beds.Installed):
            yield Finding(True, f"{bed.name} {found.version} ({found.programs[bed.frontend.name]})")
        else:
            yield Finding(True, f"{bed.name}: not available here: {found.reason}")


def _rehearsal() -> Iterator[Finding]:
    judged = rehearsal()
    (one,) = judged.studies
    for result in one.claims:
        here = f"×{result.ratio.estimate:.3f}" if result.ratio else "no number"
        yield Finding(
            result.verdict is ClaimVerdict.STILL_TRUE and _close(result.ratio, result.claim.one_ratio),
            f"rehearsal: {result.claim.says}: {here}",
            "this machine is too busy or too uneven right now; close what runs beside, and try again",
        )


# What a rehearsal may be off by before the lab distrusts the machine.
CLOSE = 0.005


def _close(ratio: Interval | None, published: float | None) -> bool:
    return ratio is not None and published is not None and abs(ratio.estimate / published - 1) <= CLOSE


def rehearsal() -> Judgement:
    """Measures the study `rehearsal` in a directory that is thrown away."""
    planned = plan.make(study.load(["rehearsal"]), seed=0)
    with tempfile.TemporaryDirectory() as folder:
        store = results.create(planned, Path(folder), command=(), libraries=(), fingerprint={})
        measure_into(store, planned)
        store.close()
        return judge.judge(results.read(store.directory))
