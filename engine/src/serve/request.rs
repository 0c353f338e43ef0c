//! Requests, out of bytes that any client may have sent.

use std::mem::MaybeUninit;

use httparse::{Error, Header, Status as Parsed};

use super::http::{Method, Persistence, Status};

/// A request line and headers longer than this are refused.
pub const MOST_HEAD_BYTES: usize = 16 * 1024;
/// More headers than a browser sends, by far.
const MOST_HEADERS: usize = 64;

#[derive(Debug, PartialEq, Clone, Copy)]
pub struct Request<'a> {
    pub method: Method,
    /// As it was sent, query included.
    pub target: &'a str,
    pub persistence: Persistence,
    /// How many bytes of the input it takes.
    pub bytes: usize,
    /// Whether something comes after it that is not a request.
    pub has_body: bool,
}

/// Why a request is not answered as asked; the connection is closed, because where the next one begins is not known.
#[derive(Debug, PartialEq, Clone, Copy)]
pub struct Refused {
    pub status: Status,
    pub why: &'static str,
}

/// The first request of the input; None where more has to come.
pub fn parse(input: &[u8]) -> Result<Option<Request<'_>>, Refused> {
    let mut headers = [const { MaybeUninit::<Header>::uninit() }; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(input, &mut headers) {
        Ok(Parsed::Complete(bytes)) if bytes <= MOST_HEAD_BYTES => {
            let kind = Kind::of(request.headers, request.version == Some(0))?;
            Ok(Some(Request {
                method: match request.method {
                    Some("GET") => Method::Get,
                    Some("HEAD") => Method::Head,
                    _ => Method::Other,
                },
                target: request.path.unwrap_or_default(),
                persistence: kind.persistence,
                bytes,
                has_body: kind.has_body,
            }))
        }
        Ok(Parsed::Partial) if input.len() < MOST_HEAD_BYTES => Ok(None),
        Ok(_) => Err(Refused { status: Status::HeadersTooLarge, why: "a head of more than 16 KiB" }),
        Err(Error::TooManyHeaders) => {
            Err(Refused { status: Status::HeadersTooLarge, why: "more than 64 headers" })
        }
        Err(error) => Err(bad(match error {
            Error::HeaderName => "a header name that is none",
            Error::HeaderValue => "a header value that is none",
            Error::NewLine => "a line that does not end",
            Error::Token => "a request line that is none",
            Error::Version => "a version that is neither HTTP/1.0 nor HTTP/1.1",
            _ => "not a request",
        })),
    }
}

fn bad(why: &'static str) -> Refused {
    Refused { status: Status::BadRequest, why }
}

/// What its headers make of a request.
struct Kind {
    persistence: Persistence,
    has_body: bool,
}

impl Kind {
    fn of(headers: &[Header<'_>], is_1_0: bool) -> Result<Kind, Refused> {
        let (mut close, mut keep, mut hosts, mut has_body) = (false, false, 0, false);
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            match header.name.len() {
                4 if is("host") => hosts += 1,
                10 if is("connection") => {
                    for word in header.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                        close |= word.eq_ignore_ascii_case(b"close");
                        keep |= word.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                14 if is("content-length") => has_body |= !is_zero(header.value)?,
                17 if is("transfer-encoding") => has_body = true,
                _ => {}
            }
        }
        // RFC 9112, 3.2: one, and exactly one.
        if hosts > 1 || (hosts == 0 && !is_1_0) {
            return Err(bad("not exactly one Host"));
        }
        let persistence = match (close, is_1_0, keep) {
            (false, false, _) => Persistence::Kept,
            (false, true, true) => Persistence::KeptOnRequest,
            _ => Persistence::Closed,
        };
        Ok(Kind { persistence, has_body })
    }
}

fn is_zero(length: &[u8]) -> Result<bool, Refused> {
    if length.is_empty() || !length.iter().all(u8::is_ascii_digit) {
        return Err(bad("a Content-Length that is no number"));
    }
    Ok(length.iter().all(|digit| *digit == b'0'))
}
