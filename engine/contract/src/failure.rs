//! Failures of a task, faults of single requests by kind, and the count that ends a loop.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;

use serde::Serialize;

/// Reason for a missing number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The provider does not support it; the reason is in the provider's words if it gave any.
    Unsupported(String),
    /// The operation should have worked.
    Failed(String),
    /// The operation did not end within its limits.
    TimedOut(String),
}

impl Failure {
    pub fn into_words(self) -> String {
        match self {
            Failure::Unsupported(words) | Failure::Failed(words) | Failure::TimedOut(words) => words,
        }
    }

    /// Returns the failure with this subject in front of its message.
    pub fn about(mut self, what: &str) -> Failure {
        match &mut self {
            Failure::Unsupported(words) | Failure::Failed(words) | Failure::TimedOut(words) => {
                words.insert_str(0, what);
            }
        }
        self
    }
}

/// Returns a parser's message, which may quote its input, on one line.
pub fn on_one_line(error: impl Display) -> String {
    let words = error.to_string();
    if !words.contains(char::is_control) {
        return words;
    }
    let shown = |one: char| if one.is_control() { one.escape_default().to_string() } else { one.to_string() };
    words.chars().map(shown).collect()
}

/// Fault of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Name under which the fault is counted.
    pub kind: &'static str,
    pub words: String,
}

pub const REFUSED: &str = "refused";
pub const NO_CONNECTION: &str = "no connection";
pub const RESET: &str = "reset";
pub const CLOSED_EARLY: &str = "closed early";
pub const WRONG_STATUS: &str = "wrong status";
pub const WRONG_LENGTH: &str = "wrong length";
pub const WRONG_BODY: &str = "wrong body";
pub const NOT_HTTP: &str = "not HTTP";
pub const TIMEOUT: &str = "timeout";
pub const TLS: &str = "tls";
pub const WRONG_PARAMETERS: &str = "wrong parameters";
pub const NOT_RESUMED: &str = "not resumed";
pub const BACKLOG: &str = "backlog";
pub const SIGN_IN: &str = "sign-in";

impl Fault {
    pub fn new(kind: &'static str, words: impl Into<String>) -> Fault {
        Fault { kind, words: words.into() }
    }

    /// Returns true if the server closed the connection before its answer was complete.
    pub fn is_of_closing(&self) -> bool {
        [RESET, CLOSED_EARLY].contains(&self.kind)
    }

    /// Makes a fault of a socket's or a TLS library's error, met while `doing` something.
    pub fn of(error: &io::Error, doing: &str) -> Fault {
        let kind = match error.kind() {
            io::ErrorKind::ConnectionRefused => REFUSED,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected => RESET,
            io::ErrorKind::UnexpectedEof => CLOSED_EARLY,
            io::ErrorKind::TimedOut => TIMEOUT,
            io::ErrorKind::InvalidData => TLS,
            _ => NO_CONNECTION,
        };
        Fault::new(kind, format!("{doing}: {error}"))
    }
}

/// Faults by kind, and the message of the first.
#[derive(Serialize, Debug, Default)]
pub struct Faults {
    #[serde(flatten)]
    pub counts: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    pub first: Option<String>,
    #[serde(skip)]
    pub total: u64,
    #[serde(skip)]
    in_a_row: u64,
}

impl Faults {
    /// Failures without a success among them after which a trial ends: the server is gone.
    const IN_A_ROW: u64 = 10;
    /// Failures in all after which a trial ends: the cell does not work, although some requests succeed.
    const IN_ALL: u64 = 1000;

    pub fn note(&mut self, fault: Fault) {
        self.note_many(fault, 1);
    }

    pub fn note_many(&mut self, fault: Fault, count: u64) {
        *self.counts.entry(fault.kind).or_default() += count;
        self.total += count;
        self.in_a_row += count;
        self.first.get_or_insert(fault.words);
    }

    #[inline]
    pub fn success(&mut self) {
        self.in_a_row = 0;
    }

    /// Returns true if continuing would only collect more faults.
    #[inline]
    pub fn piled_up(&self) -> bool {
        self.total > 0 && (self.in_a_row >= Self::IN_A_ROW || self.total >= Self::IN_ALL)
    }

    pub fn merge(&mut self, other: Faults) {
        for (kind, count) in other.counts {
            *self.counts.entry(kind).or_default() += count;
        }
        self.total += other.total;
        if self.first.is_none() {
            self.first = other.first;
        }
    }

    /// Describes the faults: `3 of 300 requests failed: wrong length 3 (first: expected 4096 bytes, got 10)`.
    pub fn reason(&self, all: u64, of: &str) -> String {
        let kinds: Vec<String> = self.counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let first = self.first.as_deref().unwrap_or("no words");
        format!("{} of {all} {of} failed: {} (first: {first})", self.total, kinds.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reason names every kind with its count, and the first error's message.
    #[test]
    fn the_reason_says_how_many_of_what_and_the_first() {
        let mut faults = Faults::default();
        faults.note(Fault::new(WRONG_LENGTH, "expected 4096 bytes, got 10"));
        let mut other = Faults::default();
        other.note(Fault::new(RESET, "later"));
        other.note(Fault::new(WRONG_LENGTH, "later still"));
        faults.merge(other);
        assert_eq!(
            "3 of 300 requests failed: reset 1, wrong length 2 (first: expected 4096 bytes, got 10)",
            faults.reason(300, "requests")
        );
    }

    /// Ten consecutive failures end a trial; ten among successes do not, but a thousand do.
    #[test]
    fn failures_pile_up_in_a_row_or_in_all() {
        let mut faults = Faults::default();
        for _ in 0..9 {
            faults.note(Fault::new(RESET, ""));
        }
        assert!(!faults.piled_up());
        faults.success();
        faults.note(Fault::new(RESET, ""));
        assert!(!faults.piled_up());
        for _ in 0..9 {
            faults.note(Fault::new(RESET, ""));
        }
        assert!(faults.piled_up());
        faults.success();
        faults.note_many(Fault::new(RESET, ""), 981);
        assert!(faults.piled_up());
    }
}
