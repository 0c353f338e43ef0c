//! CPU time, memory and context switches of a component: a process and all below it.
//!
//! Nothing vanishes. A process that ends is in the time its parent waited for, or keeps its last reading;
//! a thread that ends stays in its process's clock.

use std::collections::BTreeMap;

use super::proc::{self, Stat};
use super::record::ComponentRecord;
use crate::clock;

/// The accounts of all components of a trial.
pub struct Accounts(Vec<Account>);

impl Accounts {
    pub fn open(components: &BTreeMap<String, i32>) -> Result<Accounts, String> {
        let accounts = components.iter().map(|(name, root)| Account::open(name, *root));
        Ok(Accounts(accounts.collect::<Result<_, _>>()?))
    }

    /// CPU nanoseconds of each since the opening.
    pub fn read(&mut self) -> BTreeMap<String, u64> {
        self.0.iter_mut().map(|account| (account.name.clone(), account.read())).collect()
    }

    /// The same from the clocks of known processes alone, a hundred times cheaper: for readings in between.
    /// What has come or gone since the last whole reading is in the next.
    pub fn glance(&mut self) -> BTreeMap<String, u64> {
        self.0.iter_mut().map(|account| (account.name.clone(), account.glance())).collect()
    }

    /// Reads a last time, memory and context switches as well; a component that is not there any more is an error.
    pub fn close(&mut self) -> (BTreeMap<String, ComponentRecord>, Result<(), String>) {
        let records = self.0.iter_mut().map(|account| (account.name.clone(), account.close())).collect();
        let gone = self.0.iter().find(|account| !account.root_is_there());
        let there = match gone {
            None => Ok(()),
            Some(account) => {
                Err(format!("{} (process {}) ended during the trial", account.name, account.root))
            }
        };
        (records, there)
    }
}

struct Account {
    name: String,
    root: i32,
    /// When it was opened, and how long its one core had been idle by then, if it has only one.
    opened_ns: u64,
    core: Option<(usize, u64)>,
    /// Parents before their children, those that ended included.
    processes: Vec<Process>,
}

struct Process {
    pid: i32,
    parent: i32,
    /// With the number, what makes a process: numbers come again.
    started: u64,
    alive: bool,
    /// Its own clock, at the opening and now.
    clock_first_ns: u64,
    clock_ns: u64,
    /// Of children it has waited for, at the opening and now.
    waited_first_ns: u64,
    waited_ns: u64,
    /// What of that was read while those children were there.
    known_ns: u64,
    switches_first: u64,
    switches: u64,
    held_up_first_ns: u64,
    held_up_ns: u64,
    memory_bytes: u64,
}

impl Account {
    fn open(name: &str, root: i32) -> Result<Account, String> {
        let core = proc::only_core(root).and_then(|core| Some((core, proc::idle_ns(core)?)));
        let opened_ns = clock::wall_ns();
        let mut account = Account { name: name.to_owned(), root, opened_ns, core, processes: Vec::new() };
        account.walk(true);
        if !account.root_is_there() {
            return Err(format!("{name}: there is no process {root} to account for"));
        }
        for process in &mut account.processes {
            process.switches_first = proc::context_switches(process.pid).unwrap_or(0);
            process.switches = process.switches_first;
            process.held_up_first_ns = proc::held_up_ns(process.pid).unwrap_or(0);
            process.held_up_ns = process.held_up_first_ns;
        }
        Ok(account)
    }

    fn read(&mut self) -> u64 {
        // A child that ends between its parent's reading and its own would be counted by neither or both.
        for _ in 0..3 {
            let ended = self.read_known();
            if !ended {
                break;
            }
        }
        self.walk(false);
        self.total_ns()
    }

    fn glance(&mut self) -> u64 {
        for process in self.processes.iter_mut().filter(|process| process.alive) {
            if let Some(clock_ns) = proc::cpu_clock_ns(process.pid) {
                process.clock_ns = clock_ns.max(process.clock_ns);
            }
        }
        self.total_ns()
    }

    fn close(&mut self) -> ComponentRecord {
        let cpu_ns = self.read();
        for process in self.processes.iter_mut().filter(|process| process.alive) {
            process.switches = proc::context_switches(process.pid).unwrap_or(process.switches);
            process.held_up_ns = proc::held_up_ns(process.pid).unwrap_or(process.held_up_ns);
            process.memory_bytes = proc::peak_memory_bytes(process.pid).unwrap_or(0);
        }
        let sum = |of: fn(&Process) -> u64| self.processes.iter().map(of).sum();
        let held_up_ns: u64 = sum(|process| process.held_up_ns.saturating_sub(process.held_up_first_ns));
        ComponentRecord {
            cpu_ns,
            held_up_ns: held_up_ns.min(self.others_ns(cpu_ns).unwrap_or(u64::MAX)),
            memory_bytes: sum(|process| process.memory_bytes),
            context_switches: sum(|process| process.switches.saturating_sub(process.switches_first)),
            processes: self.processes.len() as u64,
        }
    }

    /// How long its core was neither its own nor idle: threads also wait for each other, which holds up nobody.
    fn others_ns(&self, cpu_ns: u64) -> Option<u64> {
        let (core, idle_first_ns) = self.core?;
        let idle_ns = proc::idle_ns(core)?.saturating_sub(idle_first_ns);
        Some((clock::wall_ns() - self.opened_ns).saturating_sub(cpu_ns + idle_ns))
    }

    fn root_is_there(&self) -> bool {
        self.processes.first().is_some_and(|process| process.alive)
    }

    fn total_ns(&self) -> u64 {
        self.processes.iter().map(Process::total_ns).sum()
    }

    /// Reads every process known to be there; true if one of them was not any more.
    fn read_known(&mut self) -> bool {
        let mut ended = false;
        for index in 0..self.processes.len() {
            let process = &mut self.processes[index];
            if !process.alive || process.read() {
                continue;
            }
            ended = true;
            process.alive = false;
            // Its whole life goes into what its parent waited for, once it is waited for.
            let (parent, life_ns) = (process.parent, process.clock_ns + process.waited_ns);
            if let Some(parent) = self.processes.iter_mut().find(|known| known.alive && known.pid == parent) {
                parent.known_ns += life_ns;
            }
        }
        ended
    }

    /// Finds processes that were not known. At the opening what they did before is not counted.
    fn walk(&mut self, opening: bool) {
        let mut found = vec![self.root];
        // Breadth first; a process that comes and goes meanwhile makes no difference.
        let mut at = 0;
        while at < found.len() && found.len() < MOST_PROCESSES {
            let pid = found[at];
            at += 1;
            if !self.processes.iter().any(|known| known.alive && known.pid == pid)
                && let Some(process) = Process::find(pid, opening)
                && (opening || pid != self.root)
            {
                self.processes.push(process);
            }
            for child in proc::children(pid) {
                if !found.contains(&child) {
                    found.push(child);
                }
            }
        }
    }
}

/// A tree larger than that is not one component's.
const MOST_PROCESSES: usize = 4096;

impl Process {
    fn find(pid: i32, opening: bool) -> Option<Process> {
        let stat = Stat::read(pid)?;
        let mut process = Process {
            pid,
            parent: stat.parent,
            started: stat.started,
            alive: true,
            clock_first_ns: 0,
            clock_ns: 0,
            waited_first_ns: 0,
            waited_ns: 0,
            known_ns: 0,
            switches_first: 0,
            switches: 0,
            held_up_first_ns: 0,
            held_up_ns: 0,
            memory_bytes: 0,
        };
        if !process.read() {
            return None;
        }
        if opening {
            process.clock_first_ns = process.clock_ns;
            process.waited_first_ns = process.waited_ns;
        }
        Some(process)
    }

    /// Reads both; false if the process is not there any more.
    fn read(&mut self) -> bool {
        let Some(stat) = Stat::read(self.pid).filter(|stat| stat.started == self.started && !stat.ended)
        else {
            return false;
        };
        let Some(clock_ns) = proc::cpu_clock_ns(self.pid) else { return false };
        (self.clock_ns, self.waited_ns) = (clock_ns.max(self.clock_ns), stat.waited_ns);
        true
    }

    fn total_ns(&self) -> u64 {
        let waited_ns = self.waited_ns.saturating_sub(self.waited_first_ns);
        (self.clock_ns - self.clock_first_ns) + waited_ns.saturating_sub(self.known_ns)
    }
}
