//! Response times: 1 µs resolution, three significant digits, and histograms that add up.

use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

/// An hour; a request's limit is a day at most, and what takes longer counts as an hour.
const LONGEST_US: u64 = 3_600_000_000;

#[derive(Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        // The bounds are constants that the library accepts.
        Latencies(Histogram::new_with_bounds(1, LONGEST_US, 3).expect("bounds of a histogram"))
    }
}

impl Latencies {
    /// Rounded up, so that a bucket's upper bound is one.
    #[inline]
    pub fn note_ns(&mut self, latency_ns: u64) {
        self.0.saturating_record(latency_ns.div_ceil(1000).max(1));
    }

    pub fn merge(&mut self, other: &Latencies) {
        self.0 += &other.0;
    }

    /// (upper bound in µs, count) of each bucket that holds something, ascending.
    pub fn buckets_us(&self) -> Vec<(u64, u64)> {
        self.0
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration()))
            .collect()
    }
}

impl Serialize for Latencies {
    fn serialize<Out: Serializer>(&self, out: Out) -> Result<Out::Ok, Out::Error> {
        out.collect_seq(self.buckets_us())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two loops' histograms merged are the histogram of one that saw everything.
    #[test]
    fn merged_histograms_are_one() {
        let (mut all, mut even, mut odd) = (Latencies::default(), Latencies::default(), Latencies::default());
        for value in 0..20_000_u64 {
            let latency_ns = value * value;
            all.note_ns(latency_ns);
            if value % 2 == 0 { even.note_ns(latency_ns) } else { odd.note_ns(latency_ns) }
        }
        even.merge(&odd);
        assert_eq!(all.buckets_us(), even.buckets_us());
        assert_eq!(20_000, all.buckets_us().iter().map(|(_, count)| count).sum::<u64>());
    }

    /// 1 µs apart where that is three digits, within a thousandth where it is not.
    #[test]
    fn buckets_bound_what_is_in_them_from_above() {
        for (latency_ns, expected_us) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (999_999, 1000)] {
            let mut one = Latencies::default();
            one.note_ns(latency_ns);
            assert_eq!(vec![(expected_us, 1)], one.buckets_us());
        }
        let mut one = Latencies::default();
        one.note_ns(7_654_321_000);
        let bound = one.buckets_us()[0].0;
        assert!((7_654_321..=7_661_975).contains(&bound), "{bound}");
        one.note_ns(u64::MAX);
        assert_eq!(2, one.buckets_us().len());
    }
}
