//! The signed parts of a request, the lifetime of a signature, and the parser of its headers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::sign_in::accounts::is_name;

/// Signed components of a request. `@path` excludes the query (RFC 9421, 2.2.6 and 2.2.7).
pub const COVERED: &str = r#"("@method" "@authority" "@path" "@query")"#;
/// Lifetime of a signature in seconds.
pub const FRESH_S: u64 = 300;
/// Tolerance for a user's clock that is ahead of the server's.
pub const AHEAD_S: u64 = 5;

/// Writes the signature base into a buffer (RFC 9421, 2.5). A target without a query has an empty one.
pub fn put_base(base: &mut Vec<u8>, method: &[u8], authority: &[u8], target: &[u8], parameters: &[u8]) {
    let query_at = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
    let (path, query) = target.split_at(query_at);
    let query = if query.is_empty() { b"?" } else { query };
    base.clear();
    for (name, value) in [("method", method), ("authority", authority), ("path", path), ("query", query)] {
        base.extend_from_slice(b"\"@");
        base.extend_from_slice(name.as_bytes());
        base.extend_from_slice(b"\": ");
        base.extend_from_slice(value);
        base.push(b'\n');
    }
    base.extend_from_slice(b"\"@signature-params\": ");
    base.extend_from_slice(parameters);
}

/// A `Signature-Input` with one signature.
#[derive(Debug, PartialEq, Eq)]
pub struct Signed<'a> {
    pub created_s: u64,
    pub name: &'a str,
    /// Covered components and parameters, signed as they were sent.
    pub parameters: &'a [u8],
}

impl<'a> Signed<'a> {
    /// Parses the header. Returns None if it is not of this scheme, or does not cover the required
    /// components.
    pub fn parse(header: &'a [u8]) -> Option<Signed<'a>> {
        let parameters = of_label(header)?;
        let (mut created_s, mut name, mut algorithm, mut nonce) = (None, None, None, None);
        let mut rest = parameters.strip_prefix(COVERED.as_bytes())?;
        while !rest.is_empty() {
            rest = rest.strip_prefix(b";")?;
            let end = rest.iter().position(|byte| *byte == b';').unwrap_or(rest.len());
            let parameter = std::str::from_utf8(&rest[..end]).ok()?;
            rest = &rest[end..];
            let (word, value) = parameter.split_once('=')?;
            // No value of the clients here needs an escape or contains a semicolon.
            let quoted =
                || value.strip_prefix('"')?.strip_suffix('"').filter(|text| !text.contains(['"', '\\']));
            match word {
                "created" if value.len() <= 10 && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                    created_s = value.parse().ok();
                }
                "keyid" => name = quoted(),
                "alg" => algorithm = quoted(),
                "nonce" => nonce = quoted(),
                _ => return None,
            }
        }
        nonce.filter(|nonce| !nonce.is_empty())?;
        algorithm.filter(|algorithm| *algorithm == "hmac-sha256")?;
        let name = name.filter(|name| is_name(name.as_bytes()))?;
        Some(Signed { created_s: created_s?, name, parameters })
    }
}

/// Returns the text after the label `sig`.
pub fn of_label(header: &[u8]) -> Option<&[u8]> {
    header.trim_ascii().strip_prefix(b"sig=")
}

/// Decodes a byte sequence of a structured field (RFC 8941, 3.3.5).
pub fn byte_sequence(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode(text.strip_prefix(b":")?.strip_suffix(b":")?).ok()
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::hmac;

    use super::*;
    use crate::sign_in::tests::any_bytes;

    const PARAMETERS: &str = r#"("@method" "@authority" "@path" "@query");created=1618884473;keyid="u00001";alg="hmac-sha256";nonce="n""#;

    /// Expected values were computed by Python's `hmac` over the text of RFC 9421's form.
    #[test]
    fn a_request_is_signed_as_in_the_standard() {
        for (target, query, expected) in [
            ("/bytes/100?u=01", "?u=01", "QBW8FaJVGQK9UoTkm+ca1LUy+TzsUoq0ACCEAgwpZdk="),
            ("/bytes/100", "?", "0/fLe34/t/4TR/lJJztil39C0HAafNRcgzy+8stfDZ8="),
        ] {
            let mut base = Vec::new();
            put_base(&mut base, b"GET", b"localhost", target.as_bytes(), PARAMETERS.as_bytes());
            let text = format!(
                "\"@method\": GET\n\"@authority\": localhost\n\"@path\": /bytes/100\n\"@query\": {query}\n\
                 \"@signature-params\": {PARAMETERS}"
            );
            assert_eq!(text, String::from_utf8_lossy(&base));
            let key = hmac::Key::new(hmac::HMAC_SHA256, b"key");
            assert_eq!(expected, STANDARD.encode(hmac::sign(&key, &base)));
        }
    }

    #[test]
    fn a_signature_is_understood() {
        let header = format!("sig={PARAMETERS}");
        let parse = |header: &str| Signed::parse(header.as_bytes()).map(|signed| signed.name.to_owned());
        assert_eq!(Some("u00001".to_owned()), parse(&header));
        for (from, to) in [
            ("sig=", "other="),
            ("\"@path\" ", ""),
            ("=1618884473", "=+1618884473"),
            ("=1618884473", "=99999999999"),
            ("created=1618884473;", ""),
            ("keyid=\"u00001\";", ""),
            ("\"u00001\"", "u00001"),
            ("\"u00001\"", "\"\""),
            ("hmac-sha256", "rsa-pss-sha512"),
            ("nonce=\"n\"", "nonce=\"\""),
            (";nonce=\"n\"", ""),
            ("nonce", "tag"),
        ] {
            assert_eq!(None, parse(&header.replace(from, to)), "{from} {to}");
        }
    }

    #[test]
    fn any_header_is_taken() {
        let covered = COVERED.as_bytes();
        const PIECES: &[&[u8]] = &[
            b"sig=",
            b";created=1",
            b";keyid=\"u\"",
            b";alg=\"hmac-sha256\"",
            b";nonce=\"n\"",
            b"\"",
            b":",
            b"=",
        ];
        for bytes in any_bytes(PIECES) {
            Signed::parse(&[b"sig=".as_slice(), covered, &bytes].concat());
            Signed::parse(&bytes);
            of_label(&bytes).and_then(byte_sequence);
        }
    }
}
