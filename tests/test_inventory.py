"""Inventories: each asset of a CycloneDX document is a choice or has a reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tollbar.catalog.families import families
from tollbar.decide import price
from tollbar.decide.price.inventory import Inventory, parse
from tollbar.decide.price.mapping import Mapped, mapped
from tollbar.decide.price.names import is_name

OAEP = (
    "RSA-OAEP is not in Tollbar's family key-exchange, whose key transport is PKCS #1 v1.5;"
    " the family storage has rsa-oaep"
)
CIPHER_WITH_MAC = "a cipher with a MAC in one: Tollbar's families cipher and mac judge each alone"
HYBRID = "a hybrid that is not among Tollbar's choices, which have X25519MLKEM768"
NO_GROUP = "Tollbar's family tls has no key-exchange"
SAMPLES = sorted((Path(__file__).parent / "inventories").glob("*.json"))


def made(*components: object, version: str = "1.6", **more: object) -> Inventory:
    """Return the inventory of these components, parsed from its bytes."""
    said = {"bomFormat": "CycloneDX", "specVersion": version, "components": list(components), **more}
    return parse(json.dumps(said).encode(), Path("cbom.json"))


def algorithm(name: str, ref: str = "", oid: str = "", **properties: object) -> dict[str, Any]:
    """Return a component that is an algorithm."""
    crypto = {"assetType": "algorithm", "algorithmProperties": properties, "oid": oid}
    return {"type": "cryptographic-asset", "name": name, "bom-ref": ref, "cryptoProperties": crypto}


def asset(name: str, kind: str, ref: str = "", **properties: object) -> dict[str, Any]:
    """Return a component of another kind."""
    key = {"certificate": "certificate", "protocol": "protocol", "related-crypto-material": "relatedCryptoMaterial"}[
        kind
    ]
    crypto = {"assetType": kind, f"{key}Properties": properties}
    return {"type": "cryptographic-asset", "name": name, "bom-ref": ref, "cryptoProperties": crypto}


def words(what: Mapped) -> list[str]:
    """Return an asset's words as `tollbar ask` has them, or the reason for none."""
    return [
        " ".join([use.family.name, *(str(v) if n == "choice" else f"{n}={v}" for n, v in use.coordinates.items())])
        for use in what.uses
    ] or [f"? {what.reason}"]  # fmt: skip


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        (algorithm("AES-128-GCM"), ["cipher aes-128-gcm"]),
        (algorithm("AES/CBC/PKCS5Padding", parameterSetIdentifier="256"), ["cipher aes-256-cbc"]),
        (algorithm("AES", oid="2.16.840.1.101.3.4.1.46"), ["cipher aes-256-gcm"]),
        (algorithm("AES128", mode="ecb"), ["cipher aes-128-ecb"]),
        (algorithm("AES"), ["? the size of its key and its mode of operation are not given"]),
        (algorithm("DESede/CBC/PKCS5Padding"), ["cipher 3des-cbc"]),
        (algorithm("ChaCha20-Poly1305"), ["cipher chacha20-poly1305"]),
        (algorithm("SHA-512/256"), ["digest sha-512-256"]),
        (algorithm("SHA3-256"), ["digest sha3-256"]),
        (algorithm("md5", primitive="hash", parameterSetIdentifier="128"), ["digest md5"]),
        (algorithm("HmacSHA256"), ["mac hmac-sha-256"]),
        (algorithm("HS512"), ["mac hmac-sha-512"]),
        # Judged as the cipher alone it would not protect against tampering, as the MAC alone not against disclosure.
        *((algorithm(name, primitive="ae"), [f"? {CIPHER_WITH_MAC}"]) for name in (
            "AES-128-CBC-HMAC-SHA256", "AES-256-CBC-HMAC-SHA1", "A128CBC-HS256", "A256CBC-HS512",
            "AES128_CTR_HMAC_SHA256", "HmacSHA256 with AES/CTR", "DES-EDE3-CBC-HMAC-SHA1", "3DES-CBC-HMAC-SHA1",
            "AES-256-CTR-Poly1305", "cast5-hmac-sha1", "rc4-hmac-md5")),
        (algorithm("Poly1305-AES", primitive="mac"), ["? Poly1305-AES is not among Tollbar's choices"]),
        (algorithm("AES-256-GCM+ChaCha20-Poly1305"), [
            "? a combination of algorithms in an unknown form"]),
        (algorithm("A128CBC-HS256", algorithmFamily="AES", mode="cbc", oid="2.16.840.1.101.3.4.1.2"), [
            f"? {CIPHER_WITH_MAC}"]),
        (algorithm("PBEWithHmacSHA256AndAES_128"), ["? Tollbar has no family of key derivation"]),
        (algorithm("PBKDF2WithHmacSHA512"), ["password-hash pbkdf2-sha-512"]),
        (
            algorithm("SHA512withRSA", parameterSetIdentifier="512", oid="1.2.840.113549.1.1.13"),
            ["? the size of its key is not given"],
        ),
        (
            algorithm("RSASSA-PSS", primitive="signature", parameterSetIdentifier="2048"),
            ["signature rsa-2048 padding=pss"],
        ),
        # RSA key transport is judged with the padding of PKCS #1 v1.5.
        (algorithm("RSAES-PKCS1-v1_5", parameterSetIdentifier="2048"), ["key-exchange rsa-2048"]),
        (algorithm("RSA-OAEP", parameterSetIdentifier="2048"), [f"? {OAEP}"]),
        (algorithm("RSA-3072-OAEP", primitive="pke", padding="oaep"), [f"? {OAEP}"]),
        (algorithm("RSA-3072", primitive="pke", padding="oaep"), [f"? {OAEP}"]),
        (algorithm("RSA-3072", algorithmFamily="RSAES-OAEP", cryptoFunctions=["encrypt"]), [f"? {OAEP}"]),
        (algorithm("RSA-3072", padding="pss"), ["signature rsa-3072 padding=pss"]),
        (algorithm("RSAES-PKCS1-3072", padding="oaep"), ["? its name says pkcs1, and its padding says oaep"]),
        # Neither counts as key transport of PKCS #1 v1.5.
        *((algorithm(name, parameterSetIdentifier="3072", padding="oaep"), [
            f"? its name says {said}, and its padding says oaep"]) for name, said in (
            ("RSA-PSS-3072", "pss"), ("RSASSA-PSS", "pss"), ("SHA256withRSA", "pkcs1"))),
        (algorithm("RSA-3072", padding="oaep", oid="1.2.840.113549.1.1.10"), [
            "? its padding says oaep, and its oid says pss"]),
        (algorithm("RSA-2048", cryptoFunctions=["sign", "decrypt"]), ["signature rsa-2048", "key-exchange rsa-2048"]),
        (algorithm("RSA-KEM", primitive="kem", parameterSetIdentifier="3072"), [
            "? RSA-KEM is not among Tollbar's choices"]),
        (algorithm("RSA-2048", primitive="pke"), ["signature rsa-2048", "key-exchange rsa-2048"]),
        (algorithm("EC", curve="secp256r1"), ["signature ecdsa-p256", "key-exchange ecdh-p256"]),
        (algorithm("ECDSA", ellipticCurve="nist/P-384"), ["signature ecdsa-p384"]),
        (algorithm("ECDH", curve="curve25519", oid="1.3.132.1.12"), ["key-exchange x25519"]),
        (algorithm("Ed25519"), ["signature ed25519"]),
        (algorithm("ML-DSA", parameterSetIdentifier="65"), ["signature ml-dsa-65"]),
        (algorithm("id-alg-ml-kem-768", oid="2.16.840.1.101.3.4.4.2"), ["key-exchange ml-kem-768"]),
        *((algorithm(name), ["key-exchange x25519mlkem768"]) for name in ("X25519MLKEM768", "x25519_ml-kem-768")),
        # A hybrid is neither of its parts.
        *((algorithm(name), [f"? {HYBRID}"]) for name in (
            "SecP256r1MLKEM768", "SecP384r1MLKEM1024", "p521_mlkem1024", "x448_mlkem768", "mlkem768x25519-sha256",
            "id-MLKEM1024-ECDH-P384-SHA3-256", "id-MLKEM768-RSA2048-SHA3-256", "sntrup761x25519-sha512@openssh.com",
            "x25519_frodo640aes", "X-Wing", "X25519+SIKE", "x25519_sidhp503", "X25519-NewHope", "X25519-Saber",
            "X25519+P-256")),
        (algorithm("SecP384r1MLKEM1024", primitive="combiner", algorithmFamily="ML-KEM"), [f"? {HYBRID}"]),
        (algorithm("X25519Kyber768Draft00", primitive="kem"), [
            "? a hybrid with Kyber, the draft of ML-KEM, and not the same algorithm"]),
        (algorithm("Kyber768"), ["? kyber is the draft of a NIST standard, and not the same algorithm"]),
        *((algorithm(name), ["? two signatures in one: Tollbar's family signature judges each alone"]) for name in (
            "id-MLDSA65-ECDSA-P256-SHA512", "MLDSA44-RSA2048-PSS-SHA256", "p384_mldsa65", "ECDSA-P256+XMSS",
            "ECDSA-P256 with LMS", "ed25519-hss")),
        (algorithm("HashML-DSA-65-with-SHA512"), [
            "? a pre-hashed signature, another algorithm than the pure one that Tollbar measures"]),
        (algorithm("SLH-DSA-SHA2-128s"), ["signature slh-dsa-128s"]),
        (algorithm("SLH-DSA-SHAKE-128s"), ["? Tollbar's family signature has no slh-dsa-shake-128s"]),
        (algorithm("DH", parameterSetIdentifier="2048"), [
            "? its group is not given: a modulus of one size may be safe or made to be broken"]),
        (algorithm("Blowfish"), ["cipher blowfish"]),
        # The name "universal" contains `rsa` by accident.
        (algorithm("Universal hashing"), ["? neither its name nor its properties say which algorithm it is"]),
        (algorithm("SHA384", oid="2.16.840.1.101.3.4.2.9"), ["? its name says sha-384, and its oid says sha3-384"]),
        (algorithm("AES-128-GCM", parameterSetIdentifier="256"), ["? its name says 128, and its parameter says 256"]),
        (asset("TLS", "protocol", type="tls"), ["? its version is not given"]),
        (asset("SSH", "protocol", type="ssh", version="2.0"), ["? Tollbar does not measure ssh"]),
        (asset("iv", "related-crypto-material", type="nonce"), [
            "? data that an algorithm takes or makes, not a choice"]),
        (asset("x", "certificate"), ["? the algorithm of its public key is not in the inventory"]),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_an_asset_is_a_choice_or_has_a_reason(component: Mapping[str, Any], expected: list[str]) -> None:
    (found,) = mapped(made(component))
    assert expected == words(found)


@pytest.mark.parametrize(
    ("component", "settings", "beyond"),
    [
        (
            algorithm(
                "RSA-1024", primitive="pke", padding="oaep", cryptoFunctions=["sign", "verify", "encrypt", "decrypt"]
            ),
            {},
            OAEP,
        ),
        (
            algorithm("RSA-1024", padding="pss", cryptoFunctions=["encrypt"]),
            {"padding": "pss"},
            "it also claims to transport keys, which PSS cannot; the padding for that is not given",
        ),
    ],
    ids=["oaep", "pss"],
)
def test_a_key_that_signs_is_judged_as_a_signature_whatever_else_it_does(
    component: Mapping[str, Any], settings: Mapping[str, str], beyond: str
) -> None:
    (found,) = mapped(made(component))
    (use,) = found.uses
    assert ("signature", {"choice": "rsa-1024", **settings}) == (use.family.name, use.coordinates)
    assert (beyond,) == use.beyond


def test_references_are_followed() -> None:
    suites = [
        {"name": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "algorithms": ["ecdh", "rsa"]},
        {"name": "TLS_RSA_WITH_RC4_128_MD5"},
    ]
    found = mapped(
        made(
            algorithm("RSA-2048", "rsa"),
            algorithm("ECDH", "ecdh", curve="secp256r1"),
            asset("key", "related-crypto-material", "key", type="public-key", algorithmRef="rsa"),
            asset("site", "certificate", subjectPublicKeyRef="key"),
            asset("front", "protocol", type="tls", version="1.2", cipherSuites=suites),
            asset("loop", "related-crypto-material", "loop", type="key", algorithmRef="loop"),
        )
    )  # fmt: skip
    assert [
        ["signature rsa-2048", "key-exchange rsa-2048"],
        ["key-exchange ecdh-p256"],
        ["signature rsa-2048", "key-exchange rsa-2048"],
        ["signature rsa-2048"],
        ["tls tls-1.2 certificate=rsa-2048 key-exchange=ecdhe-p256 cipher=aes-256-gcm"],
        ["tls tls-1.2 key-exchange=rsa cipher=rc4"],
        ["? the algorithm of this key is not given"],
    ] == [words(one) for one in found]
    assert "does not measure RC4" in found[5].uses[0].beyond[0]


def test_a_reference_that_several_components_have_is_not_followed() -> None:
    reason = "`r`, which it refers to, stands for several components"
    bad = {**algorithm("x", "r"), "name": []}
    others = (algorithm("ECDSA", "r", curve="P-256"), {"name": "library", "bom-ref": "r"}, bad)
    for other in others:
        found = mapped(
            made(
                algorithm("RSA-2048", "r"),
                other,
                asset("key", "related-crypto-material", "key", type="public-key", algorithmRef="r"),
                asset("RSA-2048", "related-crypto-material", type="public-key", algorithmRef="r"),
                asset("site", "certificate", subjectPublicKeyRef="key"),
                asset("other site", "certificate", subjectPublicKeyRef="r"),
                suite("TLS_RSA_WITH_AES_128_GCM_SHA256", "r"),
            )
        )
        assert ["signature rsa-2048", "key-exchange rsa-2048"] == words(found[0])
        key, own, *sites, front = found[-5:]
        assert [f"? {reason}"] * 3 == [one for what in (key, *sites) for one in words(what)]
        assert [(reason,)] * 3 == [use.beyond for what in (own, front) for use in what.uses]
        assert {"choice": "tls-1.2", "key-exchange": "rsa", "cipher": "aes-128-gcm"} == front.uses[0].coordinates


@pytest.mark.parametrize("group", ["x25519", "secp256r1", "X25519MLKEM768"])
def test_a_suite_stands_once_for_each_group(group: str) -> None:
    """CycloneDX 1.7 lists the groups; with several signature schemes the one in use is unknown."""
    suite = {"name": "TLS_AES_128_GCM_SHA256", "tlsGroups": [group, "secp384r1"]}
    found = mapped(made(asset("front", "protocol", type="tls", version="TLSv1.3", cipherSuites=[suite]), version="1.7"))
    known = {"x25519": "x25519", "secp256r1": "ecdhe-p256", "X25519MLKEM768": "x25519mlkem768"}[group]
    assert {"choice": "tls-1.3", "key-exchange": known, "cipher": "aes-128-gcm"} == dict(found[0].uses[0].coordinates)
    assert 2 == len(found)


def suite(name: str, *algorithms: str, **more: object) -> dict[str, Any]:
    """Return a protocol of one cipher suite."""
    said = {"name": name, "algorithms": algorithms, **more}
    version = "1.3" if name.startswith("TLS_AES") else "1.2"
    return asset("front", "protocol", type="tls", version=version, cipherSuites=[said])


@pytest.mark.parametrize(
    ("group", "known"),
    [
        ("x25519", "x25519"),
        ("Curve25519", "x25519"),
        ("secp256r1", "ecdhe-p256"),
        ("secp256r1 (P-256)", "ecdhe-p256"),
        ("P-256", "ecdhe-p256"),
        ("X25519MLKEM768", "x25519mlkem768"),
        ("SecP256r1MLKEM768", "secp256r1mlkem768"),
        ("p256_mlkem768", "secp256r1mlkem768"),
        ("SecP384r1MLKEM1024", "secp384r1mlkem1024"),
        ("MLKEM1024", "mlkem1024"),
        ("ML-KEM-1024", "mlkem1024"),
        ("ML-KEM-512", None),
        ("secp384r1", None),
        ("ffdhe3072", None),
        ("X25519Kyber768Draft00", None),
        ("p256_kyber768", None),
        ("p384_mlkem768", None),
        ("mlkem768x25519-sha256", None),
        ("sntrup761x25519", None),
        ("secp256r1 (23)", "ecdhe-p256"),
        ("x25519 (0x001d)", "x25519"),
        ("NamedGroup.x25519", "x25519"),
        ("NamedGroup.X25519MLKEM768 (4588)", "x25519mlkem768"),
        ("0x0017", "ecdhe-p256"),
        ("0x001D", "x25519"),
        ("0x0201", "mlkem768"),
        ("0x0202", "mlkem1024"),
        ("0x11EB", "secp256r1mlkem768"),
        ("0x11EC", "x25519mlkem768"),
        ("0x11ED", "secp384r1mlkem1024"),
        ("0x6399", None),
        # Not a key exchange, so it cannot be a group.
        ("dhe", None),
    ],
)
def test_a_group_is_known_by_its_whole_name(group: str, known: str | None) -> None:
    """A hybrid is neither its half nor its draft; an unknown group is reported and never left out."""
    (found,) = mapped(made(suite("TLS_AES_128_GCM_SHA256", tlsGroups=[group])))
    (use,) = found.uses
    assert known == use.coordinates.get("key-exchange")
    said = "-".join(group.lower().split("_"))
    expected = f"{NO_GROUP} {said}" if is_name(said) else f"group {said} is not known here"
    assert (() if known else (expected,)) == use.beyond


@pytest.mark.parametrize(
    ("components", "known", "beyond"),
    [
        ([algorithm("ECDH", "a", curve="nist/P-256")], "ecdhe-p256", ()),
        ([algorithm("x25519", "a", curve="other/Curve25519")], "x25519", ()),
        ([algorithm("X25519MLKEM768", "a")], "x25519mlkem768", ()),
        ([algorithm("X25519Kyber768Draft00", "a")], None, (f"{NO_GROUP} x25519kyber768draft00",)),
        ([algorithm("ECDH", "a", curve="secg/secp384r1")], None, (f"{NO_GROUP} secp384r1",)),
        # A signature algorithm is no key exchange.
        ([algorithm("ECDSA", "a", curve="secp256r1"), algorithm("Ed25519", "b", curve="Curve25519")], None, ()),
        ([algorithm("AES-128-GCM", "a"), algorithm("SHA-256", "b")], None, ()),
        ([algorithm("X25519", "a"), algorithm("ECDH", "b", curve="P-256")], None, (
            "its algorithms say both x25519 and ecdhe-p256",)),
        ([algorithm("X25519", "a"), algorithm("ML-KEM-768", "b")], None, (
            "its algorithms say both x25519 and mlkem768",)),
    ],
)  # fmt: skip
def test_the_algorithms_of_a_suite_say_its_group(
    components: list[dict[str, Any]], known: str | None, beyond: tuple[str, ...]
) -> None:
    named = [one["bom-ref"] for one in components]
    found = mapped(made(*components, suite("TLS_AES_128_GCM_SHA256", *named)))
    (use,) = found[-1].uses
    assert (known, beyond) == (use.coordinates.get("key-exchange"), use.beyond)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", "dhe"),
        ("EDH-RSA-AES128-GCM-SHA256", "dhe"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "rsa"),
        ("TLS_DHE_PSK_WITH_AES_128_GCM_SHA256", "dhe-psk"),
        ("DHE-PSK-AES128-GCM-SHA256", "dhe-psk"),
        ("TLS_ECDHE_PSK_WITH_AES_128_GCM_SHA256", "ecdhe-psk"),
        ("TLS_RSA_PSK_WITH_AES_128_GCM_SHA256", "rsa-psk"),
        ("TLS_PSK_WITH_AES_128_GCM_SHA256", "psk"),
        ("PSK-AES128-GCM-SHA256", "psk"),
        ("TLS_SRP_SHA_WITH_AES_128_CBC_SHA", "srp"),
        ("TLS_KRB5_WITH_DES_CBC_MD5", "krb5"),
        ("TLS_ECCPWD_WITH_AES_128_GCM_SHA256", "eccpwd"),
        ("TLS_NULL_WITH_NULL_NULL", "null"),
        ("TLS_DH_anon_WITH_AES_128_GCM_SHA256", "anon"),
        ("ADH-AES128-GCM-SHA256", "anon"),
        ("AECDH-AES128-SHA", "anon"),
    ],
)
def test_a_suite_is_not_judged_without_what_both_sides_prove_themselves_by(name: str, known: str) -> None:
    """A shared key with DHE is not one of Tollbar's certificates, and an anonymous peer has none."""
    (found,) = mapped(made(suite(name)))
    (use,) = found.uses
    assert known == use.coordinates["key-exchange"]
    assert bool(use.beyond) is (known not in ("dhe", "rsa"))


@pytest.mark.parametrize(
    ("name", "known", "beyond"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "aes-128-cbc", None),
        ("ECDHE-RSA-AES128-SHA", "aes-128-cbc", None),
        ("TLS_ECDHE_RSA_AES_128_CBC_SHA1", "aes-128-cbc", None),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "aes-256-cbc", "AES-256-CBC: this size is not measured"),
        *(
            (name, f"aes-{bits}-cbc with {mac}", f"AES-{bits}-CBC with {mac}: its CBC has HMAC-SHA-1")
            for name, bits, mac in (
                ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", 128, "hmac-sha256"),
                ("ECDHE-RSA-AES128-SHA256", 128, "hmac-sha256"),
                ("ECDHE-RSA-AES256-SHA384", 256, "hmac-sha384"),
                ("ECDHE_RSA_AES_128_CBC", 128, "an unknown MAC"),
            )
        ),
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "aes-128-gcm", None),
    ],
)
def test_the_hash_of_a_suite_is_part_of_its_cbc(name: str, known: str | None, beyond: str | None) -> None:
    """The measured cell has HMAC-SHA-1, which policies may refuse while they accept HMAC-SHA-256."""
    (found,) = mapped(made(suite(name)))
    (use,) = found.uses
    assert known == use.coordinates.get("cipher")
    assert ((f"Tollbar's family tls does not measure {beyond}",) if beyond else ()) == use.beyond


@pytest.mark.parametrize(
    ("scheme", "known", "beyond"),
    [
        ("ecdsa_secp256r1_sha256", "ecdsa-p256", ()),
        ("mldsa65", "ml-dsa-65", ()),
        ("mldsa44_ecdsa_secp256r1_sha256", None, ("Tollbar's family tls has no certificate with mldsa",)),
    ],
)
def test_a_composite_is_not_the_half_of_it_that_is_known(
    scheme: str, known: str | None, beyond: tuple[str, ...]
) -> None:
    (found,) = mapped(made(suite("TLS_AES_128_GCM_SHA256", tlsSignatureSchemes=[scheme])))
    (use,) = found.uses
    assert (known, beyond) == (use.coordinates.get("certificate"), use.beyond)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_asset_of_a_public_inventory_is_mapped_or_says_why_not(path: Path) -> None:
    """The goal is 95 of 100; the count of assets with a reason is limited, over all three inventories together."""
    read = price.read(path)
    found = mapped(read)
    assert read.assets
    assert all(one.uses or one.reason for one in found)
    for one in found:
        for use in one.uses:
            assert use.unmeasured or use.coordinates["choice"] in families()[use.family.name].choices


def test_most_assets_of_public_inventories_are_known() -> None:
    """Cipher suites count once for each group."""
    found = [one for path in SAMPLES for one in mapped(price.read(path))]
    assert (22, 16) == (len(found), sum(bool(one.uses) for one in found))
