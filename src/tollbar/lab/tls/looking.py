"""A look at a server of the user's: its abilities in TLS, learnt by handshakes one after another.

A list is learnt by offering all of it, removing the server's selection, and offering the rest until it refuses.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from tollbar.catalog.servers.remote import Remote
from tollbar.core.errors import TollbarError
from tollbar.lab.tls import opening, sessions
from tollbar.lab.tls.certificates import dh_parameter_names, dh_parameters
from tollbar.lab.tls.code_points import VERSIONS, Group, Scheme, Suite, groups, schemes, suites
from tollbar.lab.tls.hello import Agreement, NotTls, Offer, Refusal, ask
from tollbar.lab.tls.presented import Presented, presented

MOST_CONNECTIONS = 150
"""Limit of the connections of a look. A server with all of OpenSSL's suites and two certificates needs some 100."""
PAUSE_S = 0.01
"""Pause between two connections."""
SILENCE_LIMIT_S, LIMIT_S = 6.0, 60.0
"""Limits of the waiting for answers that do not come, and of the look."""
LEAST_ANSWER_LIMIT_S = 0.2
"""Least limit of one handshake: the first may wait for half of the limit of all, each silent one halves it."""
LEAST_PRIME = 512
"""Bits of a prime that can be told from other numbers."""


@dataclass(frozen=True, slots=True)
class Look:
    """Abilities of a server, as its answers show them."""

    remote: Remote
    suites: Mapping[str, Sequence[Suite]]
    """Accepted suites by version, the newest first, in the order in which the server selects them. A version before TLS
    1.2 has only its first, unless it is the newest."""
    prefers: Mapping[str, bool]
    """By version true if the order is the server's own, false if it follows the client's."""
    groups: Mapping[str, Sequence[Group]]
    """Accepted groups by version."""
    primes: Sequence[Prime]
    """Primes of Diffie-Hellman key exchanges over finite fields."""
    schemes: Mapping[str, Sequence[Scheme]]
    """Signature schemes of its own proofs by version."""
    certificates: Sequence[Presented]
    """Different certificates, in the order of their selection."""
    resumes: Mapping[str, Sequence[str]]
    """Ways to resume a session by version: `ticket`, `session-id`."""
    not_tried: Mapping[str, str]
    """By version the reason why resumption could not be tried."""
    unverified: str | None
    """Reason why the certificate does not verify by this machine's authorities; None: it verifies."""
    server: str | None
    """Name that the server gives itself."""
    connections: int
    doubts: Sequence[str]
    """Answers that leave a part unknown."""

    @property
    def versions(self) -> tuple[str, ...]:
        return tuple(self.suites)


@dataclass(frozen=True, slots=True)
class Prime:
    """Prime of a Diffie-Hellman key exchange."""

    bits: int
    name: str | None
    """Its name among known parameters; None: another one."""


def look(remote: Remote) -> Look:
    """Return the abilities of a server. Raises TollbarError if it does not speak TLS or stops answering."""
    looker = _Looker(remote)
    try:
        return looker.look()
    except NotTls as error:
        hint = "an `http://` address has no TLS" if "HTTP" in str(error) else None
        raise TollbarError(f"the answer is not TLS: {error}", where=remote.name, hint=hint) from error
    except OSError as error:
        what = f"the server accepts no more connections, after {looker.connections}: {error.strerror or error}"
        raise TollbarError(what, where=remote.name) from error


@dataclass
class _Looker:
    """Handshakes with one server, counted."""

    remote: Remote
    connections: int = 0
    doubts: list[str] = field(default_factory=list)
    until_s: float = field(default_factory=lambda: time.monotonic() + LIMIT_S)
    silence_s: float = field(default_factory=lambda: SILENCE_LIMIT_S)
    """Time that is left for answers that do not come."""
    seen: dict[bytes, Presented] = field(default_factory=dict)
    primes: dict[int, Prime] = field(default_factory=dict)
    refusals: dict[str, Refusal] = field(default_factory=dict)

    def look(self) -> Look:
        found: dict[str, list[Suite]] = {}
        full: dict[str, list[Suite]] = {}
        for version in VERSIONS:
            # Old versions next to new ones are known to be wrong, whatever their suites are.
            is_whole = version in ("tls-1.3", "tls-1.2") or not found
            if some := self._suites(version, all_of_them=is_whole):
                found[version] = some
                full |= {version: some} if is_whole else {}
        if not found:
            raise self._nothing()
        prefers = {version: self._prefers(version, some) for version, some in full.items() if len(some) > 1}
        of_groups = {version: self._groups(version, some) for version, some in full.items()}
        proofs = {version: self._schemes(version, full[version], of_groups[version]) for version in full}
        self._see_static(full)
        resumes, not_tried, server = self._resumption(full)
        self._check_again(found)
        self._count(1)
        return Look(
            self.remote,
            found,
            prefers,
            {version: some for version, some in of_groups.items() if some},
            [*self.primes.values()],
            {version: some for version, some in proofs.items() if some},
            [*self.seen.values()],
            resumes,
            not_tried,
            sessions.unverified(self.remote, self._answer_limit_s),
            server,
            self.connections,
            tuple(dict.fromkeys(self.doubts)),
        )

    def _suites(self, version: str, *, all_of_them: bool = True) -> list[Suite]:
        numbers = [one.number for one in suites().values() if one.is_of_13 == (version == "tls-1.3")]

        def offer(some: Sequence[int]) -> Offer:
            return self._offer(version, suites=some)

        if not all_of_them:
            answer = self._ask(offer(numbers))
            return [suites()[answer.suite]] if isinstance(answer, Agreement) else []
        return [suites()[number] for number in self._accepted(offer, numbers, lambda answer: answer.suite)]

    def _prefers(self, version: str, some: Sequence[Suite]) -> bool:
        """Return whether the server selects its first suite although the client's order is reversed."""
        answer = self._ask(self._offer(version, suites=[one.number for one in reversed(some)]))
        return isinstance(answer, Agreement) and answer.suite == some[0].number

    def _groups(self, version: str, some: Sequence[Suite]) -> list[Group]:
        numbers = [one.number for one in some if one.key_exchange in ("", "ecdhe")]
        if not numbers:
            return []
        found = self._accepted(
            lambda left: self._offer(version, suites=numbers, of_groups=left), [*groups()], lambda answer: answer.group
        )
        return [groups()[number] for number in found]

    def _schemes(self, version: str, some: Sequence[Suite], of_groups: Sequence[Group]) -> list[Scheme]:
        """Return the schemes by which the server proves its name; the certificates are seen on the way."""
        share = None
        if version == "tls-1.3":
            group = next((one for one in opening.GROUPS if one in [each.number for each in of_groups]), None)
            some = [one for one in some if one.name in opening.SUITES]
            if group is None or not some:
                self.doubts.append("certificates in TLS 1.3: none of its groups and suites can be opened here")
                return []
            share = opening.share_of(group)
        elif version == "tls-1.2":
            some = [one for one in some if one.key_exchange in ("ecdhe", "dhe")]
        else:
            # Earlier versions do not negotiate a scheme.
            self._ask(self._offer(version, suites=[one.number for one in some]))
            return []
        if not some:
            return []
        of_share = [share.group] if share else [one.number for one in of_groups] or [*groups()]
        found = self._accepted(
            lambda left: self._offer(
                version, suites=[one.number for one in some], of_groups=of_share, of_schemes=left, share=share
            ),
            [*schemes()],
            lambda answer: answer.scheme,
            then_alone=True,
        )
        return [schemes()[number] for number in found]

    def _see_static(self, found: Mapping[str, Sequence[Suite]]) -> None:
        """See the certificate of an RSA key exchange, which proves nothing by a signature."""
        for version, some in found.items():
            numbers = [one.number for one in some if one.key_exchange in ("rsa", "ecdh")]
            if numbers:
                self._ask(self._offer(version, suites=numbers))

    def _resumption(self, versions: Iterable[str]) -> tuple[dict[str, list[str]], dict[str, str], str | None]:
        found: dict[str, list[str]] = {}
        not_tried: dict[str, str] = {}
        server: str | None = None
        for version in versions:
            for way in ("ticket",) if version == "tls-1.3" else ("ticket", "session-id"):
                self._count(2)
                began_s, limit_s = time.monotonic(), self._answer_limit_s
                one = sessions.resumed(self.remote, version, by_ticket=way == "ticket", limit_s=limit_s)
                if time.monotonic() - began_s >= limit_s:
                    self.silence_s -= limit_s
                server = server or one.server
                if one.why is not None:
                    not_tried[version] = one.why
                    break
                found.setdefault(version, []).extend([way] if one.done else [])
        return found, not_tried, server

    def _check_again(self, found: Mapping[str, Sequence[Suite]]) -> None:
        """Note a doubt if the server now refuses its first selection: other refusals may have the same reason."""
        version, some = next(iter(found.items()))
        answer = self._ask(self._offer(version, suites=[some[0].number]))
        if isinstance(answer, Refusal):
            late = f"at the end the server refused an offer that it had accepted ({answer.why})"
            self.doubts.append(f"{late}; it may limit the connections of a client")

    def _accepted(
        self,
        offer: Callable[[Sequence[int]], Offer],
        numbers: Sequence[int],
        picked: Callable[[Agreement], int | None],
        *,
        then_alone: bool = False,
    ) -> list[int]:
        """Return the numbers that the server accepts, in the order in which it selects them.

        With `then_alone` each of the rest is offered alone after an error of the server's: it selects a scheme for
        which its RSA key is too short, although it could use a later one.
        """
        left, found = [*numbers], list[int]()
        while left:
            answer = self._ask(offer(left))
            if isinstance(answer, Refusal):
                if then_alone and answer.is_error and len(left) > 1:
                    found += [one for one in left if self._accepted(offer, [one], picked)]
                break
            number = picked(answer)
            if number not in left or number is None:
                if number is not None:
                    self.doubts.append(f"0x{number:04x} was selected though it was not offered")
                break
            found.append(number)
            left.remove(number)
        return found

    def _offer(
        self,
        version: str,
        *,
        suites: Sequence[int],
        of_groups: Sequence[int] | None = None,
        of_schemes: Sequence[int] | None = None,
        share: opening.Share | None = None,
    ) -> Offer:
        return Offer(
            version,
            tuple(suites),
            tuple(groups() if of_groups is None else of_groups),
            tuple(schemes() if of_schemes is None else of_schemes),
            _name(self.remote.parts.hostname or ""),
            share,
        )

    def _ask(self, offer: Offer) -> Agreement | Refusal:
        if self.connections >= MOST_CONNECTIONS or time.monotonic() > self.until_s:
            self.doubts.append(f"the look ended at its limit of {MOST_CONNECTIONS} connections and {LIMIT_S:g} s")
            return Refusal("the limit of the look")
        if self.silence_s < LEAST_ANSWER_LIMIT_S:
            self.doubts.append(f"the server left offers without an answer for {SILENCE_LIMIT_S:g} s; no more were made")
            return Refusal("the limit of the silence", is_timeout=True)
        self._count(1)
        limit_s = self._answer_limit_s
        answer = ask(self.remote.address, offer, limit_s)
        if isinstance(answer, Refusal):
            self.refusals[offer.version] = answer
            if answer.is_timeout:
                self.silence_s -= limit_s
                self.doubts.append(f"an offer of {_title(offer.version)} got {answer.why}")
        elif answer.certificate and answer.certificate not in self.seen:
            self.seen[answer.certificate] = presented(answer.certificate)
        if isinstance(answer, Agreement) and answer.prime:
            self.primes.setdefault(answer.prime, _prime(answer.prime))
        return answer

    @property
    def _answer_limit_s(self) -> float:
        """Limit of the next handshake: half of the time that is left, so that each version gets a try."""
        return max(self.silence_s / 2, LEAST_ANSWER_LIMIT_S)

    def _count(self, number: int) -> None:
        if self.connections:
            time.sleep(PAUSE_S)
        self.connections += number

    def _nothing(self) -> TollbarError:
        """Return the error of a server that accepted no version."""
        if all(refusal.is_timeout for refusal in self.refusals.values()):
            waited = f"{self.connections} handshakes in {SILENCE_LIMIT_S - self.silence_s:.1f} s"
            what = f"the server accepts connections and sends no answer ({waited}); it must speak TLS"
            return TollbarError(
                what, where=self.remote.name, hint="a stopped server, and one of another protocol, is silent"
            )
        reasons = "; ".join(f"{_title(version)}: {refusal.why}" for version, refusal in self.refusals.items())
        return TollbarError(f"the server accepts no version of TLS ({reasons})", where=self.remote.name)


def _name(host: str) -> str | None:
    """Return the name to send; None for an address, which no server has a certificate's name for."""
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return None


def _title(version: str) -> str:
    return version.upper().replace("-", " ")


def _prime(prime: int) -> Prime:
    """Return a prime with its name: the parameters that contain it, in which it is the first and largest number."""
    bits = prime.bit_length()
    number = prime.to_bytes(bits // 8 + 1)
    known = (name for name in dh_parameter_names() if number in _der(dh_parameters(name)))
    return Prime(bits, next(known, None) if bits >= LEAST_PRIME else None)


def _der(pem: str) -> bytes:
    return base64.b64decode("".join(line for line in pem.splitlines() if not line.startswith("-")))
