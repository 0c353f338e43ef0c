//! A trial: a table is prepared, and operations on it are performed chunk by chunk, with the accounts opened
//! and closed around each.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::columns::Column;
use super::database::Database;
use super::task::{Access, Durability, Place, Settings};
use crate::accounting::{Accounts, Bill, Opening};
use crate::clock::{self, Clocks};
use crate::contract::{self, Ready, Receipt};
use crate::failure::Failure;
use crate::pacing::{Pace, USUAL, WINDOW_NS, WarmUp, memory_of};
use crate::random::Sequence;
use crate::runner::Advance;

pub type Chunk = contract::Chunk<Observed>;

/// Observations of a chunk other than its cost.
#[derive(Serialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub struct Observed {
    #[serde(flatten)]
    pub bill: Bill,
    /// Inserts: CPU nanoseconds of the deferred work that is done after the chunk, by all components and this
    /// process together. The chunk's own account excludes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put_off: Option<u64>,
    /// Flushed commits: microseconds of one write of 8 KiB and its flush in the same file system, before the
    /// chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<u64>,
    /// Bytes of table and indexes per row.
    pub row_size: u64,
    /// Bytes of the longest of a row's three stored values, if each value is encrypted by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_size: Option<u64>,
}

const WINDOW: Advance = Advance { seconds: WINDOW_NS / 1e9, operations: 1 };
/// Warm-up window of work that ends a server's process for each connection, which may be counted in ticks
/// (`Bill::of_processes`).
const WINDOW_OF_PROCESSES: Advance = Advance { seconds: 0.2, operations: 1 };
/// Limit of rows requested at once: their ids are made beforehand, and a server gets that number in one call.
const MOST_IDS: u64 = 4096;
/// Rows filled in between checkpoints, so that a million rows do not make the database's log as large.
const FILLED_AT_ONCE: i64 = 50_000;

pub struct Trial {
    work: Work,
    accounts: Accounts,
    directory: PathBuf,
    /// Pace in elapsed time.
    pace: Pace,
    lead: bool,
    /// Bytes of table and indexes, if no operation changes them.
    size: u64,
    value_size: Option<u64>,
}

/// Operations of the trial.
pub struct Work {
    database: Box<dyn Database>,
    settings: Settings,
    random: Sequence,
    /// Id of the next inserted row.
    next_id: i64,
    ids: Vec<i64>,
}

impl Trial {
    /// Makes the table, fills it, and works until the cost of an operation is steady.
    pub fn open(
        database: Box<dyn Database>,
        place: &Place,
        settings: &Settings,
        task: &contract::Task,
        receipt: Receipt,
    ) -> Result<(Trial, Ready), Failure> {
        let accounts = Accounts::open(&place.components).map_err(Failure::Failed)?;
        let work = Work::new(database, *settings, task.seed);
        let directory = place.directory.clone();
        let pace = Pace::new(settings.rows_per_commit);
        let mut trial = Trial { work, accounts, directory, pace, lead: task.lead, size: 0, value_size: None };
        trial.work.prepare()?;
        let memory_bytes = memory_of(|| trial.first())?;
        trial.value_size = trial.work.value_size()?;
        let operation_ns = trial.warm_up()?;
        if settings.access.inserts() {
            // The number of rows from a warm-up depends on the machine, so that the first chunk must not find
            // them.
            trial.work.prepare()?;
        }
        trial.work.database.put_off()?;
        trial.size = trial.work.database.size()?;
        Ok((trial, Ready { receipt, operation_ns, memory_bytes, slices: false }))
    }

    /// Performs a chunk: first all slow readings, then some uncounted operations, then the counted ones
    /// within the accounts, which start by reading clocks only.
    pub fn advance(&mut self, asked: Advance) -> Result<Chunk, Failure> {
        let flush = match self.work.settings.durability {
            Durability::Flushed => Some(flush_us(&self.directory)?),
            Durability::Off => None,
        };
        let mut opening = self.accounts.begin();
        let leading = if self.lead { self.pace.lead(asked) } else { 0 };
        if leading > 0 {
            self.work.batch(leading)?;
        }
        self.accounts.start(&mut opening);
        let mut chunk = self.account(&opening, asked)?;
        self.pace.note(chunk.wall_ns, chunk.operations);
        chunk.observed.flush = flush;
        if self.work.settings.access.inserts() {
            chunk.observed.put_off = Some(self.put_off()?);
            self.size = self.work.database.size()?;
        }
        chunk.observed.row_size = self.size / self.work.rows().max(1);
        chunk.observed.value_size = self.value_size;
        Ok(chunk)
    }

    /// Closes the database.
    pub fn end(self) -> Result<(), Failure> {
        self.work.database.close()
    }

    /// Performs one operation in a fresh process.
    fn first(&mut self) -> Result<(), Failure> {
        let clocks = Clocks::read();
        self.work.batch(1)?;
        self.pace.set(clocks.elapsed_ns(), 1);
        Ok(())
    }

    /// Performs windows until two in a row agree. Returns the CPU nanoseconds of one operation, of this
    /// process and of all components.
    fn warm_up(&mut self) -> Result<f64, Failure> {
        let (clocks, mut warm_up) = (Clocks::read(), WarmUp::new(USUAL));
        loop {
            let is_of_ticks = self.work.settings.access == Access::SignOn && !self.accounts.are_exact();
            let window = if is_of_ticks { WINDOW_OF_PROCESSES } else { WINDOW };
            let opening = self.accounts.begin();
            let Chunk { operations, cpu_ns, wall_ns, observed } = self.account(&opening, window)?;
            self.pace.set(wall_ns, operations);
            let cost_ns = (cpu_ns + observed.bill.components_ns()) as f64 / operations as f64;
            if warm_up.is_over(cost_ns, clocks.elapsed_ns() as f64) {
                return Ok(cost_ns);
            }
        }
    }

    /// Works for the requested time and number, from this opening to a reading of the accounts.
    fn account(&mut self, opening: &Opening, asked: Advance) -> Result<Chunk, Failure> {
        let Trial { work, accounts, pace, .. } = self;
        let worked = pace.work(asked, opening.clocks(), |count| work.batch(count));
        let mut bill = accounts.bill(opening);
        if work.settings.access == Access::SignOn {
            bill = bill.of_processes();
        }
        // If the server ended, this message is better than the client's, which only reports that its
        // connection ended.
        accounts.all_there().map_err(Failure::Failed)?;
        let (operations, cpu_ns, wall_ns) = (worked?, bill.cpu_ns, bill.wall_ns);
        let observed = Observed { bill, put_off: None, flush: None, row_size: 0, value_size: None };
        Ok(Chunk { operations, cpu_ns, wall_ns, observed })
    }

    /// Makes the database perform its deferred work. Returns the CPU nanoseconds of this process and of all
    /// components.
    fn put_off(&mut self) -> Result<u64, Failure> {
        let opening = self.accounts.begin();
        self.work.put_off()?;
        let bill = self.accounts.bill(&opening);
        Ok(bill.cpu_ns + bill.components_ns())
    }
}

impl Work {
    pub fn new(database: Box<dyn Database>, settings: Settings, seed: u64) -> Work {
        Work { database, settings, random: Sequence::of(seed, [u64::MAX, 0]), next_id: 1, ids: Vec::new() }
    }

    pub fn database(&mut self) -> &mut dyn Database {
        self.database.as_mut()
    }

    pub fn inserts(&self) -> bool {
        self.settings.access.inserts()
    }

    /// Makes the database perform its deferred work.
    pub fn put_off(&mut self) -> Result<(), Failure> {
        self.database.put_off()
    }

    /// Makes the table, with the rows that must exist before the first operation.
    pub fn prepare(&mut self) -> Result<(), Failure> {
        self.database.create()?;
        self.next_id = 1;
        // An impossible choice is refused before rows are written for it.
        match self.settings.access {
            Access::Open => self.database.open(&[])?,
            Access::Insert | Access::Read | Access::InsertAndRead | Access::Find | Access::SignOn => {}
        }
        while self.next_id <= self.settings.rows {
            let end = (self.next_id + FILLED_AT_ONCE).min(self.settings.rows + 1);
            self.database.fill(self.next_id..end)?;
            self.database.put_off()?;
            self.next_id = end;
        }
        Ok(())
    }

    /// Returns the number of rows in the table.
    fn rows(&self) -> u64 {
        (self.next_id - 1) as u64
    }

    /// Returns the length of the first row's longest value, which exists after the first operation.
    fn value_size(&mut self) -> Result<Option<u64>, Failure> {
        // If opening is measured, the database is closed between operations.
        if self.settings.access == Access::Open || !self.database.encrypts_values() {
            return Ok(None);
        }
        let mut longest = 0;
        for column in Column::ALL {
            longest = longest.max(self.database.stored(1, column)?.len() as u64);
        }
        Ok(Some(longest))
    }

    pub fn batch(&mut self, operations: u64) -> Result<(), Failure> {
        if self.settings.access.inserts() {
            let ids = self.next_id..self.next_id + operations as i64;
            self.next_id = ids.end;
            self.database.insert(ids, self.settings.rows_per_commit)?;
        }
        if self.settings.access == Access::Insert {
            return Ok(());
        }
        let mut left = operations;
        while left > 0 {
            let count = left.min(MOST_IDS);
            left -= count;
            let rows = self.rows();
            self.ids.clear();
            self.ids.extend((0..count).map(|_| 1 + self.random.under(rows.max(1)) as i64));
            match self.settings.access {
                Access::Find => self.database.find(&self.ids)?,
                Access::Open | Access::SignOn => self.database.open(&self.ids)?,
                Access::Read | Access::InsertAndRead | Access::Insert => self.database.read(&self.ids)?,
            }
        }
        Ok(())
    }
}

/// Approximate unit in which a database writes its log.
const FLUSHED_BYTES: usize = 8192;
const FLUSHED: &str = "tollbar-flush";

/// Returns the microseconds of one write and its flush in a directory, for which a durable commit waits. The
/// file is made before the timing, and removed after it.
fn flush_us(directory: &Path) -> Result<u64, Failure> {
    let path = directory.join(FLUSHED);
    let timed = time_flush(&path);
    let _ = std::fs::remove_file(&path);
    timed.map_err(|error| Failure::Failed(format!("a flush in {}: {error}", directory.display())))
}

fn time_flush(path: &Path) -> std::io::Result<u64> {
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
    // A log is overwritten, or has reserved space, so that the file's size must not change while it is timed.
    file.write_all(&[0; FLUSHED_BYTES])?;
    file.sync_all()?;
    let start_ns = clock::wall_ns();
    rustix::io::pwrite(&file, &[1; FLUSHED_BYTES], 0)?;
    file.sync_data()?;
    Ok((clock::wall_ns() - start_ns) / 1000)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_flush_takes_time_and_leaves_no_file() {
        let directory = std::env::temp_dir();
        assert!(super::flush_us(&directory).is_ok());
        assert!(!directory.join(super::FLUSHED).exists());
        assert!(super::flush_us(std::path::Path::new("/proc/nothing")).is_err());
    }
}
