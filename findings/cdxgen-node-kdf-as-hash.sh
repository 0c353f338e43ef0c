#!/usr/bin/env bash
# cdxgen's inventory of a Node program lists PBKDF2 and HMAC as plain hashes, and leaves the ciphers out.
#
# `cbom` of cdxgen finds each of the nine calls below, with its kind. It then lists only names that its table of OIDs
# (data/crypto-oid.json) has in the same spelling. The table spells AES, ChaCha20-Poly1305 and RSA signatures otherwise
# than Node. scrypt is missing from the table, although RFC 7914 (section 7) has an OID for it. For PBKDF2 and HMAC the
# hash inside is listed. An expert expects nine algorithms, or a note about those without OID.
#
# Seen with @cyclonedx/cdxgen 12.8.4, CycloneDX 1.7:
#   listed: sha-512 (the call is PBKDF2), sha-384 (HMAC), ed25519 and rsa, as "algorithm" without `algorithmProperties`
#   not listed: scrypt, AES-256-GCM, AES-256-CBC, ChaCha20-Poly1305, RSA-SHA256; with `-t js` nothing is listed
# The kind of the call is there ("kdf", "hmac"), but in a property of the component, `cdx:crypto:primitive`.
# A judge of such an inventory takes password hashing for SHA-512, and does not see the ciphers at all.
# Needs Node 20 or later with npm, and python3. Ends with 0 while all of it is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export FETCH_LICENSE=false
npm install --silent --no-audit --no-fund --omit=optional @cyclonedx/cdxgen@12.8.4
mkdir program
cat > program/main.mjs <<'JAVASCRIPT'
import { createCipheriv, createHmac, generateKeyPairSync, pbkdf2Sync, scryptSync, sign } from "node:crypto";

const key = scryptSync("password", "salt", 32);
pbkdf2Sync("password", "salt", 220000, 64, "sha512");
createHmac("sha384", key);
createCipheriv("aes-256-gcm", key, Buffer.alloc(12));
createCipheriv("aes-256-cbc", key, Buffer.alloc(16));
createCipheriv("chacha20-poly1305", key, Buffer.alloc(12), { authTagLength: 16 });
generateKeyPairSync("ed25519");
sign("RSA-SHA256", Buffer.from("x"), generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey);
JAVASCRIPT
node program/main.mjs # it is a program that runs
for type in crypto js; do
  (cd program && ../node_modules/.bin/cbom --no-install-deps -t "$type" -o "../$type.json" . > ../log 2>&1) || {
    cat log
    exit 2
  }
done
cat > listed.py <<'PYTHON'
import json
import sys

for component in json.load(open(sys.argv[1])).get("components", []):
    if component["type"] == "cryptographic-asset":
        properties = {one["name"]: one["value"] for one in component["properties"]}
        kind = properties["cdx:crypto:primitive"]
        print(component["name"], kind, *sorted(component["cryptoProperties"]))
PYTHON
for type in crypto js; do
  echo "-t $type:"
  python3 listed.py "$type.json" | sort
done | tee seen
diff seen - <<'EXPECTED'
-t crypto:
ed25519 key-generation assetType oid
rsa key-generation assetType oid
sha-384 hmac assetType oid
sha-512 kdf assetType oid
-t js:
EXPECTED
