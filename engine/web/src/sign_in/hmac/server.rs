//! The server of signed requests: identifies the user whose recent signature covers this request, and accepts
//! it once.

use std::collections::HashSet;

use aws_lc_rs::{hmac, rand};
use serde::Deserialize;

use super::message::{AHEAD_S, FRESH_S, Signed, byte_sequence, of_label, put_base};
use crate::calls;
use crate::clock;
use crate::failure::Failure;
use crate::http::request::{Method, Request};
use crate::sign_in::lookup::stored::{Store, StoreSpec};
use crate::sign_in::scheme::{Reply, Server, Settings, Verdict, read_server};

/// Requested signature (RFC 9421, 5.1), after a challenge, which a 401 needs (RFC 9110, 15.5.2).
const CHALLENGE: &str = concat!(
    "WWW-Authenticate: Signature realm=\"tollbar\"\r\n",
    "Accept-Signature: sig=(\"@method\" \"@authority\" \"@path\" \"@query\")",
    ";created;keyid;alg=\"hmac-sha256\";nonce\r\n"
);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    /// Store of users, each with the key as text.
    store: StoreSpec,
}

struct HmacServer {
    store: Store,
    seen: Seen,
    base: Vec<u8>,
    authority: Vec<u8>,
    name: String,
}

pub fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let ServerSettings { store } = read_server(settings)?;
    let (store, seen, base) = (Store::open(&store)?, Seen::filled(clock::unix_s())?, Vec::new());
    Ok(Box::new(HmacServer { store, seen, base, authority: Vec::new(), name: String::new() }))
}

impl Server for HmacServer {
    fn check(&mut self, request: &Request<'_>) -> Verdict<'_> {
        let now_s = clock::unix_s();
        match self.is_right(request, now_s) {
            Ok(true) => Verdict::User(&self.name),
            Ok(false) => Verdict::Answer(Reply::unauthorized(CHALLENGE)),
            Err(why) => Verdict::Answer(Reply::failed(&why)),
        }
    }
}

impl HmacServer {
    /// Returns true, and keeps the user's name, if a known user has recently signed this request and it came
    /// once.
    fn is_right(&mut self, request: &Request<'_>, now_s: u64) -> Result<bool, String> {
        let signed = request.signature_input.and_then(Signed::parse);
        let signature = request.signature.and_then(|header| of_label(header).and_then(byte_sequence));
        let (Some(signed), Some(signature), Some(host)) = (signed, signature, request.host) else {
            return Ok(false);
        };
        if signed.created_s + FRESH_S < now_s || signed.created_s > now_s + AHEAD_S {
            return Ok(false);
        }
        let (key, is_user) = self.store.find_any(signed.name)?;
        let method: &[u8] = match request.method {
            Method::Head => b"HEAD",
            _ => b"GET",
        };
        self.authority.clear();
        self.authority.extend(host.iter().map(u8::to_ascii_lowercase));
        put_base(&mut self.base, method, &self.authority, request.target.as_bytes(), signed.parameters);
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
        calls::tally("HMAC");
        let is_right = hmac::verify(&key, &self.base, &signature).is_ok() && is_user;
        if !is_right || !self.seen.is_first(&signature, now_s) {
            return Ok(false);
        }
        self.name.clear();
        self.name.push_str(signed.name);
        Ok(true)
    }
}

/// Requests a second with which the memory is filled before measuring. It contains those of a signature's
/// lifetime; an empty one would be faster than that of any server in use.
const BEFORE_HZ: u64 = 100;

/// Requests seen, for as long as their signatures are valid. A signature represents its user and nonce: only
/// the user can sign the same nonce again, at another time.
#[derive(Default)]
pub struct Seen {
    /// Signatures of the current period; `before` are those of the last one.
    now: HashSet<[u8; 16]>,
    before: HashSet<[u8; 16]>,
    turned_s: u64,
}

impl Seen {
    /// Makes the state after two such periods.
    pub fn filled(now_s: u64) -> Result<Seen, Failure> {
        let some = || -> Result<HashSet<[u8; 16]>, Failure> {
            let mut bytes = vec![[0; 16]; (BEFORE_HZ * (FRESH_S + AHEAD_S)) as usize];
            let filled = rand::fill(bytes.as_flattened_mut());
            filled.map_err(|_| Failure::Failed("the system gives no random bytes".to_owned()))?;
            Ok(bytes.into_iter().collect())
        };
        Ok(Seen { now: some()?, before: some()?, turned_s: now_s })
    }

    /// Records a verified signature. Returns true if it came for the first time.
    pub fn is_first(&mut self, signature: &[u8], now_s: u64) -> bool {
        if now_s.saturating_sub(self.turned_s) > FRESH_S + AHEAD_S {
            self.before = std::mem::take(&mut self.now);
            self.turned_s = now_s;
        }
        // Half of a signature identifies it sufficiently.
        let Some(half) = signature.first_chunk() else { return false };
        !self.before.contains(half) && self.now.insert(*half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new server remembers as many signatures as at that rate, and they are recognised.
    #[test]
    fn a_server_remembers_what_it_would_have_been_asked() {
        let mut seen = Seen::filled(1_618_884_473).expect("random bytes");
        assert_eq!([30_500; 2], [seen.now.len(), seen.before.len()]);
        assert!(seen.is_first(&[1; 32], 1_618_884_473));
        assert!(!seen.is_first(&[1; 32], 1_618_884_473 + FRESH_S));
        let old = *seen.before.iter().next().expect("one");
        assert!(!seen.is_first(&[old, old].concat(), 1_618_884_473));
    }

    /// A signature is remembered for as long as it is valid, and not for ever.
    #[test]
    fn a_signature_comes_once() {
        let mut seen = Seen::default();
        let start_s = 1_618_884_473;
        for (at_s, expected) in [(0, true), (0, false), (FRESH_S + AHEAD_S, false), (3 * FRESH_S, false)] {
            assert_eq!(expected, seen.is_first(&[1; 32], start_s + at_s), "{at_s}");
        }
        assert!(seen.is_first(&[2; 32], start_s + 5 * FRESH_S));
        assert!(seen.is_first(&[1; 32], start_s + 5 * FRESH_S));
        assert!(!seen.is_first(&[1; 3], start_s));
    }
}
