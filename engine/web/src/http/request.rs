//! Requests, parsed from bytes of any client, and facts that their answers depend on.

use std::mem::MaybeUninit;

use httparse::{Error, Header, Status as Parsed};

#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Method {
    Get,
    Head,
    Post,
    Other,
}

/// State of the connection after the answer.
#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Persistence {
    /// Kept, which is the default of HTTP/1.1.
    Kept,
    /// Kept because an HTTP/1.0 client requested it, which the answer must confirm.
    KeptOnRequest,
    Closed,
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Status {
    Done,
    Found,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    HeadersTooLarge,
    OperationFailed,
}

impl Status {
    /// Returns the status as an answer's first line writes it, after the version.
    pub fn line(self) -> &'static str {
        match self {
            Status::Done => "200 OK",
            Status::Found => "302 Found",
            Status::BadRequest => "400 Bad Request",
            Status::Unauthorized => "401 Unauthorized",
            Status::Forbidden => "403 Forbidden",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed",
            Status::HeadersTooLarge => "431 Request Header Fields Too Large",
            Status::OperationFailed => "500 Internal Server Error",
        }
    }
}

/// Limit of a request line and headers; longer ones are refused.
pub const MOST_HEAD_BYTES: usize = 16 * 1024;
/// Header by which a proof requests the user that the server saw.
pub const TELL_USER: &str = "X-Tell-User";
/// Limit of headers, far more than a browser sends.
const MOST_HEADERS: usize = 64;

#[derive(Debug, PartialEq, Clone, Copy)]
pub struct Request<'a> {
    pub method: Method,
    /// Target as it was sent, including the query.
    pub target: &'a str,
    pub persistence: Persistence,
    /// Length of the request in the input.
    pub bytes: usize,
    pub body: Body,
    /// Headers of these names, if they were sent.
    pub host: Option<&'a [u8]>,
    pub authorization: Option<&'a [u8]>,
    pub cookie: Option<&'a [u8]>,
    pub content_type: Option<&'a [u8]>,
    pub signature: Option<&'a [u8]>,
    pub signature_input: Option<&'a [u8]>,
    pub api_key: Option<&'a [u8]>,
    /// True if the answer must name the user that the server saw: proofs request that, measured requests
    /// never do.
    pub tells_user: bool,
    /// Common name in the client's certificate, if the sign-in uses it.
    pub certificate_name: Option<&'a str>,
}

/// Data after a request that are not the next request.
#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Body {
    None,
    /// Body of this number of bytes.
    Counted(usize),
    /// Body in chunks, or longer than any handler would read.
    Endless,
}

/// Reason for a refusal; the connection is closed, because the beginning of the next request is unknown.
#[derive(Debug, PartialEq, Clone, Copy)]
pub struct Refused {
    pub status: Status,
    pub why: &'static str,
}

/// Parses the first request of the input. Returns None if it is incomplete.
pub fn parse(input: &[u8]) -> Result<Option<Request<'_>>, Refused> {
    let mut headers = [const { MaybeUninit::<Header>::uninit() }; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(input, &mut headers) {
        Ok(Parsed::Complete(bytes)) if bytes <= MOST_HEAD_BYTES => {
            let method = match request.method {
                Some("GET") => Method::Get,
                Some("HEAD") => Method::Head,
                Some("POST") => Method::Post,
                _ => Method::Other,
            };
            let target = request.path.unwrap_or_default();
            understand(method, target, bytes, request.headers, request.version == Some(0)).map(Some)
        }
        Ok(Parsed::Partial) if input.len() < MOST_HEAD_BYTES => Ok(None),
        Ok(_) => Err(Refused { status: Status::HeadersTooLarge, why: "the head has more than 16 KiB" }),
        Err(Error::TooManyHeaders) => {
            Err(Refused { status: Status::HeadersTooLarge, why: "more than 64 headers" })
        }
        Err(error) => Err(bad(match error {
            Error::HeaderName => "a header name is not valid",
            Error::HeaderValue => "a header value is not valid",
            Error::NewLine => "a line has no end",
            Error::Token => "the request line is not valid",
            Error::Version => "a version that is neither HTTP/1.0 nor HTTP/1.1",
            _ => "not a request",
        })),
    }
}

fn bad(why: &'static str) -> Refused {
    Refused { status: Status::BadRequest, why }
}

/// Makes a request of its parsed headers.
fn understand<'a>(
    method: Method,
    target: &'a str,
    bytes: usize,
    headers: &[Header<'a>],
    is_1_0: bool,
) -> Result<Request<'a>, Refused> {
    let (mut close, mut keep, mut hosts, mut lengths, mut body) = (false, false, 0, 0, Body::None);
    let [mut host, mut authorization, mut cookie, mut content_type] = [None; 4];
    let [mut signature, mut signature_input, mut api_key] = [None; 3];
    let mut tells_user = false;
    for header in headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        match header.name.len() {
            4 if is("host") => {
                hosts += 1;
                host = Some(header.value);
            }
            // With two credentials, a proxy in front may have checked the other one: neither is used.
            6 if is("cookie") => once(&mut cookie, header, "more than one Cookie")?,
            9 if is("signature") => once(&mut signature, header, "more than one Signature")?,
            9 if is("x-api-key") => once(&mut api_key, header, "more than one X-API-Key")?,
            10 if is("connection") => {
                for word in header.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    close |= word.eq_ignore_ascii_case(b"close");
                    keep |= word.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            11 if is(TELL_USER) => tells_user = true,
            12 if is("content-type") => content_type = Some(header.value),
            13 if is("authorization") => once(&mut authorization, header, "more than one Authorization")?,
            14 if is("content-length") => {
                let length = length(header.value)?;
                lengths += 1;
                // With two lengths, or one together with chunks, the end of the body is unknown.
                if lengths > 1 || body != Body::None {
                    body = Body::Endless;
                } else if length != Body::Counted(0) {
                    body = length;
                }
            }
            15 if is("signature-input") => {
                once(&mut signature_input, header, "more than one Signature-Input")?;
            }
            17 if is("transfer-encoding") => body = Body::Endless,
            _ => {}
        }
    }
    // Exactly one is required (RFC 9112, 3.2).
    if hosts > 1 || (hosts == 0 && !is_1_0) {
        return Err(bad("not exactly one Host"));
    }
    let persistence = match (close, is_1_0, keep) {
        (false, false, _) => Persistence::Kept,
        (false, true, true) => Persistence::KeptOnRequest,
        _ => Persistence::Closed,
    };
    Ok(Request {
        method,
        target,
        persistence,
        bytes,
        body,
        host,
        authorization,
        cookie,
        content_type,
        signature,
        signature_input,
        api_key,
        tells_user,
        certificate_name: None,
    })
}

/// Stores a header that may occur once.
fn once<'a>(taken: &mut Option<&'a [u8]>, header: &Header<'a>, twice: &'static str) -> Result<(), Refused> {
    match taken.replace(header.value) {
        None => Ok(()),
        Some(_) => Err(bad(twice)),
    }
}

fn length(text: &[u8]) -> Result<Body, Refused> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(bad("the Content-Length is not a number"));
    }
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    Ok(number.map_or(Body::Endless, Body::Counted))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two headers of a kind may be meant for two readers, whichever credential they are.
    #[test]
    fn doubled_credentials_are_refused_alike() {
        for name in ["Authorization", "Cookie", "Signature", "Signature-Input", "X-API-Key"] {
            let head = |times: usize| {
                let headers = format!("{name}: x=1\r\n").repeat(times);
                format!("GET / HTTP/1.1\r\nHost: a\r\n{headers}\r\n").into_bytes()
            };
            assert!(parse(&head(1)).is_ok_and(|request| request.is_some()), "{name}");
            let refused = parse(&head(2)).expect_err("two of a kind");
            assert_eq!(
                (Status::BadRequest, format!("more than one {name}")),
                (refused.status, refused.why.to_owned())
            );
        }
    }
}
