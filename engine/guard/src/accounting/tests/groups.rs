//! A component with its own control group is exact, although its processes come and go.

use std::path::PathBuf;
use std::{fs, io};

use super::{A_LITTLE_NS, Shell, bill_after_lead_in, used_ns};
use crate::groups;

/// Control group of this test, if this machine allows one; removed at the end.
struct Own(PathBuf);

impl Own {
    fn made(name: &str) -> Option<Own> {
        let own = groups::folder_of(std::process::id() as i32);
        let group = own.map(|own| own.join(format!("tollbar-test-{}.{name}", std::process::id())));
        let made = group.ok_or_else(|| io::Error::other("no cgroup v2")).and_then(|group| {
            fs::create_dir(&group)?;
            Ok(Own(group))
        });
        made.inspect_err(|why| eprintln!("skipped: {why}")).ok()
    }

    fn take(&self, shell: &Shell) {
        fs::write(self.0.join("cgroup.procs"), shell.0.id().to_string()).expect("a process that is moved");
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Children that were reaped between two readings are counted to a microsecond, not in ticks.
#[test]
fn children_that_were_not_seen_are_exact() {
    let Some(group) = Own::made("exact") else { return };
    let mut shell = Shell::start("for i in 1 2 3 4 5 6 7 8; do (burn 9000); done");
    group.take(&shell);
    let before_ns = crate::proc::cpu_clock_ns(shell.0.id() as i32).expect("a clock");
    let mut accounts = shell.accounts();
    assert!(accounts.are_exact());
    let opening = accounts.begin();
    shell.say();
    shell.hear();
    let bill = accounts.bill(&opening);
    assert!(!bill.ticks);
    let expected_ns = shell.end() - before_ns;
    assert!(expected_ns > A_LITTLE_NS, "the children burned {expected_ns} ns only");
    assert!(expected_ns.abs_diff(bill.components_ns()) < A_LITTLE_NS, "{expected_ns} ns, counted {bill:?}");
}

/// Starting needs no walk: the reading includes processes of the lead-in that have ended.
#[test]
fn a_start_has_all_that_the_lead_in_was() {
    let Some(group) = Own::made("start") else { return };
    let mut shell = Shell::start("(burn); echo led; read word; :");
    group.take(&shell);
    let mut accounts = shell.accounts();
    let bill = bill_after_lead_in(&mut shell, &mut accounts);
    assert!(bill.components_ns() < A_LITTLE_NS && !bill.ticks, "{bill:?}");
    assert!(used_ns(&accounts.read()) > 20_000_000);
    assert_eq!(Ok(()), accounts.all_there());
    let usage = &accounts.close()["web"];
    assert!(usage.memory_bytes > 100_000 && usage.processes >= 1, "{usage:?}");
    shell.end();
}

/// A component that has ended is reported, although its group still exists.
#[test]
fn a_component_that_ended_is_missed_in_its_group() {
    let Some(group) = Own::made("ended") else { return };
    let mut shell = Shell::start(":");
    group.take(&shell);
    let mut accounts = shell.accounts();
    shell.0.kill().expect("an end");
    let pid = shell.0.id();
    let _ = shell.0.wait();
    accounts.read();
    assert_eq!(Err(format!("web (process {pid}) ended during the trial")), accounts.all_there());
}
