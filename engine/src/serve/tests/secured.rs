//! The same answers under TLS, by whichever library speaks it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::{Served, get, refused};
use crate::tls::{Client, ClientSpec, Stream};

const CHAIN: &str = include_str!("../../tls/fixtures/ecdsa-p256.pem");
const KEY: &str = include_str!("../../tls/fixtures/ecdsa-p256.key.pem");
const RSA_CHAIN: &str = include_str!("../../tls/fixtures/rsa-2048.pem");
const RSA_KEY: &str = include_str!("../../tls/fixtures/rsa-2048.key.pem");

/// Protocol, key exchange, cipher, certificate, library.
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

/// A server of each kind that this machine can be, and how clients configure to it.
fn each(test: impl Fn(&Served, &Value)) {
    let mut served_kinds = 0;
    for kind in KINDS {
        let config = json!({"listen": "127.0.0.1:0", "tls": spec(kind)});
        // A system without libssl serves what rustls speaks, and says so of the rest.
        if kind.4 != "rustls" && !has_libssl() {
            let (status, line, _) = refused(&config.to_string());
            assert_eq!(Some(3), status.code(), "{line}");
            continue;
        }
        let served = Served::start(&config, None);
        let library = served.listening["tls"].as_str().unwrap();
        assert_eq!(kind.4 == "rustls", library.starts_with("rustls"), "{library}");
        test(
            &served,
            &json!({"protocol": kind.0, "key_exchange": kind.1, "cipher": kind.2, "signer": kind.3}),
        );
        served_kinds += 1;
    }
    assert!(served_kinds >= 3);
}

fn has_libssl() -> bool {
    let spec: ClientSpec = serde_json::from_value(json!({"library": "libssl"})).unwrap();
    Client::new(&spec).is_ok()
}

/// A client that waits.
struct Secured(Stream);

impl Secured {
    fn new(served: &Served, spec: &Value) -> Secured {
        let spec: ClientSpec = serde_json::from_value(spec.clone()).unwrap();
        let Ok(client) = Client::new(&spec) else { panic!("no client for {spec:?}") };
        let socket = TcpStream::connect(served.address).unwrap();
        socket.set_nonblocking(true).unwrap();
        let Ok(stream) = client.open(OwnedFd::from(socket)) else { panic!("no connection for {spec:?}") };
        let mut secured = Secured(stream);
        secured.waiting(Stream::handshake).unwrap();
        secured
    }

    fn waiting<T>(&mut self, mut step: impl FnMut(&mut Stream) -> io::Result<T>) -> io::Result<T> {
        loop {
            match step(&mut self.0) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let events = if self.0.wants_write() { PollFlags::OUT } else { PollFlags::IN };
                    let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
                    assert_eq!(
                        Ok(1),
                        poll(&mut [PollFd::new(&self.0, events)], Some(&limit)),
                        "nothing came"
                    );
                }
                outcome => return outcome,
            }
        }
    }

    /// Each piece in a record of its own.
    fn send(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while !rest.is_empty() {
            let count = self.waiting(|stream| stream.write(rest)).unwrap();
            rest = &rest[count..];
        }
        self.waiting(Stream::flush).unwrap();
    }

    fn read_exactly(&mut self, count: usize) -> Vec<u8> {
        let mut all = vec![0; count];
        let mut length = 0;
        while length < count {
            match self.waiting(|stream| stream.read(&mut all[length..])).unwrap() {
                0 => panic!("the end after {length} of {count} bytes"),
                read => length += read,
            }
        }
        all
    }

    fn body(&mut self) -> Vec<u8> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(self.read_exactly(1));
        }
        let head = String::from_utf8(head).unwrap();
        let length = super::header(&head, "Content-Length").unwrap().parse().unwrap();
        self.read_exactly(length)
    }
}

#[test]
fn bodies_of_every_length_come_whole() {
    let plain = Served::plain().ask("/bytes/3000000").body;
    each(|served, spec| {
        let mut client = Secured::new(served, spec);
        for length in [0, 1, 4096, 16_000, 16_384, 100_000, 3_000_000, 5] {
            client.send(get(&format!("/bytes/{length}")).as_bytes());
            assert_eq!(plain[..length], client.body(), "{spec}");
        }
    });
}

#[test]
fn requests_in_any_records_are_all_answered() {
    each(|served, spec| {
        let mut client = Secured::new(served, spec);
        let all: String = (0..2000).map(|length| get(&format!("/bytes/{length}"))).collect();
        // Many records in one segment, and many requests in one record: what TLS has taken from the socket
        // must be answered without anything more coming.
        for piece in [37, 16_384] {
            let (sent, expected) = if piece == 37 { (&all[..20_000], 300) } else { (&all[..], 2000) };
            let whole = sent.rfind("GET ").filter(|_| piece == 37).unwrap_or(sent.len());
            let requests = sent[..whole].matches("GET ").count();
            assert!(requests >= expected, "{requests}");
            for part in sent.as_bytes()[..whole].chunks(piece) {
                client.send(part);
            }
            for length in 0..requests {
                assert_eq!(length, client.body().len(), "{spec}");
            }
        }
    });
}

#[test]
fn a_client_that_reads_late_gets_it_whole() {
    let plain = Served::plain().ask("/bytes/8000000").body;
    each(|served, spec| {
        let mut client = Secured::new(served, spec);
        client.send((get("/bytes/8000000") + &get("/bytes/7")).as_bytes());
        std::thread::sleep(std::time::Duration::from_millis(50));
        // Meanwhile another client is served.
        let mut other = Secured::new(served, spec);
        other.send(get("/bytes/3").as_bytes());
        assert_eq!(plain[..3], other.body());
        assert_eq!(plain, client.body(), "{spec}");
        assert_eq!(plain[..7], client.body(), "{spec}");
    });
}

#[test]
fn the_end_is_said() {
    each(|served, spec| {
        let mut client = Secured::new(served, spec);
        client.send(b"GET /bytes/9 HTTP/1.0\r\n\r\n");
        assert_eq!(9, client.body().len());
        // Without a farewell the library would call it a fault.
        assert_eq!(0, client.waiting(|stream| stream.read(&mut [0; 10])).unwrap(), "{spec}");
    });
}

#[test]
fn whoever_does_not_speak_tls_is_let_go() {
    each(|served, spec| {
        for words in [get("/bytes/4096").as_bytes(), &[0x16, 3, 1, 0xff, 0xff, 1], &[0; 4000]] {
            let mut socket = TcpStream::connect(served.address).unwrap();
            socket.set_read_timeout(Some(super::PATIENCE)).unwrap();
            let _ = socket.write_all(words);
            let _ = socket.shutdown(std::net::Shutdown::Write);
            // An alert or nothing, then the end; and no page.
            let mut said = Vec::new();
            let _ = socket.read_to_end(&mut said);
            assert!(said.len() < 100, "{spec}");
        }
        let mut client = Secured::new(served, spec);
        client.send(get("/bytes/5").as_bytes());
        assert_eq!(5, client.body().len());
    });
}

#[test]
fn tls_that_cannot_be_spoken_is_refused() {
    let kind = ("tls-1.2", "rsa", "aes-128-cbc", "rsa", "rustls");
    let (status, line, _) = refused(&json!({"listen": "127.0.0.1:0", "tls": spec(&kind)}).to_string());
    let record: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((Some(3), Some("unsupported")), (status.code(), record["outcome"].as_str()), "{line}");
}
