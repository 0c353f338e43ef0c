//! A provider performs choices: it has a kind and, if it is a file, a path. A primitive is one operation that
//! is proved once and then timed.

use crate::contract::{Proof, Receipt, Task};
use crate::failure::Failure;

/// Families and the choices of each that a provider performs.
pub type Offers = Vec<(&'static str, Vec<&'static str>)>;

pub trait Provider {
    /// Returns the identity of this code. A provider without one measures nothing.
    fn receipt(&self) -> Receipt;

    fn offers(&self) -> Offers;

    /// Prepares the keys, contexts and buffers of a task. Nothing of this is timed.
    fn prepare(&self, task: &Task) -> Prepared;
}

/// A primitive that is ready to be proved and measured, or the reason for a missing one.
pub type Prepared = Result<Box<dyn Primitive>, Failure>;

pub trait Primitive {
    /// Performs the operation once, and checks its result as far as a caller would. This is timed.
    fn perform(&mut self) -> Result<(), Failure>;

    /// Proves the operation: right inputs accepted, wrong inputs refused, known answers met.
    fn prove(&mut self) -> Result<Proof, Failure>;

    /// Works before the clock of a chunk starts, however short the chunk. A primitive whose operations are
    /// requested one by one needs this, because a tenth of its chunk is less than an operation.
    fn lead_in(&mut self) {}

    /// Returns the CPU time so far of the processes that do the work, or None if this process does it.
    fn elsewhere_ns(&self) -> Option<u64> {
        None
    }

    /// Returns the bytes of data that one operation works on.
    fn bytes(&self) -> u64 {
        0
    }

    /// Performs the operation repeatedly. Compiled once for each primitive, so the loop calls it directly.
    fn batch(&mut self, operations: u64) -> Result<(), Failure> {
        for _ in 0..operations {
            self.perform()?;
        }
        Ok(())
    }
}

/// Build of this engine: compiler, optimisation, and the instruction sets that code may use without asking
/// the processor.
pub const BUILD: &str = env!("TOLLBAR_BUILD");

/// Returns each direct dependency of this engine as Cargo locked it (name, version).
pub fn crates() -> impl Iterator<Item = (&'static str, &'static str)> {
    env!("TOLLBAR_CRATES").split(';').filter_map(|entry| entry.split_once(' '))
}

/// Returns the crates of these names, for a receipt.
pub fn parts(names: &[&str]) -> std::collections::BTreeMap<String, String> {
    let named = crates().filter(|(name, _)| names.contains(name));
    named.map(|(name, version)| (name.to_owned(), version.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_crate_is_known_by_the_version_that_was_built() {
        let versions: Vec<_> = super::crates().filter(|(name, _)| *name == "aws-lc-rs").collect();
        assert_eq!(1, versions.len());
        assert!(versions[0].1.starts_with("1."));
    }
}
