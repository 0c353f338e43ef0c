//! CPU time, memory and context switches of a component: a process and its descendants.
//!
//! No CPU time is lost. A component with a control group from the lab is read there, exact to a microsecond.
//! Without a group, a process that ended is read to its end while it waits to be reaped. If it was reaped
//! between two readings, the rest is in its parent's sum of reaped children, with the resolution of a clock
//! tick, and the bill reports that. A thread that ends stays in its process's clock.

mod bill;
mod component;
pub mod elsewhere;
mod group;
mod paid;
mod process;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

pub use bill::{Bill, Opening, Reading};
use component::Component;
use elsewhere::{Answer, Asked, Elsewhere, Place};
use group::Group;
#[cfg(test)]
pub use paid::Paid;
pub use paid::Usage;
use rustix::thread::set_current_timer_slack;
use tree::Tree;

use crate::clock::{self, Clocks};
use crate::proc;

/// Accounts of all components of a trial.
pub struct Accounts {
    here: Vec<Box<dyn Component>>,
    /// True if all components here are pinned to the one core of this thread, as they are in rounds.
    is_core_shared: bool,
    /// Accounts on other machines, each with an agent.
    elsewhere: Vec<Elsewhere>,
}

/// Time between two readings, longer than a process takes to wake and close a connection.
const BETWEEN_READINGS: Duration = Duration::from_micros(200);

/// Limit of waiting for rest: a server whose clock still moves is busy with its own work, not closing
/// connections.
const LONGEST_SETTLING_NS: u64 = 100_000_000;

/// Shortest sleep of the kernel, about 6 µs.
const NAP: Duration = Duration::from_nanos(1);
/// Naps with unmoved clocks that prove rest: a thread of this process may use up the first one on its way to
/// sleep.
const STANDING_NAPS: u32 = 2;

/// Divisor of the time between two readings: a process at rest uses at most this fraction for housekeeping.
const REST: u64 = 100;

/// Returns true if the processes were at rest between two moments, each given as their CPU time and its time.
fn stood_still((before_ns, read_ns): (u64, u64), (used_ns, now_ns): (u64, u64)) -> bool {
    used_ns.saturating_sub(before_ns) <= (now_ns - read_ns) / REST
}

/// Opens the account of a component: that of its control group if it has one, else that of its processes.
fn opened(name: &str, root: i32) -> Result<Box<dyn Component>, String> {
    match Group::open(name, root) {
        Some(group) => Ok(Box::new(group)),
        None => Ok(Box::new(Tree::open(name, root)?)),
    }
}

impl Accounts {
    pub fn open(components: &BTreeMap<String, i32>) -> Result<Accounts, String> {
        // A nap must end on time: by default a thread may oversleep by 50 µs.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let accounts = components.iter().map(|(name, root)| opened(name, *root));
        let here = accounts.collect::<Result<_, _>>()?;
        Ok(Accounts { here, is_core_shared: false, elsewhere: Vec::new() })
    }

    /// Returns true if processes that come and go are counted to a microsecond. Another machine does not
    /// report it.
    pub fn are_exact(&self) -> bool {
        self.elsewhere.is_empty() && self.here.iter().all(|account| account.is_exact())
    }

    /// Adds the accounts of components on other machines.
    pub fn with_others(mut self, places: &[Place]) -> Result<Accounts, String> {
        self.elsewhere = places.iter().map(Elsewhere::open).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Returns the duration of an idle round trip to the machine of each component that is on another
    /// machine.
    pub fn round_trips_ns(&self) -> BTreeMap<String, u64> {
        let places = self.elsewhere.iter();
        places.flat_map(|one| one.names.iter().map(|name| (name.clone(), one.round_trip_ns))).collect()
    }

    /// Waits until two readings in a row find all clocks unmoved and no thread ready to run. By then the
    /// server has paid for its work after its last answer, or after hundreds of connections were closed.
    /// Returns false if it was not at rest in time.
    fn settle(&mut self) -> bool {
        if self.here.is_empty() {
            return true;
        }
        let give_up_ns = clock::wall_ns() + LONGEST_SETTLING_NS;
        let mut before = (self.read_clocks(), clock::wall_ns());
        loop {
            std::thread::sleep(BETWEEN_READINGS);
            let now = (self.read_clocks(), clock::wall_ns());
            if stood_still(before, now) && !self.here.iter().any(|account| account.would_run()) {
                return true;
            }
            if now.1 >= give_up_ns {
                return false;
            }
            before = now;
        }
    }

    /// Waits until the clocks that move after a lead-in are unmoved, and touches as little of the core's
    /// caches as possible. On a shared core every component that is ready to run gets the core during one of
    /// these naps. A yield instead of a nap may give the core to another program for milliseconds. Returns
    /// false if the clocks still moved at the limit.
    fn nap_until_rest(&mut self) -> bool {
        let give_up_ns = clock::wall_ns() + LONGEST_SETTLING_NS;
        let (mut before_ns, mut standing) = (self.read_clocks(), 0);
        while standing < STANDING_NAPS {
            std::thread::sleep(NAP);
            let now_ns = self.read_clocks();
            standing = if now_ns == before_ns { standing + 1 } else { 0 };
            if clock::wall_ns() >= give_up_ns {
                return false;
            }
            before_ns = now_ns;
        }
        true
    }

    /// Reads CPU time by the clocks of known processes only, a hundred times cheaper than a full reading.
    fn read_clocks(&mut self) -> u64 {
        self.here.iter_mut().map(|account| account.read_clocks()).sum()
    }

    pub fn read(&mut self) -> Reading {
        self.ask_elsewhere(&Asked::Read);
        self.hear_elsewhere().for_each(drop);
        self.read_here()
    }

    /// Asks all other machines at once, so that they read within one round trip of each other.
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
            reading.inexact += account.inexact();
            reading.components.insert(account.name().to_owned(), account.paid());
        }
        reading
    }

    /// Waits until all are at rest, and begins a bill. A lead-in may follow, and then `start`.
    pub fn begin(&mut self) -> Opening {
        let mut settled = self.settle();
        self.ask_elsewhere(&Asked::Begin);
        for answer in self.hear_elsewhere() {
            settled &= !answer.unsettled;
        }
        let own_core = proc::only_core(rustix::thread::gettid().as_raw_pid());
        self.is_core_shared =
            own_core.is_some() && self.here.iter().all(|account| proc::only_core(account.root()) == own_core);
        let reading = self.read_here();
        Opening { settled, reading, clocks: Clocks::read() }
    }

    /// Starts a bill that was begun before a lead-in, by reading clocks only: any other reading would
    /// displace cache lines that the lead-in has just filled. New processes are found when the bill ends.
    pub fn start(&mut self, opening: &mut Opening) {
        self.ask_elsewhere(&Asked::Start);
        opening.settled &= if self.is_core_shared { self.nap_until_rest() } else { self.settle() };
        for account in &mut self.here {
            account.read_for_start();
            opening.reading.restart(account.name(), account.used_ns());
        }
        opening.reading.inexact = self.here.iter().map(|account| account.inexact()).sum();
        for answer in self.hear_elsewhere() {
            opening.settled &= !answer.unsettled;
        }
        opening.clocks = Clocks::read();
    }

    /// Ends a bill: this process's clocks are read now, and those of the components once they are at rest
    /// again.
    pub fn bill(&mut self, opening: &Opening) -> Bill {
        let (cpu_ns, wall_ns) = opening.clocks.since();
        let settled = self.settle() && opening.settled;
        self.ask_elsewhere(&Asked::Bill);
        let closing = self.read_here();
        self.here.iter_mut().for_each(|account| account.expect_as_now());
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

    /// Returns an error that names a component which has ended.
    pub fn all_there(&self) -> Result<(), String> {
        if let Some(fault) = self.here.iter().find_map(|account| account.fault()) {
            return Err(fault.to_owned());
        }
        match self.here.iter().find(|account| !account.root_is_there()) {
            None => match self.elsewhere.iter().find_map(Elsewhere::fault) {
                None => Ok(()),
                Some(fault) => Err(fault.to_owned()),
            },
            Some(account) => {
                Err(format!("{} (process {}) ended during the trial", account.name(), account.root()))
            }
        }
    }

    /// Takes the last reading: memory, context switches and processes, since the opening.
    pub fn close(&mut self) -> BTreeMap<String, Usage> {
        self.ask_elsewhere(&Asked::Close);
        let mut usage: BTreeMap<_, _> =
            self.here.iter_mut().map(|account| (account.name().to_owned(), account.close())).collect();
        usage.extend(self.hear_elsewhere().flat_map(|answer| answer.usage));
        usage
    }
}
