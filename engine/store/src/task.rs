//! The `store` task: an ordinary task, and the place of the database.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::table::Table;
use crate::contract;
use crate::failure::Failure;
use crate::tls::ClientSpec;

#[derive(Deserialize, Debug)]
#[serde(try_from = "Value")]
pub struct Task {
    pub task: contract::Task,
    pub place: Option<Place>,
}

/// Place of the database.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Lifetime of the connection of rows behind requests.
    #[serde(default)]
    pub connection: Connection,
    /// Empty private directory: it contains the embedded database, and flushes are timed in it.
    pub directory: PathBuf,
    /// Server of the database; None for the embedded database.
    pub server: Option<Server>,
    /// Components, each with the process at the root of its tree.
    #[serde(default)]
    pub components: BTreeMap<String, i32>,
}

/// Lifetime of the connection to a database, or of an embedded one's open file.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Connection {
    #[default]
    Kept,
    EachRequest,
}

impl Connection {
    /// Formats the answer of a server with this number of used rows, which a client expects.
    pub fn words(self, rows: u64) -> String {
        used(
            rows,
            match self {
                Connection::Kept => "one that is kept",
                Connection::EachRequest => "none between requests",
            },
        )
    }
}

pub fn used(rows: u64, connection: &str) -> String {
    format!("{rows} rows, connections: {connection}\n")
}

/// Authentication of the application by the server.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Authentication {
    /// No authentication: the permissions of the server's socket identify the application.
    #[default]
    Trust,
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
}

#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct Server {
    pub kind: ServerKind,
    /// Socket, or the folder that contains it.
    pub socket: PathBuf,
    /// Part of the socket's name, if it has one.
    pub port: Option<u16>,
    pub user: String,
    /// Name of the database; None: the server's default for this purpose.
    pub database: Option<String>,
    /// Limit of the server's silence during one statement.
    pub answer_limit_s: f64,
    /// Address of the server over TCP; None: the socket.
    #[serde(default)]
    pub address: Option<SocketAddr>,
    /// Client's TLS settings; None: no TLS.
    #[serde(default)]
    pub tls: Option<ClientSpec>,
    #[serde(default)]
    pub authentication: Authentication,
    /// Socket of a pooler between clients and the server; None: there is no pooler.
    #[serde(default)]
    pub pooler: Option<PathBuf>,
    /// Certificate that is not the server's, as PEM: for the proof that the client accepts only the right
    /// one.
    #[serde(default)]
    pub other_certificate_pem: Option<String>,
}

impl Server {
    pub fn answer_limit(&self) -> Result<Duration, Failure> {
        let limit = Duration::try_from_secs_f64(self.answer_limit_s).ok().filter(|limit| !limit.is_zero());
        limit.ok_or_else(|| {
            let given = self.answer_limit_s;
            Failure::Failed(format!("`store.server.answer_limit_s` must be a number of seconds, not {given}"))
        })
    }
}

#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ServerKind {
    Postgresql,
    Mariadb,
}

impl TryFrom<Value> for Task {
    type Error = String;

    fn try_from(mut value: Value) -> Result<Task, String> {
        let place = value.as_object_mut().and_then(|fields| fields.remove("store"));
        let place = place.map(serde_json::from_value).transpose();
        let task = serde_json::from_value(value).map_err(|error| error.to_string())?;
        Ok(Task { task, place: place.map_err(|error| format!("its `store`: {error}"))? })
    }
}

/// Use of rows by one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Insert,
    Read,
    /// Insertion of rows, and reading of the same number.
    InsertAndRead,
    Find,
    Open,
    /// A new connection that is then ended, without a row.
    SignOn,
}

impl Access {
    /// Returns true if it changes the table.
    pub fn inserts(self) -> bool {
        matches!(self, Access::Insert | Access::InsertAndRead)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A power failure may lose committed rows.
    Off,
    /// A commit is on the disk when it returns.
    Flushed,
}

/// Settings that all databases share.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub access: Access,
    /// Rows in the table before the first operation.
    pub rows: i64,
    pub rows_per_commit: u64,
    pub durability: Durability,
}

/// Limit of rows: more were meant in another unit. Only batches of ids are kept in memory.
const MOST_ROWS: u64 = 1_000_000_000;

impl Settings {
    pub fn of(task: &contract::Task) -> Result<Settings, Failure> {
        let access = task.operation(&[
            ("insert", Access::Insert),
            ("read", Access::Read),
            ("insert-and-read", Access::InsertAndRead),
            ("find", Access::Find),
            ("open", Access::Open),
            ("sign-on", Access::SignOn),
        ])?;
        let rows = if matches!(access, Access::Insert | Access::SignOn) {
            0
        } else {
            number(task, "rows", 10_000)? as i64
        };
        let rows_per_commit = if access.inserts() { number(task, "rows-per-commit", 250)? } else { 1 };
        let durability =
            task.one_of("durability", &[("off", Durability::Off), ("flushed", Durability::Flushed)])?;
        Ok(Settings { access, rows, rows_per_commit, durability })
    }
}

/// Returns true if a server's own loops insert and read rows. Refuses that if the server does not have the
/// key.
pub fn is_in_server(task: &contract::Task, table: &Table) -> Result<bool, Failure> {
    let in_server = task.one_of("loop", &[("client", false), ("server", true)])?;
    if in_server && table.sealed().is_some() {
        let words = "values that the application encrypts cannot be inserted or read by a loop in the server";
        return Err(Failure::Unsupported(words.to_owned()));
    }
    Ok(in_server)
}

/// Reads a setting that is a number of rows.
fn number(task: &contract::Task, name: &str, default: u64) -> Result<u64, Failure> {
    match task.number(name, default)? {
        rows if (1..=MOST_ROWS).contains(&rows) => Ok(rows),
        rows => {
            Err(Failure::Failed(format!("the setting `{name}` must be from 1 to {MOST_ROWS}, not {rows}")))
        }
    }
}
