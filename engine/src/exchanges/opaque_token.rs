//! Bearer tokens that say nothing: random numbers, of which the server keeps the hashes in SQL.

use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde::Deserialize;

use super::accounts::Account;
use super::bearer::{BearerClient, BearerServer, Issuer, Verifier};
use super::client::{Client, Setup};
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
    refused: &[Wrong::NoCredentials, Wrong::Own(UNKNOWN), Wrong::Own(EXPIRED)],
};

const UNKNOWN: &str = "an unknown token";
const EXPIRED: &str = "an expired token";

// The client. A token stands where accounts have their password.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientSettings {
    /// A file with a token that the server knows and that has expired.
    expired: PathBuf,
}

struct Given {
    expired: String,
    wrong: Option<&'static str>,
}

fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let ClientSettings { expired: path } = setup.settings()?;
    let expired = std::fs::read_to_string(&path)
        .map_err(|error| Failure::Failed(format!("the token in {}: {error}", path.display())))?;
    BearerClient::made(setup, Given { expired: expired.trim().to_owned(), wrong: None })
}

impl Issuer for Given {
    fn issue(&self, account: &Account) -> Result<String, String> {
        let token = &account.password;
        Ok(match self.wrong {
            Some(EXPIRED) => self.expired.clone(),
            Some(_) => token.chars().rev().collect(),
            None => token.clone(),
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
    /// An SQLite database with a table `tokens (hash text primary key, name text, expires integer)`: of each token
    /// the SHA-256 of its text in hexadecimal, its user, and the second since 1970 from which it is not taken.
    tokens: PathBuf,
}

struct Tokens(Connection);

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let ServerSettings { tokens } = read(settings, PLACE)?;
    let verifier = Tokens::open(&tokens)
        .map_err(|error| Failure::Failed(format!("the tokens in {}: {error}", tokens.display())))?;
    Ok(Box::new(BearerServer { verifier, user: String::new() }))
}

const SELECT: &str = "SELECT name FROM tokens WHERE hash = ?1 AND expires > ?2";

impl Tokens {
    fn open(path: &Path) -> rusqlite::Result<Tokens> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.prepare_cached(SELECT)?;
        Ok(Tokens(connection))
    }
}

impl Verifier for Tokens {
    fn user(&mut self, token: &[u8]) -> Result<Option<String>, String> {
        let hash = hex::encode(digest(&SHA256, token));
        let now_s = clock::unix_s();
        self.0
            .prepare_cached(SELECT)
            .and_then(|mut statement| statement.query_row((hash, now_s as i64), |row| row.get(0)).optional())
            .map_err(|error| error.to_string())
    }
}
