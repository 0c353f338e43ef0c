//! The server of Digest: identifies the user whose credentials were made for this request, and accepts them
//! once.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use serde::Deserialize;

use super::hash::Algorithm;
use super::header::Credentials;
use crate::clock;
use crate::failure::Failure;
use crate::http::request::{Method, Request};
use crate::sign_in::lookup::stored::{Store, StoreSpec};
use crate::sign_in::scheme::{Reply, Server, Settings, Verdict, read_server};

pub const REALM: &str = "tollbar";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    #[serde(default)]
    algorithm: Algorithm,
    /// Store of users as `REALM:HASH`, the hash that of name, realm and password.
    store: StoreSpec,
    /// Lifetime of a nonce.
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
    let ServerSettings { algorithm, store, nonce_s } = read_server(settings)?;
    let nonces = Nonces::full((nonce_s * 1e9) as u64)?;
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
    /// Returns the nonce and its count, and keeps the user's name, if a known user made these credentials for
    /// this request.
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
        let hash =
            hash.ok_or_else(|| format!("the stored password of {name} must be {REALM}: and a hash"))?;
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

/// Nonces that were issued, up to a limit; beyond it the oldest are forgotten.
pub struct Nonces {
    issued: Vec<Nonce>,
    next: usize,
    lifetime_ns: u64,
}

struct Nonce {
    random: [u8; 12],
    issued_ns: u64,
    /// Highest count that it was used with.
    count: u32,
}

/// Limit of nonces, more than there are connections; two megabytes.
const MOST_NONCES: usize = 1 << 16;
/// Digits of a nonce's place in the table, which its random bytes follow.
const PLACE_DIGITS: usize = 8;

#[derive(Debug, PartialEq, Eq)]
pub enum Use {
    First,
    /// The count, or a higher one, was used before.
    Again,
    /// The nonce is invalid, expired, or forgotten.
    Unknown,
}

impl Nonces {
    pub fn new(lifetime_ns: u64) -> Nonces {
        Nonces { issued: Vec::new(), next: 0, lifetime_ns }
    }

    /// Makes a table in its long-term state: full of expired nonces, each of which a new one replaces.
    fn full(lifetime_ns: u64) -> Result<Nonces, Failure> {
        let mut nonces = Nonces::new(lifetime_ns);
        let mut randoms = vec![[0; 12]; MOST_NONCES];
        let filled = aws_lc_rs::rand::fill(randoms.as_flattened_mut());
        filled.map_err(|_| Failure::Failed("the system gives no random bytes".to_owned()))?;
        let old = |random| Nonce { random, issued_ns: 0, count: u32::MAX };
        nonces.issued = randoms.into_iter().map(old).collect();
        Ok(nonces)
    }

    pub fn issue(&mut self, now_ns: u64) -> Result<String, String> {
        let mut random = [0; 12];
        aws_lc_rs::rand::fill(&mut random).map_err(|_| "the system gives no random bytes".to_owned())?;
        let place = self.next;
        self.next = (place + 1) % MOST_NONCES;
        let nonce = Nonce { random, issued_ns: now_ns, count: 0 };
        match self.issued.get_mut(place) {
            Some(oldest) => *oldest = nonce,
            None => self.issued.push(nonce),
        }
        Ok(format!("{place:08x}{}", hex::encode(random)))
    }

    /// Records a use of a nonce, whose count must exceed the ones before.
    pub fn take(&mut self, nonce: &[u8], count: u32, now_ns: u64) -> Use {
        let lifetime_ns = self.lifetime_ns;
        match self.find(nonce) {
            Some(nonce) if now_ns.saturating_sub(nonce.issued_ns) > lifetime_ns => Use::Unknown,
            Some(nonce) if count <= nonce.count => Use::Again,
            Some(nonce) => {
                nonce.count = count;
                Use::First
            }
            None => Use::Unknown,
        }
    }

    fn find(&mut self, nonce: &[u8]) -> Option<&mut Nonce> {
        let (place, random) = nonce.split_at_checked(PLACE_DIGITS)?;
        let place = usize::from_str_radix(std::str::from_utf8(place).ok()?, 16).ok()?;
        let random = hex::decode(random).ok()?;
        let issued = self.issued.get_mut(place)?;
        verify_slices_are_equal(&issued.random, &random).ok().map(|()| issued)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::super::hash::{Answered, Hex};
    use super::*;
    use crate::http::request::parse;

    /// Request of a client for `/`.
    #[derive(Clone, Copy)]
    struct Said {
        name: &'static str,
        realm: &'static str,
        algorithm: &'static str,
        uri: &'static str,
        /// Method in its answer to the nonce.
        method: &'static str,
        /// Method of the request.
        by: &'static str,
    }

    const RIGHT: Said =
        Said { name: "u1", realm: REALM, algorithm: "SHA-256", uri: "/", method: "GET", by: "GET" };

    /// Returns a server with one user, `u1`, and the user's stored hash.
    fn server_of_one() -> (DigestServer, Hex) {
        let algorithm = Algorithm::Sha256;
        let hash = algorithm.of_user("u1", REALM, "password");
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tollbar-{}-digest-{number}", std::process::id()));
        let line = format!("u1:{REALM}:{}\n", String::from_utf8_lossy(hash.as_bytes()));
        std::fs::write(&path, line).expect("a file");
        let spec = serde_json::from_value(json!({"file": path})).expect("a store");
        let store = Store::open(&spec);
        let _ = std::fs::remove_file(&path);
        let (store, nonces) =
            (store.unwrap_or_else(|failure| panic!("{failure:?}")), Nonces::new(1_000_000_000_000));
        (DigestServer { algorithm, store, nonces, challenge: String::new(), name: String::new() }, hash)
    }

    /// Returns true if the server accepts this request, with a correct hash of its fields.
    fn takes(said: Said) -> bool {
        let (mut server, hash) = server_of_one();
        let Said { name, realm, algorithm, uri, method, by } = said;
        let nonce = server.nonces.issue(clock::wall_ns()).expect("a nonce");
        let answered =
            Answered { uri: uri.as_bytes(), nonce: nonce.as_bytes(), count: b"00000001", client_nonce: b"c" };
        let response = Algorithm::Sha256.response(hash.as_bytes(), method, &answered);
        let text = format!(
            "{by} / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Digest username=\"{name}\", realm=\"{realm}\", \
             nonce=\"{nonce}\", uri=\"{uri}\", algorithm={algorithm}, qop=auth, nc=00000001, cnonce=\"c\", \
             response=\"{}\"\r\n\r\n",
            String::from_utf8_lossy(response.as_bytes())
        );
        let request = parse(text.as_bytes()).expect("a request").expect("a whole one");
        server.check(&request) == Verdict::User(name)
    }

    #[test]
    fn what_is_right_is_taken() {
        assert!(takes(RIGHT));
        assert!(takes(Said { method: "HEAD", by: "HEAD", ..RIGHT }));
        assert!(takes(Said { algorithm: "sha-256", ..RIGHT }));
    }

    /// For an unknown name the server uses another user's stored hash, which must not make that name valid.
    #[test]
    fn a_user_s_own_hash_is_good_for_no_other_name() {
        assert!(!takes(Said { name: "u2", ..RIGHT }));
    }

    /// Credentials are valid only for the target and method that they name, even if their hash is correct.
    #[test]
    fn credentials_for_something_else_are_refused() {
        assert!(!takes(Said { realm: "another", ..RIGHT }), "another realm");
        assert!(!takes(Said { algorithm: "MD5", ..RIGHT }), "another algorithm");
        assert!(!takes(Said { uri: "/another", ..RIGHT }), "another target");
        assert!(!takes(Said { method: "HEAD", ..RIGHT }), "another method");
        assert!(!takes(Said { by: "HEAD", ..RIGHT }), "another method");
    }

    /// An empty table would grow while it is measured.
    #[test]
    fn a_new_server_replaces_old_nonces() {
        let mut nonces = Nonces::full(100).expect("random bytes");
        let capacity = nonces.issued.capacity();
        assert_eq!(MOST_NONCES, nonces.issued.len());
        let first = nonces.issue(1000).expect("a nonce");
        assert_eq!(Use::First, nonces.take(first.as_bytes(), 1, 1000));
        for _ in 0..MOST_NONCES {
            nonces.issue(1000).expect("a nonce");
        }
        assert_eq!(Use::Unknown, nonces.take(first.as_bytes(), 2, 1000));
        assert_eq!((MOST_NONCES, capacity), (nonces.issued.len(), nonces.issued.capacity()));
    }

    /// Each count is accepted once, in rising order, until the nonce has expired or is forgotten.
    #[test]
    fn a_nonce_is_used_up() {
        let mut nonces = Nonces::new(100);
        let first = nonces.issue(1000).expect("a nonce");
        let take = |nonces: &mut Nonces, count, now_ns| nonces.take(first.as_bytes(), count, now_ns);
        assert_eq!(Use::First, take(&mut nonces, 1, 1000));
        assert_eq!(Use::Again, take(&mut nonces, 1, 1000));
        assert_eq!(Use::First, take(&mut nonces, 7, 1100));
        assert_eq!(Use::Again, take(&mut nonces, 3, 1100));
        assert_eq!(Use::Unknown, take(&mut nonces, 8, 1101));
        for _ in 0..MOST_NONCES {
            nonces.issue(1100).expect("a nonce");
        }
        assert_eq!(Use::Unknown, take(&mut nonces, 8, 1100));
        assert_eq!(MOST_NONCES, nonces.issued.len());
        for wrong in ["", "0", "00000000", "0000000\u{e9}", "+0000000aaaaaaaaaaaaaaaaaaaaaaaa", "ffffffff00"]
        {
            assert_eq!(Use::Unknown, nonces.take(wrong.as_bytes(), 9, 1100), "{wrong}");
        }
    }
}
