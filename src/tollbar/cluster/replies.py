"""The answers of a node, which may be broken or hostile: each is checked before any part of it is used."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tollbar.cluster.node import BLOCK_BYTES, KEPT_LOG_BYTES, RESULTS
from tollbar.core.errors import TollbarError
from tollbar.core.records.load import MOST
from tollbar.core.wire import Strict
from tollbar.results.directory import MOST_BYTES, MOST_FILES

Reply = TypeVar("Reply")
Count = Annotated[int, Field(ge=0, le=MOST)]


class _Answer(Strict, BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class Progress(_Answer):
    """Progress of a run, as `node.NodeAgent.progress` returns it."""

    run: str | None
    status: Annotated[int, Field(ge=-MOST, le=MOST)] | None
    done: Count
    planned: Count | None
    # Letters of several bytes, and those that the node could not decode, are fewer.
    said: Annotated[str, Field(max_length=KEPT_LOG_BYTES)]


class Results(_Answer):
    """The blocks of the results that are not at home, and the length of all of them."""

    length: Annotated[int, Field(ge=0, le=MOST_BYTES[RESULTS], alias="bytes")]
    digest: str
    blocks: Annotated[dict[int, bytes], Field(max_length=-(-MOST_BYTES[RESULTS] // BLOCK_BYTES))]


class Changed(_Answer):
    """Changes of a run since its copy at home, as `node.NodeAgent.changed` returns them."""

    run: str
    files: Annotated[dict[str, bytes], Field(max_length=MOST_FILES)]
    results: Results


VERSION: TypeAdapter[str | None] = TypeAdapter(str | None)
TRIALS = TypeAdapter(int)
PROGRESS = TypeAdapter(Progress)
CHANGED = TypeAdapter(Changed)


def read(kind: TypeAdapter[Reply], reply: object) -> Reply:
    """Return an answer of this kind. Raises TollbarError for any other."""
    try:
        return kind.validate_python(reply, strict=True)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"]))
        what = f"`{place}`: {fault['msg']}" if place else fault["msg"]
        raise TollbarError(f"sent an invalid answer: {what}") from error
