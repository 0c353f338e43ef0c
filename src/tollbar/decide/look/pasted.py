"""Lines for the configuration of nginx, Apache and HAProxy that offer only approved values, with two certificates.

The directives are those of nginx 1.19.4 (`ssl_conf_command`), Apache 2.4.11 with OpenSSL 1.1.1, and HAProxy 2.3; groups
have OpenSSL's names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tollbar.catalog.policies import Ruling
from tollbar.core.words import enumeration
from tollbar.decide.look.offered import CERTIFICATE, CHOICE, CIPHER, KEY_EXCHANGE, Offered, judged
from tollbar.decide.look.proposed import CERTIFICATES, CIPHERS, GROUPS, certificate_title
from tollbar.decide.rulings import Wanted
from tollbar.lab.tls.code_points import groups, suites

VERSIONS = {"tls-1.2": "TLSv1.2", "tls-1.3": "TLSv1.3"}
_FOLDER = "/etc/ssl/private/example"


@dataclass(frozen=True, slots=True)
class Approved:
    """Values that the policies approve, as OpenSSL names them, preferred first."""

    versions: Sequence[str]
    """Oldest first."""
    suites: Sequence[str]
    """Suites of TLS 1.2; empty where it is not approved."""
    suites_of_13: Sequence[str]
    groups: Sequence[str]
    keys: Sequence[str]
    """Smallest approved key of each algorithm, a certificate each: `ecdsa-p256`, `rsa-3072`."""


def approved(wanted: Wanted) -> Approved:
    """Return the approved values: without policies those in good standing."""
    versions = [one for one in VERSIONS if _is_met(wanted, CHOICE, one, one)]
    newest = versions[-1] if versions else "tls-1.3"
    keys = dict[str, str]()
    for one in CERTIFICATES:
        if _is_met(wanted, CERTIFICATE, one, newest):
            keys.setdefault(_algorithm(one), one)
    # A third key would be for clients that do not exist yet, unless it is the only one.
    classical = [one for algorithm, one in keys.items() if algorithm in ("ecdsa", "rsa")]
    ciphers = [one for one in CIPHERS if _is_met(wanted, CIPHER, one, newest)]
    known = [one for one in suites().values() if one.cipher in ciphers]
    of_12 = [one for one in known if one.key_exchange == "ecdhe" and one.proves in keys]
    return Approved(
        versions,
        [one.name for one in sorted(of_12, key=lambda one: ciphers.index(one.cipher))] if "tls-1.2" in versions else [],
        [one.name for one in sorted(known, key=lambda one: ciphers.index(one.cipher)) if one.is_of_13],
        _groups(wanted, newest),
        classical or [*keys.values()][:1],
    )


def pasted(of: Approved) -> Mapping[str, str]:
    """Return the lines by server; empty where no version, cipher, group or key is approved."""
    if not (of.versions and of.suites_of_13 and of.groups and of.keys):
        return {}
    keys = f"# Smallest approved keys: {enumeration([certificate_title(one) for one in of.keys])}."
    lines = {"nginx": _nginx(of), "Apache": _apache(of), "HAProxy": _haproxy(of)}
    return {server: f"{keys}\n{text}" for server, text in lines.items()}


def _groups(wanted: Wanted, newest: str) -> Sequence[str]:
    able = [*GROUPS, "ecdhe-p384", "ecdhe-p521"]
    met = [one for one in able if _is_met(wanted, KEY_EXCHANGE, one, newest)]
    # Clients know one hybrid, and two spare nothing.
    hybrid = [one for one in met if "mlkem" in one][:1]
    names = {one.value: one.name for one in groups().values()}
    return [names[one] for one in (*hybrid, *(one for one in met if "mlkem" not in one))]


def _is_met(wanted: Wanted, setting: str, value: str, version: str) -> bool:
    return judged(Offered(setting, value, version, value), wanted).ruling is Ruling.MEETS


def _algorithm(kind: str) -> str:
    return "ml-dsa" if kind.startswith("ml-dsa") else kind.partition("-")[0]


def _files(of: Approved) -> Sequence[str]:
    return [f"{_FOLDER}-{key}" for key in of.keys]


def _nginx(of: Approved) -> str:
    lines = [f"ssl_protocols {' '.join(VERSIONS[one] for one in of.versions)};"]
    lines += [f"ssl_ciphers {':'.join(of.suites)};"] if of.suites else []
    lines += [f"ssl_conf_command Ciphersuites {':'.join(of.suites_of_13)};", f"ssl_ecdh_curve {':'.join(of.groups)};"]
    for file in _files(of):
        lines += [f"ssl_certificate {file}.pem;", f"ssl_certificate_key {file}.key;"]
    return "\n".join([*lines, "ssl_session_cache shared:tls:10m;", "ssl_session_tickets on;"])


def _apache(of: Approved) -> str:
    lines = [f"SSLProtocol -all {' '.join(f'+{VERSIONS[one]}' for one in of.versions)}"]
    lines += [f"SSLCipherSuite {':'.join(of.suites)}"] if of.suites else []
    lines += [f"SSLCipherSuite TLSv1.3 {':'.join(of.suites_of_13)}", f"SSLOpenSSLConfCmd Groups {':'.join(of.groups)}"]
    for file in _files(of):
        lines += [f"SSLCertificateFile {file}.pem", f"SSLCertificateKeyFile {file}.key"]
    return "\n".join([*lines, "SSLSessionTickets on"])


def _haproxy(of: Approved) -> str:
    certificates = " ".join(f"crt {file}.pem" for file in _files(of))
    lines = [f"bind :443 ssl {certificates} ssl-min-ver {VERSIONS[of.versions[0]]} curves {':'.join(of.groups)}"]
    suites_of_12 = f" ciphers {':'.join(of.suites)}" if of.suites else ""
    lines[0] += f"{suites_of_12} ciphersuites {':'.join(of.suites_of_13)}"
    return "\n".join(["# Each .pem file has a chain and its key.", *lines])
