//! CPU time, memory and context switches of a component: a process and all below it.
//!
//! Nothing vanishes. A process that ended is read to its end while it waits to be reaped; of one that was reaped
//! between two readings, the rest is in what its parent waited for, to a clock tick, and that is said. A thread
//! that ends stays in its process's clock.

pub mod elsewhere;
mod paid;
mod process;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use elsewhere::{Answer, Asked, Elsewhere, Place};
pub use paid::{Paid, Usage};
use process::{Process, State};
use serde::Serialize;

use crate::clock::{self, Clocks};
use crate::proc;

/// The accounts of all components of a trial.
pub struct Accounts {
    here: Vec<Account>,
    /// On other machines, each with an agent.
    elsewhere: Vec<Elsewhere>,
}

/// What each component has paid since the accounts were opened.
#[derive(Debug, Default, Clone)]
pub struct Reading {
    pub components: BTreeMap<String, Paid>,
    /// How often a process could not be read to its end.
    pub inexact: u64,
    at_ns: u64,
}

/// What was paid between two readings, each with nothing under way.
#[derive(Serialize, Debug)]
pub struct Bill {
    pub components: BTreeMap<String, Paid>,
    /// CPU time of this process.
    #[serde(skip)]
    pub cpu_ns: u64,
    #[serde(skip)]
    pub wall_ns: u64,
    /// Part of the CPU time is known to a clock tick only: a child was reaped before it could be read.
    #[serde(skip_serializing_if = "is_false")]
    pub ticks: bool,
    /// A component was at work of its own when its account was opened, or when it was closed.
    #[serde(skip_serializing_if = "is_false")]
    pub unsettled: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Bill {
    /// Of work that ends a process each time. What their parent waited for is the kernel's exact sum, which is read to a
    /// tick (10 ms) of user and of system time: two readings differ by 6 ms (a standard deviation) too much or too little,
    /// whatever came between. Against this much that is 5 %, and what one chunk has too much, the next has too little.
    pub fn of_processes(self) -> Bill {
        const TICKS_MATTER_UNDER_NS: u64 = 120_000_000;
        Bill { ticks: self.ticks && self.components_ns() < TICKS_MATTER_UNDER_NS, ..self }
    }

    /// By all components together.
    pub fn components_ns(&self) -> u64 {
        self.components.values().map(|paid| paid.cpu_ns).sum()
    }
}

/// A bill that has been begun.
pub struct Opening {
    pub settled: bool,
    reading: Reading,
    clocks: Clocks,
}

impl Opening {
    /// This process's clocks when it was.
    pub fn clocks(&self) -> &Clocks {
        &self.clocks
    }
}

/// Between two readings: longer than a process takes to be woken and to close a connection.
const BETWEEN_READINGS: Duration = Duration::from_micros(200);

/// A clock that still moves then is not closing connections, it is at work of its own.
const LONGEST_SETTLING_NS: u64 = 100_000_000;

/// Of the time between two readings, what a process may use and still be at rest: housekeeping.
const REST: u64 = 100;

/// Whether the clocks of processes that are at rest may move so far between two moments: each what they showed, and when.
fn stood_still((before_ns, read_ns): (u64, u64), (used_ns, now_ns): (u64, u64)) -> bool {
    used_ns.saturating_sub(before_ns) <= (now_ns - read_ns) / REST
}

impl Accounts {
    pub fn open(components: &BTreeMap<String, i32>) -> Result<Accounts, String> {
        let accounts = components.iter().map(|(name, root)| Account::open(name, *root));
        Ok(Accounts { here: accounts.collect::<Result<_, _>>()?, elsewhere: Vec::new() })
    }

    /// Those of components on other machines as well.
    pub fn beside(mut self, places: &[Place]) -> Result<Accounts, String> {
        self.elsewhere = places.iter().map(Elsewhere::open).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// How long a round trip to the machine of each component takes, while nothing else is under way; of those that are
    /// on other machines.
    pub fn round_trips_ns(&self) -> BTreeMap<String, u64> {
        let places = self.elsewhere.iter();
        places.flat_map(|one| one.names.iter().map(|name| (name.clone(), one.round_trip_ns))).collect()
    }

    /// Waits until two readings in a row find all clocks standing, and nothing that would run: what a server still
    /// has to do after its last answer, or after hundreds of connections were closed, is paid by then.
    /// False if it was not at rest in time.
    fn settle(&mut self) -> bool {
        if self.here.is_empty() {
            return true;
        }
        let give_up_ns = clock::wall_ns() + LONGEST_SETTLING_NS;
        let mut before = (self.read_clocks(), clock::wall_ns());
        loop {
            std::thread::sleep(BETWEEN_READINGS);
            let now = (self.read_clocks(), clock::wall_ns());
            if stood_still(before, now) && !self.here.iter().any(Account::would_run) {
                return true;
            }
            if now.1 >= give_up_ns {
                return false;
            }
            before = now;
        }
    }

    /// CPU time by the clocks of known processes alone, a hundred times cheaper than a reading.
    fn read_clocks(&mut self) -> u64 {
        self.here.iter_mut().map(Account::read_clocks).sum()
    }

    pub fn read(&mut self) -> Reading {
        self.ask_elsewhere(&Asked::Read);
        self.hear_elsewhere().for_each(drop);
        self.read_here()
    }

    /// Asks all other machines at once: what they read, they read within one round trip of each other.
    fn ask_elsewhere(&mut self, asked: &Asked) {
        self.elsewhere.iter_mut().for_each(|place| place.say(asked));
    }

    fn hear_elsewhere(&mut self) -> impl Iterator<Item = Answer> {
        self.elsewhere.iter_mut().map(Elsewhere::hear)
    }

    fn read_here(&mut self) -> Reading {
        let mut reading = Reading { at_ns: clock::wall_ns(), ..Reading::default() };
        for account in &mut self.here {
            account.read();
            reading.inexact += account.inexact;
            reading.components.insert(account.name.clone(), account.paid());
        }
        reading
    }

    /// Waits until all are at rest, and begins a bill.
    pub fn begin(&mut self) -> Opening {
        let mut settled = self.settle();
        self.ask_elsewhere(&Asked::Begin);
        for answer in self.hear_elsewhere() {
            settled &= !answer.unsettled;
        }
        let reading = self.read_here();
        Opening { settled, reading, clocks: Clocks::read() }
    }

    /// Ends a bill: this process's clocks are read now, and those of the components once they are at rest again.
    pub fn bill(&mut self, opening: &Opening) -> Bill {
        let (cpu_ns, wall_ns) = opening.clocks.since();
        let settled = self.settle() && opening.settled;
        self.ask_elsewhere(&Asked::Bill);
        let closing = self.read_here();
        let ticks = closing.inexact != opening.reading.inexact;
        let components = closing.since(&opening.reading);
        let mut bill = Bill { components, cpu_ns, wall_ns, ticks, unsettled: !settled };
        for part in self.hear_elsewhere() {
            bill.components.extend(part.components);
            bill.ticks |= part.ticks;
            bill.unsettled |= part.unsettled;
        }
        bill
    }

    /// An error names a component that is not there any more.
    pub fn all_there(&self) -> Result<(), String> {
        match self.here.iter().find(|account| !account.root_is_there()) {
            None => match self.elsewhere.iter().find_map(Elsewhere::fault) {
                None => Ok(()),
                Some(fault) => Err(fault.to_owned()),
            },
            Some(account) => {
                Err(format!("{} (process {}) ended during the trial", account.name, account.root))
            }
        }
    }

    /// Reads a last time: memory, context switches and processes, since the opening.
    pub fn close(&mut self) -> BTreeMap<String, Usage> {
        self.ask_elsewhere(&Asked::Close);
        let mut usage: BTreeMap<_, _> =
            self.here.iter_mut().map(|account| (account.name.clone(), account.close())).collect();
        usage.extend(self.hear_elsewhere().flat_map(|answer| answer.usage));
        usage
    }
}

impl Reading {
    /// What each component paid from an earlier reading to this one.
    pub fn since(&self, earlier: &Reading) -> BTreeMap<String, Paid> {
        let wall_ns = self.at_ns - earlier.at_ns;
        let nothing = Paid::default();
        let paid = |name: &String, now: &Paid| {
            let before = earlier.components.get(name).unwrap_or(&nothing);
            let cpu_ns = now.cpu_ns.saturating_sub(before.cpu_ns);
            let run_queue_wait_ns = now.run_queue_wait_ns.saturating_sub(before.run_queue_wait_ns);
            // Threads of one server also wait for each other, which is no wait for another program: on one core it cannot have
            // been held up for longer than it did not run.
            let most_ns = if now.on_one_core { wall_ns.saturating_sub(cpu_ns) } else { u64::MAX };
            Paid { cpu_ns, run_queue_wait_ns: run_queue_wait_ns.min(most_ns), on_one_core: now.on_one_core }
        };
        self.components.iter().map(|(name, now)| (name.clone(), paid(name, now))).collect()
    }
}

struct Account {
    name: String,
    root: i32,
    on_one_core: bool,
    /// Parents before their children, those that ended included.
    processes: Vec<Process>,
    inexact: u64,
}

/// A tree larger than that is not one component's.
const MOST_PROCESSES: usize = 4096;

impl Account {
    fn open(name: &str, root: i32) -> Result<Account, String> {
        let on_one_core = proc::only_core(root).is_some();
        let mut account =
            Account { name: name.to_owned(), root, on_one_core, processes: Vec::new(), inexact: 0 };
        account.walk(true);
        if !account.root_is_there() {
            return Err(format!("{name}: there is no process {root} to account for"));
        }
        for process in &mut account.processes {
            process.switches_first = proc::context_switches(process.pid).unwrap_or(0);
            process.switches = process.switches_first;
        }
        Ok(account)
    }

    fn paid(&self) -> Paid {
        Paid {
            cpu_ns: self.processes.iter().map(Process::total_ns).sum(),
            run_queue_wait_ns: self.processes.iter().map(Process::run_queue_wait_total_ns).sum(),
            on_one_core: self.on_one_core,
        }
    }

    /// Returns whether the component's first process runs. The process is read again here, because a client may find its
    /// connection closed before the next reading of the clocks.
    fn root_is_there(&self) -> bool {
        self.processes.first().is_some_and(|process| matches!(process.state, State::There { .. }))
            && proc::Stat::read(self.root).is_some_and(|stat| !stat.is_ending)
    }

    fn would_run(&self) -> bool {
        self.processes.iter().any(Process::would_run)
    }

    fn read_clocks(&mut self) -> u64 {
        self.processes.iter_mut().for_each(Process::read_clocks);
        self.processes.iter().map(Process::total_ns).sum()
    }

    fn read(&mut self) {
        // A child may be reaped between its own reading and its parent's: then the two do not fit, and another
        // reading is taken. What does not fit after three has been reaped unseen.
        for _ in 0..3 {
            let vanished = self.read_processes();
            self.walk(false);
            if !vanished && self.processes.iter().all(Process::fits) {
                break;
            }
        }
        for process in &mut self.processes {
            if !process.fits() {
                process.guess();
                self.inexact += 1;
            }
        }
    }

    /// Reads every process that is there; true if one of them was not any more.
    fn read_processes(&mut self) -> bool {
        let mut vanished = false;
        for index in 0..self.processes.len() {
            let process = &mut self.processes[index];
            let before = process.state;
            if before == State::Gone || process.read() != State::Gone {
                continue;
            }
            vanished = true;
            // Reaped before it was read to its end.
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

    /// Finds processes that were not known. At the opening what they did before is not counted.
    fn walk(&mut self, opening: bool) {
        let mut found = vec![self.root];
        // Breadth first; a process that comes and goes meanwhile is in what its parent waited for.
        let mut at = 0;
        while at < found.len() && found.len() < MOST_PROCESSES {
            let pid = found[at];
            at += 1;
            if !self.processes.iter().any(|known| known.state != State::Gone && known.pid == pid)
                && (opening || pid != self.root)
                && let Some(process) = Process::find(pid, opening)
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
}
