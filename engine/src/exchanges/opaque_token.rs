//! Bearer tokens that say nothing: random numbers, of which the server keeps the hashes in SQL.

use std::path::PathBuf;

use serde::Deserialize;

use super::accounts::Account;
use super::bearer::{BearerClient, BearerServer, ENDED, Issuer, Verifier};
use super::client::{Client, Setup};
use super::lookup::{self, Lookup};
use super::scheme::{Scheme, Wrong};
use super::server::{PLACE, Server};
use super::settings::{Settings, read};
use crate::clock;
use crate::contract::Failure;

pub const SCHEME: Scheme = Scheme {
    name: "opaque-token",
    client,
    server: Some(server),
    keeps_state: false,
    has_sign_on: false,
    refused: &[Wrong::NoCredentials, Wrong::Own(UNKNOWN), Wrong::Own(EXPIRED), Wrong::Own(ENDED)],
};

const UNKNOWN: &str = "an unknown token";
const EXPIRED: &str = "an expired token";

// The client. A token stands where accounts have their password.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientSettings {
    /// A file with a token that the server knows and that has expired.
    expired: PathBuf,
    /// One with a token that it takes, and that no account shows: a proof ends it.
    spare: PathBuf,
}

struct Given {
    expired: String,
    spare: String,
    wrong: Option<&'static str>,
}

fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let ClientSettings { expired, spare } = setup.settings()?;
    let read = |path: PathBuf| {
        let refuse = |error| Failure::Failed(format!("the token in {}: {error}", path.display()));
        std::fs::read_to_string(&path).map(|text| text.trim().to_owned()).map_err(refuse)
    };
    BearerClient::made(setup, Given { expired: read(expired)?, spare: read(spare)?, wrong: None })
}

impl Issuer for Given {
    fn issue(&self, account: &Account) -> Result<String, String> {
        let token = &account.password;
        Ok(match self.wrong {
            Some(EXPIRED) => self.expired.clone(),
            Some(UNKNOWN) => token.chars().rev().collect(),
            Some(ENDED) => self.spare.clone(),
            _ => token.clone(),
        })
    }

    fn do_wrong(&mut self, wrong: &'static str) {
        self.wrong = Some(wrong);
    }
}

// The server.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    held: lookup::Spec,
}

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let ServerSettings { held } = read(settings, PLACE)?;
    Ok(Box::new(BearerServer { verifier: Lookup::open(&held)?, user: String::new() }))
}

impl Verifier for Lookup {
    fn user(&mut self, token: &[u8]) -> Result<Option<String>, String> {
        Lookup::user(self, token, clock::unix_s())
    }

    fn ends(&self) -> bool {
        true
    }

    fn end(&mut self, token: &[u8]) -> Result<(), String> {
        Lookup::end(self, token)
    }
}
