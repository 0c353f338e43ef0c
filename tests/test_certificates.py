"""Certificates and parameters of a run, and the clients' expectations of them."""

from __future__ import annotations

import random
import ssl
from pathlib import Path

import pytest

from tollbar.lab.tls import Certificates, certificates
from tollbar.lab.tls import settings as tls


@pytest.mark.parametrize("kind", [kind for kind in certificates.KINDS if kind != "rsa-4096"])
def test_a_leaf_is_signed_by_an_authority_of_its_algorithm(tmp_path: Path, kind: str) -> None:
    from cryptography import x509

    made = Certificates(tmp_path / "certificates")
    leaf = made.server(kind)
    assert leaf is made.server(kind)
    certificate = x509.load_pem_x509_certificate(leaf.chain.read_bytes())
    authority = x509.load_pem_x509_certificate(leaf.authority.read_bytes())
    certificate.verify_directly_issued_by(authority)
    assert type(certificate.public_key()) is type(authority.public_key())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ["localhost"] == names.get_values_for_type(x509.DNSName)
    assert ["127.0.0.1"] == [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    assert 0o600 == leaf.key.stat().st_mode & 0o777


@pytest.mark.parametrize("kind", [kind for kind in tls.CLIENT_CERTIFICATES if kind != "none"])
def test_an_authority_has_revoked_one_like_the_clients(tmp_path: Path, kind: str) -> None:
    from cryptography import x509

    made = Certificates(tmp_path / "certificates")
    revocations = made.revocations(kind)
    assert revocations is made.revocations(kind)
    listed = x509.load_pem_x509_crl(revocations.pem.encode())
    client, revoked = (
        x509.load_pem_x509_certificate(leaf.chain.read_bytes()) for leaf in (made.client(kind), revocations.revoked)
    )
    authority = x509.load_pem_x509_certificate(made.client(kind).authority.read_bytes())
    assert listed.is_signature_valid(authority.public_key())  # type: ignore[arg-type]
    assert listed.get_revoked_certificate_by_serial_number(revoked.serial_number)
    assert not listed.get_revoked_certificate_by_serial_number(client.serial_number)
    assert 0o600 == revocations.revoked.key.stat().st_mode & 0o777


def _fractions(bits: int) -> tuple[int, int]:
    """Return pi and e, times two to this power."""
    one = 1 << (bits + 64)

    def arctangent_of_one_over(x: int) -> int:
        term = total = one // x
        n, sign = 3, -1
        while term:
            term //= x * x
            total += sign * (term // n)
            n, sign = n + 2, -sign
        return total

    pi = 4 * (4 * arctangent_of_one_over(5) - arctangent_of_one_over(239))
    e, term, n = one, one, 1
    while term:
        term //= n
        e, n = e + term, n + 1
    return pi >> 64, e >> 64


# Offsets that the documents add to the digits of the constant: RFC 2409 6.2, RFC 3526 3 to 5, RFC 7919 A.1 and A.2.
GROUPS = {
    "modp-1024": (1024, "pi", 129093),
    "modp-2048": (2048, "pi", 124476),
    "modp-3072": (3072, "pi", 1690314),
    "modp-4096": (4096, "pi", 240904),
    "ffdhe2048": (2048, "e", 560316),
    "ffdhe3072": (3072, "e", 2625351),
}


def _integers(pem: str) -> list[int]:
    """Return the numbers of a PEM file that holds a flat sequence of them."""
    der = ssl.PEM_cert_to_DER_cert(
        "-----BEGIN CERTIFICATE-----\n" + "\n".join(pem.split("\n")[1:-2]) + "\n-----END CERTIFICATE-----\n"
    )

    def header(at: int) -> tuple[int, int]:
        size = der[at + 1]
        if size < 0x80:
            return at + 2, size
        return at + 2 + (size & 0x7F), int.from_bytes(der[at + 2 : at + 2 + (size & 0x7F)], "big")

    position, _ = header(0)
    numbers = []
    while position < len(der):
        start, size = header(position)
        numbers.append(int.from_bytes(der[start : start + size], "big"))
        position = start + size
    return numbers


def _is_prime(number: int) -> bool:
    """Return whether the number passes Miller and Rabin's test to random bases."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(4):
        x = pow(random.SystemRandom().randrange(2, number - 1), odd, number)
        if x in (1, number - 1):
            continue
        if not any((x := x * x % number) == number - 1 for _ in range(twos - 1)):
            return False
    return True


@pytest.mark.share(3)
@pytest.mark.parametrize("name", GROUPS)
def test_a_group_is_that_of_its_document(name: str) -> None:
    """The prime has the digits that the document derives, and is a safe prime."""
    bits, constant, addend = GROUPS[name]
    digits = _fractions(bits - 130)[constant == "e"]
    prime = 2**bits - 2 ** (bits - 64) - 1 + 2**64 * (digits + addend)
    assert [prime, 2] == _integers(certificates.dh_parameters(name))
    assert _is_prime(prime)
    assert _is_prime((prime - 1) // 2)


def test_parameters_like_those_of_dsa_have_a_short_exponent() -> None:
    """The parameters name the order of their subgroup, which shortens a server's exponents."""
    prime, generator, order = _integers(certificates.dh_parameters("dsa-2048"))
    assert (2048, 224) == (prime.bit_length(), order.bit_length())
    assert _is_prime(prime)
    assert _is_prime(order)
    assert (0, 1) == ((prime - 1) % order, pow(generator, order, prime))
    assert {*GROUPS, "dsa-2048"} == set(certificates.dh_parameter_names())


def test_clients_come_in_the_shares_that_the_cell_names(tmp_path: Path) -> None:
    made = Certificates(tmp_path / "certificates")
    settings = {"choice": "tls-1.3", "certificate": "rsa-2048+ecdsa-p256", "old-clients": 25}
    asked = tls.Settings.read({**settings, "resumption": "ticket", "resumed": 80})
    shares = {(c["tls"]["signer"], c["tls"]["resume"]): c["share"] for c in tls.clients(asked, made)}
    expected = {("rsa", True): 2000, ("rsa", False): 500, ("ecdsa", True): 6000, ("ecdsa", False): 1500}
    assert expected == shares


def test_a_client_in_clear_has_no_tls(tmp_path: Path) -> None:
    asked = tls.Settings.read({"choice": "plaintext"})
    assert [{"share": 100, "tls": None}] == tls.clients(asked, Certificates(tmp_path / "certificates"))
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("order", tls.MAC_ORDERS)
def test_both_sides_of_a_cbc_suite_are_told_its_order(tmp_path: Path, order: str) -> None:
    made = Certificates(tmp_path / "certificates")
    for cipher, expected in (("aes-128-cbc", order), ("aes-128-gcm", None)):
        asked = tls.Settings.read({"choice": "tls-1.2", "cipher": cipher, "mac-order": order})
        (client,) = tls.clients(asked, made)
        configuration = tls.server_configuration(asked, made)
        assert configuration is not None
        assert (expected, expected) == (client["tls"].get("mac_order"), configuration.spec().get("mac_order"))


def test_a_client_is_told_what_to_expect(tmp_path: Path) -> None:
    made = Certificates(tmp_path / "certificates")
    settings = {"choice": "tls-1.2", "certificate": "rsa-1024", "key-exchange": "rsa", "client-certificate": "rsa-2048"}
    (client,) = tls.clients(tls.Settings.read(settings), made)
    spec = client["tls"]
    assert ("tls-1.2", "rsa", "rsa", 1024, False) == (
        spec["protocol"],
        spec["key_exchange"],
        spec["signer"],
        spec["rsa_bits"],
        spec["resume"],
    )
    assert made.server("rsa-1024").chain_pem == spec["certificate_pem"]
    assert made.client("rsa-2048").key_pem == spec["identity"]["key_pem"]
