//! Answers, each in one piece: head and body go out in one call, and under TLS in one record where they fit.

use std::io::Write;
use std::ops::Range;

use crate::random;
use crate::sign_in::accounts::LONGEST_NAME;

use crate::http::request::{Persistence, Status};

/// The longest body of `/bytes/N`.
pub const MOST_BYTES: usize = 64 << 20;
/// Room for a head in front of the filler: what is always said, and the longest name of a user.
const HEAD_ROOM: usize = 256 + LONGEST_NAME;
/// The filler held from the start; more is made when it is first asked for.
const FIRST_FILLER: usize = 64 << 10;
/// Any seed would do; the same bytes come from every server.
const SEED: u64 = 0x70_11_ba_12;

/// An answer ready to be sent.
#[derive(Clone, Copy)]
pub struct Answer<'a> {
    pub whole: &'a [u8],
    /// Where the filler begins in it, which need not be copied to be sent later; the end where it has none.
    pub filler_from: usize,
    /// Whether the connection ends with it.
    pub closing: bool,
    /// Whether what the client sent was not read to its end.
    pub unread: bool,
}

/// The buffers that answers are made in.
pub struct Answers {
    text: Vec<u8>,
    /// Room for a head, and the filler right behind it.
    filled: Vec<u8>,
    /// What the head in front of the filler says, and where it begins.
    head: Option<(usize, Persistence, usize)>,
}

impl Answers {
    pub fn new() -> Answers {
        let filled = random::filled(HEAD_ROOM + FIRST_FILLER, SEED);
        Answers { text: Vec::with_capacity(1024), filled, head: None }
    }

    /// A part of the filler.
    pub fn filler(&self, part: Range<usize>) -> &[u8] {
        &self.filled[HEAD_ROOM + part.start..HEAD_ROOM + part.end]
    }

    /// So many bytes of filler; for this user, if the server knows which one asks.
    pub fn bytes(
        &mut self,
        bytes: usize,
        user: Option<&str>,
        persistence: Persistence,
        head_only: bool,
    ) -> Answer<'_> {
        let start = match self.head {
            // The next request is mostly for the same again, if not of the same user.
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
            // Freed first: there may not be room for both.
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

    /// A few words.
    pub fn text(
        &mut self,
        status: Status,
        body: &str,
        persistence: Persistence,
        head_only: bool,
    ) -> Answer<'_> {
        self.text_with(status, "", body, persistence, head_only)
    }

    /// The same with more headers, each with the end of its line.
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

/// No `Date`: a server with a clock should send one (RFC 9110, 6.6.1), but nothing here is ever cached, and
/// two answers to the same request are to be the same.
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
