//! One trial: a table made ready, and operations on it chunk by chunk, with the accounts opened and closed around
//! each.

use std::collections::BTreeMap;

use serde::Serialize;

use super::database::Database;
use super::flush;
use super::table::Column;
use super::task::{Durability, Operation, Place, Settings};
use crate::accounting::{Accounts, Paid};
use crate::clock;
use crate::contract::{self, Failure, Ready, Receipt};
use crate::random::Sequence;
use crate::session::Advance;

pub type Chunk = contract::Chunk<Observed>;

/// What is seen in a chunk beside its cost.
#[derive(Serialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub struct Observed {
    pub components: BTreeMap<String, Paid>,
    /// Inserts: CPU nanoseconds of the work that was put off and is done after the chunk, by all components and this
    /// process together. Not in the chunk's own account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put_off: Option<u64>,
    /// Flushed commits: microseconds that one write of 8 KiB and its flush took in the same file system, before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<u64>,
    /// Bytes of table and indexes for each row that is there.
    pub row_size: u64,
    /// Bytes of the longest of a row's three values as it is stored, where values are encrypted each by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_size: Option<u64>,
    /// Part of the CPU time is known to a clock tick only.
    #[serde(skip_serializing_if = "is_false")]
    pub ticks: bool,
    /// A component was at work of its own when its account was opened, or when it was closed.
    #[serde(skip_serializing_if = "is_false")]
    pub unsettled: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

const WINDOW: Advance = Advance { seconds: 0.005, operations: 1 };
/// Two windows in a row whose cost differs by less are a steady state.
const STEADY: f64 = 0.02;
/// Two windows agree by chance sooner than caches and frequency settle.
const LEAST_WARM_UP_NS: u64 = 10_000_000;
/// What varies by nature never settles.
const MOST_WARM_UP_NS: u64 = 300_000_000;
/// The share of a chunk that is worked before its accounts are opened, for caches that others have used.
const LEAD: f64 = 0.1;
/// What takes more than this share of a chunk has warmed itself before it is done.
const LONG: f64 = 0.25;
/// A batch is meant to last a little longer than asked: one that falls short takes a second one.
const MARGIN: f64 = 1.03;
/// How far the estimate moves with each chunk: one disturbed chunk must not make all the next ones short.
const WEIGHT: f64 = 0.5;
/// A loop that does nothing takes about so long for one.
const LEAST_NS: f64 = 0.3;
/// How many rows are asked for at once: their ids are made beforehand, and a server has that many in one call.
const MOST_IDS: u64 = 4096;
/// A million rows are filled in without the database's log of them growing as large.
const FILLED_AT_ONCE: i64 = 50_000;

pub struct Trial {
    work: Work,
    accounts: Accounts,
    directory: std::path::PathBuf,
    /// Elapsed time of one operation, lately.
    each_ns: f64,
    lead: bool,
    /// Bytes of table and indexes where no operation changes them.
    size: u64,
    value_size: Option<u64>,
}

/// The operations themselves.
struct Work {
    database: Box<dyn Database>,
    settings: Settings,
    random: Sequence,
    /// The next row that is inserted.
    next_id: i64,
    ids: Vec<i64>,
}

/// What a stretch of work came to.
struct Stretch {
    chunk: Chunk,
    /// CPU time of this process and of all components.
    paid_ns: u64,
}

impl Trial {
    /// Makes the table, fills it, and works until an operation costs what it did a moment ago.
    pub fn open(
        database: Box<dyn Database>,
        place: &Place,
        settings: &Settings,
        task: &contract::Task,
        receipt: Receipt,
    ) -> Result<(Trial, Ready), Failure> {
        let accounts = Accounts::open(&place.components).map_err(Failure::Failed)?;
        let random = Sequence::of(task.seed, [u64::MAX, 0]);
        let work = Work { database, settings: *settings, random, next_id: 1, ids: Vec::new() };
        let directory = place.directory.clone();
        let mut trial =
            Trial { work, accounts, directory, each_ns: 0.0, lead: task.lead, size: 0, value_size: None };
        trial.work.prepare()?;
        let memory_bytes = trial.first()?;
        trial.value_size = trial.work.value_size()?;
        let operation_ns = trial.warm_up()?;
        if settings.operation.inserts() {
            // How many rows a warm-up took depends on the machine; the first chunk finds none of them.
            trial.work.prepare()?;
        }
        trial.work.database.put_off()?;
        trial.size = trial.work.database.size()?;
        Ok((trial, Ready { receipt, operation_ns, memory_bytes }))
    }

    /// A chunk: some operations uncounted; then so long and so many within the accounts.
    pub fn advance(&mut self, asked: Advance) -> Result<Chunk, Failure> {
        let lead = if self.lead { self.work.lead(asked, self.each_ns) } else { 0 };
        if lead > 0 {
            self.work.batch(lead)?;
        }
        let flush = match self.work.settings.durability {
            Durability::Flushed => Some(flush::one_us(&self.directory)?),
            Durability::Off => None,
        };
        let mut chunk = self.account(asked)?.chunk;
        let lately_ns = (chunk.wall_ns as f64 / chunk.operations as f64).max(LEAST_NS);
        self.each_ns += WEIGHT * (lately_ns - self.each_ns);
        chunk.observed.flush = flush;
        if self.work.settings.operation.inserts() {
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

    /// One operation in a fresh process. How far resident memory rose for it, in bytes, where that can be seen.
    fn first(&mut self) -> Result<Option<u64>, Failure> {
        // What the reading itself needs is there before.
        clock::memory_bytes();
        let is_seen = clock::forget_peak();
        let (resting, _) = clock::memory_bytes();
        let start_ns = clock::wall_ns();
        self.work.batch(1)?;
        self.each_ns = ((clock::wall_ns() - start_ns) as f64).max(LEAST_NS);
        Ok(is_seen.then(|| clock::memory_bytes().1.saturating_sub(resting)))
    }

    /// Goes on until two windows in a row agree. Returns the CPU nanoseconds of one operation, of this process and of
    /// all components.
    fn warm_up(&mut self) -> Result<f64, Failure> {
        let (start_ns, mut before_ns) = (clock::wall_ns(), None);
        loop {
            let Stretch { chunk, paid_ns } = self.account(WINDOW)?;
            self.each_ns = (chunk.wall_ns as f64 / chunk.operations as f64).max(LEAST_NS);
            let cost_ns = (paid_ns as f64 / chunk.operations as f64).max(LEAST_NS);
            let agrees = before_ns.is_some_and(|before_ns: f64| (cost_ns / before_ns - 1.0).abs() <= STEADY);
            let spent_ns = clock::wall_ns() - start_ns;
            if (agrees && spent_ns >= LEAST_WARM_UP_NS) || spent_ns >= MOST_WARM_UP_NS {
                return Ok(cost_ns);
            }
            before_ns = Some(cost_ns);
        }
    }

    /// Works so long and so much, between two readings of the accounts.
    fn account(&mut self, asked: Advance) -> Result<Stretch, Failure> {
        let settled = self.accounts.settle();
        let opening = self.accounts.read();
        let (start_ns, cpu_ns) = (clock::wall_ns(), clock::process_cpu_ns());
        let worked = self.work.until(asked, start_ns, self.each_ns);
        let cpu_ns = clock::process_cpu_ns() - cpu_ns;
        let wall_ns = clock::wall_ns() - start_ns;
        let settled = self.accounts.settle() && settled;
        let closing = self.accounts.read();
        // Of a server that ended, what its client says is that its connection did.
        self.accounts.all_there().map_err(Failure::Failed)?;
        let operations = worked?;
        let components = closing.since(&opening);
        let paid_ns = cpu_ns + components.values().map(|paid| paid.cpu_ns).sum::<u64>();
        let observed = Observed {
            components,
            put_off: None,
            flush: None,
            row_size: 0,
            value_size: None,
            ticks: closing.inexact != opening.inexact,
            unsettled: !settled,
        };
        Ok(Stretch { chunk: Chunk { operations, cpu_ns, wall_ns, observed }, paid_ns })
    }

    /// Has the database do what it put off. CPU nanoseconds, of this process and of all components.
    fn put_off(&mut self) -> Result<u64, Failure> {
        let opening = self.accounts.read();
        let cpu_ns = clock::process_cpu_ns();
        self.work.database.put_off()?;
        let cpu_ns = clock::process_cpu_ns() - cpu_ns;
        self.accounts.settle();
        let components = self.accounts.read().since(&opening);
        Ok(cpu_ns + components.values().map(|paid| paid.cpu_ns).sum::<u64>())
    }
}

impl Work {
    /// Makes the table, with the rows that are to be there before the first operation.
    fn prepare(&mut self) -> Result<(), Failure> {
        self.database.create()?;
        self.next_id = 1;
        // What a choice cannot do is said before rows are written for it.
        match self.settings.operation {
            Operation::Open => self.database.open(&[])?,
            Operation::Insert | Operation::Read | Operation::InsertAndRead | Operation::Find => {}
        }
        while self.next_id <= self.settings.rows {
            let end = (self.next_id + FILLED_AT_ONCE).min(self.settings.rows + 1);
            self.database.fill(self.next_id..end)?;
            self.database.put_off()?;
            self.next_id = end;
        }
        Ok(())
    }

    /// Rows that are in the table.
    fn rows(&self) -> u64 {
        (self.next_id - 1) as u64
    }

    /// What the longest value of the first row takes, which is there once something was done.
    fn value_size(&mut self) -> Result<Option<u64>, Failure> {
        // Where opening is measured, it is closed in between.
        if self.settings.operation == Operation::Open || !self.database.encrypts_values() {
            return Ok(None);
        }
        let mut longest = 0;
        for column in Column::ALL {
            longest = longest.max(self.database.stored(1, column)?.len() as u64);
        }
        Ok(Some(longest))
    }

    /// How many operations cannot be told apart: those of one commit.
    fn step(&self) -> u64 {
        self.settings.rows_per_commit
    }

    /// So many that the last commit has as many rows as every other one.
    fn whole(&self, operations: u64) -> u64 {
        operations.next_multiple_of(self.step())
    }

    /// How many operations come before the clock starts. Of a chunk that is a number of rows it is a share of them,
    /// whatever they cost, so that all tables of a round grow alike.
    fn lead(&self, asked: Advance, each_ns: f64) -> u64 {
        let asked_ns = asked.seconds * 1e9;
        if asked_ns == 0.0 {
            return self.whole((LEAD * asked.operations as f64) as u64);
        }
        let is_long = each_ns * self.step() as f64 > LONG * asked_ns;
        if is_long { 0 } else { self.whole(filling(LEAD * asked_ns, each_ns)) }
    }

    /// Works for at least so long and at least so many operations; how many there were.
    fn until(&mut self, asked: Advance, start_ns: u64, each_ns: f64) -> Result<u64, Failure> {
        let asked_ns = asked.seconds * 1e9;
        let mut operations = 0;
        loop {
            let spent_ns = if operations == 0 { 0.0 } else { (clock::wall_ns() - start_ns) as f64 };
            if operations > 0 && spent_ns >= asked_ns && operations >= asked.operations {
                return Ok(operations);
            }
            let left = asked.operations.saturating_sub(operations);
            let batch = match asked_ns - spent_ns {
                left_ns if left_ns > 0.0 => self.whole(filling(MARGIN * left_ns, each_ns).max(left)),
                _ => left,
            };
            self.batch(batch)?;
            operations += batch;
        }
    }

    fn batch(&mut self, operations: u64) -> Result<(), Failure> {
        if self.settings.operation.inserts() {
            let ids = self.next_id..self.next_id + operations as i64;
            self.next_id = ids.end;
            self.database.insert(ids, self.settings.rows_per_commit)?;
        }
        if self.settings.operation == Operation::Insert {
            return Ok(());
        }
        let mut left = operations;
        while left > 0 {
            let count = left.min(MOST_IDS);
            left -= count;
            let rows = self.rows();
            self.ids.clear();
            self.ids.extend((0..count).map(|_| 1 + self.random.under(rows) as i64));
            match self.settings.operation {
                Operation::Find => self.database.find(&self.ids)?,
                Operation::Open => self.database.open(&self.ids)?,
                Operation::Read | Operation::InsertAndRead | Operation::Insert => {
                    self.database.read(&self.ids)?
                }
            }
        }
        Ok(())
    }
}

/// How many operations of this length fill the time: at least one.
fn filling(time_ns: f64, each_ns: f64) -> u64 {
    ((time_ns / each_ns).ceil() as u64).max(1)
}
