//! What one loop counts in one phase, and how the counts of several add up.

use super::fault::Faults;
use super::latencies::Latencies;
use crate::tls::Negotiated;

pub struct Tally {
    /// Requests that came to an end, right or wrong.
    pub ended: u64,
    /// Of those, the ones whose answer was whole and as expected.
    pub right: u64,
    pub faults: Faults,
    pub latencies: Latencies,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub connections: u64,
    pub handshakes_full: u64,
    pub handshakes_resumed: u64,
    /// What was agreed on by the connections that carried a request, and by how many of them.
    pub negotiated: Vec<(Negotiated, u64)>,
    /// Until the last request started: what ended, and how long that was.
    pub steady: Steady,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Steady {
    pub requests: u64,
    pub wall_ns: u64,
}

impl Tally {
    pub fn new() -> Tally {
        Tally {
            ended: 0,
            right: 0,
            faults: Faults::default(),
            latencies: Latencies::new(),
            bytes_sent: 0,
            bytes_received: 0,
            connections: 0,
            handshakes_full: 0,
            handshakes_resumed: 0,
            negotiated: Vec::new(),
            steady: Steady::default(),
        }
    }

    pub fn handshake(&mut self, resumed: bool) {
        if resumed {
            self.handshakes_resumed += 1;
        } else {
            self.handshakes_full += 1;
        }
    }

    /// Counts what a connection agreed on; nothing in clear.
    pub fn negotiated(&mut self, negotiated: Option<Negotiated>) {
        if let Some(negotiated) = negotiated {
            self.count(negotiated, 1);
        }
    }

    fn count(&mut self, negotiated: Negotiated, count: u64) {
        // A handful at most: as many as there are kinds of client and certificates.
        match self.negotiated.iter_mut().find(|(known, _)| *known == negotiated) {
            Some((_, known)) => *known += count,
            None => self.negotiated.push((negotiated, count)),
        }
    }

    pub fn merge(&mut self, other: Tally) {
        self.ended += other.ended;
        self.right += other.right;
        self.faults.merge(other.faults);
        self.latencies.merge(&other.latencies);
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.connections += other.connections;
        self.handshakes_full += other.handshakes_full;
        self.handshakes_resumed += other.handshakes_resumed;
        for (negotiated, count) in other.negotiated {
            self.count(negotiated, count);
        }
        self.steady.requests += other.steady.requests;
        self.steady.wall_ns = self.steady.wall_ns.max(other.steady.wall_ns);
    }
}
