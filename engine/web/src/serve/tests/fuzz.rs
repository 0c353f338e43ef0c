//! Random requests, valid and invalid.

use std::io::{Read, Write};

use rustix::net::{Shutdown, shutdown};

use super::super::routes::route;
use super::{Served, get};
use crate::http::request::{MOST_HEAD_BYTES, parse};
use crate::random;

/// Seeded random numbers, so that a failure can be repeated.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        u64::from_le_bytes(random::filled(8, self.0).try_into().expect("8 bytes"))
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn of<'a>(&mut self, pieces: &[&'a str]) -> &'a str {
        pieces[self.below(pieces.len())]
    }

    /// Returns a request, or bytes that resemble one.
    fn request(&mut self) -> Vec<u8> {
        const METHODS: &[&str] = &["GET", "GET", "GET", "HEAD", "POST", "get", "", "G\0T", "PRI"];
        const TARGETS: &[&str] = &[
            "/",
            "*",
            "/bytes/4096",
            "/bytes/",
            "/bytes/99999999999999999999",
            "/op/digest/sha-256?bytes=16&op=hash",
            "/op/",
            "/op//?",
            "/op/a/b?bytes=&op&=&&",
            "http://x/bytes/1",
            "https://",
            "/é",
            "?",
            "/bytes/1?bytes/2",
        ];
        const ENDS: &[&str] = &["\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r", "", "\r\n\r\n"];
        const HEADERS: &[&str] = &[
            "Host: x",
            "Host: x",
            "Host:",
            "Connection: close",
            "Connection: keep-alive, close",
            "Connection: ,,,",
            "Content-Length: 0",
            "Content-Length: 18446744073709551616",
            "Content-Length: +1",
            "Content-Length:",
            "Transfer-Encoding: chunked",
            ": x",
            "X",
            " folded: x",
            "X: \u{7f}",
            "Range: bytes=0-",
            "Authorization: Basic eDp5",
            "Cookie: a=b",
            "Content-Type: text/plain",
        ];
        let mut text = format!(
            "{} {} {}",
            self.of(METHODS),
            self.of(TARGETS),
            self.of(&["HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/3", ""])
        );
        text += self.of(ENDS);
        for _ in 0..self.below(6) {
            text += self.of(HEADERS);
            text += self.of(ENDS);
        }
        text += self.of(ENDS);
        let mut bytes = text.into_bytes();
        for _ in 0..self.below(8).saturating_sub(5) {
            let (at, byte) = (self.below(bytes.len() + 1), self.next() as u8);
            match self.below(5) {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                2 => bytes.truncate(at),
                3 if at < bytes.len() => drop(bytes.remove(at)),
                _ => {}
            }
        }
        if self.below(200) == 0 {
            let long = self.below(2 * MOST_HEAD_BYTES);
            bytes.extend(std::iter::repeat_n(b'x', long));
        }
        bytes
    }
}

#[test]
fn the_parser_takes_anything() {
    let mut chance = Chance(1 << 32);
    let (mut requests, mut refusals) = (0, 0);
    for _ in 0..300_000 {
        let bytes = chance.request();
        match parse(&bytes) {
            Ok(Some(request)) => {
                requests += 1;
                assert!((1..=bytes.len().min(MOST_HEAD_BYTES)).contains(&request.bytes));
                // Bytes after a request do not change it, and a shortened request is incomplete.
                assert_eq!(Ok(Some(request)), parse(&bytes[..request.bytes]));
                assert!(!matches!(parse(&bytes[..request.bytes - 1]), Ok(Some(_))));
                route(request.target);
            }
            Ok(None) => assert!(bytes.len() < MOST_HEAD_BYTES),
            Err(refused) => {
                refusals += 1;
                assert!(!refused.why.is_empty());
            }
        }
    }
    assert!(requests > 10_000 && refusals > 10_000, "{requests} {refusals}");
}

#[test]
fn bytes_without_any_sense_are_taken_too() {
    let mut chance = Chance(2 << 32);
    for _ in 0..100_000 {
        let length = chance.below(200);
        let bytes: Vec<u8> = (0..length).map(|_| chance.next() as u8).collect();
        assert!(!matches!(parse(&bytes), Ok(Some(_))));
    }
}

#[test]
fn targets_without_any_sense_are_taken() {
    const PIECES: &[&str] =
        &["/", "bytes", "op", "?", "&", "=", "://", "http", "4096", "9", "-", "é", "digest", "%2f", "#", ""];
    let mut chance = Chance(3 << 32);
    for _ in 0..100_000 {
        let target: String = (0..chance.below(12)).map(|_| chance.of(PIECES)).collect();
        route(&target);
    }
}

#[test]
fn the_server_outlives_what_it_is_sent() {
    let served = Served::plain();
    let mut chance = Chance(4 << 32);
    for _ in 0..300 {
        let mut client = served.client();
        for _ in 0..1 + chance.below(4) {
            // The server may have ended the connection already.
            let _ = client.socket.write_all(&chance.request());
        }
        // The client may have closed it first.
        let _ = shutdown(&client.socket, Shutdown::Write);
        // The server may answer or not, but it ends the connection; a reset is an end too.
        if let Err(error) = client.socket.read_to_end(&mut Vec::new()) {
            assert_eq!(std::io::ErrorKind::ConnectionReset, error.kind());
        }
    }
    let mut client = served.client();
    client.send(get("/bytes/5"));
    assert_eq!(5, client.reply().body.len());
}
