//! Requests as bytes, built once: sending one formats at most sixteen digits and copies the headers of a
//! sign-in.

use std::ops::Range;

use super::page::Site;
use super::request::TELL_USER;

/// Parts of a request other than the site's headers.
#[derive(Clone, Copy, Debug)]
pub struct Outline<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub body: Option<&'a str>,
    /// True if its answer is the last one of a connection that ends.
    pub is_last: bool,
    /// True if the answer must name the user that the server saw.
    pub tells_user: bool,
}

impl<'a> Outline<'a> {
    /// Outlines a page of the site, as the last request for it.
    pub fn page(site: &'a Site, path: &'a str) -> Outline<'a> {
        let body = site.page.body.as_deref();
        Outline { method: &site.page.method, path, body, is_last: true, tells_user: false }
    }
}

#[derive(Clone, Debug)]
pub struct Prebuilt {
    bytes: Vec<u8>,
    target: Range<usize>,
    /// Offset of the sixteen digits of a unique query.
    unique_at: Option<usize>,
    /// Offset of an operation's own headers.
    headers_at: usize,
    /// Bytes after them: the end of the head, and the body.
    tail: Vec<u8>,
}

impl Prebuilt {
    pub fn new(site: &Site, outline: &Outline<'_>) -> Prebuilt {
        let Outline { method, path, body, is_last, tells_user } = outline;
        let mut bytes = format!("{method} {path}").into_bytes();
        let mut unique_at = None;
        if site.page.unique_query {
            bytes.extend(if path.contains('?') { b"&u=" } else { b"?u=" });
            unique_at = Some(bytes.len());
            bytes.extend([b'0'; 16]);
        }
        let target = method.len() + 1..bytes.len();
        bytes.extend(format!(" HTTP/1.1\r\nHost: {}\r\n", site.host).as_bytes());
        if *is_last && site.closes {
            bytes.extend(b"Connection: close\r\n");
        }
        if *tells_user {
            bytes.extend(format!("{TELL_USER}: yes\r\n").as_bytes());
        }
        for (name, value) in &site.page.headers {
            bytes.extend(format!("{name}: {value}\r\n").as_bytes());
        }
        if let Some(body) = body {
            bytes.extend(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        let headers_at = bytes.len();
        let tail = [b"\r\n", body.unwrap_or_default().as_bytes()].concat();
        bytes.extend(&tail);
        Prebuilt { bytes, target, unique_at, headers_at, tail }
    }

    /// Returns the target with this query.
    #[inline]
    pub fn target(&mut self, unique: u64) -> &[u8] {
        if let Some(at) = self.unique_at {
            put_digits(unique, &mut self.bytes[at..at + 16]);
        }
        &self.bytes[self.target.clone()]
    }

    /// Returns the bytes with this query and these headers, each with the end of its line. Users share them,
    /// so that each writes its own again before it sends.
    #[inline]
    pub fn with(&mut self, unique: u64, headers: &[u8]) -> &[u8] {
        self.target(unique);
        if !headers.is_empty() {
            self.bytes.truncate(self.headers_at);
            self.bytes.extend_from_slice(headers);
            self.bytes.extend_from_slice(&self.tail);
        }
        &self.bytes
    }
}

/// Writes sixteen hexadecimal digits.
#[inline]
pub fn put_digits(number: u64, into: &mut [u8]) {
    for (place, digit) in into.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(number >> (60 - 4 * place)) as usize & 15];
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::Expectation;
    use super::*;

    fn site(closes: bool, page: &str) -> Site {
        let page = serde_json::from_str(page).expect("a page");
        Site { host: "localhost".to_owned(), page, expect: Expectation::default(), closes, is_secure: true }
    }

    fn page(site: &Site, path: &str) -> Prebuilt {
        Prebuilt::new(site, &Outline::page(site, path))
    }

    /// The bytes are compared exactly.
    #[test]
    fn a_request_reads_as_it_should() {
        let kept = site(false, r#"{"paths":["/a"],"headers":[["X-One","1"],["Accept","a, b"]]}"#);
        assert_eq!(
            "GET /a HTTP/1.1\r\nHost: localhost\r\nX-One: 1\r\nAccept: a, b\r\n\r\n",
            String::from_utf8_lossy(page(&kept, "/a").with(1, b""))
        );
        let posted = site(true, r#"{"method":"POST","paths":["/a"],"body":"four"}"#);
        assert_eq!(
            "POST /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfour",
            String::from_utf8_lossy(page(&posted, "/a").with(1, b""))
        );
    }

    /// A unique query follows the path's own, and is written each time.
    #[test]
    fn a_unique_query_is_written_in_its_place() {
        let unique = site(false, r#"{"paths":["/a"],"unique_query":true}"#);
        let mut request = page(&unique, "/a");
        assert!(request.with(u64::MAX, b"").starts_with(b"GET /a?u=ffffffffffffffff HTTP/1.1\r\n"));
        assert!(request.with(0x12, b"").starts_with(b"GET /a?u=0000000000000012 HTTP/1.1\r\n"));
        let mut request = page(&unique, "/a?b=c");
        assert!(request.with(0x12, b"").starts_with(b"GET /a?b=c&u=0000000000000012 HTTP/1.1\r\n"));
    }

    /// Headers of a sign-in follow those of the load, whatever their length was before. A request that is not
    /// the last one leaves the connection open.
    #[test]
    fn headers_are_written_in_their_place() {
        let posted = site(true, r#"{"method":"POST","paths":["/a"],"headers":[["X","1"]],"body":"four"}"#);
        let mut request = Prebuilt::new(&posted, &Outline { is_last: false, ..Outline::page(&posted, "/a") });
        for headers in ["A: long\r\nB: x\r\n", "A: b\r\n", "A: longer\r\n"] {
            assert_eq!(
                format!(
                    "POST /a HTTP/1.1\r\nHost: localhost\r\nX: 1\r\nContent-Length: 4\r\n{headers}\r\nfour"
                ),
                String::from_utf8_lossy(request.with(1, headers.as_bytes()))
            );
        }
    }
}
