"""Calls of the package `cryptography`, as in its documentation."""

import cryptography
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.backends.openssl import backend
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NAME = f"cryptography {cryptography.__version__}"
BACKEND = backend.openssl_version_text()

DER, PEM = serialization.Encoding.DER, serialization.Encoding.PEM
PKCS8, SPKI = serialization.PrivateFormat.PKCS8, serialization.PublicFormat.SubjectPublicKeyInfo


def forms_of(private):
    """Return a key pair's encoded forms: private PEM and DER, public PEM and DER."""
    clear, public = serialization.NoEncryption(), private.public_key()
    return (
        private.private_bytes(PEM, PKCS8, clear),
        private.private_bytes(DER, PKCS8, clear),
        public.public_bytes(PEM, SPKI),
        public.public_bytes(DER, SPKI),
    )


class Rsa:
    """RSA with SHA-256 and PKCS #1 v1.5."""

    # The package looks the algorithm up by name in each call, whatever object it gets.
    digests = ("implicit",)

    def __init__(self, pem, digest):
        key = serialization.load_pem_private_key(pem.encode(), None)
        self.forms, self.numbers = forms_of(key), key.private_numbers()
        self.padding = padding.PKCS1v15()

    def private_keys(self):
        pem, der, _, _ = self.forms
        numbers = self.numbers
        public = (numbers.public_numbers.e, numbers.public_numbers.n)
        secret = (numbers.p, numbers.q, numbers.d, numbers.dmp1, numbers.dmq1, numbers.iqmp)
        return {
            "key-from-pem": lambda: serialization.load_pem_private_key(pem, None),
            "key-from-der": lambda: serialization.load_der_private_key(der, None),
            "key-from-parameters": lambda: rsa.RSAPrivateNumbers(
                *secret, public_numbers=rsa.RSAPublicNumbers(*public)
            ).private_key(),
        }

    def public_keys(self):
        _, _, pem, der = self.forms
        public = (self.numbers.public_numbers.e, self.numbers.public_numbers.n)
        return {
            "key-from-pem": lambda: serialization.load_pem_public_key(pem),
            "key-from-der": lambda: serialization.load_der_public_key(der),
            "key-from-parameters": lambda: rsa.RSAPublicNumbers(*public).public_key(),
        }

    def sign(self, key, message):
        return key.sign(message, self.padding, hashes.SHA256())

    def verify(self, key, message, signature):
        try:
            key.verify(signature, message, self.padding, hashes.SHA256())
        except InvalidSignature:
            return False
        return True


class Ecdsa:
    """ECDSA on P-256 with SHA-256, with its own key."""

    def __init__(self):
        self.forms = forms_of(ec.generate_private_key(ec.SECP256R1()))
        self.algorithm = ec.ECDSA(hashes.SHA256())

    def private_keys(self):
        pem, der, _, _ = self.forms
        return {
            "from-pem": lambda: serialization.load_pem_private_key(pem, None),
            "from-der": lambda: serialization.load_der_private_key(der, None),
        }

    def public_keys(self):
        _, _, pem, der = self.forms
        return {
            "from-pem": lambda: serialization.load_pem_public_key(pem),
            "from-der": lambda: serialization.load_der_public_key(der),
        }

    def public_key_der(self):
        return self.forms[3]

    def read_public(self, der):
        return serialization.load_der_public_key(der)

    def sign(self, key, message):
        return key.sign(message, self.algorithm)

    def verify(self, key, message, signature):
        try:
            key.verify(signature, message, self.algorithm)
        except InvalidSignature:
            return False
        return True


def digest(lookup):
    """Return a function for SHA-256: by a copy of an empty hash, or by a new one that looks its algorithm up."""
    empty = hashes.Hash(hashes.SHA256()) if lookup == "fetched" else None

    def hash_of(message):
        context = empty.copy() if empty else hashes.Hash(hashes.SHA256())
        context.update(message)
        return context.finalize()

    return hash_of


def aes_gcm(kept):
    """Return functions that make, for a key, an encryption and a decryption (nonce, data, associated data).

    Decryption returns None for a wrong tag.
    """

    def of_key(key):
        cipher = AESGCM(key)
        return (lambda: cipher) if kept else (lambda: AESGCM(key))

    def seal_with(key):
        cipher = of_key(key)
        return lambda nonce, data, aad: cipher().encrypt(nonce, data, aad)

    def open_with(key):
        cipher = of_key(key)

        def open_sealed(nonce, data, aad):
            try:
                return cipher().decrypt(nonce, data, aad)
            except InvalidTag:
                return None

        return open_sealed

    return seal_with, open_with
