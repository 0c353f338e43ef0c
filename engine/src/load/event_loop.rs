//! One thread's loop: its users, their timers, the arrivals of an open loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::draws::Draws;
use super::fault::{self, Fault};
use super::kinds::Kind;
use super::phase::{Phase, Plan, Timetable, Work};
use super::request::Prebuilt;
use super::response::Expected;
use super::socket::{Epoll, Ready};
use super::source::Source;
use super::tally::Tally;
use super::task::ConnectionReuse;
use super::user::{LoopState, Step, User};
use crate::clock;
use crate::contract::Failure;

/// A megabyte comes in a few reads, and a small answer touches a page or two of it.
const BUFFER: usize = 256 << 10;

/// A user whose request failed waits that long: a dead server is not hammered.
const PAUSE_NS: u64 = 1_000_000;

pub struct EventLoop {
    pub(super) plan: Arc<Plan>,
    pub(super) thread: u32,
    /// Those that ask, then those that only hold a connection.
    pub(super) users: Vec<User>,
    pub(super) asking: u32,
    pub(super) state: LoopState,
    /// When which user goes on.
    pub(super) timers: BinaryHeap<Reverse<(u64, u32)>>,
    pub(super) source: Source,
    pub(super) under_way: u32,
    pub(super) phase: Timetable,
    /// How many requests were started in this phase.
    pub(super) started: u64,
    /// Whether nothing new is started any more.
    pub(super) stopped: bool,
    pub(super) stopped_ns: u64,
    pub(super) first_answer_ns: u64,
    pub(super) next_sweep_ns: u64,
    /// When the last answer of this turn came; 0: none did.
    pub(super) answered_ns: u64,
    /// How long all its users took to be answered, when last each asked once: the response time under this load.
    pub(super) response_ns: u64,
}

impl EventLoop {
    pub fn new(plan: Arc<Plan>, thread: u32) -> Result<EventLoop, Failure> {
        let load = &plan.load;
        let (asking, silent) = (plan.share_of(thread, load.users), plan.share_of(thread, load.idle));
        let kinds = load.clients.iter().map(Kind::new).collect::<Result<Vec<_>, _>>()?;
        let epoll = Epoll::new().map_err(|error| Failure::Failed(format!("epoll: {error}")))?;
        let state = LoopState {
            address: load.address,
            epoll,
            kinds,
            shares: load.clients.iter().map(|kind| kind.share).collect(),
            only_kind: None,
            requests: load.request.paths.iter().map(|path| Prebuilt::new(load, path)).collect(),
            expected: Expected::of(load),
            keeps: load.connection == ConnectionReuse::User,
            buffer: vec![0; BUFFER],
            tally: Tally::new(),
            resumed_by_now: false,
        };
        let users = (0..asking + silent).map(|_| User::new(Draws::new(0, 0, 0))).collect();
        Ok(EventLoop {
            phase: Timetable::none(),
            started: 0,
            plan,
            thread,
            users,
            asking: asking as u32,
            state,
            timers: BinaryHeap::new(),
            source: Source::Once,
            under_way: 0,
            stopped: false,
            stopped_ns: 0,
            first_answer_ns: 0,
            next_sweep_ns: 0,
            answered_ns: 0,
            response_ns: 0,
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
            let ready = self.state.epoll.wait(now, self.next_wake_ns(now));
            let ready = ready.map_err(|error| Failure::Failed(format!("epoll: {error}")))?;
            for index in 0..ready {
                self.take(self.state.epoll.ready(index));
            }
        }
        Ok(self.leave())
    }

    fn enter(&mut self, phase: &Phase) -> Result<(), Failure> {
        self.state.tally = Tally::new();
        self.state.resumed_by_now = phase.work.resumes();
        self.state.only_kind = if let Work::Prime(kind) = phase.work { Some(kind) } else { None };
        for (index, user) in self.users.iter_mut().enumerate() {
            let user_number = self.thread + index as u32 * self.plan.load.threads;
            let draws = Draws::new(self.plan.seed, user_number, phase.work.number());
            // Connections made before count with the first chunk that they carry a request in.
            user.enter(draws, phase.work == Work::Timed(0));
        }
        // What happened to resting connections since the last phase.
        self.source = Source::Once;
        let ready =
            self.state.epoll.wait(0, 0).map_err(|error| Failure::Failed(format!("epoll: {error}")))?;
        for index in 0..ready {
            self.take(self.state.epoll.ready(index));
        }
        let least = self.plan.share_of(self.thread, phase.least);
        self.phase = Timetable::of(phase, least, clock::wall_ns(), self.plan.request_limit_ns);
        self.state.tally.began_ns = self.phase.begins_ns;
        (self.stopped, self.under_way, self.started) = (false, 0, 0);
        self.next_sweep_ns = self.phase.begins_ns;
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
        let step = user.go_on(ready, &mut self.state);
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
                self.state.tally.ended += 1;
                self.state.tally.faults.success();
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
        let tally = &mut self.state.tally;
        tally.answered_ns = now;
        tally.latencies.note_ns(now.saturating_sub(self.users[index as usize].intended_ns));
        tally.faults.success();
        tally.right += 1;
        tally.ended += 1;
        if tally.ended == 1 {
            self.first_answer_ns = now;
        }
        if self.is_time_to_stop(now) {
            self.stop(now);
        }
        if self.stopped {
            self.end_steady(now);
        }
        match &mut self.source {
            Source::Closed if self.stopped => {}
            Source::Closed if self.plan.think_ns > 0 => {
                self.timers.push(Reverse((now + self.plan.think_ns, index)));
            }
            // At once: a user waits for its own answer, and not until those of others have been read.
            Source::Closed => self.ask(index, now),
            Source::Open { free, .. } => free.push_back(index),
            Source::Once | Source::Opening { .. } => {}
        }
    }

    pub(super) fn failed(&mut self, index: u32, fault: Fault, was_busy: bool) {
        self.fault(fault);
        if !was_busy {
            return;
        }
        self.under_way -= 1;
        self.state.tally.ended += 1;
        match &mut self.source {
            Source::Closed if !self.stopped => {
                let pause_ns = self.plan.think_ns.max(PAUSE_NS);
                self.timers.push(Reverse((clock::wall_ns() + pause_ns, index)));
            }
            Source::Open { free, .. } => free.push_back(index),
            _ => {}
        }
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        let faults = &mut self.state.tally.faults;
        faults.note(fault);
        if faults.piled_up() {
            self.plan.stop.store(true, Relaxed);
        }
    }

    fn leave(&mut self) -> Tally {
        if !self.stopped {
            // All that arrived was answered before it was time.
            self.stop(self.phase.stop_ns);
        }
        self.end_steady(self.stopped_ns);
        self.timers.clear();
        if let Work::Lead(_) = self.phase.work {
            // The shortest so far: a longer one is a load client, or a server, that was held up.
            // A server that answers one after the other takes so much longer for all of them.
            let took_ns =
                self.state.tally.wall_ns() * u64::from(self.asking) / u64::from(self.leading().max(1));
            self.response_ns = if self.response_ns == 0 { took_ns } else { took_ns.min(self.response_ns) };
        }
        for user in &mut self.users {
            if user.busy() {
                user.close();
            }
        }
        std::mem::replace(&mut self.state.tally, Tally::new())
    }
}
