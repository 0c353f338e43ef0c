//! Tollbar's engine: measures. One JSON task in on standard input, one JSON record out on standard
//! output, talk on standard error. Python decides what to measure and what the numbers mean.

mod aws_lc;
mod buffers;
mod clock;
mod contract;
mod crates;
mod families;
mod guard;
mod libcrypto;
mod null;
mod op;
mod operation;
mod provider;
mod providers;
mod rustcrypto;
mod spin;

use std::io::Write;

const USAGE: &str = "usage: tollbar-engine op < task.json > record.json
       tollbar-engine guard [--core N] -- COMMAND [ARGUMENT...]
       tollbar-engine --version

op      performs one task of the runner contract
guard   becomes COMMAND, on core N, and dies with the process that started it";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let status = match arguments.first().map(String::as_str) {
        Some("op") => op::main(),
        Some("guard") => guard::main(&arguments[1..]),
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
    // A libcrypto registers exit handlers of its own; some of them crash once its memory is half gone.
    unsafe { libc::_exit(status) }
}
