//! A provider: an implementation that performs choices, named by kind and, where it is a file, by path.

use crate::contract::{Receipt, Task};
use crate::operation::Prepared;

/// Families and the choices of each that a provider performs.
pub type Offers = Vec<(&'static str, Vec<&'static str>)>;

pub trait Provider {
    /// Which code this is. A provider that cannot say measures nothing.
    fn receipt(&self) -> Receipt;

    fn offers(&self) -> Offers;

    /// Makes ready what the task asks for: keys, contexts, buffers. Nothing of this is timed.
    fn prepare(&self, task: &Task) -> Prepared;
}
