"""Description of a run in `run.json`, checked before any other file of it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, FailFast, Field, ValidationError

from tollbar.core.errors import MOST_OF_PATH, TollbarError, printable, without_values
from tollbar.core.files import is_file, is_folder
from tollbar.core.machine import NOT_STATED
from tollbar.core.method import FIRST
from tollbar.core.records.load import MOST
from tollbar.results.database import SPACES
from tollbar.results.directory import check_files, read_text
from tollbar.study import MOST_STUDIES
from tollbar.study.values import Cells

SCHEMA = 6
# Format that is read with today's names, and cannot be resumed.
FORMAT_5 = 5
# Formats that are no longer read, with the reason.
_NO_CHUNKS = "its trials have no chunks to be judged"
EARLIER = {
    1: _NO_CHUNKS,
    2: _NO_CHUNKS,
    3: "its cells are named by the versions of their libraries",
    4: "its chunks have no probes, so that nothing tells which of them were quiet",
}


Count = Annotated[int, Field(ge=0, le=MOST)]
Finite = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Name = TypeVar("Name")
MOST_NAMES = 1000
MOST_LIBRARIES = 100
"""Limit of the `--library` options of a run: a process opens each, and a run may be a stranger's."""
# Limit of the letters of a printed version.
MOST_OF_VERSION = 40


def _few(said: object) -> object:
    if isinstance(said, dict) and len(said) > MOST_NAMES:
        raise ValueError(f"must have at most {MOST_NAMES:,} entries")
    return said


def _few_studies(said: object) -> object:
    if isinstance(said, dict) and len(said) > MOST_STUDIES:
        raise ValueError(f"{len(said):,} studies; a run has at most {MOST_STUDIES}")
    return said


def _without_nul(said: str) -> str:
    if "\0" in said:
        raise ValueError("must be a path, without a NUL character")
    return said


def _named_as_printed(said: dict[str, str]) -> dict[str, str]:
    if any(without_values(url) != name for name, url in said.items()):
        raise ValueError("must have each URL by its name without values")
    return said


# A resumed run opens these paths, and Python raises ValueError for one with a NUL character.
PathText = Annotated[str, Field(max_length=MOST_OF_PATH), AfterValidator(_without_nul)]
# Pydantic keeps an error of a kB and more for each wrong item; a real run has dozens of items.
Named = Annotated[dict[str, Name], BeforeValidator(_few)]
Listed = Annotated[list[Name], FailFast()]


class _Said(BaseModel):
    """Table of `run.json`."""

    model_config = ConfigDict(strict=True, defer_build=True)


class _Look(_Said):
    """Size of a study when it was judged."""

    blocks: Count
    trials: Count


class _Entry(_Said):
    """Entry of a study; earlier versions wrote fewer keys."""

    interim_looks: Listed[_Look]
    blocks: Annotated[Count, Field(gt=0)] = 1
    precision: Finite | None = None
    longest_s: Finite | None = None
    cells: Cells = "all"


class _Receipt(_Said):
    """Receipt of a provider; its other keys are printed unchanged."""

    name: str


class _Machine(_Said):
    """Fingerprint of a processor; its other keys are printed unchanged."""

    cpu: str


class _Node(_Said):
    """Machine of a role."""

    address: str
    host: str
    fingerprint: _Machine
    is_simulated: bool


class _Upgrade(_Said):
    """Question of an upgrade, kept so that its answer can be printed when the run is resumed."""

    old: PathText
    new: PathText
    families: Listed[str] = []
    folder: PathText
    """Folder in which the command was given, because paths of the two builds may be relative to it."""
    within_s: Finite
    fail_above: Finite | None = None


class _About(_Said):
    """Keys that `run.json` must have for a run to be read."""

    command: Listed[str]
    libraries: Annotated[Listed[PathText], Field(max_length=MOST_LIBRARIES)] = []
    seed: int
    started: str
    fingerprint: dict[str, Any]
    providers: Named[_Receipt]
    servers: Named[dict[str, Any]]
    broken: Named[str]
    studies: Annotated[dict[str, _Entry], BeforeValidator(_few_studies)]
    tollbar: str = NOT_STATED
    resumed_with: Listed[str] = []
    best_probe_ns: Positive | None = None
    chain_ns: Positive | None = None
    method: int = FIRST
    nodes: Named[_Node] = {}
    roles: Named[str] = {}
    upgrade: _Upgrade | None = None
    urls: Annotated[Named[PathText], AfterValidator(_named_as_printed)] = {}
    """URLs of the user's servers whose queries have values, by their printed names: a resumed run needs them."""


def about(directory: Path) -> dict[str, Any]:
    """Return the content of `run.json`. Raises TollbarError if this is not a run."""
    path = directory / "run.json"
    try:
        check_files(directory)
        said = json.loads(read_text(path))
    except FileNotFoundError as error:
        runs = (path for path in (directory.iterdir() if is_folder(directory) else ()) if is_file(path / "run.json"))
        newest = max(runs, key=lambda path: path.name, default=None)
        hint = "give a directory that `tollbar run` made, for example `runs/2026-11-21-101500-digests`"
        hint = f"the newest run in it is `{printable(str(newest))}`" if newest else hint
        raise TollbarError(
            "is not a run; a run's directory must have a run.json", where=str(directory), hint=hint
        ) from error
    except RecursionError as error:
        raise TollbarError("not as Tollbar writes it: nested too deeply", where=str(path)) from error
    except NotADirectoryError as error:
        hint = "give a directory that `tollbar run` made, for example `runs/2026-11-21-101500-digests`"
        raise TollbarError("is a file; it must be a run's directory", where=str(directory), hint=hint) from error
    except (OSError, ValueError) as error:
        raise TollbarError(f"cannot be read: {error}", where=str(path)) from error
    schema = said.get("schema") if isinstance(said, dict) else None
    if isinstance(schema, int) and schema in EARLIER:
        version = str(said.get("tollbar", NOT_STATED))[:MOST_OF_VERSION]
        raise TollbarError(
            f"made by Tollbar before version {FORMAT_5} of the run format: {EARLIER[schema]}",
            where=str(directory),
            hint=f"measure again, or judge it with the version that made it: {version}",
        )
    hint = "it was made by another version of Tollbar, or by something else"
    if schema not in (FORMAT_5, SCHEMA):
        raise TollbarError(f"must have schema {FORMAT_5} or {SCHEMA} of a run", where=str(path), hint=hint)
    assert isinstance(said, dict)
    if schema == FORMAT_5:
        said = _looks_renamed(said, "looks", "interim_looks")
    try:
        _About.model_validate(said)
    except ValidationError as error:
        what = f"not as Tollbar writes it: {why(error)}"
        raise TollbarError(what, where=str(path), hint=hint) from error
    return dict(said)


def refuse_resumption(directory: Path, said: Mapping[str, Any]) -> None:
    """Raise TollbarError for a run of an earlier format, which can be read and not written."""
    if said["schema"] != SCHEMA:
        what = f"has format {said['schema']} of an earlier version, which can be read but not resumed"
        raise TollbarError(what, where=str(directory), hint="begin a new run with `tollbar run`")


def as_written(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of `run.json` for the result of `about`, with the names of its format."""
    return _looks_renamed(said, "interim_looks", "looks") if said["schema"] == FORMAT_5 else said


def _looks_renamed(said: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    entries = said.get("studies")
    if not isinstance(entries, dict):
        return dict(said)
    renamed = {
        name: {new if key == old else key: value for key, value in entry.items()} if isinstance(entry, dict) else entry
        for name, entry in entries.items()
    }
    return {**said, "studies": renamed}


def why(error: ValueError | RecursionError) -> str:
    """Return in one line the fault of a document."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, ValidationError):
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        key = ".".join(str(part) for part in fault["loc"])
        return f"`{key}`: {fault['msg']}".translate(SPACES)
    return str(error).splitlines()[0]
