//! What a `store` task asks: an ordinary task, and where the database is.

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

/// Where the database is.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Of rows behind requests.
    #[serde(default)]
    pub connection: Connection,
    /// An empty private directory: the embedded database lies in it, and flushes are timed in it.
    pub directory: PathBuf,
    /// None for the embedded database.
    pub server: Option<Server>,
    /// Component to the process at the root of its tree.
    #[serde(default)]
    pub components: BTreeMap<String, i32>,
}

/// For how long the connection to a database serves, or an embedded one stays open.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Connection {
    #[default]
    Kept,
    EachRequest,
}

impl Connection {
    /// What a server says that has used so many rows, and a client expects of it.
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

/// What the server asks the application for.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Authentication {
    /// Nothing: the permissions of its socket say who that is.
    #[default]
    Trust,
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
}

#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct Server {
    pub kind: ServerKind,
    /// The socket, or the folder it is in.
    pub socket: PathBuf,
    /// Part of the socket's name, where it has one.
    pub port: Option<u16>,
    pub user: String,
    /// None: the one that the server's server has for this.
    pub database: Option<String>,
    /// For how long it may be silent over one statement.
    pub answer_limit_s: f64,
    /// Where clients reach it over TCP; None: over the socket.
    #[serde(default)]
    pub address: Option<SocketAddr>,
    /// None: in clear.
    #[serde(default)]
    pub tls: Option<ClientSpec>,
    #[serde(default)]
    pub authentication: Authentication,
    /// The socket of what stands between clients and the server, and keeps connections; None: nothing does.
    #[serde(default)]
    pub pooler: Option<PathBuf>,
    /// A certificate that is not the server's, as PEM: for the proof that the client holds to the right one.
    #[serde(default)]
    pub other_certificate_pem: Option<String>,
}

impl Server {
    pub fn answer_limit(&self) -> Result<Duration, Failure> {
        let limit = Duration::try_from_secs_f64(self.answer_limit_s).ok().filter(|limit| !limit.is_zero());
        limit.ok_or_else(|| {
            let given = self.answer_limit_s;
            Failure::Failed(format!("`store.server.answer_limit_s` is a number of seconds, and not {given}"))
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

/// How rows are used by one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Insert,
    Read,
    /// As many rows as are inserted are read afterwards.
    InsertAndRead,
    Find,
    Open,
    /// No row is used: a connection is made and ended.
    SignOn,
}

impl Access {
    /// Whether it changes the table.
    pub fn inserts(self) -> bool {
        matches!(self, Access::Insert | Access::InsertAndRead)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// What a commit wrote may be lost with the machine's power.
    Off,
    /// A commit is on the disk when it returns.
    Flushed,
}

/// The settings that all databases understand alike.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub access: Access,
    /// In the table before the first operation.
    pub rows: i64,
    pub rows_per_commit: u64,
    pub durability: Durability,
}

/// Ids are in memory in batches only; a table of more rows than this was meant in another unit.
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

/// Whether a server inserts and reads rows by loops of its own. Unsupported where it has not the key.
pub fn is_in_server(task: &contract::Task, table: &Table) -> Result<bool, Failure> {
    let in_server = task.one_of("loop", &[("client", false), ("server", true)])?;
    if in_server && table.sealed().is_some() {
        let words = "what the application encrypts is inserted and read by the application, and not by a loop in the server";
        return Err(Failure::Unsupported(words.to_owned()));
    }
    Ok(in_server)
}

/// A setting that is a number of rows.
fn number(task: &contract::Task, name: &str, default: u64) -> Result<u64, Failure> {
    match task.number(name, default)? {
        rows if (1..=MOST_ROWS).contains(&rows) => Ok(rows),
        rows => {
            Err(Failure::Failed(format!("the setting `{name}` is from 1 to {MOST_ROWS}, and not {rows}")))
        }
    }
}
