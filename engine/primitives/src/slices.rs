//! Slices of a chunk: parts of less than a millisecond, with a reading of the probe before, between and after
//! them.
//!
//! On a core whose sibling thread belongs to others, quiet lasts one or two milliseconds. A chunk of five is
//! rarely quiet from end to end, but most of its slices may be. Slices stay in one process and one chunk, so
//! that the caches are those of a chunk.
//!
//! Slices are clocked by elapsed time, which is read without a system call. P-256 signatures cost 1.5 % more
//! if each slice reads the CPU clock (system calls clear branch predictors on some processors). A chunk whose
//! elapsed time was not the thread's CPU time, because others had the core or more threads worked, has no
//! slices.

use serde::Serialize;

use crate::chunks::Chunks;
use crate::clock::{self, Clocks};
use crate::contract::Chunk;
use crate::failure::Failure;
use crate::runner::Advance;
use crate::spin::Probe;

/// Largest relative difference of elapsed time and CPU time, below the smallest difference that is reported.
/// A moment in which others have the core exceeds it.
const ALIKE: f64 = 0.005;

/// A part of a chunk.
#[derive(Serialize, Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    pub operations: u64,
    pub cpu_ns: u64,
    pub wall_ns: u64,
    /// Nanoseconds of the probe right before and right after the slice.
    pub probes_ns: (u64, u64),
}

/// Slices of a chunk; empty if none were requested.
#[derive(Serialize, Debug, Default)]
pub struct Slices {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slice>,
}

/// Chunks of a primitive, sliced on request.
pub struct Sliced {
    chunks: Chunks,
    probe: Probe,
}

impl Sliced {
    pub fn new(chunks: Chunks) -> Sliced {
        Sliced { chunks, probe: Probe::new() }
    }

    /// Performs a chunk of at least this time and number of operations. The chunk has slices if `asked` gives a number of
    /// operations alone: slices that end by time would have more operations in quick moments.
    pub fn advance(&mut self, asked: Advance, slice_seconds: f64) -> Result<Chunk<Slices>, Failure> {
        if slice_seconds == 0.0 || asked.seconds > 0.0 || self.chunks.is_elsewhere() {
            let Chunk { operations, cpu_ns, wall_ns, .. } = self.chunks.advance(asked)?;
            return Ok(Chunk { operations, cpu_ns, wall_ns, observed: Slices::default() });
        }
        self.chunks.lead_in(asked)?;
        let (process, thread) = (Clocks::read(), Clocks::of_thread());
        let mut before_ns = self.probe.read_ns();
        let mut slices = Vec::new();
        for operations in parts(asked.operations, self.chunks.operation_ns() / (slice_seconds * 1e9)) {
            let began_ns = clock::wall_ns();
            self.chunks.batch(operations)?;
            let wall_ns = (clock::wall_ns() - began_ns).max(1);
            let after_ns = self.probe.read_ns();
            slices.push(Slice { operations, cpu_ns: wall_ns, wall_ns, probes_ns: (before_ns, after_ns) });
            before_ns = after_ns;
        }
        let (thread_ns, all_ns) = thread.since();
        let (process_ns, _) = process.since();
        let wall_ns: u64 = slices.iter().map(|one| one.wall_ns).sum();
        let is_own = (thread_ns as f64 / all_ns as f64 - 1.0).abs() <= ALIKE;
        // If others had the core, the probes got a share of that CPU time in proportion to their elapsed
        // time.
        let share = wall_ns as f64 / all_ns as f64;
        let cpu_ns = if is_own { wall_ns } else { (process_ns as f64 * share) as u64 };
        self.chunks.note(cpu_ns, asked.operations);
        let slices = if is_own { slices } else { Vec::new() };
        Ok(Chunk { operations: asked.operations, cpu_ns, wall_ns, observed: Slices { slices } })
    }
}

/// Returns the number of operations of each slice: nearly equal numbers whose sum is that of the chunk.
/// `each` is the number of slices that one operation fills.
fn parts(operations: u64, each: f64) -> impl Iterator<Item = u64> {
    let slices = ((operations as f64 * each).round() as u64).clamp(1, operations);
    (0..slices).map(move |at| operations * (at + 1) / slices - operations * at / slices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Proof;
    use crate::provider::Primitive;

    struct Burn(u64);

    impl Primitive for Burn {
        fn perform(&mut self) -> Result<(), Failure> {
            let clocks = Clocks::of_thread();
            while clocks.since().0 < self.0 {}
            Ok(())
        }

        fn prove(&mut self) -> Result<Proof, Failure> {
            Ok(Proof::default())
        }
    }

    fn sliced(cpu_ns: u64) -> Sliced {
        Sliced::new(Chunks::warm(Box::new(Burn(cpu_ns)), true).expect("an operation").0)
    }

    /// Returns a chunk with slices, and the nanoseconds around it. Among other tests it takes some attempts
    /// until nothing else has the core.
    fn in_slices(cpu_ns: u64, asked: Advance) -> (Chunk<Slices>, u64) {
        let mut sliced = sliced(cpu_ns);
        let mut chunks = (0..2_000).map(|_| {
            let clocks = Clocks::read();
            (sliced.advance(asked, 0.0005).expect("a chunk"), clocks.elapsed_ns())
        });
        chunks.find(|(chunk, _)| !chunk.observed.slices.is_empty()).expect("a chunk that had its core")
    }

    #[test]
    fn slices_have_all_operations_of_a_chunk_and_share_them_equally() {
        let of = |operations, each| parts(operations, each).collect::<Vec<_>>();
        assert_eq!(vec![25; 10], of(250, 0.04));
        assert_eq!(vec![33, 33, 34], of(100, 0.03));
        assert_eq!(vec![1; 3], of(3, 4.0));
        assert_eq!(vec![7], of(7, 1e-6));
    }

    #[test]
    fn a_chunk_is_the_sum_of_its_slices_and_probes_are_in_none() {
        let (chunk, around_ns) = in_slices(100_000, Advance { seconds: 0.0, operations: 20 });
        let slices = &chunk.observed.slices;
        assert!(slices.len() > 1, "{slices:?}");
        assert_eq!(20, chunk.operations);
        assert_eq!(20, slices.iter().map(|one| one.operations).sum::<u64>());
        assert_eq!(chunk.cpu_ns, slices.iter().map(|one| one.cpu_ns).sum::<u64>());
        assert_eq!(chunk.wall_ns, slices.iter().map(|one| one.wall_ns).sum::<u64>());
        assert!(slices.windows(2).all(|pair| pair[0].probes_ns.1 == pair[1].probes_ns.0));
        let probes_ns: u64 = slices.iter().map(|one| one.probes_ns.1).sum();
        assert!(chunk.cpu_ns >= 2_000_000 && chunk.cpu_ns + probes_ns <= around_ns, "{chunk:?} {around_ns}");
    }

    /// Sleeping simulates others that have the core.
    #[test]
    fn a_chunk_that_did_not_have_its_core_has_no_slices_and_its_own_time() {
        struct Sleeping;
        impl Primitive for Sleeping {
            fn perform(&mut self) -> Result<(), Failure> {
                std::thread::sleep(std::time::Duration::from_micros(100));
                Ok(())
            }
            fn prove(&mut self) -> Result<Proof, Failure> {
                Ok(Proof::default())
            }
        }
        let chunks = Chunks::warm(Box::new(Sleeping), false).expect("an operation").0;
        let asked = Advance { seconds: 0.0, operations: 20 };
        let chunk = Sliced::new(chunks).advance(asked, 0.0005).expect("a chunk");
        assert!(chunk.observed.slices.is_empty());
        assert!(chunk.cpu_ns > 0 && chunk.wall_ns >= 2_000_000, "{chunk:?}");
    }

    #[test]
    fn a_chunk_that_ends_by_time_has_no_slices() {
        for (seconds, operations, slice_seconds) in [(0.002, 1, 0.0005), (0.0, 9, 0.0)] {
            let chunk =
                sliced(50_000).advance(Advance { seconds, operations }, slice_seconds).expect("a chunk");
            assert!(chunk.observed.slices.is_empty());
        }
    }
}
