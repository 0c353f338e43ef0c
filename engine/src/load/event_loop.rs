//! One thread's loop: its users, their timers, the arrivals of an open loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::draws::Draws;
use super::fault::{self, Fault};
use super::kinds::Kind;
use super::phase::{Phase, Plan, Work};
use super::request::Prebuilt;
use super::response::Expected;
use super::socket::{Epoll, Ready};
use super::source::Source;
use super::tally::{Steady, Tally};
use super::task::Keeping;
use super::user::{Step, Tools, User};
use crate::clock;
use crate::contract::Failure;

/// A megabyte comes in a few reads, and a small answer touches a page or two of it.
const BUFFER: usize = 256 << 10;

/// A user whose request failed waits that long: a dead server is not hammered.
const PAUSE_NS: u64 = 1_000_000;

/// However long there is nothing to do, somebody may have said to stop.
const LONGEST_WAIT_NS: u64 = 50_000_000;

pub struct EventLoop {
    pub(super) plan: Arc<Plan>,
    pub(super) thread: u32,
    /// Those that ask, then those that only hold a connection.
    pub(super) users: Vec<User>,
    pub(super) asking: u32,
    pub(super) tools: Tools,
    /// When which user goes on.
    pub(super) timers: BinaryHeap<Reverse<(u64, u32)>>,
    pub(super) source: Source,
    pub(super) under_way: u32,
    pub(super) phase: Phase,
    /// Whether nothing new is started any more.
    pub(super) stopped: bool,
    pub(super) next_sweep_ns: u64,
    /// Who was answered in this turn and asks again, and when the last answer came; 0: none did.
    pub(super) answered: Vec<u32>,
    pub(super) answered_ns: u64,
}

impl EventLoop {
    pub fn new(plan: Arc<Plan>, thread: u32) -> Result<EventLoop, Failure> {
        let load = &plan.load;
        let (asking, silent) = (plan.share_of(thread, load.users), plan.share_of(thread, load.idle));
        let kinds = load.clients.iter().map(Kind::new).collect::<Result<Vec<_>, _>>()?;
        let epoll = Epoll::new().map_err(|error| Failure::Failed(format!("epoll: {error}")))?;
        let tools = Tools {
            address: load.address,
            epoll,
            kinds,
            shares: load.clients.iter().map(|kind| kind.share).collect(),
            only_kind: None,
            requests: load.request.paths.iter().map(|path| Prebuilt::new(load, path)).collect(),
            expected: Expected::of(load),
            keeps: load.connection == Keeping::User,
            buffer: vec![0; BUFFER],
            tally: Tally::new(),
            resumed_by_now: false,
        };
        let users = (0..asking + silent).map(|_| User::new(Draws::new(0, 0, 0))).collect();
        Ok(EventLoop {
            phase: Phase::none(),
            plan,
            thread,
            users,
            asking: asking as u32,
            tools,
            timers: BinaryHeap::new(),
            source: Source::Once,
            under_way: 0,
            stopped: false,
            next_sweep_ns: 0,
            answered: Vec::new(),
            answered_ns: 0,
        })
    }

    /// Performs one phase, to its end with nothing under way.
    pub fn run(&mut self, phase: &Phase) -> Result<Tally, Failure> {
        self.enter(phase)?;
        loop {
            // An answer has just read the clock, most of the time.
            let now = match std::mem::take(&mut self.answered_ns) {
                0 => clock::wall_ns(),
                answered_ns => answered_ns,
            };
            if now >= self.next_sweep_ns.min(self.phase.abandon_ns) {
                self.sweep(now);
            }
            self.start_due(now);
            if self.finished(now) {
                break;
            }
            let ready = self.tools.epoll.wait(now, self.next_wake_ns(now));
            let ready = ready.map_err(|error| Failure::Failed(format!("epoll: {error}")))?;
            for index in 0..ready {
                self.take(self.tools.epoll.ready(index));
            }
            self.ask_again();
        }
        Ok(self.leave())
    }

    fn enter(&mut self, phase: &Phase) -> Result<(), Failure> {
        self.phase = phase.clone();
        self.tools.tally = Tally::new();
        self.tools.resumed_by_now = phase.work == Work::Timed;
        self.tools.only_kind = if let Work::Prime(kind) = phase.work { Some(kind) } else { None };
        (self.stopped, self.under_way, self.next_sweep_ns) = (false, 0, phase.begins_ns);
        for (index, user) in self.users.iter_mut().enumerate() {
            let user_number = self.thread + index as u32 * self.plan.load.threads;
            user.enter(Draws::new(self.plan.seed, user_number, phase.work.number()));
        }
        // What happened to resting connections since the last phase.
        self.source = Source::Once;
        let ready =
            self.tools.epoll.wait(0, 0).map_err(|error| Failure::Failed(format!("epoll: {error}")))?;
        for index in 0..ready {
            self.take(self.tools.epoll.ready(index));
        }
        self.begin();
        Ok(())
    }

    #[inline]
    fn take(&mut self, ready: Ready) {
        let (index, generation) = ready.about();
        let Some(user) = self.users.get_mut(index as usize).filter(|user| user.concerns(generation)) else {
            return;
        };
        let was_busy = user.busy();
        let step = user.go_on(ready, &mut self.tools);
        self.settle(index, step, was_busy);
    }

    /// Takes note of how far a user came, and what it does next.
    #[inline]
    pub(super) fn settle(&mut self, index: u32, step: Step, was_busy: bool) {
        match step {
            Step::Waiting => {}
            Step::Answered => self.answered(index),
            Step::Opened => {
                self.under_way -= 1;
                self.tools.tally.ended += 1;
                self.tools.tally.faults.success();
            }
            Step::Lost => {
                // A user makes another when it next asks. One that only holds its connection has nothing else.
                self.under_way -= u32::from(was_busy);
                if index >= self.asking {
                    let words = "the server closed a connection that was to be held";
                    self.fault(Fault::new(fault::CLOSED_EARLY, words));
                }
            }
            Step::Failed(fault) => self.failed(index, fault, was_busy),
        }
    }

    #[inline]
    fn answered(&mut self, index: u32) {
        let now = clock::wall_ns();
        self.answered_ns = now;
        self.under_way -= 1;
        if !self.stopped && now >= self.phase.stop_ns {
            self.stop(now);
        }
        let tally = &mut self.tools.tally;
        tally.latencies.note_ns(now.saturating_sub(self.users[index as usize].intended_ns));
        tally.faults.success();
        tally.right += 1;
        tally.ended += 1;
        self.plan.ended[self.thread as usize].0.store(tally.ended, Relaxed);
        match &mut self.source {
            Source::Closed { .. } if self.stopped => {}
            Source::Closed { .. } if self.plan.think_ns > 0 => {
                self.timers.push(Reverse((now + self.plan.think_ns, index)));
            }
            Source::Closed { .. } => self.answered.push(index),
            Source::Open { free, .. } => free.push_back(index),
            Source::Once | Source::Opening { .. } => {}
        }
    }

    fn failed(&mut self, index: u32, fault: Fault, was_busy: bool) {
        self.fault(fault);
        if !was_busy {
            return;
        }
        self.under_way -= 1;
        self.tools.tally.ended += 1;
        match &mut self.source {
            Source::Closed { .. } if !self.stopped => {
                let pause_ns = self.plan.think_ns.max(PAUSE_NS);
                self.timers.push(Reverse((clock::wall_ns() + pause_ns, index)));
            }
            Source::Open { free, .. } => free.push_back(index),
            _ => {}
        }
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        let faults = &mut self.tools.tally.faults;
        faults.note(fault);
        if faults.piled_up() {
            self.plan.stop.store(true, Relaxed);
        }
    }

    /// From now on nothing new is started.
    pub(super) fn stop(&mut self, now: u64) {
        self.stopped = true;
        self.timers.clear();
        let wall_ns = now.min(self.phase.stop_ns).saturating_sub(self.phase.begins_ns);
        self.tools.tally.steady = Steady { requests: self.tools.tally.ended, wall_ns };
    }

    /// Ends what has taken too long.
    fn sweep(&mut self, now: u64) {
        let limit_ns = self.plan.request_limit_ns;
        // Often enough that a limit is kept to within an eighth.
        self.next_sweep_ns = now + (limit_ns / 8).clamp(1_000_000, 250_000_000);
        for index in 0..self.users.len() {
            let user = &mut self.users[index];
            let late = now.saturating_sub(user.began_ns) >= limit_ns || now >= self.phase.abandon_ns;
            if user.busy() && late {
                let words =
                    format!("{} after {} ms", user.doing(), now.saturating_sub(user.began_ns) / 1_000_000);
                user.close();
                self.failed(index as u32, Fault::new(fault::TIMEOUT, words), true);
            }
        }
    }

    fn finished(&self, now: u64) -> bool {
        if self.plan.stop.load(Relaxed) || now >= self.phase.abandon_ns {
            return true;
        }
        self.under_way == 0
            && match &self.source {
                Source::Opening { next } => self.stopped || *next >= self.users.len() as u32,
                Source::Once => true,
                Source::Closed { .. } => self.stopped,
                Source::Open { arrivals, .. } => arrivals.are_over(now),
            }
    }

    fn next_wake_ns(&self, now: u64) -> u64 {
        let mut wake_ns = self.next_sweep_ns.min(now + LONGEST_WAIT_NS);
        if let Some(Reverse((due_ns, _))) = self.timers.peek() {
            wake_ns = wake_ns.min(*due_ns);
        }
        if !self.stopped {
            wake_ns = wake_ns.min(self.phase.stop_ns);
        }
        match &self.source {
            Source::Open { arrivals, free } if !free.is_empty() => wake_ns.min(arrivals.next_ns()),
            _ => wake_ns,
        }
    }

    fn leave(&mut self) -> Tally {
        self.timers.clear();
        self.answered.clear();
        for user in &mut self.users {
            if user.busy() {
                user.close();
            }
        }
        std::mem::replace(&mut self.tools.tally, Tally::new())
    }
}
