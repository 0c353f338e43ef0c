"""Contradicting sizes: each becomes a value of the fact that it contradicts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from tollbar.decide.price.names import ALGORITHM, DIGEST
from tollbar.decide.price.table import table

Found = dict[str, dict[str, str]]
"""The values of each fact, each with the property that gives it."""
OF_HASHES = {"md5": "128", "md4": "128", "md2": "128", "sha-1": "160", "sha0": "160", "blake3": "256", "sm3": "256"}
"""The bits of hashes whose names do not end in them."""
OF_ONE_SIZE = frozenset({"md2", "md4", "md5"})
"""Hashes that are broken, and that no number makes another hash: MD5 of 256 bits is MD5."""
_WITHOUT_TAG = frozenset({"cbc", "cbc-cts", "ctr", "ecb", "cfb", "ofb", "xts", "ige"})
_SIZE = re.compile("[0-9]+")
# Moduli have 2,040 bits and more, or 1,968 and less; tools that make keys round to 8 bits.
_FIRST_YEAR, _AFTER_YEARS = 1970, 2040
_ITERATIONS = 2000
_BY_BITS = frozenset({"aes", "camellia", "aria", "rsa", "dsa"})


def contradict(found: Found, algorithm: str, of_material: Sequence[int]) -> None:
    """Add the sizes that contradict a group, a curve, a key or a parameter set; `of_material` are those of a key."""
    _groups(found)
    _curves(found, of_material)
    _keys(found, algorithm, of_material)
    _parameters(found)


def is_tag(given: Mapping[str, str], modes: Collection[str], *, is_pair: bool) -> bool:
    """Return true if the numbers may be a cipher's tag and nonce: a nonce follows another number.

    A pair with nothing in between may be two sizes of keys, as in `AES-256/128-GCM`.
    """
    tag = given.get("tag")
    if tag is None:
        return "nonce" not in given or "bits" in given
    if is_pair and tag == "128" and "bits" in given:
        return False
    # Sizes of blocks and initialization vectors, in octets or bits.
    return tag in ("16", "128") or _WITHOUT_TAG.isdisjoint(modes)


def is_year(number: int, algorithm: str) -> bool:
    """Return whether a number of a name may be a year: `RSA 2019`. Iterations are in thousands."""
    return _FIRST_YEAR <= number < _AFTER_YEARS and not (algorithm == "pbkdf2" and number == _ITERATIONS)


def truncate(found: Found, numbers: Sequence[int]) -> bool:
    """Name the hash that SHA-2 of these two numbers is: `512/256`. Return whether it is one."""
    is_one = tuple(numbers) in ((512, 224), (512, 256)) and not found.get(DIGEST, {}).keys() - {"sha", "sha-2"}
    if is_one and DIGEST in found:
        found[DIGEST] = {f"sha-512-{numbers[1]}": "parameter"}
        return True
    return False


def of_hash(digest: str) -> str:
    """Return the bits of a hash."""
    return OF_HASHES.get(digest, digest.rpartition("-")[2])


def _add(found: Found, name: str, value: str, property_: str) -> None:
    found.setdefault(name, {}).setdefault(value, property_)


def _groups(found: Found) -> None:
    """Add the size that is not the group's own: `ffdhe2048 (1024-bit)`."""
    own = [size[0] for group in found.get("group", {}) if (size := _SIZE.search(group))]
    for bits, property_ in found.get("bits", {}).items():
        if any(size != bits for size in own):
            _add(found, "group", f"dh-{bits}", property_)


def _curves(found: Found, of_material: Sequence[int]) -> None:
    """Add the size that no curve of these has: `ECDSA-P-256` with 384, and a key of P-256 with 192 bits."""
    hashes = {of_hash(one) for one in found.get(DIGEST, {})}
    # A parameter is the size of the hash with some tools.
    said = {bits: by for bits, by in found.get("field", {}).items() if by != "parameter" or bits not in hashes}
    for curve in [*found.get("curve", {})]:
        own = table().curve_sizes.get(curve, ())
        keys = {bits for field in own for bits in _of_keys(field)}
        wrong = [(bits, property_) for bits, property_ in said.items() if own and int(bits) not in own]
        wrong += [(str(bits), "size") for bits in of_material if own and bits not in keys]
        for bits, property_ in wrong:
            _add(found, "curve", f"{bits} bits", property_)


def _of_keys(field: int) -> set[int]:
    """Return the sizes of keys on a curve: a number, or one or two coordinates with or without the octet before."""
    octets = -(-field // 8) * 8
    return {field, octets, octets + 8, 2 * octets, 2 * octets + 8}


def _keys(found: Found, algorithm: str, of_material: Sequence[int]) -> None:
    """Add the size that is not the one of the cipher or the modulus."""
    bits = found.get("bits", {})
    for size in of_material if algorithm in _BY_BITS and bits else ():
        # XTS has two keys.
        if not ("xts" in found.get("mode", {}) and str(size // 2) in bits):
            _add(found, "bits", str(size), "size")
    keys = {**found.pop("key", {}), **dict.fromkeys(map(str, of_material), "size")}
    own = table().key_sizes.get(algorithm, ())
    for key, property_ in keys.items():
        if own and int(key) not in own:
            _add(found, ALGORITHM, f"a key of {key} bits", property_)


def _parameters(found: Found) -> None:
    """Add the level that is not the parameter set's own: `SLH-DSA-SHA2-128s` with 192."""
    own = [size[0] for one in found.get("parameter", {}) if (size := _SIZE.search(one))]
    for level, property_ in (found.pop("level", {}) if own else found.get("level", {})).items():
        if any(size != level for size in own):
            _add(found, "parameter", level, property_)
