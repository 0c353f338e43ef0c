//! Basic (RFC 7617): name and password in each request, as good as in clear text.

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
use crate::contract::Failure;
use crate::http::prebuilt::Prebuilt;
use crate::http::request::Request;
use crate::http::response::Expected;

pub const SCHEME: Scheme = Scheme {
    name: "basic",
    client,
    server: Some(server),
    keeps_state: false,
    has_sign_on: false,
    refused: &[Wrong::NoCredentials, Wrong::Password, Wrong::User],
};

struct BasicClient {
    requests: Vec<Prebuilt>,
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
    Ok(Box::new(BasicClient { requests: setup.requests(), expected: setup.expected(), accounts, headers }))
}

impl Client for BasicClient {
    #[inline]
    fn request(&mut self, operation: &Operation) -> &[u8] {
        let header = &self.headers[self.accounts.drawn(operation)];
        self.requests[usize::from(operation.path)].with(operation.unique, header)
    }

    #[inline]
    fn expected(&self, _operation: &Operation) -> &Expected {
        &self.expected
    }

    fn user(&self, operation: &Operation) -> Option<&str> {
        Some(&self.accounts[self.accounts.drawn(operation)].name)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    store: store::Spec,
}

struct BasicServer {
    store: Store,
    /// Name and password of the request, decoded.
    credentials: Vec<u8>,
}

/// The charset is what clients are to encode names and passwords in (RFC 7617, 2.1).
const CHALLENGE: &str = "WWW-Authenticate: Basic realm=\"tollbar\", charset=\"UTF-8\"\r\n";

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let ServerSettings { store } = read(settings, PLACE)?;
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
    use crate::exchanges::tests::any_bytes;

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
    fn any_header_is_taken() {
        let mut buffer = Vec::new();
        for bytes in any_bytes(&[b"Basic ", b"QWxhZGRpbjpv", b"Og==", b"=", b"\xff", b":", b" "]) {
            if let Some((name, _)) = decode(&bytes, &mut buffer) {
                assert!(is_name(name.as_bytes()), "{name:?}");
            }
        }
    }
}
