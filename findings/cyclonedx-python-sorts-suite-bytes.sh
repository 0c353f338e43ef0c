#!/usr/bin/env bash
# cyclonedx-python-lib turns round the two bytes that name a TLS cipher suite.
#
# CycloneDX names a suite in a protocol by `identifiers`, and its own examples give the two bytes of IANA's registry in
# order: ["0xC0", "0x30"]. The library reads them into a sorted set and writes them sorted as text, so a document that is
# only read and written again names another suite: 0x30,0xC0 and 0x01,0x13 are in no registry, and two equal bytes become
# one. The order of `algorithms` changes in the same way. An expert expects the bytes as they were, or an array that the
# format declares unordered. Both documents are valid by the schema.
#
# Seen with cyclonedx-python-lib 11.12.0 (PyPI), CycloneDX 1.6:
#   TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384  0xC0,0x30 becomes 0x30,0xC0
#   TLS_AES_128_GCM_SHA256                 0x13,0x01 becomes 0x01,0x13
#   TLS_RSA_WITH_AES_128_CBC_SHA           0x00,0x2F stays
# A reader that trusts the name alone sees nothing of it. Ends with 0 while all of it is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check 'cyclonedx-python-lib[json-validation]==11.12.0'
cat > again.py <<'PYTHON'
import json

from cyclonedx.model.bom import Bom
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

SUITES = {
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": ["0xC0", "0x30"],
    "TLS_AES_128_GCM_SHA256": ["0x13", "0x01"],
    "TLS_RSA_WITH_AES_128_CBC_SHA": ["0x00", "0x2F"],
}
document = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "version": 1,
    "components": [{
        "type": "cryptographic-asset",
        "bom-ref": "protocol",
        "name": "TLS",
        "cryptoProperties": {
            "assetType": "protocol",
            "protocolProperties": {
                "type": "tls",
                "cipherSuites": [{"name": name, "identifiers": pair} for name, pair in SUITES.items()],
            },
        },
    }],
}
written = JsonV1Dot6(Bom.from_json(document)).output_as_string()
valid = JsonStrictValidator(SchemaVersion.V1_6)
print("valid:", valid.validate_str(json.dumps(document)) is None, valid.validate_str(written) is None)
again = json.loads(written)["components"][0]["cryptoProperties"]["protocolProperties"]["cipherSuites"]
found = {suite["name"]: suite["identifiers"] for suite in again}
for name, pair in SUITES.items():
    print(name, ",".join(pair), "->", ",".join(found[name]))
PYTHON
venv/bin/python again.py | tee seen
diff seen - <<'EXPECTED'
valid: True True
TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 0xC0,0x30 -> 0x30,0xC0
TLS_AES_128_GCM_SHA256 0x13,0x01 -> 0x01,0x13
TLS_RSA_WITH_AES_128_CBC_SHA 0x00,0x2F -> 0x00,0x2F
EXPECTED
