"""Files that are not inventories: their recognition, and the command that answers instead."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import msgspec
from msgspec import Raw

READ = "`price` reads CycloneDX 1.6 and 1.7 in JSON"
_WRITERS = "cbomkit and cdxgen's `cbom` write it of source code"
HINT = f"{READ}: {_WRITERS}"
"""The hint for a file of which nothing more is known."""
# Number of bytes at the beginning that identify a file.
_LOOKED_AT = 64 * 1024
_URL = "`tollbar run --url https://HOST` measures a server, `tollbar choose tls` judges settings"


@dataclass(frozen=True, slots=True)
class Format:
    """A format that is recognised, and not read."""

    what: str
    """With its article: `a SARIF report`."""
    hint: str


@dataclass(frozen=True, slots=True)
class _Json:
    """A format by the keys of its document."""

    all_of: tuple[str, ...]
    any_of: tuple[str, ...]
    format: Format


_JSON = (
    _Json(("spdxVersion",), (), Format("an SPDX document, which has no inventory of cryptography", HINT)),
    _Json(("@context", "@graph"), (), Format("an SPDX 3 document, which has no inventory of cryptography", HINT)),
    _Json(("server_scan_results",), (), Format("a report of SSLyze", f"{READ}; {_URL}")),
    _Json(("scanResult",), ("Invocation", "version", "openssl"), Format("a report of testssl.sh", f"{READ}; {_URL}")),
    _Json(
        ("realm",),
        ("clients", "roles", "users", "browserFlow", "passwordPolicy", "enabled", "sslRequired"),
        Format(
            "a Keycloak realm",
            f"{READ}; `tollbar choose password-hash` judges the settings of its `passwordPolicy`",
        ),
    ),
    _Json(
        ("metrics",),
        ("root_group", "state", "setup_data"),
        Format("a summary of k6", f"{READ}; `tollbar size MIX.toml` takes the rates in a mix, as in docs/size.md"),
    ),
    _Json(
        ("configurations",),
        ("version", "href"),
        Format("a guideline for TLS servers", f"{READ}; `--policy tlsref-intermediate` is TLSRef's guideline"),
    ),
    _Json(("$schema", "runs"), (), Format("a SARIF report", HINT)),
    _Json(("artifacts", "source"), (), Format("Syft's own format", HINT)),
)  # fmt: skip

_TEXTS = (
    (
        r"-----BEGIN [A-Z0-9 ]{1,40}-----",
        Format("a certificate or a key in PEM", f"{READ}: cbom4cert writes it of certificates"),
    ),
    (r"SPDXVersion:", Format("an SPDX document, which has no inventory of cryptography", HINT)),
    (
        r"(?:<VirtualHost\b|<IfModule\b|LoadModule\s|SSLEngine\s|SSLProtocol\s|SSLCipherSuite\s|ServerRoot\s)",
        Format("a configuration of Apache", f"{READ}; {_URL}"),
    ),
    (
        r"(?:ssl_protocols|ssl_ciphers|ssl_certificate|ssl_ecdh_curve|worker_processes|listen\s+[^;\n]{0,80};"
        r"|(?:server|http|events)\s*\{)",
        Format("a configuration of nginx", f"{READ}; {_URL}"),
    ),
    (
        r"(?:ssl-default-bind-\w+|bind\s+[^\n]{0,200}\bssl\b)",
        Format("a configuration of HAProxy", f"{READ}; {_URL}"),
    ),
    (
        r"(?:KexAlgorithms|HostKeyAlgorithms|PubkeyAcceptedAlgorithms|PermitRootLogin|MACs|Ciphers)\s+\S",
        Format("a configuration of OpenSSH", f"{READ}; `tollbar choose key-exchange` judges key exchanges"),
    ),
    (
        r"(?:cipher|hash|mac|group|sign|key_exchange|protocol|min_tls_version)(?:@\S{1,60})?\s*=\s*[-+A-Z]",
        Format("a policy of crypto-policies", f"{READ}; `--policy fedora-default` is Fedora's policy"),
    ),
    (r"\[(?:policy|rule|study|vary|uses|mix)[\].]|\[\[rule\]\]", Format(
        "a file of Tollbar's own", f"{READ}; `--policy FILE` takes a policy, `tollbar run FILE` a study")),
)  # fmt: skip
# A line is looked at once: a pattern that passed over ends of lines took 12 s for 64 KiB of them.
_FIRST_PATTERNS = tuple((re.compile(rf"^[^\S\n]*+(?:{pattern})", re.MULTILINE), found) for pattern, found in _TEXTS)


def of_text(content: bytes) -> Format | None:
    """Return the format of a text that is not JSON; None: it is not recognised."""
    text = content[:_LOOKED_AT].decode("utf-8", "replace")
    return next((found for pattern, found in _FIRST_PATTERNS if pattern.search(text)), None)


def of_json(content: bytes) -> Format | None:
    """Return the format of a JSON document by its keys; None: it is not recognised."""
    beginning = content[:_LOOKED_AT].decode("utf-8", "replace").lstrip()
    try:
        if beginning.startswith("["):
            first, _ = json.JSONDecoder().raw_decode(beginning, len(beginning) - len(beginning[1:].lstrip()))
            is_of_testssl = isinstance(first, dict) and {"id", "finding", "severity"} <= first.keys()
            return Format("a report of testssl.sh", f"{READ}; {_URL}") if is_of_testssl else None
        # Other keys are skipped because a file may have millions.
        document = msgspec.json.decode(content, type=_Keys)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    for one in _JSON:
        if all(_has(document, key) for key in one.all_of) and (
            not one.any_of or any(_has(document, key) for key in one.any_of)
        ):
            return one.format
    return None


# Attributes are numbered because `$schema` is not a valid name of one.
_NAMES = {key: f"key_{number}" for number, key in enumerate(key for one in _JSON for key in one.all_of + one.any_of)}
_Keys = msgspec.defstruct(
    "_Keys",
    [(name, Raw, Raw(b"")) for name in _NAMES.values()],
    rename={name: key for key, name in _NAMES.items()},
)


def _has(document: object, key: str) -> bool:
    return len(memoryview(getattr(document, _NAMES[key]))) > 0
