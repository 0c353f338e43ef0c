"""Stored judgement: a run's tolls and the evidence for trusting them, as `judged.json` in its directory."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

import tollbar
from tollbar.analysis import ClaimVerdict, Judgement, StudyJudgement, Toll, Verdict
from tollbar.catalog.families import Standing
from tollbar.catalog.libraries import normal
from tollbar.core import units
from tollbar.core.errors import TollbarError
from tollbar.core.files import write_atomically
from tollbar.core.intervals import FEWEST_BLOCKS, Interval, Moments
from tollbar.core.wire import Strict, check_characters, read_json
from tollbar.results import Row
from tollbar.results.directory import JUDGED, MOST_BYTES, RESULTS, RESULTS_FILES, open_file, read_text
from tollbar.study import Study
from tollbar.study.keys import MOST_ITEMS

FILE = JUDGED
# Hexadecimal digits of a digest: enough to distinguish any two states.
_DIGITS = 32
NUMBERS = 6
"""Version of the judged numbers. Raise it by hand in every change that gives the same run other numbers or verdicts."""
# Bytes of a database's first page that SQLite changes when only a look is noted, or a copy is made: its log mode, the
# change counters of the file and of the schema, and the writer's version. See "The Database Header" in its file format.
_HEAD, _OF_THE_LAST_WRITER = 100, (slice(18, 20), slice(24, 28), slice(40, 44), slice(92, 100))
_READ = 1 << 20


# Twenty times the number for a run of a thousand cells.
MOST_VALUES = 400_000
MOST_TOLLS = 12_000
"""Limit of the tolls of a judgement, because each takes some 10 kB in a document: ten times those of a large run."""
MOST_LETTERS = 8 << 20
"""Limit of the letters of a judgement's tolls with their cells: many tolls may name one long cell."""
# A sender may write any number: numbers beyond any cost, which no report can show, are refused.
_MOST = 1e15
Finite = Annotated[float, Field(ge=0, lt=_MOST, allow_inf_nan=False)]
Freedom = Annotated[float, Field(ge=0.1, lt=_MOST, allow_inf_nan=False)]
Scalar = str | bool | Annotated[int, Field(gt=-(2**63), lt=2**63)] | FiniteFloat
"""Coordinate, or fact of a machine."""
# Marks in JSON's text of characters that must be checked.
_SPACES = str.maketrans("\n\u00a0", "  ")
_ESCAPED = re.compile(r"\\[ubfr]")


class NotCurrent(TollbarError):
    """Error: the run keeps no judgement of its results by the present judge; `tollbar report RUN` makes one."""


class Kept(Strict, BaseModel):
    """Table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class KeptCell(NamedTuple):
    """Planned cell."""

    coordinates: dict[str, Scalar]
    """Coordinates, with the provider without a version, as studies name it."""
    provider: str
    """Provider with its version."""
    server_version: str | None
    standing: Standing


class KeptNoise(NamedTuple):
    """Ratio of two measurements of the same cell."""

    ratio: Finite
    low: Finite
    high: Finite
    freedom: Freedom | None
    """Degrees of freedom; None: as many as its blocks have."""
    blocks: int


class KeptToll(NamedTuple):
    """Cell compared with its baseline."""

    cell: int
    over: int
    """Place of the baseline among the study's cells; `cell` is the place of the cell."""
    ratio: Finite | None
    low: Finite | None
    """Low end of the interval; None, like its high end, with too few blocks for an interval."""
    high: Finite | None
    verdict: Verdict
    blocks: int
    reason: str | None
    """Reason why there is no ratio."""
    is_noisy: bool
    """True if the ratio is noisy: the core was quiet too seldom, or nothing probed it."""
    freedom: Freedom | None = None
    """Degrees of freedom of its interval; None: as many as its blocks have."""
    noise: int | None = None
    """Place of its A/A pairs' ratio among the study's `noises`; None: it had no A/A pairs, or in too few blocks."""


class KeptStudy(Kept):
    """Tolls of a study, with the evidence for trusting them."""

    name: str
    question: str
    family: str
    cost: str
    load: str
    """Digest of the requests that users send to a server; empty without a load."""
    threshold: Finite
    confidence: Finite
    noise_floor: Finite | None
    """Distance of the A/A pairs from one, as a ratio above one."""
    quiet_share: Finite | None
    """Share of unselected moments in which the core was quiet; None: no core was probed."""
    cells_measured: int
    never_quiet: int
    """Number of measured cells whose core was quiet in too few blocks."""
    wrong_claims: Annotated[list[str], Field(max_length=MOST_ITEMS)]
    """Claims about a self-test's known work that the measurement contradicts."""
    parameters: dict[str, dict[str, Scalar]]
    """Parameters of each choice."""
    noises: list[KeptNoise] = []
    """Ratios of the A/A pairs, each once."""
    cells: list[KeptCell]
    tolls: list[KeptToll]

    @model_validator(mode="after")
    def _points_at_cells(self) -> Self:
        if not all(0 <= place < len(self.cells) for toll in self.tolls for place in toll[:2]):
            raise ValueError("a toll names a cell that the run does not have")
        if not all(toll.noise is None or 0 <= toll.noise < len(self.noises) for toll in self.tolls):
            raise ValueError("a toll names a noise estimate that the study does not have")
        return self

    @property
    def letters(self) -> int:
        """Number of letters of its tolls as printed, each with its two cells and their parameters."""
        own = len(self.name) + len(self.family) + len(self.cost) + len(self.load)
        settings = {name: len(repr(setting)) for name, setting in self.parameters.items()}
        cells = [
            own + len(repr((*cell,))) + settings.get(str(cell.coordinates.get("choice")), 0) for cell in self.cells
        ]
        return sum(cells[toll.cell] + cells[toll.over] for toll in self.tolls)

    @property
    def agrees(self) -> bool:
        """True if no toll contradicts itself or the threshold."""
        return all(0 < one.low <= one.ratio <= one.high for one in self.noises) and all(
            _agrees(toll, 1 + self.threshold, has_repeats=self.noise_floor is not None) for toll in self.tolls
        )


class KeptJudgement(Kept):
    """The file `judged.json`."""

    numbers: int
    """Version of the judged numbers."""
    of: str
    """Digest of the judged results."""
    method: int
    """Version of the method that measured them."""
    began_s: Finite | None
    """Start of its first trial, in seconds since the epoch."""
    studies: list[KeptStudy]


def keep(judged: Judgement) -> KeptJudgement:
    """Write the judgement of a run into its directory if that is writable, and return it.

    Raises TollbarError if a number of it cannot be from a run.
    """
    trials = [trial for one in judged.studies for row in one.rows for trial in row.all_trials]
    try:
        kept = KeptJudgement(
            numbers=NUMBERS,
            of=state(judged.run.directory),
            method=judged.run.method,
            began_s=min((trial.started_s for trial in trials), default=None),
            studies=[_study(one) for one in judged.studies],
        )
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(map(str, fault["loc"]))
        what = f"not as Tollbar writes it: `{key}` of its judgement: {fault['msg']}"
        raise TollbarError(what, where=str(judged.run.directory)) from error
    except OSError as error:
        raise TollbarError(f"cannot be read: {error.strerror}", where=str(judged.run.directory)) from error
    # A judgement with text that is not valid Unicode, such as a file's name, is not kept.
    with suppress(OSError, ValueError):
        text = kept.model_dump_json() + "\n"
        # A run with a larger judgement is refused, also by commands that judge it themselves.
        if len(text.encode()) <= MOST_BYTES[FILE]:
            write_atomically(judged.run.directory / FILE, text)
    return kept


def read_kept(directory: Path) -> KeptJudgement:
    """Return the judgement that a run keeps, if it covers all its results and is by the present judge.

    Raises NotCurrent if it is missing or outdated, OSError if a file cannot be read, and TollbarError if it has too
    many tolls, or contains a text that would control a terminal.
    """
    try:
        text = read_text(directory / FILE)
        said = read_json(text, MOST_VALUES)
        if isinstance(said, dict) and said.get("numbers") != NUMBERS:
            raise NotCurrent(f"was judged by another version of Tollbar than {tollbar.__version__}")
        kept = KeptJudgement.model_validate(said)
    except FileNotFoundError:
        raise NotCurrent("is not judged yet") from None
    except ValueError as error:
        raise NotCurrent(f"`{FILE}` is not as Tollbar writes it") from error
    if not _is_of_limited_size(kept.studies):
        # No command makes a smaller one.
        limit = f"{MOST_TOLLS:,} tolls and {units.show_bytes(MOST_LETTERS)} of their names"
        raise TollbarError(f"`{FILE}` is too large to compare; the limit is {limit}", where=str(directory))
    # Fast check on the whole text: most files have no such character.
    if _ESCAPED.search(text) or not text.translate(_SPACES).isprintable():
        check_characters(said, str(directory / FILE))
    if kept.of != state(directory):
        raise NotCurrent("its results have changed since it was judged")
    if not all(study.agrees for study in kept.studies):
        raise NotCurrent(f"`{FILE}` contradicts itself")
    return kept


def _is_of_limited_size(studies: Sequence[KeptStudy]) -> bool:
    tolls, letters = sum(len(study.tolls) for study in studies), sum(study.letters for study in studies)
    return tolls <= MOST_TOLLS and letters <= MOST_LETTERS


def _agrees(toll: KeptToll, margin: float, *, has_repeats: bool) -> bool:
    """Return whether the ratio lies in its interval, and the verdict is one that `decide` can give for it.

    The reach of noise is not kept for each toll, so *unclear* is accepted where the interval alone would decide, never
    the reverse.
    """
    ratio, low, high, verdict = toll.ratio, toll.low, toll.high, toll.verdict
    if ratio is None:
        return low is None and high is None and verdict is Verdict.NOT_MEASURED
    if low is None or high is None:
        return low is None and high is None and verdict is Verdict.UNCLEAR
    carried = {
        Verdict.FREE: 1 / margin <= low and high <= margin,
        Verdict.COSTS: low > margin,
        Verdict.SAVES: high < 1 / margin,
    }
    is_carried = verdict is Verdict.UNCLEAR or (has_repeats and carried.get(verdict, False))
    return low <= ratio <= high and toll.blocks >= FEWEST_BLOCKS and is_carried


def state(directory: Path) -> str:
    """Return a digest of everything that a run's judgement is made from. Raises OSError."""
    digest = hashlib.sha256()
    for path in (directory / "run.json", *sorted(_texts(directory))):
        with os.fdopen(open_file(path), "rb") as file:
            content = file.read()
        # A stranger's file may have a name that is not UTF-8.
        digest.update(os.fsencode(path.relative_to(directory)) + f" {len(content)}\n".encode() + content)
    for name in RESULTS_FILES:
        with suppress(FileNotFoundError):
            _add_pages(digest, directory / name)
    return digest.hexdigest()[:_DIGITS]


def _add_pages(digest: hashlib._Hash, path: Path) -> None:
    """Add the content of a database as bytes, because reading it as rows would take ten times as long."""
    with os.fdopen(open_file(path), "rb") as file:
        if size := os.fstat(file.fileno()).st_size:
            digest.update(f"{path.name} {size}\n".encode())
            head = bytearray(file.read(_HEAD))
            if path.name == RESULTS:
                for part in _OF_THE_LAST_WRITER:
                    head[part] = bytes(len(head[part]))
            digest.update(head)
            while content := file.read(_READ):
                digest.update(content)


def _texts(directory: Path) -> Iterator[Path]:
    return chain(directory.glob("studies/*.toml"), directory.glob("families/*/family.toml"))


def _study(judged: StudyJudgement) -> KeptStudy:
    study, trust = judged.about, judged.trust
    places = {row.key: number for number, row in enumerate(judged.rows)}
    # The toll of a baseline is its repeat's; a cell without a baseline has none.
    tolls = [one for one in judged.tolls if one.row.key != one.against.key]
    known = dict.fromkeys(noise for one in tolls if (noise := _noise(one.noise)))
    noises = {noise: number for number, noise in enumerate(known)}
    return KeptStudy(
        name=study.name,
        question=study.question,
        family=study.family.name,
        cost=study.measure.cost,
        load=_load(study),
        threshold=study.threshold,
        confidence=judged.confidence,
        noise_floor=judged.noise_floor,
        quiet_share=trust.quiet_share,
        cells_measured=trust.cells,
        never_quiet=trust.never_quiet,
        wrong_claims=list(_wrong_claims(judged)) if study.family.is_self_test else [],
        parameters={name: dict(study.family.choices[name].setting) for name in study.choices},
        noises=list(noises),
        cells=[_cell(row) for row in judged.rows],
        tolls=[_toll(one, places, noises) for one in tolls],
    )


def _load(study: Study) -> str:
    if not study.load:
        return ""
    asked = study.load.asked
    # Without defaults, so that a key which is added later leaves the digests of older studies alone.
    said = [(one.name, value) for one in fields(asked) if (value := getattr(asked, one.name)) != one.default]
    return hashlib.sha256(repr(said).encode()).hexdigest()[:_DIGITS]


def _wrong_claims(judged: StudyJudgement) -> Iterator[str]:
    for one in judged.claims:
        if one.verdict in (ClaimVerdict.SMALLER, ClaimVerdict.LARGER, ClaimVerdict.INVERTED):
            yield one.claim.says


def _cell(row: Row) -> KeptCell:
    coordinates = {**row.coordinates, "provider": normal(str(row.coordinates["provider"]))}
    return KeptCell(coordinates, row.provider, row.server_version, row.standing)


def _toll(toll: Toll, places: Mapping[str, int], noises: Mapping[KeptNoise, int]) -> KeptToll:
    cell, over = places[toll.row.key], places[toll.against.key]
    ratio = toll.ratio
    if ratio is None:
        return KeptToll(cell, over, None, None, None, toll.verdict, 0, toll.reason, is_noisy=False)
    # After many looks an interval of few blocks may have any end.
    low, high = (ratio.low, ratio.high) if ratio.is_bounded and ratio.high < _MOST else (None, None)
    is_noisy = ratio.moments is Moments.ALL
    return KeptToll(
        cell,
        over,
        ratio.estimate,
        low,
        high,
        toll.verdict,
        ratio.n,
        toll.reason,
        is_noisy,
        _freedom(ratio),
        noises[noise] if (noise := _noise(toll.noise)) else None,
    )


def _noise(repeats: Interval | None) -> KeptNoise | None:
    if repeats is None or not (repeats.is_bounded and repeats.low > 0 and repeats.high < _MOST):
        return None
    return KeptNoise(repeats.estimate, repeats.low, repeats.high, _freedom(repeats), repeats.n)


def _freedom(of: Interval) -> float | None:
    return max(of.freedom, 0.1) if of.freedom < _MOST else None
