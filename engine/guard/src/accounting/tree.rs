//! Account of one component, by walking through its processes.

use std::collections::HashSet;

use super::component::Component;
use super::paid::{Paid, Usage};
use super::process::{Process, State};
use crate::proc;

/// Account of one component: the CPU clocks of a process and its descendants.
#[derive(Default)]
pub struct Tree {
    name: String,
    root: i32,
    on_one_core: bool,
    /// Processes, parents before their children, ended ones included.
    pub processes: Vec<Process>,
    inexact: u64,
    most_processes: usize,
    /// True if a process came or went between the last two readings.
    has_changed: bool,
    /// True if a process came or went during the last bill: this component's work starts or ends processes.
    comes_and_goes: bool,
    /// Reason why the account ended.
    fault: Option<String>,
}

/// Limit of processes: a larger tree is not one component's, and a walk through it takes longer than a chunk.
const MOST_PROCESSES: usize = 4096;

impl Tree {
    pub fn open(name: &str, root: i32) -> Result<Tree, String> {
        Tree::of_at_most(MOST_PROCESSES, name, root)
    }

    pub fn of_at_most(most_processes: usize, name: &str, root: i32) -> Result<Tree, String> {
        let on_one_core = proc::only_core(root).is_some();
        let mut account =
            Tree { name: name.to_owned(), root, on_one_core, most_processes, ..Tree::default() };
        account.walk(true)?;
        if !account.root_is_there() {
            return Err(format!("{}: there is no process {root} to account for", account.name));
        }
        for process in &mut account.processes {
            process.switches_first = proc::context_switches(process.pid).unwrap_or(0);
            process.switches = process.switches_first;
        }
        Ok(account)
    }

    /// Reads every process. Returns true if one of them was gone.
    fn read_processes(&mut self) -> bool {
        let mut vanished = false;
        for index in 0..self.processes.len() {
            let process = &mut self.processes[index];
            let before = process.state;
            if before == State::Gone || process.read() != State::Gone {
                continue;
            }
            vanished = true;
            // Its parent reaped it before it was read to its end.
            self.inexact += u64::from(before != State::Ended);
            let (parent, life_ns, faults) = (process.parent, process.life_ns(), process.life_faults());
            if let Some(parent) =
                self.processes.iter_mut().find(|known| known.pid == parent && known.state != State::Gone)
            {
                parent.reaped(life_ns, faults);
            }
        }
        vanished
    }

    /// Finds new processes. At the opening their earlier work is not counted.
    fn walk(&mut self, opening: bool) -> Result<(), String> {
        // The walk is breadth first; a process that comes and goes meanwhile is in its parent's sum of reaped
        // children.
        let (mut found, mut seen) = (vec![self.root], HashSet::from([self.root]));
        let mut at = 0;
        while let Some(&pid) = found.get(at) {
            at += 1;
            if at > self.most_processes {
                let Tree { name, root, most_processes, .. } = self;
                return Err(format!(
                    "{name} (process {root}) has more than {most_processes} processes; start it with fewer workers"
                ));
            }
            if !self.processes.iter().any(|known| known.state != State::Gone && known.pid == pid)
                && (opening || pid != self.root)
                && let Some(process) = Process::find(pid, opening)
            {
                self.processes.push(process);
            }
            found.extend(proc::children(pid).into_iter().filter(|child| seen.insert(*child)));
        }
        Ok(())
    }
}

impl Component for Tree {
    fn name(&self) -> &str {
        &self.name
    }

    fn root(&self) -> i32 {
        self.root
    }

    /// Returns the CPU time since the opening, by the last reading.
    fn used_ns(&self) -> u64 {
        self.processes.iter().map(Process::total_ns).sum()
    }

    fn paid(&self) -> Paid {
        Paid {
            cpu_ns: self.used_ns(),
            run_queue_wait_ns: self.processes.iter().map(Process::run_queue_wait_total_ns).sum(),
            on_one_core: self.on_one_core,
        }
    }

    /// Returns true if the component's first process runs. The process is read again here, because a client
    /// may find its connection closed before the next reading of the clocks.
    fn root_is_there(&self) -> bool {
        self.processes.first().is_some_and(|process| matches!(process.state, State::There { .. }))
            && proc::Stat::read(self.root).is_some_and(|stat| !stat.is_ending)
    }

    fn would_run(&self) -> bool {
        self.processes.iter().any(Process::would_run)
    }

    fn read_clocks(&mut self) -> u64 {
        self.processes.iter_mut().for_each(Process::read_clocks);
        self.used_ns()
    }

    /// Reads the starting point of a bill. If the component's work starts and ends processes, a walk must
    /// find their clocks.
    fn read_for_start(&mut self) {
        if self.comes_and_goes {
            self.read();
        } else {
            self.read_clocks();
        }
    }

    fn read(&mut self) {
        // A child may be reaped between its own reading and its parent's; then the two do not fit, and the
        // next reading repairs that. A difference after three readings is a child that was reaped unseen.
        self.has_changed = false;
        for _ in 0..3 {
            let vanished = self.read_processes();
            let known = self.processes.len();
            if let Err(fault) = self.walk(false) {
                self.fault.get_or_insert(fault);
            }
            self.has_changed |= vanished || self.processes.len() != known;
            if !vanished && self.processes.iter().all(Process::fits) {
                break;
            }
        }
        for process in &mut self.processes {
            if !process.fits() {
                process.guess();
                self.inexact += 1;
                self.has_changed = true;
            }
        }
    }

    /// Prepares for a next bill like the one that was just closed.
    fn expect_as_now(&mut self) {
        self.comes_and_goes = self.has_changed;
    }

    fn close(&mut self) -> Usage {
        self.read();
        let there = |process: &&mut Process| matches!(process.state, State::There { .. });
        for process in self.processes.iter_mut().filter(there) {
            process.switches = proc::context_switches(process.pid).unwrap_or(process.switches);
            process.memory_bytes = proc::peak_memory_bytes(process.pid).unwrap_or(0);
        }
        let sum = |of: fn(&Process) -> u64| self.processes.iter().map(of).sum();
        Usage {
            memory_bytes: sum(|process| process.memory_bytes),
            context_switches: sum(|process| process.switches.saturating_sub(process.switches_first)),
            processes: self.processes.len() as u64,
        }
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn inexact(&self) -> u64 {
        self.inexact
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}
