"""Calls of the package PyCryptodome, as in its documentation."""

import Crypto
from Crypto import Hash
from Crypto.Cipher import AES
from Crypto.Hash import SHA256
from Crypto.Math import Numbers
from Crypto.PublicKey import ECC, RSA
from Crypto.Signature import DSS, pkcs1_15
from operations import TAG_BYTES, Refusal

NAME = f"pycryptodome {Crypto.__version__}"
BACKEND = f"its own C code, big numbers by {Numbers._implementation['library']}"


def hashed(lookup):
    """Return a function that hashes a message into an object, by the algorithm's module or by its name."""
    return SHA256.new if lookup == "fetched" else lambda message: by_name(message)


def by_name(message):
    context = Hash.new("SHA256")
    context.update(message)
    return context


class Rsa:
    """RSA with SHA-256 and PKCS #1 v1.5."""

    digests = ("fetched", "implicit")

    def __init__(self, pem, digest):
        self.key, self.hashed = RSA.import_key(pem), hashed(digest)

    def private_keys(self):
        key = self.key
        pem, der = key.export_key(pkcs=8), key.export_key("DER", pkcs=8)
        numbers = (key.n, key.e, key.d, key.p, key.q)
        return {
            "key-from-pem": lambda: RSA.import_key(pem),
            "key-from-der": lambda: RSA.import_key(der),
            "key-from-parameters": lambda: RSA.construct(numbers),
        }

    def public_keys(self):
        key = self.key.public_key()
        pem, der, numbers = key.export_key(), key.export_key("DER"), (key.n, key.e)
        return {
            "key-from-pem": lambda: RSA.import_key(pem),
            "key-from-der": lambda: RSA.import_key(der),
            "key-from-parameters": lambda: RSA.construct(numbers),
        }

    def sign(self, key, message):
        return pkcs1_15.new(key).sign(self.hashed(message))

    def verify(self, key, message, signature):
        try:
            pkcs1_15.new(key).verify(self.hashed(message), signature)
        except ValueError:
            return False
        return True


class Ecdsa:
    """ECDSA on P-256 with SHA-256, with its own key."""

    def __init__(self):
        self.key = ECC.generate(curve="P-256")

    def private_keys(self):
        pem, der = self.key.export_key(format="PEM"), self.key.export_key(format="DER")
        return {"from-pem": lambda: ECC.import_key(pem), "from-der": lambda: ECC.import_key(der)}

    def public_keys(self):
        public = self.key.public_key()
        pem, der = public.export_key(format="PEM"), public.export_key(format="DER")
        return {"from-pem": lambda: ECC.import_key(pem), "from-der": lambda: ECC.import_key(der)}

    def public_key_der(self):
        return self.key.public_key().export_key(format="DER")

    def read_public(self, der):
        return ECC.import_key(der)

    def sign(self, key, message):
        return DSS.new(key, "fips-186-3", encoding="der").sign(SHA256.new(message))

    def verify(self, key, message, signature):
        try:
            DSS.new(key, "fips-186-3", encoding="der").verify(SHA256.new(message), signature)
        except ValueError:
            return False
        return True


def digest(lookup):
    """Return a function for SHA-256 of a message, by the algorithm's module or by its name."""
    hash_of = hashed(lookup)
    return lambda message: hash_of(message).digest()


def aes_gcm(kept):
    """Return functions that make, for a key, an encryption and a decryption (nonce, data, associated data).

    Decryption returns None for a wrong tag.
    """
    if kept:
        raise Refusal("unsupported", "PyCryptodome makes a cipher object for each message, so no key can be kept")

    def made(key, nonce, aad):
        cipher = AES.new(key, AES.MODE_GCM, nonce=nonce, mac_len=TAG_BYTES)
        if aad:
            cipher.update(aad)
        return cipher

    def seal_with(key):
        return lambda nonce, data, aad: b"".join(made(key, nonce, aad).encrypt_and_digest(data))

    def open_with(key):
        def open_sealed(nonce, data, aad):
            try:
                return made(key, nonce, aad).decrypt_and_verify(data[:-TAG_BYTES], data[-TAG_BYTES:])
            except ValueError:
                return None

        return open_sealed

    return seal_with, open_with
