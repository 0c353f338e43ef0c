"""Known answers and test keys of a family's folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tollbar.catalog.families.choices import Answer
from tollbar.catalog.families.coordinates import Value
from tollbar.catalog.families.settings import Setting, read_values
from tollbar.core.errors import TollbarError
from tollbar.core.files import is_file, read_text
from tollbar.core.wire import check_characters, read_json

# Twice and four times the largest that ship.
_MOST_BYTES_OF_ANSWER, _MOST_BYTES_OF_KEY = 64 << 10, 16 << 10
_MOST_VALUES_OF_ANSWER = 1_000

# Public test keys that choices of several families use, in addition to the families' own.
SHARED_KEYS = Path(__file__).with_name("keys")


class WireAnswer(BaseModel):
    """Known answer with the keys `of`, `is`, `with` and `source`; all other keys are inputs for the runner."""

    model_config = ConfigDict(extra="allow", frozen=True)
    of: str | None = None
    is_: str | None = Field(default=None, alias="is")
    with_: dict[str, Value] = Field(default={}, alias="with")
    source: str | None = None
    file: str | None = None


def key_of(folder: Path, name: str) -> str:
    """Return a test key of the family in this folder, or one that families share. Raises ValueError."""
    own = folder / "keys" / name
    try:
        return read_text(own if is_file(own) else SHARED_KEYS / name, _MOST_BYTES_OF_KEY, pipes=False)
    except TollbarError as error:
        raise ValueError(str(error)) from error


def answer_of(choice: str, wire: WireAnswer, settings: Mapping[str, Setting], folder: Path) -> Answer:
    """Return a known answer of a choice, which may stand in a file of its own. Raises ValueError."""
    # Post-quantum vectors have tens of kilobytes, so they are in separate files with the same keys.
    if wire.file:
        wire = _answer_in(folder / "answers" / wire.file)
    if wire.is_ is None:
        raise ValueError(f'`choice.{choice}.answers`: a known answer needs `is`, for example `is = "ba7816bf"`')
    inputs = {key.replace("-", "_"): str(value) for key, value in (wire.model_extra or {}).items()}
    if wire.of is not None:
        inputs["of"] = wire.of
    return Answer(inputs, wire.is_, read_values(wire.with_, settings))


def _answer_in(path: Path) -> WireAnswer:
    """Return the known answer in a file of its own. Raises ValueError that names the file."""
    try:
        said = read_json(read_text(path, _MOST_BYTES_OF_ANSWER, pipes=False), _MOST_VALUES_OF_ANSWER)
        check_characters(said, str(path))
        return WireAnswer.model_validate(said)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise ValueError(f"{path}: `{'.'.join(map(str, fault['loc']))}`: {fault['msg']}") from error
    except TollbarError as error:
        raise ValueError(str(error)) from error
    except ValueError as error:
        raise ValueError(f"{path}: not JSON: {error}") from error
