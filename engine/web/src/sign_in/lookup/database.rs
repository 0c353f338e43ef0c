//! A server's own copy of a database, set up and queried in one way.

use std::path::PathBuf;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row};
use serde::Deserialize;

use crate::calls;

/// A database of SQLite, as it is configured.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Sql {
    from: PathBuf,
    /// Path of the server's own copy, which it writes.
    at: PathBuf,
}

/// A server's own copy of a database.
pub struct Database(pub Connection);

impl Database {
    /// Opens it as servers set SQLite up: a write is in the log when it is answered, and on the disk soon
    /// after. `first_write` must leave the content unchanged, and `reads` is the query to come.
    ///
    /// All look-ups use this way, because SQLite's work for a statement depends on it. It locks and checks
    /// the file differently in another mode, or with an empty log, which no server in use has.
    pub fn open(Sql { from, at }: &Sql, first_write: &str, reads: &str) -> Result<Database, String> {
        let refuse = |why: String| format!("{}: {why}", from.display());
        // An older journal next to it would be read as this one's.
        if at.exists() {
            return Err(refuse(format!("{} is there already", at.display())));
        }
        std::fs::copy(from, at).map_err(|error| refuse(error.to_string()))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = || -> rusqlite::Result<Connection> {
            let connection = Connection::open_with_flags(at, flags)?;
            connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")?;
            connection.prepare_cached(reads)?;
            connection.execute_batch(first_write)?;
            Ok(connection)
        };
        opened().map(Database).map_err(|error| refuse(error.to_string()))
    }

    /// Reads the row of a query. Returns None if there is none.
    pub fn row<T>(
        &self,
        query: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, String> {
        calls::tally("SQL statement");
        let statement = self.0.prepare_cached(query);
        let found = statement.and_then(|mut statement| statement.query_row(values, read).optional());
        found.map_err(|error| error.to_string())
    }

    pub fn change(&self, statement: &str, values: impl Params) -> Result<(), String> {
        calls::tally("SQL statement");
        let changed = self.0.prepare_cached(statement).and_then(|mut statement| statement.execute(values));
        changed.map(|_| ()).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Folder of a test's files, which is removed with it.
    pub struct Folder(pub PathBuf);

    impl Folder {
        pub fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("tollbar-{}-{name}", std::process::id()));
            std::fs::create_dir(&path).expect("a folder");
            Folder(path)
        }

        pub fn spec(&self) -> Sql {
            Sql { from: self.0.join("from.sqlite"), at: self.0.join("at.sqlite") }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
