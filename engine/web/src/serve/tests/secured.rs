//! Equal answers with and without TLS, by each library.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt;
use serde_json::{Value, json};

use super::{Served, get, refused};
use crate::tls::{Client, ClientSpec};

const CHAIN: &str = include_str!("../../../../testing/src/fixtures/ecdsa-p256.pem");
const KEY: &str = include_str!("../../../../testing/src/fixtures/ecdsa-p256.key.pem");
const RSA_CHAIN: &str = include_str!("../../../../testing/src/fixtures/rsa-2048.pem");
const RSA_KEY: &str = include_str!("../../../../testing/src/fixtures/rsa-2048.key.pem");

/// Rows of protocol, key exchange, cipher, certificate, library.
const KINDS: &[(&str, &str, &str, &str, &str)] = &[
    ("tls-1.3", "x25519", "aes-128-gcm", "ecdsa", "rustls"),
    ("tls-1.3", "x25519mlkem768", "chacha20-poly1305", "rsa", "rustls"),
    ("tls-1.2", "ecdhe-p256", "aes-128-gcm", "rsa", "rustls"),
    ("tls-1.3", "x25519", "aes-128-gcm", "ecdsa", "libssl"),
    ("tls-1.2", "ecdhe-p256", "aes-256-gcm", "ecdsa", "libssl"),
    ("tls-1.2", "rsa", "aes-128-cbc", "rsa", "auto"),
];

fn spec(kind: &(&str, &str, &str, &str, &str)) -> Value {
    let (protocol, key_exchange, cipher, certificate, library) = kind;
    let (chain, key) = if *certificate == "rsa" { (RSA_CHAIN, RSA_KEY) } else { (CHAIN, KEY) };
    json!({"library": library, "protocol": protocol, "key_exchange": key_exchange, "cipher": cipher,
        "identities": [{"chain_pem": chain, "key_pem": key}]})
}

/// Runs a test with a server without TLS, and with one of each kind of TLS that this machine supports.
fn each(test: impl Fn(&Served)) {
    test(&Served::plain());
    each_secured(test);
}

fn each_secured(test: impl Fn(&Served)) {
    let mut served_kinds = 0;
    for kind in KINDS {
        let config = json!({"listen": "127.0.0.1:0", "tls": spec(kind)});
        // A system without libssl serves the kinds that rustls supports, and refuses the others.
        if kind.4 != "rustls" && !has_libssl() {
            let (status, line, _) = refused(&config.to_string());
            assert_eq!(Some(3), status.code(), "{line}");
            continue;
        }
        let mut served = Served::start(&config, None);
        let library = served.listening["tls"].as_str().unwrap();
        assert_eq!(kind.4 == "rustls", library.starts_with("rustls"), "{library}");
        let (protocol, key_exchange, cipher, signer, _) = kind;
        served.spec = Some(
            json!({"protocol": protocol, "key_exchange": key_exchange, "cipher": cipher, "signer": signer}),
        );
        test(&served);
        served_kinds += 1;
    }
    assert!(served_kinds >= 3);
}

fn has_libssl() -> bool {
    let spec: ClientSpec = serde_json::from_value(json!({"library": "libssl"})).unwrap();
    Client::new(&spec).is_ok()
}

#[test]
fn bodies_are_the_same_from_every_server_and_at_every_length() {
    let whole = Served::plain().ask("/bytes/3000000").body;
    each(|served| {
        let mut client = served.client();
        for length in [0, 1, 4096, 16_000, 16_384, 65_536, 65_537, 100_000, 3_000_000, 5] {
            client.send(get(&format!("/bytes/{length}")));
            assert_eq!(whole[..length], client.reply().body, "{:?}", served.spec);
        }
    });
}

#[test]
fn requests_in_any_records_are_answered_in_order() {
    each(|served| {
        let mut client = served.client();
        let all: String = (0..2000).map(|length| get(&format!("/bytes/{length}"))).collect();
        // Many records in one segment, and many requests in one record: bytes that TLS has taken from the
        // socket must be answered without a further event.
        for (piece, requests) in [(37, 300), (16_384, 2000)] {
            let ends = all.match_indices("GET ").map(|(at, _)| at).chain([all.len()]);
            let end = ends.take(requests + 1).last().expect("an end");
            for part in all.as_bytes()[..end].chunks(piece) {
                client.send(part);
            }
            for length in 0..requests {
                assert_eq!(length, client.reply().body.len(), "{:?}", served.spec);
            }
        }
    });
}

#[test]
fn a_slow_reader_gets_it_whole_and_holds_up_no_other() {
    let whole = Served::plain().ask("/bytes/8388608").body;
    each(|served| {
        let mut slow = served.client();
        sockopt::set_socket_recv_buffer_size(&slow.socket, 65536).unwrap();
        slow.send(get("/bytes/1048576") + &get("/bytes/8388608") + &get("/bytes/3"));
        for _ in 0..20 {
            slow.read_more();
            assert_eq!(10, served.ask("/bytes/10").body.len());
            std::thread::sleep(Duration::from_millis(1));
        }
        for length in [1_048_576, 8_388_608, 3] {
            assert_eq!(whole[..length], slow.reply().body, "{:?}", served.spec);
        }
    });
}

#[test]
fn the_end_is_said() {
    each(|served| {
        let mut client = served.client();
        client.send("GET /bytes/9 HTTP/1.0\r\n\r\n");
        assert_eq!(9, client.reply().body.len());
        assert!(client.is_ended(), "{:?}", served.spec);
    });
}

#[test]
fn a_client_that_does_not_speak_tls_is_let_go() {
    each_secured(|served| {
        for words in [get("/bytes/4096").as_bytes(), &[0x16, 3, 1, 0xff, 0xff, 1], &[0; 4000]] {
            let mut socket = TcpStream::connect(served.address).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let _ = socket.write_all(words);
            let _ = socket.shutdown(std::net::Shutdown::Write);
            // The server sends an alert or nothing, and then ends; it sends no page.
            let mut said = Vec::new();
            let _ = socket.read_to_end(&mut said);
            assert!(said.len() < 100, "{:?}", served.spec);
        }
        assert_eq!(5, served.ask("/bytes/5").body.len());
    });
}

#[test]
fn tls_that_cannot_be_spoken_is_refused() {
    let kind = ("tls-1.2", "rsa", "aes-128-cbc", "rsa", "rustls");
    let (status, line, _) = refused(&json!({"listen": "127.0.0.1:0", "tls": spec(&kind)}).to_string());
    let record: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((Some(3), Some("unsupported")), (status.code(), record["outcome"].as_str()), "{line}");
}
