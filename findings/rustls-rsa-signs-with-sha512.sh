#!/usr/bin/env bash
# A TLS 1.3 server of rustls with an RSA key signs its handshake with PSS and SHA-512; one of OpenSSL signs with SHA-256.
#
# Both servers have the same key and certificate, and the client (OpenSSL) offers all three digests of RSA-PSS in its
# default order, SHA-256 first. OpenSSL's server follows the order of the client. rustls follows its own, strongest first.
# A comparison of the two by "an RSA handshake" compares two signatures, and a policy that lists digests of signatures
# finds another one where the server's library changes and the certificate does not.
#
# Seen with rustls 0.23.46 (ring) and OpenSSL 3.0.19: "Peer signing digest: SHA512" and "Peer signing digest: SHA256".
# Needs a Rust toolchain (1.71 or later) and `openssl` 3. Ends with 0 while the two differ so.
set -euo pipefail
folder=$(mktemp -d)
servers=()
trap 'for one in "${servers[@]}"; do kill "$one" 2>/dev/null || true; done; rm -rf "$folder"' EXIT
cd "$folder"
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 2 -subj /CN=localhost 2>/dev/null
mkdir src
cat > Cargo.toml <<'TOML'
[package]
name = "server"
version = "0.0.0"
edition = "2021"

[dependencies]
rustls = { version = "=0.23.46", default-features = false, features = ["std", "ring"] }
TOML
cat > src/main.rs <<'RUST'
use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, Stream};

fn main() {
    let certificate = CertificateDer::from_pem_file("certificate.pem").unwrap();
    let key = PrivateKeyDer::from_pem_file("key.pem").unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    for connection in listener.incoming() {
        let mut socket = connection.unwrap();
        let mut tls = ServerConnection::new(config.clone()).unwrap();
        let _ = Stream::new(&mut tls, &mut socket).write_all(b"hello\n");
    }
}
RUST
cargo build --quiet --release
digest() { openssl s_client -connect "127.0.0.1:$1" -tls1_3 </dev/null 2>/dev/null | sed -n 's/^Peer signing digest: //p'; }
./target/release/server >port & servers+=($!)
until [ -s port ]; do sleep 0.1; done
openssl s_server -accept 127.0.0.1:0 -key key.pem -cert certificate.pem -tls1_3 -www >said 2>/dev/null &
servers+=($!)
until other=$(sed -n 's/^ACCEPT .*:\([0-9]*\)$/\1/p' said) && [ -n "$other" ]; do sleep 0.1; done
rustls=$(digest "$(cat port)") openssl=$(digest "$other")
echo "rustls 0.23.46: $rustls; $(openssl version | cut -d' ' -f1,2): $openssl"
[ "$rustls" = SHA512 ] && [ "$openssl" = SHA256 ]
