//! Pacing: when work is warm, how much of it leads to a chunk before the clock starts, and how much is done between two
//! looks at the clock. One way for primitives, for databases and for loads.

use crate::clock::{self, Clocks};
use crate::failure::Failure;
use crate::runner::Advance;

const MS: f64 = 1e6;
/// A window is as long as a chunk usually is, so that what is found in it holds for chunks.
pub const WINDOW_NS: f64 = 5.0 * MS;
/// The share of a chunk that is worked before its clock starts, for caches that others have used.
const LEAD: f64 = 0.1;
/// What takes more than this share of a chunk has warmed itself before it is done.
const LONG: f64 = 0.25;
/// A batch is meant to last a little longer than asked: one that falls short takes a second one.
const MARGIN: f64 = 1.03;
/// How far the estimate moves with each chunk: one disturbed chunk must not make all the next ones short.
const WEIGHT: f64 = 0.5;
/// No operation is faster than a tenth of a cycle, the empty loop included.
const LEAST_NS: f64 = 0.02;

/// When work is taken to be warm.
#[derive(Clone, Copy)]
pub struct Warmth {
    /// Two windows in a row whose cost differs by less have settled.
    pub steady: f64,
    /// Two windows agree by chance sooner than caches and frequency settle.
    pub least_ns: f64,
    /// What varies by nature never settles.
    pub most_ns: f64,
}

/// Of work that this process does, or a database for it.
pub const USUAL: Warmth = Warmth { steady: 0.02, least_ns: 10.0 * MS, most_ns: 300.0 * MS };

/// A warm-up under way, window by window.
pub struct WarmUp {
    warmth: Warmth,
    former: Option<f64>,
}

impl WarmUp {
    pub fn new(warmth: Warmth) -> WarmUp {
        WarmUp { warmth, former: None }
    }

    /// Whether it is over with a window of this cost, so long after it began.
    pub fn is_over(&mut self, cost: f64, spent_ns: f64) -> bool {
        let Warmth { steady, least_ns, most_ns } = self.warmth;
        let agrees = self.former.replace(cost).is_some_and(|former| (cost / former - 1.0).abs() <= steady);
        (agrees && spent_ns >= least_ns) || spent_ns >= most_ns
    }

    /// Nothing is compared with the last window, which was too short.
    pub fn forget(&mut self) {
        self.former = None;
    }
}

/// How long one operation takes, lately, and how many of them fill a time.
pub struct Pace {
    each_ns: f64,
    /// How many operations are never parted: those of a commit.
    step: u64,
}

impl Pace {
    /// Of operations of which nothing is known yet.
    pub fn new(step: u64) -> Pace {
        Pace { each_ns: LEAST_NS, step }
    }

    pub fn each_ns(&self) -> f64 {
        self.each_ns
    }

    /// Operations took so long: forgets what was known.
    pub fn set(&mut self, taken_ns: u64, operations: u64) {
        self.each_ns = each(taken_ns, operations);
    }

    /// The operations of a chunk took so long.
    pub fn note(&mut self, taken_ns: u64, operations: u64) {
        self.each_ns += WEIGHT * (each(taken_ns, operations) - self.each_ns);
    }

    /// How many operations fill the time: at least one.
    pub fn filling(&self, time_ns: f64) -> u64 {
        self.whole(((time_ns / self.each_ns).ceil() as u64).max(1))
    }

    /// How many operations come before the clock starts. Of a chunk that is a number of operations it is a share of
    /// them, whatever they cost, so that all tables of a round grow alike.
    pub fn lead(&self, asked: Advance) -> u64 {
        let asked_ns = asked.seconds * 1e9;
        if asked_ns == 0.0 {
            return self.whole((LEAD * asked.operations as f64) as u64);
        }
        let is_long = self.each_ns * self.step as f64 > LONG * asked_ns;
        if is_long { 0 } else { self.filling(LEAD * asked_ns) }
    }

    /// Works for at least so long since the clocks were read, and at least so many operations; how many there were.
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

    /// So many that the last commit has as many rows as every other one.
    fn whole(&self, operations: u64) -> u64 {
        operations.next_multiple_of(self.step)
    }
}

fn each(taken_ns: u64, operations: u64) -> f64 {
    (taken_ns as f64 / operations as f64).max(LEAST_NS)
}

/// Does something for the first time in a fresh process: after many times, an allocator holds what it likes, and not
/// what one needs. How far resident memory rose meanwhile, in bytes, where that can be seen.
pub fn memory_of(first: impl FnOnce() -> Result<(), Failure>) -> Result<Option<u64>, Failure> {
    // What the reading itself needs is there before.
    clock::memory_bytes();
    let is_seen = clock::forget_peak();
    let (resting, _) = clock::memory_bytes();
    first()?;
    Ok(is_seen.then(|| clock::memory_bytes().1.saturating_sub(resting)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pace of so long an operation, in commits of so many.
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
        // Of so many, whatever they cost.
        assert_eq!(25, pace(2_000_000, 1).lead(asked(0.0, 250)));
        assert_eq!(50, pace(2_000_000, 50).lead(asked(0.0, 250)));
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

    /// A batch that was over too soon is followed by another, of what is left alone.
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
        // With a margin, so that it is not over too soon as a rule.
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
