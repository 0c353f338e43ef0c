//! The load client against servers that behave, and servers that do not.

mod accounts;
mod faults;
mod parser;
mod server;
mod shapes;
mod verification;

use std::net::SocketAddr;

use super::ending::Ending;
use super::record::{Measured, Outcome};
use super::task::Load;
use super::trial;

/// A load on a server of the test, with these fields changed.
fn load(address: SocketAddr, change: serde_json::Value) -> Load {
    let mut fields = serde_json::json!({
        "address": address, "host": "localhost", "clients": [{"share": 1}], "users": 2, "connection": "user",
        "request": {"paths": ["/"]}, "expect": {"status": 200, "bytes": 5}, "request_limit_s": 5.0,
    });
    if let (Some(fields), Some(change)) = (fields.as_object_mut(), change.as_object()) {
        fields.extend(change.clone());
    }
    serde_json::from_value(fields).expect("a load")
}

fn measure(load: &Load, warm_up_s: f64, duration_s: f64) -> Ending {
    trial::measure(load, warm_up_s, duration_s, 7).expect("an ending")
}

/// The figures of a trial in which nothing went wrong.
fn good(load: &Load, warm_up_s: f64, duration_s: f64) -> Measured {
    let ending = measure(load, warm_up_s, duration_s);
    assert_eq!((Outcome::Ok, None), (ending.outcome, ending.reason));
    ending.measured.expect("figures")
}

fn latencies(measured: &Measured) -> u64 {
    measured.load.latency_us.iter().map(|(_, count)| count).sum()
}
