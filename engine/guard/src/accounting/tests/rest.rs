//! A bill begins and ends while all processes are at rest.

use std::io::BufReader;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::{Shell, used_ns};
use crate::accounting::stood_still;

/// Attempts on a busy machine, which may keep a process from its rest for longer than the account waits.
const ATTEMPTS: usize = 2000;
/// Attempts at rest that are evaluated. An interrupt, or a hypervisor, may add to the reading of a single
/// one.
const AT_REST: usize = 9;

/// Checks an attempt's statement in most attempts at rest. An attempt returns None if the process did not
/// come to rest.
fn at_rest(attempt: impl Fn() -> Option<Result<(), String>>) {
    let attempts: Vec<_> = (0..ATTEMPTS).filter_map(|_| attempt()).take(AT_REST).collect();
    let wrong: Vec<&String> = attempts.iter().filter_map(|one| one.as_ref().err()).collect();
    assert!(2 * wrong.len() < attempts.len(), "of {} at rest: {wrong:?}", attempts.len());
}

/// The account waits for a server's work after its last answer.
#[test]
fn an_account_is_closed_at_rest() {
    at_rest(|| {
        let mut shell = Shell::start("burn 12000");
        let mut accounts = shell.accounts();
        let mut settled = accounts.settle();
        let before_ns = used_ns(&accounts.read());
        shell.say();
        settled &= accounts.settle();
        let settled_ns = used_ns(&accounts.read());
        shell.hear();
        let later_ns = used_ns(&accounts.read());
        shell.end();
        let (burned_ns, after_ns) = (later_ns - before_ns, later_ns - settled_ns);
        let is_right = burned_ns > 1_000_000 && after_ns < 300_000;
        settled.then(|| is_right.then_some(()).ok_or(format!("{burned_ns} ns, {after_ns} of them at rest")))
    });
}

/// A bill excludes the work that a server still does for earlier requests.
#[test]
fn a_bill_is_begun_at_rest() {
    at_rest(|| {
        let mut shell = Shell::start("burn 12000");
        let mut accounts = shell.accounts();
        shell.say();
        let opening = accounts.begin();
        shell.hear();
        let bill = accounts.bill(&opening);
        shell.end();
        let before_ns = bill.components_ns();
        let is_right = before_ns < 300_000;
        (!bill.unsettled).then(|| is_right.then_some(()).ok_or(format!("{before_ns} ns of what came before")))
    });
}

/// A bill that was begun while a server was busy reports that, although it was closed at rest.
#[test]
fn a_bill_that_was_begun_at_work_is_unsettled() {
    let mut shell = Shell::start("burn 3000000");
    let mut accounts = shell.accounts();
    shell.say();
    let opening = accounts.begin();
    shell.0.kill().expect("an end");
    let _ = shell.0.wait();
    assert!(accounts.bill(&opening).unsettled);
}

/// The wait for a server that never rests has a limit, and the failure is reported.
#[test]
fn an_account_of_one_that_never_rests() {
    let mut shell = Shell::start("burn 3000000");
    let mut accounts = shell.accounts();
    shell.say();
    assert!(!accounts.settle());
    shell.0.kill().expect("an end");
    let _ = shell.0.wait();
}

/// If the first thread of a process sleeps, the states of its other threads show that one works. A test
/// process is an example: its first thread waits for the thread of the test.
#[test]
fn a_thread_at_work_is_no_rest() {
    const TEST: &str = "accounting::tests::rest::a_thread_at_work_is_no_rest";
    if std::env::var_os("TOLLBAR_TEST_WORKS").is_some() {
        crate::process::die_with_parent();
        let works = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while works.load(Relaxed) {
                    std::hint::spin_loop()
                }
            });
            println!("at work");
            let mut word = String::new();
            let _ = std::io::stdin().read_line(&mut word);
            works.store(false, Relaxed);
        });
        println!("at rest");
        let _ = std::io::stdin().read_line(&mut String::new());
        return;
    }
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "--nocapture", "--test-threads", "2", TEST])
        .env("TOLLBAR_TEST_WORKS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("another process");
    let answers = BufReader::new(child.stdout.take().expect("its answers"));
    let mut other = Shell(child, answers);
    other.hear_word("at work");
    let mut accounts = other.accounts();
    assert!(!accounts.settle());
    other.say();
    other.hear_word("at rest");
    // A busy machine may keep it from its rest for longer than the account waits.
    assert!((0..ATTEMPTS).any(|_| accounts.settle()));
    other.end();
}

#[test]
fn a_process_at_work_would_run() {
    let mut shell = Shell::start("burn 3000000");
    let accounts = shell.accounts();
    shell.say();
    // The process must be woken first.
    let would_run = (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        accounts.here.iter().any(|account| account.would_run())
    });
    shell.0.kill().expect("an end");
    let _ = shell.0.wait();
    assert!(would_run);
}

/// A hundredth of the time is housekeeping and counts as rest; so does no CPU time at all.
#[test]
fn what_hardly_runs_is_at_rest() {
    // CPU clocks and elapsed time may begin at any value.
    let (shown_ns, at_ns) = (7_000_000_000, 3_000_000_000_000);
    for (used_ns, elapsed_ns, is_at_rest) in [
        (0, 0, true),
        (0, 200_000, true),
        (2000, 200_000, true),
        (2001, 200_000, false),
        (100_000, 200_000, false),
    ] {
        let now = (shown_ns + used_ns, at_ns + elapsed_ns);
        assert_eq!(is_at_rest, stood_still((shown_ns, at_ns), now), "{used_ns} of {elapsed_ns}");
    }
    // A process that ended takes its clock with it.
    assert!(stood_still((shown_ns, at_ns), (0, at_ns + 200_000)));
}
