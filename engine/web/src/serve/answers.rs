//! Answers, each in one piece: head and body are sent in one call, and under TLS in one record if they fit.

use std::io::Write;
use std::ops::Range;

use crate::random;
use crate::sign_in::accounts::LONGEST_NAME;

use crate::http::request::{Persistence, Status};

/// Largest body of `/bytes/N`.
pub const MOST_BYTES: usize = 64 << 20;
/// Room for a head in front of the filler: its fixed part, and the longest name of a user.
const HEAD_ROOM: usize = 256 + LONGEST_NAME;
/// Size of the filler at the start; more is made on first use.
const FIRST_FILLER: usize = 64 << 10;
/// Seed of the filler, which is the same for every server; its value does not matter.
const SEED: u64 = 0x70_11_ba_12;

/// An answer that is ready to be sent.
#[derive(Clone, Copy)]
pub struct Answer<'a> {
    pub whole: &'a [u8],
    /// Offset of the filler in it, which need not be copied to be sent later; its length if it has none.
    pub filler_from: usize,
    /// True if the connection ends with it.
    pub closing: bool,
    /// True if the client's bytes were not read to their end.
    pub unread: bool,
}

/// Buffers in which answers are made.
pub struct Answers {
    text: Vec<u8>,
    /// Room for a head, and the filler right after it.
    filled: Vec<u8>,
    /// Length and persistence of the head in front of the filler, and its offset.
    head: Option<(usize, Persistence, usize)>,
}

impl Answers {
    pub fn new() -> Answers {
        let filled = random::filled(HEAD_ROOM + FIRST_FILLER, SEED);
        Answers { text: Vec::with_capacity(1024), filled, head: None }
    }

    /// Returns a part of the filler.
    pub fn filler(&self, part: Range<usize>) -> &[u8] {
        &self.filled[HEAD_ROOM + part.start..HEAD_ROOM + part.end]
    }

    /// Makes an answer of filler, with the user's name if the server knows it.
    pub fn bytes(
        &mut self,
        bytes: usize,
        user: Option<&str>,
        persistence: Persistence,
        head_only: bool,
    ) -> Answer<'_> {
        let start = match self.head {
            // Most requests repeat the last one, unless the user's name is sent.
            Some((same, also, start)) if user.is_none() && same == bytes && also == persistence => start,
            _ => self.put_head(bytes, user, persistence),
        };
        let end = HEAD_ROOM + if head_only { 0 } else { bytes };
        Answer {
            whole: &self.filled[start..end],
            filler_from: HEAD_ROOM - start,
            closing: persistence == Persistence::Closed,
            unread: false,
        }
    }

    fn put_head(&mut self, bytes: usize, user: Option<&str>, persistence: Persistence) -> usize {
        if self.filled.len() - HEAD_ROOM < bytes {
            // Free the old buffer first, because there may not be room for both.
            self.filled = Vec::new();
            self.filled = random::filled(HEAD_ROOM + bytes.next_power_of_two(), SEED);
        }
        self.text.clear();
        let headers = user.map_or([""; 3], |user| ["X-User: ", user, "\r\n"]);
        put_head(&mut self.text, Status::Done, "application/octet-stream", bytes, &headers, persistence);
        let start = HEAD_ROOM - self.text.len();
        self.filled[start..HEAD_ROOM].copy_from_slice(&self.text);
        self.head = user.is_none().then_some((bytes, persistence, start));
        start
    }

    /// Makes an answer with a short text.
    pub fn text(
        &mut self,
        status: Status,
        body: &str,
        persistence: Persistence,
        head_only: bool,
    ) -> Answer<'_> {
        self.text_with(status, "", body, persistence, head_only)
    }

    /// Makes an answer with a short text and more headers, each with the end of its line.
    pub fn text_with(
        &mut self,
        status: Status,
        headers: &str,
        body: &str,
        persistence: Persistence,
        head_only: bool,
    ) -> Answer<'_> {
        self.text.clear();
        put_head(&mut self.text, status, "text/plain; charset=utf-8", body.len(), &[headers], persistence);
        if !head_only {
            self.text.extend_from_slice(body.as_bytes());
        }
        Answer {
            whole: &self.text,
            filler_from: self.text.len(),
            closing: persistence == Persistence::Closed,
            unread: false,
        }
    }
}

/// Writes a head. It has no `Date`, which a server with a clock should send (RFC 9110, 6.6.1): nothing here
/// is ever cached, and two answers to the same request must be equal.
fn put_head(
    out: &mut Vec<u8>,
    status: Status,
    kind: &str,
    length: usize,
    headers: &[&str],
    persistence: Persistence,
) {
    let connection = match persistence {
        Persistence::Kept => "",
        Persistence::KeptOnRequest => "Connection: keep-alive\r\n",
        Persistence::Closed => "Connection: close\r\n",
    };
    let allow = if status == Status::MethodNotAllowed { "Allow: GET, HEAD\r\n" } else { "" };
    // Writing to memory cannot fail.
    let _ = write!(
        out,
        "HTTP/1.1 {}\r\nServer: tollbar-engine\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}{connection}",
        status.line()
    );
    for part in headers {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}
