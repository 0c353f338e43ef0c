"""Runs under directories that others may have made: each one's machine and tolls, or why it has none.

Tolls are read from `judged.json` alone: the database of a run that others made is hashed and never opened. Nothing is
followed out of a directory, nothing in it is executed, and no file is read that is larger than a run has them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tollbar import results
from tollbar.analysis.kept import KeptJudgement, KeptStudy, NotCurrent, Scalar, read_kept
from tollbar.core.errors import TollbarError
from tollbar.core.files import pasted
from tollbar.core.machine import NOT_STATED
from tollbar.core.method import FIRST, VERSION
from tollbar.core.wire import Strict, check_characters
from tollbar.results.reading import uncollected

# Largest number of flags, many times that of the largest run.
MOST_FLAGS = 200
# Largest depth of folders below the named one: a run for each study, machine and day.
DEEPEST = 4
# Largest length of a printed name or reason.
MOST_LETTERS = 200


class Fingerprint(Strict, BaseModel):
    """Facts of a run about its machine; other facts may be present."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Scalar | list[Scalar] | None]
    cpu: str
    flags: Annotated[list[str], Field(max_length=MOST_FLAGS)] = []


class _RoleMachine(Strict, BaseModel):
    """A machine that had a role of its own."""

    host: str


class _RunFacts(Strict, BaseModel):
    """Facts of `run.json` that are printed."""

    started: str
    seed: int
    tollbar: str = NOT_STATED
    method: int = FIRST
    fingerprint: Fingerprint
    nodes: dict[str, _RoleMachine] = {}
    """By the role."""


class Doubt(StrEnum):
    """Reason why the tolls of a study are refused."""

    NOISE = "noise"
    """Doubt about a study whose A/A pairs differed by more than the threshold."""
    NEVER_QUIET = "never quiet"
    """No cell's core was quiet in blocks enough."""
    SELF_TEST = "self-test"
    """Doubt about a run whose self-test contradicted the known amount of work."""
    ELSEWHERE = "elsewhere"
    """Parts of its servers ran on other machines."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Study whose tolls are refused."""

    study: KeptStudy
    doubt: Doubt
    elsewhere: str = ""
    """Words for the roles that had machines of their own."""


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A run whose judgement was read."""

    directory: Path
    name: str
    """Directory name, as printed."""
    started: str
    """Start time as the run gives it, by its own clock and time zone."""
    began_s: float | None
    """Seconds since the epoch, of its first trial; None: it has none."""
    version: str
    """Version of the Tollbar that made the run."""
    method: int
    """The version of the method that measured it."""
    fingerprint: Fingerprint
    page: Path | None
    """Report of the run, if it has one."""
    studies: tuple[KeptStudy, ...]
    """Studies whose tolls are used."""
    refused: tuple[Refused, ...]
    begun: str
    """Identity of the run, equal after it was extended: its seed, and the time at which it began."""

    @property
    def blocks(self) -> int:
        """Return the number of blocks of all tolls, which grows as a run is extended."""
        studies = (*self.studies, *(one.study for one in self.refused))
        return sum(toll.blocks for study in studies for toll in study.tolls)


@dataclass(frozen=True, slots=True)
class Unusable:
    """Directory that cannot be read as a run, with the reason."""

    name: str
    reason: str


def read(folders: Sequence[Path], *, across_methods: bool = False) -> list[ReadRun | Unusable]:
    """Return every run in these folders, in the order of their names.

    A run whose kept judgement is missing or not current is refused, with the command that judges it. Of runs by several
    versions of the method only those of the newest are used, unless `across_methods` is set.

    Raises TollbarError for a folder without runs.
    """
    with uncollected():
        found = [one if isinstance(one, Unusable) else _read(one) for one in _directories(folders)]
    once = list(_once(found))
    return once if across_methods else _of_newest_method(once)


def _of_newest_method(found: Sequence[ReadRun | Unusable]) -> list[ReadRun | Unusable]:
    newest = max((one.method for one in found if isinstance(one, ReadRun)), default=VERSION)
    why = f"of the method, and others by version {newest}; `--across-methods` takes both"
    return [
        Unusable(one.name, f"measured by version {one.method} {why}")
        if isinstance(one, ReadRun) and one.method != newest
        else one
        for one in found
    ]


def shown(text: object, most: int = MOST_LETTERS) -> str:
    """Return a name or a reason from others, without terminal controls and at most `most` characters long."""
    words = " ".join(str(text).split())
    said = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in words)
    return said if len(said) <= most else f"{said[: most - 1]}…"


def _directories(folders: Sequence[Path]) -> Iterator[Path | Unusable]:
    met: set[Path] = set()
    for folder in folders:
        if not os.path.isdir(folder):
            raise TollbarError(
                "no such directory; it must be a run's directory or a folder of runs",
                where=shown(folder),
                hint="for example `runs`",
            )
        found = list(_below(folder, DEEPEST))
        if not found:
            hint = "give a directory that `tollbar run` made, for example `runs/2026-11-21-101500-digests`"
            raise TollbarError(
                "has no run; it must be a run's directory or a folder of runs", where=shown(folder), hint=hint
            )
        for one in found:
            if isinstance(one, Unusable):
                yield one
            elif (place := one.resolve()) not in met:
                met.add(place)
                yield one


def _below(folder: Path, depth: int) -> Iterator[Path | Unusable]:
    if os.path.lexists(folder / "run.json"):
        yield folder
        return
    try:
        with os.scandir(folder) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        yield Unusable(shown(folder), f"cannot be read: {error.strerror}")
        return
    for entry in inside:
        if entry.is_symlink():
            if os.path.isdir(entry.path):
                yield Unusable(shown(folder / entry.name), "a symbolic link, which is not followed")
        elif entry.name == "results.sqlite":
            yield Unusable(shown(folder), "not a run: it has results and no run.json")
        elif entry.is_dir() and depth:
            yield from _below(folder / entry.name, depth - 1)


def _read(directory: Path) -> ReadRun | Unusable:
    try:
        # Read first: a run of an earlier format is refused for that, and not for the judgement that it has not.
        about = results.about(directory)
        return _found(directory, read_kept(directory), about)
    except NotCurrent as error:
        return Unusable(shown(directory), f"{error.what}; `tollbar report {shown(pasted(directory))}` judges it")
    except Exception as error:  # whatever a file that others wrote may lead to
        return Unusable(shown(directory), _words(error))


def _words(error: Exception) -> str:
    """Return the words for an error with a run, without its place, which is printed next to it."""
    if isinstance(error, TollbarError):
        return shown(error.what)
    if isinstance(error, OSError):
        return shown(f"cannot be read: {error.strerror or error}")
    return shown(
        f"not as Tollbar writes it ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})"
    )


def _found(directory: Path, kept: KeptJudgement, said: Mapping[str, Any]) -> ReadRun:
    about = _RunFacts.model_validate(said)
    check_characters(about.model_dump(), shown(directory))
    page = directory / "report.html"
    wrong = any(study.wrong_claims for study in kept.studies)
    elsewhere = shown(", ".join(f"{role} on {node.host}" for role, node in about.nodes.items()))
    doubt = Doubt.ELSEWHERE if about.nodes else Doubt.SELF_TEST if wrong else None
    doubts = [(study, doubt or _doubt(study)) for study in kept.studies]
    return ReadRun(
        directory=directory,
        name=shown(directory),
        started=about.started,
        began_s=kept.began_s,
        version=about.tollbar,
        method=about.method,
        fingerprint=about.fingerprint,
        page=page if page.is_file() else None,
        studies=tuple(study for study, doubt in doubts if doubt is None),
        refused=tuple(Refused(study, doubt, elsewhere) for study, doubt in doubts if doubt is not None),
        # Equal machines may begin the same study in the same second, but not in the same microsecond.
        begun=f"{about.seed} {about.started} {kept.began_s}",
    )


def _doubt(study: KeptStudy) -> Doubt | None:
    if study.noise_floor is not None and study.noise_floor > 1 + study.threshold:
        return Doubt.NOISE
    # Without a probed core the quiet share is unknown, and the ratios are marked noisy.
    alone = study.quiet_share
    if alone == 0 or (alone is not None and 0 < study.cells_measured == study.never_quiet):
        return Doubt.NEVER_QUIET
    return None


def _once(found: Sequence[ReadRun | Unusable]) -> Iterator[ReadRun | Unusable]:
    """Yield each run once, the copy with the most blocks: a copy is no further observation."""
    longest: dict[str, ReadRun] = {}
    for one in found:
        if isinstance(one, ReadRun) and (one.begun not in longest or one.blocks > longest[one.begun].blocks):
            longest[one.begun] = one
    for one in found:
        if isinstance(one, ReadRun) and longest[one.begun] is not one:
            yield Unusable(one.name, f"the same run as {longest[one.begun].name}")
        else:
            yield one
