"""Interim result of a study: the input to the decision whether to measure further blocks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tollbar import results
from tollbar.analysis.decisions import Terms
from tollbar.analysis.ledger import Ledger
from tollbar.analysis.probes import quickness
from tollbar.analysis.tolls import tolls
from tollbar.analysis.verdicts import Toll
from tollbar.core.intervals import FEWEST_BLOCKS
from tollbar.core.moments import Quickness
from tollbar.results import StudyRun


@dataclass(frozen=True, slots=True)
class Widest:
    """Toll with the widest interval."""

    title: str
    half: float
    """Half of its interval's width, as a share; infinite without an interval."""


@dataclass(frozen=True, slots=True)
class SoFar:
    """Reasons to measure further blocks of a study."""

    lacks_quiet_blocks: bool
    """True if more blocks could make a toll quiet: it has some quiet blocks, but too few."""
    widest: Widest | None
    """Widest toll, A/A pairs left out; None if nothing was compared."""


def so_far_of(directory: Path, name: str) -> SoFar:
    """Read one study of a run and analyse its tolls; of the other studies' trials only the probes count."""
    run = results.read(directory, name=name)
    (study_run,) = run.studies
    return so_far(study_run, quickness(run))


def so_far(study_run: StudyRun, known: Quickness | None = None) -> SoFar:
    """Return the interim result of a study's tolls.

    A block whose chunks outlast every quiet moment never becomes quiet. A/A pairs count for quiet blocks: a cell that
    is compared only with itself has no other toll, and its cost is wanted.
    """
    study = study_run.study
    ledger = Ledger(study_run.rows, Terms.of(study_run), study.measure.cost, study.family, known)
    found = [toll for toll in tolls(ledger, study.baseline) if _may_have_more(toll)]
    halves = [
        Widest(toll.row.title, toll.ratio.half_width)
        for toll in found
        if toll.ratio is not None and toll.row.key != toll.against.key
    ]
    may_be_quiet = ledger.quickness.is_known and ledger.quickness.slower_than_known is None
    return SoFar(
        may_be_quiet and any(0 < toll.quiet_blocks < FEWEST_BLOCKS for toll in found),
        max(halves, key=lambda one: one.half, default=None),
    )


def _may_have_more(toll: Toll) -> bool:
    return toll.ratio is not None and toll.row.set_aside is None and toll.against.set_aside is None
