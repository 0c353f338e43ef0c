//! Visible skips: libtest captures the output of a passing test, except direct writes to standard error.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Mutex;

/// Reports a skip, or fails if every requirement must be installed, like the Python tests.
pub fn lacking(what: &str) {
    let required = std::env::var_os("CI").is_some()
        || std::env::var("TOLLBAR_REQUIRE_SERVERS").is_ok_and(|value| value == "1");
    assert!(!required, "{what}");
    skipped(what);
}

/// Reports a skip, once for each test, of something that no machine needs.
pub fn skipped(what: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let line = format!("SKIPPED: {}: {what}\n", std::thread::current().name().unwrap_or_default());
    if SAID.lock().is_ok_and(|mut said| said.insert(line.clone())) {
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}
