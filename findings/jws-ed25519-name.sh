#!/usr/bin/env bash
# Widely used libraries of JOSE do not know the algorithm name `Ed25519` that RFC 9864 puts in the place of `EdDSA`.
#
# RFC 9864 (October 2025) deprecates `EdDSA`, which does not say the curve, in favour of `Ed25519` and `Ed448`. The
# signatures are the same bytes. joserfc warns of the old name (SecurityWarning); a signer that follows the warning makes
# tokens that PyJWT and go-jose cannot verify, with the same key.
#
# Seen with joserfc 1.8.0, jwcrypto 1.6.1, PyJWT 2.15.1 (PyPI), jose 6.2.18 (npm) and go-jose 4.1.9:
#   EdDSA: all five sign; Ed25519: joserfc, jwcrypto and jose sign, PyJWT and go-jose refuse it as unknown
# Needs Python with pip, Node 20 or later with npm, and Go 1.24 or later. Ends with 0 while all of it is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export GOPATH=$folder/go GOFLAGS=-mod=mod
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check \
  joserfc==1.8.0 jwcrypto==1.6.1 PyJWT==2.15.1 cryptography==50.0.2
npm install --silent --no-audit --no-fund jose@6.2.18
cat > signer.py <<'PYTHON'
import json
import sys
import warnings

warnings.simplefilter("ignore")
import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc import jws as joserfc
from joserfc.jwk import OKPKey
from jwcrypto import jwk, jws


def by_jwcrypto(name):
    jws.JWS(b"x").add_signature(jwk.JWK.generate(kty="OKP", crv="Ed25519"), name, json.dumps({"alg": name}))


signers = {
    "joserfc": lambda name: joserfc.serialize_compact(
        {"alg": name}, b"x", OKPKey.generate_key("Ed25519"), algorithms=[name]
    ),
    "jwcrypto": by_jwcrypto,
    "PyJWT": lambda name: jwt.encode({}, Ed25519PrivateKey.generate(), algorithm=name),
}
for library, sign in signers.items():
    for name in ("EdDSA", "Ed25519"):
        try:
            sign(name)
            print(library, name, "signs")
        except Exception as error:  # each library has an error of its own
            print(library, name, "refuses:", error, file=sys.stderr)
PYTHON
cat > signer.mjs <<'JAVASCRIPT'
import { CompactSign, generateKeyPair } from "jose";

for (const alg of ["EdDSA", "Ed25519"]) {
  const { privateKey } = await generateKeyPair(alg);
  await new CompactSign(new Uint8Array(1)).setProtectedHeader({ alg }).sign(privateKey);
  console.log("jose", alg, "signs");
}
JAVASCRIPT
printf 'module signer\n\ngo 1.24\n\nrequire github.com/go-jose/go-jose/v4 v4.1.9\n' > go.mod
cat > signer.go <<'GO'
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"os"

	"github.com/go-jose/go-jose/v4"
)

func main() {
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	for _, name := range []jose.SignatureAlgorithm{"EdDSA", "Ed25519"} {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: name, Key: key}, nil)
		if err == nil {
			_, err = signer.Sign([]byte("x"))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "go-jose", name, "refuses:", err)
			continue
		}
		fmt.Println("go-jose", name, "signs")
	}
}
GO
{ venv/bin/python signer.py; node signer.mjs; go run .; } | tee seen.txt
printf '%s signs\n' 'joserfc EdDSA' 'joserfc Ed25519' 'jwcrypto EdDSA' 'jwcrypto Ed25519' 'PyJWT EdDSA' \
  'jose EdDSA' 'jose Ed25519' 'go-jose EdDSA' | diff - seen.txt
