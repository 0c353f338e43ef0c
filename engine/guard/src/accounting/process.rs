//! Account of one process of a component: its clock, and the known usage of the children it reaped.

use crate::proc::{self, Stat};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    There {
        /// True if it runs, or waits for a core.
        would_run: bool,
    },
    /// Ended: the clock is final, and readable until the parent reaps the process.
    #[default]
    Ended,
    /// Reaped by its parent.
    Gone,
}

#[derive(Default)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub state: State,
    /// Start time, which with the id identifies a process: ids are reused.
    started: u64,
    /// Its own clock, at the opening and now.
    clock_first_ns: u64,
    clock_ns: u64,
    /// CPU time of children it reaped, in ticks: at the opening and now.
    waited_first_ns: u64,
    waited_ns: u64,
    /// Part of that time that was read while those children existed.
    known_ns: u64,
    /// Known part of the rest: children that came and went between two readings.
    guessed_ns: u64,
    /// Page faults, its own and those of the children it reaped. Their exact number shows whether all
    /// children were known. CPU time in ticks cannot, because many children do not live for a tick.
    faults: u64,
    reaped_faults: u64,
    /// Page faults of the reaped children that were known.
    known_faults: u64,
    run_queue_wait_first_ns: u64,
    run_queue_wait_ns: u64,
    pub switches_first: u64,
    pub switches: u64,
    pub memory_bytes: u64,
}

impl Process {
    /// Finds a process that exists or has not been reaped yet. At the opening its past does not count.
    pub fn find(pid: i32, opening: bool) -> Option<Process> {
        let stat = Stat::read(pid)?;
        let mut process = Process { pid, parent: stat.parent, started: stat.started, ..Process::default() };
        if process.read() == State::Gone {
            return None;
        }
        if opening {
            process.clock_first_ns = process.clock_ns;
            process.waited_first_ns = process.waited_ns;
            process.known_faults = process.reaped_faults;
            process.run_queue_wait_first_ns = process.run_queue_wait_ns;
        }
        Some(process)
    }

    /// Reads everything, and returns the state.
    pub fn read(&mut self) -> State {
        self.state = self.read_there().unwrap_or(State::Gone);
        self.state
    }

    fn read_there(&mut self) -> Option<State> {
        let stat = Stat::read(self.pid).filter(|stat| stat.started == self.started)?;
        self.clock_ns = proc::cpu_clock_ns(self.pid)?.max(self.clock_ns);
        (self.parent, self.waited_ns) = (stat.parent, stat.waited_ns);
        (self.faults, self.reaped_faults) = (stat.faults, stat.reaped_faults);
        if stat.ended {
            return Some(State::Ended);
        }
        self.run_queue_wait_ns = proc::run_queue_wait_ns(self.pid).unwrap_or(0).max(self.run_queue_wait_ns);
        Some(State::There { would_run: stat.would_run })
    }

    /// Reads only its clock.
    pub fn read_clocks(&mut self) {
        if self.state != State::Gone
            && let Some(clock_ns) = proc::cpu_clock_ns(self.pid)
        {
            self.clock_ns = clock_ns.max(self.clock_ns);
        }
    }

    /// Returns true if one of its threads runs or waits for a core.
    pub fn would_run(&self) -> bool {
        self.state != State::Gone && proc::would_run(self.pid)
    }

    /// Records that a known child of it was reaped.
    pub fn reaped(&mut self, life_ns: u64, faults: u64) {
        self.known_ns += life_ns;
        self.known_faults += faults;
    }

    /// Returns true if all children that it reaped were read to their end.
    pub fn fits(&self) -> bool {
        self.state == State::Gone || self.reaped_faults == self.known_faults
    }

    /// Takes the unknown usage of its children from its sum of reaped children, which counts in ticks.
    pub fn guess(&mut self) {
        let waited_ns = self.waited_ns.saturating_sub(self.waited_first_ns);
        self.guessed_ns = self.guessed_ns.max(waited_ns.saturating_sub(self.known_ns));
        self.known_faults = self.reaped_faults;
    }

    /// Returns the CPU time that its parent's sum gains when it is reaped.
    pub fn life_ns(&self) -> u64 {
        self.clock_ns + self.waited_ns
    }

    pub fn life_faults(&self) -> u64 {
        self.faults + self.reaped_faults
    }

    /// Returns the CPU time since the opening.
    pub fn total_ns(&self) -> u64 {
        (self.clock_ns - self.clock_first_ns) + self.guessed_ns
    }

    pub fn run_queue_wait_total_ns(&self) -> u64 {
        self.run_queue_wait_ns.saturating_sub(self.run_queue_wait_first_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    /// The clock is read while the process exists; its past is not counted.
    #[test]
    fn a_clock_goes_on_from_the_opening() {
        let mut process = Process::find(std::process::id() as i32, true).expect("this process");
        let before_ns = process.total_ns();
        let end_ns = clock::process_cpu_ns() + 2_000_000;
        while clock::process_cpu_ns() < end_ns {}
        process.read_clocks();
        assert!(process.total_ns() >= before_ns + 2_000_000, "{before_ns}, then {}", process.total_ns());
        process.state = State::Gone;
        let last_ns = process.total_ns();
        process.read_clocks();
        assert_eq!(last_ns, process.total_ns());
    }

    /// A parent that reaps a child gets the child's own usage and that of the children it had reaped.
    #[test]
    fn a_life_is_its_own_and_that_of_those_it_reaped() {
        let process = Process {
            clock_first_ns: 2,
            clock_ns: 7,
            waited_ns: 3,
            guessed_ns: 20,
            faults: 50,
            reaped_faults: 40,
            run_queue_wait_first_ns: 100,
            run_queue_wait_ns: 400,
            ..Process::default()
        };
        assert_eq!((10, 90), (process.life_ns(), process.life_faults()));
        assert_eq!((25, 300), (process.total_ns(), process.run_queue_wait_total_ns()));
    }
}
