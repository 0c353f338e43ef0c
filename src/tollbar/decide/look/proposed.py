"""Changes of a server that meet the policies or improve on its present choice, and the cells that price them.

A price is the cost of a connection, or of a request, of a client that the change affects: the changed cell relative to
the present one, on a server of this machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tollbar.analysis import Toll
from tollbar.catalog import families
from tollbar.catalog.families import Value
from tollbar.catalog.policies import Ruling
from tollbar.core.words import enumeration, few
from tollbar.decide.look.offered import (
    CERTIFICATE,
    CHOICE,
    CIPHER,
    KEY_EXCHANGE,
    RESUMPTION,
    SIGNATURE,
    Fact,
    Offered,
    cipher_title,
    judged,
    measured_certificate,
    version_title,
)
from tollbar.decide.rulings import Wanted
from tollbar.lab.tls.code_points import groups
from tollbar.lab.tls.looking import Look

Cell = Mapping[str, Value]

MOST_TITLES = 2
"""Limit of the values that a change names; the facts have all."""

# Preferred first: the hybrids that are standardised, those of NIST's groups, then pure and classical ones.
GROUPS = (
    "x25519mlkem768", "secp256r1mlkem768", "secp384r1mlkem1024", "mlkem1024", "mlkem768", "x25519", "ecdhe-p256",
)  # fmt: skip
CIPHERS = ("aes-128-gcm", "aes-256-gcm", "chacha20-poly1305")
CERTIFICATES = ("ecdsa-p256", "ecdsa-p384", "rsa-2048", "rsa-3072", "rsa-4096", "ml-dsa-65", "ml-dsa-87")
_OLD = ("rsa", "dhe")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two cells whose costs price a change."""

    op: str
    after: Cell
    before: Cell

    @property
    def is_post_quantum(self) -> bool:
        """True if either cell has ML-KEM or ML-DSA."""
        values = [str(cell[name]) for cell in (self.after, self.before) for name in (KEY_EXCHANGE, CERTIFICATE)]
        return any("mlkem" in one or one.startswith("ml-dsa") for one in values)


@dataclass(frozen=True, slots=True)
class Change:
    """Change of a server's configuration or keys."""

    setting: str
    """Fact that it changes."""
    words: str
    is_needed: bool
    """True if a policy requires it; false if it only improves on the present choice."""
    pair: Pair | None = None
    free_for: str | None = None
    """Clients for which nothing changes, where these are all that remain."""
    unpriced: str | None = None
    """Reason why it has no price."""
    toll: Toll | None = None
    server: str | None = None
    """Server on which it is priced."""


def changes_of(look: Look, facts: Sequence[Fact], wanted: Wanted) -> tuple[Change, ...]:
    """Return the changes in the order of the facts."""
    return tuple(_Changes(look, {one.setting: one for one in facts}, wanted).all())


def title_of_group(value: str) -> str:
    """Return a key exchange for people."""
    known = {one.value: one.title for one in groups().values()}
    return known.get(value, value.upper())


@dataclass(frozen=True, slots=True)
class _Changes:
    """Changes of one server."""

    look: Look
    facts: Mapping[str, Fact]
    wanted: Wanted

    def all(self) -> Iterator[Change]:
        yield from self._versions()
        yield from self._key_exchange()
        yield from self._ciphers()
        yield from self._signatures()
        yield from self._certificates()
        yield from self._resumption()

    def _versions(self) -> Iterator[Change]:
        fact = self.facts[CHOICE]
        kept = [one.value for one in fact.offered if one.ruling is not Ruling.BREAKS]
        if fact.breaking and kept:
            yield Change(CHOICE, f"remove {_titles(fact.breaking)}", True, free_for=_clients(kept[0]))
        best = next((one for one in ("tls-1.3", "tls-1.2") if self._is_approved(CHOICE, one, one)), None)
        if best is not None and best not in self.look.versions and (best == "tls-1.3" or not kept):
            more = f" and remove {_titles(fact.breaking)}" if fact.breaking and not kept else ""
            before = self._present()
            after = self._cell(best)
            yield self._priced(
                Change(CHOICE, f"offer {version_title(best)}{more}", not kept), "connect", after, before, _NO_PRESENT
            )
        elif fact.breaking and not kept:
            yield Change(CHOICE, f"remove {_titles(fact.breaking)}", True, unpriced="no version is approved")

    def _key_exchange(self) -> Iterator[Change]:
        fact = self.facts.get(KEY_EXCHANGE)
        if fact is None:
            return
        old = [one for one in fact.breaking if one.value in _OLD]
        others = [one for one in fact.breaking if one.value not in _OLD]
        offered = {one.value for one in fact.offered if one.ruling is not Ruling.BREAKS}
        for one in old:
            best = self._best_group("tls-1.2")
            is_there = best in offered
            words = (
                f"remove {one.title}"
                if is_there or best is None
                else f"offer {title_of_group(best)}, remove {one.title}"
            )
            before = self._cell("tls-1.2", **{KEY_EXCHANGE: one.value, **one.also, CERTIFICATE: self._rsa()})
            after = self._cell("tls-1.2", **{KEY_EXCHANGE: best, CERTIFICATE: self._rsa()}) if best else None
            yield self._priced(
                Change(KEY_EXCHANGE, words, True), "connect", after, before, f"no {one.title} is measured"
            )
        if others:
            kept = [one for one in fact.offered if one.ruling is not Ruling.BREAKS and one.value not in _OLD]
            words = f"remove {_titles(others)}"
            if kept:
                yield Change(KEY_EXCHANGE, words, True, free_for=f"clients with {kept[0].title}")
            elif not old:
                yield Change(KEY_EXCHANGE, words, True, unpriced="no other key exchange is offered")
        yield from self._better_group(offered)

    def _better_group(self, offered: set[str]) -> Iterator[Change]:
        best = self._best_group("tls-1.3")
        now = self._group("tls-1.3")
        if best is None or best in offered or not self._is_approved(CHOICE, "tls-1.3", "tls-1.3"):
            return
        if now in GROUPS and GROUPS.index(best) > GROUPS.index(now) and now in offered:
            return
        has_13 = "tls-1.3" in self.look.versions
        words = f"offer {title_of_group(best)}{'' if has_13 else ' with TLS 1.3'}"
        before = self._cell("tls-1.3", **{KEY_EXCHANGE: now if now in GROUPS else "x25519"})
        is_needed = not any(one in offered for one in GROUPS)
        after = self._cell("tls-1.3", **{KEY_EXCHANGE: best})
        yield self._priced(Change(KEY_EXCHANGE, words, is_needed), "connect", after, before, "")

    def _ciphers(self) -> Iterator[Change]:
        fact = self.facts.get(CIPHER)
        if fact is None or not fact.breaking:
            return
        kept = [one for one in fact.offered if one.ruling is not Ruling.BREAKS]
        best = next((one for one in CIPHERS if self._is_approved(CIPHER, one, "tls-1.2")), None)
        new = best is not None and not kept
        words = f"{f'offer {cipher_title(best)}, ' if new and best else ''}remove {_titles(fact.breaking)}"
        change = Change(CIPHER, words, True)
        measured = next((one.value for one in fact.breaking if one.value in _values(CIPHER)), None)
        if kept and measured is None:
            yield replace(change, free_for=f"clients with {kept[0].title}")
            return
        # Records of the first measured cipher stand for all.
        before = self._cell("tls-1.2", **{CIPHER: measured}) if measured else None
        after = self._cell("tls-1.2", **{CIPHER: best}) if best else None
        none = f"no lab server has {fact.breaking[0].title}"
        yield self._priced(change, "request", after, before, none)

    def _signatures(self) -> Iterator[Change]:
        fact = self.facts.get(SIGNATURE)
        if fact is None:
            return
        bad = [one for one in fact.offered if one.because is not None]
        good = [one for one in fact.offered if one.because is None]
        if bad and good:
            yield Change(
                SIGNATURE, f"remove {_titles(bad)}", bool(fact.breaking), free_for=f"clients with {good[0].title}"
            )

    def _certificates(self) -> Iterator[Change]:
        fact = self.facts.get(CERTIFICATE)
        if fact is None:
            return
        version = self._newest()
        for one in fact.breaking:
            same = [each for each in CERTIFICATES if each.partition("-")[0] == one.value.partition("-")[0]]
            best = next(
                (each for each in (*same, *CERTIFICATES) if self._is_approved(CERTIFICATE, each, version)), None
            )
            if best is None:
                yield Change(CERTIFICATE, f"remove {one.title}", True, unpriced="no certificate is approved")
                continue
            words = f"replace {one.title} by {certificate_title(best)}"
            after, before = self._cell(version, **{CERTIFICATE: best}), self._cell(version, **{CERTIFICATE: one.value})
            yield self._priced(
                Change(CERTIFICATE, words, True), "connect", after, before, f"no {one.title} is measured"
            )
        kinds = {one.value.partition("-")[0] for one in fact.offered if one.ruling is not Ruling.BREAKS}
        if kinds == {"rsa"} and self._is_approved(CERTIFICATE, "ecdsa-p256", version):
            after = self._cell(version, **{CERTIFICATE: "ecdsa-p256"})
            before = self._cell(version, **{CERTIFICATE: self._rsa()})
            words = f"add a certificate with an {certificate_title('ecdsa-p256')} key"
            yield self._priced(Change(CERTIFICATE, words, False), "connect", after, before, "")

    def _resumption(self) -> Iterator[Change]:
        version = self._newest()
        if version not in self.look.resumes or self.look.resumes[version]:
            return
        before = self._cell(version)
        after = {**before, RESUMPTION: "ticket"} if before else None
        yield self._priced(Change(RESUMPTION, "offer tickets", False), "connect", after, before, "")

    def _priced(self, change: Change, op: str, after: Cell | None, before: Cell | None, otherwise: str) -> Change:
        """Return a change with the pair of cells that prices it, or the reason why no pair does."""
        family = self.wanted.family
        refused = next((why for one in (after, before) if one and (why := family.why_unsupported(one))), None)
        if after is None or before is None or refused:
            return replace(change, unpriced=refused or otherwise or "nothing like it is measured")
        # A request on an open connection resumes nothing.
        both = ({RESUMPTION: "none"} | {**one} if op == "connect" else one for one in (after, before))
        return replace(change, pair=Pair(op, *both))

    def _is_approved(self, setting: str, value: str, version: str) -> bool:
        return judged(Offered(setting, value, version, value), self.wanted).ruling is Ruling.MEETS

    def _best_group(self, version: str) -> str | None:
        of_13 = version == "tls-1.3"
        able = [one for one in GROUPS if of_13 or "mlkem" not in one]
        if not of_13:
            offered = [one.value for one in self.look.groups.get(version, ())]
            able.sort(key=lambda one: one not in offered)
        return next((one for one in able if self._is_approved(KEY_EXCHANGE, one, version)), None)

    def _newest(self) -> str:
        """Return the newest version that the lab measures."""
        return next((one for one in self.look.versions if one in _values(CHOICE)), "tls-1.2")

    def _present(self) -> Cell | None:
        """Return the cell that a modern client negotiates now; None: the lab measures nothing like it."""
        version = self.look.versions[0]
        return self._cell(version) if version in _values(CHOICE) else None

    def _cell(self, version: str, **settings: Value) -> Cell:
        """Return a cell of a version: the given settings, and others as the server has them."""
        cell: dict[str, Value] = {CHOICE: version, CERTIFICATE: self._certificate(), KEY_EXCHANGE: self._group(version)}
        cell |= {CIPHER: self._cipher(version)} | settings
        if cell[KEY_EXCHANGE] in _OLD:
            cell[CERTIFICATE] = self._rsa()
            primes = [one.also for one in self.facts[KEY_EXCHANGE].offered if one.value == "dhe" and one.also]
            if cell[KEY_EXCHANGE] == "dhe":
                cell.setdefault("dh-parameters", primes[0]["dh-parameters"] if primes else "ffdhe2048")
        if cell[KEY_EXCHANGE] == "rsa" and cell[CIPHER] == "chacha20-poly1305":
            cell[CIPHER] = CIPHERS[0]
        return cell

    def _group(self, version: str) -> str:
        """Return the measured key exchange that a modern client gets in a version, or else X25519."""
        offered = [one.value for one in self.look.groups.get(version, ())]
        kinds = {one.key_exchange for one in self.look.suites.get(version, ())}
        found = (one for one in (*GROUPS, *_OLD) if one in offered or (one in _OLD and one in kinds))
        return next(found, "x25519")

    def _cipher(self, version: str) -> str:
        accepted = [one.cipher for one in self.look.suites.get(version, ())]
        able = [one for one in accepted if one in _values(CIPHER) and (version != "tls-1.3" or not one.endswith("cbc"))]
        return able[0] if able else CIPHERS[0]

    def _certificate(self) -> str:
        kinds = [measured_certificate(one.kind) for one in self.look.certificates]
        known = [one for one in kinds if one in _values(CERTIFICATE)]
        # A modern client gets the one that is no RSA key.
        return next(iter(sorted(known, key=lambda one: one.startswith("rsa"))), "ecdsa-p256")

    def _rsa(self) -> str:
        kinds = [measured_certificate(one.kind) for one in self.look.certificates]
        return next((one for one in kinds if one.startswith("rsa") and one in _values(CERTIFICATE)), "rsa-2048")


_NO_PRESENT = "the lab measures no version before TLS 1.2"


def _values(setting: str) -> Sequence[str]:
    family = families.family("tls")
    if setting == CHOICE:
        return [name for name in family.choices if name != family.null.name]
    return [str(one) for one in family.settings[setting].values or ()]


def _titles(offered: Sequence[Offered]) -> str:
    return enumeration(few(dict.fromkeys(one.title for one in offered), MOST_TITLES, spare=1))


def _clients(version: str) -> str:
    return f"clients with {version_title(version)}"


def certificate_title(kind: str) -> str:
    """Return a kind of key for people."""
    algorithm, _, rest = kind.partition("-")
    return f"ECDSA {rest.upper().replace('P', 'P-')}" if algorithm == "ecdsa" else kind.upper()
