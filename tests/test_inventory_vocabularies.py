"""Names of libraries' constants, of XML, and of parameters: each is its choice, or refused with the missing fact."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import algorithm, words
from test_inventory_names import found
from test_price_weak import judged, line
from tollbar.catalog.policies import Ruling

NAMES = [
    ("SHA1withEd25519", {"primitive": "signature"}, "? its name says sha-1 in addition, which is not part of it"),
    ("Ed25519-SHA-256", {"primitive": "signature"}, "? its name says sha-256 in addition, which is not part of it"),
    ("Ed25519-SHA-512", {"primitive": "signature"}, "signature ed25519"),
    ("Ed25519-BLAKE2b", {"primitive": "signature"}, "? its name says blake2b-512 in addition, which is not part of it"),
    ("Ed448", {}, "signature ed448"),
    ("Argon2id (m=65536)", {"primitive": "kdf"}, "password-hash argon2id memory=67108864"),
    ("Argon2id (m=64MiB, t=3, p=1)", {"primitive": "kdf"}, "password-hash argon2id memory=67108864 passes=3 lanes=1"),
    (
        "Argon2id (m=65536 KiB, t=3, p=4)",
        {"primitive": "kdf"},
        "password-hash argon2id memory=67108864 passes=3 lanes=4",
    ),
    ("scrypt N=2^17 r=8 p=1", {"primitive": "kdf"}, "password-hash scrypt n=131072 r=8 p=1"),
    ("$scrypt$ln=17,r=8,p=1$", {"primitive": "kdf"}, "password-hash scrypt n=131072 r=8 p=1"),
    ("PBKDF2-HMAC-SHA256 600k", {"primitive": "kdf"}, "password-hash pbkdf2-sha-256 iterations=600000"),
    ("$2y$12$", {}, "password-hash bcrypt cost=12"),
    ("BCRYPT_RSA_ALGORITHM", {}, "? the size of its key is not given"),
    ("BCRYPT_KDF_HASH", {}, "? Tollbar has no family of key derivation"),
    ("BCRYPT_AES_GMAC_ALGORITHM", {}, "? BCRYPT_AES_GMAC_ALGORITHM is not among Tollbar's choices"),
    ("BCRYPT_MD5_ALGORITHM", {"primitive": "hash"}, "digest md5"),
    ("CKM_RC4", {}, "cipher rc4"),
    ("CKM_DES3_CBC", {}, "cipher 3des-cbc"),
    ("CKM_DES3_CBC_PAD", {}, "cipher 3des-cbc"),
    ("CKM_AES_GCM", {"parameterSetIdentifier": "256"}, "cipher aes-256-gcm"),
    ("CKM_SHA256", {}, "digest sha-256"),
    ("CKM_SHA_1", {}, "digest sha-1"),
    ("CKM_SHA256_HMAC", {}, "mac hmac-sha-256"),
    ("CKM_ECDSA_SHA256", {"curve": "P-256"}, "signature ecdsa-p256 digest=sha-256"),
    ("CKM_SHA256_RSA_PKCS_PSS", {"parameterSetIdentifier": "3072"}, "signature rsa-3072 digest=sha-256 padding=pss"),
    ("CKM_ECDH1_DERIVE", {"curve": "P-384"}, "key-exchange ecdh-p384"),
    ("CKM_RSA_PKCS_KEY_PAIR_GEN", {"parameterSetIdentifier": "2048"}, "signature rsa-2048 + key-exchange rsa-2048"),
    ("CKM_EC_KEY_PAIR_GEN", {"curve": "P-256"}, "signature ecdsa-p256 + key-exchange ecdh-p256"),
    ("CKM_RSA_X_509", {"parameterSetIdentifier": "2048"}, "signature rsa-2048"),
    ("http://www.w3.org/2001/04/xmlenc#tripledes-cbc", {}, "cipher 3des-cbc"),
    ("http://www.w3.org/2009/xmlenc11#aes256-gcm", {}, "cipher aes-256-gcm"),
    (
        "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
        {"parameterSetIdentifier": "3072"},
        "signature rsa-3072 digest=sha-256 padding=pkcs1",
    ),
    ("http://www.w3.org/2001/04/xmlenc#sha256", {}, "digest sha-256"),
    (
        "http://www.w3.org/2007/05/xmldsig-more#sha256-rsa-MGF1",
        {"parameterSetIdentifier": "3072"},
        "signature rsa-3072 digest=sha-256 padding=pss",
    ),
    ("http://www.w3.org/2001/04/xmlenc#rsa-1_5", {"parameterSetIdentifier": "3072"}, "key-exchange rsa-3072"),
    ("http://www.w3.org/2001/04/xmlenc#kw-aes256", {}, "? Tollbar has no family of key wrapping"),
    ("MD5CryptoServiceProvider", {}, "digest md5"),
    ("SHA1Managed", {}, "digest sha-1"),
    ("SHA256Managed", {}, "digest sha-256"),
    ("RSACng", {"parameterSetIdentifier": "3072"}, "signature rsa-3072 + key-exchange rsa-3072"),
    ("ECDsaCng", {"curve": "nistP256"}, "signature ecdsa-p256"),
    ("RijndaelManaged", {}, "? the size of its key and its mode of operation are not given"),
    ("System.Security.Cryptography.MD5", {}, "digest md5"),
    ("CALG_MD5", {}, "digest md5"),
    ("CALG_RC4", {}, "cipher rc4"),
    ("CC_MD5", {}, "digest md5"),
    ("MBEDTLS_MD_MD5", {}, "digest md5"),
    ("PSA_ALG_MD5", {}, "digest md5"),
    ("GCRY_MD_SHA1", {}, "digest sha-1"),
    ("SEC_OID_MD5", {}, "digest md5"),
    ("MCRYPT_RIJNDAEL_256", {"mode": "cbc"}, "? `MCRYPT` in its name is not known here"),
    ("hashes.MD5", {}, "digest md5"),
    (
        "my sig",
        {"primitive": "signature", "algorithmFamily": "ECDSA", "ellipticCurve": "nist/P-384"},
        "signature ecdsa-p384",
    ),
    (
        "kex",
        {"primitive": "key-agree", "algorithmFamily": "ECDH", "ellipticCurve": "secg/secp256r1"},
        "key-exchange ecdh-p256",
    ),
    (
        "kex2",
        {"primitive": "key-agree", "algorithmFamily": "ECDH", "ellipticCurve": "other/Curve25519"},
        "key-exchange x25519",
    ),
    (
        "sig",
        {"primitive": "signature", "algorithmFamily": "EdDSA", "ellipticCurve": "other/Ed25519"},
        "signature ed25519",
    ),
    ("ECDiffieHellman", {"primitive": "key-agree", "curve": "nistP384"}, "key-exchange ecdh-p384"),
    ("ECDiffieHellmanP256", {}, "key-exchange ecdh-p256"),
    ("ESP256", {}, "signature ecdsa-p256 digest=sha-256"),
    ("ESP384", {}, "signature ecdsa-p384 digest=sha-384"),
    ("HMAC 256/256", {}, "mac hmac-sha-256"),
    ("ChaCha20-Poly1305/None/NoPadding", {}, "cipher chacha20-poly1305"),
    ("ECDSA_P256_SHA256_ASN1", {}, "signature ecdsa-p256 digest=sha-256"),
    ("IKE group 22", {}, "key-exchange modp-1024-160"),
    ("DSA", {"parameterSetIdentifier": "L=512,N=160"}, "signature dsa-512"),
    ("id-ecPublicKey", {"curve": "1.2.840.10045.3.1.7"}, "signature ecdsa-p256 + key-exchange ecdh-p256"),
    ("256-bit random ECP group", {}, "key-exchange ecdh-p256"),
    # Ed25519 does not have such a hash.
    ("Ed448-MD5", {}, "? its name says md5 in addition, which is not part of it"),
    ("Ed25519-SHA3-512", {}, "? its name says sha3-512 in addition, which is not part of it"),
]
WEAK = [
    ("SSL_CK_RC4_128_WITH_MD5", {}),
    ("SSL_CK_DES_64_CBC_WITH_MD5", {}),
    ("usmDESPrivProtocol", {}),
    ("usm3DESEDEPrivProtocol", {}),
    ("DES_ENCRYPT()", {}),
    ("CKM_AES_ECB", {}),
    ("CKM_MD5_RSA_PKCS", {}),
    ("http://www.w3.org/2000/09/xmldsig#rsa-sha1", {}),
    ("http://www.w3.org/2001/04/xmldsig-more#rsa-md5", {}),
    ("DESCryptoServiceProvider", {}),
    ("RC2CryptoServiceProvider", {}),
    ("TripleDESCng", {}),
    ("kCCAlgorithmDES", {}),
    ("kCCAlgorithm3DES", {}),
    ("NID_md5WithRSAEncryption", {}),
    ("MCRYPT_RIJNDAEL_128", {"mode": "ecb"}),
    ("SEED-ECB", {}),
    ("SM4-ECB", {}),
    ("Twofish-ECB", {}),
    ("HMAC-MD5", {}),
    ("HMAC-MD5-128", {}),
    ("HmacMD5", {}),
]


@pytest.mark.parametrize(("name", "properties", "choice"), NAMES)
def test_a_name_of_another_vocabulary_is_its_choice(name: str, properties: dict[str, Any], choice: str) -> None:
    assert choice == " + ".join(words(found(name, **properties)))


@pytest.mark.parametrize(("name", "properties"), WEAK)
def test_a_weak_name_of_another_vocabulary_breaks_the_policy(name: str, properties: dict[str, Any]) -> None:
    assert Ruling.BREAKS is line(algorithm(name, **properties)).ruling


def test_a_password_hash_without_a_parameter_is_neither_weak_nor_whole() -> None:
    """Argon2id of 64 MiB meets OWASP's rule with any number of passes."""
    names = ("Argon2id (m=65536, p=4)", "PBKDF2-HMAC-SHA512", "bcrypt", "scrypt (r=8, p=1)", "Argon2id (t=3)")
    found = judged(*(algorithm(name, primitive="kdf") for name in names), policy="owasp-password-storage-2026-06")
    assert (len(names), 0, 0) == (found.count(Ruling.CANNOT_SAY), found.bad_unrefused, found.mapped)
