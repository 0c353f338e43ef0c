"""Checks of an agent's answers: its machine may be compromised, and its texts end up in rows and messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, TypeAdapter

from tollbar.core import proc
from tollbar.core.records import Outcome
from tollbar.core.wire import check_characters

Texts = dict[StrictStr, StrictStr]


class _Answer(BaseModel):
    """Base of answers that are tables."""

    model_config = ConfigDict(extra="forbid")


class _Hello(_Answer):
    accounts: Annotated[StrictStr, Field(pattern=r"^[0-9.]+:[0-9]{1,5}$")]
    host: StrictStr
    directory: Annotated[StrictStr, Field(pattern="^/.")]
    core: StrictInt | None
    boot_id: StrictStr
    fingerprint: dict[StrictStr, Any]


class _Found(_Answer):
    versions: Texts
    programs: Texts
    tools: dict[StrictStr, Texts]
    places: Texts


class _Endpoint(_Answer):
    address: StrictStr
    port: StrictInt
    ports: dict[StrictStr, StrictInt]


class _Started(_Answer):
    pid: StrictInt
    said: dict[StrictStr, Any]
    files: list[dict[StrictStr, Any]]


class _Proved(_Answer):
    proved: Texts
    digests: Texts


_TABLES = {"hello": _Hello, "find": _Found, "endpoint": _Endpoint, "start": _Started, "prove": _Proved}
_TEXTS = ("fault", "complaint", "end", "stop")
"""Requests whose answer is a text from a server, or null."""
_ADAPTERS: Mapping[str, TypeAdapter[Any]] = {
    **{what: TypeAdapter(table) for what, table in _TABLES.items()},
    **{what: TypeAdapter(StrictStr | None) for what in _TEXTS},
    "log": TypeAdapter(StrictStr),
}


def answer(what: str, said: Any, where: str) -> Any:
    """Return the checked answer to this request.

    Raises ValueError for another kind of answer, and TollbarError for a text that would control a terminal.
    """
    if what in _ADAPTERS:
        _ADAPTERS[what].validate_python(said)
    if what in _TABLES:
        check_characters(said, where)
    return printable(said) if what in _TEXTS and said is not None else said


def why_not(said: Any) -> tuple[Outcome, str]:
    """Return outcome and reason of a failed start. Raises ValueError or TypeError for another kind of answer."""
    outcome, reason = said
    if (found := Outcome(outcome)) is Outcome.OK:
        raise ValueError(outcome)
    return found, printable(reason)


def printable(said: object) -> str:
    """Return a reason in one line, without characters that control a terminal."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in " ".join(str(said).split()))


def lacks_digest(proved: Mapping[str, str], digests: Mapping[str, str], *, needs_one: bool) -> str | None:
    """Return a loaded library without a digest, or another file with one; None: they match.

    Other files are refused, because the lab would read them. `needs_one`: the server must have loaded a libcrypto.
    """
    found: dict[str | None, list[str]] = {}
    for path in sorted(digests):
        found.setdefault(proc.tls_library(path), []).append(path)
    if None in found:
        return found[None][0]
    for name in ("ssl", "crypto"):
        loaded = proved.get(f"lib{name}", "")
        if loaded != " and ".join(found.get(name, [])) or (name == "crypto" and needs_one and not loaded):
            return loaded or f"lib{name}"
    return None
