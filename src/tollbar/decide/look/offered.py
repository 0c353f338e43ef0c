"""Facts of a look, each with its values, their standings, and the rulings of policies on them.

A value is judged in a cell of its version alone, so that each rule speaks of the value that breaks it. Values that the
lab does not measure are judged by a copy of the family that has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from pydantic import Field

from tollbar.catalog import families
from tollbar.catalog.families import Family, SettingValue, Standing, Value
from tollbar.catalog.policies import STANDINGS, Rule, Ruling, is_worse
from tollbar.core import wire
from tollbar.core.patterns import is_like
from tollbar.decide.rulings import Reason, Wanted, candidate, ruled_on
from tollbar.lab.tls.looking import Look, Prime

_TABLE = Path(__file__).with_name("unmeasured.toml")
CHOICE, KEY_EXCHANGE, CIPHER, CERTIFICATE = "choice", "key-exchange", "cipher", "certificate"
SIGNATURE, RESUMPTION = "signature", "resumption"
FACTS: Mapping[str, str] = {
    CHOICE: "versions",
    KEY_EXCHANGE: "key exchange",
    CIPHER: "ciphers",
    SIGNATURE: "signatures",
    CERTIFICATE: "certificates",
    RESUMPTION: "resumption",
}
"""Title of each fact, by the setting of its values; the family has no setting `signature`."""
_EXCHANGES = {
    "rsa": "RSA key exchange",
    "dhe": "DHE",
    "ecdh": "static ECDH",
    "anon": "anonymous key exchange",
}
_WAYS = {"ticket": "tickets", "session-id": "session ids", "none": "none"}
_RSA_BITS = (1024, 2048, 3072, 4096)
# Known parameters of at least as many bits, by which other primes are judged.
_PRIMES = {4096: "modp-4096", 3072: "modp-3072", 2048: "modp-2048", 0: "modp-1024"}


@dataclass(frozen=True, slots=True)
class Offered:
    """Value that a server offers, with its rulings."""

    setting: str
    value: str
    version: str
    """Newest version in which it is offered."""
    title: str
    standing: Standing | None = None
    because: str | None = None
    """Source or reason of the standing, for a value that the family does not have."""
    also: Mapping[str, Value] = field(default_factory=dict)
    """Further coordinates of its cell, such as the parameters of a Diffie-Hellman exchange."""
    broken: tuple[Reason, ...] = ()
    missing: tuple[Reason, ...] = ()

    @property
    def ruling(self) -> Ruling:
        if self.broken:
            return Ruling.BREAKS
        return Ruling.CANNOT_SAY if self.missing else Ruling.MEETS

    @property
    def cell(self) -> Mapping[str, Value]:
        return {CHOICE: self.version, **({self.setting: self.value} if self.setting != CHOICE else {}), **self.also}


@dataclass(frozen=True, slots=True)
class Fact:
    """Fact about a server: the values that it offers of one kind."""

    setting: str
    offered: tuple[Offered, ...]
    is_ruled_on: bool
    """True if a policy has a rule on such values, or none was named, so that standings decide."""

    @property
    def title(self) -> str:
        return FACTS[self.setting]

    @property
    def ruling(self) -> Ruling:
        """Return the worst ruling of its values."""
        found = {one.ruling for one in self.offered}
        return next((one for one in (Ruling.BREAKS, Ruling.CANNOT_SAY) if one in found), Ruling.MEETS)

    @property
    def breaking(self) -> tuple[Offered, ...]:
        """Values that break a rule, those in the worst standing first."""
        found = (one for one in self.offered if one.ruling is Ruling.BREAKS)
        return tuple(sorted(found, key=lambda one: STANDINGS.index(one.standing) if one.standing else len(STANDINGS)))


def facts_of(look: Look, wanted: Wanted) -> tuple[Fact, ...]:
    """Return the facts of a look, judged; kinds of which nothing was learnt are left out."""
    on = ruled_on(wanted)
    found: dict[str, list[Offered]] = {}
    for one in _offered(look):
        found.setdefault(one.setting, []).append(judged(one, wanted))
    return tuple(
        Fact(
            setting,
            tuple(found[setting]),
            # A rule on strength names no setting.
            not wanted.policies or setting in on or any(one.broken for one in found[setting]),
        )
        for setting in FACTS
        if setting in found
    )


def judged(one: Offered, wanted: Wanted) -> Offered:
    """Return a value with its standing and the rulings on it; without policies its standing decides."""
    family = family_with(one.version, one.setting, one.value)
    row = _row(one.setting, one.value)
    found = replace(one, standing=row.standing if row else _standing(family, one), because=row.because if row else None)
    standing = found.standing
    if not wanted.policies:
        is_bad = standing is not None and is_worse(standing, Standing.ACCEPTABLE)
        words = f"{standing.words}, below {Standing.ACCEPTABLE.words}" if standing and is_bad else ""
        return replace(found, broken=(Reason(words),) if is_bad else ())
    if one.setting == SIGNATURE:
        return found
    asked = replace(wanted, family=family, standing=None)
    broken, missing = _reasons(asked, one.cell, one.setting)
    if row is not None and row.no_better_than is not None:
        near = {**one.cell, one.setting: row.no_better_than}
        seen = {(reason.policy, reason.rule.id) for reason in (*broken, *missing) if reason.rule}
        more = [
            [
                replace(reason, what=reason.what.replace(row.no_better_than, one.value))
                for reason in some
                if reason.rule and (reason.policy, reason.rule.id) not in seen and reason.rule.strength is None
            ]
            for some in _reasons(asked, near, one.setting)
        ]
        broken, missing = (*broken, *more[0]), (*missing, *more[1])
    if row is not None:
        left_open = [replace(one, what=row.open[_id(one)]) for one in broken if _id(one) in row.open]
        broken = [one for one in broken if _id(one) not in (*row.approved_by, *row.open)]
        missing = (*missing, *left_open)
    return replace(found, broken=tuple(broken), missing=tuple(missing))


def _id(reason: Reason) -> str:
    """Return the policy and the rule of a reason, as `unmeasured.toml` names them."""
    return f"{reason.policy}:{reason.rule.id}" if reason.rule else ""


def _standing(family: Family, one: Offered) -> Standing | None:
    """Return the standing of a measured value, with the parameters that belong to it; None: it has none by itself."""
    if one.setting == CHOICE:
        return family.choices[one.value].standing
    own = {one.setting: one.value, **one.also}
    found = [
        family.settings[name].about[str(value)].standing
        for name, value in own.items()
        if name in family.settings and str(value) in family.settings[name].about
    ]
    return min((one for one in found if one is not None), key=STANDINGS.index, default=None)


def _reasons(wanted: Wanted, cell: Mapping[str, Value], setting: str) -> tuple[Sequence[Reason], Sequence[Reason]]:
    """Return the rules that one value of a cell breaks, and those that cannot be judged though it is known."""
    found = candidate(wanted, cell)
    before = candidate(wanted, {CHOICE: cell[CHOICE]}).broken if setting != CHOICE else ()
    by_version = {(one.policy, one.rule.id if one.rule else None) for one in before}
    broken = [one for one in found.broken if (one.policy, one.rule.id if one.rule else None) not in by_version]
    return broken, [one for one in found.missing if one.rule is None or _is_on(one.rule, setting, cell)]


def _is_on(rule: Rule, setting: str, cell: Mapping[str, Value]) -> bool:
    """Return whether a rule speaks of this setting, and of no other that the cell leaves open."""
    names = {*rule.where, *rule.only, *rule.never}
    return setting in names and names <= cell.keys()


def _offered(look: Look) -> Iterator[Offered]:
    """Yield each value that the server offers once, at the newest version that has it."""
    newest = look.versions[0]
    for version in look.versions:
        yield Offered(CHOICE, version, version, version_title(version))
    found: dict[tuple[str, str], Offered] = {}
    for version, suites in look.suites.items():
        for suite in suites:
            if suite.key_exchange in _EXCHANGES:
                for one in _exchanges(suite.key_exchange, version, look.primes):
                    found.setdefault((KEY_EXCHANGE, one.title), one)
            found.setdefault((CIPHER, suite.cipher), Offered(CIPHER, suite.cipher, version, cipher_title(suite.cipher)))
    for version, groups in look.groups.items():
        for group in groups:
            found.setdefault((KEY_EXCHANGE, group.value), Offered(KEY_EXCHANGE, group.value, version, group.title))
    for version, schemes in look.schemes.items():
        for scheme in schemes:
            found.setdefault((SIGNATURE, scheme.name), Offered(SIGNATURE, scheme.digest, version, scheme.name))
    yield from found.values()
    for certificate in look.certificates:
        yield Offered(CERTIFICATE, measured_certificate(certificate.kind), newest, certificate.title)
    for version, ways in look.resumes.items():
        for way in ways or ["none"]:
            yield Offered(RESUMPTION, way, version, f"{_WAYS[way]} in {version_title(version)}")


def _exchanges(kind: str, version: str, primes: Sequence[Prime]) -> Iterator[Offered]:
    """Yield a key exchange without groups; one over finite fields for each of its primes."""
    if kind != "dhe" or not primes:
        yield Offered(KEY_EXCHANGE, kind, version, _EXCHANGES[kind])
        return
    for prime in primes:
        name = prime.name or _PRIMES[next(bits for bits in _PRIMES if prime.bits >= bits)]
        title = f"DHE with {prime.name or f'a prime of {prime.bits:,} bits'}"
        yield Offered(KEY_EXCHANGE, kind, version, title, also={"dh-parameters": name})


def measured_certificate(kind: str) -> str:
    """Return the measured kind by which a key is judged: the largest RSA modulus that is not larger."""
    algorithm, _, bits = kind.partition("-")
    if algorithm != "rsa" or not bits.isdecimal():
        return kind
    return f"rsa-{max((size for size in _RSA_BITS if size <= int(bits)), default=_RSA_BITS[0])}"


def version_title(version: str) -> str:
    """Return a version for people: `TLS 1.2`, `SSL 3`."""
    return version.upper().replace("-", " ")


def cipher_title(cipher: str) -> str:
    """Return a cipher for people: `AES-128-GCM`, `AES-256-CBC with SHA-2`."""
    base, _, digest = cipher.partition("-sha-")
    if base == "chacha20-poly1305":
        return "ChaCha20-Poly1305"
    return f"{base.upper()}{f' with SHA-{digest}' if digest else ''}"


class _Row(wire.Wire):
    setting: str
    value: str
    standing: Standing
    strength: int | None = None
    no_better_than: str | None = None
    because: str
    approved_by: tuple[str, ...] = ()
    open: dict[str, str] = Field(default_factory=dict)


class _Values(wire.Wire):
    value: tuple[_Row, ...]


@cache
def _rows() -> tuple[_Row, ...]:
    return wire.read(_TABLE, _Values).value


def _row(setting: str, value: str) -> _Row | None:
    """Return the row of a value that the lab does not measure; None: it does, or nothing is known of it."""
    if _is_measured(setting, value):
        return None
    return next((one for one in _rows() if one.setting == setting and is_like(value, one.value)), None)


def _is_measured(setting: str, value: str) -> bool:
    family = families.family("tls")
    if setting == CHOICE:
        return value in family.choices
    return setting in family.settings and value in (family.settings[setting].values or ())


@cache
def family_with(version: str, setting: str, value: str) -> Family:
    """Return the family with this version, and with this value of a setting, whether the lab measures them or not."""
    family = families.family("tls")
    if not _is_measured(CHOICE, version):
        near, row = family.choices["tls-1.2"], _row(CHOICE, version)
        added = replace(near, name=version, standing=row.standing if row else near.standing, authority=())
        family = replace(family, choices={**family.choices, version: added})
    if setting not in family.settings or _is_measured(setting, value):
        return family
    of, row = family.settings[setting], _row(setting, value)
    about = {**of.about, value: _about(value, row)} if row else of.about
    added_to = replace(of, values=(*(of.values or ()), value), about=about)
    return replace(family, settings={**family.settings, setting: added_to})


def _about(value: str, row: _Row) -> SettingValue:
    return SettingValue(value, value, None, row.strength, None, row.standing, (), {}, {}, row.because)
