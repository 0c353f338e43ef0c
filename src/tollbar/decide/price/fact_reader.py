"""Reading of an asset's texts: the values of each fact, each with the property that gives it, and unknown words."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from tollbar.core.patterns import is_like
from tollbar.decide.price import names, sizes
from tollbar.decide.price.algorithms import implied, reduced, visible
from tollbar.decide.price.names import ALGORITHM, DIGEST, Name
from tollbar.decide.price.table import table
from tollbar.decide.price.texts import BETWEEN_NAMES, less_nothing

_MOST_REMEMBERED = 2**16
# Separators of the texts of a property that has several.
_BETWEEN_TEXTS = {"algorithms": BETWEEN_NAMES, "functions": "-"}


class FactReader:
    """Facts in the texts of an asset, read once."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.found: dict[str, dict[str, str]] = {}
        """Values of each fact, each with the property that gives it."""
        self.left: list[tuple[str, str]] = []
        """Words that are not known, each with its property."""
        self.primitive = _PRIMITIVES.get(re.sub(r"[\s_-]", "", texts.get("primitive", "").lower()), "")
        self._read_names(texts)
        for name, properties in table().reads.items():
            for property_ in properties:
                text = less_nothing(property_, texts[property_]) if property_ in texts else ""
                for value in _values(name, property_, text) if text else ():
                    self._add(name, value, property_)
        if len(protocols := self.found.get("protocol", {})) > 1:
            # DTLS and QUIC have versions of TLS, and CycloneDX 1.6 has no types for them.
            protocols.pop("tls", None)
            if "ike" in protocols:
                # The keys of IPsec are exchanged by it.
                protocols.pop("ipsec", None)
        self._read_versions_of_ssl()
        if names.MOST in self.found and self.found.get(ALGORITHM, {}).keys() & _WITH_BOUNDS:
            self.left = [(property_, word) for property_, word in self.left if not word.startswith("<")]
        if "tls-suite" in self.found and texts.get("kind") == "algorithm":
            self.found[ALGORITHM] = {"tls": "name"}
            self.left = [(property_, word) for property_, word in self.left if property_ != "name"]
        if self.primitive == "combiner" and ALGORITHM not in self.found:
            self._add(ALGORITHM, "combiner", "primitive")
        self._sign_by_hash()

    def _read_versions_of_ssl(self) -> None:
        """Remove the version of a protocol that is called SSL where another text gives one of TLS."""
        versions = self.found.get("version", {})
        given = next(iter(self.found.get("given-version", {})), "")
        if versions.get("ssl") == "name" and (len(versions) > 1 or given.startswith(("1", "tls"))):
            del versions["ssl"]
            if not versions:
                del self.found["version"]

    def _add(self, name: str, value: str, property_: str) -> None:
        self.found.setdefault(name, {}).setdefault(value, property_)

    def _read_names(self, texts: Mapping[str, str]) -> None:
        # A protocol's name is anybody's choice, and its suites have names of their own.
        kept_texts = () if texts.get("kind") in ("protocol", "cipher suite") else _NAMES
        read = {name: names.read(texts[name]) for name in kept_texts if not texts.get(name, "? ").startswith("? ")}
        if self._is_label(texts, read):
            del read["name"]
        if texts.get("curve", "").startswith("? "):
            self.left.append(("curve", texts["curve"].removeprefix("? ")))
        algorithms: dict[str, str] = {}
        for property_, name in read.items():
            kept = _NAMES[property_]
            for one in reduced(name) if ALGORITHM in kept else ():
                algorithms.setdefault(one, property_)
            named = name.values(ALGORITHM)
            for one in named if _BY_PASSWORD in named else ():
                if names.class_of(one) == "cipher":
                    self._add(_ENCLOSED, one, property_)
            for fact in name.facts:
                if fact.name in kept and fact.name != ALGORITHM:
                    self._add(fact.name, fact.value, property_)
            if property_ in _WHOLE or property_ in ("curve", "mode"):
                self.left += [(property_, word) for word in name.left]
        if "mode" in read:
            self._read_mode(read["mode"], texts["mode"], algorithms)
        algorithms = implied(algorithms, self.found)
        if "rsa" in algorithms and "padding" in read:
            # Blocks are padded in any way.
            self.left += [("padding", word) for word in read["padding"].left]
        if algorithms:
            shown_ = visible(algorithms)
            self.found[ALGORITHM] = {one: algorithms[one] for one in algorithms if one in shown_}
        if "parameter" in read and sizes.truncate(self.found, read["parameter"].numbers):
            read["parameter"] = replace(read["parameter"], numbers=())
        self._hide_digests()
        self._number(read, texts)
        self._compare_sets()

    def _is_label(self, texts: Mapping[str, str], read: Mapping[str, Name]) -> bool:
        """Return whether the name is an arbitrary label, so that the object identifier or the family decides."""
        if "name" not in read or not read["name"].left:
            return False
        name = read["name"]
        if "family" in read and read["family"].values(ALGORITHM) and not (name.facts or name.numbers or name.keyed):
            return True
        if "oid" not in read:
            return False
        says = any(read["name"].values(fact) for fact in (ALGORITHM, DIGEST, "curve", "group"))
        return any(read["oid"].values(fact) for fact in (ALGORITHM, DIGEST)) and (
            not says or texts.get("kind") == "related-crypto-material"
        )

    def _number(self, read: Mapping[str, Name], texts: Mapping[str, str]) -> None:
        """Give the numbers in names their meaning for the algorithm."""
        algorithm = next(iter(self.found.get(ALGORITHM, {})), "dh" if "group" in self.found else "")
        slots = _slots(algorithm or ("ec" if "curve" in self.found else ""), [*self.found.get(DIGEST, {})])
        for property_ in ("name", "oid", "parameter", "curve", "size"):
            name = read.get(property_)
            if name is None:
                continue
            if property_ == "curve":
                self._read_curve(name, texts["curve"])
                continue
            if property_ == "size" and names.class_of(algorithm) == "mac":
                for bits in name.numbers:
                    self._add("key-bits", str(bits), property_)
            plain = list(name.numbers)
            for key, number, words in name.keyed:
                fact_name = names.fact_of_key(algorithm, key)
                if fact_name is None and words and not names.read(words).left:
                    # The number is no key of this algorithm, and the words around it mean nothing: `SHA-256 length:
                    # 256`.
                    plain.append(int(number))
                    continue
                if fact_name == _LOGARITHM:
                    fact_name, number = "n", str(1 << int(number)) if int(number) <= _MOST_POWER else number
                if fact_name:
                    self._add(fact_name, _bits(fact_name, number), property_)
                elif fact_name is None and property_ in _WHOLE:
                    self.left.append((property_, f"{key}={number}"))
            years = [one for one in plain if property_ == "name" and sizes.is_year(one, algorithm)]
            self.left += [(property_, str(one)) for one in years]
            given, left = names.fill(slots, tuple(one for one in plain if one not in years))
            if not sizes.is_tag(given, self.found.get("mode", {}), is_pair=name.begins_with_pair):
                left = (*left, *(int(given.pop(one)) for one in ("tag", "nonce") if one in given))
            given.pop("nonce", None)
            if int(given.get("n", _MOST_POWER + 1)) <= _MOST_POWER:
                # scrypt's cost without a key is often its power of two; a number that is one may be either.
                if int(given["n"]).bit_count() == 1:
                    self._add("small-n", given["n"], property_)
                given["n"] = str(1 << int(given["n"]))
            for fact, value in given.items():
                if property_ != "size" or fact == "bits":
                    self._add(fact, _bits(fact, value), property_)
            if property_ in _WHOLE:
                self.left += [(property_, str(number)) for number in left]
        self._size_digests()
        sizes.contradict(self.found, algorithm, read["size"].numbers if "size" in read else ())

    def _read_curve(self, name: Name, text: str) -> None:
        """Add the size of the field that a text gives next to its curve, or alone; `EC` and `NIST` mean nothing."""
        is_of_curves = all(one.name in _NAMES["curve"] or one.value in _OF_CURVES for one in name.facts)
        if (name.keyed or not is_of_curves) and not name.left:
            self.left.append(("curve", text))
        for bits in name.numbers:
            if bits in _FIELDS:
                self._add("field", str(bits), "curve")
            else:
                self.left.append(("curve", text))

    def _hide_digests(self) -> None:
        """Remove a family of hashes if one of its hashes is present, which is more exact."""
        found = self.found.get(DIGEST, {})
        for less, some in table().hash_families.items():
            if less in found and any(is_like(one, pattern) for one in found if one != less for pattern in some):
                del found[less]

    def _read_mode(self, name: Name, text: str, algorithms: Collection[str]) -> None:
        """Note a text that names more than a mode, its cipher and the padding of blocks: `cbc-hmac-sha1`."""
        more = [one for one in name.facts if one.name != "mode" and one.value not in {*algorithms, "block", "none"}]
        if (more or name.numbers or name.keyed) and not name.left:
            self.left.append(("mode", text))

    def _compare_sets(self) -> None:
        """Mark a curve outside the curve set that the inventory names: it is another curve of the same name."""
        curves, algorithm = self.found.get("curve", {}), next(iter(self.found.get(ALGORITHM, {})), "")
        is_of_curves = curves or "group" in self.found or algorithm in _BY_CURVE
        for name, property_ in self.found.pop("curve-set", {}).items():
            if not curves and (curve := self._of_set(name)):
                self._add("curve", curve, property_)
            elif not is_of_curves:
                self.left.append((property_, name))
            elif curves and not any(is_like(one, pattern) for one in curves for pattern in table().curve_sets[name]):
                self._add("curve", name, property_)

    def _of_set(self, name: str) -> str | None:
        """Return the curve of a set whose field has the size that is given; None: it is not one."""
        fields_ = self.found.get("field", {})
        fitting = [
            curve
            for curve, bits in table().curve_sizes.items()
            if fields_ and all(int(one) in bits for one in fields_)
            if any(is_like(curve, pattern) for pattern in table().curve_sets[name])
        ]
        return fitting[0] if len(fitting) == 1 else None

    def _size_digests(self) -> None:
        """Turn a hash family with a size into the hash, such as `SHA` of 256 bits; a wrong size is a contradiction."""
        if ALGORITHM in self.found and self.found.get(DIGEST, {}).keys() & table().hash_families.keys() - {
            "blake2b",
            "blake2s",
        }:
            # The inventory does not give the hash of the family; RSA signs with any of them.
            if [*self.found[ALGORITHM]] == ["rsa"]:
                self._add("use", "sign", "name")
            del self.found[DIGEST]
        digests, said = self.found.get(DIGEST, {}), self.found.pop("size", {})
        bits = self.found.get("bits", {})
        for digest in [*digests]:
            own = sizes.of_hash(digest)
            if bits.get(own) == "parameter" and ALGORITHM in self.found:
                # `parameterSetIdentifier` is 512 for SHA512withRSA too: there it is not the size of the key.
                del bits[own]
            for size, property_ in said.items():
                generation = _OF_SHA.get(size, "") if digest == "sha" else ""
                sized = generation or _SIZED.get(digest, "").format(size)
                if sized and (generation or size in ("224", "256", "384", "512") or digest.startswith("blake2")):
                    digests[sized] = digests.pop(digest)
                    digest = sized
                elif size != own and ALGORITHM not in self.found:
                    self._add(DIGEST, f"{size} bits", property_)
        if "bits" in self.found and not bits:
            del self.found["bits"]
        if any(one.startswith("sha-") and property_ != digests.get("sha") for one, property_ in digests.items()):
            # `SHA` names the family where another property names the hash.
            digests.pop("sha", None)
        for digest, plain in _BARE.items():
            if digest in digests:
                digests[plain] = digests.pop(digest)

    def _sign_by_hash(self) -> None:
        """Add the use that the padding gives: RSA signs with PSS or with a hash, unless its padding is OAEP."""
        for padding, use in (("pss", "sign"), ("oaep", "exchange")):
            if padding in self.found.get("padding", {}):
                self._add("use", use, self.found["padding"][padding])
        is_rsa = [*self.found.get(ALGORITHM, {})] == ["rsa"] and "oaep" not in self.found.get("padding", {})
        hashes = [property_ for property_ in self.found.get(DIGEST, {}).values() if property_ in ("name", "oid")]
        if is_rsa and hashes:
            self.found["use"] = {"sign": hashes[0]}


# scrypt's cost as its power of two: `ln=17`.
_LOGARITHM = "log2-n"
_MOST_POWER = 32
# Larger sizes of a tag are bits.
_MOST_OCTETS = 16
# The algorithms of which a bound of the size says something: `RSA <2048`.
_WITH_BOUNDS = frozenset({"rsa", "dsa"})
_BY_CURVE = frozenset({"ec", "ecdsa", "ecdh", "ecgdsa", "mqv", "ecies"})
# The bits of fields; other numbers are a curve's own, as in `Oakley 3` and `Curve1174`.
_FIELDS = frozenset({*range(100, 640), 25519})
# The algorithms that may be named in the place of a curve.
_OF_CURVES = _BY_CURVE | {"eddsa"}
_BY_PASSWORD = "pbes"
# The cipher of encryption by a password.
_ENCLOSED = "enclosed"
_FACTS = frozenset({ALGORITHM, *names.PLAIN_FACTS, "bits", "mask", names.MOST})
# The facts that each property holding a name can give.
_NAMES = {
    "name": _FACTS,
    "family": frozenset({ALGORITHM, DIGEST, "padding", "use"}),
    "parameter": _FACTS,
    "curve": frozenset({"curve", "curve-set"}),
    "mode": frozenset({"mode"}),
    "padding": frozenset({"padding"}),
    "oid": _FACTS,
    "size": frozenset[str](),
}
# No word of these may be left over.
_WHOLE = frozenset({"name", "parameter"})
_WITH_PARAMETERS = frozenset({
    "aes", "camellia", "aria", "rsa", "dsa", "ecdsa", "ecdh", "ec", "dh", "hmac", "ml-dsa", "ml-kem", "slh-dsa", "3des",
    "des", "rc2", "pbkdf2", "pbes",
})  # fmt: skip
_PRIMITIVES = {
    **{one.replace("-", ""): one for one in (
        "drbg", "mac", "block-cipher", "stream-cipher", "signature", "hash", "pke", "xof", "kdf", "key-agree", "kem",
        "ae", "combiner", "key-wrap",
    )},
    "keyagreement": "key-agree",
    "aead": "ae",
    "keyderivation": "kdf",
}  # fmt: skip
# The generations of SHA, and the bits of the first.
_OF_SHA = {"1": "sha-1", "160": "sha-1", "2": "sha-2", "3": "sha-3"}
_SIZED = {
    "sha": "sha-{}",
    "sha-2": "sha-{}",
    "sha-3": "sha3-{}",
    "blake2b": "blake2b-{}",
    "blake2s": "blake2s-{}",
    "shake": "shake-{}",
}
_BARE = {"sha": "sha-1", "blake2b": "blake2b-512", "blake2s": "blake2s-256"}


def _bits(fact: str, number: str) -> str:
    """Return the bits of a tag, which a small number gives in octets; other facts are returned unchanged."""
    return str(8 * int(number)) if fact == "tag" and int(number) <= _MOST_OCTETS else number


def _slots(algorithm: str, digests: Sequence[str]) -> str:
    kind = names.class_of(algorithm)
    for slots in (algorithm, kind if algorithm in _WITH_PARAMETERS else "", *("" if algorithm else digests)):
        if slots and names.has_slots(slots):
            return slots
    if algorithm:
        return "unlisted"
    return "digest" if digests else ""


@lru_cache(_MOST_REMEMBERED)
def _values(fact: str, property_: str, text: str) -> tuple[str, ...]:
    """Return the values of a fact in the text of a property, which may name several assets."""
    found = (_first(fact, one) for one in _each(property_, text))
    return tuple(one for one in found if one)


def _first(fact: str, text: str) -> str | None:
    # Most texts have no value of most facts, and one search shows that.
    if not text or not _any_of(fact).search(text):
        return None
    for value, some in table().fact[fact].items():
        for pattern in some:
            if match := pattern.search(text):
                return match.expand(value) if "\\" in value else value
    return None


@cache
def _any_of(fact: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p.pattern})" for some in table().fact[fact].values() for p in some))


def _each(property_: str, text: str) -> list[str]:
    return text.split(_BETWEEN_TEXTS[property_]) if property_ in _BETWEEN_TEXTS else [text]
