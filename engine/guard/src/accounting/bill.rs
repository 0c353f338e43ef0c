//! Readings of all accounts, and the payments between two of them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::paid::Paid;
use crate::clock::Clocks;

/// Payment of each component since the accounts were opened.
#[derive(Debug, Default, Clone)]
pub struct Reading {
    pub components: BTreeMap<String, Paid>,
    /// Number of processes that could not be read to their end.
    pub inexact: u64,
    pub(super) at_ns: u64,
}

/// Payment between two readings, each taken with no request in progress.
#[derive(Serialize, Debug)]
pub struct Bill {
    pub components: BTreeMap<String, Paid>,
    /// CPU time of this process.
    #[serde(skip)]
    pub cpu_ns: u64,
    #[serde(skip)]
    pub wall_ns: u64,
    /// True if part of the CPU time has the resolution of a clock tick: a child was reaped before it could be
    /// read.
    #[serde(skip_serializing_if = "is_false")]
    pub ticks: bool,
    /// True if a component was busy with its own work when the bill was begun or ended.
    #[serde(skip_serializing_if = "is_false")]
    pub unsettled: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Bill {
    /// Returns the bill of work that ends one process per operation. The kernel keeps the exact sum of reaped
    /// children, but shows it in ticks (10 ms) of user and of system time. So the difference of two readings
    /// is wrong by 6 ms (one standard deviation). That is 5 % of 120 ms, and an excess in one chunk is
    /// missing from the next.
    pub fn of_processes(self) -> Bill {
        const TICKS_MATTER_UNDER_NS: u64 = 120_000_000;
        Bill { ticks: self.ticks && self.components_ns() < TICKS_MATTER_UNDER_NS, ..self }
    }

    /// Returns the CPU time of all components together.
    pub fn components_ns(&self) -> u64 {
        self.components.values().map(|paid| paid.cpu_ns).sum()
    }
}

/// A bill that was begun and not ended.
pub struct Opening {
    pub settled: bool,
    pub(super) reading: Reading,
    pub(super) clocks: Clocks,
}

impl Opening {
    /// Returns this process's clocks as read when the bill was begun.
    pub fn clocks(&self) -> &Clocks {
        &self.clocks
    }
}

impl Reading {
    /// Replaces a component's CPU time by a later reading.
    pub(super) fn restart(&mut self, name: &str, cpu_ns: u64) {
        if let Some(paid) = self.components.get_mut(name) {
            paid.cpu_ns = cpu_ns;
        }
    }

    /// Returns the payment of each component from an earlier reading to this one.
    pub fn since(&self, earlier: &Reading) -> BTreeMap<String, Paid> {
        let wall_ns = self.at_ns - earlier.at_ns;
        let nothing = Paid::default();
        let paid = |name: &String, now: &Paid| {
            let before = earlier.components.get(name).unwrap_or(&nothing);
            let cpu_ns = now.cpu_ns.saturating_sub(before.cpu_ns);
            let run_queue_wait_ns = now.run_queue_wait_ns.saturating_sub(before.run_queue_wait_ns);
            // Threads of one server also wait for each other, which is not a delay by another program. On one
            // core another program cannot have delayed the server for longer than it did not run.
            let most_ns = if now.on_one_core { wall_ns.saturating_sub(cpu_ns) } else { u64::MAX };
            Paid { cpu_ns, run_queue_wait_ns: run_queue_wait_ns.min(most_ns), on_one_core: now.on_one_core }
        };
        self.components.iter().map(|(name, now)| (name.clone(), paid(name, now))).collect()
    }
}
