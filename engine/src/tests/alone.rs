//! Tests of what a whole process has, its memory, its signals or its variables: each of them is the only one of a process.

use std::io::Write;
use std::process::Command;

use crate::guard;

const ALONE: &str = "TOLLBAR_TEST_ALONE";

/// None where this test is alone in its process. Else it has been tried in another one, with these variables set, and what that
/// said on standard error is told.
#[track_caller]
pub fn tried_alone(test: &str, variables: &[(&str, &str)]) -> Option<String> {
    if std::env::var_os(ALONE).is_some() {
        guard::die_with_parent();
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
    // What was kept back for this process: a skip is to be seen.
    for line in said.lines().filter(|line| line.starts_with("SKIPPED: ")) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    Some(said.into_owned())
}
