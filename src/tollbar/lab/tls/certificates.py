"""Certificates of one run: temporary authorities, and leaves for `localhost` that they signed.

Each is made at its first use, and kept until the run ends. Only their owner can read keys.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tollbar.core.files import write
from tollbar.lab.servers.sandbox import Sandbox

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
    from cryptography.hazmat.primitives.hashes import SHA256

PARAMETERS = Path(__file__).parent / "parameters"

# An authority of the leaf's own algorithm signs it, so that its size and the client's work on the chain are that
# algorithm's, and a client that only accepts RSA can verify an RSA chain.
AUTHORITY = {
    "rsa-1024": "rsa-2048",
    "rsa-2048": "rsa-2048",
    "rsa-3072": "rsa-2048",
    "rsa-4096": "rsa-2048",
    "ecdsa-p256": "ecdsa-p256",
    "ecdsa-p384": "ecdsa-p256",
    "ed25519": "ed25519",
    "ml-dsa-65": "ml-dsa-65",
    "ml-dsa-87": "ml-dsa-87",
}
KINDS = tuple(AUTHORITY)
"""Kinds of key that a certificate can be made for."""

# Longer than any run, and short enough that a copied certificate is soon worthless.
VALID = timedelta(days=7)
# The lab and the servers have one clock; the margin covers a clock that is set back during the run.
MARGIN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Leaf: PEM files of its chain, its key, and its authority's certificate."""

    kind: str
    chain: Path
    key: Path
    authority: Path

    @property
    def chain_pem(self) -> str:
        """Certificate chain that the server presents."""
        return self.chain.read_text("ascii")

    @property
    def key_pem(self) -> str:
        """Private key, which only the server may read."""
        return self.key.read_text("ascii")

    @property
    def authority_pem(self) -> str:
        """Certificate that a peer trusts."""
        return self.authority.read_text("ascii")


@dataclass(frozen=True, slots=True)
class Revocations:
    """Revocation list (CRL) of the clients' authority, as a PEM file, and a certificate on it."""

    file: Path
    revoked: Certificate

    @property
    def pem(self) -> str:
        """Revocation list that a server checks clients' certificates against."""
        return self.file.read_text("ascii")


class Certificates:
    """Certificates of a run, in a directory of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._leaves: dict[tuple[str, str], Certificate] = {}
        self._authorities: dict[str, CertificateIssuerPrivateKeyTypes] = {}
        self._revocations: dict[str, Revocations] = {}
        # The servers of a batch are started at the same time, and need the same certificate.
        self._lock = threading.Lock()

    def server(self, kind: str) -> Certificate:
        """Return the server's certificate with this kind of key."""
        return self._leaf("server", kind)

    def client(self, kind: str) -> Certificate:
        """Return the client's certificate with this kind of key."""
        return self._leaf("client", kind)

    def revocations(self, kind: str) -> Revocations:
        """Return the revocation list of the clients' authority for this kind of key, with one revoked certificate."""
        revoked = self._leaf("revoked", kind)
        with self._lock:
            if kind not in self._revocations:
                made = self._revocation_paths(kind, revoked)
                signer = self._authority(AUTHORITY[kind], revoked.authority)
                write(made.file, _revoking(revoked, signer, authority=AUTHORITY[kind]), 0o644)
                self._revocations[kind] = made
            return self._revocations[kind]

    def _revocation_paths(self, kind: str, revoked: Certificate) -> Revocations:
        return Revocations(self.directory / f"revocations-{kind}.pem", revoked)

    def _leaf(self, role: str, kind: str) -> Certificate:
        with self._lock:
            if (role, kind) not in self._leaves:
                paths = self._paths(role, kind)
                signer = self._authority(AUTHORITY[kind], paths.authority)
                key = _make_key(kind)
                write(paths.chain, _signed(f"tollbar-{role}", key, signer, authority=AUTHORITY[kind], role=role), 0o644)
                write(paths.key, _key_pem(key), 0o600)
                self._leaves[role, kind] = paths
            return self._leaves[role, kind]

    def _paths(self, role: str, kind: str) -> Certificate:
        return Certificate(
            kind,
            chain=self.directory / f"{role}-{kind}.pem",
            key=self.directory / f"{role}-{kind}.key",
            authority=self.directory / f"authority-{AUTHORITY[kind]}.pem",
        )

    def _authority(self, kind: str, path: Path) -> CertificateIssuerPrivateKeyTypes:
        if kind not in self._authorities:
            self.directory.mkdir(exist_ok=True)
            self.directory.chmod(0o711)
            key = _make_key(kind)
            write(path, _signed(_authority_name(kind), key, key, authority=kind, role="authority"), 0o644)
            self._authorities[kind] = key
        return self._authorities[kind]


_OF_RUNS: WeakKeyDictionary[Sandbox, Certificates] = WeakKeyDictionary()
_MAKING = threading.Lock()


def certificates_of(sandbox: Sandbox) -> Certificates:
    """Return the certificates of a run."""
    with _MAKING:
        return _OF_RUNS.setdefault(sandbox, Certificates(sandbox.directory / "certificates"))


class UnmadeCertificates(Certificates):
    """Certificates for displaying a configuration: file names without content."""

    def _leaf(self, role: str, kind: str) -> Certificate:
        paths = self._paths(role, kind)
        return _UnmadeCertificate(paths.kind, paths.chain, paths.key, paths.authority)

    def revocations(self, kind: str) -> Revocations:
        """Return the path of the list, without making it."""
        paths = self._revocation_paths(kind, self._leaf("revoked", kind))
        return _UnmadeRevocations(paths.file, paths.revoked)


class _UnmadeCertificate(Certificate):
    __slots__ = ()

    @property
    def chain_pem(self) -> str:
        return f"(the certificate in {self.chain})\n"

    @property
    def key_pem(self) -> str:
        return f"(the key in {self.key})\n"

    @property
    def authority_pem(self) -> str:
        return f"(the certificate in {self.authority})\n"


class _UnmadeRevocations(Revocations):
    __slots__ = ()

    @property
    def pem(self) -> str:
        return f"(the list in {self.file})\n"


@cache
def dh_parameters(name: str) -> str:
    """Return Diffie–Hellman parameters as PEM. Raises FileNotFoundError for an unknown name."""
    return (PARAMETERS / f"{name}.pem").read_text("ascii")


def dh_parameter_names() -> tuple[str, ...]:
    """Return the names of the shipped Diffie–Hellman parameters."""
    return tuple(sorted(path.stem for path in PARAMETERS.glob("*.pem")))


# `cryptography` is imported where it is used, because the import is slow and most runs need no certificate.


def _make_key(kind: str) -> CertificateIssuerPrivateKeyTypes:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, mldsa, rsa

    if kind.startswith("rsa-"):
        return rsa.generate_private_key(65537, int(kind.removeprefix("rsa-")))
    make: Mapping[str, Callable[[], CertificateIssuerPrivateKeyTypes]] = {
        "ecdsa-p256": lambda: ec.generate_private_key(ec.SECP256R1()),
        "ecdsa-p384": lambda: ec.generate_private_key(ec.SECP384R1()),
        "ed25519": ed25519.Ed25519PrivateKey.generate,
        "ml-dsa-65": mldsa.MLDSA65PrivateKey.generate,
        "ml-dsa-87": mldsa.MLDSA87PrivateKey.generate,
    }
    return make[kind]()


def _authority_name(kind: str) -> str:
    return f"tollbar authority {kind}"


def _signed(
    name: str,
    key: CertificateIssuerPrivateKeyTypes,
    signer: CertificateIssuerPrivateKeyTypes,
    *,
    authority: str,
    role: str,
) -> bytes:
    """Return a certificate for this key, as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    is_authority = role == "authority"
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(_authority_name(authority)))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - MARGIN)
        .not_valid_after(now + VALID)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .add_extension(_key_usage(is_authority, static_rsa=authority.startswith("rsa")), critical=True)
    )
    if not is_authority:
        use = ExtendedKeyUsageOID.SERVER_AUTH if role == "server" else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False).add_extension(
            x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]),
            critical=False,
        )
    return builder.sign(signer, _digest(authority)).public_bytes(Encoding.PEM)


def _revoking(revoked: Certificate, signer: CertificateIssuerPrivateKeyTypes, *, authority: str) -> bytes:
    """Return the authority's list with only this certificate, as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    issuer = x509.load_pem_x509_certificate(revoked.authority.read_bytes())
    serial = x509.load_pem_x509_certificate(revoked.chain.read_bytes()).serial_number
    now = datetime.now(UTC)
    entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now - MARGIN).build()
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer.subject)
        .last_update(now - MARGIN)
        .next_update(now + VALID)
        # Required in a list (RFC 5280 section 5.2); webpki refuses one without.
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .add_extension(x509.CRLNumber(1), critical=False)
        .add_revoked_certificate(entry)
    )
    return builder.sign(signer, _digest(authority)).public_bytes(Encoding.PEM)


def _digest(authority: str) -> SHA256 | None:
    """Return the hash of an authority's signatures; None for Ed25519 and ML-DSA, which hash by themselves."""
    from cryptography.hazmat.primitives.hashes import SHA256

    return SHA256() if authority.startswith(("rsa", "ecdsa")) else None


def _key_usage(is_authority: bool, *, static_rsa: bool) -> x509.KeyUsage:
    from cryptography import x509

    never = ("content_commitment", "data_encipherment", "key_agreement", "encipher_only", "decipher_only")
    return x509.KeyUsage(
        digital_signature=not is_authority,
        # RSA key exchange encrypts to the certificate's key.
        key_encipherment=static_rsa and not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        **dict.fromkeys(never, False),
    )


def _key_pem(key: CertificateIssuerPrivateKeyTypes) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
