//! CPU time that a component paid, and memory that it used.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Paid {
    pub cpu_ns: u64,
    /// Time in which its threads would have run and others had their core.
    pub run_queue_wait_ns: u64,
    /// True if the whole component is on one core.
    #[serde(skip)]
    pub on_one_core: bool,
}

/// Usage of a component from the opening to the end.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Peak resident memory, summed over the processes that are left.
    pub memory_bytes: u64,
    pub context_switches: u64,
    /// Number of processes, ended ones included.
    pub processes: u64,
}
