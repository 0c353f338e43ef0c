//! A bill is begun before a lead-in, and started after it by reading clocks only.

use super::{A_LITTLE_NS, Shell, agree, bill_after_lead_in, used_ns};
use crate::accounting::component::Component;
use crate::accounting::tree::Tree;

/// No bill contains the work of the lead-in.
#[test]
fn a_bill_does_not_have_what_came_before_its_start() {
    let mut shell = Shell::start("burn; echo led; read word; burn");
    let mut accounts = shell.accounts();
    let first_ns = used_ns(&accounts.read());
    let mut opening = accounts.begin();
    shell.say();
    shell.hear();
    accounts.start(&mut opening);
    let led_ns = accounts.here[0].used_ns() - first_ns;
    assert!(led_ns > 20_000_000, "the lead-in burned {led_ns} ns only");
    shell.say();
    shell.hear();
    let bill = accounts.bill(&opening);
    assert!(!bill.ticks, "no process came or went");
    assert_eq!(accounts.here[0].used_ns() - led_ns - first_ns, bill.components_ns());
    agree(shell.end(), led_ns + first_ns + bill.components_ns());
}

/// The start reads no list of processes: a process that the lead-in started is found, and counted, when the
/// bill ends.
#[test]
fn new_processes_are_found_when_a_bill_ends() {
    // A background process has no input unless one is given to it.
    let script = "exec 3<&0; (echo begun; read word <&3; burn; echo burnt; read word <&3) & wait";
    let mut shell = Shell::start(script);
    let mut tree = Tree::open("web", shell.0.id() as i32).expect("an account");
    shell.say();
    shell.hear();
    tree.read_for_start();
    let start_ns = tree.used_ns();
    assert_eq!(1, tree.processes.len());
    shell.say();
    shell.hear();
    tree.read();
    assert_eq!(2, tree.processes.len());
    assert!(tree.used_ns() - start_ns > 20_000_000, "{start_ns}, then {}", tree.used_ns());
    shell.0.kill().expect("an end");
    let _ = shell.0.wait();
}

/// Only a walk finds the lead-in's ended processes; the bill before shows that one is needed.
#[test]
fn what_comes_and_goes_is_walked_through_at_the_start() {
    let mut shell = Shell::start("(:); echo first; read word; (burn); echo led; read word; :");
    let mut accounts = shell.accounts();
    let opening = accounts.begin();
    shell.say();
    shell.hear();
    assert!(accounts.bill(&opening).ticks);
    let bill = bill_after_lead_in(&mut shell, &mut accounts);
    assert!(bill.components_ns() < A_LITTLE_NS && !bill.ticks, "{bill:?}");
    shell.end();
}

/// A tree that is too large is an error, not an account without the processes beyond the limit.
#[test]
fn more_processes_than_are_walked_through_are_an_error() {
    let mut shell = Shell::start("sleep 9 & sleep 9 & sleep 9 & echo begun; read word; kill %1 %2 %3");
    let root = shell.0.id() as i32;
    let mut tree = Tree::of_at_most(3, "web", root).expect("one process");
    shell.say();
    shell.hear();
    let expected = format!("web (process {root}) has more than 3 processes; start it with fewer workers");
    tree.read();
    assert_eq!(Some(expected.as_str()), tree.fault());
    assert_eq!(Some(expected), Tree::of_at_most(3, "web", root).err());
    assert!(Tree::of_at_most(4, "web", root).is_ok());
    shell.say();
    shell.hear();
    shell.end();
}
