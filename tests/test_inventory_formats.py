"""Files of other formats than inventories: each known format is named, with a way to an answer."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Tollbar
from test_inventory import algorithm, made
from tollbar.core.errors import TollbarError
from tollbar.decide.price import formats, inventory, limits, price
from tollbar.decide.price.inventory import parse
from tollbar.decide.price.words import brief

TEXTS = {
    "nginx": "user www-data;\nevents { worker_connections 64; }\nhttp {\n server {\n  ssl_protocols TLSv1.2;\n }\n}\n",
    "Apache": "<VirtualHost *:443>\n  SSLEngine on\n  SSLProtocol all -SSLv3\n</VirtualHost>\n",
    "HAProxy": "global\n  ssl-default-bind-ciphers ECDHE-RSA-AES128-GCM-SHA256\n",
    "OpenSSH": "Port 22\nKexAlgorithms curve25519-sha256\n",
    "crypto-policies": "# a policy\nmac = AEAD HMAC-SHA2-256\ngroup = X25519 SECP256R1\n",
    "PEM": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    "SPDX": "SPDXVersion: SPDX-2.3\nDataLicense: CC0-1.0\n",
    "Tollbar's own": '[policy]\ntitle = "ours"\n',
}
DOCUMENTS = {
    "Keycloak": {"realm": "shop", "enabled": True, "passwordPolicy": "hashIterations(27500)"},
    "SSLyze": {"sslyze_version": "6.2.0", "server_scan_results": []},
    "testssl": [{"id": "TLS1", "finding": "offered", "severity": "LOW"}],
    "k6": {"metrics": {"http_reqs": {}}, "root_group": {}},
    "guideline": {"version": 6.0, "configurations": {"modern": {}, "intermediate": {}}},
    "SPDX": {"spdxVersion": "SPDX-2.3", "packages": []},
    "SARIF": {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "runs": []},
    "`CBOM`, IBM's format": {"bomFormat": "CBOM", "specVersion": "1.4-cbom-1.0", "components": []},
    "CycloneDX 2.0 is not supported": {"specFormat": "CycloneDX", "specVersion": "2.0", "components": []},
    "CycloneDX 1.5 is not supported": {"bomFormat": "CycloneDX", "specVersion": "1.5", "components": []},
    "not CycloneDX": {"some": "thing"},
}


@pytest.mark.parametrize("name", [*TEXTS, *DOCUMENTS])
def test_a_format_that_is_not_read_is_named(name: str) -> None:
    for said, content in ((name, TEXTS.get(name)), (name, DOCUMENTS.get(name))):
        if content is None:
            continue
        raw = content if isinstance(content, str) else json.dumps(content)
        with pytest.raises(TollbarError) as raised:
            parse(raw.encode(), Path("file"))
        assert said in str(raised.value)
        assert "`price` reads CycloneDX 1.6 and 1.7 in JSON" in str(raised.value.hint)


INVENTORY = b'{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": []}'
# Files that are not JSON, the fault, and words of the hint.
OTHERS: dict[str, tuple[bytes, str, str]] = {
    "gzip": (gzip.compress(INVENTORY), "compressed by gzip", "`zcat FILE | tollbar price -`"),
    "bzip2": (bz2.compress(INVENTORY), "compressed by bzip2", "`bzcat FILE | tollbar price -`"),
    "xz": (lzma.compress(INVENTORY), "compressed by xz", "`xzcat FILE | tollbar price -`"),
    "ZIP": (b"PK\x03\x04\x14\0\0\0", "a ZIP archive", "`unzip -p FILE MEMBER | tollbar price -`"),
    "tar": (b"bom.json".ljust(257, b"\0") + b"ustar\0", "an archive of tar", "`tar -xOf FILE MEMBER |"),
    "ELF": (b"\x7fELF\x02\x01\x01\0\xff", "is a program", "cdxgen"),
    "DER": (b"\x30\x82\x03\x0b\x30\x82", "a key in DER or PKCS #12", "cbom4cert"),
    "JKS": (b"\xfe\xed\xfe\xed\0\0\0\2", "a key store of Java", "cbom4cert"),
    "UTF-16": (INVENTORY.decode().encode("utf-16"), "is not UTF-8", "`iconv -f UTF-16"),
    "Latin-1": (INVENTORY.replace(b"1.6", b"1.6\xe4"), "is not UTF-8", "`iconv -f LATIN1"),
    "bytes": (b"\x9c\xff\xfe\x01", "is neither JSON nor text", "cdxgen"),
    "lines": (INVENTORY + b"\n" + INVENTORY, "several JSON documents", "`head -n 1 FILE | tollbar price -`"),
    "YAML": (
        b"# ours\nbomFormat: CycloneDX\nversion: 1\n",
        "is YAML",
        "`yq -o json FILE | tollbar price -`",
    ),
    "other YAML": (b"---\ntls:\n  minVersion: VersionTLS12\n", "is YAML", "cdxgen"),
    "CSV": (b"name,size\nAES,256\nRSA,2048\n", "is a table of values (CSV)", "docs/price.md"),
    "XML": (
        b'<?xml version="1.0"?><bom xmlns="http://cyclonedx.org/schema/bom/1.6"/>',
        "is CycloneDX 1.6 in XML",
        "`cyclonedx convert --output-format json`",
    ),
    "old XML": (b'<bom xmlns="http://cyclonedx.org/schema/bom/1.4"/>', "is CycloneDX 1.4 in XML", "cdxgen"),
    "other XML": (b"<inventory><name>AES</name></inventory>", "is XML of another format", "cdxgen"),
    "source": (b"import hashlib\nhashlib.md5(b'x')\n", "is text; it must be JSON", "cdxgen"),
    "requirements": (b"cryptography==42.0.0\nbcrypt==4.1\n", "is text; it must be JSON", "cdxgen"),
    "nothing": (b" \n", "is an empty file", "cdxgen"),
    "a number": (b"3", "is not CycloneDX", "cdxgen"),
    "Trivy": (b'{"SchemaVersion": 2, "Results": []}', "a report of Trivy", "cdxgen"),
    "npm": (b'{"name": "x", "lockfileVersion": 3}', "a lock file of npm", "cdxgen"),
    "cut": (INVENTORY[:40], "the file ends too early", "json.tool"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_that_is_not_json_is_named_with_a_way_to_an_answer(name: str) -> None:
    content, fault, hint = OTHERS[name]
    with pytest.raises(TollbarError) as raised:
        parse(content, Path("file"))
    assert fault in str(raised.value)
    assert hint in str(raised.value.hint)


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("https://example.com/bom.json", ("is a URL", "`curl -s https://example.com/bom.json | tollbar price -`")),
        ("folder", ("is a folder; it must be a file", "for example folder/cbom.json")),
        ("asvs-level-2", ("needs an inventory first", "--policy asvs-level-2")),
        ("SHA-256", ("needs an inventory first", "`tollbar list choices digest`")),
    ],
)
def test_a_word_that_is_no_file_is_named(word: str, parts: tuple[str, ...], tollbar: Tollbar, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    done = tollbar("price", word, "--for", "0s")
    assert (2, "") == (done.returncode, done.stdout)
    assert [] == [part for part in parts if part not in " ".join(done.stderr.split())]


def test_no_hint_promises_cryptography_by_converting() -> None:
    with pytest.raises(TollbarError) as raised:
        parse(json.dumps(DOCUMENTS["CycloneDX 1.5 is not supported"]).encode(), Path("sbom.json"))
    assert "convert" not in str(raised.value.hint)


@settings(max_examples=100, deadline=1000)
@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_content_is_of_a_format_or_of_none(content: bytes) -> None:
    for found in (formats.of_text(content), formats.of_json(content)):
        assert found is None or found.what


def test_standard_input_is_read_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_BYTES", 10)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b" " * 11)))
    with pytest.raises(TollbarError, match="limit") as raised:
        inventory.read(inventory.STANDARD_INPUT)
    assert "standard input" == raised.value.where


def written(path: Path, *components: object) -> Path:
    content = {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": list(components)}
    path.write_text(json.dumps(content), "utf-8")
    return path


def test_the_command_fails_where_a_policy_is_broken(tollbar: Tollbar, tmp_path: Path) -> None:
    bad = written(tmp_path / "bad.json", algorithm("MD5"))
    good = written(tmp_path / "good.json", algorithm("SHA-256"))
    asked = ("--policy", "asvs-level-2", "--for", "0s")
    assert [1, 0, 0] == [
        tollbar("price", bad, *asked, "--fail").returncode,
        tollbar("price", bad, *asked).returncode,
        tollbar("price", good, *asked, "--fail").returncode,
    ]
    done = tollbar("price", bad, "--for", "0s", "--fail")
    assert (2, True) == (done.returncode, "--policy" in done.stderr)
    done = tollbar("price", "--nosuch", "--for", "0s")
    assert (2, True) == (done.returncode, "--nosuch" in done.stderr)


def test_the_command_reads_standard_input(tmp_path: Path) -> None:
    content = written(tmp_path / "cbom.json", algorithm("MD5")).read_bytes()
    asked = [sys.executable, "-m", "tollbar", "price", "-", "--policy", "asvs-level-2", "--for", "0s", "--json"]
    done = subprocess.run(asked, input=content, capture_output=True, cwd=tmp_path, timeout=60, check=False)
    assert 1 == json.loads(done.stdout)["rulings"]["breaks"]


def test_one_component_is_one() -> None:
    today = date(2026, 11, 23)
    one = brief(price(made({"type": "library", "name": "x"}, algorithm("MD5")), (), today, today)).notes
    two = brief(price(made(*[{"type": "library", "name": "x"}] * 2, algorithm("MD5")), (), today, today)).notes
    assert any("Not judged, because not cryptographic: 1 component." == note for note in one)
    assert any("Not judged, because not cryptographic: 2 components." == note for note in two)
