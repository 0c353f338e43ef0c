//! Fuzzing of everything that parses foreign bytes: a table of targets. The tests replay the stored corpora
//! with some changes to each input; with the feature `fuzz`, libFuzzer looks for new inputs, guided by
//! coverage.
//!
//! A target panics if the engine would, or if an answer breaks a rule that the target's comment states.

mod answers;
#[cfg(feature = "fuzz")]
pub mod driver;
mod frames;
mod give;
mod requests;
mod targets;
mod tasks;
#[cfg(test)]
mod tests;
