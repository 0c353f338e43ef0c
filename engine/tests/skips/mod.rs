//! Skips that are seen: libtest keeps back what a test that passes prints, and not what is written to standard error
//! itself.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Mutex;

/// A skip that can be seen; where everything must be there, a failure. As the Python tests have it.
pub fn lacking(what: &str) {
    let required = std::env::var_os("CI").is_some()
        || std::env::var("TOLLBAR_REQUIRE_SERVERS").is_ok_and(|value| value == "1");
    assert!(!required, "{what}");
    skipped(what);
}

/// A skip that can be seen, once for each test, of what no machine has to have.
pub fn skipped(what: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let line = format!("SKIPPED: {}: {what}\n", std::thread::current().name().unwrap_or_default());
    if SAID.lock().is_ok_and(|mut said| said.insert(line.clone())) {
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}
