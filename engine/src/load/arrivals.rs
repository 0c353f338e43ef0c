//! Arrivals of an open loop: evenly spaced, and kept as two counters, however many wait.

use super::task::Load;

/// A queue longer than that says what it has to say.
pub const MOST_WAITING: u64 = 1_000_000;

pub struct Arrivals {
    first_ns: u64,
    /// Between two arrivals of this loop.
    spacing_ns: f64,
    stop_ns: u64,
    /// At most so many.
    quota: u64,
    arrived: u64,
    taken: u64,
}

impl Arrivals {
    /// Loops take turns: of four, the second has arrivals 1, 5, 9 …
    pub fn new(load: &Load, thread: u32, begins_ns: u64, stop_ns: u64, quota: Option<u64>) -> Arrivals {
        let spacing_ns = 1e9 / load.rate_hz;
        Arrivals {
            first_ns: begins_ns + (spacing_ns * f64::from(thread)) as u64,
            spacing_ns: spacing_ns * f64::from(load.threads),
            stop_ns,
            quota: quota.unwrap_or(u64::MAX),
            arrived: 0,
            taken: 0,
        }
    }

    fn intended_ns(&self, number: u64) -> u64 {
        self.first_ns.saturating_add((number as f64 * self.spacing_ns) as u64)
    }

    /// When the next one comes; never, once they are over.
    pub fn next_ns(&self) -> u64 {
        let next_ns = self.intended_ns(self.arrived);
        if self.arrived < self.quota && next_ns < self.stop_ns { next_ns } else { u64::MAX }
    }

    /// Lets arrive what is due; says how many of the longest waiting were dropped, if any.
    pub fn arrive(&mut self, now: u64) -> Option<u64> {
        if self.next_ns() <= now {
            let elapsed_ns = now.min(self.stop_ns - 1).saturating_sub(self.first_ns);
            let due = (elapsed_ns as f64 / self.spacing_ns) as u64;
            // The division may be off by one at either side; the times themselves decide.
            self.arrived = self.arrived.max(due.saturating_sub(1)).min(self.quota);
            while self.next_ns() <= now {
                self.arrived += 1;
            }
        }
        let dropped = (self.arrived - self.taken).saturating_sub(MOST_WAITING);
        self.taken += dropped;
        (dropped > 0).then_some(dropped)
    }

    /// The intended start of the one that has waited longest.
    pub fn take(&mut self) -> Option<u64> {
        let waits = self.taken < self.arrived;
        waits.then(|| {
            self.taken += 1;
            self.intended_ns(self.taken - 1)
        })
    }

    /// Ends them: none comes any more, and so many are dropped that had come.
    pub fn abandon(&mut self) -> u64 {
        let dropped = self.arrived - self.taken;
        (self.taken, self.quota) = (self.arrived, self.arrived);
        dropped
    }

    pub fn are_over(&self, now: u64) -> bool {
        self.taken == self.arrived && (now >= self.stop_ns || self.next_ns() == u64::MAX)
    }
}
