//! The tokens that come with a form.

use aws_lc_rs::{hmac, rand};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::calls;
use crate::contract::Failure;

/// What stands in a form that this server gave, and in a cookie beside it: a time and random bytes, signed (a signed
/// double-submit cookie). A login without both, or with a token of another server, was not filled in here.
pub struct Tokens(hmac::Key);

/// How long a form may be filled in.
const FORM_S: u64 = 3600;
const SIGNED_BYTES: usize = 16;

impl Tokens {
    pub fn new() -> Result<Tokens, Failure> {
        let mut key = [0; 32];
        let made = rand::fill(&mut key).map(|()| Tokens(hmac::Key::new(hmac::HMAC_SHA256, &key)));
        made.map_err(|_| Failure::Failed("no key for forms is to be had".to_owned()))
    }

    pub fn issue(&self, now_s: u64) -> Result<String, String> {
        let mut signed = [0; SIGNED_BYTES];
        signed[..8].copy_from_slice(&now_s.to_be_bytes());
        rand::fill(&mut signed[8..]).map_err(|_| "no random bytes are to be had".to_owned())?;
        calls::tally("HMAC");
        Ok(URL_SAFE_NO_PAD.encode([signed.as_slice(), hmac::sign(&self.0, &signed).as_ref()].concat()))
    }

    pub fn is_ours(&self, token: &[u8], now_s: u64) -> bool {
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(token) else { return false };
        let Some((signed, signature)) = bytes.split_at_checked(SIGNED_BYTES) else { return false };
        calls::tally("HMAC");
        let given_s = signed.first_chunk().map_or(0, |time| u64::from_be_bytes(*time));
        hmac::verify(&self.0, signed, signature).is_ok() && now_s < given_s.saturating_add(FORM_S)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_form_s_token_is_taken_where_it_was_given_and_for_an_hour() {
        let (tokens, other) = (Tokens::new().expect("a key"), Tokens::new().expect("a key"));
        let token = tokens.issue(100).expect("a token");
        assert!(tokens.is_ours(token.as_bytes(), 100 + FORM_S - 1));
        assert!(!tokens.is_ours(token.as_bytes(), 100 + FORM_S));
        assert!(!other.is_ours(token.as_bytes(), 100));
        assert_ne!(Ok(token), tokens.issue(100));
    }

    #[test]
    fn a_token_is_signed_where_it_is_given_and_where_it_is_taken() {
        let tokens = Tokens::new().expect("a key");
        calls::tests::tallied();
        let token = tokens.issue(100).expect("a token");
        assert_eq!(BTreeMap::from([("HMAC", 1)]), calls::tests::tallied());
        assert!(tokens.is_ours(token.as_bytes(), 100));
        assert_eq!(BTreeMap::from([("HMAC", 1)]), calls::tests::tallied());
    }
}
