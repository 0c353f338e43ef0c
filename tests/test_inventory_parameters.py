"""Parameters in names: sizes, tags, costs and lengths as libraries write them, and MACs of ciphers and hashes."""

from __future__ import annotations

from typing import Any

import pytest

from test_inventory import CIPHER_WITH_MAC, algorithm, asset, made, words
from test_inventory_names import found
from test_price_weak import judged, line
from tollbar.catalog.policies import Ruling
from tollbar.decide.price.mapping import mapped

ARGON2 = "password-hash argon2id memory=67108864 passes=3 lanes=4"


@pytest.mark.parametrize(
    "name", ["AES-256/128-GCM", "AES-256-128-GCM", "AES-256, 128 (GCM)", "AES/GCM/256/128", "AES-128/192/256-GCM"]
)
@pytest.mark.parametrize("properties", [{}, {"primitive": "ae"}])
def test_a_second_size_of_a_key_is_not_the_length_of_a_tag(name: str, properties: dict[str, Any]) -> None:
    one = found(name, **properties)
    assert () == one.uses
    assert "in its name is not known here" in str(one.reason)


@pytest.mark.parametrize("name", ["AES-256-GCM-128", "AES-256-GCM-128-96", "AES-256-GCM-128-128", "aes256gcm128"])
def test_a_number_after_the_mode_is_the_length_of_the_tag(name: str) -> None:
    (use,) = found(name).uses
    assert ("aes-256-gcm", ()) == (use.coordinates["choice"], use.beyond)


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("PBKDF2-SHA256 length=256", "password-hash pbkdf2-sha-256"),
        ("PBKDF2-SHA256 (iterations: 600000, length: 256)", "password-hash pbkdf2-sha-256 iterations=600000"),
        ("PBKDF2-SHA256 iterationCount=600000", "password-hash pbkdf2-sha-256 iterations=600000"),
        ("PBKDF2-SHA256 iteration_count: 600000", "password-hash pbkdf2-sha-256 iterations=600000"),
        ("PBKDF2 with SHA-256, iteration count 600,000", "password-hash pbkdf2-sha-256 iterations=600000"),
        ("PBKDF2-SHA512 iterations=210000 keyLen=64 saltLen=16", "password-hash pbkdf2-sha-512 iterations=210000"),
        ("AES-GCM length=256", "cipher aes-256-gcm"),
        ("AES-GCM (length: 256, tagLength: 128)", "cipher aes-256-gcm"),
        ("AES-GCM keySize=128, ivLength=96", "cipher aes-128-gcm"),
        ("HMAC-SHA-256 length=512", "mac hmac-sha-256"),
        ("RSA-PSS modulusLength=3072", "signature rsa-3072 padding=pss"),
        (
            "RSASSA-PKCS1-v1_5 modulusLength: 2048, hash: SHA-256",
            "signature rsa-2048 digest=sha-256 padding=pkcs1",
        ),
        (
            "RSASSA-PKCS1-v1_5 modulusLength: 2048, publicExponent: 65537, hash: SHA-256",
            "signature rsa-2048 digest=sha-256 padding=pkcs1",
        ),
        ("RSA-PSS {modulusLength: 4096, saltLength: 32}", "signature rsa-4096 padding=pss"),
        ("bcrypt work_factor=12", "password-hash bcrypt cost=12"),
        ("bcrypt workFactor: 12", "password-hash bcrypt cost=12"),
        ("bcrypt log_rounds=12", "password-hash bcrypt cost=12"),
        ("scrypt cost=16384 blockSize=8 parallelization=1", "password-hash scrypt n=16384 r=8 p=1"),
        ("Argon2id memoryCost=65536 timeCost=3 parallelism=4", ARGON2),
        ("Argon2id memory_kib: 65536, iterations: 3, lanes: 4", ARGON2),
        ("X25519MLKEM768 (0x11EC)", "key-exchange x25519mlkem768"),
        ("0x11EC", "key-exchange x25519mlkem768"),
        ("x25519 (29)", "key-exchange x25519"),
        ("ecdsa_secp256r1_sha256 (0x0403)", "signature ecdsa-p256 digest=sha-256"),
        # Each has a wrong number.
        ("X25519MLKEM768 (0x11EB)", "? `0x11EB` in its name is not known here"),
        ("bcrypt colour=12", "? `colour=12` in its name is not known here"),
        ("AES-256-GCM tagLength=96", "cipher aes-256-gcm"),
        ("AES-256-GCM length=128", "? its name says both 128 and 256"),
    ],
)  # fmt: skip
def test_a_parameter_with_its_name_is_read(name: str, choice: str) -> None:
    assert choice == " + ".join(words(found(name)))


def test_a_short_tag_with_its_name_is_beyond_what_is_judged() -> None:
    (use,) = found("AES-256-GCM tagLength=96").uses
    assert ("its tag has 96 bits; the judged one has 128",) == use.beyond


@pytest.mark.parametrize("name", ["HMAC_256", "HMAC-512", "hmac-256"])
def test_a_number_of_hmac_without_a_hash_is_no_sentence_with_a_hole(name: str) -> None:
    assert ["? its hash is not given"] == words(found(name))


@pytest.mark.parametrize(("name", "digest"), [("HMAC256", "256"), ("Algorithm.HMAC512", "512")])
def test_a_constant_of_java_jwt_is_its_hash(name: str, digest: str) -> None:
    assert [f"mac hmac-sha-{digest}"] == words(found(name))


@pytest.mark.parametrize("name", ["MACTripleDES", "TripleDES MAC", "3DES-MAC", "MAC (DESede/CBC)"])
@pytest.mark.parametrize("properties", [{}, {"primitive": "mac"}])
def test_a_mac_of_a_broken_cipher_is_no_better_than_it(name: str, properties: dict[str, Any]) -> None:
    told = line(algorithm(name, **properties))
    assert "MAC made of" in str(told.reason)
    assert Ruling.BREAKS is told.ruling


@pytest.mark.parametrize("name", ["AES-128-CTR MAC", "SHA-256 MAC", "MAC with AES-256-GCM", "Blowfish MAC"])
def test_a_mac_is_not_the_cipher_or_the_hash_that_it_is_made_of(name: str) -> None:
    (told,) = mapped(made(algorithm(name)))
    assert "a MAC made of" in str(told.reason)


@pytest.mark.parametrize("name", ["HMAC-SHA-256 MAC", "MAC: Poly1305", "hmac-sha2-256-etm@openssh.com"])
def test_a_mac_is_known_by_its_own_name(name: str) -> None:
    assert 1 == len(found(name).uses)


@pytest.mark.parametrize(
    ("version", "suite"),
    [
        ("1.0", "TLS_RSA_WITH_RC4_128_SHA"),
        ("1.2", "TLS_RSA_WITH_RC4_128_MD5"),
        ("1.2", "TLS_RSA_WITH_DES_CBC_SHA"),
        ("1.0", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"),
        ("DTLS 1.0", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"),
    ],
)
def test_what_is_broken_in_tls_is_broken_in_dtls(version: str, suite: str) -> None:
    told = judged(asset("udp", "protocol", type="dtls", version=version, cipherSuites=[{"name": suite}]))
    assert [Ruling.BREAKS] == [one.ruling for one in told.lines]


@pytest.mark.parametrize("version", ["1.2", "1.3", ""])
def test_dtls_without_a_broken_part_is_not_judged(version: str) -> None:
    told = judged(asset("udp", "protocol", type="dtls", version=version))
    assert [Ruling.CANNOT_SAY] == [one.ruling for one in told.lines]
    assert "Tollbar does not measure dtls" in str(told.lines[0].reason)


@pytest.mark.parametrize(("given", "said"), [("kdf", "kdf"), ("hmac", "mac")])
def test_a_property_of_cdxgen_tells_which_call_a_hash_is_a_part_of(given: str, said: str) -> None:
    properties = [{"name": "SrcFile", "value": "main.mjs"}, {"name": "cdx:crypto:primitive", "value": given}]
    crypto = {"assetType": "algorithm", "oid": "2.16.840.1.101.3.4.2.3"}
    component = {"type": "cryptographic-asset", "name": "sha-512", "cryptoProperties": crypto, "properties": properties}
    assert [f"? its primitive says {said}, and its name says sha-512"] == words(mapped(made(component))[0])


@pytest.mark.parametrize("properties", [None, [], "x", [3], [{"name": "cdx:crypto:primitive"}], [{"value": "kdf"}]])
def test_properties_of_another_form_say_nothing(properties: object) -> None:
    crypto = {"assetType": "algorithm"}
    component = {"type": "cryptographic-asset", "name": "sha-512", "cryptoProperties": crypto, "properties": properties}
    assert ["digest sha-512"] == words(mapped(made(component))[0])


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        # SNMP, in RFC 3414, RFC 3826 and RFC 7860.
        ("usmHMACMD5AuthProtocol", "mac hmac-md5"),
        ("usmHMACSHAAuthProtocol", "mac hmac-sha-1"),
        ("usmHMAC192SHA256AuthProtocol", "mac hmac-sha-256"),
        ("usmDESPrivProtocol", "? its mode of operation is not given"),
        ("usmAesCfb128Protocol", "cipher aes-128-cfb"),
        # Functions of MySQL.
        ("DES_ENCRYPT()", "? its mode of operation is not given"),
        ("AES_ENCRYPT()", "? the size of its key and its mode of operation are not given"),
        # SSH, in RFC 6187 and RFC 8732.
        ("x509v3-ssh-dss", "signature dsa-1024 digest=sha-1"),
        ("x509v3-ecdsa-sha2-nistp256", "signature ecdsa-p256 digest=sha-256"),
        ("gss-group1-sha1-toWM5Slw5Ew8Mqkay+al2g==", "key-exchange modp-1024"),
        ("gss-group14-sha256-toWM5Slw5Ew8Mqkay+al2g==", "key-exchange modp-2048"),
        ("gss-nistp256-sha256-toWM5Slw5Ew8Mqkay+al2g==", "key-exchange ecdh-p256"),
        ("gss-curve25519-sha256-toWM5Slw5Ew8Mqkay+al2g==", "key-exchange x25519"),
        ("TKIP", "cipher rc4"),
        # Groups of Node, which have the numbers of IKE.
        ("crypto.getDiffieHellman('modp15')", "key-exchange modp-3072"),
        ("modp2", "key-exchange modp-1024"),
        ("crypto.createECDH('prime256v1')", "key-exchange ecdh-p256"),
    ],
)
def test_a_name_of_a_protocol_is_its_choice(name: str, choice: str) -> None:
    assert choice == " + ".join(words(found(name)))


@pytest.mark.parametrize(
    "version",
    ["TLSv1.2, TLSv1.3 (no TLSv1.0)", "TLSv1.2, TLSv1.3, !TLSv1.0", "!SSLv2,!SSLv3,TLSv1.2,TLSv1.3",
     "TLSv1.2, TLSv1.3 without TLSv1.1", "1.2, 1.3; 1.0 disabled", "TLSv1.2, TLSv1.3, noTLSv1.0"],
)  # fmt: skip
def test_a_version_that_is_left_out_is_not_offered(version: str) -> None:
    told = judged(asset("server", "protocol", type="tls", version=version))
    assert [Ruling.CANNOT_SAY] == [one.ruling for one in told.lines]


@pytest.mark.parametrize(
    ("name", "properties", "choice"),
    [
        ("SHA-256 length: 256", {}, "digest sha-256"),
        ("SHA-256 digest length: 256", {}, "digest sha-256"),
        ("RSA PSS SHA-256 (key length: 3072 bits)", {}, "signature rsa-3072 digest=sha-256 padding=pss"),
        ("RSA PSS SHA-256 bit length: 3072", {}, "signature rsa-3072 digest=sha-256 padding=pss"),
        ("ECDSA P-256 SHA-256 keysize: 256", {}, "signature ecdsa-p256 digest=sha-256"),
        ("ECDH P-384 key length: 384", {}, "key-exchange ecdh-p384"),
        ("Ed25519 bits: 256", {}, "signature ed25519"),
        ("X25519 key length: 256", {}, "key-exchange x25519"),
        ("SHA3-512 length: 512", {}, "digest sha3-512"),
        ("AES-256-GCM tag length: 128", {}, "cipher aes-256-gcm"),
        ("AES-256-GCM iv length: 96", {}, "cipher aes-256-gcm"),
        ("AES-256-GCM block length: 128", {}, "cipher aes-256-gcm"),
        ("ECDH", {"ellipticCurve": "oakley/256-bit Random ECP Group"}, "key-exchange ecdh-p256"),
        ("AES-256-CBC with MAC", {}, f"? {CIPHER_WITH_MAC}"),
    ],
)  # fmt: skip
def test_a_length_of_words_is_the_algorithm_s(name: str, properties: dict[str, Any], choice: str) -> None:
    assert choice == " + ".join(words(found(name, **properties)))


@pytest.mark.parametrize(
    "name",
    ["ChaCha20-Poly1305 tagLength=32", "HMAC-SHA-256 tag length: 128", "AES-256-GCM nonce=0", "AES-256-GCM ivlen: 1",
     "Argon2id v=1 m=65536 t=3 p=4", "ChaCha20-Poly1305 ChaCha8", "SHA-256 present"],
)  # fmt: skip
def test_a_value_that_no_choice_has_meets_no_policy(name: str) -> None:
    assert Ruling.MEETS is not line(algorithm(name)).ruling


def test_the_numbers_of_an_identifier_are_no_sizes() -> None:
    (told,) = mapped(made(algorithm("SHA-384", oid="1.2.410.200004.1.15")))
    assert "bits" not in str(told.reason)


def test_a_key_of_255_bits_is_of_curve25519() -> None:
    assert Ruling.CANNOT_SAY is line(algorithm("ECDH 255")).ruling
