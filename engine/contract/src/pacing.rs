//! Pacing: when work is warm, how much work precedes a chunk's clock, and how much is done between two
//! readings of the clock. Primitives, databases and loads use the same rules.

use crate::clock::{self, Clocks};
use crate::failure::Failure;
use crate::runner::Advance;

const MS: f64 = 1e6;
/// Length of a warm-up window, that of a usual chunk, so that its cost applies to chunks.
pub const WINDOW_NS: f64 = 5.0 * MS;
/// Share of a chunk that is worked before its clock starts, because other trials have used the caches.
const LEAD: f64 = 0.1;
/// Share of a chunk from which an operation needs no lead-in: it warms the caches by itself.
const LONG: f64 = 0.25;
/// Factor by which a batch is planned longer than requested: a batch that falls short needs a second one.
const MARGIN: f64 = 1.03;
/// Weight of each chunk in the estimate, so that one disturbed chunk does not shorten all later ones.
const WEIGHT: f64 = 0.5;
/// Lower bound of an operation's time: a tenth of a cycle, below even the empty loop.
const LEAST_NS: f64 = 0.02;

/// Conditions under which work is warm.
#[derive(Clone, Copy)]
pub struct Warmth {
    /// Largest relative difference of two windows in a row that counts as settled.
    pub steady: f64,
    /// Shortest warm-up: two windows can agree by chance before caches and frequency settle.
    pub least_ns: f64,
    /// Longest warm-up: work that varies by nature never settles.
    pub most_ns: f64,
}

/// Conditions for work that this process does, or a database for it.
pub const USUAL: Warmth = Warmth { steady: 0.02, least_ns: 10.0 * MS, most_ns: 300.0 * MS };

/// A warm-up in progress, window by window.
pub struct WarmUp {
    warmth: Warmth,
    former: Option<f64>,
}

impl WarmUp {
    pub fn new(warmth: Warmth) -> WarmUp {
        WarmUp { warmth, former: None }
    }

    /// Returns true if the warm-up ends with a window of this cost, this time after it began.
    pub fn is_over(&mut self, cost: f64, spent_ns: f64) -> bool {
        let Warmth { steady, least_ns, most_ns } = self.warmth;
        let agrees = self.former.replace(cost).is_some_and(|former| (cost / former - 1.0).abs() <= steady);
        (agrees && spent_ns >= least_ns) || spent_ns >= most_ns
    }

    /// Discards the last window, which was too short to compare with.
    pub fn forget(&mut self) {
        self.former = None;
    }
}

/// Recent time of one operation, and the number of operations that fill a time.
pub struct Pace {
    each_ns: f64,
    /// Number of operations that are never separated: those of a commit.
    step: u64,
}

impl Pace {
    /// Makes the pace of operations whose time is unknown.
    pub fn new(step: u64) -> Pace {
        Pace { each_ns: LEAST_NS, step }
    }

    pub fn each_ns(&self) -> f64 {
        self.each_ns
    }

    /// Sets the time of an operation, and discards earlier estimates.
    pub fn set(&mut self, taken_ns: u64, operations: u64) {
        self.each_ns = each(taken_ns, operations);
    }

    /// Moves the estimate by the time of a chunk's operations.
    pub fn note(&mut self, taken_ns: u64, operations: u64) {
        self.each_ns += WEIGHT * (each(taken_ns, operations) - self.each_ns);
    }

    /// Returns the number of operations that fill the time, at least one.
    pub fn filling(&self, time_ns: f64) -> u64 {
        self.whole(((time_ns / self.each_ns).ceil() as u64).max(1))
    }

    /// Returns the number of operations before the clock starts. A chunk given by operations alone has a
    /// share of those, whatever they cost, so that all tables of a round grow equally.
    pub fn lead(&self, asked: Advance) -> u64 {
        let asked_ns = asked.seconds * 1e9;
        if asked_ns == 0.0 {
            // One of two or more: where fewer than ten fill a chunk, a tenth of them is none, and the caches stay cold.
            return self.whole(((LEAD * asked.operations as f64) as u64).max((asked.operations > 1).into()));
        }
        let is_long = self.each_ns * self.step as f64 > LONG * asked_ns;
        if is_long { 0 } else { self.filling(LEAD * asked_ns) }
    }

    /// Works for at least the given time since the clocks were read, and at least the given number of
    /// operations. Returns the number performed.
    pub fn work(
        &self,
        asked: Advance,
        clocks: &Clocks,
        mut batch: impl FnMut(u64) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let asked_ns = asked.seconds * 1e9;
        let mut operations = 0;
        loop {
            let spent_ns = if operations == 0 { 0.0 } else { clocks.elapsed_ns() as f64 };
            if operations > 0 && spent_ns >= asked_ns && operations >= asked.operations {
                return Ok(operations);
            }
            let left = asked.operations.saturating_sub(operations);
            let count = match asked_ns - spent_ns {
                left_ns if left_ns > 0.0 => self.whole(self.filling(MARGIN * left_ns).max(left)),
                _ => left,
            };
            batch(count)?;
            operations += count;
        }
    }

    /// Rounds up to whole commits, so that the last one has as many rows as the others.
    fn whole(&self, operations: u64) -> u64 {
        operations.next_multiple_of(self.step)
    }
}

fn each(taken_ns: u64, operations: u64) -> f64 {
    (taken_ns as f64 / operations as f64).max(LEAST_NS)
}

/// Performs the first operation of a fresh process, and returns the growth of resident memory in bytes, if it
/// can be seen. After many operations an allocator keeps more than one operation needs.
pub fn memory_of(first: impl FnOnce() -> Result<(), Failure>) -> Result<Option<u64>, Failure> {
    // The first reading allocates the memory that a reading needs.
    clock::memory_bytes();
    let is_seen = clock::forget_peak();
    let (resting, _) = clock::memory_bytes();
    first()?;
    Ok(is_seen.then(|| clock::memory_bytes().1.saturating_sub(resting)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a pace with this time of an operation and this number of rows in a commit.
    fn pace(each_ns: u64, step: u64) -> Pace {
        let mut pace = Pace::new(step);
        pace.set(each_ns, 1);
        pace
    }

    #[test]
    fn a_warm_up_is_over_when_two_windows_agree_and_never_too_soon_or_too_late() {
        let over = |windows: &[(f64, f64)]| {
            let mut warm_up = WarmUp::new(USUAL);
            windows.iter().map(|(cost, spent_ms)| warm_up.is_over(*cost, spent_ms * MS)).collect::<Vec<_>>()
        };
        assert_eq!(vec![false, false, true], over(&[(100.0, 5.0), (130.0, 10.0), (131.0, 15.0)]));
        assert_eq!(vec![false, false, true], over(&[(100.0, 2.0), (100.0, 4.0), (100.0, 10.0)]));
        assert_eq!(vec![false, true], over(&[(100.0, 5.0), (200.0, 300.0)]));
        let mut warm_up = WarmUp::new(USUAL);
        assert!(!warm_up.is_over(100.0, 20.0 * MS));
        warm_up.forget();
        assert!(!warm_up.is_over(100.0, 25.0 * MS));
    }

    #[test]
    fn a_lead_is_a_tenth_of_a_chunk_in_whole_commits() {
        let asked = |seconds, operations| Advance { seconds, operations };
        assert_eq!(50, pace(10_000, 1).lead(asked(0.005, 1)));
        assert_eq!(80, pace(10_000, 40).lead(asked(0.005, 1)));
        assert_eq!(0, pace(2_000_000, 1).lead(asked(0.005, 1)));
        assert_eq!(0, pace(100_000, 50).lead(asked(0.005, 1)));
        assert_eq!(1, pace(1_250_000, 1).lead(asked(0.005, 1)));
        // A chunk given by operations has a share of them, whatever they cost.
        assert_eq!(25, pace(2_000_000, 1).lead(asked(0.0, 250)));
        assert_eq!(50, pace(2_000_000, 50).lead(asked(0.0, 250)));
        assert_eq!(1, pace(700_000, 1).lead(asked(0.0, 8)));
        assert_eq!(1, pace(2_000_000, 1).lead(asked(0.0, 2)));
        assert_eq!(0, pace(2_000_000, 1).lead(asked(0.0, 1)));
    }

    #[test]
    fn a_chunk_has_as_many_as_asked_and_of_a_time_whole_commits() {
        let work = |pace: &Pace, seconds, operations| {
            let clocks = Clocks::read();
            pace.work(Advance { seconds, operations }, &clocks, |_| Ok(())).expect("operations")
        };
        assert_eq!(70, work(&pace(1_000, 50), 0.0, 70));
        let operations = work(&pace(1_000_000, 50), 0.001, 70);
        assert!(operations >= 100 && operations % 50 == 0, "{operations}");
    }

    /// A batch that ended too soon is followed by another for the rest.
    #[test]
    fn what_is_faster_than_it_was_is_gone_on_with() {
        let (began, clocks, mut batches) = (std::time::Instant::now(), Clocks::read(), Vec::new());
        let batch = |count| {
            batches.push(count);
            std::thread::sleep(std::time::Duration::from_micros(5 * count));
            Ok(())
        };
        let asked = Advance { seconds: 0.01, operations: 1 };
        let operations = pace(10_000, 1).work(asked, &clocks, batch).expect("operations");
        assert!(began.elapsed().as_secs_f64() >= asked.seconds);
        assert_eq!(operations, batches.iter().sum::<u64>());
        // The margin makes a second batch rare.
        assert_eq!(1030, batches[0]);
        assert!(batches[1..].iter().all(|count| *count <= 510), "{batches:?}");
    }

    #[test]
    fn one_disturbed_chunk_moves_the_pace_by_half() {
        let mut pace = pace(1_000, 1);
        pace.note(30_000, 10);
        assert_eq!(2_000.0, pace.each_ns());
    }
}
