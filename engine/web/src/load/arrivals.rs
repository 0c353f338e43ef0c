//! Arrivals of an open loop: a seeded Poisson process, stored as two places in one sequence, however many
//! wait.

use crate::random::Sequence;

/// Limit of the queue; a longer one only shows that the server is overloaded.
pub const MOST_WAITING: u64 = 1_000_000;

pub struct Arrivals {
    /// Time before which all arrivals are admitted.
    stop_ns: u64,
    /// Least number of arrivals, however long they take.
    least: u64,
    /// Next arrival; `waiting` is the one that has waited longest.
    coming: Place,
    waiting: Place,
    over: bool,
}

/// A place in the sequence of arrivals; a copy of it repeats the same ones.
#[derive(Clone)]
struct Place {
    gaps: Sequence,
    spacing_ns: f64,
    /// Number of earlier arrivals.
    number: u64,
    at_ns: u64,
}

impl Place {
    fn step(&mut self) {
        self.number += 1;
        self.at_ns = self.at_ns.saturating_add(self.gap_ns());
    }

    /// Returns an exponential gap, so that the time since the last arrival does not predict the next.
    fn gap_ns(&mut self) -> u64 {
        (-self.gaps.fraction().ln() * self.spacing_ns) as u64
    }
}

impl Arrivals {
    /// Makes the arrivals of one loop, with its part of the rate: the processes of all loops together are one
    /// of the whole rate.
    pub fn new(gaps: Sequence, rate_hz: f64, begins_ns: u64, stop_ns: u64, least: u64) -> Arrivals {
        let mut coming = Place { gaps, spacing_ns: 1e9 / rate_hz, number: 0, at_ns: begins_ns };
        coming.at_ns = begins_ns.saturating_add(coming.gap_ns());
        Arrivals { stop_ns, least, waiting: coming.clone(), coming, over: false }
    }

    /// Returns the time of the next arrival, or `u64::MAX` once they are over.
    pub fn next_ns(&self) -> u64 {
        let comes = !self.over && (self.coming.at_ns < self.stop_ns || self.coming.number < self.least);
        if comes { self.coming.at_ns } else { u64::MAX }
    }

    /// Admits the arrivals that are due. Returns the number of the longest waiting that were dropped, if any.
    pub fn arrive(&mut self, now: u64) -> Option<u64> {
        while self.next_ns() <= now && self.next_ns() < u64::MAX {
            self.coming.step();
        }
        let dropped = (self.coming.number - self.waiting.number).saturating_sub(MOST_WAITING);
        for _ in 0..dropped {
            self.waiting.step();
        }
        (dropped > 0).then_some(dropped)
    }

    /// Returns the intended start of the arrival that has waited longest.
    pub fn take(&mut self) -> Option<u64> {
        let waits = self.waiting.number < self.coming.number;
        waits.then(|| {
            let intended_ns = self.waiting.at_ns;
            self.waiting.step();
            intended_ns
        })
    }

    /// Ends the arrivals. Returns the number that had come and are dropped.
    pub fn abandon(&mut self) -> u64 {
        let dropped = self.coming.number - self.waiting.number;
        (self.waiting, self.over) = (self.coming.clone(), true);
        dropped
    }

    pub fn are_over(&self) -> bool {
        self.waiting.number == self.coming.number && self.next_ns() == u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64, rate_hz: f64, seconds: u64, least: u64) -> Vec<u64> {
        let mut arrivals =
            Arrivals::new(Sequence::of(seed, [0, 0]), rate_hz, 1000, 1000 + seconds * 1_000_000_000, least);
        std::iter::from_fn(|| {
            assert_eq!(None, arrivals.arrive(arrivals.next_ns()));
            arrivals.take()
        })
        .collect()
    }

    /// Gaps are exponential: their mean is that of the rate, their standard deviation equals the mean, and 63
    /// in 100 are below it. Evenly spaced ones have no deviation.
    #[test]
    fn arrivals_are_a_poisson_process() {
        let times = drawn(7, 1000.0, 20, 0);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count).sqrt();
        let below = gaps.iter().filter(|gap| **gap < mean).count() as f64 / count;
        assert!((0.97..1.03).contains(&mean), "{mean}");
        assert!((0.96..1.04).contains(&(deviation / mean)), "{deviation} of {mean}");
        assert!((0.62..0.645).contains(&below), "{below}");
    }

    /// Equal seeds give equal arrivals, and another seed gives others.
    #[test]
    fn arrivals_come_by_seed() {
        assert_eq!(drawn(7, 500.0, 1, 0), drawn(7, 500.0, 1, 0));
        assert_ne!(drawn(7, 500.0, 1, 0), drawn(8, 500.0, 1, 0));
    }

    /// The least number of arrivals comes, however long that takes.
    #[test]
    fn at_least_so_many_come() {
        assert_eq!(30, drawn(7, 1.0, 1, 30).len());
        assert!(drawn(7, 1000.0, 1, 30).len() > 900);
    }

    /// The queue is a difference of two places: dropping moves its front, and the rest keeps its times.
    #[test]
    fn the_longest_waiting_are_dropped() {
        let all = drawn(7, 2e6, 1, 0);
        let mut arrivals = Arrivals::new(Sequence::of(7, [0, 0]), 2e6, 1000, 1_000_001_000, 0);
        let dropped = arrivals.arrive(u64::MAX - 1).expect("too many");
        assert_eq!(all.len() as u64, dropped + MOST_WAITING);
        assert_eq!(Some(all[dropped as usize]), arrivals.take());
        assert_eq!(MOST_WAITING - 1, arrivals.abandon());
        assert!(arrivals.are_over());
    }
}
