//! Chunks of a primitive: warmed up until its cost is steady, then performed for a given time and number of
//! operations.

use crate::clock::{self, Clocks};
use crate::contract::Chunk;
use crate::failure::Failure;
use crate::pacing::{Pace, USUAL, WINDOW_NS, WarmUp, memory_of};
use crate::provider::Primitive;
use crate::runner::Advance;

/// Operations after which a primitive is warm if one takes longer than a window.
const MOST_SLOW_OPERATIONS: u64 = 2;

/// A warm primitive, advanced chunk by chunk.
pub struct Chunks {
    primitive: Box<dyn Primitive>,
    /// Pace in CPU time.
    pace: Pace,
    lead: bool,
}

impl Chunks {
    /// Performs the primitive once while measuring memory, then until it is steady. Returns the growth of
    /// resident memory in that first operation in bytes, or None if it cannot be seen.
    pub fn warm(primitive: Box<dyn Primitive>, lead: bool) -> Result<(Chunks, Option<u64>), Failure> {
        let mut chunks = Chunks { primitive, pace: Pace::new(1), lead };
        let memory_bytes = memory_of(|| chunks.window(1).map(|_| ()))?;
        chunks.until_steady()?;
        Ok((chunks, memory_bytes))
    }

    /// Returns the recent CPU time of one operation.
    pub fn operation_ns(&self) -> f64 {
        self.pace.each_ns()
    }

    /// Returns true if other processes do the work. Their CPU time has the resolution of a clock tick.
    pub fn is_elsewhere(&self) -> bool {
        self.primitive.elsewhere_ns().is_some()
    }

    /// Performs a chunk of at least the given time and number of operations.
    pub fn advance(&mut self, asked: Advance) -> Result<Chunk, Failure> {
        self.lead_in(asked)?;
        self.counted(asked, &Clocks::read())
    }

    /// Works for a small part of the chunk before its clocks start, so that caches are warm.
    pub fn lead_in(&mut self, asked: Advance) -> Result<(), Failure> {
        if !self.lead {
            return Ok(());
        }
        self.primitive.lead_in();
        match self.pace.lead(asked) {
            0 => Ok(()),
            leading => self.primitive.batch(leading),
        }
    }

    /// Performs a chunk from the moment at which its clocks were read.
    pub fn counted(&mut self, asked: Advance, clocks: &Clocks) -> Result<Chunk, Failure> {
        let Chunks { primitive, pace, .. } = self;
        let before_ns = primitive.elsewhere_ns();
        let operations = pace.work(asked, clocks, |count| primitive.batch(count))?;
        let (own_ns, wall_ns) = clocks.since();
        let cpu_ns = elsewhere(primitive.as_ref(), before_ns).unwrap_or(own_ns);
        pace.note(cpu_ns, operations);
        Ok(Chunk { operations, cpu_ns, wall_ns, ..Chunk::default() })
    }

    /// Performs operations of a chunk whose clocks the caller reads.
    pub fn batch(&mut self, operations: u64) -> Result<(), Failure> {
        self.primitive.batch(operations)
    }

    /// Records the CPU time of a chunk's operations, which sets the pace.
    pub fn note(&mut self, cpu_ns: u64, operations: u64) {
        self.pace.note(cpu_ns, operations);
    }

    /// Works for about this time without counting.
    pub fn go_on(&mut self, time_ns: f64) -> Result<(), Failure> {
        self.primitive.batch(self.pace.filling(time_ns))
    }

    /// Performs windows until two in a row agree.
    fn until_steady(&mut self) -> Result<(), Failure> {
        let (mut warm_up, mut performed) = (WarmUp::new(USUAL), 0);
        let (start_ns, mut count) = (clock::process_cpu_ns(), self.pace.filling(WINDOW_NS));
        loop {
            let taken_ns = self.window(count)? as f64;
            performed += count;
            let is_slow = self.pace.each_ns() > WINDOW_NS && performed >= MOST_SLOW_OPERATIONS;
            let spent_ns = (clock::process_cpu_ns() - start_ns) as f64;
            if warm_up.is_over(self.pace.each_ns(), spent_ns) || is_slow {
                return Ok(());
            }
            // A first operation may be much slower than the rest: a short window only shows how long the next
            // one must be.
            if taken_ns < WINDOW_NS / 2.0 {
                warm_up.forget();
            }
            // The window grows in steps, because the first estimate may be wrong.
            count = self.pace.filling(WINDOW_NS).min(count.saturating_mul(10));
        }
    }

    /// Performs this number of operations, sets the pace by them, and returns their CPU time.
    fn window(&mut self, count: u64) -> Result<u64, Failure> {
        let (start_ns, before_ns) = (clock::process_cpu_ns(), self.primitive.elsewhere_ns());
        self.primitive.batch(count)?;
        let own_ns = clock::process_cpu_ns() - start_ns;
        let taken_ns = elsewhere(self.primitive.as_ref(), before_ns).unwrap_or(own_ns);
        self.pace.set(taken_ns, count);
        Ok(taken_ns)
    }
}

/// Returns the CPU time of other processes since a moment, or None if this process does the work.
fn elsewhere(primitive: &dyn Primitive, before_ns: Option<u64>) -> Option<u64> {
    Some(primitive.elsewhere_ns()? - before_ns?)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::contract::Proof;

    /// A primitive that uses `cpu_ns` of CPU time, or `first_ns` in its first calls, and counts the calls.
    struct Work {
        first_ns: &'static [u64],
        cpu_ns: u64,
        performed: Rc<Cell<u64>>,
    }

    impl Primitive for Work {
        fn perform(&mut self) -> Result<(), Failure> {
            let first = self.first_ns.get(self.performed.get() as usize);
            let work_ns = first.copied().unwrap_or(self.cpu_ns);
            let end = clock::process_cpu_ns() + work_ns;
            while clock::process_cpu_ns() < end {}
            self.performed.set(self.performed.get() + 1);
            Ok(())
        }

        fn prove(&mut self) -> Result<Proof, Failure> {
            Ok(Proof::default())
        }
    }

    fn warm(cpu_ns: u64, lead: bool) -> (Chunks, Rc<Cell<u64>>) {
        warm_after(&[], cpu_ns, lead)
    }

    fn warm_after(first_ns: &'static [u64], cpu_ns: u64, lead: bool) -> (Chunks, Rc<Cell<u64>>) {
        let performed = Rc::new(Cell::new(0));
        let work = Work { first_ns, cpu_ns, performed: performed.clone() };
        let (chunks, _) = Chunks::warm(Box::new(work), lead).expect("an operation");
        (chunks, performed)
    }

    /// Returns the number of uncounted operations in a chunk of 5 ms.
    fn lead_of(cpu_ns: u64, lead: bool) -> u64 {
        let (mut chunks, performed) = warm(cpu_ns, lead);
        let before = performed.get();
        let chunk = chunks.advance(Advance { seconds: 0.005, operations: 1 }).expect("a chunk");
        performed.get() - before - chunk.operations
    }

    #[test]
    fn a_chunk_has_a_lead_unless_an_operation_is_long() {
        // An operation takes at least this time on any machine; a long one has no lead-in.
        assert_eq!(0, lead_of(2_000_000, true));
        assert_eq!(0, lead_of(20_000, false));
        assert!(lead_of(20_000, true) >= 1);
    }

    #[test]
    fn what_is_slow_is_warmed_up_by_two_more() {
        // Two operations are enough even if their costs differ.
        for first_ns in [&[][..], &[20_000_000, 30_000_000, 60_000_000]] {
            let (chunks, performed) = warm_after(first_ns, 20_000_000, true);
            assert_eq!(3, performed.get());
            assert!(chunks.pace.each_ns() >= 20e6);
        }
    }

    /// A warm-up has two windows, whatever CPU time the process used before.
    #[test]
    fn the_past_warms_nothing_up() {
        while clock::process_cpu_ns() < 400_000_000 {}
        let (chunks, performed) = warm(10_000, true);
        let warmed_ns = performed.get() as f64 * chunks.operation_ns();
        assert!(warmed_ns >= 8e6, "{warmed_ns}");
    }

    #[test]
    fn what_goes_on_is_as_long_as_it_is_to_be() {
        let (mut chunks, performed) = warm(20_000, true);
        let (before, more) = (performed.get(), chunks.pace.filling(1e6));
        chunks.go_on(1e6).expect("operations");
        assert!(more > 1);
        assert_eq!(before + more, performed.get());
    }

    #[test]
    fn a_chunk_is_at_least_as_long_and_as_many_as_asked() {
        let (mut chunks, _) = warm(50_000, true);
        for (seconds, operations) in [(0.0, 1), (0.0, 70), (0.004, 1), (0.001, 40)] {
            let chunk = chunks.advance(Advance { seconds, operations }).expect("a chunk");
            assert!(chunk.operations >= operations && chunk.wall_ns as f64 >= seconds * 1e9, "{chunk:?}");
        }
    }

    /// The first two operations take longer than a whole warm-up must. The windows of ten and a hundred
    /// operations after them agree but are too short; windows of sufficient length have some hundreds.
    #[test]
    fn short_windows_are_forgotten_and_long_ones_are_not() {
        let warmed = || {
            let (chunks, performed) = warm_after(&[20_000_000, 12_000_000], 10_000, true);
            assert!(chunks.operation_ns() >= 10_000.0);
            assert!(performed.get() >= 300, "{} operations", performed.get());
            performed.get()
        };
        // A busy machine may keep two windows from agreeing until the limit of 300 ms.
        assert!((0..20).any(|_| warmed() < 8_000));
    }

    /// A database server reports the CPU time that it has used.
    #[test]
    fn what_is_done_elsewhere_is_counted_there() {
        struct Elsewhere(u64);
        impl Primitive for Elsewhere {
            fn perform(&mut self) -> Result<(), Failure> {
                self.0 += 20_000_000;
                Ok(())
            }
            fn prove(&mut self) -> Result<Proof, Failure> {
                Ok(Proof::default())
            }
            fn elsewhere_ns(&self) -> Option<u64> {
                Some(self.0)
            }
        }
        let (mut chunks, _) = Chunks::warm(Box::new(Elsewhere(7)), true).expect("an operation");
        assert_eq!(20e6, chunks.operation_ns());
        let chunk = chunks.advance(Advance { seconds: 0.0, operations: 3 }).expect("a chunk");
        assert_eq!((3, 60_000_000), (chunk.operations, chunk.cpu_ns));
    }

    #[test]
    fn an_error_ends_a_chunk() {
        // One operation leads in, and two are measured.
        struct Failing(u32);
        impl Primitive for Failing {
            fn perform(&mut self) -> Result<(), Failure> {
                self.0 += 1;
                if self.0 > 3 { Err(Failure::Failed("a wrong answer".to_owned())) } else { Ok(()) }
            }
            fn prove(&mut self) -> Result<Proof, Failure> {
                Ok(Proof::default())
            }
        }
        let mut pace = Pace::new(1);
        pace.set(10_000_000, 1);
        let mut chunks = Chunks { primitive: Box::new(Failing(0)), pace, lead: true };
        let asked = Advance { seconds: 0.0, operations: 2 };
        assert_eq!(2, chunks.advance(asked).expect("a chunk").operations);
        assert!(chunks.advance(asked).is_err());
    }
}
