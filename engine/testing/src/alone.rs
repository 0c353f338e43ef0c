//! Tests that need a process of their own, because they use its memory, signals or variables.

use std::io::Write;
use std::process::Command;

use rustix::process::{Signal, set_parent_process_death_signal};

const ALONE: &str = "TOLLBAR_TEST_ALONE";

/// Returns None if this test is alone in its process. Otherwise runs it alone in another process with these
/// variables, and returns that process's standard error.
#[track_caller]
pub fn tried_alone(test: &str, variables: &[(&str, &str)]) -> Option<String> {
    if std::env::var_os(ALONE).is_some() {
        set_parent_process_death_signal(Some(Signal::KILL)).expect("an end with the parent");
        return None;
    }
    let program = std::env::current_exe().expect("this program");
    let other = Command::new(program)
        .args(["--exact", "--nocapture", test])
        .env(ALONE, "1")
        .envs(variables.iter().copied())
        .output()
        .expect("another process");
    let (said, found) = (String::from_utf8_lossy(&other.stderr), String::from_utf8_lossy(&other.stdout));
    assert!(other.status.success() && found.contains("1 passed"), "{test}: {found}{said}");
    // The captured skips must be visible in this process's output.
    for line in said.lines().filter(|line| line.starts_with("SKIPPED: ")) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    Some(said.into_owned())
}
