//! The timed part in slices: requests, the client's CPU and each component's, over time.

use std::collections::BTreeMap;

use super::account::Accounts;
use super::record::{ComponentRecord, Slice};
use crate::clock;

pub type Components = BTreeMap<String, ComponentRecord>;

pub struct Slices {
    accounts: Accounts,
    pub opened_ns: u64,
    pub client_cpu_first_ns: u64,
    pub done: Vec<Slice>,
    /// When the one under way ends.
    pub next_ns: u64,
    length_ns: u64,
    next_reading_ns: u64,
    /// When nothing new is started, as far as that is known.
    ends_ns: u64,
    requests: u64,
    client_cpu_ns: u64,
    components: BTreeMap<String, u64>,
}

/// So many in a trial, however long; one of more than a second hides what a slow disturbance did.
const SLICES: u64 = 10;
const LONGEST_NS: u64 = 1_000_000_000;

/// Below that a reading would cost more than the slice is worth.
const SHORTEST_NS: u64 = 5_000_000;

/// A whole reading takes some 50 µs a process, on the client's own core.
const BETWEEN_READINGS_NS: u64 = 100_000_000;

impl Slices {
    pub fn open(accounts: Accounts, duration_ns: u64, by_count: bool) -> Slices {
        let length_ns = match duration_ns {
            // A count of requests: however long it takes.
            0 => LONGEST_NS,
            _ => (duration_ns / SLICES).clamp(SHORTEST_NS, LONGEST_NS),
        };
        let client_cpu_ns = clock::process_cpu_ns();
        let opened_ns = clock::wall_ns();
        Slices {
            accounts,
            opened_ns,
            client_cpu_first_ns: client_cpu_ns,
            done: Vec::with_capacity(64),
            next_ns: opened_ns + length_ns,
            length_ns,
            next_reading_ns: opened_ns + BETWEEN_READINGS_NS,
            ends_ns: if by_count { u64::MAX } else { opened_ns + duration_ns },
            requests: 0,
            client_cpu_ns,
            components: BTreeMap::new(),
        }
    }

    /// Ends a slice, with so many requests ended since the opening.
    pub fn end_one(&mut self, requests: u64) {
        let now = clock::wall_ns();
        let components = if now >= self.next_reading_ns {
            self.next_reading_ns = now + BETWEEN_READINGS_NS;
            self.accounts.read()
        } else {
            self.accounts.glance()
        };
        self.end(now, clock::process_cpu_ns(), requests, components);
        // A slice that ended late does not make the next one short.
        let next_ns = (self.next_ns + self.length_ns).max(now + self.length_ns / 2);
        // The last one goes on until the accounts are closed, however short what is left would be.
        self.next_ns =
            if next_ns.saturating_add(self.length_ns / 2) >= self.ends_ns { u64::MAX } else { next_ns };
    }

    /// Closes the accounts, and with them the last slice; an error names a component that is not there any more.
    pub fn close(&mut self, requests: u64, client_cpu_ns: u64) -> (Components, Result<(), String>) {
        let (records, there) = self.accounts.close();
        let components = records.iter().map(|(name, record)| (name.clone(), record.cpu_ns)).collect();
        self.end(clock::wall_ns(), client_cpu_ns, requests, components);
        (records, there)
    }

    fn end(&mut self, now: u64, client_cpu_ns: u64, requests: u64, components: BTreeMap<String, u64>) {
        let since = |name: &String, cpu_ns: u64| {
            cpu_ns.saturating_sub(self.components.get(name).copied().unwrap_or(0))
        };
        self.done.push(Slice {
            at_ms: (now - self.opened_ns) / 1_000_000,
            requests: requests.saturating_sub(self.requests),
            client_cpu_ns: client_cpu_ns.saturating_sub(self.client_cpu_ns),
            components: components
                .iter()
                .map(|(name, cpu_ns)| (name.clone(), since(name, *cpu_ns)))
                .collect(),
        });
        (self.requests, self.client_cpu_ns, self.components) = (requests, client_cpu_ns, components);
    }
}

/// Of this process, all its threads, voluntary and not.
pub fn context_switches() -> u64 {
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}
