"""The algorithm that the words of a name make together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tollbar.decide.price import names
from tollbar.decide.price.names import ALGORITHM, Name
from tollbar.decide.price.table import table

_MOST_REMEMBERED = 2**16
_HYBRIDS = frozenset({"ml-kem", "kyber", "frodokem", "hqc", "bike", "mceliece", "ntru", "sike", "saber"})
_NEW_SIGNATURES = frozenset({"ml-dsa", "slh-dsa", "falcon", "dilithium", "sphincs", "xmss", "lms"})
_WITH_DRAFT = ({"ml-kem", "kyber"}, {"ml-dsa", "dilithium"}, {"slh-dsa", "sphincs"})
_WITH_MAC = {"rc4": "rc4-hmac", "des": "des-hmac", "des40": "des-hmac", "3des": "3des-hmac"}
# Parts of algorithms and of keys, which name none.
_PARTS = frozenset({"mgf1", "key-format"})


def reduced(name: Name) -> tuple[str, ...]:
    """Return the algorithm that one text names: the one that several make together, if there is such."""
    named = name.values(ALGORITHM)
    if "prf" in named and {"cipher", "exchange"} <= {names.class_of(one) for one in named}:
        # A proposal of IKE: its key exchange is not all of it.
        return ("combiner",)
    found = visible(dict.fromkeys(named))
    kinds = {names.class_of(one) for one in found}
    curves = name.values("curve")
    if len(found) == 1 and (one := next(iter(found))) and curves:
        if one in _HYBRIDS:
            return ("hybrid-kyber" if one == "kyber" else "hybrid-kem",)
        if one in _NEW_SIGNATURES:
            return ("hybrid-signature",)
        if one == "ecdh" and len(curves) > 1:
            return ("hybrid-kem",)
    if len(found) < 2:
        return tuple(found)
    if kinds == {"cipher", "mac"}:
        return (next((_WITH_MAC[one] for one in found if one in _WITH_MAC), "cipher-with-mac"),)
    if kinds == {"cipher"}:
        return ("combiner",)
    if set(found) in _WITH_DRAFT:
        return ("standard-and-draft",)
    if "exchange" in kinds and kinds <= {"exchange", "rsa", "key"}:
        return ("hybrid-kyber" if "kyber" in found else "hybrid-kem",)
    # Two classical algorithms may be a list of alternatives, so they make no hybrid.
    if "signature" in kinds and kinds <= {"signature", "rsa", "key"} and not _NEW_SIGNATURES.isdisjoint(found):
        return ("hybrid-signature",)
    return tuple(found)


def visible(found: Mapping[str, str | None]) -> list[str]:
    """Return the algorithms that no other one hides."""
    return [one for one in found if not any(_hides(other, one) < _hides(one, other) for other in found if other != one)]


@lru_cache(_MOST_REMEMBERED)
def _hides(one: str, less: str) -> int:
    """Return the first row by which an algorithm hides another one; the number of rows: none does."""

    def is_among(algorithm: str, words: str) -> bool:
        return any(word in ("*", algorithm, f"@{names.class_of(algorithm)}") for word in words.split())

    rows = table().hides
    fitting = (at for at, (who, whom) in enumerate(rows.items()) if is_among(one, who) and is_among(less, whom))
    return next(fitting, len(rows))


def implied(algorithms: Mapping[str, str], found: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the algorithms, or the one that other facts imply: OAEP is RSA's, and a curve has keys of a format."""
    if algorithms.keys() - _PARTS:
        return dict(algorithms)
    paddings = found.get("padding", {})
    if of_rsa := next((property_ for one, property_ in paddings.items() if one in ("pss", "oaep")), None):
        return {"rsa": of_rsa}
    return {} if "curve" in found or "group" in found else dict(algorithms)
