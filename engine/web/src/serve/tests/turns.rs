//! Reads per wait of the event loop: equal without and with TLS.

use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use serde_json::json;
use tollbar_testing::certificate;

use super::super::connection::{Connection, Next};
use super::super::operations::Operations;
use super::super::routes::Service;
use super::get;
use crate::calls;
use crate::http::request::MOST_HEAD_BYTES;
use crate::tls::{Client, Server, Stream};

struct Pair {
    client: Stream,
    server: Connection,
    service: Service,
    scratch: Vec<u8>,
}

impl Pair {
    fn of(client: Stream, server: Stream) -> Pair {
        let operations = Operations::prepare(&[]).expect("no operations");
        let service = Service::new(operations, None, None);
        Pair { client, server: Connection::new(server, 0), service, scratch: vec![0; 2 * MOST_HEAD_BYTES] }
    }

    /// Lets the server have its turn. Returns the event it waits for next, and its number of reads.
    fn turn(&mut self) -> (Next, u64) {
        calls::tallied();
        let next = self.server.advance(&mut self.scratch, &mut self.service, 0);
        (next, calls::tallied().remove("stream read").unwrap_or_default())
    }

    fn send(&mut self, bytes: &str) {
        assert_eq!(bytes.len(), self.client.write(bytes.as_bytes()).expect("room"));
        self.client.flush().expect("room");
    }
}

fn sockets() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a pair of sockets")
}

/// Makes connections before their handshake: one without TLS, and one of each library and version.
fn pairs() -> Vec<(String, Pair)> {
    let (near, far) = sockets();
    let mut pairs = vec![("in clear".to_owned(), Pair::of(Stream::plain(near), Stream::plain(far)))];
    let certificate = certificate("ecdsa-p256");
    let identity = json!({"chain_pem": certificate.chain_pem, "key_pem": certificate.key_pem});
    for library in ["rustls", "libssl"] {
        for protocol in ["tls-1.2", "tls-1.3"] {
            let spec = json!({"library": library, "protocol": protocol, "key_exchange": "x25519",
                "cipher": "aes-128-gcm"});
            let mut server = spec.clone();
            server["identities"] = json!([identity]);
            let client = Client::new(&serde_json::from_value(spec).expect("a client")).expect("a client");
            let server = Server::new(&serde_json::from_value(server).expect("a server")).expect("a server");
            let (near, far) = sockets();
            let near = client.open(near).expect("a client's connection");
            let far = server.accept(far).expect("a server's connection");
            pairs.push((format!("{library}, {protocol}"), Pair::of(near, far)));
        }
    }
    pairs
}

#[test]
fn an_answer_is_followed_by_a_wait_in_clear_and_under_tls() {
    for (name, mut pair) in pairs() {
        // The handshake does not look for a request before one is reported.
        while pair.client.handshake().is_err() {
            assert_eq!((Next::Read, 0), pair.turn(), "{name}");
        }
        assert_eq!(Next::Read, pair.turn().0, "{name}");
        for _ in 0..3 {
            pair.send(&get("/bytes/4096"));
            assert_eq!((Next::Read, 1), pair.turn(), "{name}");
        }
        // Several records in the socket take one turn.
        (0..3).for_each(|_| pair.send(&get("/bytes/5")));
        let (next, reads) = pair.turn();
        assert!(next == Next::Read && reads <= 3, "{name}: {reads} reads");
    }
}
