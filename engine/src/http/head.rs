//! The head of an answer: its status, and where its body ends.

use super::chunked::Chunked;
use crate::fault::{self, Fault};

/// More than any server's head; past it something else is talking.
pub const LONGEST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 64;

/// How far an answer is, and where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Body {
    #[default]
    Head,
    /// So many bytes of the body to come.
    Counted(u64),
    Chunked(Chunked),
    /// A body that ends with its connection.
    UntilClosed,
    Whole,
}

/// A whole head.
pub struct Head {
    /// In bytes.
    pub length: usize,
    pub status: u16,
    /// Whether the server will answer on this connection again.
    pub keeps: bool,
    pub body: Body,
}

/// The head of an answer, once it is whole. An answer to HEAD has no body, whatever its head says.
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
        Ok(_) => return Err(not_http(format!("a head of more than {LONGEST_HEAD} bytes"))),
        Err(error) => return Err(not_http(format!("{error}, in {}", excerpt(bytes)))),
    };
    let status = answer.code.unwrap_or(0);
    let framing = Framing::of(answer.headers)?;
    let body = match status {
        // What comes before the answer proper; 101 is an answer, if never one that was asked for.
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

/// What an answer's headers say of where its body ends and whether its connection does.
#[derive(Default)]
struct Framing {
    length: Option<u64>,
    /// Some transfer coding was named: a length beside it means nothing.
    coded: bool,
    chunked: bool,
    keep_alive: Option<bool>,
}

impl Framing {
    fn of(headers: &[httparse::Header<'_>]) -> Result<Framing, Fault> {
        let mut framing = Framing::default();
        for header in headers {
            // By length first: most headers are none of the three, and this is paid for every one.
            match header.name.len() {
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    let length = number(header.value);
                    if length.is_none() || framing.length.is_some_and(|before| length != Some(before)) {
                        let value = excerpt(header.value);
                        return Err(not_http(format!("a Content-Length of {value}")));
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
    // A length that does not fit is none that could ever be read.
    if digits { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

fn last_word(text: &[u8]) -> &[u8] {
    text.rsplit(|byte| *byte == b',').next().unwrap_or_default().trim_ascii()
}

/// The beginning of what came, fit to be printed.
fn excerpt(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes[..bytes.len().min(40)].escape_ascii())
}

fn not_http(words: String) -> Fault {
    Fault::new(fault::NOT_HTTP, words)
}
