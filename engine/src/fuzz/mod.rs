//! What parses bytes of others, given any bytes: a table of targets. The tests replay the corpora that are kept, with some
//! changes to each; built with the feature `fuzz`, libFuzzer looks for new ones, guided by what they cover.
//!
//! A target panics where the engine would, and where an answer breaks a rule that its comment states.

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
