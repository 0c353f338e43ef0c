//! State that the loops of one trial share, and the phases they go through together.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::task::Load;
use crate::random::Sequence;
use crate::team::Meeting;

pub struct Plan {
    pub load: Load,
    pub seed: u64,
    pub think_ns: u64,
    pub request_limit_ns: u64,
    /// Set when too many errors occurred: everything ends.
    pub stop: AtomicBool,
    /// Arrivals a second, as the bits of the number; zero while users ask as soon as they are answered.
    rate_hz: AtomicU64,
    /// Meeting at which loops begin a phase together; at `end` each reports that it has reached its time and
    /// number.
    pub begin: Meeting,
    pub end: Meeting,
}

impl Plan {
    pub fn new(load: &Load, seed: u64) -> Plan {
        Plan {
            seed,
            think_ns: nanoseconds(load.think_s),
            request_limit_ns: nanoseconds(load.request_limit_s),
            stop: AtomicBool::new(false),
            rate_hz: AtomicU64::new(load.rate_hz.to_bits()),
            begin: Meeting::of(load.threads as usize),
            end: Meeting::of(load.threads as usize),
            load: load.clone(),
        }
    }

    pub fn is_open_loop(&self) -> bool {
        self.rate_hz() > 0.0
    }

    pub fn rate_hz(&self) -> f64 {
        f64::from_bits(self.rate_hz.load(Relaxed))
    }

    /// Sets the arrival rate from the next phase on.
    pub fn pace(&self, rate_hz: f64) {
        self.rate_hz.store(rate_hz.to_bits(), Relaxed);
    }

    /// Returns this loop's part of a number, as even as possible.
    pub fn share_of<Number: Into<u64>>(&self, thread: u32, many: Number) -> u64 {
        let (many, threads) = (many.into(), u64::from(self.load.threads));
        many / threads + u64::from(u64::from(thread) < many % threads)
    }

    /// Returns the random numbers of a loop in a phase.
    pub fn random(&self, thread: u32, work: Work) -> Sequence {
        // The numbers of users are below 2^32.
        Sequence::of(self.seed, [1 << 32 | u64::from(thread), work.number()])
    }

    /// Returns the time limit of a phase: no request may exceed its own limit, and some must follow one
    /// another.
    pub fn longest_ns(&self, length_ns: u64) -> u64 {
        4 * length_ns + 6 * (self.request_limit_ns + self.think_ns)
    }
}

pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Opening of the connections that are held.
    Open,
    /// A request of each user with this kind of client, so that it has a session to resume.
    Prime(u16),
    /// A request of each user, which gives it the state that later requests use.
    SignIn,
    /// Preparation for the operations of a window, if the sign-in needs it.
    PrepareWindow(u32),
    /// Preparation for a chunk and its lead-in.
    PrepareChunk(u32),
    /// A warm-up window.
    WarmUp(u32),
    /// An uncounted request of each user before a chunk.
    Lead(u32),
    Timed(u32),
}

impl Work {
    /// Returns the number that separates its random numbers from those of other phases.
    pub fn number(self) -> u64 {
        match self {
            Work::Timed(chunk) => u64::from(chunk),
            Work::Lead(chunk) => 1 << 32 | u64::from(chunk),
            Work::WarmUp(window) => 2 << 32 | u64::from(window),
            Work::Open => 3 << 32,
            Work::Prime(kind) => 4 << 32 | u64::from(kind),
            Work::SignIn => 5 << 32,
            // Preparation draws no numbers of its own, because it repeats those of the next phase.
            Work::PrepareWindow(_) | Work::PrepareChunk(_) => 6 << 32,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Work::Open => "opening connections",
            Work::Prime(_) => "fetching sessions to resume",
            Work::SignIn => "signing in",
            Work::PrepareWindow(_) | Work::PrepareChunk(_) => "preparing requests",
            Work::WarmUp(_) => "warming up",
            Work::Lead(_) => "asking before a chunk",
            Work::Timed(_) => "the timed part",
        }
    }

    /// Returns true if clients that keep sessions have one by now.
    pub fn resumes(self) -> bool {
        matches!(self, Work::Lead(_) | Work::Timed(_))
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Phase {
    pub work: Work,
    /// Least time in which requests are started.
    pub length_ns: u64,
    /// Least number of starts, over all loops together.
    pub least: u64,
    /// Time after which no request starts, whatever is left.
    pub longest_ns: u64,
}

/// Times of a phase in one loop, counted from when that loop was woken.
#[derive(Debug, Clone, Copy)]
pub struct Timetable {
    pub work: Work,
    pub begins_ns: u64,
    /// Time from which no request starts, unless `least` is not reached; earlier arrivals are served.
    pub stop_ns: u64,
    pub least: u64,
    /// Number of which the number of starts must be a multiple.
    pub whole: u64,
    /// Time from which no request starts at all, and waiting arrivals are dropped.
    pub give_up_ns: u64,
    /// Time at which requests in progress fail.
    pub abandon_ns: u64,
}

impl Timetable {
    pub fn of(phase: &Phase, least: u64, whole: u64, begins_ns: u64, limit_ns: u64) -> Timetable {
        let give_up_ns = begins_ns + phase.longest_ns;
        Timetable {
            work: phase.work,
            begins_ns,
            stop_ns: begins_ns + phase.length_ns,
            least,
            whole,
            give_up_ns,
            abandon_ns: give_up_ns + limit_ns + limit_ns / 4,
        }
    }

    /// Returns true if no more requests may start: the time and the number are reached, or it took too long.
    #[inline]
    pub fn is_over(&self, now: u64, started: u64) -> bool {
        (now >= self.stop_ns && started >= self.least && started.is_multiple_of(self.whole))
            || self.gives_up(now)
    }

    #[inline]
    pub fn gives_up(&self, now: u64) -> bool {
        now >= self.give_up_ns
    }

    pub fn none() -> Timetable {
        let nothing = Phase { work: Work::Open, length_ns: 0, least: 0, longest_ns: 0 };
        Timetable::of(&nothing, 0, 1, 0, 0)
    }
}
