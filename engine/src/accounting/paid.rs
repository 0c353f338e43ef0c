//! What a component paid, and what it held.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Paid {
    pub cpu_ns: u64,
    /// Time in which its threads would have run and others had their core.
    pub run_queue_wait_ns: u64,
    /// Whether all of it is on one core.
    #[serde(skip)]
    pub on_one_core: bool,
}

/// What a component held and did from the opening to the end.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Peak resident memory, added up over the processes that are left.
    pub memory_bytes: u64,
    pub context_switches: u64,
    /// Those that ended included.
    pub processes: u64,
}
