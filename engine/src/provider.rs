//! A provider: an implementation that performs choices, named by kind and, where it is a file, by path; and a primitive,
//! the thing that is proved once and then timed.

use crate::contract::{Proof, Receipt, Task};
use crate::failure::Failure;

/// Families and the choices of each that a provider performs.
pub type Offers = Vec<(&'static str, Vec<&'static str>)>;

pub trait Provider {
    /// Which code this is. A provider that cannot say measures nothing.
    fn receipt(&self) -> Receipt;

    fn offers(&self) -> Offers;

    /// Makes ready what the task asks for: keys, contexts, buffers. Nothing of this is timed.
    fn prepare(&self, task: &Task) -> Prepared;
}

/// A primitive that is ready to be measured and proved, or why there is none.
pub type Prepared = Result<Box<dyn Primitive>, Failure>;

pub trait Primitive {
    /// Does it once, and checks what came back as far as a caller would. This is what is timed.
    fn perform(&mut self) -> Result<(), Failure>;

    /// Shows that it does what it says: right things accepted, wrong things refused, known answers met.
    fn prove(&mut self) -> Result<Proof, Failure>;

    /// Works before the clock of a chunk starts, however short the chunk: for one that is asked for one by one, whose
    /// chunk has no tenth to spare.
    fn lead_in(&mut self) {}

    /// CPU time so far of the processes that do the work, where that is not this one; None: it is.
    fn elsewhere_ns(&self) -> Option<u64> {
        None
    }

    /// Bytes of data that one operation works on.
    fn bytes(&self) -> u64 {
        0
    }

    /// Does it many times. Compiled once for each primitive, so the loop calls it directly.
    fn batch(&mut self, operations: u64) -> Result<(), Failure> {
        for _ in 0..operations {
            self.perform()?;
        }
        Ok(())
    }
}

/// How this engine was built: compiler, optimisation, and the instruction sets that code may use without asking the
/// processor.
pub const BUILD: &str = env!("TOLLBAR_BUILD");

/// What this engine is built from, as Cargo locked it: each direct dependency (name, version).
pub fn crates() -> impl Iterator<Item = (&'static str, &'static str)> {
    env!("TOLLBAR_CRATES").split(';').filter_map(|entry| entry.split_once(' '))
}

/// The crates of these names, for a receipt.
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
