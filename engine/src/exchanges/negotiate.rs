//! What Kerberos and NTLM have in common on the wire (RFC 4559): tokens in base64, after the name of the scheme.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::load::fault::{self, Fault};
use crate::load::response::Response;

/// A request's header with a token, and the end of its line.
pub fn header(scheme: &str, token: &[u8]) -> Vec<u8> {
    format!("Authorization: {scheme} {}\r\n", STANDARD.encode(token)).into_bytes()
}

/// The token in the head of an answer.
pub fn token(scheme: &str, response: &Response) -> Result<Vec<u8>, Fault> {
    let found = response.headers("WWW-Authenticate").find_map(|value| {
        let (name, token) = value.split_once(' ')?;
        if name.eq_ignore_ascii_case(scheme) { STANDARD.decode(token.trim()).ok() } else { None }
    });
    found.ok_or_else(|| refused(format!("no token of {scheme} in the answer")))
}

/// Somebody's library would not go on.
pub fn refused(words: impl Into<String>) -> Fault {
    Fault::new(fault::SIGN_IN, words)
}
