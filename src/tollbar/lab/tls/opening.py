"""Opening of a server's first encrypted messages in TLS 1.3, which have its certificate (RFC 9846 section 7)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

X25519, P256, P384, P521, X25519_MLKEM768 = 0x001D, 0x0017, 0x0018, 0x0019, 0x11EC
GROUPS = (X25519, P256, P384, P521, X25519_MLKEM768)
"""Groups that a share can be made for, preferred first."""
_MLKEM768_CIPHERTEXT_BYTES = 1088
_NONCE_BYTES = 12
_TAG_BYTES = 16
# Hash and key size by suite.
_SUITES = {
    "TLS_AES_128_GCM_SHA256": ("sha256", 16),
    "TLS_AES_256_GCM_SHA384": ("sha384", 32),
    "TLS_CHACHA20_POLY1305_SHA256": ("sha256", 32),
}
SUITES = tuple(_SUITES)
"""Suites whose messages can be opened."""


class NotOpened(Exception):
    """Raised for a message that cannot be opened."""


@dataclass(frozen=True, slots=True)
class Share:
    """Client's half of a key exchange."""

    group: int
    public: bytes
    agree: Callable[[bytes], bytes]
    """Function from the server's half to the shared secret. Raises ValueError for a half that is not of the group."""


def share_of(group: int) -> Share:
    """Return a new share of one of `GROUPS`."""
    from cryptography.hazmat.primitives.asymmetric import ec, x25519
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    if group == X25519:
        key = x25519.X25519PrivateKey.generate()
        public = key.public_key().public_bytes_raw()
        return Share(group, public, lambda other: key.exchange(x25519.X25519PublicKey.from_public_bytes(other)))
    if group == X25519_MLKEM768:
        return _hybrid_share()
    curve: ec.EllipticCurve = {P256: ec.SECP256R1(), P384: ec.SECP384R1(), P521: ec.SECP521R1()}[group]
    own = ec.generate_private_key(curve)
    point = own.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return Share(
        group,
        point,
        lambda other: own.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(curve, other)),
    )


def _hybrid_share() -> Share:
    """Return a new share of X25519MLKEM768, in which ML-KEM comes first on both sides (draft-ietf-tls-ecdhe-mlkem)."""
    from cryptography.hazmat.primitives.asymmetric import mlkem

    classical, key = share_of(X25519), mlkem.MLKEM768PrivateKey.generate()

    def agree(other: bytes) -> bytes:
        sealed, half = other[:_MLKEM768_CIPHERTEXT_BYTES], other[_MLKEM768_CIPHERTEXT_BYTES:]
        return key.decapsulate(sealed) + classical.agree(half)

    return Share(X25519_MLKEM768, key.public_key().public_bytes_raw() + classical.public, agree)


@dataclass(slots=True)
class Secrets:
    """Keys of the server's handshake messages."""

    cipher: AESGCM | ChaCha20Poly1305
    nonce: bytes
    opened_records: int = 0

    def opened(self, head: bytes, body: bytes) -> tuple[int, bytes]:
        """Return the type and content of a record. Raises NotOpened."""
        from cryptography.exceptions import InvalidTag

        number = self.opened_records.to_bytes(_NONCE_BYTES)
        self.opened_records += 1
        nonce = bytes(one ^ other for one, other in zip(self.nonce, number, strict=True))
        if len(body) < _TAG_BYTES:
            raise NotOpened("an encrypted record without a tag")
        try:
            inner = self.cipher.decrypt(nonce, body, head).rstrip(b"\0")
        except InvalidTag as error:
            raise NotOpened("an encrypted record cannot be opened") from error
        if not inner:
            raise NotOpened("an encrypted record without content")
        return inner[-1], inner[:-1]


def secrets(share: Share, other: bytes, suite: str, transcript: bytes) -> Secrets:
    """Return the keys after a server hello, from both halves and the messages so far. Raises NotOpened."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

    if suite not in _SUITES:
        raise NotOpened(f"messages of {suite} are not opened")
    try:
        shared = share.agree(other)
    except ValueError as error:
        raise NotOpened("the server's key share is not of its group") from error
    digest, key_bytes = _SUITES[suite]
    size = hashlib.new(digest).digest_size
    early = hmac.digest(bytes(size), bytes(size), digest)
    derived = _expanded(early, "derived", hashlib.new(digest).digest(), size, digest)
    handshake = hmac.digest(derived, shared, digest)
    traffic = _expanded(handshake, "s hs traffic", hashlib.new(digest, transcript).digest(), size, digest)
    key = _expanded(traffic, "key", b"", key_bytes, digest)
    cipher = ChaCha20Poly1305(key) if "CHACHA20" in suite else AESGCM(key)
    return Secrets(cipher, _expanded(traffic, "iv", b"", _NONCE_BYTES, digest))


def _expanded(secret: bytes, label: str, context: bytes, size: int, digest: str) -> bytes:
    """Return HKDF-Expand-Label for at most one block of the hash."""
    named = b"tls13 " + label.encode()
    info = size.to_bytes(2) + bytes([len(named)]) + named + bytes([len(context)]) + context
    return hmac.digest(secret, info + b"\1", digest)[:size]
