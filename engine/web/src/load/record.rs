//! Answer lines of `load`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::counts::{Counts, Exchanged, is_zero};
use super::wire::Passed;
use crate::accounting::{Bill, Usage};
use crate::contract::{self, Proof, Receipt};
use crate::tls::Negotiated;

#[derive(Serialize, Debug, Default)]
pub struct Done {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRecord>,
}

pub type Chunk = contract::Chunk<Observed>;

#[derive(Serialize, Debug)]
pub struct Observed {
    #[serde(flatten)]
    pub bill: Bill,
    #[serde(flatten)]
    pub counts: Counts,
    /// Metrics of a sign-in; absent if the load has no exchange.
    #[serde(flatten)]
    pub exchanged: Option<Exchanged>,
    /// Traffic on the network; absent if all components are on this machine.
    #[serde(flatten)]
    pub passed: Option<Passed>,
    /// Bytes of the certificates that servers sent, a metric of the family `tls`; absent without TLS.
    #[serde(rename = "certificate-bytes", skip_serializing_if = "Option::is_none")]
    pub certificate_bytes: Option<u64>,
}

/// Results of all chunks together.
#[derive(Serialize, Debug)]
pub struct LoadRecord {
    /// Parameters of every connection that carried a counted request, whenever it was opened.
    pub negotiated: Vec<NegotiatedCount>,
    /// TLS libraries of the clients.
    pub client_libraries: Vec<String>,
    pub client_context_switches: u64,
    pub client_memory_bytes: u64,
    /// Time in which the client would have run and others had its core.
    pub client_run_queue_wait_ns: u64,
    /// Connections reopened over the whole trial, by counted and uncounted requests.
    #[serde(skip_serializing_if = "is_zero")]
    pub reopened: u64,
    pub components: BTreeMap<String, Usage>,
    /// Round trip of some bytes to the machine of each remote component, measured before the load.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub round_trip_ns: BTreeMap<String, u64>,
}

#[derive(Serialize, Debug)]
pub struct NegotiatedCount {
    #[serde(flatten)]
    pub negotiated: Negotiated,
    pub count: u64,
}
