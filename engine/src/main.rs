//! Tollbar's engine measures. It reads JSON lines on standard input, writes JSON lines on standard output,
//! and messages on standard error. Python decides what to measure and interprets the numbers.

mod account;
mod accounting;
#[cfg(test)]
#[path = "tests/alone.rs"]
mod alone;
mod aws_lc;
mod binding;
mod calls;
mod chunks;
mod clock;
mod contract;
mod failure;
mod families;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod groups;
mod gssapi;
mod guard;
mod http;
mod keep;
mod libcrypto;
mod load;
mod op;
mod pacing;
mod proc;
mod provider;
mod random;
mod runner;
mod rustcrypto;
mod scheduling;
mod serve;
mod sign_in;
mod slices;
mod spin;
mod sqlite;
mod store;
mod team;
mod tls;

// The tests in `engine/tests` use this file too, without the rest of the crate.
#[cfg(test)]
#[path = "../tests/skips/mod.rs"]
mod skips;

#[cfg(test)]
use skips::{lacking, skipped};
use std::io::Write;

const USAGE: &str = "usage: tollbar-engine op
       tollbar-engine load < task.json > record.json
       tollbar-engine serve < config.json
       tollbar-engine store
       tollbar-engine guard [--core N] [--tree] [--stop SIGNAL] [--child-of PID] -- COMMAND [ARGUMENT...]
       tollbar-engine keep DIRECTORY
       tollbar-engine account < config.json
       tollbar-engine first STEP LIBCRYPTO ANCHORS AUTHORITY
       tollbar-engine --version

op      performs one task of the runner contract (docs/runners.md)
load    asks a server, checks every answer, and accounts for what it cost
serve   answers requests, and performs an operation for each where asked
store   writes and reads a table whose columns are encrypted, or not (docs/encrypted-storage.md)
guard   becomes COMMAND, on core N or not at all, and dies with the process that started it;
        with --tree it stays, and ends all of COMMAND's processes with it
keep    makes DIRECTORY, and removes it when standard input ends
account reads the accounts of this machine's components for a load client on another one
first   does what a short-lived client does, up to STEP, with the server on standard input";

fn main() {
    #[cfg(feature = "fuzz")]
    fuzz::driver::main();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let status = match arguments.first().map(String::as_str) {
        Some("op") => op::main(),
        Some("load") => load::main(),
        Some("serve") => serve::main(),
        Some("store") => store::main(),
        Some("guard") => guard::main(&arguments[1..]),
        Some("keep") => keep::main(&arguments[1..]),
        Some("account") => account::main(),
        Some("first") => tls::making::main(&arguments[1..]),
        Some("--version") => {
            println!("tollbar-engine {}", env!("CARGO_PKG_VERSION"));
            0
        }
        _ => {
            eprintln!("{USAGE}");
            2
        }
    };
    let _ = std::io::stdout().flush();
    // A libcrypto registers exit handlers; some of them crash once its memory is partly freed.
    // SAFETY: it takes a number, and no code of this program runs after it.
    unsafe { libc::_exit(status) }
}
