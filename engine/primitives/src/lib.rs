//! Families of primitives, and the providers that perform them.

pub mod aws_lc;
pub mod binding;
pub mod families;
pub mod libcrypto;
pub mod op;
pub mod rustcrypto;
mod slices;
pub mod spin;

use tollbar_contract::{chunks, clock, contract, failure, provider, random, runner, team};
#[cfg(test)]
use tollbar_testing::{lacking, skipped, wheel};
