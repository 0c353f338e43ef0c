//! Rows behind requests: a server that reads or writes one for each page that it gives.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;

use super::card::Cards;
use super::task::{Access, Settings, Task};
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
    /// Makes the table, with its rows, in the database that the task names.
    pub fn prepare(task: &Task) -> Result<Rows, Failure> {
        let Task { task, place } = task;
        let place = place.as_ref().ok_or_else(|| Failure::Failed("the task has no `store`".to_owned()))?;
        let settings = Settings::of(task)?;
        match settings.access {
            Access::Read => {}
            Access::Insert if settings.rows_per_commit == 1 => {}
            _ => {
                let words = "a page reads one row, or inserts one with a commit of its own";
                return Err(Failure::Unsupported(words.to_owned()));
            }
        }
        if place.server.is_none() {
            let made = DirBuilder::new().mode(0o700).create(&place.directory);
            if let Err(error) = made.or_else(|error| match error.kind() {
                ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            }) {
                return Err(Failure::Failed(format!("{}: {error}", place.directory.display())));
            }
        }
        let (mut database, mut receipt) = super::open(task, place, &settings, Cards::new(task.seed, ""))?;
        task.all_settings_read()?;
        receipt.parts.extend(database.parts()?);
        let mut work = Work::new(database, settings, task.seed);
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
