//! The server of Digest: who made these credentials for this request, and for the first time.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use serde::Deserialize;

use super::hash::Algorithm;
use super::header::Credentials;
use super::nonces::{Nonces, Use};
use crate::clock;
use crate::contract::Failure;
use crate::exchanges::server::{PLACE, Reply, Server, Verdict};
use crate::exchanges::settings::{Settings, read};
use crate::exchanges::store::{self, Store};
use crate::http::protocol::Method;
use crate::http::request::Request;

pub const REALM: &str = "tollbar";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    #[serde(default)]
    algorithm: Algorithm,
    /// Stored of a user is `REALM:HASH`, the hash that of name, realm and password.
    store: store::Spec,
    /// How long a nonce is taken.
    #[serde(default = "five_minutes")]
    nonce_s: f64,
}

fn five_minutes() -> f64 {
    300.0
}

struct DigestServer {
    algorithm: Algorithm,
    store: Store,
    nonces: Nonces,
    challenge: String,
    name: String,
}

pub fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let ServerSettings { algorithm, store, nonce_s } = read(settings, PLACE)?;
    let nonces = Nonces::new((nonce_s * 1e9) as u64);
    let (store, challenge, name) = (Store::open(&store)?, String::new(), String::new());
    Ok(Box::new(DigestServer { algorithm, store, nonces, challenge, name }))
}

impl Server for DigestServer {
    fn check(&mut self, request: &Request<'_>) -> Verdict<'_> {
        let now_ns = clock::wall_ns();
        let credentials = request.authorization.and_then(Credentials::parse);
        let is_stale = match credentials.map(|credentials| self.is_right(&credentials, request)) {
            None | Some(Ok(None)) => false,
            Some(Err(why)) => return Verdict::Answer(Reply::failed(&why)),
            Some(Ok(Some((nonce, count)))) => match self.nonces.take(nonce, count, now_ns) {
                Use::First => return Verdict::User(&self.name),
                Use::Again => false,
                Use::Unknown => true,
            },
        };
        let nonce = match self.nonces.issue(now_ns) {
            Ok(nonce) => nonce,
            Err(why) => return Verdict::Answer(Reply::failed(&why)),
        };
        let algorithm = self.algorithm.name();
        let stale = if is_stale { ", stale=true" } else { "" };
        self.challenge = format!(
            "WWW-Authenticate: Digest realm=\"{REALM}\", qop=\"auth\", algorithm={algorithm}, nonce=\"{nonce}\"{stale}\r\n"
        );
        Verdict::Answer(Reply::unauthorized(&self.challenge))
    }
}

impl DigestServer {
    /// The nonce and its count, if a user of ours made these credentials for this request; then its name is kept.
    fn is_right<'a>(
        &mut self,
        credentials: &Credentials<'a>,
        request: &Request<'_>,
    ) -> Result<Option<(&'a [u8], u32)>, String> {
        let Credentials { name, realm, algorithm, answered, count, response } = credentials;
        let is_ours = *realm == REALM.as_bytes()
            && algorithm.eq_ignore_ascii_case(self.algorithm.name().as_bytes())
            && answered.uri == request.target.as_bytes();
        if !is_ours {
            return Ok(None);
        }
        let (stored, is_user) = self.store.find_any(name)?;
        let hash = stored.strip_prefix(REALM).and_then(|rest| rest.strip_prefix(':'));
        let hash = hash.ok_or_else(|| format!("what is stored of {name} is not {REALM}: and a hash"))?;
        let method = match request.method {
            Method::Head => "HEAD",
            _ => "GET",
        };
        let expected = self.algorithm.response(hash.as_bytes(), method, answered);
        if verify_slices_are_equal(expected.as_bytes(), response).is_err() || !is_user {
            return Ok(None);
        }
        self.name.clear();
        self.name.push_str(name);
        Ok(Some((answered.nonce, *count)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::hash::Answered;
    use super::*;
    use crate::http::request::parse;

    /// What is stored of a user is looked at for a name that no user has, and makes no user of that name.
    #[test]
    fn a_user_s_own_hash_is_good_for_no_other_name() {
        let algorithm = Algorithm::Sha256;
        let hash = algorithm.of_user("u1", REALM, "password");
        let path = std::env::temp_dir().join(format!("tollbar-{}-digest", std::process::id()));
        let line = format!("u1:{REALM}:{}\n", String::from_utf8_lossy(hash.as_bytes()));
        std::fs::write(&path, line).expect("a file");
        let spec = serde_json::from_value(json!({"file": path})).expect("a store");
        let store = Store::open(&spec);
        let _ = std::fs::remove_file(&path);
        let (store, nonces) =
            (store.unwrap_or_else(|failure| panic!("{failure:?}")), Nonces::new(1_000_000_000_000));
        let mut server =
            DigestServer { algorithm, store, nonces, challenge: String::new(), name: String::new() };
        for (expected, name) in [(true, "u1"), (false, "u2")] {
            let nonce = server.nonces.issue(clock::wall_ns()).expect("a nonce");
            let answered =
                Answered { uri: b"/", nonce: nonce.as_bytes(), count: b"00000001", client_nonce: b"c" };
            let response = algorithm.response(hash.as_bytes(), "GET", &answered);
            let text = format!(
                "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Digest username=\"{name}\", realm=\"{REALM}\", \
                 nonce=\"{nonce}\", uri=\"/\", algorithm=SHA-256, qop=auth, nc=00000001, cnonce=\"c\", \
                 response=\"{}\"\r\n\r\n",
                String::from_utf8_lossy(response.as_bytes())
            );
            let request = parse(text.as_bytes()).expect("a request").expect("a whole one");
            assert_eq!(expected, server.check(&request) == Verdict::User(name), "{name}");
        }
    }
}
