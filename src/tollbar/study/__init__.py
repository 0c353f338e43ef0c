"""Studies: one question, the choices that answer it, the varied coordinates, and earlier publications.

A study is a TOML file. It becomes a frozen `Study` here, once, and nothing after this checks it again.

Tollbar's own studies are in `studies/`; a folder of files there is a set that runs as one. The set `sources` runs the
published comparisons as they were run, and `sources-short` only the cells that their claims are about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from tollbar.catalog.sources import Publication, sources
from tollbar.core.errors import TollbarError, nearest
from tollbar.core.files import is_file, is_folder, read_text
from tollbar.core.patterns import matches
from tollbar.core.wire import is_plain
from tollbar.study.asking import ASKED, Question, needs_server, of_words, performing
from tollbar.study.beginning import begun
from tollbar.study.candidates import of_candidates
from tollbar.study.figures import Figure, Series
from tollbar.study.study_file import read
from tollbar.study.values import (
    NOT_SETTINGS,
    STATISTIC_OF,
    USUAL_USERS,
    Amount,
    Claim,
    Coordinates,
    Cost,
    CrossTable,
    LeaveOut,
    Load,
    Measure,
    Statistic,
    Study,
    default_load,
    is_paced,
)
from tollbar.study.words import choice_homes, choices_of, coordinates_of

__all__ = [
    "ASKED",
    "AS_PUBLISHED",
    "MOST_STUDIES",
    "NOT_SETTINGS",
    "SETS_OF_SOURCES",
    "STATISTIC_OF",
    "USUAL_USERS",
    "Amount",
    "Claim",
    "Coordinates",
    "Cost",
    "CrossTable",
    "Figure",
    "LeaveOut",
    "Load",
    "Measure",
    "Publication",
    "Question",
    "Series",
    "Statistic",
    "Study",
    "begun",
    "choice_homes",
    "choices_of",
    "coordinates_of",
    "default_load",
    "is_named",
    "is_paced",
    "load",
    "matches",
    "members",
    "needs_server",
    "of_candidates",
    "of_words",
    "performing",
    "read",
    "shipped",
    "sources",
]


MOST_NAME_BYTES = 200
"""Limit of a study's name: a file's name has 255 bytes, and the directory of a run needs some for the time."""

MOST_STUDIES = 100
"""Limit of the studies of a run, three times all that ship; none larger is planned or read.

To judge and print this number takes 4 s.
"""
MOST_LETTERS = 1 << 20
"""Limit of the letters of all studies of a run, five times those of all that ship; a run keeps their families too."""

AS_PUBLISHED = "sources"
"""Set that runs the published comparisons as they were run: every cell of studies that draw their source's figures.

Of other studies of a source it has the cells of claims only.
"""
SHORT = "sources-short"
"""Set with a selection of the same: the cells that claims are about, without the loads and cells of figures alone."""
SETS_OF_SOURCES = (AS_PUBLISHED, SHORT)


def load(names: Sequence[str]) -> tuple[Study, ...]:
    """Return the studies of these names, sets, files or folders, in that order.

    A member of a set is called by its own name, or by the set's and its own: `tls-today/tls-post-quantum`. Raises
    TollbarError before anything starts.
    """
    found: list[Study] = []
    for one in (study for name in names for study in _load_one(name)):
        found.append(one)
        if len(found) > MOST_STUDIES:
            hint = "name fewer at once, and measure the others as another run"
            raise TollbarError(f"more than {MOST_STUDIES} studies; a run has at most as many", hint=hint)
        if sum(len(one.text) for one in found) > MOST_LETTERS:
            what = f"the studies have more than {MOST_LETTERS:,} letters together; a run has at most as many"
            raise TollbarError(what, hint="name fewer at once, and measure the others as another run")
    return tuple(found)


def shipped() -> Mapping[str, tuple[Traversable, ...]]:
    """Return the shipped studies: each name with its one file, or the files of its set."""
    root = files(__name__) / "studies"
    found: dict[str, tuple[Traversable, ...]] = {}
    for path in sorted(root.iterdir(), key=lambda p: p.name):
        if path.is_dir():
            found[path.name] = tuple(
                sorted((p for p in path.iterdir() if p.name.endswith(".toml")), key=lambda p: p.name)
            )
        elif path.name.endswith(".toml"):
            found[path.name.removesuffix(".toml")] = (path,)
    return found


def members() -> Mapping[str, tuple[Traversable, ...]]:
    """Return the studies in shipped sets, by the set's name and their own, and by their own alone.

    Several sets may have a member of the same name; a study outside of sets takes precedence.
    """
    found: dict[str, tuple[Traversable, ...]] = {}
    known = shipped()
    for name, paths in known.items():
        for path in paths if (name,) != tuple(_name(path) for path in paths) else ():
            found[f"{name}/{_name(path)}"] = (path,)
            if _name(path) not in known:
                found[_name(path)] = (*found.get(_name(path), ()), path)
    return found


def is_named(name: str) -> bool:
    """Return whether `load` accepts this name: a shipped one, or a file or folder."""
    known = (*SETS_OF_SOURCES, *shipped(), *members())
    return name in known or Path(name).suffix == ".toml" or is_folder(Path(name))


def _name(path: Traversable) -> str:
    return path.name.removesuffix(".toml")


def _load_one(name: str) -> Iterator[Study]:
    known, within = shipped(), members()
    if name == AS_PUBLISHED:
        for one in load([name for source in sources().values() for name in source.studies]):
            yield one if one.figures else _claimed(one)
    elif name == SHORT:
        yield from map(_claimed, load([name for source in sources().values() for name in source.as_run]))
    elif name in known:
        for path in known[name]:
            yield _read(path)
    elif name in within:
        if len(within[name]) > 1:
            of = [full for full in within if full.endswith(f"/{name}")]
            raise TollbarError(
                f"several sets have a study `{name}`; the name needs its set", hint=f"for example {' or '.join(of)}"
            )
        yield _read(within[name][0])
    elif is_folder(Path(name)):
        paths = sorted(Path(name).glob("*.toml"))
        if not paths and is_file(Path(name) / "run.json"):
            hint = f"`tollbar judge {name}` reads it, `tollbar run --resume {name}` continues it"
            raise TollbarError("is a run; it must be a folder of studies", where=name, hint=hint)
        if not paths:
            raise TollbarError(
                "has no study; the folder needs at least one .toml file",
                where=name,
                hint=f"for example `tollbar new digest --output {name}/digests.toml`",
            )
        for path in paths:
            yield _read(path, str(path))
    elif Path(name).suffix == ".toml":
        yield _read(Path(name), name)
    else:
        of_sets = [one for one in within if ("/" in one) == ("/" in name)]
        # A list of all members would be too long.
        raise TollbarError(
            f"no such study: `{name}`",
            hint=nearest(name, [*SETS_OF_SOURCES, *known, *of_sets])
            or nearest(name, known)
            or "`tollbar list studies` lists them",
        )


def _claimed(one: Study) -> Study:
    """Return the study with the cells that its claims are about."""
    return replace(one, measure=replace(one.measure, cells="claimed"))


def _read(path: Traversable, where: str | None = None) -> Study:
    name = _name(path)
    if not is_plain(name) or not name.isprintable() or len(name.encode()) > MOST_NAME_BYTES:
        raise TollbarError(
            f"{str(where or path.name)!r} cannot name a study, because files of its run get the name; it must have at"
            f" most {MOST_NAME_BYTES} bytes, be printable and not only dots, for example `digests.toml`",
            hint="rename the file with `mv`",
        )
    try:
        text = read_text(path) if isinstance(path, Path) else path.read_text("utf-8")
    except TollbarError as error:
        what = f"cannot read the study: {error.what.removeprefix('cannot be read: ')}"
        raise TollbarError(
            what,
            where=where or path.name,
            hint="give a study's name or a .toml file, for example `tollbar run digests`",
        ) from error
    return read(name, text, where=where or path.name)
