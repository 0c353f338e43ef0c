//! Where a server looks up what it knows of a user's password: a file that is read at start, or SQL.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde::Deserialize;

use super::accounts::is_name;
use super::password;
use crate::contract::Failure;

/// `store`, as it comes in.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Spec {
    /// `name:stored`, a line each.
    File(PathBuf),
    /// An SQLite database with a table `accounts (name text primary key, hash text)`.
    Sql(PathBuf),
}

pub struct Store {
    kept: Kept,
    /// What is stored of some user: a password of no user is checked against it.
    any: String,
}

enum Kept {
    File(HashMap<String, String>),
    Sql(Connection),
}

impl Store {
    pub fn open(spec: &Spec) -> Result<Store, Failure> {
        let about =
            |path: &Path, why: String| Failure::Failed(format!("the accounts in {}: {why}", path.display()));
        match spec {
            Spec::File(path) => {
                let stored = std::fs::read_to_string(path)
                    .map_err(|error| error.to_string())
                    .and_then(|text| parse(&text))
                    .map_err(|why| about(path, why))?;
                let any = stored.values().next().cloned().unwrap_or_default();
                Ok(Store { kept: Kept::File(stored), any })
            }
            Spec::Sql(path) => {
                let (connection, any) = open_sql(path).map_err(|error| about(path, error.to_string()))?;
                let any = any.ok_or_else(|| about(path, "no account is there".to_owned()))?;
                Ok(Store { kept: Kept::Sql(connection), any })
            }
        }
    }

    /// What is stored of a user, if it is one.
    pub fn find(&self, name: &str) -> Result<Option<Cow<'_, str>>, String> {
        match &self.kept {
            Kept::File(stored) => Ok(stored.get(name).map(|text| Cow::Borrowed(text.as_str()))),
            Kept::Sql(connection) => find_sql(connection, name).map_err(|error| error.to_string()),
        }
    }

    /// Whether this is the password of a user, where hashes of passwords are stored. That there is no such user takes as
    /// long to find as that the password is wrong: else an attacker would know by the time which users there are.
    pub fn is_password(&self, name: &str, given: &[u8]) -> Result<bool, String> {
        match self.find(name)? {
            Some(hash) => password::matches(&hash, given),
            None => password::matches(&self.any, given).map(|_| false),
        }
    }
}

const SELECT: &str = "SELECT hash FROM accounts WHERE name = ?1";

fn open_sql(path: &Path) -> rusqlite::Result<(Connection, Option<String>)> {
    // One thread uses it.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // A file that is no database, or has no such table, is refused now and not by the first request.
    connection.prepare_cached(SELECT)?;
    let any = connection.query_row("SELECT hash FROM accounts LIMIT 1", (), |row| row.get(0)).optional()?;
    Ok((connection, any))
}

fn find_sql(connection: &Connection, name: &str) -> rusqlite::Result<Option<Cow<'static, str>>> {
    let mut statement = connection.prepare_cached(SELECT)?;
    statement.query_row([name], |row| row.get(0).map(Cow::Owned)).optional()
}

fn parse(text: &str) -> Result<HashMap<String, String>, String> {
    let mut stored = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        match line.split_once(':') {
            Some((name, hash)) if is_name(name.as_bytes()) && !hash.is_empty() => {
                stored.insert(name.to_owned(), hash.to_owned());
            }
            _ => return Err(format!("line {} is not a name, a colon and what is stored", number + 1)),
        }
    }
    if stored.is_empty() { Err("no account is there".to_owned()) } else { Ok(stored) }
}
