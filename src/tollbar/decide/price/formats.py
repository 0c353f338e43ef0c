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
    _Json(("SchemaVersion", "Results"), (), Format("a report of Trivy", HINT)),
    _Json(("lockfileVersion",), (), Format("a lock file of npm", HINT)),
)  # fmt: skip

_CERTIFICATES = f"{READ}: cbom4cert writes it of certificates"
_BINARY = (
    (b"\x1f\x8b", Format("a file compressed by gzip", f"`zcat FILE | tollbar price -` unpacks it; {READ}")),
    (b"BZh", Format("a file compressed by bzip2", f"`bzcat FILE | tollbar price -` unpacks it; {READ}")),
    (b"\xfd7zXZ\0", Format("a file compressed by xz", f"`xzcat FILE | tollbar price -` unpacks it; {READ}")),
    (b"\x28\xb5\x2f\xfd", Format("a file compressed by zstd", f"`zstdcat FILE | tollbar price -` unpacks it; {READ}")),
    (b"PK\x03\x04", Format("a ZIP archive or a spreadsheet", f"{READ}: `unzip -p FILE MEMBER | tollbar price -`")),
    (b"\x7fELF", Format("a program", HINT)),
    (b"%PDF-", Format("a PDF", HINT)),
    (b"\xfe\xed\xfe\xed", Format("a key store of Java", _CERTIFICATES)),
    (b"\x30\x81", Format("a certificate or a key in DER", _CERTIFICATES)),
    (b"\x30\x82", Format("a certificate or a key in DER or PKCS #12", _CERTIFICATES)),
)  # fmt: skip

_TEXTS = (
    (
        r"-----BEGIN [A-Z0-9 ]{1,40}-----",
        Format("a certificate or a key in PEM", _CERTIFICATES),
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
# A document of YAML, and a table of CSV, by their first lines that are no comments.
_YAML = re.compile(r"\A(?:[^\S\n]*+(?:#[^\n]*+)?\n)*+(?:---[^\S\n]*+\n|[\w.$'\"-]{1,80}+:(?:[^\S\n]|\n))")
_CSV = re.compile(r"\A[^,;\t\n{}\[\]()=]{1,200}+([,;\t])[^\n{}\[\]()=]{0,2000}\n[^\n]{0,2000}?\1")
# A line is looked at once: a pattern that passed over ends of lines took 12 s for 64 KiB of them.
_FIRST_PATTERNS = tuple((re.compile(rf"^[^\S\n]*+(?:{pattern})", re.MULTILINE), found) for pattern, found in _TEXTS)


def of_text(content: bytes) -> Format | None:
    """Return the format of a text that is not JSON; None: it is not recognised."""
    text = content[:_LOOKED_AT].decode("utf-8", "replace")
    return next((found for pattern, found in _FIRST_PATTERNS if pattern.search(text)), None)


def of_bytes(content: bytes) -> Format | None:
    """Return the format of a file by its first bytes; None: it is not recognised."""
    if content[257:262] == b"ustar":
        return Format("an archive of tar", f"`tar -xOf FILE MEMBER | tollbar price -` unpacks a member; {READ}")
    return next((found for magic, found in _BINARY if content.startswith(magic)), None)


def not_utf_8(content: bytes) -> tuple[str, str]:
    """Return the fault and the hint of a file that is not UTF-8 and has no known first bytes."""
    first = content[:64]
    is_utf_16 = first[:2] in (b"\xff\xfe", b"\xfe\xff")
    if is_utf_16 or first.lstrip()[:1] in (b"{", b"["):
        encoding = "UTF-16" if is_utf_16 else "LATIN1"
        hint = f"`iconv -f {encoding} -t UTF-8 FILE` converts {encoding}, for example"
        return "is not UTF-8; it must be JSON in UTF-8", hint
    return "is neither JSON nor text; it must be JSON in UTF-8", HINT


def of_no_json(content: bytes) -> Format:
    """Return the format of a text that is not JSON, and that `of_text` does not recognise."""
    text = content[:_LOOKED_AT].decode("utf-8", "replace")
    if not text.strip():
        return Format("an empty file", HINT)
    if "\0" in text:
        return Format("a binary file", HINT)
    if text.lstrip().startswith("<"):
        return _of_xml(text)
    if _YAML.match(text):
        convert = f"`yq -o json FILE | tollbar price -` converts it; {READ}"
        return Format("YAML", convert if "bomFormat" in text else HINT)
    if _CSV.match(text):
        return Format("a table of values (CSV)", f"{READ}, a component for each row (docs/price.md): {_WRITERS}")
    return Format("text", HINT)


def _of_xml(text: str) -> Format:
    version = re.search(r"cyclonedx\.org/schema/bom/(\d{1,3}\.\d{1,3})", text)
    if version is None:
        return Format("XML of another format", HINT)
    convert = f"`cyclonedx convert --output-format json` converts it; {READ}"
    return Format(f"CycloneDX {version[1]} in XML", convert if version[1] in ("1.6", "1.7") else HINT)


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
