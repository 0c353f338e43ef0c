//! Processes of the lab's components: the guard that starts and ends them, the keeper of a run's directory, and the
//! accounts of their CPU time.

pub mod account;
pub mod accounting;
mod groups;
pub mod guard;
pub mod keep;

use tollbar_contract::{clock, proc, process, runner};
