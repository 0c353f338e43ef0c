"""Made-up runs for the tests of gathering, and readers of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bench.fleet import fingerprint, run_of

from tollbar import analysis, results
from tollbar.analysis.kept import read_kept
from tollbar.catalog.families import Value
from tollbar.core.errors import TollbarError
from tollbar.decide import compare
from tollbar.decide.compare import Gathered, Unusable

CHOICES = {"sha-256": 1000.0, "sha-512": 1500.0, "sha-1": 800.0, "blake3": 1000.0}


def cost(**changed: float) -> Callable[[Mapping[str, Value]], float]:
    """Return a function for the cost of a choice, with some costs changed."""
    costs = {**CHOICES, **{name.replace("_", "-"): ns for name, ns in changed.items()}}
    return lambda at: costs[str(at["choice"])]


def made_in(folder: Path) -> Path:
    """Return a run of one machine."""
    return run_of(folder, fingerprint("Example CPU 1"), cost())


def told(*folders: Path) -> Gathered:
    return compare.gather(compare.read(folders))


def judged_again(run: Path) -> Path:
    """Return the run with a current judgement, as `tollbar report` leaves it."""
    compare.keep(analysis.judge(results.read(run)))
    return run


def why_not_current(run: Path) -> str:
    """Return the reason why a run's kept judgement is not used, or an empty string."""
    try:
        read_kept(run)
    except TollbarError as error:
        return error.what
    return ""


def reason_of(directory: Path) -> str:
    """Return the reason why a directory cannot be read as a run."""
    (one,) = compare.read([directory])
    assert isinstance(one, Unusable)
    assert one.reason.isprintable()
    return one.reason
