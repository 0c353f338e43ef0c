"""A study: one question, the choices that answer it, what varies, and what was published before.

A study is a TOML file. It becomes a frozen `Study` here, once, and nothing after this checks it again.
Tollbar's own studies are in `studies/`; a folder of files there is a set that runs as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from tollbar.errors import TollbarError, unknown
from tollbar.study.asking import ASKED, Question, of_words
from tollbar.study.definition import (
    NOT_SETTINGS,
    STATISTIC_OF,
    Claim,
    Coordinates,
    Cost,
    CrossTable,
    LeaveOut,
    Load,
    Measure,
    Statistic,
    Study,
    matches,
)
from tollbar.study.reading import read
from tollbar.study.url import DEFAULT_USERS, address_of, of_url, refuse_others

__all__ = [
    "ASKED",
    "DEFAULT_USERS",
    "NOT_SETTINGS",
    "STATISTIC_OF",
    "Claim",
    "Coordinates",
    "Cost",
    "CrossTable",
    "LeaveOut",
    "Load",
    "Measure",
    "Question",
    "Statistic",
    "Study",
    "address_of",
    "load",
    "matches",
    "of_url",
    "of_words",
    "read",
    "refuse_others",
    "shipped",
]


def load(names: Sequence[str]) -> tuple[Study, ...]:
    """The studies of these names, sets or files, in that order. Raises TollbarError before anything starts."""
    return tuple(study for name in names for study in _load_one(name))


def shipped() -> Mapping[str, tuple[Traversable, ...]]:
    """The studies that come with Tollbar: a name, and the one file or the set of files behind it."""
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


def _load_one(name: str) -> Iterator[Study]:
    known = shipped()
    if name in known:
        for path in known[name]:
            yield read(path.name.removesuffix(".toml"), path.read_text("utf-8"), where=path.name)
        return
    path = Path(name)
    if not path.suffix == ".toml":
        raise unknown("study", name, known)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TollbarError(
            f"cannot read the study: {error}", where=name, hint="give a study's name or a .toml file"
        ) from error
    yield read(path.stem, text, where=name)
