#!/usr/bin/env bash
# cdxgen gives SHA-1 an OID of Novell's, and RSA one of X.500's, instead of the OIDs that certificates and RFCs use.
#
# SHA-1 is 1.3.14.3.2.26 in RFC 8017 (appendix B.1), and an RSA key is 1.2.840.113549.1.1.1 (RFC 3279). cdxgen takes an
# OID from its table (data/crypto-oid.json) by name; the table holds for "sha-1" an entry of Novell's arc, and for "rsa"
# one that its own description calls ambiguous. In the same inventory SHA-256 has NIST's OID. A reader that looks for
# SHA-1 by OID, as it would in certificates, does not find the call.
#
# Seen with @cyclonedx/cdxgen 12.8.4, on a program of three calls:
#   rsa      2.5.8.1.1
#   sha-1    2.16.840.1.113719.1.2.8.82
#   sha-256  2.16.840.1.101.3.4.2.1
# Needs Node 20 or later with npm, and python3. Ends with 0 while all of it is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export FETCH_LICENSE=false
npm install --silent --no-audit --no-fund --omit=optional @cyclonedx/cdxgen@12.8.4
mkdir program
cat > program/main.mjs <<'JAVASCRIPT'
import { createHash, generateKeyPairSync } from "node:crypto";

createHash("sha1").update("x").digest();
createHash("sha256").update("x").digest();
generateKeyPairSync("rsa", { modulusLength: 2048 });
JAVASCRIPT
node program/main.mjs # it is a program that runs
(cd program && ../node_modules/.bin/cbom --no-install-deps -t crypto -o ../inventory.json . > ../log 2>&1) || {
  cat log
  exit 2
}
cat > listed.py <<'PYTHON'
import json

for component in json.load(open("inventory.json"))["components"]:
    if component["type"] == "cryptographic-asset":
        print(f"{component['name']:9}{component['cryptoProperties']['oid']}")
PYTHON
python3 listed.py | sort | tee seen
diff seen - <<'EXPECTED'
rsa      2.5.8.1.1
sha-1    2.16.840.1.113719.1.2.8.82
sha-256  2.16.840.1.101.3.4.2.1
EXPECTED
