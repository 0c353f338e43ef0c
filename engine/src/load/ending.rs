//! What comes of a trial: its outcome, the reason, and the figures as far as it got.

use super::phase::Work;
use super::record::{LoadRecord, Measured, NegotiatedCount, Outcome, Slice, Steady};
use super::slices::Components;
use super::tally::Tally;
use crate::clock;

pub struct Ending {
    pub outcome: Outcome,
    pub reason: Option<String>,
    pub measured: Option<Measured>,
}

pub fn judge(tally: &Tally, short_of: Option<u64>, there: Result<(), String>) -> (Outcome, Option<String>) {
    let mut reasons = Vec::new();
    if tally.faults.total > 0 {
        reasons.push(tally.faults.reason(tally.ended, "requests"));
    }
    if let Err(gone) = there {
        reasons.push(gone);
    }
    match (reasons.is_empty(), short_of) {
        (true, None) => (Outcome::Ok, None),
        (true, Some(requests)) => {
            let reason = format!("only {} of {requests} requests were done in time", tally.ended);
            (Outcome::TimedOut, Some(reason))
        }
        (false, _) => (Outcome::Failed, Some(reasons.join("; "))),
    }
}

pub fn hung(work: Work) -> Ending {
    let reason = Some(format!("the client itself did not come to an end while {}", work.name()));
    Ending { outcome: Outcome::TimedOut, reason, measured: None }
}

/// What went wrong before anything was counted.
pub fn spoilt(work: Work, tally: Tally) -> Ending {
    let what = if work == Work::Open { "connections" } else { "requests" };
    let reason = format!("while {}: {}", work.name(), tally.faults.reason(tally.ended, what));
    let measured = Some(figures(tally, Spent::default()));
    Ending { outcome: Outcome::Failed, reason: Some(reason), measured }
}

/// What the accounts say of a timed part; of anything else, nothing.
#[derive(Default)]
pub struct Spent {
    pub wall_ns: u64,
    pub client_cpu_ns: u64,
    pub held_up_ns: u64,
    pub switches: u64,
    pub series: Vec<Slice>,
    pub components: Components,
}

pub fn figures(tally: Tally, spent: Spent) -> Measured {
    let memory_bytes = clock::memory_bytes().1;
    Measured {
        operations: tally.right,
        bytes: tally.bytes_received,
        cpu_ns: spent.client_cpu_ns,
        wall_ns: spent.wall_ns,
        batches: spent.series.iter().map(|slice| (slice.requests, slice.client_cpu_ns)).collect(),
        checked: tally.right,
        memory_bytes,
        load: LoadRecord {
            requests: tally.ended,
            wall_ns: spent.wall_ns,
            steady: Steady { requests: tally.steady.requests, wall_ns: tally.steady.wall_ns },
            errors: tally.faults.counts,
            latency_us: tally.latencies.buckets_us(),
            series: spent.series,
            bytes_sent: tally.bytes_sent,
            bytes_received: tally.bytes_received,
            connections: tally.connections,
            handshakes_full: tally.handshakes_full,
            handshakes_resumed: tally.handshakes_resumed,
            negotiated: tally
                .negotiated
                .into_iter()
                .map(|(negotiated, count)| NegotiatedCount { negotiated, count })
                .collect(),
            client_libraries: Vec::new(),
            client_cpu_ns: spent.client_cpu_ns,
            client_busy: spent.client_cpu_ns as f64 / spent.wall_ns.max(1) as f64,
            client_held_up_ns: spent.held_up_ns,
            client_context_switches: spent.switches,
            client_memory_bytes: memory_bytes,
            components: spent.components,
        },
    }
}
