//! Processes that come and go: none is lost, and none is counted twice.

use std::process::Command;

use super::{A_LITTLE_NS, BURN, Shell, TICKS_NS, agree, used_ns};
use crate::proc;

/// Children that come and go between two readings are counted to a tick, and the reading reports that.
#[test]
fn children_that_were_not_seen_are_counted() {
    let mut shell = Shell::start("(burn); (burn)");
    let mut accounts = shell.accounts();
    assert!(!accounts.are_exact());
    assert_eq!(0, accounts.read().inexact);
    shell.say();
    shell.hear();
    let reading = accounts.read();
    assert!(reading.inexact > 0);
    agree(shell.end(), used_ns(&reading));
    // This holds even for children that leave no trace in ticks.
    let mut shell = Shell::start("(:); (:)");
    let mut accounts = shell.accounts();
    shell.say();
    shell.hear();
    assert!(accounts.read().inexact > 0);
    shell.end();
}

/// A child that was read and then ended is counted once.
#[test]
fn children_that_were_seen_are_counted_once() {
    let mut shell = Shell::start("(burn; echo half; burn); (burn)");
    let mut accounts = shell.accounts();
    shell.say();
    let before_ns = used_ns(&accounts.read());
    shell.hear();
    let half_ns = used_ns(&accounts.read());
    shell.hear();
    let reading = accounts.read();
    assert!(before_ns <= half_ns && half_ns < used_ns(&reading));
    assert_eq!(Ok(()), accounts.all_there());
    assert!(accounts.close()["web"].processes >= 2);
    agree(shell.end(), used_ns(&reading));
}

/// A child that has ended is read to its end before its parent reaps it: exact, without ticks.
#[test]
fn children_that_wait_to_be_reaped_are_exact() {
    let mut shell = Shell::start("burn & burn & burn 20 & read word; wait");
    let past_ns = proc::cpu_clock_ns(shell.0.id() as i32).expect("a clock");
    let mut accounts = shell.accounts();
    shell.say();
    while !ended(shell.0.id() as i32) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let waiting_ns = used_ns(&accounts.read());
    assert!(waiting_ns > 3 * TICKS_NS, "{waiting_ns}");
    shell.say();
    shell.hear();
    let reading = accounts.read();
    assert_eq!(0, reading.inexact);
    let counted_ns = used_ns(&reading);
    assert!((waiting_ns..waiting_ns + A_LITTLE_NS).contains(&counted_ns), "{waiting_ns} {counted_ns}");
    let expected_ns = shell.end() - past_ns;
    assert!(expected_ns.abs_diff(counted_ns) <= A_LITTLE_NS, "{expected_ns} ns, counted {counted_ns}");
}

/// Returns true if a process has three children, all of which have ended.
fn ended(pid: i32) -> bool {
    let children = proc::children(pid);
    children.len() == 3
        && children.iter().all(|child| proc::Stat::read(*child).is_some_and(|stat| stat.ended))
}

/// A component that ended is named, with its process.
#[test]
fn a_component_that_ended_is_missed() {
    let mut shell = Shell::start(":");
    let mut accounts = shell.accounts();
    assert_eq!(Ok(()), accounts.all_there());
    let pid = shell.0.id();
    shell.0.kill().expect("an end");
    let _ = shell.0.wait();
    accounts.read();
    assert_eq!(Err(format!("web (process {pid}) ended during the trial")), accounts.all_there());
}

/// A component is missed as soon as it begins to end, whatever was read before, because its connections end
/// later.
#[test]
fn a_component_that_ends_is_missed_at_once() {
    let mut shell = Shell::start(":");
    let accounts = shell.accounts();
    shell.0.kill().expect("an end");
    let pid = shell.0.id();
    while proc::Stat::read(pid as i32).is_some_and(|stat| !stat.is_ending) {
        std::thread::yield_now();
    }
    assert_eq!(Err(format!("web (process {pid}) ended during the trial")), accounts.all_there());
    let _ = shell.0.wait();
}

/// A child that stays is one process however often it is read, and its usage counts once.
#[test]
fn a_child_that_stays_is_one_process() {
    let mut shell = Shell::start("(burn; echo burnt; read word; echo again)");
    let mut accounts = shell.accounts();
    shell.say();
    shell.hear();
    let readings: Vec<u64> = (0..3).map(|_| used_ns(&accounts.read())).collect();
    assert!(readings[0] > 3 * TICKS_NS && readings[2] - readings[0] < A_LITTLE_NS, "{readings:?}");
    assert_eq!(2, accounts.close()["web"].processes);
    shell.say();
    shell.hear();
    agree(shell.end(), readings[2]);
}

/// The process that reaps a child gets its usage, whether it is the root of the component or not.
#[test]
fn a_child_of_a_child_is_exact() {
    let mut shell = Shell::start("(burn & echo begun; read word; wait; echo reaped; read word)");
    let mut accounts = shell.accounts();
    shell.say();
    shell.hear();
    let (child, mut ended) = (proc::children(shell.0.id() as i32)[0], false);
    while !ended {
        std::thread::sleep(std::time::Duration::from_millis(1));
        ended = proc::children(child).iter().all(|pid| proc::Stat::read(*pid).is_some_and(|stat| stat.ended));
    }
    let waiting_ns = used_ns(&accounts.read());
    shell.say();
    shell.hear();
    let reading = accounts.read();
    assert_eq!(0, reading.inexact);
    assert!((waiting_ns..waiting_ns + A_LITTLE_NS).contains(&used_ns(&reading)), "{waiting_ns} {reading:?}");
    shell.say();
    shell.hear();
    shell.end();
}

/// A child whose parent never waits for it keeps its last reading.
#[test]
fn children_that_were_not_waited_for_keep_their_last_reading() {
    // The inner shell becomes another program that waits for no child, and its child ends first.
    let (child, parent) = (Pipe::new("child"), Pipe::new("parent"));
    let (child_path, parent_path) = (&child.0, &parent.0);
    let script = format!("sh -c '{BURN}; (burn; echo burnt; cat {child_path}) & exec cat {parent_path}'");
    let mut shell = Shell::start(&script);
    let mut accounts = shell.accounts();
    shell.say();
    shell.hear();
    let burnt_ns = used_ns(&accounts.read());
    assert!(burnt_ns > 3 * TICKS_NS, "{burnt_ns}");
    child.let_go();
    parent.let_go();
    shell.hear();
    assert!(used_ns(&accounts.read()) >= burnt_ns);
    shell.end();
}

/// A named pipe with a reader that waits.
struct Pipe(String);

impl Pipe {
    fn new(name: &str) -> Pipe {
        let path = std::env::temp_dir().join(format!("tollbar-accounts-{}-{name}", std::process::id()));
        let path = path.to_str().expect("a plain path").to_owned();
        assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
        Pipe(path)
    }

    fn let_go(&self) {
        drop(std::fs::OpenOptions::new().write(true).open(&self.0).expect("a reader"));
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Usage before the opening does not belong to the trial.
#[test]
fn the_past_is_not_counted() {
    let mut shell = Shell::start("burn; (burn); echo ready; read word");
    shell.say();
    shell.hear();
    let mut accounts = shell.accounts();
    shell.say();
    shell.hear();
    let reading = accounts.read();
    assert!(used_ns(&reading) < A_LITTLE_NS && reading.inexact == 0, "{reading:?}");
    let record = &accounts.close()["web"];
    assert!(record.memory_bytes > 100_000 && record.processes == 1, "{record:?}");
    assert!(shell.end() > 3 * TICKS_NS);
}
