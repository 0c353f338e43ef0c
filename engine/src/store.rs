//! Databases with encrypted columns.

use tollbar_contract::process;

fn main() {
    process::end(match std::env::args().nth(1).as_deref() {
        Some("store") => tollbar_store::main(),
        _ => process::refuse("tollbar-store store"),
    });
}
