//! Sealed tickets of a form: the server stores nothing, because everything it needs is sealed into them.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::server::{Cookie, FormServer, an_hour};
use crate::calls;
use crate::failure::Failure;
use crate::sign_in::lookup::Lookup;
use crate::sign_in::lookup::stored::{Store, StoreSpec};
use crate::sign_in::scheme::{Server, Settings, read_server};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    store: StoreSpec,
    #[serde(default = "an_hour")]
    ticket_s: u64,
    #[serde(default)]
    secure: bool,
}

pub fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    Ok(Box::new(form_server(settings)?))
}

fn form_server(settings: &Settings) -> Result<FormServer<Sealed>, Failure> {
    let ServerSettings { store, ticket_s, secure } = read_server(settings)?;
    let (store, tickets) = (Store::open(&store)?, Sealed::new()?);
    FormServer::new(store, tickets, Cookie { lasts_s: ticket_s, secure })
}

/// Tickets sealed with a key of this process: a restarted server accepts none of them.
pub struct Sealed(RandomizedNonceKey);

impl Sealed {
    pub fn new() -> Result<Sealed, Failure> {
        let mut key = [0; 32];
        let made = rand::fill(&mut key).and_then(|()| RandomizedNonceKey::new(&AES_256_GCM, &key));
        made.map(Sealed).map_err(|_| Failure::Failed("a key for tickets cannot be made".to_owned()))
    }
}

impl Lookup for Sealed {
    /// Makes a ticket of the nonce and, encrypted, the expiry and the name.
    fn issue(&mut self, name: &str, _now_s: u64, expires_s: u64) -> Result<String, String> {
        let mut sealed = [&expires_s.to_be_bytes(), name.as_bytes()].concat();
        calls::tally("ticket sealed");
        let nonce = self.0.seal_in_place_append_tag(Aad::empty(), &mut sealed);
        let nonce = nonce.map_err(|_| "a ticket cannot be sealed".to_owned())?;
        Ok(URL_SAFE_NO_PAD.encode([nonce.as_ref().as_slice(), &sealed].concat()))
    }

    fn user(&mut self, ticket: &[u8], now_s: u64) -> Result<Option<String>, String> {
        Ok(self.open(ticket, now_s))
    }
}

impl Sealed {
    fn open(&self, ticket: &[u8], now_s: u64) -> Option<String> {
        let mut bytes = URL_SAFE_NO_PAD.decode(ticket).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        calls::tally("ticket opened");
        let opened = self.0.open_in_place(nonce, Aad::empty(), sealed).ok()?;
        let (expires_s, name) = opened.split_first_chunk()?;
        let is_valid = now_s < u64::from_be_bytes(*expires_s);
        if is_valid { String::from_utf8(name.to_vec()).ok() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::super::server::tests::lasts;
    use super::*;
    use crate::sign_in::lookup::database::tests::Folder;

    #[test]
    fn a_ticket_is_taken_until_it_expires_and_as_it_was_given() {
        let mut sealed = Sealed::new().expect("a key");
        // A ticket cannot be ended before it expires.
        assert!(!Lookup::ends(&sealed));
        let ticket = sealed.issue("u1", 0, 100).expect("a ticket");
        let mut user = |ticket: &str, now_s| sealed.user(ticket.as_bytes(), now_s).expect("an answer");
        assert_eq!(Some("u1".to_owned()), user(&ticket, 99));
        assert_eq!(None, user(&ticket, 100));
        for place in 0..ticket.len() {
            let mut forged = ticket.clone();
            let other = if forged[place..].starts_with('A') { "B" } else { "A" };
            forged.replace_range(place..=place, other);
            assert_eq!(None, user(&forged, 99), "{place}");
        }
        assert_eq!(Ok(None), Sealed::new().expect("a key").user(ticket.as_bytes(), 99));
    }

    #[test]
    fn a_ticket_is_sealed_once_and_opened_with_each_request() {
        let mut sealed = Sealed::new().expect("a key");
        calls::tallied();
        let ticket = sealed.issue("u1", 0, 100).expect("a ticket");
        assert_eq!(BTreeMap::from([("ticket sealed", 1)]), calls::tallied());
        sealed.user(ticket.as_bytes(), 99).expect("an answer");
        assert_eq!(BTreeMap::from([("ticket opened", 1)]), calls::tallied());
    }

    #[test]
    fn a_login_lasts_as_long_as_the_server_was_told() {
        let folder = Folder::new("sealed");
        lasts(100, form_server, json!({"ticket_s": 100}), &folder.0);
        lasts(3600, form_server, json!({}), &folder.0);
    }
}
