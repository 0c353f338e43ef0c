#!/usr/bin/env bash
# In Rust, `Command::status` and `Command::exec` differ about a file that is executable and is no program.
#
# Both get the same empty file, such as an interrupted copy leaves. `status` starts a child and reports the kernel's
# "Exec format error". `exec`, which replaces the process, calls execvp of the C library. glibc follows the shell's old
# rule there: what the kernel does not know is a script of /bin/sh. The empty script ends with success, so a supervisor
# that becomes its worker by `exec` reports a worker that did its work. The kernel's answer needs execv, for example
# that of the crate nix.
#
# Seen with rustc 1.95.0, nix 0.30.1 and glibc 2.36: "status: Exec format error (os error 8)", "nix: ENOEXEC: Exec
# format error" and nothing from `exec`, which ends with 0. Needs a Rust toolchain. Ends with 0 while they differ so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat > Cargo.toml <<'TOML'
[package]
name = "become"
version = "0.0.0"
edition = "2021"

[dependencies]
nix = { version = "=0.30.1", features = ["process"] }
TOML
cat > src/main.rs <<'RUST'
use std::os::unix::process::CommandExt;
use std::process::Command;

fn main() {
    let answer = match std::env::args().nth(1).as_deref() {
        Some("status") => Command::new("./empty").status().unwrap_err().to_string(),
        Some("exec") => Command::new("./empty").exec().to_string(),
        _ => nix::unistd::execv(c"./empty", &[c"./empty"]).unwrap_err().to_string(),
    };
    println!("{answer}");
    std::process::exit(9);
}
RUST
cargo build --quiet --release
: > empty
chmod +x empty
for way in status nix exec; do
    ended=0
    printf '%s: ' "$way"
    ./target/release/become "$way" || ended=$?
    echo " (ended with $ended)"
    declare "$way=$ended"
done
[ "$status $nix $exec" = "9 9 0" ]
