//! Slices of a chunk: parts of less than a millisecond with a reading of the probe before, between and after them.
//!
//! On a core whose sibling thread belongs to others, quiet lasts one or two milliseconds: a chunk of five is hardly ever
//! quiet from end to end, and most of its slices may be. They stay in one process and in one chunk, so that the caches
//! are those of a chunk.

use serde::Serialize;

use crate::chunks::Chunks;
use crate::clock::Clocks;
use crate::contract::Chunk;
use crate::failure::Failure;
use crate::runner::Advance;
use crate::spin::Probe;

/// A part of a chunk.
#[derive(Serialize, Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    pub operations: u64,
    pub cpu_ns: u64,
    pub wall_ns: u64,
    /// Nanoseconds of the probe right before and right after.
    pub probes_ns: (u64, u64),
}

/// A chunk's slices; empty where none were asked for.
#[derive(Serialize, Debug, Default)]
pub struct Slices {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slice>,
}

/// Chunks that are sliced where that is asked for.
pub struct Sliced {
    chunks: Chunks,
    probe: Probe,
}

impl Sliced {
    pub fn new(chunks: Chunks) -> Sliced {
        Sliced { chunks, probe: Probe::new() }
    }

    /// Goes on for at least so long and so many operations; in slices if a number of operations is asked for, and how
    /// long a slice is. A number, because slices that end by time have more operations in quick moments.
    pub fn advance(&mut self, asked: Advance, slice_seconds: f64) -> Result<Chunk<Slices>, Failure> {
        if slice_seconds == 0.0 || asked.seconds > 0.0 || self.chunks.is_elsewhere() {
            let Chunk { operations, cpu_ns, wall_ns, .. } = self.chunks.advance(asked)?;
            return Ok(Chunk { operations, cpu_ns, wall_ns, observed: Slices::default() });
        }
        self.chunks.lead_in(asked)?;
        let mut before_ns = self.probe.read_ns();
        let mut slices = Vec::new();
        for operations in parts(asked.operations, self.chunks.operation_ns() / (slice_seconds * 1e9)) {
            let part = self.chunks.counted(Advance { operations, ..asked }, &Clocks::read())?;
            let after_ns = self.probe.read_ns();
            slices.push(Slice {
                operations,
                cpu_ns: part.cpu_ns,
                wall_ns: part.wall_ns,
                probes_ns: (before_ns, after_ns),
            });
            before_ns = after_ns;
        }
        let sum = |of: fn(&Slice) -> u64| slices.iter().map(of).sum();
        Ok(Chunk {
            operations: sum(|one| one.operations),
            cpu_ns: sum(|one| one.cpu_ns),
            wall_ns: sum(|one| one.wall_ns),
            observed: Slices { slices },
        })
    }
}

/// How many operations each slice has: nearly equally many, which together are those of the chunk.
/// `each`: how many slices an operation fills.
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
            let clocks = Clocks::read();
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
        let asked = Advance { seconds: 0.0, operations: 50 };
        let clocks = Clocks::read();
        let mut sliced = sliced(100_000);
        let chunk = sliced.advance(asked, 0.0005).expect("a chunk");
        let (all_ns, _) = clocks.since();
        let slices = &chunk.observed.slices;
        assert!(slices.len() > 1, "{slices:?}");
        assert_eq!(50, chunk.operations);
        assert_eq!(chunk.cpu_ns, slices.iter().map(|one| one.cpu_ns).sum::<u64>());
        assert!(slices.windows(2).all(|pair| pair[0].probes_ns.1 == pair[1].probes_ns.0));
        let probes_ns: u64 = slices.iter().map(|one| one.probes_ns.1).sum();
        assert!(probes_ns > 0 && chunk.cpu_ns + probes_ns < all_ns, "{} {probes_ns} {all_ns}", chunk.cpu_ns);
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
