"""Certificates that a server presents, as far as a look needs them. A stranger wrote them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from tollbar.core.errors import cut, one_line

if TYPE_CHECKING:
    from cryptography import x509

MOST_LETTERS = 60
"""Limit of the letters of a name."""
# Names of curves as the family `tls` has them.
_CURVES = {"secp256r1": "p256", "secp384r1": "p384", "secp521r1": "p521"}


@dataclass(frozen=True, slots=True)
class Presented:
    """Certificate of a server."""

    kind: str
    """Kind of its key: `rsa-2048`, `ecdsa-p256`, `ed25519`; `unknown` if it cannot be read."""
    subject: str
    issuer: str
    ends: date | None

    @property
    def title(self) -> str:
        """Return the kind for people: `RSA-2048`, `ECDSA P-256`, `Ed25519`."""
        algorithm, _, rest = self.kind.partition("-")
        if algorithm == "ecdsa":
            return f"ECDSA {rest[0].upper()}-{rest[1:]}" if rest in _CURVES.values() else f"ECDSA {rest}"
        return self.kind.capitalize() if algorithm.startswith("ed") else self.kind.upper()


def presented(der: bytes) -> Presented:
    """Return the facts of a certificate; one that cannot be read has none."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    with warnings.catch_warnings():
        # The library warns on standard error if a certificate is odd.
        warnings.simplefilter("ignore")
        try:
            found = x509.load_der_x509_certificate(der)
            names = _common_name(found.subject), _common_name(found.issuer)
            ends = found.not_valid_after_utc.date()
        except (ValueError, TypeError):
            return Presented("unknown", "", "", None)
        try:
            return Presented(_kind(found), *names, ends)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            return Presented("unknown", *names, ends)


def _kind(found: x509.Certificate) -> str:
    from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, mldsa, rsa

    key = found.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        return f"rsa-{key.key_size}"
    if isinstance(key, ec.EllipticCurvePublicKey):
        return f"ecdsa-{_CURVES.get(key.curve.name, key.curve.name)}"
    kinds = {
        ed25519.Ed25519PublicKey: "ed25519",
        ed448.Ed448PublicKey: "ed448",
        dsa.DSAPublicKey: "dsa",
        mldsa.MLDSA44PublicKey: "ml-dsa-44",
        mldsa.MLDSA65PublicKey: "ml-dsa-65",
        mldsa.MLDSA87PublicKey: "ml-dsa-87",
    }
    return next((name for kind, name in kinds.items() if isinstance(key, kind)), "unknown")


def _common_name(name: x509.Name) -> str:
    from cryptography.x509.oid import NameOID

    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return cut(one_line(str(found[0].value)), MOST_LETTERS) if found else ""
