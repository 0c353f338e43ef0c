"""Facts of an asset, read from its texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from string import Formatter

from tollbar.catalog.families import Family, fits
from tollbar.decide.price import names, sizes, unmeasured
from tollbar.decide.price.fact_reader import FactReader
from tollbar.decide.price.levels import LEVELS
from tollbar.decide.price.names import ALGORITHM, DIGEST
from tollbar.decide.price.parts import shown
from tollbar.decide.price.table import Row, table

# Fact that may have both of its values, such as a key for signatures and for transport.
_SEVERAL = "use"


class Facts:
    """Facts that the texts of an asset give."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        read = FactReader(texts)
        self.found, self.left, self.primitive = read.found, read.left, read.primitive
        oid = texts.get("oid", "")
        self.unknown_oid = _unknown("oid", oid.removeprefix("? ")) if oid.startswith("? ") else None
        """Sentence about an unknown object identifier; None: it is known or absent."""
        self._written = texts.get("name", "") or texts.get("family", "")
        self.functions = tuple(texts.get("functions", "").lower().split())
        self.levels = {name: texts[name] for name in LEVELS if name in texts}
        self.values = {name: next(iter(values)) for name, values in self.found.items() if self._is_plain(name)}
        if algorithm := self.values.get(ALGORITHM):
            self.values["family"] = _FAMILIES.get(names.class_of(algorithm), "?")

    @property
    def key(self) -> str:
        """Text of all facts that decide the choice of an asset, and of the name in a reason."""
        return repr(
            (self.found, self.left, self.unknown_oid, self.primitive, self.functions, self._written, self.levels)
        )

    def of(self, facts: Mapping[str, object]) -> Mapping[str, str]:
        return {name: self.values[name] for name in facts if name in self.values}

    def fits(self, row: Row) -> bool:
        """Return whether a row of the table is about such facts."""
        return fits(row.where, self.of(row.where))

    def contradiction(self, facts: Sequence[str]) -> str | None:
        """Return the sentence about two properties that give different values; None if there are none."""
        for name in facts:
            found = self.found.get(name, {})
            if len(found) > 1 and name != _SEVERAL:
                (value, property_), (other, of_other) = [*found.items()][:2]
                says, of_other_says = ("say" if one in _LISTS else "says" for one in (property_, of_other))
                if property_ == of_other:
                    return f"its {_PROPERTIES.get(property_, property_)} {says} both {value} and {other}"
                return f"its {property_} {says} {value}, and its {of_other} {of_other_says} {other}"
        return None

    def filled(self, template: str) -> str | None:
        """Return the template with facts in it; None if one of them is not known."""
        return template.format_map(self.values) if all(name in self.values for name in fields(template)) else None

    def left_over(self, row: Row) -> str | None:
        """Return the sentence about a part of a name that the choice does not account for; None if there is none."""
        if self.left:
            return _unknown(*self.left[0])
        templates = (*row.choices, *(one for some in row.settings.values() for one in some))
        used = {*row.where, *row.needs, *row.agree, *(field for one in templates for field in fields(one))}
        for name in _COUNTED:
            for value, property_ in self.found.get(name, {}).items():
                is_of_rsa = value in _OF_RSA and self.values.get("family") == "cipher"
                if is_of_rsa or (name not in used and (property_ in _OF_ALGORITHMS or value in _OF_RSA)):
                    return (
                        f"its {_PROPERTIES.get(property_, property_)} says {value} in addition, which is not part of it"
                    )
        return None

    def cut_tag(self) -> str | None:
        """Return the sentence about a tag that is shorter than the measured one; None if it is whole."""
        tag, of_hash = self.values.get("tag"), self.values.get(DIGEST, "").rpartition("-")[2]
        whole = {"1": "160", "md5": "128"}.get(of_hash, of_hash) if self.values.get(ALGORITHM) == "hmac" else "128"
        is_tagged = (self.values.get(ALGORITHM) == "hmac" and whole) or self.values.get("mode") in ("gcm", "ccm")
        is_tagged = is_tagged or self.values.get(ALGORITHM) == "chacha20-poly1305"
        return f"its tag has {tag} bits; the judged one has {whole}" if is_tagged and tag not in (None, whole) else None

    def negated(self) -> str | None:
        """Return the sentence about an unknown word such as `without`, which may negate a part of the name, or None."""
        if not {ALGORITHM, DIGEST} & self.values.keys():
            return None
        found = (one for one in self.left if one[1].lower() in _NEGATIONS or one[1].startswith("!"))
        return next((_unknown(*one) for one in found), None)

    def doubtful(self) -> Iterator[str]:
        """Yield the sentences about lengths that the choice does not accept."""
        for row in table().length:
            for value in self.found.get(row.fact, {}):
                if not (row.accepted and names.takes_number(row.accepted, int(value))):
                    yield row.sentence.format(value=value)
        most = int(sizes.of_hash(self.values[DIGEST])) // 8 if _is_sized(self.values.get(DIGEST, "")) else _MOST_SALT
        for salt in self.found.get("salt", {}) if self.values.get("padding") == "pss" else ():
            if int(salt) > most:
                # FIPS 186-5, section 5.4 (g).
                yield f"its salt has {salt} bytes: more than its hash has"

    @property
    def is_alone(self) -> bool:
        """True if no row of the table maps the algorithm to choices."""
        algorithm = self.values.get(ALGORITHM, "")
        return not any(algorithm in row.where.get(ALGORITHM, ()) for row in table().choice if row.choices and algorithm)

    def may_be_judged(self, families: Mapping[str, Family]) -> bool:
        """Return False for an algorithm of a known family that has neither a choice nor a judgement."""
        algorithm = self.values.get(ALGORITHM, "")
        family = _FAMILIES.get(names.class_of(algorithm), "")
        known = families.get(family)
        if known is None or not self.is_alone:
            return True
        found = unmeasured.find(known, unmeasured.CHOICE, algorithm)
        return found is not None and not found.is_judged_only

    def absent(self) -> str:
        """Return the sentence about a known algorithm that is not among Tollbar's choices."""
        digest = "" if ALGORITHM in self.values else self.values.get(DIGEST, "")
        is_written = digest in ("", *names.read(self._written).values(DIGEST)) or digest in table().hash_families
        written = shown(self._written) if is_written or names.read(self._written).left else digest
        return f"{written or self.values.get(ALGORITHM, 'it')} is not among Tollbar's choices"

    def _is_plain(self, name: str) -> bool:
        return name != _SEVERAL or len(self.found[name]) == 1


_NEGATIONS = frozenset({"without", "no", "not", "non", "never"})
# The bytes of the longest hash.
_MOST_SALT = 64
_LISTS = frozenset({"algorithms", "functions", "identifiers"})
_COUNTED = (DIGEST, "mode", "padding", "curve", "group", "parameter", "purpose", "bits", "export")
# The properties of which each fact must be a part of the choice.
_OF_ALGORITHMS = frozenset({"name", "parameter", "oid", "mode", "curve"})
# Paddings that nothing else has; that of blocks is written for anything.
_OF_RSA = frozenset({"pss", "oaep", "pkcs1"})
_PROPERTIES = {"parameter": "parameterSetIdentifier"}
_FAMILIES = {
    "cipher": "cipher",
    "mac": "mac",
    "password": "password-hash",
    "signature": "signature",
    "exchange": "key-exchange",
}  # fmt: skip


def _unknown(property_: str, word: str) -> str:
    return f"`{shown(word)}` in its {_PROPERTIES.get(property_, property_)} is not known here"


def _is_sized(digest: str) -> bool:
    return sizes.of_hash(digest).isdigit()


def fields(template: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(template) if name]
