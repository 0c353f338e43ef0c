//! Requests that are signed each (RFC 9421, HTTP Message Signatures): by an HMAC-SHA-256 with a key that the user and
//! the server share, over method, host, path and query, and when that was.
//!
//! Of a request without a body, as pages are asked for: there is no `Content-Digest` to be covered.

use std::collections::HashSet;

use aws_lc_rs::{hmac, rand};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::accounts::{Account, Accounts, is_name};
use super::client::{Client, Setup};
use super::operation::Operation;
use super::scheme::{Scheme, Wrong};
use super::server::{PLACE, Reply, Server, Verdict};
use super::settings::{NoSettings, Settings, read};
use super::store::{self, Store};
use crate::calls;
use crate::clock;
use crate::contract::Failure;
use crate::fault::Fault;
use crate::http::prebuilt::{Prebuilt, put_digits};
use crate::http::protocol::Method;
use crate::http::request::Request;
use crate::http::response::Expected;

pub const SCHEME: Scheme = Scheme {
    name: "hmac",
    client,
    server: Some(server),
    keeps_state: false,
    has_sign_on: false,
    refused: &[
        Wrong::NoCredentials,
        Wrong::Password,
        Wrong::User,
        Wrong::Own(ANOTHER_PATH),
        Wrong::Own(OLD),
        Wrong::Own(REPLAYED),
    ],
};

const ANOTHER_PATH: &str = "a request whose path was changed";
const OLD: &str = "a request that was signed too long ago";
const REPLAYED: &str = "a request that was sent before";

/// What is signed of a request. `@path` is without the query (RFC 9421, 2.2.6 and 2.2.7).
const COVERED: &str = r#"("@method" "@authority" "@path" "@query")"#;
/// How long a signature is taken.
const FRESH_S: u64 = 300;
/// How far a user's clock may be ahead of the server's.
const AHEAD_S: u64 = 5;
/// What a server has answered before it is measured, in requests a second: it remembers those of the time for which a
/// signature is taken, and a memory of none would be quicker to look into than any that is in use.
const BEFORE_HZ: u64 = 100;

/// What is asked for (RFC 9421, 5.1), behind a challenge, without which there is no 401 (RFC 9110, 15.5.2).
const CHALLENGE: &str = concat!(
    "WWW-Authenticate: Signature realm=\"tollbar\"\r\n",
    "Accept-Signature: sig=(\"@method\" \"@authority\" \"@path\" \"@query\")",
    ";created;keyid;alg=\"hmac-sha256\";nonce\r\n"
);

/// What is signed, put into a buffer (RFC 9421, 2.5). A target without a query has an empty one.
fn put_base(base: &mut Vec<u8>, method: &[u8], authority: &[u8], target: &[u8], parameters: &[u8]) {
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

// The client.

struct HmacClient {
    method: String,
    host: String,
    requests: Vec<Prebuilt>,
    expected: Expected,
    accounts: Accounts,
    /// Of each account.
    keys: Vec<hmac::Key>,
    /// The first half of nonces: no other process has it.
    random: [u8; 16],
    header: Vec<u8>,
    base: Vec<u8>,
    users: Vec<User>,
    wrong: Option<&'static str>,
}

#[derive(Default, Clone)]
struct User {
    /// When the request under way was made.
    created_s: u64,
    /// The operation whose request is sent.
    operation: Operation,
}

fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let NoSettings {} = setup.settings()?;
    let load = setup.load;
    if load.request.body.is_some() {
        return Err(Failure::Failed("`load.request.body`: hmac signs requests without one".to_owned()));
    }
    let mut random = [0; 8];
    rand::fill(&mut random).map_err(|_| Failure::Failed("no random bytes are to be had".to_owned()))?;
    let mut digits = [0; 16];
    put_digits(u64::from_be_bytes(random), &mut digits);
    let accounts = setup.accounts()?;
    let key = |account: &Account| hmac::Key::new(hmac::HMAC_SHA256, account.password.as_bytes());
    Ok(Box::new(HmacClient {
        method: load.request.method.clone(),
        host: load.host.to_ascii_lowercase(),
        requests: setup.requests(),
        expected: setup.expected(),
        keys: accounts.iter().map(key).collect(),
        accounts,
        random: digits,
        header: Vec::new(),
        base: Vec::new(),
        users: vec![User::default(); load.users as usize],
        wrong: None,
    }))
}

impl Client for HmacClient {
    fn begin(&mut self, operation: &Operation) -> Result<(), Fault> {
        let now_s = clock::unix_s();
        let user = &mut self.users[operation.user as usize];
        match self.wrong {
            Some(REPLAYED) => return Ok(()),
            Some(OLD) => user.created_s = now_s - FRESH_S - 1,
            _ => user.created_s = now_s,
        }
        user.operation = *operation;
        Ok(())
    }

    fn request(&mut self, operation: &Operation) -> &[u8] {
        let User { created_s, operation } = self.users[operation.user as usize];
        let account = self.accounts.drawn(&operation);
        let request = &mut self.requests[usize::from(operation.path)];
        let mut unique = [0; 16];
        put_digits(operation.unique, &mut unique);
        self.header.clear();
        self.header.extend_from_slice(b"Signature-Input: sig=");
        let from = self.header.len();
        self.header.extend_from_slice(COVERED.as_bytes());
        let created = format!(";created={created_s};keyid=\"");
        for part in [
            created.as_bytes(),
            self.accounts[account].name.as_bytes(),
            b"\";alg=\"hmac-sha256\";nonce=\"",
            &self.random,
            &unique,
            b"\"",
        ] {
            self.header.extend_from_slice(part);
        }
        let target = request.target(operation.unique);
        // Signed as if another one had been asked for.
        let signed = if self.wrong == Some(ANOTHER_PATH) { b"/bytes/0" } else { target };
        let (method, host) = (self.method.as_bytes(), self.host.as_bytes());
        put_base(&mut self.base, method, host, signed, &self.header[from..]);
        let signature = STANDARD.encode(hmac::sign(&self.keys[account], &self.base));
        for part in ["\r\nSignature: sig=:", &signature, ":\r\n"] {
            self.header.extend_from_slice(part.as_bytes());
        }
        request.with(operation.unique, &self.header)
    }

    #[inline]
    fn expected(&self, _operation: &Operation) -> &Expected {
        &self.expected
    }

    fn user(&self, operation: &Operation) -> Option<&str> {
        Some(&self.accounts[self.accounts.drawn(operation)].name)
    }

    fn do_wrong(&mut self, wrong: &'static str) {
        self.wrong = Some(wrong);
    }
}

// The server.

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

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
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

/// A `Signature-Input` with one signature.
#[derive(Debug, PartialEq, Eq)]
struct Signed<'a> {
    created_s: u64,
    name: &'a str,
    /// What is covered, and the parameters: signed as they stand.
    parameters: &'a [u8],
}

impl<'a> Signed<'a> {
    /// None where it is not this scheme's, or does not cover what has to be.
    fn parse(header: &'a [u8]) -> Option<Signed<'a>> {
        let parameters = of_label(header)?;
        let (mut created_s, mut name, mut algorithm, mut nonce) = (None, None, None, None);
        let mut rest = parameters.strip_prefix(COVERED.as_bytes())?;
        while !rest.is_empty() {
            rest = rest.strip_prefix(b";")?;
            let end = rest.iter().position(|byte| *byte == b';').unwrap_or(rest.len());
            let parameter = std::str::from_utf8(&rest[..end]).ok()?;
            rest = &rest[end..];
            let (word, value) = parameter.split_once('=')?;
            // Nothing that has to be escaped comes from a client here, nor a semicolon.
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

/// What follows the label `sig`.
fn of_label(header: &[u8]) -> Option<&[u8]> {
    header.trim_ascii().strip_prefix(b"sig=")
}

/// Bytes as they stand in a structured field (RFC 8941, 3.3.5).
fn byte_sequence(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode(text.strip_prefix(b":")?.strip_suffix(b":")?).ok()
}

/// The requests that came, for as long as their signatures would be taken again. A signature stands for its user and
/// nonce: of a nonce that came before there is no other, but at another time, by the user itself.
#[derive(Default)]
struct Seen {
    /// Those of now, and of the time before.
    now: HashSet<[u8; 16]>,
    before: HashSet<[u8; 16]>,
    turned_s: u64,
}

impl Seen {
    /// As it is after two such times.
    fn filled(now_s: u64) -> Result<Seen, Failure> {
        let some = || -> Result<HashSet<[u8; 16]>, Failure> {
            let mut bytes = vec![[0; 16]; (BEFORE_HZ * (FRESH_S + AHEAD_S)) as usize];
            let filled = rand::fill(bytes.as_flattened_mut());
            filled.map_err(|_| Failure::Failed("no random bytes are to be had".to_owned()))?;
            Ok(bytes.into_iter().collect())
        };
        Ok(Seen { now: some()?, before: some()?, turned_s: now_s })
    }

    /// Takes note of a signature that was verified, and says whether it came for the first time.
    fn is_first(&mut self, signature: &[u8], now_s: u64) -> bool {
        if now_s.saturating_sub(self.turned_s) > FRESH_S + AHEAD_S {
            self.before = std::mem::take(&mut self.now);
            self.turned_s = now_s;
        }
        // Half of it is as good as all.
        let Some(half) = signature.first_chunk() else { return false };
        !self.before.contains(half) && self.now.insert(*half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchanges::tests::any_bytes;

    const PARAMETERS: &str = r#"("@method" "@authority" "@path" "@query");created=1618884473;keyid="u00001";alg="hmac-sha256";nonce="n""#;

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

    /// What a server has seen before it is measured is what it would have seen at that rate, and is as easily taken for new.
    #[test]
    fn a_server_remembers_what_it_would_have_been_asked() {
        let mut seen = Seen::filled(1_618_884_473).expect("random bytes");
        assert_eq!([30_500; 2], [seen.now.len(), seen.before.len()]);
        assert!(seen.is_first(&[1; 32], 1_618_884_473));
        assert!(!seen.is_first(&[1; 32], 1_618_884_473 + FRESH_S));
        let old = *seen.before.iter().next().expect("one");
        assert!(!seen.is_first(&[old, old].concat(), 1_618_884_473));
    }

    /// A signature is remembered for as long as it would be taken, and not for ever.
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
