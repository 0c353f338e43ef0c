//! The load client with well-behaved and misbehaving servers.

mod chunks;
mod faults;
mod https;
mod parser;
mod proofs;
mod server;
mod shapes;
mod sign_in;
mod verification;

use std::net::SocketAddr;

use super::record::Chunk;
use super::trial::Trial;
use crate::failure::Failure;
use crate::load::task::Load;
use crate::runner::Advance;

/// Makes a load on a server of the test, with these fields changed. Without components the server is a user's
/// own.
pub fn load(address: SocketAddr, change: serde_json::Value) -> Load {
    let mut fields = serde_json::json!({
        "address": address, "host": "localhost", "clients": [{"share": 1}], "users": 2, "connection": "user",
        "request": {"paths": ["/"]}, "expect": {"status": 200, "bytes": 5}, "request_limit_s": 5.0,
    });
    if let (Some(fields), Some(change)) = (fields.as_object_mut(), change.as_object()) {
        fields.insert("is_lab".to_owned(), change.contains_key("components").into());
        fields.extend(change.clone());
    }
    serde_json::from_value(fields).expect("a load")
}

fn trial(load: &Load) -> Trial {
    Trial::open(load, 7).expect("a trial")
}

/// Returns the first chunk of a trial.
fn advanced(load: &Load, seconds: f64, operations: u64) -> Result<Chunk, Failure> {
    Trial::open(load, 7)?.advance(Advance { seconds, operations })
}

/// Returns the first chunk of a trial without faults.
fn good(load: &Load, seconds: f64) -> Chunk {
    advanced(load, seconds, 1).expect("a chunk")
}

fn latencies(chunk: &Chunk) -> u64 {
    chunk.observed.counts.latencies.buckets_us().into_iter().map(|(_, count)| count).sum()
}
