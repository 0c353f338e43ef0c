//! Account of one component from its control group: exact, even for processes that have ended in it.
//!
//! The lab gives each component that it starts its own group if the kernel allows it (cgroup v2). `cpu.stat`
//! needs no controller, and sums everything that ever ran in the group.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::component::Component;
use super::paid::{Paid, Usage};
use crate::{groups, proc};

/// Prefix of a group's name, which is that of the run's directory and a number.
const PREFIX: &str = "tollbar-";
/// Buffer for `cpu.stat`, far longer than the file.
const MOST_STAT_BYTES: usize = 1024;

/// Account of one component by its group.
pub struct Group {
    name: String,
    root: i32,
    on_one_core: bool,
    folder: PathBuf,
    stat: File,
    first_ns: u64,
    cpu_ns: u64,
    members: BTreeMap<i32, Member>,
    /// Number of members that ended; `ended_waits_ns` is the time they waited for a core.
    ended: u64,
    ended_waits_ns: u64,
    fault: Option<String>,
}

#[derive(Default, Clone, Copy)]
struct Member {
    waits_first_ns: u64,
    waits_ns: u64,
    switches_first: u64,
}

impl Group {
    /// Opens the account of a component. Returns None if it has no group of its own.
    pub fn open(name: &str, root: i32) -> Option<Group> {
        let folder = own_folder_of(root)?;
        let stat = File::open(folder.join("cpu.stat")).ok()?;
        let mut group = Group {
            name: name.to_owned(),
            root,
            on_one_core: proc::only_core(root).is_some(),
            folder,
            stat,
            first_ns: 0,
            cpu_ns: 0,
            members: BTreeMap::new(),
            ended: 0,
            ended_waits_ns: 0,
            fault: None,
        };
        group.read();
        if group.fault.is_some() {
            return None;
        }
        group.first_ns = group.cpu_ns;
        for (pid, member) in &mut group.members {
            member.waits_first_ns = member.waits_ns;
            member.switches_first = proc::context_switches(*pid).unwrap_or(0);
        }
        Some(group)
    }

    fn processes(&self) -> Vec<i32> {
        let listed = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        listed.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn waits_ns(&self) -> u64 {
        let waits = self.members.values().map(|one| one.waits_ns.saturating_sub(one.waits_first_ns));
        self.ended_waits_ns + waits.sum::<u64>()
    }
}

impl Component for Group {
    fn name(&self) -> &str {
        &self.name
    }

    fn root(&self) -> i32 {
        self.root
    }

    fn used_ns(&self) -> u64 {
        self.cpu_ns - self.first_ns
    }

    fn paid(&self) -> Paid {
        let (cpu_ns, run_queue_wait_ns) = (self.used_ns(), self.waits_ns());
        Paid { cpu_ns, run_queue_wait_ns, on_one_core: self.on_one_core }
    }

    fn root_is_there(&self) -> bool {
        proc::Stat::read(self.root).is_some_and(|stat| !stat.ended && !stat.is_ending)
    }

    fn would_run(&self) -> bool {
        self.processes().into_iter().any(proc::would_run)
    }

    fn read_clocks(&mut self) -> u64 {
        let mut text = [0; MOST_STAT_BYTES];
        let read = self.stat.read_at(&mut text, 0).ok();
        match read.and_then(|length| usage_ns(&text[..length])) {
            Some(cpu_ns) => self.cpu_ns = cpu_ns.max(self.cpu_ns),
            None => {
                let folder = self.folder.display();
                self.fault.get_or_insert(format!("{}: {folder}/cpu.stat cannot be read any more", self.name));
            }
        }
        self.used_ns()
    }

    fn read_for_start(&mut self) {
        self.read_clocks();
    }

    fn read(&mut self) {
        self.read_clocks();
        let there = self.processes();
        for pid in &there {
            let member = self.members.entry(*pid).or_default();
            member.waits_ns = proc::run_queue_wait_ns(*pid).unwrap_or(0).max(member.waits_ns);
        }
        // Forget ended processes, because work that ends a process each time would lengthen the list with
        // each chunk.
        let gone: Vec<i32> = self.members.keys().filter(|pid| !there.contains(pid)).copied().collect();
        for pid in gone {
            let Some(member) = self.members.remove(&pid) else { continue };
            self.ended += 1;
            self.ended_waits_ns += member.waits_ns.saturating_sub(member.waits_first_ns);
        }
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn close(&mut self) -> Usage {
        self.read();
        let switches = |(pid, member): (&i32, &Member)| {
            proc::context_switches(*pid).unwrap_or(0).saturating_sub(member.switches_first)
        };
        Usage {
            memory_bytes: self.members.keys().filter_map(|pid| proc::peak_memory_bytes(*pid)).sum(),
            context_switches: self.members.iter().map(switches).sum(),
            processes: self.ended + self.members.len() as u64,
        }
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

/// Returns the folder of a process's group, if the lab made the group for one component.
fn own_folder_of(pid: i32) -> Option<PathBuf> {
    let folder = groups::folder_of(pid)?;
    folder.file_name()?.to_str()?.starts_with(PREFIX).then_some(folder)
}

/// Returns `usage_usec` of a `cpu.stat`, in nanoseconds.
fn usage_ns(stat: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(stat).ok()?;
    let usage_us = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    usage_us.parse::<u64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_are_read_as_nanoseconds() {
        assert_eq!(Some(7_000), usage_ns(b"usage_usec 7\nuser_usec 3\n"));
        assert_eq!(Some(7_000), usage_ns(b"nice_usec 1\nusage_usec 7\n"));
        assert_eq!([None, None], [usage_ns(b""), usage_ns(b"usage_usec 99999999999999999999\n")]);
    }

    #[test]
    fn a_process_in_no_group_of_the_lab_has_no_such_account() {
        assert!(Group::open("web", std::process::id() as i32).is_none());
        assert!(Group::open("web", i32::MAX).is_none());
    }
}
