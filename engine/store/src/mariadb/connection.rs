//! A connection to MariaDB over its socket. Whatever the server sends, an error becomes a failure with a
//! reason.

use std::error::Error as _;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mysql::prelude::{AsStatement, FromValue, Queryable};
use mysql::{Conn, Error, LocalInfileHandler, OptsBuilder, Params, Row, Statement};

use super::super::database::unanswered;
use super::super::task::Server;
use crate::failure::Failure;

pub struct Connection {
    inner: Conn,
    limit: Duration,
}

impl Connection {
    /// Connects to the server, which loads `lines` when a statement makes it load a file.
    pub fn open(server: &Server, lines: &Arc<Mutex<Vec<u8>>>) -> Result<Connection, Failure> {
        let limit = server.answer_limit()?;
        let file = Arc::clone(lines);
        let handler = LocalInfileHandler::new(move |_, server| {
            server.write_all(&file.lock().unwrap_or_else(PoisonError::into_inner))
        });
        let options = OptsBuilder::new()
            .socket(Some(server.socket.to_string_lossy()))
            .user(Some(&server.user))
            .db_name(Some(server.database.as_deref().unwrap_or("tollbar")))
            .local_infile_handler(Some(handler))
            .read_timeout(Some(limit))
            .write_timeout(Some(limit));
        let inner = Conn::new(options).map_err(|error| failure(error, limit))?;
        Ok(Connection { inner, limit })
    }

    /// Executes a statement without parameters and rows.
    pub fn tell(&mut self, words: &str) -> Result<(), Failure> {
        self.inner.query_drop(words).map_err(|error| failure(error, self.limit))
    }

    /// Returns the value in the first column of the row that answers a statement, or None if there is no row.
    pub fn ask<T: FromValue>(&mut self, words: &str) -> Result<Option<T>, Failure> {
        let row = self.inner.query_first(words).map_err(|error| failure(error, self.limit))?;
        row.map(|row| column(row, 0)).transpose()
    }

    /// Returns the server's first warning about the last statement.
    pub fn warning(&mut self) -> Option<String> {
        let noted: Vec<Row> = self.inner.query("show warnings").ok()?;
        // The columns are level, number and message.
        let is_warning =
            |row: &Row| matches!(row.get_opt::<String, _>(0), Some(Ok(level)) if level == "Warning");
        column(noted.into_iter().find(is_warning)?, 2).ok()
    }

    pub fn prepare(&mut self, text: &str) -> Result<Statement, Failure> {
        self.inner.prep(text).map_err(|error| failure(error, self.limit))
    }

    pub fn execute(
        &mut self,
        statement: impl AsStatement,
        parameters: impl Into<Params>,
    ) -> Result<(), Failure> {
        self.inner.exec_drop(statement, parameters).map_err(|error| failure(error, self.limit))
    }

    /// Returns the first row of a statement's answer.
    pub fn first(
        &mut self,
        statement: impl AsStatement,
        parameters: impl Into<Params>,
    ) -> Result<Option<Row>, Failure> {
        // A `Row` can be made of any row.
        self.inner.exec_first(statement, parameters).map_err(|error| failure(error, self.limit))
    }

    /// Passes on each row of an answer as it arrives.
    pub fn each(
        &mut self,
        statement: &Statement,
        mut take: impl FnMut(&Row) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let limit = self.limit;
        for row in self.inner.exec_iter(statement, ()).map_err(|error| failure(error, limit))? {
            take(&row.map_err(|error| failure(error, limit))?)?;
        }
        Ok(())
    }
}

/// Returns the value of a column. Fails if it has another type, or is NULL.
pub fn column<T: FromValue>(mut row: Row, at: usize) -> Result<T, Failure> {
    match row.take_opt(at) {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(Failure::Failed(format!("MariaDB: column {at}: {error}"))),
        None => Err(Failure::Failed(format!("MariaDB: the answer has no column {at}"))),
    }
}

/// Makes a failure with the server's message; a missing feature is unsupported.
fn failure(error: Error, limit: Duration) -> Failure {
    // The codes are: no such function or procedure, no such variable, no such option, two for an impossible
    // table.
    const NOT_THERE: [u16; 5] = [1305, 1193, 1911, 1005, 1478];
    match error {
        Error::MySqlError(said) if NOT_THERE.contains(&said.code) => {
            Failure::Unsupported(format!("MariaDB: {}", said.message))
        }
        Error::MySqlError(said) => Failure::Failed(format!("MariaDB: {}", said.message)),
        Error::IoError(error) => silent_or_broken(&error, limit),
        Error::CodecError(error) => match error.source().and_then(|cause| cause.downcast_ref()) {
            Some(cause) => silent_or_broken(cause, limit),
            None => Failure::Failed(format!("MariaDB: {error}")),
        },
        other => Failure::Failed(format!("MariaDB: {other}")),
    }
}

fn silent_or_broken(error: &io::Error, limit: Duration) -> Failure {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => unanswered("MariaDB", limit),
        _ => Failure::Failed(format!("MariaDB: the connection to it: {error}")),
    }
}
