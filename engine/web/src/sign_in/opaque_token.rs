//! Opaque bearer tokens: random numbers, whose hashes the server keeps in SQL.

use std::path::PathBuf;

use serde::Deserialize;

use super::accounts::Account;
use super::bearer::{BearerServer, HEADER};
use super::lookup::Sql;
use super::lookup::held::Held;
use super::lookup::revoked::Entry;
use super::scheme::{Client, Scheme, Server, Settings, Setup, Wrong, read_server};
use super::shown::{ENDED, Issuer, REVOKED, ShownClient};
use super::verified::{CacheSpec, by};
use crate::failure::Failure;

pub const SCHEME: Scheme = Scheme {
    name: "opaque-token",
    client,
    server: Some(server),
    keeps_state: false,
    has_sign_on: false,
    refused: &[
        Wrong::NoCredentials,
        Wrong::Own(UNKNOWN),
        Wrong::Own(EXPIRED),
        Wrong::Own(REVOKED),
        Wrong::Own(ENDED),
    ],
};

const UNKNOWN: &str = "an unknown token";
const EXPIRED: &str = "an expired token";

// Client half. A token is the password of the account.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientSettings {
    /// File with a token that the server knows and that has expired.
    expired: PathBuf,
    /// File with a valid token that no account uses: a proof ends it.
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
    ShownClient::made(setup, Given { expired: read(expired)?, spare: read(spare)?, wrong: None })
}

impl Issuer for Given {
    const HEADER: &'static str = HEADER;

    fn issue(&self, account: &Account) -> Result<String, String> {
        let token = &account.password;
        Ok(match self.wrong {
            Some(EXPIRED) => self.expired.clone(),
            Some(UNKNOWN) => token.chars().rev().collect(),
            Some(ENDED | REVOKED) => self.spare.clone(),
            _ => token.clone(),
        })
    }

    fn entry(&self, _account: &Account) -> Option<Entry> {
        Some(Entry::held(self.spare.as_bytes()))
    }

    fn do_wrong(&mut self, wrong: &'static str) {
        self.wrong = Some(wrong);
    }
}

// Server half.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    held: Sql,
    cache: Option<CacheSpec>,
}

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let ServerSettings { held, cache } = read_server(settings)?;
    Ok(BearerServer::of(by(Held::open(&held)?, cache)?))
}
