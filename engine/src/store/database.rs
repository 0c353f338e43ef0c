//! What a database does for the operations and for the proof.

use std::ops::Range;
use std::time::Duration;

use super::columns::Column;
use crate::contract::Proof;
use crate::failure::Failure;

/// A database that is open, with a table that is protected as the choice says.
///
/// Rows have ids from 1. What an operation reads is compared with what it must be: a wrong value is a failure.
pub trait Database {
    /// Makes the table, empty, and the statements that the operations use; one that is there is dropped before.
    fn create(&mut self) -> Result<(), Failure>;

    /// Puts rows in as quickly as the database can, in memory that does not grow with their number. Not measured.
    fn fill(&mut self, ids: Range<i64>) -> Result<(), Failure>;

    /// Inserts rows, with a commit after each `rows_per_commit` of them and one after the last.
    fn insert(&mut self, ids: Range<i64>, rows_per_commit: u64) -> Result<(), Failure>;

    /// Reads rows by id, all of their columns, each row by itself, and checks it.
    fn read(&mut self, ids: &[i64]) -> Result<(), Failure>;

    /// Finds rows by card number, all of their columns, each by itself, and checks it. Ids say which ones, their
    /// numbers are `Cards::number`. Where no index knows the number, that of every row is decrypted for each search: by
    /// the server where it has the key, else by the application.
    fn find(&mut self, ids: &[i64]) -> Result<(), Failure>;

    /// For each id: opens the database, reads the row, and closes it.
    fn open(&mut self, _ids: &[i64]) -> Result<(), Failure> {
        Err(Failure::Unsupported("only the embedded database is opened by who uses it".to_owned()))
    }

    /// Makes a connection in place of the one that was ended.
    fn connect(&mut self) -> Result<(), Failure> {
        Err(Failure::Unsupported("its rows are not behind requests".to_owned()))
    }

    /// Ends the connection.
    fn disconnect(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Which connections the table is open to, as the database itself says, or of an embedded one the kernel: another text
    /// for each one that was made. None: there are none.
    fn connections(&mut self) -> Result<Option<String>, Failure> {
        Err(Failure::Unsupported("its rows are not behind requests".to_owned()))
    }

    /// Does now what was put off by inserts, so that it can be accounted for: a checkpoint.
    fn put_off(&mut self) -> Result<(), Failure>;

    /// Bytes of the table and its indexes.
    fn size(&mut self) -> Result<u64, Failure>;

    /// Which code this is beside the engine: the server, its extensions (name, version).
    fn parts(&mut self) -> Result<Vec<(String, String)>, Failure> {
        Ok(Vec::new())
    }

    /// Which wrong things the proof may try, and what keeps it from trying the others.
    fn promise(&self) -> Promise;

    /// Whether each value is encrypted by itself, and not a whole file or table.
    fn encrypts_values(&self) -> bool;

    /// The bytes that are stored of a protected value. Asked for only where `promise` has
    /// something to try, or values are encrypted.
    fn stored(&mut self, id: i64, column: Column) -> Result<Vec<u8>, Failure>;

    /// Stores other bytes there.
    fn put_stored(&mut self, id: i64, column: Column, bytes: &[u8]) -> Result<(), Failure>;

    /// Reads a row with a wrong key, and goes back to the right one. An error of the outer kind if that could not be
    /// tried; the inner one is what reading it came to.
    fn read_with_wrong_key(&mut self, id: i64) -> Result<Result<(), Failure>, Failure>;

    /// What only this database can show, besides what all show alike. May close and open it.
    fn prove(&mut self, _proof: &mut Proof) -> Result<(), Failure> {
        Ok(())
    }

    /// Closes it cleanly, its files complete: the lab searches them afterwards.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// Whether a wrong thing is tried, since it is to be refused: `Err` says why it is not.
pub type Tried = Result<(), &'static str>;

/// What a choice promises of a value that is stored.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    /// A wrong key reads nothing.
    pub wrong_key: Tried,
    /// A value whose bytes were changed is not read.
    pub changed: Tried,
    /// A value is not read in another row.
    pub moved_row: Tried,
    /// A value is not read in another column.
    pub moved_column: Tried,
}

impl Promise {
    /// What is not encrypted promises nothing.
    pub const NOTHING: Promise = Promise::none("the choice does not encrypt");

    pub const fn none(why: &'static str) -> Promise {
        Promise { wrong_key: Err(why), changed: Err(why), moved_row: Err(why), moved_column: Err(why) }
    }

    pub const ALL: Promise =
        Promise { wrong_key: Ok(()), changed: Ok(()), moved_row: Ok(()), moved_column: Ok(()) };
}

/// What is said of a server that hangs.
pub fn unanswered(title: &str, limit: Duration) -> Failure {
    let limit_s = limit.as_secs_f64();
    Failure::Failed(format!(
        "{title}: the server did not answer within {limit_s} s: it stands still, or a statement takes longer than that"
    ))
}
