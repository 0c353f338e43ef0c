//! What the loops of one trial share, and the phases they go through together.

use std::sync::atomic::{AtomicBool, AtomicU64};

use super::task::{Load, Shape};

pub struct Plan {
    pub load: Load,
    pub seed: u64,
    pub think_ns: u64,
    pub request_limit_ns: u64,
    /// Set when errors pile up: everything ends.
    pub stop: AtomicBool,
    /// Requests ended in this phase, by loop.
    pub ended: Vec<OwnLine>,
}

/// A counter on a cache line of its own: two loops that count do not wait for each other.
#[repr(align(128))]
#[derive(Default)]
pub struct OwnLine(pub AtomicU64);

impl Plan {
    pub fn new(load: &Load, seed: u64) -> Plan {
        Plan {
            seed,
            think_ns: nanoseconds(load.think_s),
            request_limit_ns: nanoseconds(load.request_limit_s),
            stop: AtomicBool::new(false),
            ended: (0..load.threads).map(|_| OwnLine::default()).collect(),
            load: load.clone(),
        }
    }

    pub fn is_open_loop(&self) -> bool {
        self.load.shape == Shape::Open
    }

    /// This loop's part of so many, as even as can be.
    pub fn share_of<Number: Into<u64>>(&self, thread: u32, many: Number) -> u64 {
        let (many, threads) = (many.into(), u64::from(self.load.threads));
        many / threads + u64::from(u64::from(thread) < many % threads)
    }
}

pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Connections that are held are made.
    Open,
    /// Each user asks once with this kind of client, so that it has a session to resume.
    Prime(u16),
    WarmUp,
    Timed,
}

impl Work {
    /// What tells its draws from those of other phases.
    pub fn number(self) -> u64 {
        match self {
            Work::Timed => 0,
            Work::WarmUp => 1,
            Work::Open => 2,
            Work::Prime(kind) => 3 + u64::from(kind),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Work::Open => "opening connections",
            Work::Prime(_) => "fetching sessions to resume",
            Work::WarmUp => "warming up",
            Work::Timed => "the timed part",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Phase {
    pub work: Work,
    pub begins_ns: u64,
    /// Nothing new is started from then on; arrivals that came before are still served.
    pub stop_ns: u64,
    /// Arrivals that still wait then are dropped.
    pub give_up_ns: u64,
    /// What is under way then has failed.
    pub abandon_ns: u64,
    /// Ends after so many requests, all loops together.
    pub quota: Option<u64>,
}

impl Phase {
    pub fn none() -> Phase {
        Phase { work: Work::Open, begins_ns: 0, stop_ns: 0, give_up_ns: 0, abandon_ns: 0, quota: None }
    }
}
