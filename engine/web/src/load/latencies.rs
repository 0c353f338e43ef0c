//! Response times: recorded by a loop in one histogram for its whole life, and passed on as its non-empty
//! buckets.

use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

/// Upper bound of the histogram, an hour; a request's limit is at most a day, and longer times count as an
/// hour.
const LONGEST_US: u64 = 3_600_000_000;

/// Histogram of one loop: 1 µs resolution, three significant digits. It has 188 KB: a new one for each phase
/// would fill the caches between the lead-in of a chunk and its clock.
pub struct Recorder(Histogram<u64>);

impl Recorder {
    pub fn new() -> Recorder {
        // The bounds are constants that the library accepts.
        Recorder(Histogram::new_with_bounds(1, LONGEST_US, 3).expect("bounds of a histogram"))
    }

    /// Records a latency, rounded up, so that a bucket's upper bound is one.
    #[inline]
    pub fn note_ns(&mut self, latency_ns: u64) {
        self.0.saturating_record(latency_ns.div_ceil(1000).max(1));
    }

    /// Returns the recorded latencies and forgets them. An empty histogram is not touched.
    pub fn take(&mut self) -> Latencies {
        if self.0.is_empty() {
            return Latencies::default();
        }
        let recorded = self.0.iter_recorded();
        let buckets =
            recorded.map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration()));
        let latencies = Latencies(buckets.collect());
        self.0.reset();
        latencies
    }
}

/// Upper bound in µs and count of each non-empty bucket, ascending.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Latencies(Vec<(u64, u64)>);

impl Latencies {
    /// Adds the latencies of another loop: equal bounds are one bucket.
    pub fn merge(&mut self, other: Latencies) {
        self.0.extend(other.0);
        self.0.sort_unstable();
        self.0.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            kept.1 += if is_same { later.1 } else { 0 };
            is_same
        });
    }

    #[cfg(test)]
    pub fn buckets_us(&self) -> Vec<(u64, u64)> {
        self.0.clone()
    }
}

impl Serialize for Latencies {
    fn serialize<Out: Serializer>(&self, out: Out) -> Result<Out::Ok, Out::Error> {
        out.collect_seq(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(latencies_ns: impl IntoIterator<Item = u64>) -> Latencies {
        let mut recorder = Recorder::new();
        latencies_ns.into_iter().for_each(|latency_ns| recorder.note_ns(latency_ns));
        recorder.take()
    }

    /// Merging two loops' buckets gives the buckets of one loop that recorded everything.
    #[test]
    fn merged_latencies_are_one() {
        let squares = || (0..20_000_u64).map(|value| value * value);
        let mut even = recorded(squares().step_by(2));
        even.merge(recorded(squares().skip(1).step_by(2)));
        assert_eq!(recorded(squares()), even);
        assert_eq!(20_000, even.buckets_us().iter().map(|(_, count)| count).sum::<u64>());
    }

    /// A phase begins with no latencies, in the same histogram.
    #[test]
    fn what_was_taken_is_forgotten_and_the_histogram_is_kept() {
        let mut recorder = Recorder::new();
        recorder.note_ns(1_500_000);
        assert_eq!(vec![(1500, 1)], recorder.take().buckets_us());
        assert_eq!(Latencies::default(), recorder.take());
        recorder.note_ns(1_000);
        assert_eq!(vec![(1, 1)], recorder.take().buckets_us());
    }

    /// Bounds are 1 µs apart up to three digits, and within a thousandth above.
    #[test]
    fn buckets_bound_what_is_in_them_from_above() {
        for (latency_ns, expected_us) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (999_999, 1000)] {
            assert_eq!(vec![(expected_us, 1)], recorded([latency_ns]).buckets_us());
        }
        let bound = recorded([7_654_321_000]).buckets_us()[0].0;
        assert!((7_654_321..=7_661_975).contains(&bound), "{bound}");
        assert_eq!(2, recorded([7_654_321_000, u64::MAX]).buckets_us().len());
    }
}
