"""`tollbar doctor`: is this machine fit for measuring, and does the lab tell the truth on it?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from rich.markup import escape

from tollbar.analysis import ClaimVerdict
from tollbar.catalog import libraries, servers
from tollbar.cli import measuring
from tollbar.core import machine, proc
from tollbar.core.errors import ExitStatus
from tollbar.core.intervals import Interval
from tollbar.core.runner import engine
from tollbar.lab.servers import leftovers
from tollbar.report import terminal


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check: fit or not, the finding, and the advice."""

    good: bool
    what: str
    advice: str | None = None


def doctor(*, self_test: bool = True) -> ExitStatus:
    """Check whether this machine is fit for measuring, and run the self-test.

    tollbar doctor
    tollbar doctor --no-self-test

    Parameters
    ----------
    self_test
        Measure the study `self-test`, about 10 s: a known ratio of ×2.00 must be measured as ×2.00. Default: on.
    """
    status = ExitStatus.DONE
    # Findings are printed at once, so that a slow check is visibly in progress.
    for finding in chain(_machine(), _leftovers(), _providers(), _servers(), _self_test() if self_test else ()):
        mark = "[green]good[/]" if finding.good else "[yellow]look[/]"
        terminal.stdout().print(f"{mark}  {escape(finding.what)}")
        if not finding.good:
            status = ExitStatus.SOME_FAILED
            terminal.stdout().print(f"      [dim]{escape(finding.advice or '')}[/]")
    return status


def _machine() -> Iterator[Check]:
    found = machine.fingerprint()
    yield Check(True, f"engine {engine()}")
    yield Check(True, f"{found['cpu']}, {found['cores']} cores, kernel {found['kernel']}")
    yield Check(
        found["cores"] > 1,
        f"runners use core {machine.measuring_core()}, the lab the other cores",
        "with one core the lab and the measured programs take turns; intervals will be wider",
    )
    yield Check(
        found["governor"] in ("performance", "not stated"),
        f"frequency governor: {found['governor']}",
        "cpupower frequency-set -g performance",
    )
    load = machine.load()
    yield Check(True, f"servers' CPU time is read from {found['accounts']}")
    yield Check(load < 0.7, f"load {load:.1f}", "wait until nothing else is running")


def _leftovers() -> Iterator[Check]:
    for one in leftovers.find():
        named = ", ".join(f"{pid} {proc.program(pid)}" for pid in one.processes) or "none"
        yield Check(
            False,
            f"a run was killed and left {', '.join(map(str, dict.fromkeys((one.directory, *one.groups))))}; "
            f"its processes: {named}",
            "the next command that measures ends and removes both, for example `tollbar doctor` or `tollbar verify`",
        )


def _providers() -> Iterator[Check]:
    for one in libraries.everything():
        if isinstance(one, libraries.Broken):
            yield Check(False, f"{one.spec}: {one.reason}", "remove it from studies, or repair it")
        elif one.fault:
            # A missing provider is not a fault: its cells have the reason, and the others are measured.
            yield Check(True, f"{one.spec}: {one.fault[1]}")
        else:
            yield Check(True, f"{one.name} ({one.where})")


def _servers() -> Iterator[Check]:
    for server in (*servers.all_servers().values(), *servers.services().values()):
        found = servers.find(server)
        if isinstance(found, servers.Installed):
            yield Check(True, f"{server.name} {found.version} ({found.programs[server.frontend.name]})")
        else:
            yield Check(True, f"{server.name}: not available here: {found.reason}")


def _self_test() -> Iterator[Check]:
    (one,) = measuring.self_test().studies
    for result in one.claims:
        here = f"×{result.ratio.estimate:.3f}" if result.ratio else "no number"
        yield Check(
            result.verdict is ClaimVerdict.STILL_TRUE and _close(result.ratio, result.claim.one_ratio),
            f"self-test: {result.claim.says}: {here}",
            "this machine is too busy or too noisy now; end other programs and repeat",
        )


# Largest accepted error of the self-test (0.5 %).
CLOSE = 0.005


def _close(ratio: Interval | None, published: float | None) -> bool:
    return ratio is not None and published is not None and abs(ratio.estimate / published - 1) <= CLOSE
