//! The head of an answer: its status, and where its body ends. Chunked bodies are parsed byte by byte in the
//! framing and in whole pieces in the data.

use crate::failure::{self, Fault};

/// Limit of a head, more than any server sends; a longer one is not HTTP.
pub const LONGEST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 64;

/// State of an answer's body, which determines its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Body {
    #[default]
    Head,
    /// Bytes of the body that are still to come.
    Counted(u64),
    Chunked(Chunked),
    /// A body that ends with its connection.
    UntilClosed,
    Whole,
}

/// A complete head.
pub struct Head {
    /// Length in bytes.
    pub length: usize,
    pub status: u16,
    /// True if the server will answer on this connection again.
    pub keeps: bool,
    pub body: Body,
}

/// Parses the head of an answer. Returns None until it is complete. An answer to HEAD has no body, whatever
/// its head declares.
pub fn parse(bytes: &[u8], to_head: bool) -> Result<Option<Head>, Fault> {
    let mut headers = [const { std::mem::MaybeUninit::uninit() }; MOST_HEADERS];
    let mut answer = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut answer,
        bytes,
        &mut headers,
    );
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) if length <= LONGEST_HEAD => length,
        Ok(httparse::Status::Partial) if bytes.len() <= LONGEST_HEAD => return Ok(None),
        Ok(_) => return Err(not_http(format!("the head has more than {LONGEST_HEAD} bytes"))),
        Err(error) => return Err(not_http(format!("{error}, in {}", excerpt(bytes)))),
    };
    let status = answer.code.unwrap_or(0);
    let framing = Framing::of(answer.headers)?;
    let body = match status {
        // An interim answer precedes the final one; 101 is final, although it is never requested.
        100 | 102..=199 => Body::Head,
        101 | 204 | 304 => Body::Whole,
        _ if to_head => Body::Whole,
        _ => match framing {
            Framing { chunked: true, .. } => Body::Chunked(Chunked::default()),
            Framing { coded: false, length: Some(length), .. } => Body::Counted(length),
            _ => Body::UntilClosed,
        },
    };
    let keeps = framing.keep_alive.unwrap_or(answer.version == Some(1)) && body != Body::UntilClosed;
    Ok(Some(Head { length, status, keeps, body }))
}

/// Facts in an answer's headers about the end of its body and of its connection.
#[derive(Default)]
struct Framing {
    length: Option<u64>,
    /// True if a transfer coding was named: a Content-Length then means nothing.
    coded: bool,
    chunked: bool,
    keep_alive: Option<bool>,
}

impl Framing {
    fn of(headers: &[httparse::Header<'_>]) -> Result<Framing, Fault> {
        let mut framing = Framing::default();
        for header in headers {
            // The length is compared first: most headers are not one of the three, and every one pays for
            // this.
            match header.name.len() {
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    let length = number(header.value);
                    if length.is_none() || framing.length.is_some_and(|before| length != Some(before)) {
                        let value = excerpt(header.value);
                        return Err(not_http(format!("the Content-Length {value} is not a number of bytes")));
                    }
                    framing.length = length;
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    framing.coded = true;
                    framing.chunked = last_word(header.value).eq_ignore_ascii_case(b"chunked");
                }
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    for word in header.value.split(|byte| *byte == b',') {
                        match word.trim_ascii() {
                            word if word.eq_ignore_ascii_case(b"close") => framing.keep_alive = Some(false),
                            word if word.eq_ignore_ascii_case(b"keep-alive") => {
                                framing.keep_alive.get_or_insert(true);
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(framing)
    }
}

fn number(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    // A length that does not fit into 64 bits could never be read.
    if digits { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

fn last_word(text: &[u8]) -> &[u8] {
    text.rsplit(|byte| *byte == b',').next().unwrap_or_default().trim_ascii()
}

/// Returns the beginning of the bytes in printable form.
fn excerpt(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes[..bytes.len().min(40)].escape_ascii())
}

fn not_http(words: String) -> Fault {
    Fault::new(failure::NOT_HTTP, words)
}

/// State of a chunked body's framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chunked {
    place: Place,
    /// Bytes of this chunk still to come, or its size so far.
    left: u64,
    /// Bytes of this size line, or of the trailer.
    line: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Size,
    Extension,
    SizeEnd,
    Data,
    DataReturn,
    DataEnd,
    TrailerStart,
    Trailer,
    TrailerEnd,
    LastEnd,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything was framing, and more is to come.
    More,
    /// A range of data; the bytes after it were not parsed.
    Data { from: usize, to: usize },
    /// End of the body, after this number of bytes.
    Whole(usize),
}

/// Limit of a size line with its extension, or of a whole trailer.
const LONGEST_LINE: u16 = 8 << 10;

impl Chunked {
    pub fn take(&mut self, came: &[u8]) -> Result<Progress, Fault> {
        let mut at = 0;
        while at < came.len() {
            if self.place == Place::Data {
                let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(came.len() - at);
                self.left -= length as u64;
                if self.left == 0 {
                    self.place = Place::DataReturn;
                }
                return Ok(Progress::Data { from: at, to: at + length });
            }
            let byte = came[at];
            at += 1;
            if self.frame(byte)? {
                return Ok(Progress::Whole(at));
            }
        }
        Ok(Progress::More)
    }

    /// Parses one byte of framing. Returns true after the last byte of the body.
    fn frame(&mut self, byte: u8) -> Result<bool, Fault> {
        self.line += 1;
        if self.line > LONGEST_LINE {
            return Err(Fault::new(failure::NOT_HTTP, "a chunk's size line or trailer without end"));
        }
        self.place = match (self.place, byte) {
            (Place::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).unwrap_or_default();
                match self.left.checked_mul(16) {
                    Some(size) => self.left = size + u64::from(digit),
                    None => return Err(wrong("a chunk is too large", byte)),
                }
                Place::Size
            }
            // The first byte of a line must be a digit.
            (Place::Size, b'\r') if self.line > 1 => Place::SizeEnd,
            (Place::Size, b';' | b' ' | b'\t') if self.line > 1 => Place::Extension,
            (Place::Extension, b'\r') => Place::SizeEnd,
            (Place::Extension, b'\n') => return Err(wrong("a chunk's size", byte)),
            (Place::Extension, _) => Place::Extension,
            (Place::SizeEnd, b'\n') => {
                self.line = 0;
                if self.left > 0 { Place::Data } else { Place::TrailerStart }
            }
            (Place::DataReturn, b'\r') => Place::DataEnd,
            (Place::DataEnd, b'\n') => {
                self.line = 0;
                Place::Size
            }
            (Place::TrailerStart, b'\r') => Place::LastEnd,
            (Place::Trailer, b'\r') => Place::TrailerEnd,
            (Place::TrailerStart | Place::Trailer, b'\n') => return Err(wrong("a trailer", byte)),
            (Place::TrailerStart | Place::Trailer, _) => Place::Trailer,
            (Place::TrailerEnd, b'\n') => Place::TrailerStart,
            (Place::LastEnd, b'\n') => return Ok(true),
            (Place::DataReturn | Place::DataEnd, _) => {
                return Err(wrong("the end of a chunk", byte));
            }
            (Place::TrailerEnd | Place::LastEnd, _) => return Err(wrong("a trailer", byte)),
            (Place::Size | Place::SizeEnd | Place::Data, _) => return Err(wrong("a chunk's size", byte)),
        };
        Ok(false)
    }
}

fn wrong(place: &str, byte: u8) -> Fault {
    Fault::new(failure::NOT_HTTP, format!("\"{}\" in {place}", byte.escape_ascii()))
}
