#!/usr/bin/env bash
# cyclonedx-go reads an XML inventory without the cipher suites of a protocol and without the algorithm of a key.
#
# CycloneDX has the same cryptographic properties in JSON and in XML, with other nesting. In XML a suite is an element
# `cipherSuite` inside `cipherSuites`, and a reference is the text of its element. cyclonedx-go expects the properties
# of a suite directly in `cipherSuites`, and each reference in an attribute `ref`. It reads a valid file without an
# error and leaves both out. An expert expects the same content from both formats, or an error.
#
# Seen with cyclonedx-go 0.12.0 and cyclonedx-python-lib 11.12.0, a valid file of CycloneDX 1.6:
#   Python: 1 cipher suite, its reference, and all 4 references of the key and of the certificate
#   Go: no cipher suite and none of the references; the other properties are complete
# The way back is broken, too: Go's XML of a complete inventory is not valid, by the schema that Python's library has.
# A judge that converts XML to JSON by a Go tool misses which ciphers a protocol offers and which algorithm a key has.
# Needs Python with pip, and Go 1.24 or later. Ends with 0 while all of it is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export GOPATH=$folder/go GOFLAGS=-mod=mod
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check 'cyclonedx-python-lib[validation]==11.12.0'
cat > inventory.xml <<'XML'
<bom xmlns="http://cyclonedx.org/schema/bom/1.6" version="1">
  <components>
    <component type="cryptographic-asset" bom-ref="rsa">
      <name>RSA-2048</name>
      <cryptoProperties>
        <assetType>algorithm</assetType>
        <algorithmProperties><primitive>signature</primitive></algorithmProperties>
      </cryptoProperties>
    </component>
    <component type="cryptographic-asset" bom-ref="key">
      <name>server key</name>
      <cryptoProperties>
        <assetType>related-crypto-material</assetType>
        <relatedCryptoMaterialProperties>
          <type>private-key</type>
          <algorithmRef>rsa</algorithmRef>
          <size>2048</size>
          <securedBy><mechanism>Software</mechanism><algorithmRef>rsa</algorithmRef></securedBy>
        </relatedCryptoMaterialProperties>
      </cryptoProperties>
    </component>
    <component type="cryptographic-asset" bom-ref="certificate">
      <name>server certificate</name>
      <cryptoProperties>
        <assetType>certificate</assetType>
        <certificateProperties>
          <subjectName>CN=server</subjectName>
          <signatureAlgorithmRef>rsa</signatureAlgorithmRef>
          <subjectPublicKeyRef>key</subjectPublicKeyRef>
        </certificateProperties>
      </cryptoProperties>
    </component>
    <component type="cryptographic-asset" bom-ref="tls">
      <name>TLS 1.2</name>
      <cryptoProperties>
        <assetType>protocol</assetType>
        <protocolProperties>
          <type>tls</type>
          <version>1.2</version>
          <cipherSuites>
            <cipherSuite>
              <name>TLS_RSA_WITH_AES_128_GCM_SHA256</name>
              <algorithms><algorithm>rsa</algorithm></algorithms>
              <identifiers><identifier>0x00</identifier><identifier>0x9C</identifier></identifiers>
            </cipherSuite>
          </cipherSuites>
          <cryptoRef>rsa</cryptoRef>
        </protocolProperties>
      </cryptoProperties>
    </component>
  </components>
</bom>
XML
cat > by_python.py <<'PYTHON'
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.xml import XmlValidator

assert XmlValidator(SchemaVersion.V1_6).validate_str(Path("inventory.xml").read_text()) is None
with open("inventory.xml") as file:
    bom = Bom.from_xml(file)
make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_to_file("python.json")
PYTHON
printf 'module reader\n\ngo 1.24\n\nrequire github.com/CycloneDX/cyclonedx-go v0.12.0\n' > go.mod
cat > reader.go <<'GO'
package main

import (
	"os"

	"github.com/CycloneDX/cyclonedx-go"
)

// From the first file to the second, in the format that its name ends with.
func main() {
	formats := map[string]cyclonedx.BOMFileFormat{
		"l": cyclonedx.BOMFileFormatXML, "n": cyclonedx.BOMFileFormatJSON,
	}
	format := func(name string) cyclonedx.BOMFileFormat { return formats[name[len(name)-1:]] }
	from, to := os.Args[1], os.Args[2]
	input, err := os.Open(from)
	check(err)
	bom := new(cyclonedx.BOM)
	check(cyclonedx.NewBOMDecoder(input, format(from)).Decode(bom))
	// Encode takes these from the format that was read.
	bom.BOMFormat, bom.XMLNS = "CycloneDX", "http://cyclonedx.org/schema/bom/1.6"
	output, err := os.Create(to)
	check(err)
	check(cyclonedx.NewBOMEncoder(output, format(to)).Encode(bom))
	check(output.Close())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
GO
cat > compare.py <<'PYTHON'
import json
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.xml import XmlValidator


def leaves(value, path=""):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, path)
    else:
        yield path, str(value)


def properties(name):
    components = json.loads(Path(name).read_text())["components"]
    return {leaf for one in components for leaf in leaves(one["cryptoProperties"], one["bom-ref"])}


for lost in sorted(properties("python.json") - properties("go.json")):
    print("only in Python:", *lost)
for lost in sorted(properties("go.json") - properties("python.json")):
    print("only in Go:", *lost)
valid = XmlValidator(SchemaVersion.V1_6).validate_str(Path("go.xml").read_text()) is None
print("Go's XML is", "valid" if valid else "not valid")
PYTHON
venv/bin/python by_python.py
go build -o reader .
./reader inventory.xml go.json
./reader python.json go.xml
venv/bin/python compare.py | tee seen
diff seen - <<'EXPECTED'
only in Python: certificate.certificateProperties.signatureAlgorithmRef rsa
only in Python: certificate.certificateProperties.subjectPublicKeyRef key
only in Python: key.relatedCryptoMaterialProperties.algorithmRef rsa
only in Python: key.relatedCryptoMaterialProperties.securedBy.algorithmRef rsa
only in Python: tls.protocolProperties.cipherSuites.algorithms rsa
only in Python: tls.protocolProperties.cipherSuites.identifiers 0x00
only in Python: tls.protocolProperties.cipherSuites.identifiers 0x9C
only in Python: tls.protocolProperties.cipherSuites.name TLS_RSA_WITH_AES_128_GCM_SHA256
only in Python: tls.protocolProperties.cryptoRefArray rsa
Go's XML is not valid
EXPECTED
