#!/usr/bin/env bash
# sslyze says that a Go server with TLS 1.2 does not resume sessions by ticket, and OpenSSL's client resumes them.
#
# crypto/tls of Go offers session tickets (RFC 5077) unless `SessionTicketsDisabled` is set, and resumes by ticket alone:
# it keeps no session ids. An expert expects `tls_ticket_resumption` of sslyze to be supported. sslyze reports no
# resumption at all, and a look at a server that trusts it advises to switch on what is on.
#
# Seen with sslyze 6.3.1 (nassl 5.4.0, PyPI), Go 1.26 and OpenSSL 3.0:
#   sslyze: session id NOT_SUPPORTED, ticket NOT_SUPPORTED
#   s_client -reconnect: 5 of 5 reconnections are "Reused"
# Needs Go 1.21 or later, openssl and python3. Ends with 0 while all of it is so.
set -euo pipefail
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check sslyze==6.3.1
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 2 -subj /CN=localhost 2> /dev/null
cat > main.go <<'GO'
package main

import (
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	os.Stdout.Sync()
	server := http.Server{
		TLSConfig: &tls.Config{MaxVersion: tls.VersionTLS12},
		ErrorLog:  log.New(os.NewFile(0, os.DevNull), "", 0),
	}
	log.Fatal(server.ServeTLS(listener, "certificate.pem", "key.pem"))
}
GO
go mod init server > /dev/null 2>&1
go build -o server main.go
./server > port 2> log &
server=$!
for _ in $(seq 50); do [ -s port ] && break || sleep 0.1; done
port=$(cat port)
venv/bin/python -m sslyze --resum --json_out=seen.json "localhost:$port" > /dev/null
cat > found.py <<'PYTHON'
import json

result = json.load(open("seen.json"))["server_scan_results"][0]["scan_result"]["session_resumption"]["result"]
by_id, by_ticket = result["session_id_resumption_result"], result["tls_ticket_resumption_result"]
print(f"sslyze: session id {by_id}, ticket {by_ticket}")
PYTHON
python3 found.py | tee seen
reused=$(openssl s_client -connect "127.0.0.1:$port" -tls1_2 -reconnect < /dev/null 2> /dev/null | grep -c '^Reused') || true
echo "s_client -reconnect: $reused of 5 are reused" | tee -a seen
diff seen - <<'EXPECTED'
sslyze: session id NOT_SUPPORTED, ticket NOT_SUPPORTED
s_client -reconnect: 5 of 5 are reused
EXPECTED
