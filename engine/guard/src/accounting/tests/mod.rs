//! CPU time of process trees, compared with the kernel's account after they have ended.

mod bills;
mod groups;
mod rest;
mod starts;
mod trees;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::bill::Bill;
use super::{Accounts, Reading};

/// Error of two fields of the kernel's account, each truncated to a tick of 10 ms.
const TICKS_NS: u64 = 20_000_000;

/// Tolerance of clock readings: a shell's last steps, and the kernel's at its end.
const A_LITTLE_NS: u64 = 3_000_000;

/// Shell function whose work exceeds some ticks, without other programs.
const BURN: &str = "burn() { i=0; while [ $i -lt ${1:-150000} ]; do i=$((i+1)); done; }";

struct Shell(Child, BufReader<std::process::ChildStdout>);

impl Shell {
    /// Starts a shell that runs this script after the word "go", and then waits for another word.
    fn start(script: &str) -> Shell {
        let script = format!("{BURN}; read word; {script}; echo done; read word");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let answers = BufReader::new(child.stdout.take().expect("its answers"));
        Shell(child, answers)
    }

    fn accounts(&self) -> Accounts {
        Accounts::open(&BTreeMap::from([("web".to_owned(), self.0.id() as i32)])).expect("accounts")
    }

    fn say(&mut self) {
        self.0.stdin.as_mut().expect("its input").write_all(b"word\n").expect("a word");
    }

    fn hear(&mut self) {
        let mut line = String::new();
        self.1.read_line(&mut line).expect("an answer");
        assert!(!line.is_empty());
    }

    /// Waits for a line that ends with this word.
    fn hear_word(&mut self, word: &str) {
        let mut line = String::new();
        while !line.trim_end().ends_with(word) {
            line.clear();
            assert!(self.1.read_line(&mut line).expect("an answer") > 0, "no {word}");
        }
    }

    /// Lets the shell end, and returns its CPU time and that of the children it has waited for.
    fn end(mut self) -> u64 {
        self.say();
        // SAFETY: all zeros are a valid `rusage`.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let (pid, mut status) = (self.0.id() as i32, 0);
        // SAFETY: both are written, and this child was not waited for yet.
        assert_eq!(pid, unsafe { libc::wait4(pid, &mut status, 0, &mut usage) });
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        ns(usage.ru_utime) + ns(usage.ru_stime)
    }
}

/// Returns the CPU time since the opening.
fn used_ns(reading: &Reading) -> u64 {
    reading.components["web"].cpu_ns
}

#[track_caller]
fn agree(expected_ns: u64, counted_ns: u64) {
    assert!(expected_ns > 3 * TICKS_NS, "the script burned {expected_ns} ns only");
    assert!(expected_ns.abs_diff(counted_ns) <= TICKS_NS, "{expected_ns} ns, counted {counted_ns}");
}

/// Bills the shell's work after its lead-in, which ends with its first word.
fn bill_after_lead_in(shell: &mut Shell, accounts: &mut Accounts) -> Bill {
    let mut opening = accounts.begin();
    shell.say();
    shell.hear();
    accounts.start(&mut opening);
    shell.say();
    shell.hear();
    accounts.bill(&opening)
}
