//! TLS of a user's own server: both versions, its own preferences, sessions resumed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use super::server::GOOD;
use super::{Advance, load, trial};
use crate::failure::Failure;
use crate::load::task::Load;
use crate::load::verify::verify;

const CHAIN: &str = include_str!("../../../../testing/src/fixtures/ecdsa-p256.pem");
const KEY: &str = include_str!("../../../../testing/src/fixtures/ecdsa-p256.key.pem");

/// Starts a server with rustls' own defaults, in these versions, which answers every path equally.
fn server(versions: &[&'static rustls::SupportedProtocolVersion]) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = CertificateDer::pem_slice_iter(CHAIN.as_bytes()).collect::<Result<Vec<_>, _>>();
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).expect("a key");
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .expect("these versions")
        .with_no_client_auth()
        .with_single_cert(chain.expect("a chain"), key)
        .expect("an identity");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            thread::spawn(move || {
                let connection = ServerConnection::new(config).expect("a connection");
                let mut stream = StreamOwned::new(connection, socket);
                let (mut came, mut buffer) = (Vec::new(), [0; 1024]);
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    came.extend_from_slice(&buffer[..count]);
                    if came.ends_with(b"\r\n\r\n") {
                        came.clear();
                        let _ = stream.write_all(GOOD.as_bytes()).and_then(|()| stream.flush());
                    }
                }
            });
        }
    });
    address
}

/// Returns the load of `--url`: it sets the version, and nothing else.
fn asking(address: SocketAddr, protocol: &str, change: serde_json::Value) -> Load {
    let tls = json!({"protocol": protocol, "key_exchange": null, "cipher": null, "signer": null,
        "name": "localhost"});
    let mut fields = json!({"clients": [{"share": 100, "tls": tls}], "connection": "new"});
    if let (Some(fields), Some(change)) = (fields.as_object_mut(), change.as_object()) {
        fields.extend(change.clone());
    }
    load(address, fields)
}

/// A user's own server need not have the lab's configuration. The requested version is negotiated, the client
/// refuses another certificate, and refusals that were not tried are reported with a reason.
#[test]
fn both_versions_of_a_users_own_server() {
    let address = server(rustls::ALL_VERSIONS);
    for (protocol, name) in [("tls-1.2", "TLS 1.2"), ("tls-1.3", "TLS 1.3")] {
        let load = asking(address, protocol, json!({}));
        let proof = verify(&load).expect("a proof");
        assert_eq!("status 200 and 5 bytes", proof.accepted[0]);
        assert!(proof.accepted[1].starts_with(&format!("negotiated {name}, ")), "{:?}", proof.accepted);
        assert_eq!(vec!["a server whose certificate is not the one expected"], proof.refused);
        let expected = [
            "a path that is not there",
            "a request in clear text",
            "a client that speaks another version of TLS only",
            "a client that offers another key exchange only",
            "a client that takes certificates of another kind only",
            "a session that was offered again",
        ];
        let expected = expected.map(|what| format!("{what}: the server is the user's own, and may"));
        assert_eq!(expected.to_vec(), proof.not_tried);

        let mut trial = trial(&load);
        let chunk = trial.advance(Advance { seconds: 0.0, operations: 5 }).expect("a chunk");
        assert!(chunk.observed.bill.components.is_empty() && chunk.cpu_ns > 0);
        assert_eq!(
            (chunk.operations, 0),
            (chunk.observed.counts.handshakes_full, chunk.observed.counts.handshakes_resumed)
        );
        let shown = CertificateDer::from_pem_slice(CHAIN.as_bytes()).expect("a certificate").len() as u64;
        assert_eq!(Some(chunk.operations * shown), chunk.observed.certificate_bytes);
        let negotiated = trial.end(Vec::new()).expect("a record").negotiated;
        assert_eq!((1, name), (negotiated.len(), negotiated[0].negotiated.version.as_str()));
        assert_eq!(chunk.operations, negotiated[0].count);
    }
}

/// The lab's own server must have its configuration.
#[test]
fn both_versions_of_a_component() {
    let web = json!({"components": {"web": std::process::id()}});
    let load = asking(server(rustls::ALL_VERSIONS), "tls-1.3", web);
    let load = Load { expect: serde_json::from_value(json!({"status": 200})).expect("an answer"), ..load };
    let Err(Failure::Failed(words)) = verify(&load) else { panic!("a proof") };
    assert_eq!("not refused: a path that is not there", words);
}

/// A version that a user's own server does not offer is a finding, for the lab's own server a failure. The
/// finding names the version that the server negotiates by itself, and the client's reason.
#[test]
fn a_version_that_is_not_offered() {
    let (tls12, tls13) = (&rustls::version::TLS12, &rustls::version::TLS13);
    for (offered, by_itself, protocol, asked) in
        [(tls12, "TLS 1.2", "tls-1.3", "TLS 1.3"), (tls13, "TLS 1.3", "tls-1.2", "TLS 1.2")]
    {
        let address = server(&[offered]);
        let Err(Failure::Unsupported(words)) = verify(&asking(address, protocol, json!({}))) else {
            panic!("a finding")
        };
        let expected = format!("not offered: {asked}; the server negotiates {by_itself} by itself (");
        assert!(words.starts_with(&expected), "{words}");
        let is_lab = json!({"is_lab": true});
        assert!(matches!(verify(&asking(address, protocol, is_lab)), Err(Failure::Failed(_))));
    }
}

/// A server with an account of its CPU time can still be a user's own.
#[test]
fn a_users_own_server_with_an_account() {
    let web = json!({"is_lab": false, "components": {"web": std::process::id()}});
    let load = asking(server(rustls::ALL_VERSIONS), "tls-1.2", web);
    assert_eq!(6, verify(&load).expect("a proof").not_tried.len());
    let chunk = trial(&load).advance(Advance { seconds: 0.0, operations: 5 }).expect("a chunk");
    assert!(chunk.observed.bill.components["web"].cpu_ns > 0);
}
