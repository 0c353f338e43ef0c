//! The embedded server, the load client and the databases with encrypted columns.
//!
//! They are one program because each also contains the primitives, whose optimisation takes a minute in each program.

use tollbar_contract::process;
use tollbar_web::{load, serve};

fn main() {
    process::end(match std::env::args().nth(1).as_deref() {
        Some("load") => load::main(),
        Some("serve") => serve::main(),
        Some("store") => tollbar_store::main(),
        _ => process::refuse("tollbar-services load | serve | store"),
    });
}
