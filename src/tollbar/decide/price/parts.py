"""Cryptographic parts of a component, and the assets that it lists.

Tools write `null` for an absent property, a text for a list, and a number for a text: each is accepted. Other values
that the specification does not have make the asset one with a fault.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import fields

from tollbar.decide.price import limits
from tollbar.decide.price.levels import CLASSICAL, QUANTUM

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Asset:
    """A cryptographic asset; each cipher suite of a protocol is one."""

    kind: str
    """`assetType` of the asset; `cipher suite` for one of a protocol."""
    name: str
    said: Mapping[str, str] = field(default_factory=dict)
    """Properties that the inventory gives, by name."""
    refers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """References to other assets, by property."""
    places: tuple[str, ...] = ()
    """Places in which it occurs, for example `src/keys.py:41`."""
    platform: str | None = None
    """Platform of all files in which the asset occurs; None: unknown."""
    fault: str | None = None
    """Faults against the specification."""


class _WithoutControls(dict[int, str]):
    """A blank for each character of control or of separation: a file may have millions of them."""

    def __missing__(self, code: int) -> str:
        plain = " " if unicodedata.category(chr(code))[0] in "CZ" else chr(code)
        # A table of all characters together would take 100 MB.
        return self.setdefault(code, plain) if code < 0x10000 else plain


_WITHOUT_CONTROLS = _WithoutControls()


def shown(text: str, most: int = limits.MOST_LETTERS) -> str:
    """Return a foreign text for one line: without controls, and with at most `most` characters."""
    if len(text) <= most and text.isprintable():
        return " ".join(text.replace("`", "'").split())
    # Characters beyond this are cut in any case.
    text = text[: 4 * most]
    plain = text if text.isprintable() else text.translate(_WITHOUT_CONTROLS)
    plain = " ".join(plain.replace("`", "'").split())
    return f"{plain[: most - 1]}…" if len(plain) > most else plain


NOTHING = Raw(b"")


def is_nothing(raw: Raw) -> bool:
    """Return whether a value is absent or null."""
    return bytes(memoryview(raw)[:5]) in (b"", b"null")


def scalar(raw: Raw) -> str | int | float | None:
    """Return a text or number; None for other values, and for one longer than any name."""
    if not 0 < len(memoryview(raw)) <= limits.MOST_OF_SCALAR:
        return None
    try:
        return msgspec.json.decode(raw, type=str | int | float)
    except (msgspec.MsgspecError, ValueError):
        return None


def fault_of(error: Exception, holder: str) -> str:
    """Return the reader's sentence on a value, with the place first: `holder.curve`."""
    what, _, place = str(error).partition(" - at `$")
    return f"`{shown(holder + place.rstrip('`'))}`: {shown(what, limits.MOST_OF_PLACE)}"


Text = str | int | float | None
"""Text; tools write numbers where the specification has texts, and null for an absent one."""
Texts = tuple[Text, ...] | Text
"""A list of texts; tools write the text alone where there is one."""


# Parts of a component; properties that are not read may have any type.


class _Algorithm(Struct, rename="camel", frozen=True):
    name: Text = None
    algorithm_name: Text = None
    primitive: Text = None
    algorithm_family: Text = None
    parameter_set_identifier: Text = None
    # Names of sizes that the specification does not have, and tools write.
    key_size: Text = None
    key_length: Text = None
    curve: Text = None
    elliptic_curve: Text = None
    mode: Text = None
    padding: Text = None
    crypto_functions: Texts = None
    classical_security_level: Text = None
    nist_quantum_security_level: Text = None


class _Related(Struct, rename="camel", frozen=True):
    type: Text = None
    ref: Text = None


class _Certificate(Struct, rename="camel", frozen=True):
    subject_public_key_ref: Text = None
    related_cryptographic_assets: tuple[_Related, ...] | None = None


class _Material(Struct, rename="camel", frozen=True):
    type: Text = None
    size: Text = None
    algorithm_ref: Text = None
    related_cryptographic_assets: tuple[_Related, ...] | None = None


class _Suite(Struct, rename="camel", frozen=True):
    name: Text = None
    identifiers: Texts = None
    algorithms: Texts = None
    tls_groups: Texts = None
    tls_signature_schemes: Texts = None


class _Protocol(Struct, rename="camel", frozen=True):
    type: Text = None
    version: Text = None
    cipher_suites: tuple[_Suite, ...] | None = None
    crypto_ref_array: Texts = None
    related_cryptographic_assets: tuple[_Related, ...] | None = None


class _Crypto(Struct, rename="camel", frozen=True):
    asset_type: Text = None
    algorithm_properties: _Algorithm | None = None
    certificate_properties: _Certificate | None = None
    related_crypto_material_properties: _Material | None = None
    protocol_properties: _Protocol | None = None
    oid: Text = None
    # Names that the specification does not have, and tools write.
    algorithm_name: Text = None
    key_size: Text = None


class _Occurrence(Struct, rename="camel", frozen=True):
    location: Text = None
    line: Text = None


class _Evidence(Struct, rename="camel", frozen=True):
    occurrences: tuple[_Occurrence, ...] | None = None


KEYS = tuple(
    dict.fromkeys(
        one.encode_name
        for kind in (_Crypto, _Algorithm, _Certificate, _Material, _Protocol, _Suite, _Related, _Evidence, _Occurrence)
        for one in fields(kind)
    )
)
"""The keys that are read of a component's parts."""


def _part(raw: Raw, kind: type[Kind], name: str) -> Kind:
    """Return a part of an asset.

    Raises ValueError that names the fault.
    """
    if len(memoryview(raw)) > limits.MOST_OF_ASSET:
        raise ValueError(f"`{name}`: it is larger than {limits.MOST_OF_ASSET // 1024**2} MiB, the limit")
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.MsgspecError as error:
        raise ValueError(fault_of(error, name)) from error
    except (RecursionError, ValueError) as error:
        raise ValueError(f"`{name}`: {shown(str(error))}") from error


def _text(said: Text) -> str:
    whole = int(said) if isinstance(said, float) and said.is_integer() else said
    return "" if whole is None else str(whole)


def _each(said: Texts) -> tuple[Text, ...]:
    return said if isinstance(said, tuple) else () if said is None else (said,)


class _Property(Struct, frozen=True):
    name: Text = None
    value: Text = None


# The property in which cdxgen writes the kind of a call, and the primitives of these kinds.
_KIND_OF_CALL = "cdx:crypto:primitive"
_OF_CALLS = {"kdf": "kdf", "hmac": "mac", "mac": "mac"}


def _of_call(properties: Raw) -> str:
    """Return the primitive that a component's properties give; empty: none."""
    if is_nothing(properties) or _KIND_OF_CALL.encode() not in bytes(memoryview(properties)):
        return ""
    try:
        found = _part(properties, tuple[_Property, ...], "properties")
    except ValueError:
        return ""
    return next((_OF_CALLS.get(_text(one.value).lower(), "") for one in found if one.name == _KIND_OF_CALL), "")


Made = Iterator[tuple[str, str, Mapping[str, str], Mapping[str, tuple[str, ...]]]]


def _algorithm(crypto: _Crypto, name: str) -> Made:
    of = crypto.algorithm_properties or _Algorithm()
    # Some tools have the place of an algorithm as the component's name.
    name = shown(_text(of.name or of.algorithm_name or crypto.algorithm_name)) or name
    said = {
        "name": name,
        "family": _text(of.algorithm_family),
        "parameter": _text(of.parameter_set_identifier),
        "size": _text(of.key_size or of.key_length or crypto.key_size),
        "curve": _curve(_text(of.elliptic_curve), _text(of.curve)),
        "mode": _text(of.mode),
        "padding": _text(of.padding),
        "primitive": _text(of.primitive),
        "functions": " ".join(map(_text, _each(of.crypto_functions)[: limits.MOST_OF_PROPERTY])),
        "oid": _oid(crypto),
        CLASSICAL: _text(of.classical_security_level),
        QUANTUM: _text(of.nist_quantum_security_level),
    }
    yield "algorithm", name, said, {}


def _curve(new: str, old: str) -> str:
    """Return the curve by CycloneDX 1.7 and by 1.6; both, so that a contradiction is found, unless one is a number."""
    are_names = new and old and not (new[0].isdigit() or old[0].isdigit())
    return f"{new} {old}" if are_names and new != old else new or old


def _certificate(crypto: _Crypto, name: str) -> Made:
    of = crypto.certificate_properties or _Certificate()
    keys = [_text(of.subject_public_key_ref), *_related(of.related_cryptographic_assets, "publicKey")]
    # Some tools put the identifier of the key here; a signature's identifier does not describe the key.
    said = {"oid": _oid(crypto)} if _oid(crypto) in _OF_KEYS else {}
    if key := _text(crypto.algorithm_name or (crypto.algorithm_properties or _Algorithm()).name):
        said |= {"name": key, "size": _text(crypto.key_size)}
    sizes = [_text(one.ref) for one in of.related_cryptographic_assets or () if _text(one.type) == "size"]
    if said and len(sizes) == 1:
        said["size"] = sizes[0]
    yield "certificate", name, said, {"key": tuple(filter(None, keys))}


def _material(crypto: _Crypto, name: str) -> Made:
    of = crypto.related_crypto_material_properties or _Material()
    algorithms = [_text(of.algorithm_ref), *_related(of.related_cryptographic_assets, "algorithm")]
    # Tools that give a key no name append text that distinguishes it from others.
    said = {
        "name": _text(crypto.algorithm_name) or name.partition("@")[0],
        "type": _text(of.type),
        "size": _text(of.size or crypto.key_size),
        "oid": _oid(crypto),
    }
    yield "related-crypto-material", name, said, {"algorithm": tuple(filter(None, algorithms))}


def _protocol(crypto: _Crypto, name: str) -> Made:
    of = crypto.protocol_properties or _Protocol()
    said = {"name": name, "type": _text(of.type), "version": _text(of.version)}
    refs = (*_each(of.crypto_ref_array), *(one.ref for one in of.related_cryptographic_assets or ()))
    certificates = tuple(filter(None, map(_text, refs)))
    if not of.cipher_suites:
        yield "protocol", name, said, {"certificate": certificates}
    for suite in of.cipher_suites or ():
        own = shown(_text(suite.name)) or "a cipher suite without a name"
        # With several schemes the one in use is unknown.
        schemes = _each(suite.tls_signature_schemes)
        scheme = _text(schemes[0]) if len(schemes) == 1 else ""
        # The two bytes of a code point, as CycloneDX's own example has them.
        identifiers = shown(",".join(map(_text, _each(suite.identifiers)[: limits.MOST_LETTERS])))
        algorithms = tuple(map(_text, _each(suite.algorithms)))
        for group in dict.fromkeys(map(_text, _each(suite.tls_groups) or ("",))):
            parts = ", ".join(filter(None, [f"{name}: {own}", shown(group)]))
            of_suite = {**said, **_suite(_text(suite.name)), "group": shown(group), "scheme": scheme}
            of_suite["identifiers"] = identifiers
            yield "cipher suite", parts, of_suite, {"algorithm": algorithms, "certificate": certificates}


def _suite(name: str) -> dict[str, str]:
    """Return the text of a suite, or that it is a list of several: `HIGH:!aNULL`."""
    return {"list": "several"} if _LIST.search(name[: limits.MOST_LETTERS]) else {"suite": shown(name)}


# OpenSSL's lists of suites; a code point has no letters before a colon.
_LIST = re.compile(r"[!@]|[A-Za-z][A-Za-z0-9_+-]*:(?=[A-Za-z+!-])")


def _oid(crypto: _Crypto) -> str:
    return plain_oid(_text(crypto.oid))


def plain_oid(text: str) -> str:
    """Return an object identifier as numbers with dots between them, in whichever notation it is written."""
    return _OID_NOTATION.sub("", "".join(text[: limits.MOST_OF_PROPERTY].split()))


# RFC 3061's, and the habits of tools: `2.16.840.1.101.3.4.1.46 (aes256-GCM)`.
_OID_NOTATION = re.compile(r"^(?:urn:)?(?:oid[:.])?\.?(?=[0-9])|(?<=[0-9])\.?(?:\([^()]*\))?$", re.IGNORECASE)


def _related(assets: Sequence[_Related] | None, type_: str) -> list[str]:
    return [_text(one.ref) for one in assets or () if _text(one.type).replace("-", "").lower() == type_.lower()]


# Keys of RSA and of elliptic curves.
_OF_KEYS = frozenset({"1.2.840.113549.1.1.1", "1.2.840.10045.2.1"})
_KINDS = {
    "algorithm": _algorithm,
    "certificate": _certificate,
    "related-crypto-material": _material,
    "protocol": _protocol,
    # Kinds that the specification does not have, and tools write.
    "key": _material,
    "library": _algorithm,
}


def made_of(raw: Raw, name: str, properties: Raw) -> Made:
    """Make the assets that these properties are: kind, name, properties and references of each. Raises ValueError.

    `properties` are those of the component, in which a tool may write the kind of the call.
    """
    crypto = _part(raw, _Crypto, "cryptoProperties")
    make = _KINDS.get(_text(crypto.asset_type).lower())
    if make is None or (crypto.asset_type == "library" and crypto.algorithm_properties is None):
        # This covers types of newer versions, and misspelt ones.
        yield shown(_text(crypto.asset_type)) or "unknown", name, {}, {}
        return
    of_call = _of_call(properties)
    for kind, own, said, refers in make(crypto, name):
        yield kind, own, {**said, "primitive": of_call} if of_call and not said.get("primitive") else said, refers


def places_of(raw: Raw) -> tuple[str, ...]:
    """Return where an asset occurs, each place once: `src/keys.py:41`. Raises ValueError."""
    evidence = _part(raw, _Evidence, "evidence")
    found: dict[str, None] = {}
    for one in evidence.occurrences or ():
        if one.location:
            line = "" if one.line is None else f":{_text(one.line)}"
            found[f"{shown(_text(one.location), limits.MOST_OF_PLACE)}{line}"] = None
    return tuple(found)


# The platform whose files end so.
_PLATFORMS = {
    **dict.fromkeys(("java", "kt", "kts", "scala", "groovy", "class", "jar", "war"), "java"),
    **dict.fromkeys(("py", "pyi", "whl"), "python"),
    **dict.fromkeys(("js", "mjs", "cjs", "ts", "tsx", "jsx"), "node"),
    **dict.fromkeys(("cs", "vb", "fs"), "dotnet"),
    "go": "go",
}  # fmt: skip
_ENDING = re.compile(r"\.([a-z]{1,6})(?=$|[:#?(])", re.IGNORECASE)


def platform_of(places: Sequence[str]) -> str | None:
    """Return the platform of all these places; None: they have several, or none is known."""
    found = {_PLATFORMS.get(endings[-1].lower()) if (endings := _ENDING.findall(one)) else None for one in places}
    return found.pop() if len(found) == 1 else None
