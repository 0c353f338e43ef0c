//! What one loop counts in one phase, and how the counts of several add up.

use std::sync::Arc;

use serde::Serialize;

use super::latencies::Latencies;
use super::wire::Passed;
use crate::failure::Faults;
use crate::team::Account;
use crate::tls::Negotiated;

#[derive(Serialize, Debug, Default)]
pub struct Counts {
    /// Operations that came to an end, right or wrong.
    #[serde(rename = "requests")]
    pub ended: u64,
    /// Of those, the ones whose answers were whole and as expected.
    #[serde(skip)]
    pub right: u64,
    #[serde(rename = "errors")]
    pub faults: Faults,
    #[serde(rename = "latency_us")]
    pub latencies: Latencies,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    #[serde(skip)]
    pub exchanged: Exchanged,
    /// On the network, where that is counted.
    #[serde(skip)]
    pub passed: Passed,
    /// Made meanwhile; those kept from before are not among them.
    pub connections: u64,
    /// Of those, the ones in place of others that were to be kept and that the server closed.
    #[serde(skip_serializing_if = "is_zero")]
    pub reopened: u64,
    pub handshakes_full: u64,
    pub handshakes_resumed: u64,
    /// Of the certificates that servers showed in handshakes.
    #[serde(skip)]
    pub certificate_bytes: u64,
    /// What was agreed on by the connections that carried a request, and by how many of them.
    #[serde(skip)]
    pub negotiated: Vec<(Arc<Negotiated>, u64)>,
    /// From the first answer to the first after nothing new was started: requests a second come from here.
    pub steady: Steady,
    /// CPU time of the loop's own thread, from when all loops began until this one had its last answer.
    #[serde(skip)]
    pub cpu_ns: u64,
    /// Where each loop has a core of its own: what it did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Account>,
    /// When the first loop began, when its first answer came, and when the last one of all came.
    #[serde(skip)]
    pub began_ns: u64,
    #[serde(skip)]
    first_answer_ns: u64,
    #[serde(skip)]
    pub answered_ns: u64,
}

/// What the users' way of signing in comes to: the family's own metrics, by their names.
#[derive(Serialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub struct Exchanged {
    /// Bytes of the heads of requests.
    pub request_header: u64,
    /// Requests on the wire.
    pub round_trips: u64,
    /// Operations in which the server authenticated the user by a credential.
    pub sign_ons: u64,
}

impl Exchanged {
    /// Counts a request that was sent whole.
    #[inline]
    pub fn sent(&mut self, request: &[u8]) {
        self.round_trips += 1;
        // Most have no body, and no body here ends with an empty line.
        self.request_header += match request.ends_with(END_OF_HEAD) {
            true => request.len(),
            false => request.windows(4).position(|four| four == END_OF_HEAD).map_or(0, |at| at + 4),
        } as u64;
    }
}

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

#[derive(Serialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Steady {
    pub requests: u64,
    pub wall_ns: u64,
}

pub fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Counts {
    pub fn wall_ns(&self) -> u64 {
        self.answered_ns.saturating_sub(self.began_ns)
    }

    #[inline]
    pub fn answered(&mut self, now: u64) {
        self.answered_ns = now;
        self.faults.success();
        self.right += 1;
        self.ended += 1;
        if self.ended == 1 {
            self.first_answer_ns = now;
        }
    }

    pub fn handshake(&mut self, negotiated: &Negotiated) {
        self.handshakes_full += u64::from(!negotiated.resumed);
        self.handshakes_resumed += u64::from(negotiated.resumed);
        self.certificate_bytes += negotiated.certificate_bytes;
    }

    /// Counts what a connection agreed on; nothing in clear.
    pub fn negotiated(&mut self, negotiated: Option<Arc<Negotiated>>) {
        if let Some(negotiated) = negotiated {
            self.count(negotiated, 1);
        }
    }

    fn count(&mut self, negotiated: Arc<Negotiated>, count: u64) {
        // A handful at most: as many as there are kinds of client and certificates.
        match self.negotiated.iter_mut().find(|(known, _)| *known == negotiated) {
            Some((_, known)) => *known += count,
            None => self.negotiated.push((negotiated, count)),
        }
    }

    /// The steady part of an open loop: how many were started up to now, and in which time.
    pub fn steady_as_asked(&mut self, started: u64, now: u64) {
        self.steady = Steady { requests: started, wall_ns: now.saturating_sub(self.began_ns) };
    }

    /// Ends the part that a rate is taken from, if that was not done before. It goes from one answer to another:
    /// from the first, for until then the load was on its way, to the first after nothing new was started. To a
    /// moment of the clock part of an answer would be time for nothing, and to the last answer before it a server
    /// that was held up just then would seem the faster for it.
    #[inline]
    pub fn end_steady(&mut self, now: u64) {
        if self.steady.wall_ns == 0 {
            let (first, from_ns) = match self.ended {
                0 | 1 => (0, self.began_ns),
                _ => (1, self.first_answer_ns),
            };
            self.steady = Steady { requests: self.ended - first, wall_ns: now.saturating_sub(from_ns) };
        }
    }

    /// Closes the account of a loop with a core of its own: its time ends with its last answer. What it waits for its core
    /// says nothing, as the server has that meanwhile.
    pub fn account(&mut self) {
        let (operations, cpu_ns, wall_ns) = (self.right, self.cpu_ns, self.wall_ns());
        self.threads = vec![Account { operations, cpu_ns, wall_ns, ..Account::default() }];
    }

    pub fn merge(&mut self, other: Counts) {
        self.merge_negotiated(&other);
        self.ended += other.ended;
        self.right += other.right;
        self.faults.merge(other.faults);
        self.latencies.merge(other.latencies);
        self.cpu_ns += other.cpu_ns;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.exchanged.request_header += other.exchanged.request_header;
        self.exchanged.round_trips += other.exchanged.round_trips;
        self.exchanged.sign_ons += other.exchanged.sign_ons;
        self.passed.add(other.passed);
        self.connections += other.connections;
        self.reopened += other.reopened;
        self.handshakes_full += other.handshakes_full;
        self.handshakes_resumed += other.handshakes_resumed;
        self.certificate_bytes += other.certificate_bytes;
        self.threads.extend(other.threads);
        self.steady.requests += other.steady.requests;
        self.steady.wall_ns = self.steady.wall_ns.max(other.steady.wall_ns);
        self.began_ns = self.began_ns.min(other.began_ns);
        self.answered_ns = self.answered_ns.max(other.answered_ns);
    }

    /// Adds what another saw agreed on.
    pub fn merge_negotiated(&mut self, other: &Counts) {
        for (negotiated, count) in &other.negotiated {
            self.count(Arc::clone(negotiated), *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rate is taken from the first answer, after 10 ms, to the first after nothing new was started: that was after
    /// 35 ms, when there were 2, and it came after 42. An open loop's is the one at which it was asked.
    #[test]
    fn a_rate_ends_with_an_answer() {
        for (is_open, expected) in [(false, (2, 32)), (true, (4, 35))] {
            let mut counts = Counts { began_ns: 5_000_000, ..Counts::default() };
            for at_ns in [15_000_000, 20_000_000] {
                counts.answered(at_ns);
            }
            if is_open {
                counts.steady_as_asked(4, 40_000_000);
            }
            for at_ns in [47_000_000, 60_000_000] {
                counts.answered(at_ns);
                counts.end_steady(at_ns);
            }
            assert_eq!(expected, (counts.steady.requests, counts.steady.wall_ns / 1_000_000));
        }
    }
}
