"""Names of checksums, of libraries' classes and constants, and of IKE: each maps to its choice or to a reason."""

from __future__ import annotations

import pytest

from test_inventory import OAEP, algorithm, words
from test_inventory_names import NOT_HAD, found
from test_price_weak import line
from tollbar.catalog import policies
from tollbar.catalog.families import Standing
from tollbar.catalog.policies import Ruling

CHECKSUMS = [
    "crc32", "crc32b", "crc32c", "CRC-16-CCITT", "crc8", "crc64", "adler32", "fletcher16", "fnv132", "fnv1a32",
    "fnv164", "fnv1a64", "FNV-1a", "joaat", "murmur3a", "murmur3c", "murmur3f", "MurmurHash2", "MurmurHash3", "xxh32",
    "xxh64", "xxh3", "xxh128", "xxHash64", "CityHash64", "farmhash", "wyhash", "djb2", "sdbm", "cksum",
]  # fmt: skip
ECIES = "kSecKeyAlgorithmECIESEncryptionCofactorVariableIVX963SHA256AESGCM"
SIZES = "the size of its key and its mode of operation are not given"
FORMAT_ALONE = "neither its name nor its properties say which algorithm it is"
NAMES = [
    # Numbers in PHP's hash names are passes.
    ("haval256,5", "digest haval"),
    ("tiger192,3", "digest tiger"),
    ("snefru256", f"? snefru256 {NOT_HAD}"),
    ("crc32 and SHA-256", "? its name says both checksum and sha-256"),
    # Bouncy Castle.
    ("org.bouncycastle.crypto.engines.AESEngine", f"? {SIZES}"),
    ("org.bouncycastle.crypto.engines.AESLightEngine", f"? {SIZES}"),
    ("org.bouncycastle.crypto.engines.BlowfishEngine", "cipher blowfish"),
    ("org.bouncycastle.crypto.engines.RC4Engine", "cipher rc4"),
    ("org.bouncycastle.crypto.digests.SHA256Digest", "digest sha-256"),
    ("org.bouncycastle.crypto.digests.MD5Digest", "digest md5"),
    ("org.bouncycastle.crypto.macs.HMac", "? its hash is not given"),
    ("org.bouncycastle.crypto.modes.GCMBlockCipher", f"? {FORMAT_ALONE}"),
    ("org.bouncycastle.crypto.signers.Ed25519Signer", "signature ed25519"),
    ("org.bouncycastle.crypto.signers.RSADigestSigner", "? the size of its key is not given"),
    ("org.bouncycastle.crypto.signers.ECDSASigner", "? its curve is not given"),
    ("org.bouncycastle.crypto.signers.DSADigestSigner", f"? {FORMAT_ALONE}"),
    ("org.bouncycastle.crypto.generators.PKCS5S2ParametersGenerator", "? its hash is not given"),
    ("org.bouncycastle.crypto.agreement.X25519Agreement", "key-exchange x25519"),
    ("org.bouncycastle.crypto.agreement.ECDHBasicAgreement", "? its curve is not given"),
    ("org.bouncycastle.crypto.encodings.OAEPEncoding", f"? {OAEP}"),
    ("ChaCha7539Engine", f"? ChaCha7539Engine {NOT_HAD}"),
    # Rust.
    ("aes_gcm::Aes256Gcm", "cipher aes-256-gcm"),
    ("cbc::Encryptor<aes::Aes128>", "cipher aes-128-cbc"),
    ("Ctr128BE<Aes256>", "cipher aes-256-ctr"),
    ("des::TdesEde3", "? its mode of operation is not given"),
    ("hmac::SimpleHmac<Sha256>", "mac hmac-sha-256"),
    ("k256::ecdsa::SigningKey", "? Tollbar's family signature has no ecdsa-secp256k1"),
    ("p256::ecdh::EphemeralSecret", "key-exchange ecdh-p256"),
    ("ed25519_dalek::SigningKey", "signature ed25519"),
    ("x25519_dalek::StaticSecret", "key-exchange x25519"),
    ("curve25519-dalek", f"? {FORMAT_ALONE}"),
    ("ring::aead::AES_256_GCM", "cipher aes-256-gcm"),
    ("ring::signature::ECDSA_P256_SHA256_ASN1", "signature ecdsa-p256 digest=sha-256"),
    ("ring::pbkdf2::PBKDF2_HMAC_SHA256", "password-hash pbkdf2-sha-256"),
    # The constant accepts keys of 2,048 to 8,192 bits.
    ("ring::signature::RSA_PKCS1_2048_8192_SHA256", "? `8192` in its name is not known here"),
    ("aws_lc_rs::digest::SHA384", "digest sha-384"),
    ("Ring signature SHA-256", "? `Ring` in its name is not known here"),
    # Apple.
    ("kSecKeyAlgorithmECDHKeyExchangeStandard", "? its curve is not given"),
    ("kSecKeyAlgorithmRSAEncryptionOAEPSHA256", f"? {OAEP}"),
    (ECIES, f"? {ECIES} {NOT_HAD}"),
    ("kSecAttrKeyTypeRSA", "? the size of its key is not given"),
    ("kSecAttrKeyTypeECSECPrimeRandom", "? its curve is not given"),
    ("kCCPRFHmacAlgSHA256", "mac hmac-sha-256"),
    ("P256.KeyAgreement", "key-exchange ecdh-p256"),
    ("Curve25519.KeyAgreement", "key-exchange x25519"),
    ("P-256 private key", "signature ecdsa-p256 + key-exchange ecdh-p256"),
    ("private key", "? the format of a key, not an algorithm"),
    # The mask of RSA's paddings.
    ("OAEPWithSHA1AndMGF1Padding", f"? {OAEP}"),
    ("PSS-MGF1", "? the size of its key is not given"),
    ("MGF1withSHA256", "? a part of RSA-PSS and RSA-OAEP, with which it is judged"),
    ("RSASSA-PSS-SHA256-MGF1-SHA1-3072", "signature rsa-3072 digest=sha-256 padding=pss"),
    # libsodium: 13 is the version of Argon2, and BLAKE2b has 256 bits by default.
    ("crypto_pwhash_ALG_ARGON2ID13", "password-hash argon2id"),
    ("crypto_generichash_blake2b", f"? crypto_generichash_blake2b {NOT_HAD}"),
    ("crypto_scalarmult_curve25519", "key-exchange x25519"),
    # Kerberos, Wi-Fi and tools.
    ("Kerberos DES-CBC-MD5", "cipher des-cbc"),
    ("krb5 aes256", "? its mode of operation is not given"),
    ("WEP", "cipher rc4"),
    ("md5sum", "digest md5"),
    # IKE and IPsec.
    ("ENCR_AES_GCM_16_256", "cipher aes-256-gcm"),
    ("AES_GCM_16-128", "cipher aes-128-gcm"),
    ("ENCR_AES_GCM_16", "? the size of its key is not given"),
    ("AUTH_HMAC_SHA2_512_256", "mac hmac-sha-512"),
    ("HMAC-SHA-512/256", "? Tollbar's family mac has no hmac-sha-512-256"),
    ("ecp256", "key-exchange ecdh-p256"),
    ("ECP_384", "key-exchange ecdh-p384"),
    ("ecp256bp", "? Tollbar's family key-exchange has no ecdh-brainpoolp256r1"),
    ("2048-bit MODP Group", "key-exchange modp-2048"),
    ("1024-bit MODP Group with 160-bit Prime Order Subgroup", "key-exchange modp-1024-160"),
    ("oakley-group-5", "key-exchange modp-1536"),
    ("esp-aes-256", "? its mode of operation is not given"),
    ("esp-md5-hmac", "mac hmac-md5"),
    ("ke1_mlkem768", "key-exchange ml-kem-768"),
    ("RSA_SIG", "? the size of its key is not given"),
    # The number of a standard is no size.
    ("FIPS 186-4 ECDSA P-256", "signature ecdsa-p256"),
    ("ChaCha20-Poly1305 (RFC 8439)", "cipher chacha20-poly1305"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), NAMES)
def test_a_library_s_name_is_its_choice_or_what_is_missing(name: str, expected: str) -> None:
    assert [expected] == [" + ".join(words(found(name)))]


@pytest.mark.parametrize("name", CHECKSUMS)
def test_a_checksum_breaks_each_policy_on_hashes(name: str) -> None:
    (use,) = found(name, primitive="hash").uses
    assert ("digest", "checksum") == (use.family.name, use.coordinates["choice"])
    assert Standing.BROKEN is use.family.standing_of(use.coordinates)
    assert any("no cryptographic hash" in one for one in use.beyond)
    for policy in policies.policies():
        told = line(algorithm(name), policy=policy)
        is_about = policies.policy(policy).is_about("digest")
        assert told.is_bad
        assert (Ruling.BREAKS if is_about else Ruling.CANNOT_SAY) is told.ruling, policy


@pytest.mark.parametrize("algorithm_", ["RSA", "SHA256withRSA", "DSA", "PBKDF2-HMAC-SHA256", "scrypt", "ECDSA P-256"])
@pytest.mark.parametrize("year", [1999, 2019, 2024, 2026])
def test_a_year_in_a_name_is_no_size(algorithm_: str, year: int) -> None:
    assert [f"? `{year}` in its name is not known here"] == words(found(f"{algorithm_} {year}"))


def test_a_size_that_could_be_a_year_counts_where_it_is_a_size() -> None:
    assert ["signature rsa-2024"] == words(found("RSA", primitive="signature", parameterSetIdentifier="2024"))
    assert ["password-hash pbkdf2-sha-256 iterations=2000"] == words(found("PBKDF2-HMAC-SHA256-2000"))
    assert ["signature rsa-2047"] == words(found("RSA-2047", primitive="signature"))


def test_a_number_of_a_curve_alone_is_its_size() -> None:
    assert ["signature ecdsa-p256", "key-exchange ecdh-p256"] == words(found("secp256r1", parameterSetIdentifier="256"))
    assert ["? its name says p192, and its parameter says 256 bits"] == words(
        found("P-192", parameterSetIdentifier="256")
    )
