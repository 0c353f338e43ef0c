"""TLS settings: read from a cell's plain ones, checked, and translated for servers and clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tollbar.core.errors import nearest
from tollbar.lab.tls.certificates import KINDS, Certificate, Certificates, dh_parameter_names, dh_parameters

PLAINTEXT = "plaintext"

BY_DEFAULT = "by-default"
"""Value of a version, key exchange, cipher or resumption that is left to the server and its library."""
# Registered names, as in OpenSSL's configuration.
PROTOCOLS = {"tls-1.2": "TLSv1.2", "tls-1.3": "TLSv1.3", BY_DEFAULT: "TLSv1.2 TLSv1.3"}
GROUPS = {
    "ecdhe-p256": "prime256v1",
    "ecdhe-p384": "secp384r1",
    "x25519": "X25519",
    "x25519mlkem768": "X25519MLKEM768",
    "secp256r1mlkem768": "SecP256r1MLKEM768",
    "secp384r1mlkem1024": "SecP384r1MLKEM1024",
    "mlkem768": "MLKEM768",
    "mlkem1024": "MLKEM1024",
}
KEY_EXCHANGES = ("rsa", "dhe", *GROUPS, BY_DEFAULT)
# TLS 1.3 suite, and the end of a TLS 1.2 suite's name; None if there is no such suite.
CIPHERS: Mapping[str, tuple[str | None, str]] = {
    "aes-128-gcm": ("TLS_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
    "aes-256-gcm": ("TLS_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
    "aes-128-cbc": (None, "AES128-SHA"),
    "chacha20-poly1305": ("TLS_CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    BY_DEFAULT: (None, ""),
}
MAC_ORDERS = ("encrypt-then-mac", "mac-then-encrypt")
"""Values for CBC suites. The client's offer decides; servers with OpenSSL accept either."""
RESUMPTIONS = ("none", "session-id", "ticket")
CLIENT_CERTIFICATES = ("none", "ecdsa-p256", "rsa-2048", "ml-dsa-87")
# Checks of clients' certificates: none, or against their authority's revocation list.
REVOCATIONS = ("none", "list")
# Below the level of distributions, and below level 1, so that no strength is refused.
LOWEST_LEVEL = "@SECLEVEL=0"


class Impossible(ValueError):
    """Raised for settings that TLS cannot combine, or that do not exist."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A cell's TLS settings, read and checked."""

    choice: str
    certificates: tuple[str, ...]
    """Kinds of the server's certificates; two if old and new clients are served at once."""
    key_exchange: str
    dh_parameters: str
    cipher: str
    mac_order: str
    """MAC order of records with a CBC cipher."""
    resumption: str
    resumed: int
    """Percentage of connections that resume."""
    client_certificate: str
    revocation: str
    old_clients: int
    """Percentage of clients that only accept RSA certificates."""

    @classmethod
    def read(cls, settings: Mapping[str, str | int]) -> Settings:
        """Return the checked settings. Raises Impossible with the reason. Settings that are not TLS are ignored."""
        asked = cls(
            choice=_one_of("choice", settings, (PLAINTEXT, *PROTOCOLS), PLAINTEXT),
            certificates=tuple(str(settings.get("certificate", "ecdsa-p256")).split("+")),
            key_exchange=_one_of("key-exchange", settings, KEY_EXCHANGES, "x25519"),
            dh_parameters=_one_of("dh-parameters", settings, dh_parameter_names(), "ffdhe2048"),
            cipher=_one_of("cipher", settings, tuple(CIPHERS), "aes-128-gcm"),
            mac_order=_one_of("mac-order", settings, MAC_ORDERS, MAC_ORDERS[0]),
            resumption=_one_of("resumption", settings, (*RESUMPTIONS, BY_DEFAULT), "none"),
            resumed=_percent("resumed", settings),
            client_certificate=_one_of("client-certificate", settings, CLIENT_CERTIFICATES, "none"),
            revocation=_one_of("revocation", settings, REVOCATIONS, "none"),
            old_clients=_percent("old-clients", settings),
        )
        for kind in asked.certificates:
            _one_of("certificate", {"certificate": kind}, KINDS, kind)
        if asked.encrypted:
            asked._check()
        return asked

    def _check(self) -> None:
        signers = [signer(kind) for kind in self.certificates]
        if len({self.choice == BY_DEFAULT, self.key_exchange == BY_DEFAULT, self.cipher == BY_DEFAULT}) > 1:
            raise Impossible(f"version, key exchange and cipher must all be `{BY_DEFAULT}`, or none of them")
        if len(set(signers)) < len(signers):
            raise Impossible("two certificates of a server must have different algorithms, for example RSA and ECDSA")
        if self.choice == "tls-1.3":
            if self.key_exchange == "rsa":
                raise Impossible("TLS 1.3 has no key exchange `rsa`")
            if self.key_exchange == "dhe":
                raise Impossible("the finite-field groups of TLS 1.3 are not measured")
            if CIPHERS[self.cipher][0] is None:
                raise Impossible(f"TLS 1.3 has no cipher `{self.cipher}`")
        else:
            if "mlkem" in self.key_exchange:
                raise Impossible("TLS 1.2 has no hybrid groups and no ML-KEM")
            if "ml-dsa" in (*signers, signer(self.client_certificate)):
                raise Impossible("TLS 1.2 has no ML-DSA certificates")
            if self.key_exchange == "rsa" and self.cipher == "chacha20-poly1305":
                raise Impossible("TLS 1.2 has no ChaCha20 suite with RSA key exchange")
            if self.key_exchange in ("rsa", "dhe") and signers != ["rsa"]:
                raise Impossible(f"the key exchange `{self.key_exchange}` needs an RSA certificate")
        if self.resumed and self.resumption == "none":
            raise Impossible("`resumed` above 0 needs a `resumption` other than `none`")
        if self.revokes and not self.mutual:
            raise Impossible("`revocation` needs clients with a certificate: set `client-certificate`")
        if self.old_clients and not {"rsa"} < set(signers):
            raise Impossible("`old-clients` needs an RSA certificate and another one")

    @property
    def encrypted(self) -> bool:
        """True if TLS is used at all."""
        return self.choice != PLAINTEXT

    @property
    def mutual(self) -> bool:
        """True if clients present a certificate too."""
        return self.client_certificate != "none"

    @property
    def revokes(self) -> bool:
        """True if the server checks whether a client's certificate was revoked."""
        return self.revocation != "none"

    @property
    def is_cbc(self) -> bool:
        """True if records are encrypted and authenticated by two separate algorithms."""
        return self.cipher.endswith("-cbc")

    @property
    def needs_lowest_level(self) -> bool:
        """True if a library refuses these settings unless its security level is lowered."""
        weak_exchange = self.key_exchange == "dhe" and self.dh_parameters == "modp-1024"
        return weak_exchange or "rsa-1024" in self.certificates


@dataclass(frozen=True, slots=True)
class ServerConfiguration:
    """TLS settings in OpenSSL's words, for templates."""

    protocol: str
    ciphers: str | None
    """TLS 1.2 suites and the security level; None: the library's default."""
    ciphersuites: str | None
    """TLS 1.3 suites; None: the library's default."""
    groups: str | None
    dh_parameters: str | None
    """Parameters as PEM, if the key exchange needs them."""
    certificates: tuple[Certificate, ...]
    resumption: str
    client_authority: str | None
    """File of the authority that signed the clients' certificates."""
    client_revocations: str | None
    """File of the revocation list, if the server checks it."""
    spec: Callable[[], dict[str, Any]]
    """Function that makes the embedded server's configuration, on demand because it contains keys."""


def server_configuration(
    asked: Settings, certificates: Certificates, *, library: str = "auto", libcrypto: str | None = None
) -> ServerConfiguration | None:
    """Return the configuration of a server; None in clear."""
    if not asked.encrypted:
        return None
    is_13 = asked.choice == "tls-1.3"
    # TLS 1.3 has its own list; this one then only sets the level.
    words = [suites(asked)] if asked.choice == "tls-1.2" else []
    if asked.needs_lowest_level:
        words = [*(words or ["DEFAULT"]), LOWEST_LEVEL]
    return ServerConfiguration(
        protocol=PROTOCOLS[asked.choice],
        ciphers=":".join(words) or None,
        ciphersuites=CIPHERS[asked.cipher][0] if is_13 else None,
        groups=_groups(asked),
        dh_parameters=dh_parameters(asked.dh_parameters) if asked.key_exchange == "dhe" else None,
        certificates=tuple(certificates.server(kind) for kind in asked.certificates),
        resumption=asked.resumption,
        client_authority=str(certificates.client(asked.client_certificate).authority) if asked.mutual else None,
        client_revocations=str(certificates.revocations(asked.client_certificate).file) if asked.revokes else None,
        spec=lambda: _server_spec(asked, certificates, library, libcrypto),
    )


def _groups(asked: Settings) -> str | None:
    """Return the groups that a server accepts, preferred first; None: the library's default."""
    group = GROUPS.get(asked.key_exchange)
    # In TLS 1.2 the list also restricts the curves of a client's certificate.
    if group and asked.choice == "tls-1.2" and asked.client_certificate == "ecdsa-p256":
        return ":".join(dict.fromkeys([group, GROUPS["ecdhe-p256"]]))
    return group


def suites(asked: Settings) -> str:
    """Return the TLS 1.2 suites by OpenSSL's names: one, or one for each algorithm among the certificates."""
    end = CIPHERS[asked.cipher][1]
    if asked.key_exchange == "rsa":
        return end
    if asked.key_exchange == "dhe":
        return f"DHE-RSA-{end}"
    # Suite names only distinguish RSA; Ed25519 counts as ECDSA.
    kinds = dict.fromkeys("RSA" if signer(kind) == "rsa" else "ECDSA" for kind in asked.certificates)
    return ":".join(f"ECDHE-{kind}-{end}" for kind in kinds)


def _server_spec(asked: Settings, certificates: Certificates, library: str, libcrypto: str | None) -> dict[str, Any]:
    """Return the configuration of the embedded server (`ServerSpec` of the engine)."""
    spec: dict[str, Any] = {
        **_agreed(asked),
        "library": library,
        "libcrypto": libcrypto,
        "identities": [_identity(certificates.server(kind)) for kind in asked.certificates],
        # The default of web servers.
        "resumption": "ticket" if asked.resumption == BY_DEFAULT else asked.resumption,
    }
    if asked.key_exchange == "dhe":
        spec["dh_parameters_pem"] = dh_parameters(asked.dh_parameters)
    if asked.mutual:
        spec["client_authority_pem"] = certificates.client(asked.client_certificate).authority_pem
    if asked.revokes:
        spec["client_revocations_pem"] = certificates.revocations(asked.client_certificate).pem
    return spec


def _agreed(asked: Settings) -> dict[str, str]:
    """Return the settings that both sides must agree on, without those left to their defaults."""
    agreed = {"protocol": asked.choice, "key_exchange": asked.key_exchange, "cipher": asked.cipher}
    if asked.is_cbc:
        agreed["mac_order"] = asked.mac_order
    return {name: value for name, value in agreed.items() if value != BY_DEFAULT}


def client_spec(
    asked: Settings, certificates: Certificates, *, certificate: str | None = None, resume: bool = False
) -> dict[str, Any] | None:
    """Return the configuration of a load client (`ClientSpec` of the engine); None in clear.

    `certificate` is the kind that this client accepts; by default the server's only or first one.
    """
    if not asked.encrypted:
        return None
    kind = certificate or asked.certificates[0]
    spec: dict[str, Any] = {
        **_agreed(asked),
        "signer": signer(kind),
        "certificate_pem": certificates.server(kind).chain_pem,
        "rsa_bits": int(kind.removeprefix("rsa-")) if kind.startswith("rsa-") else 0,
        "resume": resume,
        "name": "localhost",
    }
    if asked.mutual:
        spec["identity"] = _identity(certificates.client(asked.client_certificate))
    if asked.revokes:
        spec["revoked"] = _identity(certificates.revocations(asked.client_certificate).revoked)
    return spec


def clients(asked: Settings, certificates: Certificates) -> list[dict[str, Any]]:
    """Return the kinds of client of a load task, each with its share: old and new, resuming and not."""
    if not asked.encrypted:
        return [{"share": 100, "tls": None}]
    old = next((kind for kind in asked.certificates if signer(kind) == "rsa"), asked.certificates[0])
    new = next((kind for kind in asked.certificates if signer(kind) != "rsa"), asked.certificates[0])
    kinds = []
    for certificate, share in ((old, asked.old_clients), (new, 100 - asked.old_clients)):
        for resume, part in ((True, asked.resumed), (False, 100 - asked.resumed)):
            if share and part:
                tls = client_spec(asked, certificates, certificate=certificate, resume=resume)
                # A client that chooses a full handshake does not prove that the server refuses to resume.
                resumes = asked.resumption != "none"
                kinds.append({"share": share * part, "tls": tls, "server_resumes": resumes})
    return kinds


def signer(kind: str) -> str:
    """Return the algorithm of a kind of certificate, as the engine names it."""
    if kind.startswith("ml-dsa"):
        return "ml-dsa"
    return kind.partition("-")[0]


def _identity(certificate: Certificate) -> dict[str, str]:
    return {"chain_pem": certificate.chain_pem, "key_pem": certificate.key_pem}


def _one_of(name: str, settings: Mapping[str, str | int], known: Sequence[str], default: str) -> str:
    value = str(settings.get(name, default))
    if value not in known:
        hint = nearest(value, known)
        raise Impossible(f"no such {name}: `{value}`{'; ' + hint if hint else ''}")
    return value


def _percent(name: str, settings: Mapping[str, str | int]) -> int:
    value = settings.get(name, 0)
    if not isinstance(value, int) or not 0 <= value <= 100:
        raise Impossible(f"`{name}` must be a whole number of percent from 0 to 100, and is `{value}`")
    return value
