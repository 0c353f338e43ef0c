//! Tollbar's engine measures. It reads JSON lines on standard input, writes JSON lines on standard output,
//! and messages on standard error. Python decides what to measure and interprets the numbers.
//!
//! This program starts, ends and accounts for processes. For the other commands it becomes the program that has them.

use std::ffi::{CString, c_char};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use tollbar_contract::process;
use tollbar_guard::{account, guard, keep};

/// Programs next to this one, by command.
const PROGRAMS: &[(&str, &str)] = &[
    ("op", "tollbar-primitives"),
    ("first", "tollbar-primitives"),
    ("load", "tollbar-services"),
    ("serve", "tollbar-services"),
    ("store", "tollbar-services"),
];

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

/// Exit status of a shell for a command that it could not run.
const NOT_STARTED: i32 = 127;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let status = match arguments.first().map(String::as_str) {
        Some("guard") => guard::main(&arguments[1..]),
        Some("keep") => keep::main(&arguments[1..]),
        Some("account") => account::main(),
        Some("--version") => {
            println!("tollbar-engine {}", env!("CARGO_PKG_VERSION"));
            0
        }
        other => match PROGRAMS.iter().find(|(name, _)| other == Some(*name)) {
            Some((_, program)) => become_program(program, &arguments),
            None => {
                eprintln!("{USAGE}");
                2
            }
        },
    };
    process::end(status);
}

/// Becomes a program next to this one, under this one's name. Returns only if it could not be started.
fn become_program(name: &str, arguments: &[String]) -> i32 {
    let own = std::env::current_exe().unwrap_or_default();
    let program = own.with_file_name(name);
    let called = std::env::args_os().next().unwrap_or_else(|| own.into_os_string());
    let words =
        std::iter::once(called.into_vec()).chain(arguments.iter().map(|word| word.clone().into_bytes()));
    let error = execute(&program, words);
    eprintln!("tollbar-engine: cannot start {}: {error}", program.display());
    NOT_STARTED
}

/// Replaces this process by the program with these words, the first of which is its name. Returns only the error.
///
/// `Command::exec` would search for the program as a shell does, and so give a damaged program to `/bin/sh` as a script:
/// an empty one would end with success.
fn execute(program: &Path, words: impl Iterator<Item = Vec<u8>>) -> io::Error {
    let words: Result<Vec<CString>, _> = words.map(CString::new).collect();
    let (Ok(words), Ok(program)) = (words, CString::new(program.as_os_str().as_bytes())) else {
        return io::ErrorKind::InvalidInput.into();
    };
    let pointers: Vec<*const c_char> =
        words.iter().map(|word| word.as_ptr()).chain(std::iter::once(std::ptr::null())).collect();
    // SAFETY: both are texts that end with a zero byte, or a list of such that ends with a null pointer, and outlive
    // the call.
    unsafe { libc::execv(program.as_ptr(), pointers.as_ptr()) };
    io::Error::last_os_error()
}
