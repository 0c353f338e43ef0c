//! Rows behind requests: a server that reads or writes one for each page that it gives.

use super::database::Database;
use super::task::{Connection, Settings, used};
use super::trial::Work;
use crate::contract::Receipt;
use crate::failure::Failure;

/// As many pages of its log as SQLite writes before it brings them into the table, about a page a row.
const ROWS_A_CHECKPOINT: u64 = 1000;

/// Where a server says what it has used.
pub const USED_PATH: &str = "/rows";

/// A table that is filled, and what is done to it for each page.
pub struct Rows {
    work: Work,
    receipt: Receipt,
    /// Rows that were written since the database last did what it puts off.
    written: u64,
    connection: Connection,
    /// Those that there are without a request.
    connections: Option<String>,
    /// Rows that were used since this was asked for last.
    used: u64,
}

impl Rows {
    /// Of a database that is connected and empty: its table is made, with its rows.
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

    /// Which code reads and writes.
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

    /// How many rows were used since this was asked last, and what became of the connection: in words that a client
    /// expects as its own (`Connection::words`).
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
