//! Account of one component of a server.

use super::paid::{Paid, Usage};

/// Account of one component.
pub trait Component: Send {
    fn name(&self) -> &str;

    /// Returns the id of the component's first process.
    fn root(&self) -> i32;

    /// Returns the CPU time since the opening, by the last reading.
    fn used_ns(&self) -> u64;

    /// Returns CPU time and waits since the opening, by the last reading.
    fn paid(&self) -> Paid;

    /// Returns true if the component's first process runs.
    fn root_is_there(&self) -> bool;

    /// Returns true if a thread runs or waits for a core.
    fn would_run(&self) -> bool;

    /// Reads CPU time only, a hundred times cheaper than a full reading.
    fn read_clocks(&mut self) -> u64;

    /// Reads the starting point of a bill, after a lead-in.
    fn read_for_start(&mut self);

    /// Reads everything.
    fn read(&mut self);

    /// Prepares for a next bill like the one that was just closed.
    fn expect_as_now(&mut self) {}

    /// Returns true if processes that come and go are counted to a microsecond, not to a clock tick.
    fn is_exact(&self) -> bool;

    /// Returns the number of processes that could not be read to their end.
    fn inexact(&self) -> u64 {
        0
    }

    /// Takes the last reading: memory, context switches and processes, since the opening.
    fn close(&mut self) -> Usage;

    /// Returns the reason why the account ended, if it did.
    fn fault(&self) -> Option<&str>;
}
