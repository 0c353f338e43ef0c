//! What is signed of a request, and how long that is good.

/// What is signed of a request. `@path` is without the query (RFC 9421, 2.2.6 and 2.2.7).
pub const COVERED: &str = r#"("@method" "@authority" "@path" "@query")"#;
/// How long a signature is taken.
pub const FRESH_S: u64 = 300;
/// How far a user's clock may be ahead of the server's.
pub const AHEAD_S: u64 = 5;

/// What is signed, put into a buffer (RFC 9421, 2.5). A target without a query has an empty one.
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

#[cfg(test)]
pub mod tests {
    use aws_lc_rs::hmac;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    pub const PARAMETERS: &str = r#"("@method" "@authority" "@path" "@query");created=1618884473;keyid="u00001";alg="hmac-sha256";nonce="n""#;

    /// Computed by Python's `hmac` over the text as RFC 9421 writes it.
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
}
