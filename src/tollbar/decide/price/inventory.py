"""Reader of an inventory of cryptography: a CycloneDX document, version 1.6 or 1.7, in JSON.

The file is untrusted data. Nothing in it is run, and its texts are printed without control characters; an asset that
violates the specification becomes an asset with its fault. Memory is used only for the keys that are read here: msgspec
skips all others, and each count has a limit that ends the reading at once.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import fields

from tollbar.core.errors import TollbarError
from tollbar.core.files import read_bytes
from tollbar.decide.price import formats, keys, limits
from tollbar.decide.price.parts import (
    KEYS,
    NOTHING,
    Asset,
    fault_of,
    is_nothing,
    made_of,
    places_of,
    platform_of,
    scalar,
    shown,
)
from tollbar.results.reading import uncollected

VERSIONS = ("1.6", "1.7")
STANDARD_INPUT = Path("-")
_PIECE_BYTES = 1024 * 1024

Kind = TypeVar("Kind")
ASSET = "cryptographic-asset"
# Texts in a place with cryptographic assets.
_SIGNS = (b'"cryptographic-asset"', b'"cryptoProperties"')


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
    found = _Found(where)
    # msgspec passes its objects only data of the file, so the collector is a context variable.
    token = _FOUND.set(found)
    try:
        with uncollected():
            for components in _components(document, found, where):
                found.take(components)
    finally:
        _FOUND.reset(token)
    if key := found.key_twice(content):
        hint = "report it to the authors of the tool that wrote the file"
        raise TollbarError(f"an object has the key `{key}` twice; each key must be unique", where=where, hint=hint)
    found.pass_over("metadata.tools", _decoded(document.metadata, _Metadata, where, "metadata").tools)
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


def _components(document: _Document, found: _Found, where: str) -> Iterator[Sequence[_Component]]:
    """Yield the components of each place of a document that describes the product, place by place."""
    if not is_nothing(document.components):
        yield _decoded(document.components, list[_Component], where)
    subject = _decoded(document.metadata, _Metadata, where, "metadata").component
    if not is_nothing(subject):
        others = found.others
        about = _decoded(subject, _Component, where, "metadata.component")
        # The described product is not a component of itself, unless it is an asset.
        found.others = max(others, found.others - (not found.has_made(about)))
        yield [about]
    if not is_nothing(document.formulation):
        for formula in _decoded(document.formulation, list[_Holder], where, "formulation"):
            yield formula.components or ()
    if not is_nothing(document.declarations):
        targets = _decoded(document.declarations, _Declarations, where, "declarations").targets
        yield (targets and targets.components) or ()


def _document(content: bytes, where: str) -> _Document:
    content = content.removeprefix(codecs.BOM_UTF8)
    _refuse_other_encodings(content, where)
    beginning = content[:1000].lstrip()
    # A table of TOML begins as a list of JSON.
    is_json = beginning[:1] in (b"{", b"[") and not beginning.lstrip(b"[")[:1].isalpha()
    if not is_json and (format_ := formats.of_text(content)):
        raise TollbarError(f"is not CycloneDX; it looks like {format_.what}", where=where, hint=format_.hint)
    if beginning[:1] == b"<":
        raise TollbarError(
            "is XML; it must be JSON", where=where, hint="`cyclonedx convert --output-format json` converts it"
        )
    no_inventory = TollbarError('is not CycloneDX; it needs `"bomFormat": "CycloneDX"`', where=where, hint=formats.HINT)
    try:
        document = _decoded(content, _Document, where)
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


def _recognised(content: bytes, where: str) -> TollbarError | None:
    """Return the error about a JSON document of another format that is known; None: it is not."""
    format_ = formats.of_json(content)
    what = f"is not CycloneDX; it looks like {format_.what}" if format_ else ""
    return TollbarError(what, where=where, hint=format_.hint) if format_ else None


def _version_words(document: _Document) -> str:
    version = scalar(document.spec_version)
    return shown(version) if isinstance(version, str) else "without `specVersion`"


def _refuse_other_encodings(content: bytes, where: str) -> None:
    """Raise TollbarError for a file that is not UTF-8: skipped parts are not decoded, so it would be half read."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _PIECE_BYTES):
            decoder.decode(content[start : start + _PIECE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        hint = "`iconv -f UTF-16 -t UTF-8 FILE` converts UTF-16, for example"
        raise TollbarError("is not UTF-8; it must be JSON in UTF-8", where=where, hint=hint) from error


def _version(document: _Document, where: str) -> str:
    version = scalar(document.spec_version)
    if version in VERSIONS:
        return str(version)
    if isinstance(version, int | float):
        what = f"`specVersion` is the number {version}; it must be a text"
        raise TollbarError(what, where=where, hint=f'for example `"specVersion": "{VERSIONS[0]}"`')
    # To convert one adds no cryptography to it.
    what = f"CycloneDX {_version_words(document)} is not supported"
    raise TollbarError(what, where=where, hint=formats.HINT)


def _about(document: _Document) -> str | None:
    """Return the name of the product that the inventory describes."""
    try:
        metadata = msgspec.json.decode(document.metadata, type=_Metadata)
        about = msgspec.json.decode(metadata.component, type=_Named)
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
        is_cut = "truncated" in str(error)
        what = "the file ends too early" if is_cut else str(error).removeprefix("JSON is malformed: ")
        hint = "`python3 -m json.tool FILE` shows the line"
        raise TollbarError(f"not JSON: {what}", where=where, hint=hint) from error
    except RecursionError as error:
        hint = "`cyclonedx validate --input-file FILE` checks it"
        raise TollbarError("is nested too deeply for an inventory", where=where, hint=hint) from error


class _Named(Struct, frozen=True):
    name: Raw = NOTHING


class _Metadata(Struct):
    component: Raw = NOTHING
    tools: Raw = NOTHING


class _Document(Struct, rename="camel"):
    bom_format: Raw = NOTHING
    spec_format: Raw = NOTHING
    spec_version: Raw = NOTHING
    metadata: Raw = Raw(b"{}")
    components: Raw = NOTHING
    formulation: Raw = NOTHING
    declarations: Raw = NOTHING
    annotations: Raw = NOTHING
    vulnerabilities: Raw = NOTHING

    def __post_init__(self) -> None:
        if is_nothing(self.metadata):
            self.metadata = Raw(b"{}")


class _Component(Struct):
    """A component, of which no more is kept than is asked for later."""

    name: Raw = NOTHING
    type: Raw = NOTHING
    ref: Raw = msgspec.field(default=NOTHING, name="bom-ref")
    crypto: Raw = msgspec.field(default=NOTHING, name="cryptoProperties")
    evidence: Raw = NOTHING
    pedigree: Raw = NOTHING
    properties: Raw = NOTHING
    components: tuple[_Component, ...] | None = ()

    def __post_init__(self) -> None:
        _FOUND.get().look(self)
        # Empty fields keep the object as small as its content.
        self.name = self.type = self.ref = self.crypto = self.evidence = self.pedigree = self.properties = NOTHING


class _Holder(Struct):
    """A part of a document that has components."""

    components: tuple[_Component, ...] | None = ()

    def __post_init__(self) -> None:
        _FOUND.get().count_holder()


class _Declarations(Struct):
    targets: _Holder | None = None


_KEYS = tuple(
    dict.fromkeys(
        [
            *(one.encode_name for kind in (_Document, _Component, _Metadata, _Declarations) for one in fields(kind)),
            *KEYS,
        ]
    )
)


class _Found:
    """The assets that were met so far."""

    def __init__(self, where: str) -> None:
        self.assets: list[Asset] = []
        self.by_reference: dict[str, Asset] = {}
        self.twice: set[str] = set()
        self.others = 0
        self.unread: dict[str, None] = {}
        self._where = where
        self._components = self._holders = self._made_assets = self._places = self._followed = 0
        self._references: set[str] = set()
        self._texts: dict[str, str] = {}
        self._said: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}
        # Assets of each component that is still referenced, by its identity.
        self._made: dict[int, list[Asset]] = {}
        self._names: dict[int, str] = {}

    def look(self, component: _Component) -> None:
        """Keep the facts of a component as soon as it is read; its inner components come before it.

        Raises TollbarError.
        """
        self._components += 1
        self._refuse_more(self._components, limits.MOST_COMPONENTS, "components")
        self.pass_over("pedigree", component.pedigree)
        # Whatever has a reference counts, be it a library or an asset with a fault.
        reference = str(scalar(component.ref) or "")
        if reference:
            (self.twice if reference in self._references else self._references).add(reference)
        if component.components:
            self._names[id(component)] = shown(str(scalar(component.name) or ""))
        if is_nothing(component.crypto) and scalar(component.type) != ASSET:
            self.others += 1
            return
        try:
            made = self._assets(component)
            if reference:
                self.by_reference[reference] = made[0]
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            self._count_asset()
            name = scalar(component.name)
            made = [Asset("unknown", shown(name) if isinstance(name, str) else "no name", fault=str(error))]
        self._made[id(component)] = made

    def count_holder(self) -> None:
        """Count a part of a document that has components, or may have. Raises TollbarError."""
        self._holders += 1
        self._refuse_more(self._holders, limits.MOST_COMPONENTS, "parts of formulations")

    def pass_over(self, place: str, raw: Raw) -> None:
        """Note a place that is not read, if it has cryptographic assets."""
        if is_nothing(raw):
            return
        content = bytes(memoryview(raw))
        if any(sign in content for sign in _SIGNS):
            self.unread[place] = None

    def has_made(self, component: _Component) -> bool:
        """Return true if a component that is still referenced is an asset."""
        return id(component) in self._made

    def take(self, components: Sequence[_Component]) -> None:
        """Append the kept assets in order; one without a place gets its parent component as its place."""
        ahead: list[tuple[Sequence[_Component], str]] = [(components, "")]
        while ahead:
            inner, parent = ahead.pop()
            for one in inner:
                for asset in self._made.pop(id(one), ()):
                    self.assets.append(replace(asset, places=(parent,)) if parent and not asset.places else asset)
                if one.components:
                    ahead.append((one.components, self._names[id(one)]))

    def _assets(self, component: _Component) -> list[Asset]:
        """Return the assets of a component: one, or for a protocol one for each cipher suite and group."""
        name = scalar(component.name) if not is_nothing(component.name) else ""
        if name is None:
            raise ValueError("`name` must be a text of at most 64 KiB")
        if is_nothing(component.crypto):
            raise ValueError("`cryptoProperties` is missing")
        places = () if is_nothing(component.evidence) else places_of(component.evidence)
        platform = platform_of(places)
        made = []
        for kind, own, said, refers in made_of(component.crypto, shown(str(name)) or "no name", component.properties):
            self._count_asset()
            # Each asset of a protocol has all of its places, so a small file may have millions of pairs.
            self._places += len(places)
            self._refuse_more(self._places, limits.MOST_PLACES, "places where assets occur")
            texts = self._once({key: self._shared(text) for key, text in said.items() if text})
            to = {key: refs for key, refs in refers.items() if refs}
            made.append(Asset(kind, own, texts, to, places, platform))
        # All groups of a suite share one object of references.
        several = {id(refs): len(refs) for one in made for refs in one.refers.values()}
        self._followed += sum(several.values())
        self._refuse_more(self._followed, limits.MOST_REFERENCES, "references")
        return made

    def key_twice(self, content: bytes) -> str | None:
        """Return a key that an object of the text has twice; None: none is repeated.

        Raises TollbarError.
        """
        try:
            return keys.twice(content, _KEYS)
        except keys.TooManyError:
            raise self._more(limits.MOST_KEYS, "objects and keys") from None

    def _shared(self, text: str) -> str:
        """Return the part of a text that is read, as one object for all assets that have it."""
        text = text[: limits.MOST_OF_PROPERTY]
        return self._texts.setdefault(text, text)

    def _once(self, said: Mapping[str, str]) -> Mapping[str, str]:
        """Return the properties as one object for all assets that have them, so that they are looked up once."""
        return self._said.setdefault(tuple(said.items()), said)

    def _count_asset(self) -> None:
        self._made_assets += 1
        self._refuse_more(self._made_assets, limits.MOST_ASSETS, "assets")

    def _refuse_more(self, count: int, most: int, what: str) -> None:
        if count > most:
            raise self._more(most, what)

    def _more(self, most: int, what: str) -> TollbarError:
        hint = "price it in parts, for example `jq '.components |= .[:1000]' FILE | tollbar price -`"
        return TollbarError(f"has more than {most:,} {what}, the limit", where=self._where, hint=hint)


_FOUND: ContextVar[_Found] = ContextVar("_FOUND")
