//! Requests as bytes, built once: sending one copies nothing and formats at most sixteen digits.

use super::task::{ConnectionReuse, Load};

#[derive(Clone, Debug)]
pub struct Prebuilt {
    bytes: Vec<u8>,
    /// Where the sixteen digits of a unique query stand.
    unique_at: Option<usize>,
}

impl Prebuilt {
    pub fn new(load: &Load, path: &str) -> Prebuilt {
        let request = &load.request;
        let mut bytes = format!("{} {path}", request.method).into_bytes();
        let mut unique_at = None;
        if request.unique_query {
            bytes.extend(if path.contains('?') { b"&u=" } else { b"?u=" });
            unique_at = Some(bytes.len());
            bytes.extend([b'0'; 16]);
        }
        bytes.extend(format!(" HTTP/1.1\r\nHost: {}\r\n", load.host).as_bytes());
        if load.connection == ConnectionReuse::New {
            bytes.extend(b"Connection: close\r\n");
        }
        for (name, value) in &request.headers {
            bytes.extend(format!("{name}: {value}\r\n").as_bytes());
        }
        if let Some(body) = &request.body {
            bytes.extend(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        bytes.extend(b"\r\n");
        bytes.extend(request.body.as_deref().unwrap_or_default().as_bytes());
        Prebuilt { bytes, unique_at }
    }

    /// The bytes with this query. Users share them, so each writes its own query again before it sends on.
    #[inline]
    pub fn with(&mut self, unique: u64) -> &[u8] {
        if let Some(at) = self.unique_at {
            for (place, digit) in self.bytes[at..at + 16].iter_mut().enumerate() {
                *digit = b"0123456789abcdef"[(unique >> (60 - 4 * place)) as usize & 15];
            }
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(connection: &str, request: &str) -> Load {
        let text = format!(
            r#"{{"address":"127.0.0.1:1","host":"localhost","clients":[],"users":1,
                "connection":"{connection}","request":{request}}}"#
        );
        serde_json::from_str(&text).expect("a load")
    }

    /// What is sent, to the letter.
    #[test]
    fn a_request_reads_as_it_should() {
        let kept = load("user", r#"{"paths":["/a"],"headers":[["X-One","1"],["Accept","a, b"]]}"#);
        assert_eq!(
            "GET /a HTTP/1.1\r\nHost: localhost\r\nX-One: 1\r\nAccept: a, b\r\n\r\n",
            String::from_utf8_lossy(Prebuilt::new(&kept, "/a").with(1))
        );
        let posted = load("new", r#"{"method":"POST","paths":["/a"],"body":"four"}"#);
        assert_eq!(
            "POST /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfour",
            String::from_utf8_lossy(Prebuilt::new(&posted, "/a").with(1))
        );
    }

    /// A unique query joins the path's own, and is written anew each time.
    #[test]
    fn a_unique_query_is_written_in_its_place() {
        let unique = load("user", r#"{"paths":["/a"],"unique_query":true}"#);
        let mut request = Prebuilt::new(&unique, "/a");
        assert!(request.with(u64::MAX).starts_with(b"GET /a?u=ffffffffffffffff HTTP/1.1\r\n"));
        assert!(request.with(0x12).starts_with(b"GET /a?u=0000000000000012 HTTP/1.1\r\n"));
        let mut request = Prebuilt::new(&unique, "/a?b=c");
        assert!(request.with(0x12).starts_with(b"GET /a?b=c&u=0000000000000012 HTTP/1.1\r\n"));
    }
}
