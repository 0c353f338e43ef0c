//! Basic (RFC 7617): name and password in each request, practically in clear text. A sign-on is a browser's
//! first page: requested without them, refused with a challenge, and requested again.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::accounts::{Account, is_name};
use super::lookup::revoked::Entry;
use super::lookup::stored::{Store, StoreSpec};
use super::scheme::{
    Client, NoSettings, Reply, Scheme, Server, Settings, Setup, Verdict, Wrong, read_server,
};
use super::shown::{Issuer, REVOKED, ShownClient};
use super::verified::{CacheSpec, Found, Identity, Verifier, by};
use crate::failure::Failure;
use crate::http::request::Request;

pub const SCHEME: Scheme = Scheme {
    name: "basic",
    client,
    server: Some(server),
    keeps_state: false,
    has_sign_on: true,
    refused: &[Wrong::NoCredentials, Wrong::Password, Wrong::User, Wrong::Own(REVOKED)],
};

struct Passwords;

fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let NoSettings {} = setup.settings()?;
    ShownClient::made(setup, Passwords)
}

impl Issuer for Passwords {
    const HEADER: &'static str = "Authorization: Basic ";

    fn issue(&self, account: &Account) -> Result<String, String> {
        Ok(STANDARD.encode(format!("{}:{}", account.name, account.password)))
    }

    fn entry(&self, account: &Account) -> Option<Entry> {
        Some(Entry::account(&account.name))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    store: StoreSpec,
    cache: Option<CacheSpec>,
}

/// Verifier of name, colon and password.
struct Looks(Store);

impl Verifier for Looks {
    fn identity(&mut self, credentials: &[u8]) -> Result<Option<Identity>, String> {
        let Some((name, password)) = parts(credentials) else { return Ok(None) };
        let identity = Identity { name: name.to_owned(), expires_s: None };
        Ok(self.0.is_password(name, password)?.then_some(identity))
    }
}

struct BasicServer {
    verifier: Box<dyn Verifier>,
    /// Name and password of the request, decoded.
    credentials: Vec<u8>,
    user: String,
}

/// Challenge with the charset in which clients must encode names and passwords (RFC 7617, 2.1).
const CHALLENGE: &str = "WWW-Authenticate: Basic realm=\"tollbar\", charset=\"UTF-8\"\r\n";

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let ServerSettings { store, cache } = read_server(settings)?;
    let verifier = by(Looks(Store::open(&store)?), cache)?;
    Ok(Box::new(BasicServer { verifier, credentials: Vec::new(), user: String::new() }))
}

impl Server for BasicServer {
    fn check(&mut self, request: &Request<'_>) -> Verdict<'_> {
        let given = request.authorization.and_then(|header| decode(header, &mut self.credentials));
        let identity = given.map_or(Ok(None), |given| self.verifier.identity(given));
        match identity {
            Ok(Some(identity)) => {
                self.user = identity.name;
                Verdict::User(&self.user)
            }
            Ok(None) => Verdict::Answer(Reply::unauthorized(CHALLENGE)),
            Err(why) => Verdict::Answer(Reply::failed(&why)),
        }
    }

    fn found(&mut self) -> Option<Found> {
        self.verifier.found()
    }
}

/// Decodes name, colon and password of an `Authorization` header, if it is of this scheme.
fn decode<'a>(header: &[u8], into: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let (scheme, encoded) = header.split_at_checked(b"Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    into.clear();
    STANDARD.decode_vec(encoded.trim_ascii(), into).ok()?;
    Some(into)
}

/// Splits name and password, if both are valid.
fn parts(credentials: &[u8]) -> Option<(&str, &[u8])> {
    let colon = credentials.iter().position(|byte| *byte == b':')?;
    let (name, password) = (&credentials[..colon], &credentials[colon + 1..]);
    if is_name(name) { Some((std::str::from_utf8(name).ok()?, password)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign_in::tests::any_bytes;

    #[test]
    fn a_header_is_decoded() {
        let mut buffer = Vec::new();
        // The header is the example of RFC 7617, 2.
        assert_eq!(None, decode(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ", &mut buffer).and_then(parts));
        for header in ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "bASIC  QWxhZGRpbjpvcGVuIHNlc2FtZQ== "] {
            let expected = Some(("Aladdin", &b"open sesame"[..]));
            assert_eq!(expected, decode(header.as_bytes(), &mut buffer).and_then(parts), "{header}");
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
            assert_eq!(
                expected,
                decode(header.as_bytes(), &mut buffer).and_then(parts),
                "{}",
                credentials.escape_ascii()
            );
        }
    }

    #[test]
    fn any_header_is_taken() {
        let mut buffer = Vec::new();
        for bytes in any_bytes(&[b"Basic ", b"QWxhZGRpbjpv", b"Og==", b"=", b"\xff", b":", b" "]) {
            if let Some((name, _)) = decode(&bytes, &mut buffer).and_then(parts) {
                assert!(is_name(name.as_bytes()), "{name:?}");
            }
        }
    }
}
