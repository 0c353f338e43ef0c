//! Interface of a database for the operations and the proof.

use std::ops::Range;
use std::time::Duration;

use super::columns::Column;
use crate::contract::Proof;
use crate::failure::Failure;

/// An open database, with a table that is protected as the choice requires.
///
/// Rows have ids from 1. Each value that an operation reads is compared with the right one, and a wrong value
/// is a failure.
pub trait Database {
    /// Makes an empty table, and the statements of the operations; an existing table is dropped first.
    fn create(&mut self) -> Result<(), Failure>;

    /// Inserts rows as quickly as the database can, in memory that does not grow with their number. Not
    /// measured.
    fn fill(&mut self, ids: Range<i64>) -> Result<(), Failure>;

    /// Inserts rows, with a commit after each `rows_per_commit` of them and one after the last.
    fn insert(&mut self, ids: Range<i64>, rows_per_commit: u64) -> Result<(), Failure>;

    /// Reads each of these rows by its id, with all columns, and checks it.
    fn read(&mut self, ids: &[i64]) -> Result<(), Failure>;

    /// Finds each of these rows by its card number (`Cards::number`), with all columns, and checks it.
    /// Without an index of the numbers each search decrypts that of every row: in the server if it has the
    /// key, otherwise in the application.
    fn find(&mut self, ids: &[i64]) -> Result<(), Failure>;

    /// Opens the database, reads the row, and closes it, for each id.
    fn open(&mut self, _ids: &[i64]) -> Result<(), Failure> {
        Err(Failure::Unsupported("only the embedded database can be opened by its user".to_owned()))
    }

    /// Makes a connection after the last one was ended.
    fn connect(&mut self) -> Result<(), Failure> {
        Err(Failure::Unsupported("its rows cannot be read through requests".to_owned()))
    }

    /// Ends the connection.
    fn disconnect(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns the connections to the table as the database reports them, or for an embedded one the kernel:
    /// the text changes with each new connection. Returns None if there are none.
    fn connections(&mut self) -> Result<Option<String>, Failure> {
        Err(Failure::Unsupported("its rows cannot be read through requests".to_owned()))
    }

    /// Performs the work that inserts deferred, so that it can be counted: a checkpoint.
    fn put_off(&mut self) -> Result<(), Failure>;

    /// Returns the bytes of the table and its indexes.
    fn size(&mut self) -> Result<u64, Failure>;

    /// Returns the code besides the engine as (name, version): the server, its extensions.
    fn parts(&mut self) -> Result<Vec<(String, String)>, Failure> {
        Ok(Vec::new())
    }

    /// Returns the wrong inputs that the proof may try, and the reasons against the others.
    fn promise(&self) -> Promise;

    /// Returns true if each value is encrypted by itself, false for a whole file or table.
    fn encrypts_values(&self) -> bool;

    /// Returns the stored bytes of a protected value. Called only if `promise` has something to try, or
    /// values are encrypted.
    fn stored(&mut self, id: i64, column: Column) -> Result<Vec<u8>, Failure>;

    /// Stores other bytes for a protected value.
    fn put_stored(&mut self, id: i64, column: Column, bytes: &[u8]) -> Result<(), Failure>;

    /// Reads a row with a wrong key, and restores the right one. The outer error means that this could not be
    /// tried; the inner result is that of the read.
    fn read_with_wrong_key(&mut self, id: i64) -> Result<Result<(), Failure>, Failure>;

    /// Proves properties that only this database has. May close and open it.
    fn prove(&mut self, _proof: &mut Proof) -> Result<(), Failure> {
        Ok(())
    }

    /// Closes the database cleanly, with complete files: the lab searches them afterwards.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// Permission to try a wrong input that must be refused; `Err` is the reason against it.
pub type Tried = Result<(), &'static str>;

/// Protection of a stored value by a choice.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    /// Refusal of a read with a wrong key.
    pub wrong_key: Tried,
    /// Refusal of a value whose bytes were changed.
    pub changed: Tried,
    /// Refusal of a value that was moved to another row.
    pub moved_row: Tried,
    /// Refusal of a value that was moved to another column.
    pub moved_column: Tried,
}

impl Promise {
    /// Promise of a choice without encryption.
    pub const NOTHING: Promise = Promise::none("the choice does not encrypt");

    pub const fn none(why: &'static str) -> Promise {
        Promise { wrong_key: Err(why), changed: Err(why), moved_row: Err(why), moved_column: Err(why) }
    }

    pub const ALL: Promise =
        Promise { wrong_key: Ok(()), changed: Ok(()), moved_row: Ok(()), moved_column: Ok(()) };
}

/// Makes the failure of a server that hangs.
pub fn unanswered(title: &str, limit: Duration) -> Failure {
    let limit_s = limit.as_secs_f64();
    Failure::Failed(format!(
        "{title}: the server did not answer within {limit_s} s; it hangs, or a statement takes longer"
    ))
}
