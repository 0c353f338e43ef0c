//! The lines that `load` answers with.

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
    /// Where users sign in, or could.
    #[serde(flatten)]
    pub exchanged: Option<Exchanged>,
    /// Where components are on other machines.
    #[serde(flatten)]
    pub passed: Option<Passed>,
    /// Where clients speak TLS: what servers showed of certificates, a metric of the family `tls`.
    #[serde(rename = "certificate-bytes", skip_serializing_if = "Option::is_none")]
    pub certificate_bytes: Option<u64>,
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
    /// To the machine of each component that is on another one, before anything was asked: a round trip of some bytes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub round_trip_ns: BTreeMap<String, u64>,
}

#[derive(Serialize, Debug)]
pub struct NegotiatedCount {
    #[serde(flatten)]
    pub negotiated: Negotiated,
    pub count: u64,
}
