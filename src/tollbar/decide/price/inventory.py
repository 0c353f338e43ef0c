"""Reader of an inventory of cryptography: a CycloneDX document, version 1.6 or 1.7, in JSON.

The file is untrusted data. Nothing in it is run, and its texts are printed without control characters; an asset that
violates the specification becomes an asset with its fault. Memory is used only for the keys that are read here: msgspec
skips all others, and each count has a limit that ends the reading at once.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Raw

from tollbar.core.errors import TollbarError
from tollbar.core.files import read_bytes
from tollbar.decide.price import formats, limits
from tollbar.decide.price.components import (
    FOUND,
    BomComponent,
    BomDeclarations,
    BomDocument,
    BomMetadata,
    ComponentHolder,
    FoundAssets,
    NamedPart,
)
from tollbar.decide.price.parts import (
    Asset,
    fault_of,
    is_nothing,
    scalar,
    shown,
)
from tollbar.results.reading import uncollected

VERSIONS = ("1.6", "1.7")
STANDARD_INPUT = Path("-")
_PIECE_BYTES = 1024 * 1024

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Inventory:
    """Assets and components that an inventory lists."""

    path: Path
    version: str
    """Version of CycloneDX."""
    of: str | None
    """Name of the product that the inventory describes."""
    assets: tuple[Asset, ...]
    by_reference: Mapping[str, Asset]
    """By its `bom-ref`, where that is one component's alone."""
    twice: frozenset[str]
    """Ambiguous `bom-ref`s: several components have one, though CycloneDX requires each once."""
    others: int
    """Components that are no cryptographic assets."""
    unread: tuple[str, ...] = ()
    """Places with cryptographic assets that are not read, because they are no part of the described product."""


def read(path: Path) -> Inventory:
    """Read the inventory in this file; `-` is standard input.

    Raises TollbarError: one line with the fault.
    """
    return parse(_of_standard_input() if path == STANDARD_INPUT else read_bytes(path, limits.MOST_BYTES), path)


def _of_standard_input() -> bytes:
    try:
        # A shell closes it by `<&-`.
        content = sys.stdin.buffer.read(limits.MOST_BYTES + 1) if sys.stdin else b""
    except OSError as error:
        hint = "`tollbar price - <FILE` reads a file"
        raise TollbarError(f"cannot be read: {error.strerror}", where="standard input", hint=hint) from error
    if len(content) > limits.MOST_BYTES:
        what = f"is larger than {limits.MOST_BYTES // 1024**2} MiB, the limit"
        raise TollbarError(what, where="standard input", hint="price it in parts")
    return content


def parse(content: bytes, path: Path) -> Inventory:
    """Return the inventory in these bytes; errors name `path`.

    Raises TollbarError as `read` does.
    """
    where = "standard input" if path == STANDARD_INPUT else str(path)
    document = _document(content, where)
    version = _version(document, where)
    found = FoundAssets(where)
    # msgspec passes its objects only data of the file, so the collector is a context variable.
    token = FOUND.set(found)
    try:
        with uncollected():
            for components in _components(document, found, where):
                found.take(components)
    finally:
        FOUND.reset(token)
    if key := found.key_twice(content):
        hint = "report it to the authors of the tool that wrote the file"
        raise TollbarError(f"an object has the key `{key}` twice; each key must be unique", where=where, hint=hint)
    found.pass_over("metadata.tools", _decoded(document.metadata, BomMetadata, where, "metadata").tools)
    found.pass_over("annotations", document.annotations)
    found.pass_over("vulnerabilities", document.vulnerabilities)
    alone = {reference: one for reference, one in found.by_reference.items() if reference not in found.twice}
    return Inventory(
        path,
        version,
        _about(document),
        tuple(found.assets),
        alone,
        frozenset(found.twice),
        found.others,
        tuple(found.unread),
    )


def _components(document: BomDocument, found: FoundAssets, where: str) -> Iterator[Sequence[BomComponent]]:
    """Yield the components of each place of a document that describes the product, place by place."""
    if not is_nothing(document.components):
        yield _decoded(document.components, list[BomComponent], where)
    subject = _decoded(document.metadata, BomMetadata, where, "metadata").component
    if not is_nothing(subject):
        others = found.others
        about = _decoded(subject, BomComponent, where, "metadata.component")
        # The described product is not a component of itself, unless it is an asset.
        found.others = max(others, found.others - (not found.has_made(about)))
        yield [about]
    if not is_nothing(document.formulation):
        for formula in _decoded(document.formulation, list[ComponentHolder], where, "formulation"):
            yield formula.components or ()
    if not is_nothing(document.declarations):
        targets = _decoded(document.declarations, BomDeclarations, where, "declarations").targets
        yield (targets and targets.components) or ()


def _document(content: bytes, where: str) -> BomDocument:
    content = content.removeprefix(codecs.BOM_UTF8)
    _refuse_other_encodings(content, where)
    beginning = content[:1000].lstrip()
    # A table of TOML begins as a list of JSON.
    is_json = beginning[:1] in (b"{", b"[") and not beginning.lstrip(b"[")[:1].isalpha()
    if not is_json and (format_ := formats.of_text(content)):
        raise TollbarError(f"is not CycloneDX; it looks like {format_.what}", where=where, hint=format_.hint)
    if not is_json and beginning[:1] != b"[" and not _is_value(content):
        format_ = formats.of_no_json(content)
        raise TollbarError(f"is {format_.what}; it must be JSON", where=where, hint=format_.hint)
    no_inventory = TollbarError('is not CycloneDX; it needs `"bomFormat": "CycloneDX"`', where=where, hint=formats.HINT)
    try:
        document = _decoded(content, BomDocument, where)
    except _NotAsWanted as error:
        raise _recognised(content, where) or no_inventory from error
    if scalar(document.bom_format) == "CycloneDX":
        return document
    if scalar(document.spec_format) == "CycloneDX":
        hint = f"{formats.READ}: `cdxgen --spec-version 1.7` writes it"
        raise TollbarError(f"CycloneDX {_version_words(document)} is not supported", where=where, hint=hint)
    if scalar(document.bom_format) == "CBOM":
        what = "`bomFormat` is `CBOM`, IBM's format before CycloneDX 1.6, which is not supported"
        raise TollbarError(what, where=where, hint=formats.HINT)
    raise _recognised(content, where) or no_inventory


def _is_value(content: bytes) -> bool:
    """Return whether the file is a number, a text or another JSON value that is no object."""
    try:
        msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return False
    return True


def _recognised(content: bytes, where: str) -> TollbarError | None:
    """Return the error about a JSON document of another format that is known; None: it is not."""
    format_ = formats.of_json(content)
    what = f"is not CycloneDX; it looks like {format_.what}" if format_ else ""
    return TollbarError(what, where=where, hint=format_.hint) if format_ else None


def _version_words(document: BomDocument) -> str:
    version = scalar(document.spec_version)
    return shown(version) if isinstance(version, str) else "without `specVersion`"


def _refuse_other_encodings(content: bytes, where: str) -> None:
    """Raise TollbarError for a file that is not UTF-8: skipped parts are not decoded, so it would be half read."""
    if format_ := formats.of_bytes(content):
        raise TollbarError(f"is {format_.what}; it must be JSON in UTF-8", where=where, hint=format_.hint)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _PIECE_BYTES):
            decoder.decode(content[start : start + _PIECE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        what, hint = formats.not_utf_8(content)
        raise TollbarError(what, where=where, hint=hint) from error


def _version(document: BomDocument, where: str) -> str:
    version = scalar(document.spec_version)
    if version in VERSIONS:
        return str(version)
    if isinstance(version, int | float):
        what = f"`specVersion` is the number {version}; it must be a text"
        raise TollbarError(what, where=where, hint=f'for example `"specVersion": "{VERSIONS[0]}"`')
    # To convert one adds no cryptography to it.
    what = f"CycloneDX {_version_words(document)} is not supported"
    raise TollbarError(what, where=where, hint=formats.HINT)


def _about(document: BomDocument) -> str | None:
    """Return the name of the product that the inventory describes."""
    try:
        metadata = msgspec.json.decode(document.metadata, type=BomMetadata)
        about = msgspec.json.decode(metadata.component, type=NamedPart)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    name = scalar(about.name)
    return shown(name) if isinstance(name, str) and name else None


class _NotAsWanted(TollbarError):
    """The document is JSON, and another kind of value than it is to be."""


def _decoded(content: bytes | Raw, kind: type[Kind], where: str, place: str = "components") -> Kind:
    """Return the JSON of this place as the wanted type.

    Raises TollbarError.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        what = f"not CycloneDX: {fault_of(error, place)}"
        raise _NotAsWanted(what, where=where, hint=formats.HINT) from error
    except msgspec.DecodeError as error:
        after = re.search(r"trailing characters \(byte (\d+)\)", str(error))
        if after and bytes(content)[int(after[1]) - 1 :].lstrip()[:1] in (b"{", b"["):
            hint = f"`head -n 1 FILE | tollbar price -` reads the first line; {formats.READ}"
            raise TollbarError("is several JSON documents (JSONL); it must be one", where=where, hint=hint) from error
        is_cut = "truncated" in str(error)
        what = "the file ends too early" if is_cut else str(error).removeprefix("JSON is malformed: ")
        hint = "`python3 -m json.tool FILE` shows the line"
        raise TollbarError(f"not JSON: {what}", where=where, hint=hint) from error
    except RecursionError as error:
        hint = "`cyclonedx validate --input-file FILE` checks it"
        raise TollbarError("is nested too deeply for an inventory", where=where, hint=hint) from error
