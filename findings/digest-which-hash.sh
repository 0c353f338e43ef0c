#!/usr/bin/env bash
# Five clients of HTTP Digest answer one and the same server with three different hashes.
#
# A server lists its challenges in its order of preference, and RFC 7616 (section 3.7) asks the client to answer the
# first one that it can. The RFC's example offers SHA-256, then MD5, with qop="auth, auth-int". An expert expects
# SHA-256 and `auth` of every client, and that a client without SHA-512-256 takes the next of the list.
#
# Seen with requests 2.34.2, httpx 0.28.1 and aiohttp 3.14.5 (PyPI), digest-fetch 3.1.1 (npm), icholy/digest 1.2.0 (Go):
#   SHA-256, MD5: httpx, aiohttp and Go answer SHA-256; requests answers the last of the list, digest-fetch takes MD5
#   MD5, SHA-256: requests answers SHA-256, the other four MD5
#   SHA-512-256, SHA-256, MD5: Go answers SHA-512-256, requests and digest-fetch MD5; httpx and aiohttp raise an error
#   aiohttp alone takes `auth-int`, which hashes the whole body of each request as well
# A cost that was measured with one client does not hold for the next, although server and offer are the same.
# Needs Python with pip, Node 20 or later with npm, and Go 1.24 or later. Ends with 0 while all of it is so.
set -euo pipefail
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export GOPATH=$folder/go GOFLAGS=-mod=mod
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check requests==2.34.2 httpx==0.28.1 aiohttp==3.14.5
npm install --silent --no-audit --no-fund digest-fetch@3.1.1
cat > server.py <<'PYTHON'
import hashlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import parse_http_list, parse_keqv_list

HASHES = {"MD5": "md5", "SHA-256": "sha256", "SHA-512-256": "sha512_256"}


class Server(BaseHTTPRequestHandler):
    def do_GET(self):
        _, offer, client = self.path.split("/")
        answer = self.headers.get("Authorization")
        self.send_response(200 if answer else 401)
        for name in () if answer else offer.split(","):
            self.send_header(
                "WWW-Authenticate",
                f'Digest realm="test", qop="auth, auth-int", algorithm={name}, nonce="n", opaque="o"',
            )
        self.send_header("Content-Length", "0")
        self.end_headers()
        if answer:
            said = parse_keqv_list(parse_http_list(answer.removeprefix("Digest ")))
            right = "right" if self.expected(said) == said["response"] else "wrong"
            print(offer, client, said["algorithm"], said["qop"], right, flush=True)

    def expected(self, said):
        def digest(*parts):
            return hashlib.new(HASHES[said["algorithm"]], ":".join(parts).encode()).hexdigest()

        request = ["GET", said["uri"]] + ([digest("")] if said["qop"] == "auth-int" else [])
        middle = [said[name] for name in ("nonce", "nc", "cnonce", "qop")]
        return digest(digest("user", said["realm"], "password"), *middle, digest(*request))

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
print(server.server_port, flush=True)
server.serve_forever()
PYTHON
cat > clients.py <<'PYTHON'
import asyncio
import sys

import aiohttp
import httpx
import requests

USER = "user", "password"


async def by_aiohttp(url):
    async with aiohttp.ClientSession(middlewares=(aiohttp.DigestAuthMiddleware(*USER),)) as session:
        async with session.get(url):
            pass


clients = {
    "requests": lambda url: requests.get(url, auth=requests.auth.HTTPDigestAuth(*USER)),
    "httpx": lambda url: httpx.get(url, auth=httpx.DigestAuth(*USER)),
    "aiohttp": lambda url: asyncio.run(by_aiohttp(url)),
}
for name, client in clients.items():
    try:
        client(f"{sys.argv[1]}/{name}")
    except (KeyError, aiohttp.ClientError) as error:
        print(sys.argv[1].rsplit("/", 1)[1], name, type(error).__name__)
PYTHON
cat > client.mjs <<'JAVASCRIPT'
import DigestClient from "digest-fetch";

await new DigestClient("user", "password").fetch(`${process.argv[2]}/digest-fetch`);
JAVASCRIPT
printf 'module client\n\ngo 1.24\n\nrequire github.com/icholy/digest v1.2.0\n' > go.mod
cat > client.go <<'GO'
package main

import (
	"net/http"
	"os"

	"github.com/icholy/digest"
)

func main() {
	client := http.Client{Transport: &digest.Transport{Username: "user", Password: "password"}}
	if _, err := client.Get(os.Args[1] + "/go"); err != nil {
		panic(err)
	}
}
GO
go build -o client .
venv/bin/python server.py > seen & server=$!
until [ -s seen ]; do sleep 0.1; done
port=$(head -1 seen)
for offer in SHA-256,MD5 MD5,SHA-256 SHA-512-256,SHA-256,MD5; do
  address=http://127.0.0.1:$port/$offer
  venv/bin/python clients.py "$address" >> errors
  node client.mjs "$address"
  ./client "$address"
done
tail -n +2 seen | cat - errors | sort | tee all
sort <<'EXPECTED' | diff - all
SHA-256,MD5 requests MD5 auth right
SHA-256,MD5 httpx SHA-256 auth right
SHA-256,MD5 aiohttp SHA-256 auth-int right
SHA-256,MD5 digest-fetch MD5 auth right
SHA-256,MD5 go SHA-256 auth right
MD5,SHA-256 requests SHA-256 auth right
MD5,SHA-256 httpx MD5 auth right
MD5,SHA-256 aiohttp MD5 auth-int right
MD5,SHA-256 digest-fetch MD5 auth right
MD5,SHA-256 go MD5 auth right
SHA-512-256,SHA-256,MD5 requests MD5 auth right
SHA-512-256,SHA-256,MD5 httpx KeyError
SHA-512-256,SHA-256,MD5 aiohttp ClientError
SHA-512-256,SHA-256,MD5 digest-fetch MD5 auth right
SHA-512-256,SHA-256,MD5 go SHA-512-256 auth right
EXPECTED
