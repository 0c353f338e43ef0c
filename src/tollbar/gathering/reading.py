"""Runs under directories that others may have made: each one's machine and tolls, or why it has none.

Nothing is followed out of a directory, nothing of it is run, and no file is read that is larger than a run has them.
"""

from __future__ import annotations

import ctypes
import logging
import os
import resource
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from tollbar import judge, results, units
from tollbar.errors import TollbarError
from tollbar.gathering.kept import KeptJudgement, KeptStudy, Scalar, keep, read_kept
from tollbar.machine import NOT_STATED
from tollbar.method import FIRST, VERSION
from tollbar.results.directory import check_files
from tollbar.results.reading import uncollected
from tollbar.wire import Strict, check_characters

_log = logging.getLogger(__name__)

# Many times what the largest run has.
MOST_FLAGS = 200
# Of a process that judges one run: seconds, and bytes of addresses, with all that is mapped before.
MOST_S = 600
MOST_ADDRESSES = max(4 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
# Of folders below the one that is named: a run of each study of each machine of each day.
DEEPEST = 4
# So many runs of a thousand cells are judged in about a minute.
MANY = 20
DIED = f"could not be judged: the process that judged it ended; it may take too much memory, or more than {MOST_S} s"
# Of <sys/prctl.h>: the signal that a process has when its parent ends, however that ends.
PR_SET_PDEATHSIG = 1
# Of a name or a reason that is shown.
MOST_LETTERS = 200


class Fingerprint(Strict, BaseModel):
    """What a run says of its machine; other facts beside these two."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Scalar | list[Scalar] | None]
    cpu: str
    flags: Annotated[list[str], Field(max_length=MOST_FLAGS)] = []


class _Node(Strict, BaseModel):
    """A machine that had a role of its own."""

    host: str


class _About(Strict, BaseModel):
    """What is shown of `run.json`."""

    started: str
    seed: int
    tollbar: str = NOT_STATED
    method: int = FIRST
    fingerprint: Fingerprint
    nodes: dict[str, _Node] = {}
    """By the role."""


class Doubt(StrEnum):
    """Why nothing is told of a study."""

    NOISE = "noise"
    """What was measured twice differed by more than the threshold."""
    NEVER_QUIET = "never quiet"
    """No cell's core was quiet in blocks enough."""
    SELF_TEST = "self-test"
    """A self-test in the same run found otherwise than what is known of its work."""
    ELSEWHERE = "elsewhere"
    """Parts of its servers ran on other machines."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A study of whose tolls nothing is told."""

    study: KeptStudy
    doubt: Doubt
    elsewhere: str = ""
    """Which roles had machines of their own, in words."""


@dataclass(frozen=True, slots=True)
class Found:
    """A run that can be read."""

    directory: Path
    name: str
    """Its directory, as it is shown."""
    started: str
    """As it says it, by its own clock and time zone."""
    began_s: float | None
    """Seconds since the epoch, of its first trial; None: it has none."""
    version: str
    """Of the Tollbar that made it."""
    method: int
    """The version of the method that measured it."""
    fingerprint: Fingerprint
    page: Path | None
    """Its report, where there is one."""
    studies: tuple[KeptStudy, ...]
    """Those of whose tolls something is told."""
    refused: tuple[Refused, ...]
    begun: str
    """What tells it from other runs, however long it has gone on since: its seed, and when it began."""

    @property
    def blocks(self) -> int:
        """Of all tolls: a run that has gone on has more of them."""
        studies = (*self.studies, *(one.study for one in self.refused))
        return sum(toll.blocks for study in studies for toll in study.tolls)


@dataclass(frozen=True, slots=True)
class Unusable:
    """A directory that is no run which can be read, and why."""

    name: str
    reason: str


def read(folders: Sequence[Path], *, across_methods: bool = False) -> list[Found | Unusable]:
    """Every run in these folders, in the order of their names. Raises TollbarError for a folder that has none.

    A run that keeps no judgement of this version is judged; that is a look, and is noted where the run can be written.
    Of runs by several versions of the method those of the newest are taken, unless all are asked for.
    """
    directories = list(_directories(folders))
    with uncollected():
        read_back = {directory: _quickly(directory) for directory in directories if isinstance(directory, Path)}
    left = [directory for directory, found in read_back.items() if found is None]
    if left:
        _log.info("%d of %d runs keep no judgement of this version: judging them", len(left), len(read_back))
        read_back |= _judged_apart(left)
    found = [one if isinstance(one, Unusable) else read_back[one] for one in directories]
    once = list(_once([one for one in found if one is not None]))
    return once if across_methods else _of_newest_method(once)


def _of_newest_method(found: Sequence[Found | Unusable]) -> list[Found | Unusable]:
    newest = max((one.method for one in found if isinstance(one, Found)), default=VERSION)
    why = f"of the method, and others by version {newest}; `--across-methods` takes both"
    return [
        Unusable(one.name, f"measured by version {one.method} {why}")
        if isinstance(one, Found) and one.method != newest
        else one
        for one in found
    ]


def _ends_with_parent() -> None:
    """Of a process that judges: what interrupts the command is the command's to say; and not all memory is its own."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MOST_ADDRESSES if hard == resource.RLIM_INFINITY else min(MOST_ADDRESSES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _judged_apart(directories: Sequence[Path]) -> Iterator[tuple[Path, Found | Unusable]]:
    """Runs judged in processes beside this one. One that dies ends its pool: what is left then has a pool each."""
    unnoted = 0
    pools: list[tuple[int, Sequence[Path]]] = [(min(len(directories), os.cpu_count() or 1), directories)]
    for workers, some in pools:
        for number, (directory, judged) in enumerate(_judged_in(workers, some), 1):
            if number % MANY == 0:
                _log.info("judging run %d of %d", number, len(directories))
            if judged is not None:
                unnoted += not judged[1]
                yield directory, judged[0]
            elif len(some) > 1:
                pools.append((1, [directory]))
            else:
                yield directory, Unusable(shown(directory), DIED)
    if unnoted:
        _log.warning("this look at %d of them is not noted, so that later ones will not pay for it", unnoted)


def _judged_in(
    workers: int, directories: Sequence[Path]
) -> Iterator[tuple[Path, tuple[Found | Unusable, bool] | None]]:
    """Each as `_judged` has it; None: a process of the pool died, whichever run it judged."""
    with ProcessPoolExecutor(workers, get_context("fork"), _ends_with_parent) as pool:
        try:
            under_way: dict[Path, Future[tuple[Found | Unusable, bool]]] = {}
            with suppress(BrokenProcessPool):
                for directory in directories:
                    under_way[directory] = pool.submit(_judged, directory)
            for directory in directories:
                judged: tuple[Found | Unusable, bool] | None = None
                try:
                    judged = under_way[directory].result() if directory in under_way else None
                except BrokenProcessPool:
                    pass
                except Exception as error:  # of what a process hands back
                    judged = Unusable(shown(directory), f"could not be judged: {_words(error)}"), True
                yield directory, judged
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def shown(text: object, most: int = MOST_LETTERS) -> str:
    """A name or a reason that others wrote, without what steers a terminal, and not longer than can be read."""
    words = " ".join(str(text).split())
    said = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in words)
    return said if len(said) <= most else f"{said[: most - 1]}…"


def _directories(folders: Sequence[Path]) -> Iterator[Path | Unusable]:
    met: set[Path] = set()
    for folder in folders:
        if not os.path.isdir(folder):
            raise TollbarError(
                "no such directory", where=shown(folder), hint="give a run's directory, or one with runs"
            )
        found = list(_below(folder, DEEPEST))
        if not found:
            hint = "give a directory that `tollbar run` made, or one with such directories"
            raise TollbarError("has no run", where=shown(folder), hint=hint)
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


def _quickly(directory: Path) -> Found | Unusable | None:
    """A run by what it keeps; None where it is yet to be judged."""
    try:
        check_files(directory)
        kept = read_kept(directory)
        return None if kept is None else _found(directory, kept)
    except Exception as error:  # whatever a file that others wrote may lead to
        return Unusable(shown(directory), _words(error))


def _judged(directory: Path) -> tuple[Found | Unusable, bool]:
    """A run by its chunks, and whether the look at them is noted."""
    # Whatever it is busy with, the process dies of it.
    signal.alarm(MOST_S)
    try:
        # Read before the look is noted: what is no table is refused first.
        run = results.read(directory)
        is_noted = results.note_interim_look(directory) is None
        return _found(directory, keep(judge.judge(run))), is_noted
    except Exception as error:  # whatever a file that others wrote may lead to
        return Unusable(shown(directory), _words(error)), True
    finally:
        signal.alarm(0)


def _words(error: Exception) -> str:
    """What went wrong with a run, without its place, which stands beside it."""
    if isinstance(error, TollbarError):
        return shown(error.what)
    if isinstance(error, MemoryError):
        return f"judging it takes more memory than one run may have: {units.show_bytes(MOST_ADDRESSES)}"
    if isinstance(error, OSError):
        return shown(f"cannot be read: {error.strerror or error}")
    return shown(
        f"not as Tollbar writes it ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})"
    )


def _found(directory: Path, kept: KeptJudgement) -> Found:
    said = results.about(directory)
    about = _About.model_validate(said)
    check_characters(about.model_dump(), shown(directory))
    page = directory / "report.html"
    wrong = any(study.wrong_claims for study in kept.studies)
    elsewhere = shown(", ".join(f"{role} on {node.host}" for role, node in about.nodes.items()))
    doubt = Doubt.ELSEWHERE if about.nodes else Doubt.SELF_TEST if wrong else None
    doubts = [(study, doubt or _doubt(study)) for study in kept.studies]
    return Found(
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
        # Machines that are alike may begin the same study in the same second, but not in the same microsecond.
        begun=f"{about.seed} {about.started} {kept.began_s}",
    )


def _doubt(study: KeptStudy) -> Doubt | None:
    if study.noise_floor is not None and study.noise_floor > 1 + study.threshold:
        return Doubt.NOISE
    # Where no core was probed nothing is known of it, and the ratios say that they are noisy.
    alone = study.quiet_share
    if alone == 0 or (alone is not None and 0 < study.cells_measured == study.never_quiet):
        return Doubt.NEVER_QUIET
    return None


def _once(found: Sequence[Found | Unusable]) -> Iterator[Found | Unusable]:
    """Each run once, as it has gone on for longest: a copy of one is no further observation."""
    longest: dict[str, Found] = {}
    for one in found:
        if isinstance(one, Found) and (one.begun not in longest or one.blocks > longest[one.begun].blocks):
            longest[one.begun] = one
    for one in found:
        if isinstance(one, Found) and longest[one.begun] is not one:
            yield Unusable(one.name, f"the same run as {longest[one.begun].name}")
        else:
            yield one
