"""Names from CycloneDX's registry of algorithms: one of each pattern is a choice, or refused with a true reason."""

from __future__ import annotations

import pytest

from test_inventory import algorithm, made, words
from tollbar.decide.price.mapping import mapped

# A name, its primitive, and the choice.
CHOICES = """
RSA-PKCS1-1.5-SHA-256-3072 | signature | signature rsa-3072 digest=sha-256 padding=pkcs1
RSA-PSS-SHA-384-MGF1-SHA-384-48-4096 | signature | signature rsa-4096 digest=sha-384 padding=pss
RSA-PSS-SHA-256-32-2048 | signature | signature rsa-2048 digest=sha-256 padding=pss
RSA-PKCS1-1.5-2048 | pke | signature rsa-2048 + key-exchange rsa-2048
Ed25519 | signature | signature ed25519
Ed448 | signature | signature ed448
ECDSA-secp256r1-SHA-256 | signature | signature ecdsa-p256 digest=sha-256
ECDSA-P-384-SHA-384 | signature | signature ecdsa-p384 digest=sha-384
DSA-2048-SHA-256 | signature | signature dsa-2048 digest=sha-256
ECDH-secp256r1 | key-agree | key-exchange ecdh-p256
ECDHE-Curve25519 | key-agree | key-exchange x25519
x25519 | key-agree | key-exchange x25519
x448 | key-agree | key-exchange x448
FFDHE-ffdhe3072 | key-agree | key-exchange ffdhe3072
FFDH-ffdhe2048 | key-agree | key-exchange ffdhe2048
SHA-1 | hash | digest sha-1
SHA-224 | hash | digest sha-224
SHA-256 | hash | digest sha-256
SHA-384 | hash | digest sha-384
SHA-512 | hash | digest sha-512
SHA-512/256 | hash | digest sha-512-256
SHA3-256 | hash | digest sha3-256
SHA3-512 | hash | digest sha3-512
KMAC128 | mac | mac kmac-128
KMAC256 | mac | mac kmac-256
AES-256-CBC-PKCS7-16 | block-cipher | cipher aes-256-cbc
AES-128-ECB | block-cipher | cipher aes-128-ecb
AES-128-CFB8 | block-cipher | cipher aes-128-cfb
AES-192-CTR | block-cipher | cipher aes-192-ctr
AES-256-GCM-128-96 | ae | cipher aes-256-gcm
HMAC-SHA-256 | mac | mac hmac-sha-256
HMAC-SHA-512-512 | mac | mac hmac-sha-512
HMAC-SHA-256-128 | mac | mac hmac-sha-256
Poly1305 | mac | mac poly1305
ChaCha20-Poly1305 | ae | cipher chacha20-poly1305
RC4-128 | stream-cipher | cipher rc4
3DES-168-CBC | block-cipher | cipher 3des-cbc
3DES-112-ECB | block-cipher | cipher 3des-ecb
DES-56-CBC | block-cipher | cipher des-cbc
IDEA-CBC | block-cipher | cipher idea
RC2-128-CBC | block-cipher | cipher rc2-cbc
RC2-40-CBC | block-cipher | cipher rc2-40
ML-DSA-44 | signature | signature ml-dsa-44
ML-DSA-87 | signature | signature ml-dsa-87
SLH-DSA-SHA2-128s | signature | signature slh-dsa-128s
ML-KEM-512 | kem | key-exchange ml-kem-512
ML-KEM-768 | kem | key-exchange ml-kem-768
ML-KEM-1024 | kem | key-exchange ml-kem-1024
GOST28147-CFB | block-cipher | cipher gost28147
ARIA-256-CBC | block-cipher | cipher aria-256-cbc
CAMELLIA-256-CBC | block-cipher | cipher camellia-256-cbc
Blowfish-128-CBC-PKCS5 | block-cipher | cipher blowfish
Skipjack-CBC | block-cipher | cipher skipjack
BLAKE2b-512 | hash | digest blake2b-512
BLAKE2s-256 | hash | digest blake2s-256
BLAKE3-256 | hash | digest blake3
BLAKE3 | hash | digest blake3
MD2 | hash | digest md2
MD4 | hash | digest md4
MD5 | hash | digest md5
RIPEMD-160 | hash | digest ripemd-160
CAST5-128-CBC | block-cipher | cipher cast5
RC5-128-CBC | block-cipher | cipher rc5
Argon2id-19456-2-1 | kdf | password-hash argon2id memory=19922944 passes=2 lanes=1
Argon2id-65536-3-4-16-0-0-32 | kdf | password-hash argon2id memory=67108864 passes=3 lanes=4
PBKDF2-SHA-256-600000-32 | kdf | password-hash pbkdf2-sha-256 iterations=600000
PBKDF2-HMAC-SHA-512-220000 | kdf | password-hash pbkdf2-sha-512 iterations=220000
bcrypt-12 | kdf | password-hash bcrypt cost=12
bcrypt | kdf | password-hash bcrypt
scrypt-131072-8-1-32 | kdf | password-hash scrypt n=131072 r=8 p=1
scrypt | kdf | password-hash scrypt
A5/1 | stream-cipher | cipher a5-1
A5/2 | stream-cipher | cipher a5-2
CMEA | block-cipher | cipher cmea
"""
# A name and its primitive, for names without a choice or without a necessary fact.
REFUSED = """
RSA-PKCS1-1.5 | signature
RSA-X9.31-SHA-256-2048 | signature
RSA-OAEP-SHA-256-MGF1-SHA-1-3072 | pke
RSA-OAEP | pke
Ed25519ph | signature
Ed25519ctx | signature
Ed448ph | signature
ECDSA-brainpoolP384r1-SHA-384 | signature
ECDSA | signature
ECIES-secp256r1-HKDF-SHA-256-AES-128-GCM-HMAC-SHA-256 | pke
HPKE-mode_base-DHKEM-X25519-HKDF-SHA-256-AES-128-GCM | pke
FFMQV-ffdhe2048 | key-agree
ECMQV-secp384r1 | key-agree
ElGamal-2048 | pke
EC-ElGamal-secp256r1 | pke
ECDHE-secp521r1 | key-agree
FFDH | key-agree
SRP-3-SHA-1-2048 | key-agree
SRP-6-SHA-256-ffdhe3072 | key-agree
J-PAKE-ffdhe3072-HKDF-HMAC-SHA-256 | key-agree
J-PAKE-secp256r1-HKDF-HMAC-SHA-256 | key-agree
SHA-512/224 | hash
SHA3-224 | hash
SHA3-384 | hash
SHAKE128 | xof
SHAKE256 | xof
cSHAKE256 | xof
KMACXOF128 | mac
TupleHash128 | hash
TupleHashXOF256 | xof
ParallelHash256 | hash
ParallelHashXOF128 | xof
AES-256-XTS | block-cipher
AES-128-CCM-64-96 | ae
AES-256-GCM-SIV-128-96 | ae
AES-128-OCB-128 | ae
AES-128-CTR-HMAC-SHA1-96 | ae
AES-256-SIV | ae
AES-256-KW | key-wrap
AES-256-Wrap-PKCS7 | key-wrap
AES-256-GMAC | mac
AES-128-CMAC | mac
AES-CMAC-PRF-128 | mac
AES-128-XCBC_MAC_96 | mac
HKDF-SHA-256 | kdf
CMAC-AES-128-64 | mac
UMAC-96 | mac
ChaCha20-AES | stream-cipher
ChaCha20 | stream-cipher
XChaCha20-Poly1305 | ae
Salsa20 | stream-cipher
Salsa20-Poly1305 | ae
HashML-DSA-65-SHA-512 | signature
SLH-DSA-SHAKE-256f | signature
HashSLH-DSA-SHA2-128s-SHA-256 | signature
XMSS-SHA2_10_256 | signature
XMSSMT-SHA2_20/2_256 | signature
WOTSP-SHA2_256 | signature
LMS_SHA256_M32_H10 | signature
LMOTS_SHA256_N32_W8 | signature
IKE_PRF_DERIVE-SHA-256 | kdf
IKE1_Extended_DERIVE-SHA-1 | kdf
IKE2_PRF_PLUS_DERIVE-SHA-256 | kdf
ANSI-KDF-X9.42-SHA-256 | kdf
ANSI-KDF-X9.63-SHA-256 | kdf
SSH-KDF-SHA-256 | kdf
TLS1-PRF-RFC7627 | kdf
TLS12-PRF-RFC7627-SHA-384 | kdf
TLS13-PRF-SHA-256 | kdf
GOSTR3410 | signature
GOSTR3411 | hash
GOSTR3411_HMAC | mac
GOST28147_MAC | mac
SM2-256 | signature
SM2-ENC-256 | pke
SM2-KEYAGREEMENT-256 | key-agree
SM3 | hash
SM4-CBC-PKCS7-16 | block-cipher
SM4-GCM-128-96 | ae
SM9-SIGNATURE | signature
SM9-KEX | key-agree
SM9-KEM | kem
SM9-ENC | pke
SEED-128-CBC-PKCS7 | block-cipher
SEED-128-CBC-HMAC-SHA-256 | ae
SEED-128-GCM | ae
ARIA-128-GCM | ae
CAMELLIA-128-CCM | ae
Twofish-256-CBC | block-cipher
SP800_108_CounterKDF-HMAC-SHA-256-256 | kdf
SP800_56C_OneStep-SHA-256-32 | kdf
SP800_56C_TwoStep_FeedbackKDF-HMAC-SHA-256-32 | kdf
BLAKE2b-256 | hash
BLAKE2b-512-HMAC | mac
BLAKE2s-256-HMAC | mac
X3DH-SHA-512 | key-agree
BLS12-381 | signature
BLS-BN254 | signature
OPAQUE-3DH-P-256-SHA-256-scrypt-HKDF-HMAC-SHA-256 | key-agree
MILENAGE-MAC | mac
MILENAGE-KDF | kdf
SPAKE2-P-256-SHA-256-HKDF-HMAC-SHA-256 | key-agree
SPAKE2+-P-256-SHA-256-HKDF-HMAC | key-agree
TUAK-MAC | mac
TUAK-KDF | kdf
128-EEA3 | stream-cipher
128-EIA3 | mac
128-EEA1 | stream-cipher
128-EIA1 | mac
3GPP-XOR-MAC | mac
3GPP-XOR-KDF | kdf
RIPEMD-320 | hash
Whirlpool | hash
Serpent-256-CBC | block-cipher
CAST6-256-CBC | block-cipher
RC6-128-CBC | block-cipher
HC-128 | stream-cipher
HC-256 | stream-cipher
RABBIT | stream-cipher
Ascon-AEAD128 | ae
Ascon-Hash256 | hash
Ascon-XOF128 | xof
Ascon-CXOF128 | xof
SipHash-2-4 | mac
Argon2i-65536-3-4 | kdf
Argon2d | kdf
PBKDF1-SHA-1-1000-20 | kdf
PBKDF2 | kdf
PBES1-DES-CBC-PBKDF1-8-1000 | other
PBES2-AES-256-CBC-PBKDF2-32-600000 | other
PBMAC1-HMAC-SHA-256-600000-32 | mac
SHA-256-yescrypt-12-32-1-0 | kdf
Fortuna-AES-SHA-256 | drbg
Yarrow-AES-SHA-256 | drbg
CTR_DRBG-AES-256 | drbg
Hash_DRBG-SHA-256 | drbg
HMAC_DRBG-SHA-256 | drbg
"""


def rows(table: str) -> list[list[str]]:
    return [line.split(" | ") for line in table.strip().splitlines()]


@pytest.mark.parametrize(("name", "primitive", "choice"), rows(CHOICES))
def test_a_registered_name_is_its_choice(name: str, primitive: str, choice: str) -> None:
    (found,) = mapped(made(algorithm(name, primitive=primitive)))
    assert choice == " + ".join(words(found))


@pytest.mark.parametrize(("name", "primitive"), rows(REFUSED))
def test_a_registered_name_without_a_choice_is_refused_by_its_own_name(name: str, primitive: str) -> None:
    (found,) = mapped(made(algorithm(name, primitive=primitive)))
    assert () == found.uses
    reason = str(found.reason)
    assert not any(words in reason for words in ("neither its name", "is not known here", "in addition"))


@pytest.mark.parametrize("name", [row[0] for row in rows(CHOICES)])
def test_a_registered_name_with_another_word_is_refused(name: str) -> None:
    (found,) = mapped(made(algorithm(f"{name}-Quux")))
    assert () == found.uses
    assert "`Quux` in its name is not known here" == found.reason
