"""Reading an inventory of cryptography: a CycloneDX document, version 1.6 or 1.7, in JSON.

The file is data from elsewhere. Nothing of it is run, its size is limited, and its texts are shown without control
characters; a component that is not as the specification has it becomes an asset with its fault.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from tollbar.errors import TollbarError

VERSIONS = ("1.6", "1.7")
MOST_BYTES = 64 * 1024 * 1024
"""Ten thousand assets have some 7 MB: more places than this are not read."""
MOST_ASSETS = 100_000
# A name longer than this tells a reader no more, and would push all else off a line.
MOST_LETTERS = 80
# A path is of no use without its end.
MOST_OF_PLACE = 240
ASSET = "cryptographic-asset"


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
    return parse(_content(path), path)


def parse(content: bytes, path: Path) -> Inventory:
    """The inventory that these bytes are; `path` is what an error names. Raises TollbarError as `read` does."""
    said = _document(content, str(path))
    found = _Found()
    for component, parent in _components(said):
        found.take(component, parent)
        if len(found.assets) > MOST_ASSETS:
            raise TollbarError(f"more than {MOST_ASSETS:,} assets", where=str(path), hint="price it part by part")
    about = said.get("metadata")
    about = about.get("component") if isinstance(about, dict) else None
    name = about.get("name") if isinstance(about, dict) else None
    of = shown(name) if isinstance(name, str) and name else None
    alone = {reference: one for reference, one in found.by_reference.items() if reference not in found.twice}
    return Inventory(path, said["specVersion"], of, tuple(found.assets), alone, frozenset(found.twice), found.others)


def shown(text: str, most: int = MOST_LETTERS) -> str:
    """A text from elsewhere as it may stand in a line: without control characters, and of so many letters at most."""
    # What is cut below is not looked at.
    plain = "".join(" " if unicodedata.category(one)[0] in "CZ" else one for one in text[: 4 * most])
    plain = " ".join(plain.replace("`", "'").split())
    return f"{plain[: most - 1]}…" if len(plain) > most else plain


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise TollbarError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if len(content) > MOST_BYTES:
        limit = f"larger than {MOST_BYTES // 1024**2} MiB, the most that is read"
        raise TollbarError(limit, where=str(path), hint="price it part by part")
    return content


def _document(content: bytes, where: str) -> dict[str, Any]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TollbarError("not text in UTF-8", where=where, hint="a CycloneDX inventory in JSON is") from error
    if text.lstrip()[:1] == "<":
        raise TollbarError(
            "XML, and JSON is read", where=where, hint="`cyclonedx convert --output-format json` makes it"
        )
    try:
        said = json.loads(text)
    except json.JSONDecodeError as error:
        cut = "" if text.rstrip().endswith("}") else "; the file ends too early"
        raise TollbarError(f"not JSON: {error.msg} at line {error.lineno}{cut}", where=where) from error
    except (RecursionError, ValueError) as error:
        # Nested beyond any inventory, or a number of thousands of digits.
        raise TollbarError(
            "not JSON that an inventory would have: nested too deeply, or too long a number", where=where
        ) from error
    if not isinstance(said, dict) or said.get("bomFormat") != "CycloneDX":
        raise TollbarError("not CycloneDX: it has no `bomFormat` that says so", where=where)
    if said.get("specVersion") not in VERSIONS:
        version = said.get("specVersion")
        what = f"CycloneDX {shown(version)}" if isinstance(version, str) else "CycloneDX of no `specVersion`"
        hint = f"{' and '.join(VERSIONS)} are read: `cyclonedx convert --output-version v1_6` makes one"
        raise TollbarError(f"{what} has no inventory of cryptography that is known here", where=where, hint=hint)
    return said


def _components(said: Mapping[str, Any]) -> Iterator[tuple[Any, str | None]]:
    """Every component, each with the name of the one that it stands in; without recursion, however deep they nest."""
    ahead: list[tuple[Any, str | None]] = [(said, None)]
    while ahead:
        holder, name = ahead.pop()
        inner = holder.get("components")
        for one in inner if isinstance(inner, list) else ():
            yield one, name
            if isinstance(one, dict):
                own = one.get("name")
                ahead.append((one, own if isinstance(own, str) else None))


class _Lenient(BaseModel):
    """A part of a component: what is not read of it may be anything."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True, coerce_numbers_to_str=True)


def _of_objects(said: object) -> object:
    return [one for one in said if isinstance(one, dict)] if isinstance(said, list) else said


class _Algorithm(_Lenient):
    primitive: str = ""
    algorithm_family: str = ""
    parameter_set_identifier: str = ""
    curve: str = ""
    elliptic_curve: str = ""
    mode: str = ""
    padding: str = ""
    crypto_functions: tuple[str, ...] = ()


class _Related(_Lenient):
    type: str = ""
    ref: str = ""


class _Certificate(_Lenient):
    signature_algorithm_ref: str = ""
    subject_public_key_ref: str = ""
    related_cryptographic_assets: tuple[_Related, ...] = ()


class _Material(_Lenient):
    type: str = ""
    size: str = ""
    algorithm_ref: str = ""
    related_cryptographic_assets: tuple[_Related, ...] = ()


class _Suite(_Lenient):
    name: str = ""
    identifiers: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    tls_groups: tuple[str, ...] = ()
    tls_signature_schemes: tuple[str, ...] = ()


class _Protocol(_Lenient):
    type: str = ""
    version: str = ""
    cipher_suites: tuple[_Suite, ...] = ()


class _Crypto(_Lenient):
    asset_type: str = ""
    algorithm_properties: _Algorithm = _Algorithm()
    certificate_properties: _Certificate = _Certificate()
    related_crypto_material_properties: _Material = _Material()
    protocol_properties: _Protocol = _Protocol()
    oid: str = ""


class _Occurrence(_Lenient):
    location: str = ""
    line: int | None = None


class _Evidence(_Lenient):
    occurrences: Annotated[tuple[_Occurrence, ...], BeforeValidator(_of_objects)] = ()


class _Component(_Lenient):
    name: str = ""
    ref: str = Field(default="", alias="bom-ref")
    crypto_properties: _Crypto
    evidence: _Evidence = _Evidence()


class _Found:
    """The assets that were met so far."""

    def __init__(self) -> None:
        self.assets: list[Asset] = []
        self.by_reference: dict[str, Asset] = {}
        self.twice: set[str] = set()
        self.others = 0
        self._references: set[str] = set()

    def take(self, said: object, parent: str | None) -> None:
        self._refer(said)
        is_asset = isinstance(said, dict) and (said.get("type") == ASSET or "cryptoProperties" in said)
        if not is_asset:
            self.others += 1
            return
        assert isinstance(said, dict)
        try:
            component = _Component.model_validate(said)
        except ValidationError as error:
            self.assets.append(_faulty(said, error))
            return
        made = _assets(component, parent)
        self.assets += made
        if component.ref:
            self.by_reference[component.ref] = made[0]

    def _refer(self, said: object) -> None:
        """Whatever has a reference counts, be it a library or an asset with a fault."""
        reference = said.get("bom-ref") if isinstance(said, dict) else None
        if isinstance(reference, str | int | float) and (reference := str(reference)):
            (self.twice if reference in self._references else self._references).add(reference)


def _faulty(said: Mapping[str, Any], error: ValidationError) -> Asset:
    fault = error.errors(include_url=False, include_input=False)[0]
    at = ".".join(map(str, fault["loc"]))
    name = said.get("name")
    return Asset("unknown", shown(name) if isinstance(name, str) else "no name", fault=f"`{shown(at)}`: {fault['msg']}")


def _assets(component: _Component, parent: str | None) -> list[Asset]:
    """What a component is: one asset, or of a protocol one for each cipher suite and group."""
    crypto = component.crypto_properties
    name = shown(component.name) or "no name"
    places = tuple(
        f"{shown(one.location, MOST_OF_PLACE)}{'' if one.line is None else f':{one.line}'}"
        for one in component.evidence.occurrences
        if one.location
    ) or ((shown(parent),) if parent else ())
    make = _KINDS.get(crypto.asset_type)
    if make is None:
        # What a newer version may have, and what is misspelt.
        return [Asset(shown(crypto.asset_type) or "unknown", name, places=places)]
    return [
        Asset(kind, own, {k: v for k, v in said.items() if v}, {k: v for k, v in refers.items() if v}, places)
        for kind, own, said, refers in make(crypto, name)
    ]


_Made = Iterator[tuple[str, str, Mapping[str, str], Mapping[str, tuple[str, ...]]]]


def _algorithm(crypto: _Crypto, name: str) -> _Made:
    of = crypto.algorithm_properties
    said = {
        "name": name,
        "family": of.algorithm_family,
        "parameter": of.parameter_set_identifier,
        "curve": of.elliptic_curve or of.curve,
        "mode": of.mode,
        "padding": of.padding,
        "primitive": of.primitive,
        "functions": " ".join(of.crypto_functions),
        "oid": crypto.oid.removeprefix("oid:"),
    }
    yield "algorithm", name, said, {}


def _certificate(crypto: _Crypto, name: str) -> _Made:
    of = crypto.certificate_properties
    keys = [of.subject_public_key_ref, *_related(of.related_cryptographic_assets, "publicKey")]
    yield "certificate", name, {}, {"key": tuple(filter(None, keys))}


def _material(crypto: _Crypto, name: str) -> _Made:
    of = crypto.related_crypto_material_properties
    algorithms = [of.algorithm_ref, *_related(of.related_cryptographic_assets, "algorithm")]
    # Tools that give a key no name append what tells it from others.
    said = {"name": name.partition("@")[0], "type": of.type, "size": of.size, "oid": crypto.oid.removeprefix("oid:")}
    yield "related-crypto-material", name, said, {"algorithm": tuple(filter(None, algorithms))}


def _protocol(crypto: _Crypto, name: str) -> _Made:
    of = crypto.protocol_properties
    said = {"name": name, "type": of.type, "version": of.version}
    if not of.cipher_suites:
        yield "protocol", name, said, {}
    for suite in of.cipher_suites:
        own = shown(suite.name) or "a cipher suite of no name"
        # Of several it is not said which is used.
        scheme = suite.tls_signature_schemes[0] if len(suite.tls_signature_schemes) == 1 else ""
        # The two bytes of a code point, as CycloneDX's own example has them.
        identifiers = shown(",".join(suite.identifiers))
        for group in dict.fromkeys(suite.tls_groups or ("",)):
            parts = ", ".join(filter(None, [f"{name}: {own}", shown(group)]))
            of_suite = {**said, "suite": own, "identifiers": identifiers, "group": shown(group), "scheme": scheme}
            yield "cipher suite", parts, of_suite, {"algorithm": suite.algorithms}


def _related(assets: Sequence[_Related], type_: str) -> list[str]:
    return [one.ref for one in assets if one.type.replace("-", "").lower() == type_.lower()]


_KINDS = {
    "algorithm": _algorithm,
    "certificate": _certificate,
    "related-crypto-material": _material,
    "protocol": _protocol,
}
