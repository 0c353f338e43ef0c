//! Counts of one loop in one phase, and their sum over several loops.

use std::sync::Arc;

use serde::Serialize;

use super::latencies::Latencies;
use super::wire::Passed;
use crate::failure::Faults;
use crate::team::Account;
use crate::tls::Negotiated;

#[derive(Serialize, Debug, Default)]
pub struct Counts {
    /// Operations that ended, right or wrong.
    #[serde(rename = "requests")]
    pub ended: u64,
    /// Operations whose answers were complete and as expected.
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
    /// Traffic on the network, if it is counted.
    #[serde(skip)]
    pub passed: Passed,
    /// Connections opened in the phase; kept ones from before are not counted.
    pub connections: u64,
    /// Connections opened because the server closed one that was to be kept.
    #[serde(skip_serializing_if = "is_zero")]
    pub reopened: u64,
    pub handshakes_full: u64,
    pub handshakes_resumed: u64,
    /// Bytes of the certificates that servers sent in handshakes.
    #[serde(skip)]
    pub certificate_bytes: u64,
    /// Negotiated parameters of connections that carried a request, each with the number of connections.
    #[serde(skip)]
    pub negotiated: Vec<(Arc<Negotiated>, u64)>,
    /// Requests and time from the first answer to the first after the end of starts: requests a second are
    /// computed from these.
    pub steady: Steady,
    /// CPU time of the loop's own thread, from the common start of all loops to this one's last answer.
    #[serde(skip)]
    pub cpu_ns: u64,
    /// Accounts of the loops, if each has its own core.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Account>,
    /// Times of the first loop's start, the first answer, and the last answer of all.
    #[serde(skip)]
    pub began_ns: u64,
    #[serde(skip)]
    first_answer_ns: u64,
    #[serde(skip)]
    pub answered_ns: u64,
}

/// Metrics of the users' sign-in, by the names of the family's metrics.
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
    /// Counts a request that was sent completely.
    #[inline]
    pub fn sent(&mut self, request: &[u8]) {
        self.round_trips += 1;
        // Most requests have no body, and no body here ends with an empty line.
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

    /// Counts the negotiated parameters of a connection; none without TLS.
    pub fn negotiated(&mut self, negotiated: Option<Arc<Negotiated>>) {
        if let Some(negotiated) = negotiated {
            self.count(negotiated, 1);
        }
    }

    fn count(&mut self, negotiated: Arc<Negotiated>, count: u64) {
        // The list has one entry for each kind of client and certificate.
        match self.negotiated.iter_mut().find(|(known, _)| *known == negotiated) {
            Some((_, known)) => *known += count,
            None => self.negotiated.push((negotiated, count)),
        }
    }

    /// Sets the steady part of an open loop: the requests started up to now, and their time.
    pub fn steady_as_asked(&mut self, started: u64, now: u64) {
        self.steady = Steady { requests: started, wall_ns: now.saturating_sub(self.began_ns) };
    }

    /// Ends the part that gives the rate, if it has not ended. The part goes from one answer to another. It
    /// begins with the first, because until then the load was building up, and ends with the first after the
    /// last start. If it ended at a moment of the clock, it would contain the time for part of an answer, but
    /// not the answer. If it ended with the last answer before that moment, a server that was delayed just
    /// then would seem faster.
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

    /// Closes the account of a loop with its own core: its time ends with its last answer. Its waits for the
    /// core mean nothing, because the server has the core meanwhile.
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

    /// Adds the parameters that another loop negotiated.
    pub fn merge_negotiated(&mut self, other: &Counts) {
        for (negotiated, count) in &other.negotiated {
            self.count(Arc::clone(negotiated), *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate begins with the first answer, after 10 ms, and ends with the first after the last start. That
    /// start was at 35 ms, after 2 answers, and the answer came at 42 ms. An open loop's rate is that of its
    /// requests.
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
