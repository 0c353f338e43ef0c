//! Rows behind requests: a server reads or writes one for each page.

use super::database::Database;
use super::task::{Connection, Settings, used};
use super::trial::Work;
use crate::contract::Receipt;
use crate::failure::Failure;

/// Rows after which the deferred work is done: SQLite writes this number of pages of its log before a
/// checkpoint, about a page a row.
const ROWS_A_CHECKPOINT: u64 = 1000;

/// Path at which a server reports the rows it used.
pub const USED_PATH: &str = "/rows";

/// A filled table, and the operation on it for each page.
pub struct Rows {
    work: Work,
    receipt: Receipt,
    /// Rows written since the database last performed its deferred work.
    written: u64,
    connection: Connection,
    /// Connections that exist between requests.
    connections: Option<String>,
    /// Rows used since the last call of `found`.
    used: u64,
}

impl Rows {
    /// Makes the table with its rows, in an empty connected database.
    pub fn of(
        database: Box<dyn Database>,
        settings: Settings,
        seed: u64,
        receipt: Receipt,
        connection: Connection,
    ) -> Result<Rows, Failure> {
        let mut work = Work::new(database, settings, seed);
        work.prepare()?;
        if connection == Connection::EachRequest {
            work.database().disconnect()?;
        }
        let connections = work.database().connections()?;
        Ok(Rows { work, receipt, written: 0, connection, connections, used: 0 })
    }

    /// Returns the receipt of the code that reads and writes.
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Reads a random row and checks it, or writes the next one.
    pub fn perform(&mut self) -> Result<(), Failure> {
        if self.connection == Connection::EachRequest {
            self.work.database().connect()?;
        }
        self.work.batch(1)?;
        self.used += 1;
        if self.work.inserts() {
            self.written += 1;
            if self.written == ROWS_A_CHECKPOINT {
                self.written = 0;
                self.work.put_off()?;
            }
        }
        if self.connection == Connection::EachRequest {
            self.work.database().disconnect()?;
        }
        Ok(())
    }

    /// Returns the number of rows used since the last call, and the state of the connection, in the text that
    /// a client expects (`Connection::words`).
    pub fn found(&mut self) -> Result<String, Failure> {
        let rows = std::mem::take(&mut self.used);
        let now = self.work.database().connections()?;
        Ok(match now {
            None => Connection::EachRequest.words(rows),
            _ if now == self.connections => Connection::Kept.words(rows),
            _ => used(rows, "another one than before"),
        })
    }
}
