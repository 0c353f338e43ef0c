//! A login form, and from then on a random number in a cookie, which the server looks up in SQL for each request.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde::Deserialize;

use super::form::{self, FORGED, FormServer, Tickets, an_hour};
use super::scheme::{Scheme, Wrong};
use super::server::{PLACE, Server};
use super::settings::{Settings, read};
use super::store::{self, Store};
use crate::contract::Failure;

pub const SCHEME: Scheme = Scheme {
    name: "session-cookie",
    client: form::client,
    server: Some(server),
    keeps_state: true,
    has_sign_on: true,
    refused: &[Wrong::NoCredentials, Wrong::Password, Wrong::User, Wrong::Own(FORGED)],
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    store: store::Spec,
    /// The database of sessions, made if it is not there.
    sessions: PathBuf,
    #[serde(default = "an_hour")]
    ticket_s: u64,
}

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let ServerSettings { store, sessions, ticket_s } = read(settings, PLACE)?;
    let store = Store::open(&store)?;
    let tickets = Sessions::open(&sessions)
        .map_err(|error| Failure::Failed(format!("the sessions in {}: {error}", sessions.display())))?;
    Ok(Box::new(FormServer { store, tickets, ticket_s, headers: String::new(), user: String::new() }))
}

struct Sessions(Connection);

impl Sessions {
    fn open(path: &Path) -> rusqlite::Result<Sessions> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        // As servers set SQLite up: a login is in the log when it is answered, and on the disk soon after.
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
             CREATE TABLE IF NOT EXISTS sessions (id BLOB PRIMARY KEY, name TEXT, expires_s INTEGER) WITHOUT ROWID",
        )?;
        Ok(Sessions(connection))
    }
}

impl Tickets for Sessions {
    fn issue(&mut self, name: &str, expires_s: u64) -> Result<String, String> {
        let mut id = [0; 16];
        aws_lc_rs::rand::fill(&mut id).map_err(|_| "no random bytes are to be had".to_owned())?;
        self.0
            .prepare_cached("INSERT INTO sessions VALUES (?1, ?2, ?3)")
            .and_then(|mut statement| statement.execute((id, name, expires_s as i64)))
            .map_err(|error| error.to_string())?;
        Ok(hex::encode(id))
    }

    fn user(&mut self, ticket: &[u8], now_s: u64) -> Result<Option<String>, String> {
        let Ok(id) = hex::decode(ticket) else { return Ok(None) };
        self.0
            .prepare_cached("SELECT name FROM sessions WHERE id = ?1 AND expires_s > ?2")
            .and_then(|mut statement| statement.query_row((id, now_s as i64), |row| row.get(0)).optional())
            .map_err(|error| error.to_string())
    }
}
