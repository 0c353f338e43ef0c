//! The server of signed requests: whose signature it is, over this request, lately and for the first time.

use aws_lc_rs::hmac;
use serde::Deserialize;

use super::base::{AHEAD_S, FRESH_S, put_base};
use super::header::{Signed, byte_sequence, of_label};
use super::seen::Seen;
use crate::calls;
use crate::clock;
use crate::contract::Failure;
use crate::exchanges::server::{PLACE, Reply, Server, Verdict};
use crate::exchanges::settings::{Settings, read};
use crate::exchanges::store::{self, Store};
use crate::http::protocol::Method;
use crate::http::request::Request;

/// What is asked for (RFC 9421, 5.1), behind a challenge, without which there is no 401 (RFC 9110, 15.5.2).
const CHALLENGE: &str = concat!(
    "WWW-Authenticate: Signature realm=\"tollbar\"\r\n",
    "Accept-Signature: sig=(\"@method\" \"@authority\" \"@path\" \"@query\")",
    ";created;keyid;alg=\"hmac-sha256\";nonce\r\n"
);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    /// Stored of a user is the key, as text.
    store: store::Spec,
}

struct HmacServer {
    store: Store,
    seen: Seen,
    base: Vec<u8>,
    authority: Vec<u8>,
    name: String,
}

pub fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let ServerSettings { store } = read(settings, PLACE)?;
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
    /// Whether a user of ours has signed this request, lately and for the first time; then its name is kept.
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
