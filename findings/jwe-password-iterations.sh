#!/usr/bin/env bash
# Libraries of JOSE refuse a JWE by a password whose PBKDF2 has the iterations that OWASP asks for.
#
# RFC 7518 (section 4.8.1.2) asks for at least 1,000 iterations and has no upper limit. OWASP's Password Storage Cheat
# Sheet asks for 220,000 with SHA-512 (PBES2-HS512+A256KW) and 600,000 with SHA-256. Each library has another limit, against
# tokens that make a server work: a token that one writes by default settings is refused by the next.
#
# Seen with jose 6.2.18 (npm), jwcrypto 1.6.1 and joserfc 1.8.0 (PyPI), PBES2-HS512+A256KW:
#   10,000 iterations: all three read it; 10,001: jose refuses ("p2c ... acceptable bounds"), until `maxPBES2Count` is set
#   16,385 and more: jwcrypto refuses too ("Invalid p2c value, too large")
#   300,001 and more: joserfc neither writes nor reads it, with the words "must be less than 300000"
# Needs Python with pip, and Node 20 or later with npm. Ends with 0 while all of it is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check jwcrypto==1.6.1 joserfc==1.8.0
npm install --silent --no-audit --no-fund jose@6.2.18
cat > tokens.mjs <<'JAVASCRIPT'
import { CompactEncrypt, compactDecrypt } from "jose";

const password = new TextEncoder().encode("correct horse battery staple");
const algorithm = { keyManagementAlgorithms: ["PBES2-HS512+A256KW"] };
for (const p2c of [10_000, 10_001, 16_384, 16_385, 220_000, 300_000, 300_001, 600_000]) {
  const token = await new CompactEncrypt(new TextEncoder().encode("x"))
    .setProtectedHeader({ alg: "PBES2-HS512+A256KW", enc: "A128GCM" })
    .setKeyManagementParameters({ p2c })
    .encrypt(password);
  const isRead = (options) => compactDecrypt(token, password, options).then(() => true, () => false);
  console.log(p2c, token, await isRead(algorithm), await isRead({ ...algorithm, maxPBES2Count: 1_000_000 }));
}
JAVASCRIPT
node tokens.mjs > tokens.txt
cat > readers.py <<'PYTHON'
import base64
from pathlib import Path

from joserfc import jwe as joserfc
from joserfc.errors import JoseError
from joserfc.jwk import OctKey
from jwcrypto import jwe, jwk

PASSWORD, ALGORITHMS = b"correct horse battery staple", ["PBES2-HS512+A256KW", "A128GCM"]
key = jwk.JWK(kty="oct", k=base64.urlsafe_b64encode(PASSWORD).decode().rstrip("="))


def by_jwcrypto(token):
    reader = jwe.JWE(algs=ALGORITHMS)
    try:
        reader.deserialize(token, key)
    except jwe.InvalidJWEData:
        return False
    return reader.payload == b"x"


def by_joserfc(token):
    try:
        return joserfc.decrypt_compact(token, OctKey.import_key(PASSWORD), algorithms=ALGORITHMS).plaintext == b"x"
    except JoseError:
        return False


found = {}
for line in Path("tokens.txt").read_text().splitlines():
    count, token, by_jose, when_told = line.split()
    found[int(count)] = by_jose == "true", when_told == "true", by_jwcrypto(token), by_joserfc(token)
    print(f"{count} iterations: jose, jose with maxPBES2Count, jwcrypto, joserfc read it:", *found[int(count)])
least_refused = [min(count for count, read in found.items() if not read[place]) for place in (0, 2, 3)]
raise SystemExit(least_refused != [10_001, 16_385, 300_001] or not all(read[1] for read in found.values()))
PYTHON
venv/bin/python readers.py
