//! An operation: the thing that is proved once and then timed.

use crate::contract::{Failure, Proof};

/// An operation that is ready to be measured and proved, or why there is none.
pub type Prepared = Result<Box<dyn Operation>, Failure>;

pub trait Operation {
    /// Does it once, and checks what came back as far as a caller would. This is what is timed.
    fn perform(&mut self) -> Result<(), Failure>;

    /// Shows that it does what it says: right things accepted, wrong things refused, known answers met.
    fn prove(&mut self) -> Result<Proof, Failure>;

    /// Works before the clock of a chunk starts, however short the chunk: for an operation that is asked one by one,
    /// whose chunk has no tenth to spare.
    fn lead_in(&mut self) {}

    /// Bytes of data that one operation works on.
    fn bytes(&self) -> u64 {
        0
    }

    /// Does it many times. Compiled once for each operation, so the loop calls it directly.
    fn batch(&mut self, operations: u64) -> Result<(), Failure> {
        for _ in 0..operations {
            self.perform()?;
        }
        Ok(())
    }
}
