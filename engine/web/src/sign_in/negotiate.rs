//! Common wire format of Kerberos and NTLM (RFC 4559): tokens in base64, after the name of the scheme.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::failure::{self, Fault};
use crate::http::response::Response;

/// Returns a request header with a token, and the end of its line.
pub fn header(scheme: &str, token: &[u8]) -> Vec<u8> {
    format!("Authorization: {scheme} {}\r\n", STANDARD.encode(token)).into_bytes()
}

/// Returns the token in the head of an answer.
pub fn token(scheme: &str, response: &Response) -> Result<Vec<u8>, Fault> {
    let found = response.headers("WWW-Authenticate").find_map(|value| {
        let (name, token) = value.split_once(' ')?;
        if name.eq_ignore_ascii_case(scheme) { STANDARD.decode(token.trim()).ok() } else { None }
    });
    found.ok_or_else(|| refused(format!("no token of {scheme} in the answer")))
}

/// Makes the fault of a library or a server that does not continue a sign-in.
pub fn refused(words: impl Into<String>) -> Fault {
    Fault::new(failure::SIGN_IN, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::response::Expected;

    fn answer(headers: &str) -> Response {
        let expected = Expected {
            status: 401,
            bytes: None,
            body: None,
            to_head: false,
            keeps_head: true,
            kept_body_bytes: 0,
        };
        let mut response = Response::default();
        let head = format!("HTTP/1.1 401 Unauthorized\r\n{headers}Content-Length: 0\r\n\r\n");
        response.take(head.as_bytes(), &expected).expect("an answer");
        response
    }

    /// A token is found among other challenges, and nothing else is mistaken for one.
    #[test]
    fn a_token_is_found_in_an_answer() {
        for (headers, expected) in [
            ("WWW-Authenticate: Basic realm=\"x\"\r\nwww-authenticate: ntlm AQID\r\n", Some(vec![1, 2, 3])),
            ("WWW-Authenticate: Negotiate AQID\r\nWWW-Authenticate: NTLM BAU=\r\n", Some(vec![4, 5])),
            ("WWW-Authenticate: NTLM\r\n", None),
            ("WWW-Authenticate: NTLM no base64\r\n", None),
            ("", None),
        ] {
            assert_eq!(expected, token("NTLM", &answer(headers)).ok(), "{headers}");
        }
        assert_eq!(b"Authorization: NTLM AQID\r\n".to_vec(), header("NTLM", &[1, 2, 3]));
    }
}
