//! What `load` answers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::contract::Receipt;
use crate::tls::Negotiated;

#[derive(Serialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Ok,
    Unsupported,
    Failed,
    TimedOut,
}

#[derive(Serialize, Debug)]
pub struct Record {
    pub outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

#[derive(Serialize, Debug, Default)]
pub struct Proof {
    /// A server's answer is no hexadecimal string; always null.
    pub answer: Option<String>,
    pub accepted: Vec<String>,
    pub refused: Vec<String>,
}

#[derive(Serialize, Debug)]
pub struct Measured {
    /// Requests answered as expected.
    pub operations: u64,
    /// Received, heads and bodies.
    pub bytes: u64,
    /// The client's own.
    pub cpu_ns: u64,
    pub wall_ns: u64,
    /// (requests, client CPU nanoseconds) of each slice.
    pub batches: Vec<(u64, u64)>,
    pub checked: u64,
    /// The client's peak.
    pub memory_bytes: u64,
    pub load: LoadRecord,
}

#[derive(Serialize, Debug)]
pub struct LoadRecord {
    /// That came to an end, right or wrong.
    pub requests: u64,
    /// From the opening of the accounts to the last answer.
    pub wall_ns: u64,
    /// Until the last request started: requests a second come from here.
    pub steady: Steady,
    pub errors: BTreeMap<&'static str, u64>,
    /// (upper bound, count), ascending.
    pub latency_us: Vec<(u64, u64)>,
    pub series: Vec<Slice>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Made within the accounts; those kept from the warm-up are not among them.
    pub connections: u64,
    pub handshakes_full: u64,
    pub handshakes_resumed: u64,
    /// Of every connection that carried a request, whenever it was made.
    pub negotiated: Vec<NegotiatedCount>,
    /// The TLS libraries that the clients spoke through.
    pub client_libraries: Vec<String>,
    pub client_cpu_ns: u64,
    pub client_busy: f64,
    /// Time in which the client would have run and others had its core.
    pub client_held_up_ns: u64,
    pub client_context_switches: u64,
    pub client_memory_bytes: u64,
    pub components: BTreeMap<String, ComponentRecord>,
}

#[derive(Serialize, Debug, Clone, Copy)]
pub struct Steady {
    pub requests: u64,
    pub wall_ns: u64,
}

#[derive(Serialize, Debug, Clone)]
pub struct Slice {
    /// When it ended, from the opening of the accounts.
    pub at_ms: u64,
    pub requests: u64,
    pub client_cpu_ns: u64,
    /// CPU nanoseconds of each component.
    pub components: BTreeMap<String, u64>,
}

#[derive(Serialize, Debug)]
pub struct NegotiatedCount {
    #[serde(flatten)]
    pub negotiated: Negotiated,
    pub count: u64,
}

#[derive(Serialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentRecord {
    pub cpu_ns: u64,
    /// Time in which its threads would have run and others had their core; on a single core to a clock tick.
    pub held_up_ns: u64,
    /// Peak resident memory, added up over the processes that are left.
    pub memory_bytes: u64,
    pub context_switches: u64,
    /// Seen from the opening to the closing, those that ended included.
    pub processes: u64,
}
