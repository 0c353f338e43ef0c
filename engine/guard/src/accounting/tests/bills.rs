//! A bill's CPU time, waits and elapsed time, and their stated exactness.

use std::collections::BTreeMap;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use super::{Shell, TICKS_NS};
use crate::accounting::{Accounts, Bill, Paid, Reading};

/// A reading records its time, because the time between two readings limits the wait on one core.
#[test]
fn a_reading_has_its_time() {
    let mut accounts = Accounts::open(&BTreeMap::new()).expect("accounts");
    let first = accounts.read();
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert!(accounts.read().at_ns - first.at_ns >= 2_000_000);
}

/// Processes of one component on one core wait for each other, but no other program delays them.
#[test]
fn those_of_one_component_do_not_hold_it_up() {
    // The processes stay when they have finished, because a process takes its waits with it.
    let burners = "for i in 1 2 3 4; do (burn; echo done; exec sleep 9) & all=\"$all $!\"; done";
    let mut shell = Shell::start(&format!("trap 'kill $all' EXIT; {burners}"));
    let pid = Pid::from_raw(shell.0.id() as i32);
    let cores = sched_getaffinity(None).expect("this thread's cores");
    let mut last = CpuSet::new();
    last.set((0..CpuSet::MAX_CPU).rfind(|core| cores.is_set(*core)).expect("a core"));
    sched_setaffinity(pid, &last).expect("a core of its own");
    let began = std::time::Instant::now();
    let mut accounts = shell.accounts();
    let opening = accounts.read();
    shell.say();
    for _ in 0..5 {
        shell.hear();
    }
    let record = accounts.read().since(&opening)["web"];
    let wall_ns = began.elapsed().as_nanos() as u64;
    assert!(record.cpu_ns > 3 * TICKS_NS, "{record:?}");
    assert!(record.cpu_ns + record.run_queue_wait_ns <= wall_ns + TICKS_NS, "{record:?} in {wall_ns} ns");
    shell.end();
}

/// A bill reports clock-tick resolution, and does so for work that ends a process each time while ticks
/// matter.
#[test]
fn a_bill_says_that_it_was_read_to_a_tick() {
    for (script, is_to_a_tick) in [("(:); (:)", true), ("burn 20", false)] {
        let mut shell = Shell::start(script);
        let mut accounts = shell.accounts();
        let opening = accounts.begin();
        shell.say();
        shell.hear();
        assert_eq!(is_to_a_tick, accounts.bill(&opening).ticks, "{script}");
        shell.end();
    }
    for (ticks, cpu_ns, matter) in [
        (true, 0, true),
        (true, 119_999_999, true),
        (true, 120_000_000, false),
        (true, 120_000_001, false),
        (false, 0, false),
        (false, 120_000_000, false),
    ] {
        let paid = Paid { cpu_ns, run_queue_wait_ns: 0, on_one_core: true };
        let components = BTreeMap::from([("web".to_owned(), paid)]);
        let bill = Bill { components, cpu_ns: 0, wall_ns: 0, ticks, unsettled: false };
        assert_eq!(matter, bill.of_processes().ticks, "{ticks}, {cpu_ns} ns");
    }
}

/// False flags are not written, because they lengthen the line of each chunk.
#[test]
fn a_bill_says_only_what_is_so() {
    for (ticks, unsettled, keys) in [
        (false, false, vec!["components"]),
        (true, false, vec!["components", "ticks"]),
        (false, true, vec!["components", "unsettled"]),
    ] {
        let bill = Bill { components: BTreeMap::new(), cpu_ns: 1, wall_ns: 1, ticks, unsettled };
        let written = serde_json::to_value(bill).expect("a line");
        assert_eq!(keys, written.as_object().expect("an object").keys().collect::<Vec<_>>());
    }
}

/// On one core a component cannot wait while it runs; on several cores its threads wait in parallel.
#[test]
fn what_waits_on_one_core_did_not_run_meanwhile() {
    let reading = |at_ns: u64, cpu_ns: u64, run_queue_wait_ns: u64, on_one_core: bool| Reading {
        components: BTreeMap::from([("web".to_owned(), Paid { cpu_ns, run_queue_wait_ns, on_one_core })]),
        inexact: 0,
        at_ns,
    };
    for (waited_ns, on_one_core, expected_ns) in
        [(50, true, 50), (400, true, 400), (900, true, 400), (900, false, 900)]
    {
        let before = reading(7_000, 300, 20, on_one_core);
        let after = reading(8_000, 900, 20 + waited_ns, on_one_core);
        let paid = Paid { cpu_ns: 600, run_queue_wait_ns: expected_ns, on_one_core };
        assert_eq!(BTreeMap::from([("web".to_owned(), paid)]), after.since(&before));
    }
}
