//! Account of one component of a server.

use super::paid::{Paid, Usage};

/// The account of one component.
pub trait Component: Send {
    fn name(&self) -> &str;

    /// The first process.
    fn root(&self) -> i32;

    /// CPU time since the opening, as it was read last.
    fn used_ns(&self) -> u64;

    /// CPU time and waits since the opening, as they were read last.
    fn paid(&self) -> Paid;

    /// Returns whether the component's first process runs.
    fn root_is_there(&self) -> bool;

    /// Returns whether a thread runs, or waits for a core.
    fn would_run(&self) -> bool;

    /// Reads CPU time alone, a hundred times cheaper than a reading.
    fn read_clocks(&mut self) -> u64;

    /// Reads what a bill starts from, after a lead-in.
    fn read_for_start(&mut self);

    /// Reads everything.
    fn read(&mut self);

    /// Takes the next bill to be like the one that was just closed.
    fn expect_as_now(&mut self) {}

    /// Returns whether processes that come and go are known to a microsecond, and not to a clock tick.
    fn is_exact(&self) -> bool;

    /// The number of processes that could not be read to their end.
    fn inexact(&self) -> u64 {
        0
    }

    /// Reads a last time: memory, context switches and processes, since the opening.
    fn close(&mut self) -> Usage;

    /// Why there is no account any more.
    fn fault(&self) -> Option<&str>;
}
