//! Content of Digest's headers: a challenge, and the credentials that answer it.

use super::hash::{Algorithm, Answered};
use crate::sign_in::accounts::is_name;

/// A server's challenge.
#[derive(Debug, PartialEq, Eq)]
pub struct Challenge<'a> {
    pub realm: &'a str,
    pub nonce: &'a str,
    pub opaque: Option<&'a str>,
    pub is_stale: bool,
}

impl<'a> Challenge<'a> {
    /// Parses a challenge with this algorithm.
    pub fn parse(header: &'a str, wanted: Algorithm) -> Option<Challenge<'a>> {
        let (mut realm, mut nonce, mut opaque, mut is_stale) = (None, None, None, false);
        // MD5 is the default algorithm of a challenge.
        let (mut algorithm, mut has_auth) = (Algorithm::Md5.name(), false);
        for parameter in parameters(of_digest(header.as_bytes())?) {
            let (name, value) = parameter?;
            let value = std::str::from_utf8(value).ok()?;
            match name.to_ascii_lowercase().as_slice() {
                b"realm" => realm = Some(value),
                b"nonce" => nonce = Some(value),
                b"opaque" => opaque = Some(value),
                b"stale" => is_stale = value.eq_ignore_ascii_case("true"),
                b"algorithm" => algorithm = value,
                b"qop" => has_auth = value.split(',').any(|word| word.trim() == "auth"),
                _ => {}
            }
        }
        if !has_auth || !algorithm.eq_ignore_ascii_case(wanted.name()) {
            return None;
        }
        Some(Challenge { realm: realm?, nonce: nonce.filter(|nonce| !nonce.is_empty())?, opaque, is_stale })
    }
}

/// An `Authorization` header of this scheme.
pub struct Credentials<'a> {
    pub name: &'a str,
    pub realm: &'a [u8],
    pub algorithm: &'a [u8],
    pub answered: Answered<'a>,
    pub count: u32,
    pub response: &'a [u8],
}

impl<'a> Credentials<'a> {
    pub fn parse(header: &'a [u8]) -> Option<Credentials<'a>> {
        let [mut name, mut realm, mut nonce, mut uri, mut qop] = [None; 5];
        let [mut count, mut client_nonce, mut response] = [None; 3];
        let mut algorithm = Algorithm::Md5.name().as_bytes();
        for parameter in parameters(of_digest(header)?) {
            let (word, value) = parameter?;
            match word {
                b"username" => name = Some(value),
                b"realm" => realm = Some(value),
                b"nonce" => nonce = Some(value),
                b"uri" => uri = Some(value),
                b"algorithm" => algorithm = value,
                b"qop" => qop = Some(value),
                b"nc" => count = Some(value),
                b"cnonce" => client_nonce = Some(value),
                b"response" => response = Some(value),
                _ => {}
            }
        }
        let (name, text) = (name.filter(|name| is_name(name))?, count.filter(|count| count.len() == 8)?);
        if qop? != b"auth" || !text.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        Some(Credentials {
            name: std::str::from_utf8(name).ok()?,
            realm: realm?,
            algorithm,
            answered: Answered { uri: uri?, nonce: nonce?, count: text, client_nonce: client_nonce? },
            count: u32::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()?,
            response: response?,
        })
    }
}

/// Returns the unquoted parameters of a challenge or of credentials; None for an invalid one.
fn parameters(mut rest: &[u8]) -> impl Iterator<Item = Option<(&[u8], &[u8])>> {
    std::iter::from_fn(move || {
        rest = rest.trim_ascii();
        if rest.is_empty() {
            return None;
        }
        let next = parameter(rest);
        rest = next.map_or(&[], |(.., after)| after);
        Some(next.map(|(name, value, _)| (name, value)))
    })
}

/// Returns the first parameter, and the text after it and its comma.
fn parameter(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let equals = text.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (text[..equals].trim_ascii(), text[equals + 1..].trim_ascii_start());
    let is_token = |text: &[u8]| {
        !text.is_empty() && text.iter().all(|byte| byte.is_ascii_graphic() && !b"\",=".contains(byte))
    };
    let (value, after) = match value.strip_prefix(b"\"") {
        Some(quoted) => {
            // No value of the clients and servers here needs an escape.
            let end = quoted.iter().position(|byte| *byte == b'"' || *byte == b'\\')?;
            if quoted[end] == b'\\' {
                return None;
            }
            (&quoted[..end], quoted[end + 1..].trim_ascii_start())
        }
        None => {
            let end = value.iter().position(|byte| *byte == b',').unwrap_or(value.len());
            let token = value[..end].trim_ascii();
            if !is_token(token) {
                return None;
            }
            (token, &value[end..])
        }
    };
    let after = match after.split_first() {
        None => after,
        Some((b',', after)) => after,
        Some(_) => return None,
    };
    if is_token(name) { Some((name, value, after)) } else { None }
}

/// Returns the text after the word `Digest`, if that is the scheme.
fn of_digest(header: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = header.split_at_checked(b"Digest ".len())?;
    scheme.eq_ignore_ascii_case(b"Digest ").then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign_in::tests::any_bytes;

    #[test]
    fn a_challenge_is_understood() {
        let challenge = |header| Challenge::parse(header, Algorithm::Sha256);
        let plain = r#"Digest realm="a, b", nonce="n=1", qop="auth-int, auth", algorithm=SHA-256"#;
        let expected = Challenge { realm: "a, b", nonce: "n=1", opaque: None, is_stale: false };
        assert_eq!(Some(expected), challenge(plain));
        let other =
            r#"dIGEST  QOP="auth",Realm="",Nonce="n",Opaque="o" , Algorithm="sha-256", stale=TRUE, x=y"#;
        let expected = Challenge { realm: "", nonce: "n", opaque: Some("o"), is_stale: true };
        assert_eq!(Some(expected), challenge(other));
        for wrong in [
            "Basic realm=\"x\"",
            "Digest realm=\"x\", nonce=\"y\", qop=\"auth\"",
            "Digest realm=\"x\", nonce=\"y\", algorithm=SHA-256",
            "Digest realm=\"x\", nonce=\"\", qop=\"auth\", algorithm=SHA-256",
            "Digest realm=\"x, nonce=\"y\", qop=\"auth\", algorithm=SHA-256",
            "Digest realm=\"x\" nonce=\"y\", qop=\"auth\", algorithm=SHA-256",
            "Digest",
            "",
        ] {
            assert_eq!(None, challenge(wrong), "{wrong}");
        }
    }

    /// Credentials must use the offered quality of protection, and a count of eight hexadecimal digits.
    #[test]
    fn credentials_are_of_what_was_offered() {
        let header = |qop: &str, count: &str| {
            format!(
                "Digest username=\"u1\", realm=\"r\", nonce=\"n\", uri=\"/\", algorithm=SHA-256, qop={qop}, nc={count}, \
                 cnonce=\"c\", response=\"r\""
            )
        };
        for (qop, count, expected) in [
            ("auth", "0000001f", Some(31)),
            ("auth-int", "0000001f", None),
            ("auth", "0000001g", None),
            ("auth", "1f", None),
            ("auth", "+000001f", None),
        ] {
            let credentials = header(qop, count);
            let parsed = Credentials::parse(credentials.as_bytes());
            assert_eq!(expected, parsed.map(|credentials| credentials.count), "{qop} {count}");
        }
    }

    #[test]
    fn any_header_is_taken() {
        const PIECES: &[&[u8]] = &[
            b"Digest ",
            b"username=\"u\"",
            b"nc=00000001",
            b"nc=0000000\xff",
            b"qop=auth",
            b",",
            b"=",
            b"\"",
            b"\\",
            b" ",
            b"realm=\"\",nonce=\"\",uri=\"/\",cnonce=\"\",response=\"\",qop=auth",
        ];
        let mut understood = 0;
        for bytes in any_bytes(PIECES) {
            understood += usize::from(Credentials::parse(&bytes).is_some());
            let header = [b"Digest ", bytes.as_slice()].concat();
            understood += usize::from(Credentials::parse(&header).is_some());
            if let Ok(header) = std::str::from_utf8(&header) {
                Challenge::parse(header, Algorithm::Md5);
            }
        }
        assert!(understood > 0);
    }
}
