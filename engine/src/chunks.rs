//! An operation advanced chunk by chunk: memory, warm-up, and batches between two looks at the clocks.

use crate::clock;
use crate::contract::{Chunk, Failure};
use crate::operation::Operation;
use crate::session::Advance;

const MS: f64 = 1e6;
/// A window is as long as a chunk usually is, so that what is found in it holds for chunks.
const WINDOW_NS: f64 = 5.0 * MS;
/// Two windows in a row that differ by less have settled.
const STEADY: f64 = 0.02;
/// Two windows agree by chance sooner than caches and frequency settle.
const LEAST_WARM_UP_NS: f64 = 10.0 * MS;
/// What varies by nature never settles.
const MOST_WARM_UP_NS: f64 = 300.0 * MS;
/// An operation that is longer than a window is warm after so many.
const MOST_SLOW_OPERATIONS: u64 = 2;
/// The share of a chunk that is worked before its clock starts, for caches that others have used.
const LEAD: f64 = 0.1;
/// An operation that takes more than this share of a chunk has warmed itself before it is done.
const LONG: f64 = 0.25;
/// A batch is meant to last a little longer than asked: one that falls short takes a second one.
const MARGIN: f64 = 1.03;
/// How far the estimate moves with each chunk: one disturbed chunk must not make all the next ones short.
const WEIGHT: f64 = 0.5;
/// No operation is faster than a tenth of a cycle, the empty loop included.
const LEAST_NS: f64 = 0.02;

/// An operation that is ready and warm.
pub struct Chunks {
    operation: Box<dyn Operation>,
    /// CPU time of one operation, lately.
    each_ns: f64,
    lead: bool,
}

impl Chunks {
    /// Performs the operation once while looking at memory, then until it is steady. Returns the growth of resident
    /// memory in that first operation, in bytes, where it can be seen.
    pub fn warm(mut operation: Box<dyn Operation>, lead: bool) -> Result<(Chunks, Option<u64>), Failure> {
        let (first_ns, memory_bytes) = first(operation.as_mut())?;
        let each_ns = until_steady(operation.as_mut(), first_ns)?;
        Ok((Chunks { operation, each_ns, lead }, memory_bytes))
    }

    /// CPU time of one operation in nanoseconds, as found last.
    pub fn operation_ns(&self) -> f64 {
        self.each_ns
    }

    /// Goes on for at least so long and at least so many operations.
    pub fn advance(&mut self, asked: Advance) -> Result<Chunk, Failure> {
        let asked_ns = asked.seconds * 1e9;
        if self.lead {
            self.operation.lead_in();
            if self.each_ns <= LONG * asked_ns {
                self.operation.batch(filling(LEAD * asked_ns, self.each_ns))?;
            }
        }
        let start = Clocks::read();
        let mut operations = 0;
        loop {
            let spent_ns = if operations == 0 { 0.0 } else { (clock::wall_ns() - start.wall_ns) as f64 };
            let left = asked.operations.saturating_sub(operations);
            let batch = filling(MARGIN * (asked_ns - spent_ns), self.each_ns).max(left);
            self.operation.batch(batch)?;
            operations += batch;
            let (cpu_ns, wall_ns) = start.since();
            if wall_ns as f64 >= asked_ns && operations >= asked.operations {
                self.each_ns += WEIGHT * (each(cpu_ns, operations) - self.each_ns);
                return Ok(Chunk { operations, cpu_ns, wall_ns, ..Chunk::default() });
            }
        }
    }
}

/// Both clocks at one moment. Elapsed time is read outside of CPU time, so that it is never the smaller one.
struct Clocks {
    cpu_ns: u64,
    wall_ns: u64,
}

impl Clocks {
    fn read() -> Clocks {
        let wall_ns = clock::wall_ns();
        Clocks { wall_ns, cpu_ns: clock::process_cpu_ns() }
    }

    /// CPU time and elapsed time since then.
    fn since(&self) -> (u64, u64) {
        let cpu_ns = clock::process_cpu_ns() - self.cpu_ns;
        (cpu_ns, clock::wall_ns() - self.wall_ns)
    }
}

/// How many operations of this length fill the time: at least one.
fn filling(time_ns: f64, each_ns: f64) -> u64 {
    ((time_ns / each_ns).ceil() as u64).max(1)
}

fn each(cpu_ns: u64, operations: u64) -> f64 {
    (cpu_ns as f64 / operations as f64).max(LEAST_NS)
}

/// One operation in a fresh process: after many, an allocator holds what it likes, and not what one needs.
/// Returns its CPU time and how far memory rose.
fn first(operation: &mut dyn Operation) -> Result<(f64, Option<u64>), Failure> {
    // What the reading itself needs is there before.
    clock::memory_bytes();
    let is_seen = clock::forget_peak();
    let (resting, _) = clock::memory_bytes();
    let start = clock::process_cpu_ns();
    operation.batch(1)?;
    let first_ns = each(clock::process_cpu_ns() - start, 1);
    Ok((first_ns, is_seen.then(|| clock::memory_bytes().1.saturating_sub(resting))))
}

/// Goes on until two windows in a row agree. Returns the CPU time of one operation.
fn until_steady(operation: &mut dyn Operation, first_ns: f64) -> Result<f64, Failure> {
    let (mut performed, mut count, mut before_ns) = (0, filling(WINDOW_NS, first_ns), None);
    let start = clock::process_cpu_ns();
    loop {
        let window = clock::process_cpu_ns();
        operation.batch(count)?;
        performed += count;
        let now = clock::process_cpu_ns();
        let each_ns = each(now - window, count);
        let spent_ns = (now - start) as f64;
        let agrees = before_ns.is_some_and(|before_ns: f64| (each_ns / before_ns - 1.0).abs() <= STEADY);
        let is_slow = each_ns > WINDOW_NS && performed >= MOST_SLOW_OPERATIONS;
        if (agrees && spent_ns >= LEAST_WARM_UP_NS) || spent_ns >= MOST_WARM_UP_NS || is_slow {
            return Ok(each_ns);
        }
        // A first operation may be slower than the rest by a lot: short windows find only how long one has to be.
        before_ns = (each_ns * count as f64 >= WINDOW_NS / 2.0).then_some(each_ns);
        // Grown by steps, for the same reason.
        count = filling(WINDOW_NS, each_ns).min(count.saturating_mul(10));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::contract::Proof;

    /// Works for so much CPU time, and counts how often.
    struct Work {
        cpu_ns: u64,
        performed: Rc<Cell<u64>>,
    }

    impl Operation for Work {
        fn perform(&mut self) -> Result<(), Failure> {
            let end = clock::process_cpu_ns() + self.cpu_ns;
            while clock::process_cpu_ns() < end {}
            self.performed.set(self.performed.get() + 1);
            Ok(())
        }

        fn prove(&mut self) -> Result<Proof, Failure> {
            Ok(Proof::default())
        }
    }

    fn warm(cpu_ns: u64, lead: bool) -> (Chunks, Rc<Cell<u64>>) {
        let performed = Rc::new(Cell::new(0));
        let work = Work { cpu_ns, performed: performed.clone() };
        let (chunks, _) = Chunks::warm(Box::new(work), lead).expect("an operation");
        (chunks, performed)
    }

    /// How many operations a chunk of 5 ms performs beside those that it counts.
    fn lead_of(cpu_ns: u64, lead: bool) -> u64 {
        let (mut chunks, performed) = warm(cpu_ns, lead);
        let before = performed.get();
        let chunk = chunks.advance(Advance { seconds: 0.005, operations: 1 }).expect("a chunk");
        performed.get() - before - chunk.operations
    }

    #[test]
    fn a_chunk_has_a_lead_unless_an_operation_is_long() {
        // An operation takes at least so long, whatever else the machine does: longer ones have none.
        assert_eq!(0, lead_of(2_000_000, true));
        assert_eq!(0, lead_of(20_000, false));
        assert!(lead_of(20_000, true) >= 1);
    }

    #[test]
    fn what_is_slow_is_warmed_up_by_two_more() {
        let (chunks, performed) = warm(20_000_000, true);
        assert_eq!(3, performed.get());
        assert!(chunks.operation_ns() >= 20e6);
    }

    #[test]
    fn a_chunk_is_at_least_as_long_and_as_many_as_asked() {
        let (mut chunks, _) = warm(50_000, true);
        for (seconds, operations) in [(0.0, 1), (0.0, 70), (0.004, 1), (0.001, 40)] {
            let chunk = chunks.advance(Advance { seconds, operations }).expect("a chunk");
            assert!(chunk.operations >= operations && chunk.wall_ns as f64 >= seconds * 1e9, "{chunk:?}");
        }
    }

    #[test]
    fn an_error_ends_a_chunk() {
        struct Failing(u32);
        impl Operation for Failing {
            fn perform(&mut self) -> Result<(), Failure> {
                self.0 += 1;
                if self.0 > 2 { Err(Failure::Failed("a wrong answer".to_owned())) } else { Ok(()) }
            }
            fn prove(&mut self) -> Result<Proof, Failure> {
                Ok(Proof::default())
            }
        }
        let mut chunks = Chunks { operation: Box::new(Failing(0)), each_ns: 1e7, lead: true };
        let asked = Advance { seconds: 0.0, operations: 2 };
        assert_eq!(2, chunks.advance(asked).expect("a chunk").operations);
        assert!(chunks.advance(asked).is_err());
    }
}
