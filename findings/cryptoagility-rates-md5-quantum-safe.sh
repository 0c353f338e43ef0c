#!/usr/bin/env bash
# cryptoagility's inventory gives MD5 a quantum security level that it does not give ECDSA, and one entry to all RSA keys.
#
# CycloneDX defines `nistQuantumSecurityLevel` 1 to 5 as NIST's categories: level 1 is as hard to attack as a key search
# on AES-128, and 0 means that no category is met. MD5 is broken without a quantum computer, so an expert expects 0, as
# its `classicalSecurityLevel` of 0 in the same entry says. The inventory has level 1. Keys of RSA-1024 and RSA-2048 are
# one entry with a classical level of 0, although the calls state both sizes. A reader that counts assets of level 0 as
# the ones to replace passes over MD5.
#
# Seen with cryptoagility 0.1.3 (PyPI), on a source of ten lines:
#   ECDSA   classical 128, quantum 0
#   MD5     classical 0, quantum 1
#   RSA     classical 0, quantum 0
# Ends with 0 while all of it is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check cryptoagility==0.1.3
mkdir source
cat > source/app.py <<'PYTHON'
import hashlib

from cryptography.hazmat.primitives.asymmetric import ec, rsa

digest = hashlib.md5(b"data").hexdigest()
small = rsa.generate_private_key(public_exponent=65537, key_size=1024)
key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
curve = ec.generate_private_key(ec.SECP256R1())
PYTHON
venv/bin/cryptoagility --cbom inventory.json --exit-zero source > log 2>&1
cat > levels.py <<'PYTHON'
import json

for one in sorted(json.load(open("inventory.json"))["components"], key=lambda one: one["name"]):
    levels = one["cryptoProperties"]["algorithmProperties"]
    classical, quantum = levels["classicalSecurityLevel"], levels["nistQuantumSecurityLevel"]
    print(f"{one['name']:8}classical {classical}, quantum {quantum}")
PYTHON
python3 levels.py | tee seen
diff seen - <<'EXPECTED'
ECDSA   classical 128, quantum 0
MD5     classical 0, quantum 1
RSA     classical 0, quantum 0
EXPECTED
