//! An answer, parsed in whatever pieces it arrives: heads by httparse, bodies counted and not kept.

use super::head::{self, Body, LONGEST_HEAD, Progress};
use super::page::Site;
use crate::failure::{self, Fault};

/// Expected properties of an answer.
#[derive(Debug, Clone)]
pub struct Expected {
    pub status: u16,
    pub bytes: Option<u64>,
    pub body: Option<Vec<u8>>,
    /// True for an answer to HEAD, which has no body, whatever its head declares.
    pub to_head: bool,
    /// True if the exchange reads the answer's head. The head of an unexpected status is always kept.
    pub keeps_head: bool,
    /// Bytes of the body's beginning that the exchange reads; 0: none.
    pub kept_body_bytes: usize,
}

impl Expected {
    pub fn of(site: &Site) -> Expected {
        Expected {
            status: site.expect.status,
            bytes: site.expect.bytes,
            body: site.expect.body.as_ref().map(|body| body.clone().into_bytes()),
            to_head: site.page.method.eq_ignore_ascii_case("HEAD"),
            keeps_head: false,
            kept_body_bytes: 0,
        }
    }
}

#[derive(Debug, Default)]
pub struct Response {
    body: Body,
    pub status: u16,
    /// Bytes of the body so far.
    pub bytes: u64,
    /// True if the server will answer on this connection again.
    pub keeps: bool,
    /// Offset at which the body differs from the expected one.
    differs_at: Option<u64>,
    /// Head so far, if it arrived in pieces. Empty for most answers of a connection.
    spilled: Vec<u8>,
    /// Complete head, if it is kept.
    head: Vec<u8>,
    /// Beginning of the body of an unexpected status, in which servers explain it.
    said: Vec<u8>,
    /// Beginning of the body, if the exchange reads it.
    kept_body: Vec<u8>,
}

/// Bytes that are kept of an error page, more than its markup before the first sentence.
const KEPT_PAGE_BYTES: usize = 1024;
/// Characters of it that a reason quotes.
const QUOTED_CHARACTERS: usize = 160;

#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// All bytes were taken, and more are to come.
    More,
    /// The answer is complete, and had this number of the bytes.
    Whole(usize),
}

impl Response {
    /// Prepares for the next answer.
    #[inline]
    pub fn begin(&mut self) {
        self.body = Body::Head;
        self.head.clear();
        self.said.clear();
        self.kept_body.clear();
        (self.status, self.bytes, self.differs_at) = (0, 0, None);
        if !self.spilled.is_empty() {
            // Free the memory, because few of ten thousand connections are in the middle of a head.
            self.spilled = Vec::new();
        }
    }

    /// Takes the next bytes that arrived.
    pub fn take(&mut self, came: &[u8], expected: &Expected) -> Result<Taken, Fault> {
        let mut at = 0;
        // Each iteration except the last takes at least one byte, or moves to a later part.
        loop {
            let rest = &came[at..];
            match self.body {
                Body::Head => match self.take_head(rest, expected)? {
                    None => return Ok(Taken::More),
                    Some(length) => at += length,
                },
                Body::Counted(left) => {
                    let length = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    self.take_body(&rest[..length], expected);
                    at += length;
                    match left - length as u64 {
                        0 => self.body = Body::Whole,
                        left => {
                            self.body = Body::Counted(left);
                            return Ok(Taken::More);
                        }
                    }
                }
                Body::Chunked(mut chunked) => match chunked.take(rest)? {
                    Progress::More => {
                        self.body = Body::Chunked(chunked);
                        return Ok(Taken::More);
                    }
                    Progress::Data { from, to } => {
                        self.take_body(&rest[from..to], expected);
                        self.body = Body::Chunked(chunked);
                        at += to;
                    }
                    Progress::Whole(length) => {
                        self.body = Body::Whole;
                        at += length;
                    }
                },
                Body::UntilClosed => {
                    self.take_body(rest, expected);
                    return Ok(Taken::More);
                }
                Body::Whole => return Ok(Taken::Whole(at)),
            }
        }
    }

    /// Ends the answer with its connection: it is complete, or cut off.
    pub fn end(&mut self) -> Result<(), Fault> {
        let words = match self.body {
            Body::Whole => return Ok(()),
            Body::UntilClosed => {
                self.body = Body::Whole;
                return Ok(());
            }
            Body::Head if self.spilled.is_empty() => {
                "the connection ended before the answer began".to_owned()
            }
            Body::Head => format!("the connection ended {} bytes into the answer's head", self.spilled.len()),
            Body::Counted(left) => format!(
                "the connection ended after {} of {} bytes of the body",
                self.bytes,
                self.bytes.saturating_add(left)
            ),
            Body::Chunked(_) => {
                format!("the connection ended after {} bytes of a body in chunks", self.bytes)
            }
        };
        Err(Fault::new(failure::CLOSED_EARLY, words))
    }

    /// Returns the fault of a complete answer that is not the expected one.
    #[inline]
    pub fn check(&self, expected: &Expected) -> Result<(), Fault> {
        if self.status != expected.status {
            let mut words = format!("expected status {}, got {}", expected.status, self.status);
            let said = text_of(&self.said);
            if !said.is_empty() {
                words.push_str(&format!(": {said}"));
            }
            return Err(Fault::new(failure::WRONG_STATUS, words));
        }
        if let Some(bytes) = expected.bytes
            && bytes != self.bytes
        {
            let words = format!("expected {bytes} bytes, got {}", self.bytes);
            return Err(Fault::new(failure::WRONG_LENGTH, words));
        }
        let Some(body) = &expected.body else { return Ok(()) };
        let differs_at = self.differs_at.or((self.bytes != body.len() as u64).then_some(self.bytes));
        match differs_at {
            None => Ok(()),
            Some(at) => {
                let words =
                    format!("the body of {} bytes is not the expected one from byte {at} on", self.bytes);
                Err(Fault::new(failure::WRONG_BODY, words))
            }
        }
    }

    /// Returns the value of a header, if the head was kept (`Expected::keeps_head`).
    pub fn header<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.headers(name).next()
    }

    /// Returns the values of all headers of a name.
    pub fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        // Each line is decoded by itself, because a line that is not text must not hide the others.
        let lines = self.head.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        let headers = lines.filter_map(|line| line.split_once(':'));
        headers.filter(move |(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// Returns the beginning of an unexpected status's body.
    pub fn said(&self) -> &[u8] {
        &self.said
    }

    /// Returns the beginning of the body, if it was kept (`Expected::kept_body_bytes`).
    pub fn kept_body(&self) -> &[u8] {
        &self.kept_body
    }

    /// Counts bytes of the body, and compares them with the expected one.
    #[inline]
    fn take_body(&mut self, came: &[u8], expected: &Expected) {
        if let Some(body) = &expected.body
            && self.differs_at.is_none()
        {
            let rest = usize::try_from(self.bytes).ok().and_then(|at| body.get(at..)).unwrap_or_default();
            let same = came.iter().zip(rest).take_while(|(came, wanted)| came == wanted).count();
            if same < came.len() {
                self.differs_at = Some(self.bytes + same as u64);
            }
        }
        if self.status != expected.status {
            let room = KEPT_PAGE_BYTES.saturating_sub(self.said.len());
            self.said.extend_from_slice(&came[..came.len().min(room)]);
        }
        let room = expected.kept_body_bytes.saturating_sub(self.kept_body.len());
        self.kept_body.extend_from_slice(&came[..came.len().min(room)]);
        self.bytes += came.len() as u64;
    }

    /// Parses the head if it is complete. Returns the number of these bytes that belong to it.
    fn take_head(&mut self, came: &[u8], expected: &Expected) -> Result<Option<usize>, Fault> {
        let before = self.spilled.len();
        let parsed = if before == 0 {
            head::parse(came, expected.to_head)?
        } else {
            self.spill(came);
            head::parse(&self.spilled, expected.to_head)?
        };
        let Some(head) = parsed else {
            if before == 0 {
                self.spill(came);
            }
            return Ok(None);
        };
        let spilled = std::mem::take(&mut self.spilled);
        if expected.keeps_head || head.status != expected.status {
            let whole = if before == 0 { came } else { &spilled };
            self.head.clear();
            self.head.extend_from_slice(&whole[..head.length]);
        }
        (self.status, self.keeps, self.body) = (head.status, head.keeps, head.body);
        Ok(Some(head.length - before))
    }

    fn spill(&mut self, came: &[u8]) {
        // A single byte over the limit is enough to detect a head that is too long.
        self.spilled.extend_from_slice(&came[..came.len().min(LONGEST_HEAD + 1 - self.spilled.len())]);
    }
}

/// Returns the visible text of a page's beginning on one line, without its markup and head; empty if it is
/// not text.
pub fn text_of(page: &[u8]) -> String {
    let page = String::from_utf8_lossy(page);
    let body = page.split_once("</head>").map_or(page.as_ref(), |(_, body)| body);
    let mut text = String::new();
    for (at, piece) in body.split('<').enumerate() {
        // The part before the first `<` is not an element.
        text.push(' ');
        text.push_str(if at == 0 { piece } else { piece.split_once('>').map_or("", |(_, after)| after) });
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().any(|character| character.is_control() || character == char::REPLACEMENT_CHARACTER) {
        return String::new();
    }
    match text.char_indices().nth(QUOTED_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reason quotes the visible text of a server's page, and no other bytes.
    #[test]
    fn a_page_is_quoted_without_its_markup() {
        let nginx = "<html>\r\n<head><title>400 Too Large</title></head>\r\n<body>\r\n<h1>400 Bad\tRequest</h1><hr>\
                     <center>nginx</center>";
        for (page, text) in [
            (nginx, "400 Bad Request nginx"),
            ("wrong password\n", "wrong password"),
            ("a < b", "a"),
            ("<p>half an ele<men", "half an ele"),
            ("\u{1}\u{2}", ""),
            ("", ""),
        ] {
            assert_eq!(text, text_of(page.as_bytes()), "{page}");
        }
        assert_eq!("", text_of(&[0xFF, 0xFE]));
        assert_eq!(format!("{}…", "ä".repeat(QUOTED_CHARACTERS)), text_of("ä".repeat(300).as_bytes()));
    }

    #[test]
    fn a_header_that_is_no_text_hides_no_other() {
        let expected = Expected {
            status: 200,
            bytes: None,
            body: None,
            to_head: false,
            keeps_head: true,
            kept_body_bytes: 0,
        };
        let mut response = Response::default();
        response.begin();
        let head =
            b"HTTP/1.1 200 OK\r\nX-One: 1\r\nX-Bytes: \xFF\xFE\r\nX-Two: 2\r\nContent-Length: 0\r\n\r\n";
        response.take(head, &expected).unwrap();
        assert_eq!(
            [Some("1"), None, Some("2")],
            ["X-One", "X-Bytes", "X-Two"].map(|name| response.header(name))
        );
    }

    /// The beginning of a page is kept for an unexpected status, however it arrives, and not for the expected
    /// one.
    #[test]
    fn a_wrong_status_is_said_with_its_page() {
        let expected = Expected {
            status: 200,
            bytes: None,
            body: None,
            to_head: false,
            keeps_head: false,
            kept_body_bytes: 0,
        };
        let check = |status: &str, page: &str| {
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{page}", page.len());
            let mut response = Response::default();
            response.begin();
            for byte in answer.as_bytes() {
                response.take(&[*byte], &expected).unwrap();
            }
            assert!(response.said.len() <= KEPT_PAGE_BYTES);
            (response.check(&expected).map_err(|fault| fault.words), response.said.len())
        };
        let said = "expected status 200, got 401: no such user";
        assert_eq!(Err(said.to_owned()), check("401 Unauthorized", "<p>no such <b>user</b>").0);
        assert_eq!(Err("expected status 200, got 500".to_owned()), check("500 Oh", "").0);
        assert_eq!(KEPT_PAGE_BYTES, check("500 Oh", &"x".repeat(5000)).1);
        assert_eq!((Ok(()), 0), check("200 OK", "page"));
    }
}
