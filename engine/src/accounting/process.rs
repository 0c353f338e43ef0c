//! One process of a component: its clock, and what is known of the children it reaped.

use crate::proc::{self, Stat};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    There {
        /// Runs, or waits for a core.
        would_run: bool,
    },
    /// Its clock is final, and can be read until its parent reaps it.
    #[default]
    Ended,
    /// Reaped.
    Gone,
}

#[derive(Default)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub state: State,
    /// With the number, what makes a process: numbers come again.
    started: u64,
    /// Its own clock, at the opening and now.
    clock_first_ns: u64,
    clock_ns: u64,
    /// Of children it reaped, in ticks: at the opening and now.
    waited_first_ns: u64,
    waited_ns: u64,
    /// What of that was read while those children were there.
    known_ns: u64,
    /// The rest, as far as it is known: children that came and went between two readings.
    guessed_ns: u64,
    /// Page faults: its own, and those of children it reaped, which tell to the last one whether all children
    /// were known. CPU time in ticks could not: many children do not live for one.
    faults: u64,
    reaped_faults: u64,
    /// As many as there should be, with all children known.
    known_faults: u64,
    run_queue_wait_first_ns: u64,
    run_queue_wait_ns: u64,
    pub switches_first: u64,
    pub switches: u64,
    pub memory_bytes: u64,
}

impl Process {
    /// A process that is there, or has ended and was not reaped yet. At the opening its past does not count.
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

    /// Reads all of it, and says how it is.
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

    /// Reads its clock alone.
    pub fn read_clocks(&mut self) {
        if self.state != State::Gone
            && let Some(clock_ns) = proc::cpu_clock_ns(self.pid)
        {
            self.clock_ns = clock_ns.max(self.clock_ns);
        }
    }

    /// Whether it would run now, any of its threads.
    pub fn would_run(&self) -> bool {
        self.state != State::Gone && proc::would_run(self.pid)
    }

    /// Notes that a known child of it was reaped.
    pub fn reaped(&mut self, life_ns: u64, faults: u64) {
        self.known_ns += life_ns;
        self.known_faults += faults;
    }

    /// Whether all children that it reaped were read to their end.
    pub fn fits(&self) -> bool {
        self.state == State::Gone || self.reaped_faults == self.known_faults
    }

    /// Takes what its children used beyond what is known of them from what it waited for, to a tick.
    pub fn guess(&mut self) {
        let waited_ns = self.waited_ns.saturating_sub(self.waited_first_ns);
        self.guessed_ns = self.guessed_ns.max(waited_ns.saturating_sub(self.known_ns));
        self.known_faults = self.reaped_faults;
    }

    /// What its parent waits for.
    pub fn life_ns(&self) -> u64 {
        self.clock_ns + self.waited_ns
    }

    pub fn life_faults(&self) -> u64 {
        self.faults + self.reaped_faults
    }

    /// Since the opening.
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

    /// Its own clock is read while it is there; the past is not counted.
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

    /// What a parent has waited for when it has reaped a child: all that it was, with what it had reaped itself.
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
