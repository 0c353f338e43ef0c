#!/usr/bin/env bash
# Node's TLS 1.3 with a pre-shared key never uses AES-256-GCM, which the same two ends use with a certificate.
#
# A cipher suite of TLS 1.3 has a hash, and a pre-shared key belongs to one hash, SHA-256 if nobody sets another
# (RFC 8446, section 4.2.11). Node's `pskCallback` has no field for the hash. A connection by it can only use a suite
# with SHA-256, which excludes TLS_AES_256_GCM_SHA384, the first in Node's list. An expert expects one suite for both.
#
# Seen with Node 24.11.0 (OpenSSL 3.5.4), server and client in one process, `ciphers` as they come:
#   certificate: TLS_AES_256_GCM_SHA384; pre-shared key: TLS_CHACHA20_POLY1305_SHA256, the second in Node's list
#   `ciphers` with TLS_AES_256_GCM_SHA384 alone: certificate connects; pre-shared key is refused by the server, which
#     looks for a certificate then ("no suitable signature algorithm")
#   TLS 1.2 with PSK-AES256-GCM-SHA384 connects, where the cipher does not depend on the key
# A comparison of key and certificate compares ChaCha20 with AES as well, unless both have TLS_AES_128_GCM_SHA256.
# Needs npm and `openssl` on Linux, and 200 MB for Node. Ends with 0 while all of it is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund node@24.11.0
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out certificate.pem -days 2 \
  -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null
cat > connect.mjs <<'JAVASCRIPT'
import { readFileSync } from "node:fs";
import { once } from "node:events";
import tls from "node:tls";

const psk = Buffer.alloc(32, 1);
const [key, cert] = ["key.pem", "certificate.pem"].map((name) => readFileSync(name));
const ways = {
  certificate: [{ key, cert }, { ca: cert }],
  "pre-shared key": [
    { pskCallback: () => psk },
    { pskCallback: () => ({ psk, identity: "client" }), checkServerIdentity: () => undefined },
  ],
};

async function connect(way, options) {
  const [ofServer, ofClient] = ways[way];
  let answer;
  const server = tls.createServer({ ...ofServer, ...options }, (socket) => socket.end());
  server.on("tlsClientError", (error) => (answer = `server refuses: ${error.code}`));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const client = tls.connect({ host: "127.0.0.1", port: server.address().port, ...ofClient, ...options });
  client.on("secureConnect", () => (answer = `${client.getProtocol()} ${client.getCipher().name}`));
  client.on("error", () => {}); // the server has the reason
  client.resume();
  await new Promise((close) => client.on("close", close));
  await new Promise((close) => server.close(close));
  return answer;
}

const suite = { ciphers: "TLS_AES_256_GCM_SHA384" };
const former = { maxVersion: "TLSv1.2", ciphers: "PSK-AES256-GCM-SHA384" };
console.log("certificate:", await connect("certificate", {}));
console.log("pre-shared key:", await connect("pre-shared key", {}));
console.log("certificate, AES-256-GCM alone:", await connect("certificate", suite));
console.log("pre-shared key, AES-256-GCM alone:", await connect("pre-shared key", suite));
console.log("pre-shared key, TLS 1.2:", await connect("pre-shared key", former));
JAVASCRIPT
node_modules/.bin/node connect.mjs | tee seen
diff seen - <<'EXPECTED'
certificate: TLSv1.3 TLS_AES_256_GCM_SHA384
pre-shared key: TLSv1.3 TLS_CHACHA20_POLY1305_SHA256
certificate, AES-256-GCM alone: TLSv1.3 TLS_AES_256_GCM_SHA384
pre-shared key, AES-256-GCM alone: server refuses: ERR_SSL_NO_SUITABLE_SIGNATURE_ALGORITHM
pre-shared key, TLS 1.2: TLSv1.2 PSK-AES256-GCM-SHA384
EXPECTED
