//! What one loop counts in one phase, and how the counts of several add up.

use super::fault::Faults;
use super::latencies::Latencies;
use super::record::Steady;
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
    /// Of those, the ones in place of others that were to be kept.
    pub reopened: u64,
    pub handshakes_full: u64,
    pub handshakes_resumed: u64,
    /// What was agreed on by the connections that carried a request, and by how many of them.
    pub negotiated: Vec<(Negotiated, u64)>,
    /// From the first answer to the first after nothing new was started: how many, and in which time.
    pub steady: Steady,
    /// When the first loop began, and when the last answer came.
    pub began_ns: u64,
    pub answered_ns: u64,
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
            reopened: 0,
            handshakes_full: 0,
            handshakes_resumed: 0,
            negotiated: Vec::new(),
            steady: Steady::default(),
            began_ns: u64::MAX,
            answered_ns: 0,
        }
    }

    pub fn wall_ns(&self) -> u64 {
        self.answered_ns.saturating_sub(self.began_ns)
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
        self.negotiated_as(&other);
        self.ended += other.ended;
        self.right += other.right;
        self.faults.merge(other.faults);
        self.latencies.merge(&other.latencies);
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.connections += other.connections;
        self.reopened += other.reopened;
        self.handshakes_full += other.handshakes_full;
        self.handshakes_resumed += other.handshakes_resumed;
        self.steady.requests += other.steady.requests;
        self.steady.wall_ns = self.steady.wall_ns.max(other.steady.wall_ns);
        self.began_ns = self.began_ns.min(other.began_ns);
        self.answered_ns = self.answered_ns.max(other.answered_ns);
    }

    /// Adds what another saw agreed on.
    pub fn negotiated_as(&mut self, other: &Tally) {
        for (negotiated, count) in &other.negotiated {
            self.count(negotiated.clone(), *count);
        }
    }
}
