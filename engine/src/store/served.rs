//! Rows behind requests: a server that reads or writes one for each page that it gives.

use super::database::Database;
use super::task::Settings;
use super::trial::Work;
use crate::contract::Receipt;
use crate::failure::Failure;

/// As many pages of its log as SQLite writes before it brings them into the table, about a page a row.
const ROWS_A_CHECKPOINT: u64 = 1000;

/// A table that is filled, and what is done to it for each page.
pub struct Rows {
    work: Work,
    receipt: Receipt,
    /// Rows that were written since the database last did what it puts off.
    written: u64,
}

impl Rows {
    /// Of a database that is open and empty: its table is made, with its rows.
    pub fn of(
        database: Box<dyn Database>,
        settings: Settings,
        seed: u64,
        receipt: Receipt,
    ) -> Result<Rows, Failure> {
        let mut work = Work::new(database, settings, seed);
        work.prepare()?;
        Ok(Rows { work, receipt, written: 0 })
    }

    /// Which code reads and writes.
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Reads a random row and checks it, or writes the next one.
    pub fn perform(&mut self) -> Result<(), Failure> {
        self.work.batch(1)?;
        if self.work.inserts() {
            self.written += 1;
            if self.written == ROWS_A_CHECKPOINT {
                self.written = 0;
                self.work.put_off()?;
            }
        }
        Ok(())
    }
}
