//! Basic (RFC 7617): name and password in each request, as good as in clear text. A sign-on is a browser's first page:
//! asked for without them, refused with a challenge, and asked for again.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::accounts::{Account, Accounts, is_name};
use super::lookup::{Store, StoreSpec};
use super::scheme::{
    Client, Judgement, NoSettings, Reply, Scheme, Server, Settings, Setup, Verdict, Visit, VisitKind, Wrong,
    read_server,
};
use crate::failure::{self, Failure, Fault};
use crate::http::prebuilt::Prebuilt;
use crate::http::request::Request;
use crate::http::response::{Expected, Response};

pub const SCHEME: Scheme = Scheme {
    name: "basic",
    client,
    server: Some(server),
    keeps_state: false,
    has_sign_on: true,
    refused: &[Wrong::NoCredentials, Wrong::Password, Wrong::User],
};

struct BasicClient {
    kind: VisitKind,
    /// Requests that are to be challenged, and those with credentials.
    bare: Vec<Prebuilt>,
    requests: Vec<Prebuilt>,
    challenged: Expected,
    expected: Expected,
    accounts: Accounts,
    /// Of each account.
    headers: Vec<Box<[u8]>>,
}

fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let NoSettings {} = setup.settings()?;
    let accounts = setup.accounts()?;
    let header = |account: &Account| {
        let credentials = STANDARD.encode(format!("{}:{}", account.name, account.password));
        format!("Authorization: Basic {credentials}\r\n").into_bytes().into()
    };
    let headers = accounts.iter().map(header).collect();
    Ok(Box::new(BasicClient {
        kind: setup.kind,
        bare: setup.followed(),
        requests: setup.requests(),
        challenged: setup.answered(401),
        expected: setup.expected(),
        accounts,
        headers,
    }))
}

impl BasicClient {
    /// Whether the request under way is a sign-on's first, which has no credentials.
    fn is_bare(&self, visit: &Visit) -> bool {
        self.kind == VisitKind::SignOn && visit.leg == 0
    }
}

impl Client for BasicClient {
    #[inline]
    fn request(&mut self, visit: &Visit) -> &[u8] {
        if self.is_bare(visit) {
            return self.bare[usize::from(visit.path)].with(visit.unique, b"");
        }
        let header = &self.headers[self.accounts.drawn(visit.unique)];
        self.requests[usize::from(visit.path)].with(visit.unique, header)
    }

    #[inline]
    fn expected(&self, visit: &Visit) -> &Expected {
        if self.is_bare(visit) { &self.challenged } else { &self.expected }
    }

    fn judge(&mut self, visit: &Visit, response: &Response) -> Result<Judgement, Fault> {
        response.check(self.expected(visit))?;
        if !self.is_bare(visit) {
            return Ok(Judgement::Done);
        }
        match response.headers("WWW-Authenticate").any(is_challenge) {
            true => Ok(Judgement::Continue),
            false => Err(Fault::new(failure::NOT_HTTP, "no challenge for Basic")),
        }
    }

    fn user(&self, visit: &Visit) -> Option<&str> {
        Some(&self.accounts[self.accounts.drawn(visit.unique)].name)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    store: StoreSpec,
}

struct BasicServer {
    store: Store,
    /// Name and password of the request, decoded.
    credentials: Vec<u8>,
}

/// The charset is what clients are to encode names and passwords in (RFC 7617, 2.1).
const CHALLENGE: &str = "WWW-Authenticate: Basic realm=\"tollbar\", charset=\"UTF-8\"\r\n";

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let ServerSettings { store } = read_server(settings)?;
    Ok(Box::new(BasicServer { store: Store::open(&store)?, credentials: Vec::new() }))
}

impl Server for BasicServer {
    fn check(&mut self, request: &Request<'_>) -> Verdict<'_> {
        let given = request.authorization.and_then(|header| decode(header, &mut self.credentials));
        let Some((name, password)) = given else {
            return Verdict::Answer(Reply::unauthorized(CHALLENGE));
        };
        match self.store.is_password(name, password) {
            Ok(true) => Verdict::User(name),
            Ok(false) => Verdict::Answer(Reply::unauthorized(CHALLENGE)),
            Err(why) => Verdict::Answer(Reply::failed(&why)),
        }
    }
}

/// Whether a challenge is of this scheme; its realm is required (RFC 7617, 2).
fn is_challenge(header: &str) -> bool {
    let parameters = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Basic"));
    parameters.is_some_and(|(_, rest)| {
        let mut names = rest.split(',').filter_map(|parameter| parameter.split_once('='));
        names.any(|(name, _)| name.trim().eq_ignore_ascii_case("realm"))
    })
}

/// Name and password of an `Authorization` header, if it is one of this scheme.
fn decode<'a>(header: &[u8], into: &'a mut Vec<u8>) -> Option<(&'a str, &'a [u8])> {
    let (scheme, encoded) = header.split_at_checked(b"Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    into.clear();
    STANDARD.decode_vec(encoded.trim_ascii(), into).ok()?;
    let colon = into.iter().position(|byte| *byte == b':')?;
    let (name, password) = (&into[..colon], &into[colon + 1..]);
    if is_name(name) { Some((std::str::from_utf8(name).ok()?, password)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign_in::tests::any_bytes;

    #[test]
    fn a_header_is_decoded() {
        let mut buffer = Vec::new();
        // The example of RFC 7617, 2.
        assert_eq!(None, decode(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ", &mut buffer));
        for header in ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "bASIC  QWxhZGRpbjpvcGVuIHNlc2FtZQ== "] {
            let expected = Some(("Aladdin", &b"open sesame"[..]));
            assert_eq!(expected, decode(header.as_bytes(), &mut buffer), "{header}");
        }
        for (credentials, expected) in [
            (&b"a:b:c"[..], Some(("a", &b"b:c"[..]))),
            (b"a:", Some(("a", b""))),
            (b":b", None),
            (b"ab", None),
            (b"a\r\nX: y:b", None),
            (b"\xff:b", None),
        ] {
            let header = format!("Basic {}", STANDARD.encode(credentials));
            assert_eq!(expected, decode(header.as_bytes(), &mut buffer), "{}", credentials.escape_ascii());
        }
    }

    #[test]
    fn a_challenge_names_the_scheme_and_a_realm() {
        for (header, expected) in [
            ("Basic realm=\"tollbar\", charset=\"UTF-8\"", true),
            ("bASIC charset=\"UTF-8\", Realm=\"WallyWorld\"", true),
            ("Basic", false),
            ("Basic charset=\"UTF-8\"", false),
            ("Basics realm=\"tollbar\"", false),
            ("Digest realm=\"tollbar\", nonce=\"1\"", false),
            ("", false),
        ] {
            assert_eq!(expected, is_challenge(header), "{header}");
        }
    }

    #[test]
    fn any_header_is_taken() {
        let mut buffer = Vec::new();
        for bytes in any_bytes(&[b"Basic ", b"QWxhZGRpbjpv", b"Og==", b"=", b"\xff", b":", b" "]) {
            if let Some((name, _)) = decode(&bytes, &mut buffer) {
                assert!(is_name(name.as_bytes()), "{name:?}");
            }
        }
    }
}
