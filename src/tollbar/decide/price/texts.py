"""The texts of an asset by property, with the texts of the assets that it refers to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from tollbar.decide.price.inventory import Inventory
from tollbar.decide.price.parts import Asset, plain_oid
from tollbar.decide.price.table import code_points, table

_BETWEEN = re.compile(r"[\s_/.:]+")
BETWEEN_NAMES = "|"
# A code point of two bytes: `{0x13,0x01}`, `0x1301`, `4865`. One that begins with 0 and no x may be of either kind.
_CODE_POINT = re.compile(
    r"[{(\[]?0x([0-9a-f]{1,2})[\s,;:]+0x([0-9a-f]{1,2})[})\]]?|0x([0-9a-f]{4})|([1-9][0-9]{0,4})", re.IGNORECASE
)
_WITH_CODE_POINT = re.compile(
    r"(?P<of_hex>.{0,80}?)[ _-]?[(\[]?0x(?P<hex>[0-9a-f]{4})[)\]]?"
    r"|(?P<of_decimal>.{1,80}?) ?[(\[](?P<decimal>[0-9]{1,5})[)\]]",
    re.IGNORECASE,
)
_OID = re.compile(r"[0-2](?:\.(?:0|[1-9][0-9]*))+")
_OF_CURVE = re.compile(r"^(ecdh|ecdsa)-sha2-([0-2](?:\.[0-9]+){3,})$")
# Names of RFC 4432 for the exchange of keys, where the inventory does not say that they sign.
_KEYS_OF_SSH = frozenset({"rsa2048-sha256", "rsa1024-sha1"})
_MOST_REMEMBERED = 2**16
# Texts are from elsewhere, and no name of a cipher suite is longer.
_MOST_LETTERS = 200
_NOT_GIVEN = frozenset(
    {
        "",
        "unspecified",
        "unknown",
        "other",
        "none",
        "null",
        "n/a",
        "na",
        "undefined",
        "default",
        "any",
        "-",
        "?",
        "no name",
    }
)


class Followed:
    """References between an inventory's assets; each is followed once."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._merged: dict[int, tuple[Mapping[str, str], str]] = {}
        self._twice: dict[int, str | None] = {}
        self._joined: dict[int, str] = {}

    def of(self, asset: Asset, by: str) -> Iterator[Asset]:
        """Return the assets to which one refers by a property."""
        found = map(self._inventory.by_reference.get, asset.refers.get(by, ()))
        return (one for one in found if one is not None)

    def merged(self, asset: Asset) -> tuple[Mapping[str, str], str]:
        """Return the joint facts of an asset's algorithms, the first algorithm's first, and the last one's name."""
        if id(asset) not in self._merged:
            self._merged[id(asset)] = _together(
                (one.said, one.said.get("name", "")) for one in self.of(asset, "algorithm")
            )
        return self._merged[id(asset)]

    def of_certificate(self, asset: Asset) -> tuple[Mapping[str, str], str]:
        """Return the joint facts of a certificate's keys and of their algorithms."""
        keys = [*self.of(asset, "key")]
        said = [(key.said, key.said.get("name", "")) for key in keys]
        return _together([*said, *map(self.merged, keys)])

    def names(self, asset: Asset) -> str:
        """Return the names of the algorithms of a cipher suite, as far as they are read."""
        # All groups of a suite share one object of references.
        references = asset.refers.get("algorithm", ())
        if id(references) not in self._joined:
            self._joined[id(references)] = _joined(map(_names, self.of(asset, "algorithm")))
        return self._joined[id(references)]

    def twice(self, asset: Asset) -> str | None:
        """Return an ambiguous reference of an asset or of its key; None: there is no such reference."""
        if not self._inventory.twice:
            return None
        followed = (refs for one in (asset, *self.of(asset, "key")) for refs in one.refers.values())
        return next((one for one in map(self._first_twice, followed) if one), None)

    def _first_twice(self, references: tuple[str, ...]) -> str | None:
        if id(references) not in self._twice:
            self._twice[id(references)] = next((one for one in references if one in self._inventory.twice), None)
        return self._twice[id(references)]


def _together(several: Iterable[tuple[Mapping[str, str], str]]) -> tuple[Mapping[str, str], str]:
    said: dict[str, str] = {}
    last = ""
    for one, name in several:
        for key, text in one.items():
            if key != "name":
                said.setdefault(key, text)
        last = name or last
    return said, last


def _joined(names: Iterable[str]) -> str:
    joined = ""
    for number, name in enumerate(names):
        joined += BETWEEN_NAMES + name if number else name
        if len(joined) > _MOST_LETTERS:
            # Half a name could be that of another.
            return joined[:_MOST_LETTERS].rpartition(BETWEEN_NAMES)[0]
    return joined


def texts_of(asset: Asset, followed: Followed) -> Mapping[str, str]:
    """Return all texts of an asset, by property, including those of the assets to which it refers."""
    said = dict(asset.said)
    if asset.kind == "cipher suite":
        said["algorithms"] = followed.names(asset)
        said |= {name: _named(said.get(name, ""), of) for name, of in code_points().of_properties.items()}
        if said.get("group"):
            # The word `group` distinguishes names of groups from those of algorithms.
            said["group"] = f"group {said['group']}"
    else:
        # A key takes missing facts from its algorithm, and the name of the last asset.
        more, name = followed.of_certificate(asset) if asset.kind == "certificate" else followed.merged(asset)
        if more or name:
            said.pop("name", None)
            said = {**more, **said, **({"name": name} if name else {})}
    if asset.kind == "algorithm":
        # Some tools have the identifier as the name.
        name = said.get("name", "")
        said["name"] = table().oid.get(plain_oid(name)) or _less_code_point(_with_curve(name))
        if said["name"] in _KEYS_OF_SSH and _is_signature(said):
            said["name"] = said["name"].upper()
        # Some tools list a cipher suite as an algorithm.
        said["suite"] = said["name"]
    if parameter := said.get("parameter"):
        # A curve may be given by its identifier.
        said["parameter"] = table().oid.get(plain_oid(parameter), parameter)
    said |= {"kind": asset.kind, "oid": _of_oid(said.get("oid", ""))}
    if curve := said.get("curve"):
        oid = plain_oid(curve)
        said["curve"] = _of_oid(oid) if _OID.fullmatch(oid) else _less_code_point(curve)
    return {name: text for name, text in said.items() if _is_given(name, text)}


def _is_signature(said: Mapping[str, str]) -> bool:
    functions = said.get("functions", "").lower().split()
    return said.get("primitive", "").lower() == "signature" or not {"sign", "verify"}.isdisjoint(functions)


def _is_given(property_: str, text: str) -> bool:
    """Return whether a text gives a fact; a tool that has no name writes `null`, and `NULL` encrypts nothing."""
    is_cipher = property_ == "name" and text.strip() == "NULL"
    return is_cipher or property_ == "padding" or text.strip().lower() not in _NOT_GIVEN


def _of_oid(oid: str) -> str:
    """Return the name of an object identifier; `? ` and the text itself for any other text.

    An unknown identifier may belong to another algorithm than the name.
    """
    return table().oid.get(oid) or ("" if oid.strip().lower() in _NOT_GIVEN else f"? {oid}")


def _with_curve(name: str) -> str:
    """Return the name of an algorithm of SSH with the name of its curve in the place of an identifier (RFC 5656)."""
    return _OF_CURVE.sub(lambda match: f"{match[1]}-{table().oid.get(match[2], match[2])}", name)


def _named(text: str, known: Mapping[str, str]) -> str:
    """Return the name of a code point; any other text is returned unchanged."""
    match = _CODE_POINT.fullmatch(text.strip())
    if match is None:
        return text
    high, low, whole, decimal = match.groups()
    number = int(high + low.zfill(2) if high else whole or "0", 16) if not decimal else int(decimal)
    return known.get(f"0x{number:04x}", text)


def _less_code_point(name: str) -> str:
    """Return the name of a group or a scheme without its code point: `x25519 (29)`, or `0x11EC` alone.

    A name with the code point of another one is returned unchanged.
    """
    match = _WITH_CODE_POINT.fullmatch(name.strip())
    if match is None:
        return name
    rest = match["of_hex"] or match["of_decimal"]
    code = f"0x{int(match['hex'], 16) if match['hex'] else int(match['decimal']):04x}"
    known = code_points().group.get(code) or code_points().scheme.get(code)
    if known is None or (rest and _plain(rest).replace("-", "") != known.replace("-", "")):
        return name
    return rest or known


def _names(asset: Asset) -> str:
    said = filter(None, (asset.said.get(name) for name in ("name", "curve")))
    return " ".join(said).replace(BETWEEN_NAMES, " ")


def _plain(text: str) -> str:
    return _BETWEEN.sub("-", text[:_MOST_LETTERS].lower())


@lru_cache(_MOST_REMEMBERED)
def less_nothing(property_: str, text: str) -> str:
    text = _plain(text)
    for pattern in table().says_nothing.get(property_, ()):
        text = pattern.sub("", text)
    return text
