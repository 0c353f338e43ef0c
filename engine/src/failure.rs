//! What goes wrong: why there is no number, and with one request, by kind, and how a loop keeps count of that.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;

use serde::Serialize;

/// Why there is no number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The provider does not have it; in its own words where it has any.
    Unsupported(String),
    /// It should have worked.
    Failed(String),
    /// It did not come to an end within its limits.
    TimedOut(String),
}

impl Failure {
    pub fn into_words(self) -> String {
        match self {
            Failure::Unsupported(words) | Failure::Failed(words) | Failure::TimedOut(words) => words,
        }
    }

    /// The same, behind what it is about.
    pub fn about(mut self, what: &str) -> Failure {
        match &mut self {
            Failure::Unsupported(words) | Failure::Failed(words) | Failure::TimedOut(words) => {
                words.insert_str(0, what);
            }
        }
        self
    }
}

/// A parser's words, which may quote what it was given, on one line.
pub fn on_one_line(error: impl Display) -> String {
    let words = error.to_string();
    if !words.contains(char::is_control) {
        return words;
    }
    let shown = |one: char| if one.is_control() { one.escape_default().to_string() } else { one.to_string() };
    words.chars().map(shown).collect()
}

/// What went wrong with one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The name it is counted under.
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

    /// Returns whether the server closed the connection before its answer was complete.
    pub fn is_of_closing(&self) -> bool {
        [RESET, CLOSED_EARLY].contains(&self.kind)
    }

    /// A socket's or a TLS library's error, met while `doing` something.
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

/// Errors by kind, and the words of the first.
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
    /// So many failures with no success among them: a server that is not there any more.
    const IN_A_ROW: u64 = 10;
    /// So many in all: a cell that does not work, whatever some of its answers say.
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

    /// Whether to go on would only collect more of the same.
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

    /// `3 of 300 requests failed: wrong length 3 (first: expected 4096 bytes, got 10)`.
    pub fn reason(&self, all: u64, of: &str) -> String {
        let kinds: Vec<String> = self.counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let first = self.first.as_deref().unwrap_or("no words");
        format!("{} of {all} {of} failed: {} (first: {first})", self.total, kinds.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reason names every kind with its count, and the first error's own words.
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

    /// Ten failures running end a trial; ten among successes do not, a thousand do.
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
