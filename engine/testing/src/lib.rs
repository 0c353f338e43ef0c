//! Helpers of the engine's tests.

pub mod alone;
mod certificates;
pub mod headers;
mod skips;
mod wheels;

pub use certificates::{
    AUTHORITY, Certificate, DH_2048, REVOCATIONS, STALE_AUTHORITY, STALE_REVOCATIONS, certificate,
};
pub use skips::{lacking, skipped};
pub use wheels::wheel;
