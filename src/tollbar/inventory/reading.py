"""Reading an inventory of cryptography: a CycloneDX document, version 1.6 or 1.7, in JSON.

The file is data from elsewhere. Nothing of it is run, and its texts are shown without control characters; an asset that
is not as the specification has it becomes an asset with its fault. Memory is used for the keys that are read here:
msgspec passes over all others, and each count has a limit that ends the reading at once.
"""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from tollbar.errors import TollbarError
from tollbar.files import read_bytes

VERSIONS = ("1.6", "1.7")
MOST_BYTES = 64 * 1024 * 1024
"""Limit of a file: ten thousand assets have some 7 MB."""
MOST_ASSETS = 50_000
MOST_COMPONENTS = 250_000
MOST_PLACES = 500_000
MOST_REFERENCES = 1_000_000
"""Limit of the references that assets have to others, all together."""
MOST_OF_ASSET = 4 * 1024 * 1024
"""Limit of the properties of an asset, and of its evidence, in bytes: a protocol of ten thousand cipher suites."""
MOST_OF_SCALAR = 64 * 1024
"""Limit of a component's name and reference in bytes."""
# A name longer than this tells a reader no more, and would push all else off a line.
MOST_LETTERS = 80
# A path is of no use without its end.
MOST_OF_PLACE = 240
# No text is looked at further, and a hundred thousand assets may have one each.
_MOST_OF_PROPERTY = 400
ASSET = "cryptographic-asset"
_PIECE_BYTES = 1024 * 1024

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Asset:
    """One cryptographic asset, as an inventory says it; of a protocol each cipher suite is one."""

    kind: str
    """Its `assetType`; `cipher suite` for one of a protocol."""
    name: str
    said: Mapping[str, str] = field(default_factory=dict)
    """What it says of itself, by property."""
    refers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """References to other assets, by property."""
    places: tuple[str, ...] = ()
    """Where it occurs: `src/keys.py:41`."""
    fault: str | None = None
    """What in it is not as the specification has it."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """What an inventory lists."""

    path: Path
    version: str
    """Of CycloneDX."""
    of: str | None
    """What it is the inventory of."""
    assets: tuple[Asset, ...]
    by_reference: Mapping[str, Asset]
    """By its `bom-ref`, where that is one component's alone."""
    twice: frozenset[str]
    """The `bom-ref` of several components: CycloneDX has each once, and which is meant is not said."""
    others: int
    """Components that are no cryptographic assets."""


def read(path: Path) -> Inventory:
    """The inventory in this file. Raises TollbarError: one line with what is wrong, and what to do about it."""
    return parse(read_bytes(path, MOST_BYTES), path)


def parse(content: bytes, path: Path) -> Inventory:
    """The inventory that these bytes are; `path` is what an error names. Raises TollbarError as `read` does."""
    where = str(path)
    document = _document(content, where)
    version = _version(document, where)
    found = _Found(where)
    # What msgspec makes is given nothing but what is in the file.
    token = _FOUND.set(found)
    try:
        # As an inventory without components has it.
        components = _decoded(document.components, list[_Component], where) if _is_list(document.components) else []
    finally:
        _FOUND.reset(token)
    found.take(components)
    alone = {reference: one for reference, one in found.by_reference.items() if reference not in found.twice}
    return Inventory(path, version, _about(document), tuple(found.assets), alone, frozenset(found.twice), found.others)


class _WithoutControls(dict[int, str]):
    """A blank for each character of control or of separation: a file may have millions of them."""

    def __missing__(self, code: int) -> str:
        plain = " " if unicodedata.category(chr(code))[0] in "CZ" else chr(code)
        # All characters together would take 100 MB.
        return self.setdefault(code, plain) if code < 0x10000 else plain


_WITHOUT_CONTROLS = _WithoutControls()


def shown(text: str, most: int = MOST_LETTERS) -> str:
    """A text from elsewhere as it may stand in a line: without control characters, and of so many letters at most."""
    if len(text) <= most and text.isprintable():
        return " ".join(text.replace("`", "'").split())
    # What is cut below is not looked at.
    text = text[: 4 * most]
    plain = text if text.isprintable() else text.translate(_WITHOUT_CONTROLS)
    plain = " ".join(plain.replace("`", "'").split())
    return f"{plain[: most - 1]}…" if len(plain) > most else plain


def _document(content: bytes, where: str) -> _Document:
    content = content.removeprefix(codecs.BOM_UTF8)
    _refuse_other_encodings(content, where)
    if content[:1000].lstrip()[:1] == b"<":
        raise TollbarError(
            "XML, and JSON is read", where=where, hint="`cyclonedx convert --output-format json` makes it"
        )
    no_inventory = TollbarError("not CycloneDX: it has no `bomFormat` that says so", where=where, hint=_SAMPLE)
    try:
        document = _decoded(content, _Document, where)
    except _NotAsWanted as error:
        raise no_inventory from error
    if _scalar(document.bom_format) != "CycloneDX":
        raise no_inventory
    return document


def _refuse_other_encodings(content: bytes, where: str) -> None:
    """What is passed over is not decoded; a file in another encoding would be half read."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _PIECE_BYTES):
            decoder.decode(content[start : start + _PIECE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise TollbarError("not text in UTF-8", where=where, hint="a CycloneDX inventory in JSON is") from error


def _version(document: _Document, where: str) -> str:
    version = _scalar(document.spec_version)
    if version in VERSIONS:
        return str(version)
    what = f"CycloneDX {shown(version)}" if isinstance(version, str) else "CycloneDX of no `specVersion`"
    hint = f"{' and '.join(VERSIONS)} are read: `cyclonedx convert --output-version v1_6` makes one"
    raise TollbarError(f"{what} has no inventory of cryptography that is known here", where=where, hint=hint)


def _about(document: _Document) -> str | None:
    """What it is the inventory of."""
    try:
        about = msgspec.json.decode(document.metadata, type=_Metadata)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    name = _scalar(about.component.name)
    return shown(name) if isinstance(name, str) and name else None


class _NotAsWanted(TollbarError):
    """The document is JSON, and another kind of value than it is to be."""


_SAMPLE = "`cyclonedx-py environment` makes one of a Python environment, for example"


def _decoded(content: bytes | Raw, kind: type[Kind], where: str) -> Kind:
    """What is asked of this JSON. Raises TollbarError."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        what = f"not CycloneDX: {_fault(error, 'components')}"
        raise _NotAsWanted(what, where=where, hint=_SAMPLE) from error
    except msgspec.DecodeError as error:
        is_cut = "truncated" in str(error)
        what = "the file ends too early" if is_cut else str(error).removeprefix("JSON is malformed: ")
        hint = "`python3 -m json.tool FILE` shows the line"
        raise TollbarError(f"not JSON: {what}", where=where, hint=hint) from error
    except RecursionError as error:
        hint = "`cyclonedx validate` says whether it is an inventory"
        raise TollbarError("nested too deeply for an inventory", where=where, hint=hint) from error


def _fault(error: Exception, holder: str) -> str:
    """What a reader says of a value, with the place first: `holder.curve`."""
    what, _, place = str(error).partition(" - at `$")
    return f"`{shown(holder + place.rstrip('`'))}`: {shown(what, MOST_OF_PLACE)}"


_NOTHING = Raw(b"")


def _is_list(raw: Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b"["


def _scalar(raw: Raw) -> str | int | float | None:
    """A text or number; None for all else, and for what is longer than any name."""
    if not 0 < len(memoryview(raw)) <= MOST_OF_SCALAR:
        return None
    try:
        return msgspec.json.decode(raw, type=str | int | float)
    except (msgspec.MsgspecError, ValueError):
        return None


class _Named(Struct, frozen=True):
    name: Raw = _NOTHING


class _Metadata(Struct):
    component: _Named = _Named()


class _Document(Struct, rename="camel"):
    bom_format: Raw = _NOTHING
    spec_version: Raw = _NOTHING
    metadata: Raw = _NOTHING
    components: Raw = _NOTHING


class _Component(Struct):
    """A component, of which no more is kept than is asked for later."""

    name: Raw = _NOTHING
    type: Raw = _NOTHING
    ref: Raw = msgspec.field(default=_NOTHING, name="bom-ref")
    crypto: Raw = msgspec.field(default=_NOTHING, name="cryptoProperties")
    evidence: Raw = _NOTHING
    components: tuple[_Component, ...] = ()

    def __post_init__(self) -> None:
        _FOUND.get().look(self)
        # Each is as large as what it shows.
        self.name = self.type = self.ref = self.crypto = self.evidence = _NOTHING


Text = str | int | float
"""Tools write numbers where the specification has texts."""


# Parts of a component; what is not read of them may be anything.


class _Algorithm(Struct, rename="camel", frozen=True):
    primitive: Text = ""
    algorithm_family: Text = ""
    parameter_set_identifier: Text = ""
    curve: Text = ""
    elliptic_curve: Text = ""
    mode: Text = ""
    padding: Text = ""
    crypto_functions: tuple[Text, ...] = ()


class _Related(Struct, rename="camel", frozen=True):
    type: Text = ""
    ref: Text = ""


class _Certificate(Struct, rename="camel", frozen=True):
    subject_public_key_ref: Text = ""
    related_cryptographic_assets: tuple[_Related, ...] = ()


class _Material(Struct, rename="camel", frozen=True):
    type: Text = ""
    size: Text = ""
    algorithm_ref: Text = ""
    related_cryptographic_assets: tuple[_Related, ...] = ()


class _Suite(Struct, rename="camel", frozen=True):
    name: Text = ""
    identifiers: tuple[Text, ...] = ()
    algorithms: tuple[Text, ...] = ()
    tls_groups: tuple[Text, ...] = ()
    tls_signature_schemes: tuple[Text, ...] = ()


class _Protocol(Struct, rename="camel", frozen=True):
    type: Text = ""
    version: Text = ""
    cipher_suites: tuple[_Suite, ...] = ()


class _Crypto(Struct, rename="camel", frozen=True):
    asset_type: Text = ""
    algorithm_properties: _Algorithm = _Algorithm()
    certificate_properties: _Certificate = _Certificate()
    related_crypto_material_properties: _Material = _Material()
    protocol_properties: _Protocol = _Protocol()
    oid: Text = ""


class _Occurrence(Struct, rename="camel", frozen=True):
    location: Text = ""
    line: Text | None = None


class _Evidence(Struct, rename="camel", frozen=True):
    occurrences: tuple[_Occurrence, ...] = ()


class _Found:
    """The assets that were met so far."""

    def __init__(self, where: str) -> None:
        self.assets: list[Asset] = []
        self.by_reference: dict[str, Asset] = {}
        self.twice: set[str] = set()
        self.others = 0
        self._where = where
        self._components = self._made_assets = self._places = self._followed = 0
        self._references: set[str] = set()
        self._texts: dict[str, str] = {}
        # Of each component that is still held, by its identity.
        self._made: dict[int, list[Asset]] = {}
        self._names: dict[int, str] = {}

    def look(self, component: _Component) -> None:
        """Keep what a component is, as soon as it was read; those within it were before. Raises TollbarError."""
        self._components += 1
        self._refuse_more(self._components, MOST_COMPONENTS, "components")
        # Whatever has a reference counts, be it a library or an asset with a fault.
        reference = str(_scalar(component.ref) or "")
        if reference:
            (self.twice if reference in self._references else self._references).add(reference)
        if component.components:
            self._names[id(component)] = shown(str(_scalar(component.name) or ""))
        if component.crypto is _NOTHING and _scalar(component.type) != ASSET:
            self.others += 1
            return
        try:
            made = self._assets(component)
            if reference:
                self.by_reference[reference] = made[0]
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            self._count_asset()
            name = _scalar(component.name)
            made = [Asset("unknown", shown(name) if isinstance(name, str) else "no name", fault=str(error))]
        self._made[id(component)] = made

    def take(self, components: Sequence[_Component]) -> None:
        """Put what was kept in order, each with the component that it stands in as its place if it has no other."""
        ahead: list[tuple[Sequence[_Component], str]] = [(components, "")]
        while ahead:
            inner, parent = ahead.pop()
            for one in inner:
                for asset in self._made.pop(id(one), ()):
                    self.assets.append(replace(asset, places=(parent,)) if parent and not asset.places else asset)
                if one.components:
                    ahead.append((one.components, self._names[id(one)]))

    def _assets(self, component: _Component) -> list[Asset]:
        """What a component is: one asset, or of a protocol one for each cipher suite and group."""
        name = _scalar(component.name) if component.name is not _NOTHING else ""
        if name is None:
            raise ValueError("`name`: it must be a text of at most 64 KiB")
        if component.crypto is _NOTHING:
            raise ValueError("`cryptoProperties`: it is missing")
        crypto = _part(component.crypto, _Crypto, "cryptoProperties")
        places = self._places_of(component)
        called = shown(str(name)) or "no name"
        make = _KINDS.get(str(crypto.asset_type))
        if make is None:
            # What a newer version may have, and what is misspelt.
            self._count_asset()
            return [Asset(shown(str(crypto.asset_type)) or "unknown", called, places=places)]
        made = []
        for kind, own, said, refers in make(crypto, called):
            self._count_asset()
            texts = {key: self._shared(text) for key, text in said.items() if text}
            made.append(Asset(kind, own, texts, {key: refs for key, refs in refers.items() if refs}, places))
        # What the assets of a protocol refer to is one and the same for all groups of a suite.
        several = {id(refs): len(refs) for one in made for refs in one.refers.values()}
        self._followed += sum(several.values())
        self._refuse_more(self._followed, MOST_REFERENCES, "references")
        return made

    def _places_of(self, component: _Component) -> tuple[str, ...]:
        if component.evidence is _NOTHING:
            return ()
        evidence = _part(component.evidence, _Evidence, "evidence")
        found: dict[str, None] = {}
        for one in evidence.occurrences:
            if one.location:
                line = "" if one.line is None else f":{_text(one.line)}"
                found[f"{shown(_text(one.location), MOST_OF_PLACE)}{line}"] = None
        self._places += len(found)
        self._refuse_more(self._places, MOST_PLACES, "places where assets occur")
        return tuple(found)

    def _shared(self, text: str) -> str:
        """The text, as far as it is looked at, and once for all assets that have it."""
        text = text[:_MOST_OF_PROPERTY]
        return self._texts.setdefault(text, text)

    def _count_asset(self) -> None:
        self._made_assets += 1
        self._refuse_more(self._made_assets, MOST_ASSETS, "assets")

    def _refuse_more(self, count: int, most: int, what: str) -> None:
        if count > most:
            hint = "price it part by part: `jq` selects some of its `components`, for example"
            raise TollbarError(f"it has more than {most:,} {what}, the limit", where=self._where, hint=hint)


_FOUND: ContextVar[_Found] = ContextVar("_FOUND")


def _part(raw: Raw, kind: type[Kind], name: str) -> Kind:
    """A part of an asset. Raises ValueError that says what is wrong in it."""
    if len(memoryview(raw)) > MOST_OF_ASSET:
        raise ValueError(f"`{name}`: it is larger than {MOST_OF_ASSET // 1024**2} MiB, the limit")
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.MsgspecError as error:
        raise ValueError(_fault(error, name)) from error
    except (RecursionError, ValueError) as error:
        raise ValueError(f"`{name}`: {shown(str(error))}") from error


def _text(said: Text) -> str:
    return said if isinstance(said, str) else str(said)


_Made = Iterator[tuple[str, str, Mapping[str, str], Mapping[str, tuple[str, ...]]]]


def _algorithm(crypto: _Crypto, name: str) -> _Made:
    of = crypto.algorithm_properties
    said = {
        "name": name,
        "family": _text(of.algorithm_family),
        "parameter": _text(of.parameter_set_identifier),
        "curve": _text(of.elliptic_curve or of.curve),
        "mode": _text(of.mode),
        "padding": _text(of.padding),
        "primitive": _text(of.primitive),
        "functions": " ".join(map(_text, of.crypto_functions[:_MOST_OF_PROPERTY])),
        "oid": _oid(crypto),
    }
    yield "algorithm", name, said, {}


def _certificate(crypto: _Crypto, name: str) -> _Made:
    of = crypto.certificate_properties
    keys = [_text(of.subject_public_key_ref), *_related(of.related_cryptographic_assets, "publicKey")]
    yield "certificate", name, {}, {"key": tuple(filter(None, keys))}


def _material(crypto: _Crypto, name: str) -> _Made:
    of = crypto.related_crypto_material_properties
    algorithms = [_text(of.algorithm_ref), *_related(of.related_cryptographic_assets, "algorithm")]
    # Tools that give a key no name append what tells it from others.
    said = {"name": name.partition("@")[0], "type": _text(of.type), "size": _text(of.size), "oid": _oid(crypto)}
    yield "related-crypto-material", name, said, {"algorithm": tuple(filter(None, algorithms))}


def _protocol(crypto: _Crypto, name: str) -> _Made:
    of = crypto.protocol_properties
    said = {"name": name, "type": _text(of.type), "version": _text(of.version)}
    if not of.cipher_suites:
        yield "protocol", name, said, {}
    for suite in of.cipher_suites:
        own = shown(_text(suite.name)) or "a cipher suite of no name"
        # Of several it is not said which is used.
        scheme = _text(suite.tls_signature_schemes[0]) if len(suite.tls_signature_schemes) == 1 else ""
        # The two bytes of a code point, as CycloneDX's own example has them.
        identifiers = shown(",".join(map(_text, suite.identifiers[:MOST_LETTERS])))
        algorithms = tuple(map(_text, suite.algorithms))
        for group in dict.fromkeys(map(_text, suite.tls_groups or ("",))):
            parts = ", ".join(filter(None, [f"{name}: {own}", shown(group)]))
            of_suite = {**said, "suite": own, "identifiers": identifiers, "group": shown(group), "scheme": scheme}
            yield "cipher suite", parts, of_suite, {"algorithm": algorithms}


def _oid(crypto: _Crypto) -> str:
    return _text(crypto.oid).removeprefix("oid:")


def _related(assets: Sequence[_Related], type_: str) -> list[str]:
    return [_text(one.ref) for one in assets if _text(one.type).replace("-", "").lower() == type_.lower()]


_KINDS = {
    "algorithm": _algorithm,
    "certificate": _certificate,
    "related-crypto-material": _material,
    "protocol": _protocol,
}
