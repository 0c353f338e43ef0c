//! Fuzzing of everything that parses foreign bytes: a table of targets. The tests replay the stored corpora
//! with some changes to each input; the program, of the feature `fuzz`, has libFuzzer look for new inputs, guided by
//! coverage.
//!
//! A target panics if the engine would, or if an answer breaks a rule that the target's comment states.

mod answers;
mod frames;
mod give;
mod requests;
mod targets;
mod tasks;
#[cfg(test)]
mod tests;

use tollbar_contract::{clock, contract, failure, runner};
use tollbar_primitives::op;
use tollbar_store as store;
use tollbar_tls as tls;
use tollbar_web::{gssapi, http, load, serve, sign_in};

pub use give::Give;
pub use targets::TARGETS;
