//! The embedded server, the schemes by which its clients sign in, and the load client.

pub mod gssapi;
pub mod http;
pub mod load;
pub mod serve;
pub mod sign_in;

use tollbar_contract::{
    calls, clock, contract, failure, pacing, proc, process, provider, random, runner, scheduling, team,
};
use tollbar_guard::accounting;
use tollbar_primitives::{binding, op};
use tollbar_store as store;
#[cfg(test)]
use tollbar_testing::{alone, lacking};
use tollbar_tls as tls;
