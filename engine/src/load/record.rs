//! The lines that `load` answers with.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::accounting::{Paid, Usage};
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

/// The line that ends it.
#[derive(Serialize, Debug)]
pub struct Record {
    pub outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRecord>,
}

#[derive(Serialize, Debug, Default)]
pub struct Proof {
    /// A server's answer is no hexadecimal string; always null.
    pub answer: Option<String>,
    pub accepted: Vec<String>,
    pub refused: Vec<String>,
    /// `what: why`: refusals that could not be tried.
    pub not_tried: Vec<String>,
}

/// The first line of a session.
#[derive(Serialize, Debug)]
pub struct Ready {
    pub ready: Warm,
}

#[derive(Serialize, Debug)]
pub struct Warm {
    #[serde(flatten)]
    pub receipt: Receipt,
    /// CPU nanoseconds of a request: the server's, or without components the client's.
    pub operation_ns: u64,
}

/// A line for each advance.
#[derive(Serialize, Debug)]
pub struct Chunk {
    /// Requests answered as expected.
    pub operations: u64,
    /// The client's own.
    pub cpu_ns: u64,
    /// From the first request to the last answer.
    pub wall_ns: u64,
    pub observed: Observed,
}

#[derive(Serialize, Debug)]
pub struct Observed {
    pub components: BTreeMap<String, Paid>,
    /// That came to an end, right or wrong.
    pub requests: u64,
    pub errors: BTreeMap<&'static str, u64>,
    /// (upper bound, count), ascending.
    pub latency_us: Vec<(u64, u64)>,
    /// From the first answer to the first after nothing new was started: requests a second come from here.
    pub steady: Steady,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Made within the accounts; those kept from before are not among them.
    pub connections: u64,
    pub handshakes_full: u64,
    pub handshakes_resumed: u64,
    /// Connections that were to be kept, that the server closed, and that were made again.
    #[serde(skip_serializing_if = "is_zero")]
    pub reopened: u64,
    /// Part of the CPU time is known to a clock tick only: a child was reaped before it could be read.
    #[serde(skip_serializing_if = "is_false")]
    pub ticks: bool,
    /// A component was at work of its own when its account was opened, or when it was closed.
    #[serde(skip_serializing_if = "is_false")]
    pub unsettled: bool,
}

#[derive(Serialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Steady {
    pub requests: u64,
    pub wall_ns: u64,
}

/// What is told once, of all chunks together.
#[derive(Serialize, Debug)]
pub struct LoadRecord {
    /// Of every connection that carried a counted request, whenever it was made.
    pub negotiated: Vec<NegotiatedCount>,
    /// The TLS libraries that the clients spoke through.
    pub client_libraries: Vec<String>,
    pub client_context_switches: u64,
    pub client_memory_bytes: u64,
    /// Time in which the client would have run and others had its core.
    pub client_run_queue_wait_ns: u64,
    /// As in a chunk; of all that was asked, counted or not.
    #[serde(skip_serializing_if = "is_zero")]
    pub reopened: u64,
    pub components: BTreeMap<String, Usage>,
}

#[derive(Serialize, Debug)]
pub struct NegotiatedCount {
    #[serde(flatten)]
    pub negotiated: Negotiated,
    pub count: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}
