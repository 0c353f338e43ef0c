//! Digest (RFC 7616) with `qop=auth`: a hash of the password, the request and a number that the server gave.
//!
//! A client is challenged once and then answers ahead of being asked, with a nonce count that rises. The server takes
//! each count of a nonce once.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use md5::Digest;
use serde::Deserialize;

use super::accounts::{Account, Accounts, is_name};
use super::client::{Client, Judgement, Kind, Operation, Setup};
use super::server::{PLACE, Reply, Server, Verdict};
use super::store::{self, Store};
use super::{Scheme, Settings, Wrong, read};
use crate::clock;
use crate::contract::Failure;
use crate::load::fault::{self, Fault};
use crate::load::request::{Outline, Prebuilt, put_digits};
use crate::load::response::{Expected, Response};
use crate::serve::http::Method;
use crate::serve::request::Request;

const REPLAYED: &str = "a request that was sent before";

pub const SCHEME: Scheme = Scheme {
    name: "digest",
    client,
    server: Some(server),
    keeps_state: true,
    has_sign_on: true,
    refused: &[Wrong::NoCredentials, Wrong::Password, Wrong::User, Wrong::Own(REPLAYED)],
};

const REALM: &str = "tollbar";

#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "kebab-case")]
enum Algorithm {
    #[default]
    #[serde(rename = "sha-256")]
    Sha256,
    Md5,
}

/// A hash in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Hex {
    digits: [u8; 64],
    length: usize,
}

impl Hex {
    fn as_bytes(&self) -> &[u8] {
        &self.digits[..self.length]
    }
}

impl Algorithm {
    /// As headers name it.
    fn name(self) -> &'static str {
        match self {
            Algorithm::Sha256 => "SHA-256",
            Algorithm::Md5 => "MD5",
        }
    }

    /// Of these parts, with colons between them.
    fn hash(self, parts: &[&[u8]]) -> Hex {
        let mut text = [0; 1024];
        let mut joined;
        let all: usize = parts.iter().map(|part| part.len() + 1).sum();
        // Longer only where a target is.
        let text = if all <= text.len() {
            &mut text[..]
        } else {
            joined = vec![0; all];
            &mut joined[..]
        };
        let mut length = 0;
        for part in parts {
            text[length..length + part.len()].copy_from_slice(part);
            text[length + part.len()] = b':';
            length += part.len() + 1;
        }
        let text = &text[..length - 1];
        match self {
            Algorithm::Sha256 => {
                hexadecimal(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text).as_ref())
            }
            Algorithm::Md5 => hexadecimal(&md5::Md5::digest(text)),
        }
    }

    /// Of a user: all that a server has to keep.
    fn of_user(self, name: &str, realm: &str, password: &str) -> Hex {
        self.hash(&[name.as_bytes(), realm.as_bytes(), password.as_bytes()])
    }

    /// What a client answers to a nonce (RFC 7616, 3.4.1).
    fn response(self, user: &[u8], method: &str, answered: &Answered<'_>) -> Hex {
        let request = self.hash(&[method.as_bytes(), answered.uri]);
        let Answered { nonce, count, client_nonce, .. } = answered;
        self.hash(&[user, nonce, count, client_nonce, b"auth", request.as_bytes()])
    }
}

fn hexadecimal(bytes: &[u8]) -> Hex {
    let mut digits = [0; 64];
    for (byte, pair) in bytes.iter().zip(digits.chunks_exact_mut(2)) {
        pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
        pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
    }
    Hex { digits, length: 2 * bytes.len() }
}

/// What a response is computed from, besides the user.
struct Answered<'a> {
    uri: &'a [u8],
    nonce: &'a [u8],
    count: &'a [u8],
    client_nonce: &'a [u8],
}

/// The parameters of a challenge or of credentials, quotes taken off; None in place of what is no parameter.
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

/// The first parameter, and what comes after it and its comma.
fn parameter(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let equals = text.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (text[..equals].trim_ascii(), text[equals + 1..].trim_ascii_start());
    let is_token = |text: &[u8]| {
        !text.is_empty() && text.iter().all(|byte| byte.is_ascii_graphic() && !b"\",=".contains(byte))
    };
    let (value, after) = match value.strip_prefix(b"\"") {
        Some(quoted) => {
            // Nothing that has to be escaped comes from a client or server here.
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

/// What follows the word `Digest`, if that is the scheme.
fn of_digest(header: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = header.split_at_checked(b"Digest ".len())?;
    scheme.eq_ignore_ascii_case(b"Digest ").then_some(rest)
}

// The client.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientSettings {
    #[serde(default)]
    algorithm: Algorithm,
}

struct DigestClient {
    algorithm: Algorithm,
    kind: Kind,
    method: String,
    /// Requests that are to be challenged, and those with credentials.
    bare: Vec<Prebuilt>,
    requests: Vec<Prebuilt>,
    challenged: Expected,
    expected: Expected,
    accounts: Accounts,
    realm: String,
    /// Of each account, for that realm.
    hashes: Vec<Hex>,
    users: Vec<User>,
    header: Vec<u8>,
    /// Sends a user's last request again, to the letter.
    replays: bool,
}

/// What a user has of the server.
#[derive(Default, Clone)]
struct User {
    /// Empty until it was challenged.
    nonce: String,
    opaque: Option<String>,
    /// Which use of the nonce is under way.
    count: u32,
    /// The operation whose request is sent.
    operation: Operation,
}

fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let ClientSettings { algorithm } = setup.settings()?;
    let load = setup.load;
    let challenged =
        Expected { status: 401, bytes: None, body: None, keeps_head: true, ..Expected::of(load) };
    let bare = |path| Prebuilt::new(load, &Outline { is_last: false, ..Outline::page(load, path) });
    Ok(Box::new(DigestClient {
        algorithm,
        kind: setup.kind,
        method: load.request.method.clone(),
        bare: setup.paths.iter().map(|path| bare(path)).collect(),
        requests: setup.requests(),
        challenged,
        expected: setup.expected(),
        accounts: setup.accounts()?,
        realm: String::new(),
        hashes: Vec::new(),
        users: vec![User::default(); load.users as usize],
        header: Vec::new(),
        replays: false,
    }))
}

impl Client for DigestClient {
    fn begin(&mut self, operation: &Operation) -> Result<(), Fault> {
        let user = &mut self.users[operation.user as usize];
        if self.replays {
            return Ok(());
        }
        if self.kind == Kind::SignOn {
            user.nonce.clear();
        }
        user.count += 1;
        user.operation = *operation;
        Ok(())
    }

    fn request(&mut self, operation: &Operation) -> &[u8] {
        let user = &self.users[operation.user as usize];
        let Operation { path, unique, .. } = user.operation;
        if user.nonce.is_empty() {
            return self.bare[usize::from(path)].with(unique, b"");
        }
        let account = self.accounts.drawn(&user.operation);
        let request = &mut self.requests[usize::from(path)];
        let (mut count, mut client_nonce) = ([0; 8], [0; 16]);
        put_digits(u64::from(user.count) << 32, &mut count);
        put_digits(unique, &mut client_nonce);
        let answered = Answered {
            uri: request.target(unique),
            nonce: user.nonce.as_bytes(),
            count: &count,
            client_nonce: &client_nonce,
        };
        let response = self.algorithm.response(self.hashes[account].as_bytes(), &self.method, &answered);
        self.header.clear();
        let parts: [&[u8]; 17] = [
            b"Authorization: Digest username=\"",
            self.accounts[account].name.as_bytes(),
            b"\", realm=\"",
            self.realm.as_bytes(),
            b"\", nonce=\"",
            answered.nonce,
            b"\", uri=\"",
            answered.uri,
            b"\", algorithm=",
            self.algorithm.name().as_bytes(),
            b", qop=auth, nc=",
            answered.count,
            b", cnonce=\"",
            answered.client_nonce,
            b"\", response=\"",
            response.as_bytes(),
            b"\"",
        ];
        for part in parts {
            self.header.extend_from_slice(part);
        }
        if let Some(opaque) = &user.opaque {
            for part in [", opaque=\"", opaque, "\""] {
                self.header.extend_from_slice(part.as_bytes());
            }
        }
        self.header.extend_from_slice(b"\r\n");
        request.with(unique, &self.header)
    }

    fn expected(&self, operation: &Operation) -> &Expected {
        match self.users[operation.user as usize].nonce.is_empty() {
            true => &self.challenged,
            false => &self.expected,
        }
    }

    fn judge(&mut self, operation: &Operation, response: &Response) -> Result<Judgement, Fault> {
        let expected = self.expected(operation);
        let is_challenged = expected.status == 401;
        // A nonce may have become too old twice in an operation, if hardly ever.
        let may_be_stale = response.status == 401 && operation.leg < 2 && !self.replays;
        if !is_challenged && !may_be_stale {
            return response.check(expected).map(|()| Judgement::Done);
        }
        let challenge = response
            .headers("WWW-Authenticate")
            .filter_map(|header| Challenge::parse(header, self.algorithm))
            .find(|challenge| is_challenged || challenge.is_stale);
        match challenge {
            Some(challenge) => {
                self.take(operation.user, &challenge);
                Ok(Judgement::Continue)
            }
            None => {
                response.check(expected)?;
                let words = format!("no challenge for Digest with {}", self.algorithm.name());
                Err(Fault::new(fault::NOT_HTTP, words))
            }
        }
    }

    fn user(&self, operation: &Operation) -> Option<&str> {
        Some(&self.accounts[self.accounts.drawn(operation)].name)
    }

    fn do_wrong(&mut self, wrong: &'static str) {
        self.replays = wrong == REPLAYED;
    }
}

impl DigestClient {
    fn take(&mut self, user: u32, challenge: &Challenge<'_>) {
        let Challenge { realm, nonce, opaque, .. } = challenge;
        let user = &mut self.users[user as usize];
        (user.nonce, user.count) = ((*nonce).to_owned(), 1);
        user.opaque = opaque.map(str::to_owned);
        if self.hashes.is_empty() || self.realm != *realm {
            self.realm = (*realm).to_owned();
            let hash = |account: &Account| self.algorithm.of_user(&account.name, realm, &account.password);
            self.hashes = self.accounts.iter().map(hash).collect();
        }
    }
}

/// What a server asks for.
#[derive(Debug, PartialEq, Eq)]
struct Challenge<'a> {
    realm: &'a str,
    nonce: &'a str,
    opaque: Option<&'a str>,
    is_stale: bool,
}

impl<'a> Challenge<'a> {
    /// A challenge with this algorithm.
    fn parse(header: &'a str, wanted: Algorithm) -> Option<Challenge<'a>> {
        let (mut realm, mut nonce, mut opaque, mut is_stale) = (None, None, None, false);
        // MD5 goes without saying.
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

// The server.

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

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
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
        let Some(stored) = self.store.find(name)? else { return Ok(None) };
        let hash = stored.strip_prefix(REALM).and_then(|rest| rest.strip_prefix(':'));
        let hash = hash.ok_or_else(|| format!("what is stored of {name} is not {REALM}: and a hash"))?;
        let method = match request.method {
            Method::Head => "HEAD",
            _ => "GET",
        };
        let expected = self.algorithm.response(hash.as_bytes(), method, answered);
        if verify_slices_are_equal(expected.as_bytes(), response).is_err() {
            return Ok(None);
        }
        self.name.clear();
        self.name.push_str(name);
        Ok(Some((answered.nonce, *count)))
    }
}

/// An `Authorization` header of this scheme.
struct Credentials<'a> {
    name: &'a str,
    realm: &'a [u8],
    algorithm: &'a [u8],
    answered: Answered<'a>,
    count: u32,
    response: &'a [u8],
}

impl<'a> Credentials<'a> {
    fn parse(header: &'a [u8]) -> Option<Credentials<'a>> {
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

/// The nonces that were issued. As many as fit are known; of clients that ask for more, the oldest are forgotten.
struct Nonces {
    issued: Vec<Nonce>,
    next: usize,
    lifetime_ns: u64,
}

struct Nonce {
    random: [u8; 12],
    issued_ns: u64,
    /// The highest count that it was used with.
    count: u32,
}

/// More than there are connections; two megabytes.
const MOST_NONCES: usize = 1 << 16;
/// The digits of a nonce: where it is in the table, and its random bytes.
const PLACE_DIGITS: usize = 8;

#[derive(Debug, PartialEq, Eq)]
enum Use {
    First,
    /// The count, or a higher one, was seen before.
    Again,
    /// None of ours, too old, or forgotten.
    Unknown,
}

impl Nonces {
    fn new(lifetime_ns: u64) -> Nonces {
        Nonces { issued: Vec::new(), next: 0, lifetime_ns }
    }

    fn issue(&mut self, now_ns: u64) -> Result<String, String> {
        let mut random = [0; 12];
        aws_lc_rs::rand::fill(&mut random).map_err(|_| "no random bytes are to be had".to_owned())?;
        let place = self.next;
        self.next = (place + 1) % MOST_NONCES;
        let nonce = Nonce { random, issued_ns: now_ns, count: 0 };
        match self.issued.get_mut(place) {
            Some(oldest) => *oldest = nonce,
            None => self.issued.push(nonce),
        }
        Ok(format!("{place:08x}{}", hex::encode(random)))
    }

    /// Takes a use of a nonce, whose count has to be above the ones before.
    fn take(&mut self, nonce: &[u8], count: u32, now_ns: u64) -> Use {
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
pub mod tests {
    use super::*;
    use crate::exchanges::tests::any_bytes;

    /// What a server stores, for other tests.
    pub fn stored(algorithm: &str, name: &str, password: &str) -> String {
        let algorithm = if algorithm == "md5" { Algorithm::Md5 } else { Algorithm::Sha256 };
        let hash = algorithm.of_user(name, REALM, password);
        format!("{REALM}:{}", String::from_utf8_lossy(hash.as_bytes()))
    }

    /// The examples of RFC 7616, 3.9.1.
    #[test]
    fn a_response_is_as_in_the_standard() {
        let answered = Answered {
            uri: b"/dir/index.html",
            nonce: b"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
            count: b"00000001",
            client_nonce: b"f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
        };
        for (algorithm, expected) in [
            (Algorithm::Md5, "8ca523f5e9506fed4657c9700eebdbec"),
            (Algorithm::Sha256, "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let user = algorithm.of_user("Mufasa", "http-auth@example.org", "Circle of Life");
            let response = algorithm.response(user.as_bytes(), "GET", &answered);
            assert_eq!(expected, String::from_utf8_lossy(response.as_bytes()));
        }
    }

    /// Longer than the room that most have enough of.
    #[test]
    fn any_length_is_hashed() {
        for length in [0, 1, 1021, 1022, 1023, 1024, 5000] {
            let long = vec![b'x'; length];
            let expected =
                aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &[b"a:".as_slice(), &long].concat());
            let found = Algorithm::Sha256.hash(&[b"a", &long]);
            assert_eq!(hex::encode(expected).as_bytes(), found.as_bytes(), "{length}");
        }
    }

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

    /// Each count is taken once, in rising order, until the nonce is too old or forgotten.
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
