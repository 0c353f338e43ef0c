"""Names written by people and tools: each is its choice, or refused with the unknown word or the missing fact."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test_inventory import algorithm, made, words
from tollbar.catalog.families import families
from tollbar.core import spelling
from tollbar.decide.price import names
from tollbar.decide.price.mapping import Mapped, mapped

NOT_HAD = "is not among Tollbar's choices"
PRE_HASHED = "a pre-hashed signature"


def found(name: str, **properties: Any) -> Mapped:
    (one,) = mapped(made(algorithm(name, **properties)))
    return one


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        # SSH.
        ("curve25519-sha256", "key-exchange x25519"),
        ("curve25519-sha256@libssh.org", "key-exchange x25519"),
        ("ecdsa-sha2-nistp256", "signature ecdsa-p256 digest=sha-256"),
        ("ecdsa-sha2-nistp384-cert-v01@openssh.com", "signature ecdsa-p384 digest=sha-384"),
        ("ecdh-sha2-nistp384", "key-exchange ecdh-p384"),
        ("diffie-hellman-group14-sha256", "key-exchange modp-2048"),
        ("diffie-hellman-group1-sha1", "key-exchange modp-1024"),
        ("ssh-dss", "signature dsa-1024 digest=sha-1"),
        ("ssh-ed25519", "signature ed25519"),
        ("aes256-gcm@openssh.com", "cipher aes-256-gcm"),
        ("hmac-sha2-256-etm@openssh.com", "mac hmac-sha-256"),
        # JOSE.
        ("ES256", "signature ecdsa-p256 digest=sha-256"),
        ("JWT algorithm: ES512", "signature ecdsa-p521 digest=sha-512"),
        ("A192GCM", "cipher aes-192-gcm"),
        ("HS512", "mac hmac-sha-512"),
        # X.509, JCA and OpenSSL.
        ("SHA256withRSA-2048", "signature rsa-2048 digest=sha-256 padding=pkcs1"),
        ("RSA signature: SHA256withRSA (3072 bits)", "signature rsa-3072 digest=sha-256 padding=pkcs1"),
        ("RSA-SHA1-2048", "signature rsa-2048 digest=sha-1"),
        ("sha256RSA 3072", "signature rsa-3072 digest=sha-256 padding=pkcs1"),
        ("md5RSA (1024)", "signature rsa-1024 digest=md5 padding=pkcs1"),
        ("AES_128/CBC/PKCS5Padding", "cipher aes-128-cbc"),
        ("AES (256) GCM", "cipher aes-256-gcm"),
        ("id-aes128-GCM", "cipher aes-128-gcm"),
        ("DES-EDE3-CBC", "cipher 3des-cbc"),
        ("BLAKE2B512", "digest blake2b-512"),
        ("2048-bit RSA", "signature rsa-2048 + key-exchange rsa-2048"),
        ("scrypt (logN=17, r=8, p=1)", "password-hash scrypt n=131072 r=8 p=1"),
        ("bcrypt 2b, 12", "password-hash bcrypt cost=12"),
        ("ldap_salted_sha1", "password-hash salted-sha-1"),
        ("NID_X9_62_prime256v1", "signature ecdsa-p256 + key-exchange ecdh-p256"),
        ("SN_X9_62_prime256v1", "signature ecdsa-p256 + key-exchange ecdh-p256"),
        ("aes-256-cbc-essiv", "cipher aes-256-cbc"),
        ("FFDHE-3072", "key-exchange ffdhe3072"),
        ("FFDHE (2048 bits)", "key-exchange ffdhe2048"),
        ("NIST P-256", "signature ecdsa-p256 + key-exchange ecdh-p256"),
        ("ECC-P256", "signature ecdsa-p256 + key-exchange ecdh-p256"),
        # Kerberos and IKE.
        ("des3-cbc-sha1", "cipher 3des-cbc"),
        ("des3-cbc-sha1-kd", "cipher 3des-cbc"),
        ("aes256gcm16", "cipher aes-256-gcm"),
        ("AUTH_HMAC_SHA2_256_128", "mac hmac-sha-256"),
        ("MODP2048", "key-exchange modp-2048"),
        # Passwords, with their costs.
        ("PBKDF2-SHA-256-29000-32", "password-hash pbkdf2-sha-256 iterations=29000"),
        ("PBKDF2-HMAC-SHA256 (600000 iterations)", "password-hash pbkdf2-sha-256 iterations=600000"),
        ("bcrypt-5", "password-hash bcrypt cost=5"),
        ("Argon2id (m=65536, t=3, p=4)", "password-hash argon2id memory=67108864 passes=3 lanes=4"),
        ("scrypt N=16384 r=8 p=1", "password-hash scrypt n=16384 r=8 p=1"),
        ("SSHA", "password-hash salted-sha-1"),
        ("DES3-CBC", "cipher 3des-cbc"),
        ("SSLv3", "tls ssl-3"),
        # JCA, OpenPGP and IKE.
        ("SHA256withECDSAinP1363Format secp256r1", "signature ecdsa-p256 digest=sha-256"),
        ("SHA1withDSAinP1363Format 2048", "signature dsa-2048 digest=sha-1"),
        ("MD5andSHA1withRSA-2048", "signature rsa-2048 digest=md5-sha1 padding=pkcs1"),
        ("RSA/None/PKCS1Padding 2048", "signature rsa-2048 + key-exchange rsa-2048"),
        ("RSA Encrypt-Only 2048", "key-exchange rsa-2048"),
        ("RSA Sign-Only 2048", "signature rsa-2048 padding=pkcs1"),
        ("RSA (Encrypt or Sign) 2048", "signature rsa-2048 + key-exchange rsa-2048"),
        ("sk-ssh-ed25519@openssh.com", "signature ed25519"),
        ("sk-ssh-ed25519-cert-v01@openssh.com", "signature ed25519"),
        ("sk-ecdsa-sha2-nistp256@openssh.com", "signature ecdsa-p256 digest=sha-256"),
        ("webauthn-sk-ecdsa-sha2-nistp256@openssh.com", "signature ecdsa-p256 digest=sha-256"),
        ("rijndael-cbc@lysator.liu.se", "cipher aes-256-cbc"),
        ("DH Group 1", "key-exchange modp-768"),
        ("Diffie-Hellman Group 1 (768-bit)", "key-exchange modp-768"),
        ("oakley-group-1", "key-exchange modp-768"),
        ("DH Group 2 (1024-bit)", "key-exchange modp-1024"),
        ("DH-14", "key-exchange modp-2048"),
        ("DH Group 14 (2048-bit)", "key-exchange modp-2048"),
        ("ffdhe2048 (2048-bit)", "key-exchange ffdhe2048"),
        ("DH Group 19", "key-exchange ecdh-p256"),
        ("Group 31", "key-exchange x25519"),
        ("ENCR_NULL", "cipher null-cipher"),
        ("NULL", "cipher null-cipher"),
        ("NULL-SHA", "cipher null-cipher"),
        ("GNUTLS_CIPHER_3DES_CBC", "cipher 3des-cbc"),
        ("GNUTLS_DIG_MD5", "digest md5"),
        ("TPM_ALG_SHA1", "digest sha-1"),
        ("CryptoPP::Weak::MD5", "digest md5"),
        ("Crypt::DES-CBC", "cipher des-cbc"),
        ("createHash('md5')", "digest md5"),
        ("ALG_DES_CBC_NOPAD", "cipher des-cbc"),
        ("PQ_SIGN_ML_DSA_65", "signature ml-dsa-65"),
        (
            "Argon2id (time_cost=3, memory_cost=65536, parallelism=4)",
            "password-hash argon2id memory=67108864 passes=3 lanes=4",
        ),
        ("ES512", "signature ecdsa-p521 digest=sha-512"),
        ("Algorithm.ECDSA384", "signature ecdsa-p384 digest=sha-384"),
        ("RSA-512", "signature rsa-512 + key-exchange rsa-512"),
        ("ROT13", "cipher encoding"),
        ("XOR", "cipher encoding"),
        ("Base64", "cipher encoding"),
    ],
)
def test_a_name_is_its_choice(name: str, choice: str) -> None:
    assert choice == " + ".join(words(found(name)))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        # Each contains the name of a hash, a curve, a group or an algorithm.
        *((name, NOT_HAD) for name in (
            "SRP-6a-SHA256", "SRP-3-SHA-1", "OPAQUE-SHA512", "SPAKE2-P256-SHA256", "JPAKE-SHA256", "WOTSP-SHA2_256",
            "LMOTS_SHA256_N32_W8", "ECGDSA-SHA256", "KCDSA-SHA256", "Schnorr-SHA256", "PBMAC1-HMAC-SHA-256-100000",
            "XChaCha20-Poly1305", "ECMQV-secp256r1", "FFMQV-ffdhe2048", "SRP-6-SHA-256-ffdhe3072", "J-PAKE-ffdhe3072",
            "OPAQUE-3DH-P256-SHA-256-scrypt", "FN-DSA-512", "FN-DSA-1024", "X3DH-SHA-512", "X3DH", "sha512crypt",
            "sha512-crypt", "sntrup761", "UMAC-128", "SipHash-2-4", "AES-128-GMAC", "SHAKE256", "Fernet", "HC-128",
            "Ascon-AEAD128", "TupleHash128", "KMACXOF256", "Keccak-256", "ffdhe4096")),
        *((name, PRE_HASHED) for name in (
            "HashML-DSA-65-SHA-512", "HashSLH-DSA-SHA2-128s-SHA-256", "Ed25519ph")),
        ("SCRAM-SHA-256", "a way to sign in"),
        ("DIGEST-MD5", "a way to sign in"),
        ("CRAM-MD5", "a way to sign in"),
        ("SHA-256 password hash", "a hash of passwords"),
        ("SEED-128-CBC-HMAC-SHA-256", "a cipher with a MAC in one"),
        ("arcfour-hmac-md5", "a cipher with a MAC in one"),
        ("PBES2-AES-256-CBC-PBKDF2-SHA-256", "no family of key derivation"),
        ("ECDH-ES+A128KW", "a key agreement and a key wrapping in one"),
        ("AES-128-GCM-SHA256", "says sha-256 in addition"),
        ("ML-DSA-65-SHA-512", "says sha-512 in addition"),
        ("SHA-256/128", "says both sha-256 and 128 bits"),
        ("double-SHA256", "`double` in its name is not known here"),
        ("SHA-256x2", "`256x2` in its name"),
        ("RSA <2048 (weak key size)", "its key has at most 2047 bits"),
        ("AES <256", "`<256` in its name"),
        *((name, "a NIST standard and its draft") for name in (
            "ML-KEM (Kyber)", "ML-DSA (Dilithium)", "SLH-DSA (SPHINCS+)", "Kyber-768 (ML-KEM-768)")),
        *((name, f"`{size}` in its name is not known here") for name, size in (
            ("AES-256/192-GCM", 192), ("AES-128/256-GCM", 256), ("AES-192/256-GCM", 256),
            ("AES-128, AES-256 GCM", 256), ("AES-GCM (128-bit tag, 256-bit key)", 256))),
        ("Algorithm.RSA512", "the size of its key is not given"),
        ("AES-128-GCM-Quux", "`Quux` in its name"),
        ("TLS_AES_256_GCM_SHA384", "its version is not given"),
        ("RSA-OAEP", "the family storage has rsa-oaep"),
        ("TLS_FALLBACK_SCSV", "a signalling value"),
        ("DES-MAC", "a MAC made of DES"),
        ("CKM_EC_EDWARDS_KEY_PAIR_GEN", "its curve is not given"),
        ("CKM_EC_MONTGOMERY_KEY_PAIR_GEN", "its curve is not given"),
        *((name, "`!aNULL` in its name is not known here") for name in ("!aNULL", "ECDHE:!aNULL")),
        *((name, "a combination of algorithms in an unknown form") for name in (
            "chacha20poly1305-prfsha256-x25519", "3des-prfsha1-x25519", "aes128gcm16-prfsha256-ecp256")),
        ("CKM_SP800_108_COUNTER_KDF", "no family of key derivation"),
        ("UMAC-128", NOT_HAD),
        ("rsa2048-sha256", "the family storage has rsa-oaep"),
        ("FFDHE", "its group is not given"),
        ("DH Group 1 (1024-bit)", "its name says both modp-768 and dh-1024"),
        ("DH Group 14 (1024-bit)", "its name says both modp-2048 and dh-1024"),
        ("ffdhe2048 (3072-bit)", "its name says both ffdhe2048 and dh-3072"),
        ("ENCR_AES_GCM_8", "is not given, and its tag has 64 bits; the judged one has 128"),
    ],
)  # fmt: skip
def test_a_name_that_is_no_choice_is_refused(name: str, reason: str) -> None:
    one = found(name)
    assert () == one.uses
    assert reason in str(one.reason)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("aes128gcm8", 64),
        ("aes256gcm12", 96),
        ("aes256gcm64", 64),
        ("AES-GCM-256-8", 64),
        ("AEAD_AES_128_GCM_8", 64),
        ("AEAD_AES_256_GCM_12", 96),
        ("AES-256-GCM-4", 32),
        ("AES-256-GCM-12-96", 96),
        ("aes256gcm16", None),
        ("aes256gcm128", None),
        ("AES-256-GCM-16-12", None),
        ("AES-256-GCM-128-12", None),
    ],
)
def test_a_short_tag_is_beyond_what_is_judged_in_octets_too(name: str, bits: int | None) -> None:
    (use,) = found(name).uses
    assert use.beyond == (() if bits is None else (f"its tag has {bits} bits; the judged one has 128",))


@pytest.mark.parametrize("octets", [8, 12, 16])
def test_the_octets_of_a_tag_are_no_size_of_a_key(octets: int) -> None:
    (use,) = found(f"ENCR_AES_GCM_{octets}", parameterSetIdentifier="256").uses
    assert use.coordinates["choice"] == "aes-256-gcm"
    assert (octets == 16) is (use.beyond == ())


@pytest.mark.parametrize(
    ("name", "properties", "said"),
    [
        # CycloneDX's registry gives password hashes the primitive `kdf`.
        *((name, {"primitive": "kdf"}, f"password-hash {choice}") for name, choice in (
            ("Argon2id", "argon2id"), ("scrypt", "scrypt"), ("bcrypt", "bcrypt"),
            ("PBKDF2-HMAC-SHA256", "pbkdf2-sha-256"))),
        ("PBKDF2-SHA-512", {"primitive": "kdf", "algorithmFamily": "PBKDF2"}, "password-hash pbkdf2-sha-512"),
        ("Argon2id-19456-2-1", {"algorithmFamily": "Argon2"},
            "password-hash argon2id memory=19922944 passes=2 lanes=1"),
        # The parameter set is the algorithm's own parameter.
        ("ECDSA", {"parameterSetIdentifier": "P-256"}, "signature ecdsa-p256"),
        ("ECDH", {"parameterSetIdentifier": "X25519"}, "key-exchange x25519"),
        ("EdDSA", {"parameterSetIdentifier": "Ed25519"}, "signature ed25519"),
        ("DH", {"parameterSetIdentifier": "ffdhe3072"}, "key-exchange ffdhe3072"),
        ("HMAC", {"parameterSetIdentifier": "SHA-256", "primitive": "mac"}, "mac hmac-sha-256"),
        ("SLH-DSA", {"parameterSetIdentifier": "SHA2-128s"}, "signature slh-dsa-128s"),
        ("SHA-2", {"parameterSetIdentifier": "SHA-256"}, "digest sha-256"),
        ("SHA", {"parameterSetIdentifier": "256", "primitive": "hash"}, "digest sha-256"),
        ("SHA", {"parameterSetIdentifier": "SHA-384"}, "digest sha-384"),
        ("SHA", {"oid": "2.16.840.1.101.3.4.2.1"}, "digest sha-256"),
        ("SHA and SHA-256", {}, "? its name says both sha-256 and sha-1"),
        ("SHA-1", {"parameterSetIdentifier": "SHA-384"}, "? its name says sha-1, and its parameter says sha-384"),
        ("SHA-256", {"parameterSetIdentifier": "unspecified"}, "digest sha-256"),
        ("RSA-SHA256", {"parameterSetIdentifier": "2048"}, "signature rsa-2048 digest=sha-256"),
        ("DES3", {"mode": "cbc"}, "cipher 3des-cbc"),
        ("AES (256)", {"mode": "gcm"}, "cipher aes-256-gcm"),
        ("ECC", {"primitive": "signature", "curve": "P-256"}, "signature ecdsa-p256"),
        ("X25519", {"primitive": "keyagree"}, "key-exchange x25519"),
        ("Poly1305", {"primitive": "hash"}, "mac poly1305"),
        ("HMACSHA2", {"primitive": "mac"}, "? its hash is not given"),
        ("RSA-2048-SHA2", {}, "signature rsa-2048"),
        ("Main hash of the product", {"oid": "2.16.840.1.101.3.4.2.1"}, "digest sha-256"),
        ("X25519", {"parameterSetIdentifier": "25519"}, "key-exchange x25519"),
        # Two facts that contradict each other.
        ("FN-DSA", {"parameterSetIdentifier": "512"}, f"? FN-DSA {NOT_HAD}"),
        ("SHA-256", {"parameterSetIdentifier": "512"}, "? its name says sha-256, and its parameter says 512 bits"),
        ("BLAKE2b-512", {"primitive": "mac"}, "? its primitive says mac, and its name says blake2b-512"),
        ("SHA-512", {"primitive": "mac"}, "? its primitive says mac, and its name says sha-512"),
        ("SHA256", {"primitive": "signature"}, "? its primitive says signature, and its name says sha-256"),
        ("AES-256-GCM", {"primitive": "hash"}, "? its primitive says hash, and its name says aes-256-gcm"),
        ("ML-KEM-768", {"primitive": "signature"}, "? its primitive says signature, and its name says ml-kem-768"),
        ("ML-DSA-65", {"primitive": "kem"}, "? its primitive says kem, and its name says ml-dsa-65"),
        ("ML-KEM-1024", {"oid": "2.16.840.1.101.3.4.1.48"}, "? its name says ml-kem, and its oid says aes"),
        ("ML-KEM-768", {"oid": "2.16.840.1.101.3.4.4.99"}, "? `2.16.840.1.101.3.4.4.99` in its oid is not known here"),
        ("ML-DSA-65", {"oid": "2.16.840.1.101.3.4.4.2"}, "? its name says ml-dsa, and its oid says ml-kem"),
        ("AES-GCM", {"parameterSetIdentifier": "256, 192"}, "? `192` in its parameterSetIdentifier is not known here"),
        ("RSA512", {"parameterSetIdentifier": "4096", "primitive": "signature"},
            "signature rsa-4096 digest=sha-512 padding=pkcs1"),
        # The length of a key is no number of iterations.
        *((name, {"primitive": "kdf", "parameterSetIdentifier": size}, f"password-hash {choice}")
            for name, size, choice in (
                ("PBKDF2-SHA-256", "32", "pbkdf2-sha-256"), ("PBKDF2WithHmacSHA256", "256", "pbkdf2-sha-256"),
                ("PBKDF2WithHmacSHA512", "512", "pbkdf2-sha-512"))),
        ("AES-256-GCM", {"mode": "quux"}, "? `quux` in its mode is not known here"),
        ("AES-256-GCM", {"oid": "1.2.3.4"}, "? `1.2.3.4` in its oid is not known here"),
    ],
)  # fmt: skip
def test_a_name_and_its_properties_agree(name: str, properties: dict[str, Any], said: str) -> None:
    assert said == " + ".join(words(found(name, **properties)))


@pytest.mark.parametrize(
    "component",
    [
        {"assetType": "algorithm", "oid": None, "algorithmProperties": {"primitive": "hash", "mode": None}},
        {"assetType": "algorithm", "certificateProperties": None, "algorithmProperties": {"cryptoFunctions": None}},
        {"assetType": "algorithm", "algorithmProperties": {"cryptoFunctions": "digest"}},
        {"assetType": "algorithm", "algorithmProperties": None},
        {"assetType": "library", "algorithmProperties": {"name": "SHA-256", "strength": None}},
    ],
)
@pytest.mark.parametrize("evidence", [None, {"occurrences": None}, {"occurrences": [{"location": None, "line": None}]}])
def test_a_null_is_a_property_that_is_not_given(component: dict[str, Any], evidence: object) -> None:
    of = {"type": "cryptographic-asset", "name": "SHA-256", "cryptoProperties": component, "evidence": evidence}
    (one,) = mapped(made(of))
    assert ["digest sha-256"] == words(one)


def test_assets_of_one_name_are_judged_by_their_own_properties() -> None:
    """An earlier lookup of the same name must not decide."""
    said = [{"primitive": one} for one in ("hash", "mac", "kdf", "hash")]
    found_ = mapped(made(*(algorithm("SHA-256", **one) for one in said)))
    assert [True, False, False, True] == [bool(one.uses) for one in found_]


def test_keys_and_certificates_of_tools_are_read() -> None:
    """Tools use a type and names that the specification does not have."""
    key = {"assetType": "key", "algorithmName": "Ed25519-256", "keySize": 256, "oid": None}
    certificate = {"assetType": "certificate", "algorithmName": "RSA-1024", "keySize": 1024, "oid": None}
    other = {"assetType": "certificate", "algorithmProperties": {"name": "EC", "mode": None}}
    sized = {
        "assetType": "certificate",
        "oid": "1.2.840.113549.1.1.1",
        "certificateProperties": {"relatedCryptographicAssets": [{"type": "size", "ref": "2048"}]},
    }
    parts = [
        {"type": "cryptographic-asset", "name": "x", "cryptoProperties": one}
        for one in (key, certificate, other, sized)
    ]
    said = [" + ".join(words(one)) for one in mapped(made(*parts))]
    assert ["signature ed25519", "signature rsa-1024", "? its curve is not given", "signature rsa-2048"] == said


FAMILIES = ("digest", "mac", "cipher", "signature", "key-exchange", "password-hash")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_choice_by_its_own_name_is_itself_or_not_said(family: str) -> None:
    for choice in families()[family].choices.values():
        for use in found(choice.name).uses:
            if use.family.name == family and choice.name in families()[family].choices:
                assert choice.name.startswith(str(use.coordinates["choice"]))


@pytest.mark.parametrize("family", FAMILIES)
def test_an_alias_is_no_other_choice(family: str) -> None:
    known = families()[family].choices
    for choice, others in spelling.table()["also"].items():
        for other in others if choice in known else ():
            uses = [use for use in found(other).uses if use.family.name == family]
            assert not uses or choice in [use.coordinates["choice"] for use in uses], other


@settings(max_examples=200, deadline=1000)
@given(st.text(max_size=60), st.sampled_from(["SHA-256", "AES-256-GCM", "RSA-2048", "curve25519", "Argon2id", ""]))
def test_whatever_follows_a_name_is_known_or_left_over(text: str, name: str) -> None:
    """Letters and digits are part of a fact, a number, a filler, or left over."""
    read = names.read(f"{name} {text}")
    if "quux" in text.lower():
        assert read.left
    (one,) = mapped(made(algorithm(f"{name} {text} quuxquux")))
    assert () == one.uses


@pytest.mark.parametrize("blanks", [1, 50, 110, 130, 300])
def test_the_end_of_a_long_name_is_not_passed_over(blanks: int) -> None:
    assert () == found(f"SHA-256{' ' * blanks}quux").uses
    assert () == found("AES", parameterSetIdentifier=f"256{'-' * blanks}quux", mode="gcm").uses
    assert names.read(f"SHA-256{' ' * blanks}quux").left


def test_long_and_hostile_names_take_little_time() -> None:
    began = time.process_time()
    for letter in ("a", "1", "-", "sha", "m=1 ", "rsa-", "256-", "é", "<1"):
        names.read(letter * 100_000)
    assert time.process_time() - began < 1
