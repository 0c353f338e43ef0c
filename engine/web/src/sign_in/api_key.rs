//! API keys (`apiKey` of OpenAPI, in the header `X-API-Key`): an identifier to look up, a dot, and a secret
//! whose hash the server keeps.

use std::path::PathBuf;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use serde::Deserialize;

use super::accounts::{Account, is_name};
use super::lookup::revoked::Entry;
use super::lookup::stored::{Store, StoreSpec};
use super::password;
use super::scheme::{
    Client, NoSettings, Reply, Scheme, Server, Settings, Setup, Verdict, Wrong, read_server,
};
use super::shown::{Issuer, REVOKED, ShownClient};
use super::verified::{CacheSpec, Found, Identity, Verifier, by};
use crate::calls;
use crate::failure::Failure;
use crate::http::request::Request;

pub const SCHEME: Scheme = Scheme {
    name: "api-key",
    client,
    server: Some(server),
    keeps_state: false,
    has_sign_on: false,
    refused: &[
        Wrong::NoCredentials,
        Wrong::Own(UNKNOWN),
        Wrong::Own(WRONG_SECRET),
        Wrong::Own(NO_SECRET),
        Wrong::Own(REVOKED),
    ],
};

const UNKNOWN: &str = "an unknown key";
const WRONG_SECRET: &str = "a key with another secret";
const NO_SECRET: &str = "a key without its secret";

// Client half. The secret is the password of the account.

struct Keys {
    wrong: Option<&'static str>,
}

fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let NoSettings {} = setup.settings()?;
    ShownClient::made(setup, Keys { wrong: None })
}

impl Issuer for Keys {
    const HEADER: &'static str = "X-API-Key: ";

    fn issue(&self, account: &Account) -> Result<String, String> {
        let name = &account.name;
        let secret = match self.wrong {
            Some(UNKNOWN) => return Ok(format!("{name}x.{}", account.password)),
            Some(WRONG_SECRET) => account.password.chars().rev().collect(),
            Some(NO_SECRET) => String::new(),
            _ => account.password.clone(),
        };
        Ok(format!("{name}.{secret}"))
    }

    fn entry(&self, account: &Account) -> Option<Entry> {
        Some(Entry::account(&account.name))
    }

    fn do_wrong(&mut self, wrong: &'static str) {
        self.wrong = Some(wrong);
    }
}

// Server half.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    store: StoreSpec,
    /// File with the key of keyed hashes, which is not in the store.
    pepper: Option<PathBuf>,
    cache: Option<CacheSpec>,
}

struct Looks {
    store: Store,
    pepper: Option<hmac::Key>,
}

/// Challenge that makes a 401 possible (RFC 9110, 15.5.2); no scheme of this name is registered.
const CHALLENGE: &str = "WWW-Authenticate: ApiKey realm=\"tollbar\"\r\n";
const OF_SHA_256: &str = "{SHA-256}";
const OF_HMAC: &str = "{HMAC-SHA-256}";

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let ServerSettings { store, pepper, cache } = read_server(settings)?;
    let read = |path: PathBuf| {
        let refuse = |error| Failure::Failed(format!("the pepper in {}: {error}", path.display()));
        std::fs::read(&path).map(|key| hmac::Key::new(hmac::HMAC_SHA256, &key)).map_err(refuse)
    };
    let looks = Looks { store: Store::open(&store)?, pepper: pepper.map(read).transpose()? };
    Ok(Box::new(ApiKeyServer { verifier: by(looks, cache)?, user: String::new() }))
}

impl Verifier for Looks {
    fn identity(&mut self, key: &[u8]) -> Result<Option<Identity>, String> {
        let parts = std::str::from_utf8(key).ok().and_then(|key| key.split_once('.'));
        let Some((name, secret)) = parts.filter(|(name, _)| is_name(name.as_bytes())) else {
            return Ok(None);
        };
        let (stored, is_user) = self.store.find_any(name)?;
        let is_right = is_secret(self.pepper.as_ref(), &stored, secret.as_bytes())? && is_user;
        Ok(is_right.then(|| Identity { name: name.to_owned(), expires_s: None }))
    }
}

/// Returns true if the stored hash is that of this secret. All methods compare in constant time.
fn is_secret(pepper: Option<&hmac::Key>, stored: &str, secret: &[u8]) -> Result<bool, String> {
    let bytes = |text| hex::decode(text).map_err(|_| "a stored hash must be a hexadecimal number".to_owned());
    if let Some(text) = stored.strip_prefix(OF_SHA_256) {
        calls::tally("SHA-256");
        return Ok(verify_slices_are_equal(digest(&SHA256, secret).as_ref(), &bytes(text)?).is_ok());
    }
    if let Some(text) = stored.strip_prefix(OF_HMAC) {
        calls::tally("HMAC");
        let key = pepper.ok_or("a stored hash needs a pepper, which the server does not have")?;
        return Ok(hmac::verify(key, secret, &bytes(text)?).is_ok());
    }
    password::matches(stored, secret)
}

struct ApiKeyServer {
    verifier: Box<dyn Verifier>,
    user: String,
}

impl Server for ApiKeyServer {
    fn check(&mut self, request: &Request<'_>) -> Verdict<'_> {
        let identity = request.api_key.map_or(Ok(None), |key| self.verifier.identity(key));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign_in::tests::any_bytes;

    /// Hashes by Python's hashlib and hmac, of `secret` and with the key `pepper`.
    const SHA_256: &str = "{SHA-256}2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    const HMAC: &str = "{HMAC-SHA-256}804e6d854739162fdea0d455b3aafe67f40d2919406186a27be601596ac6d306";

    #[test]
    fn what_is_stored_is_compared_with_the_secret() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"pepper");
        let other = hmac::Key::new(hmac::HMAC_SHA256, b"salt");
        for stored in [SHA_256, HMAC] {
            assert_eq!(Ok(true), is_secret(Some(&key), stored, b"secret"), "{stored}");
            for wrong in [&b"Secret"[..], b"", stored.as_bytes()] {
                assert_eq!(Ok(false), is_secret(Some(&key), stored, wrong), "{stored}");
            }
            for length in 0..stored.len() {
                assert_ne!(Ok(true), is_secret(Some(&key), &stored[..length], b"secret"), "{length}");
            }
        }
        assert_eq!(Ok(false), is_secret(Some(&other), HMAC, b"secret"));
        assert!(is_secret(None, HMAC, b"secret").is_err());
    }

    #[test]
    fn any_key_is_taken_for_none() {
        let files = crate::sign_in::lookup::database::tests::Folder::new("any-key");
        let path = files.0.join("keys");
        std::fs::write(&path, format!("u1:{SHA_256}\n")).expect("a file");
        let store = Store::open(&StoreSpec::File(path)).expect("a store");
        let mut looks = Looks { store, pepper: None };
        for bytes in any_bytes(&[b"u1", b".", b"Secret", b"\xff", b":", b"u1."]) {
            assert_eq!(Ok(None), looks.identity(&bytes));
        }
        assert!(looks.identity(b"u1.secret").expect("an answer").is_some());
    }
}
