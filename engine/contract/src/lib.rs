//! The base of every program of the engine: the runner contract, its sessions and chunks, clocks, random numbers of a
//! task, and failures.

pub mod calls;
pub mod chunks;
pub mod clock;
pub mod contract;
pub mod failure;
pub mod pacing;
pub mod proc;
pub mod process;
pub mod provider;
pub mod random;
pub mod runner;
pub mod scheduling;
pub mod team;

#[cfg(test)]
use tollbar_testing::alone;
