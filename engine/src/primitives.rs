//! Primitives: operations of cryptographic libraries, and of a TLS library before it sends a byte.

use tollbar_contract::process;
use tollbar_primitives::op::{self, AWS_LC, Kind, RUSTCRYPTO, SPIN};
use tollbar_tls::{LIBCRYPTO, making};

const KINDS: &[Kind] =
    &[LIBCRYPTO, AWS_LC, RUSTCRYPTO, SPIN, tollbar_sqlite::KINDS[0], tollbar_sqlite::KINDS[1]];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    process::end(match arguments.first().map(String::as_str) {
        Some("op") => op::main(KINDS),
        Some("first") => making::main(&arguments[1..]),
        _ => process::refuse("tollbar-primitives op | first"),
    });
}
