//! The embedded server and the load client.

use tollbar_contract::process;
use tollbar_web::{load, serve};

fn main() {
    process::end(match std::env::args().nth(1).as_deref() {
        Some("load") => load::main(),
        Some("serve") => serve::main(),
        _ => process::refuse("tollbar-web load | serve"),
    });
}
