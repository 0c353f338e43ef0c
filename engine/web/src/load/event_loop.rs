//! The event loop of one thread: its users, and the requests they start.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::arrivals::Arrivals;
use super::connection::LoopState;
use super::connector::Connector;
use super::counts::Counts;
use super::latencies::Recorder;
use super::phase::{Phase, Plan, Timetable, Work};
use super::socket::Ready;
use super::source::{OPENING_AT_ONCE, Source, Start};
use super::user::{Step, User};
use crate::clock::{self, Clocks};
use crate::failure::{self, Failure, Fault};
use crate::random::UserRandom;
use crate::sign_in::SignIn;
use crate::sign_in::scheme::Visit;

/// Size of the read buffer: a megabyte arrives in a few reads, and a small answer touches a page or two of
/// it.
const BUFFER: usize = 256 << 10;

/// Users that ask in a lead-in: their requests bring a server's code and data back into its caches.
const LEADING: u32 = 4;

/// Longest wait without events, because another loop may have set the stop flag.
const LONGEST_WAIT_NS: u64 = 50_000_000;

pub struct EventLoop {
    plan: Arc<Plan>,
    thread: u32,
    /// Users that send requests, then those that only hold a connection.
    users: Vec<User>,
    active: u32,
    state: LoopState,
    /// Latencies of timed phases.
    latencies: Recorder,
    source: Source,
    under_way: u32,
    phase: Timetable,
    /// Number of requests started in this phase.
    started: u64,
    /// Time at which the loop stopped starting requests.
    stopped_ns: Option<u64>,
    /// Number of arrivals at the phase's end once all loops have arrived, set by this loop's arrival.
    ends_with: Option<usize>,
    /// Clocks of this thread at the common start.
    began: Clocks,
    next_sweep_ns: u64,
    /// Time of the last answer in this turn, if there was one.
    answered_ns: Option<u64>,
    /// Time in which each user asks once, the shortest of all lead-ins: the response time under this load.
    response_ns: u64,
    /// Highest rate of any window or chunk so far.
    most_hz: f64,
}

/// Rate that the first window is prepared for: the signatures or tickets that a core can check.
const FIRST_HZ: f64 = 5_000.0;

/// Factor on the highest rate so far for which a phase is prepared.
const PREPARED_FOR_ONE: f64 = 1.25;

impl EventLoop {
    pub fn new(plan: Arc<Plan>, thread: u32) -> Result<EventLoop, Failure> {
        let load = &plan.load;
        let (active, idle) = (plan.share_of(thread, load.users), plan.share_of(thread, load.idle));
        let connectors = load.clients.iter().map(Connector::new).collect::<Result<Vec<_>, _>>()?;
        let sign_in = SignIn::new(&load.visitors())?;
        let state = LoopState::new(load, connectors, sign_in, BUFFER)?;
        let users = (0..active + idle).map(|_| User::default()).collect();
        Ok(EventLoop {
            plan,
            thread,
            users,
            active: active as u32,
            state,
            latencies: Recorder::new(),
            source: Source::Nothing,
            under_way: 0,
            phase: Timetable::none(),
            started: 0,
            stopped_ns: None,
            ends_with: None,
            began: Clocks::of_thread(),
            next_sweep_ns: 0,
            answered_ns: None,
            response_ns: 0,
            most_hz: 0.0,
        })
    }

    /// Performs one phase, to its end with no request in progress.
    pub fn run(&mut self, phase: &Phase) -> Result<Counts, Failure> {
        match phase.work {
            Work::PrepareWindow(window) => return self.prepare(phase, &[], Work::WarmUp(window)),
            Work::PrepareChunk(chunk) => {
                let leading = self.draws(self.active.min(LEADING), 1, Work::Lead(chunk));
                return self.prepare(phase, &leading, Work::Timed(chunk));
            }
            _ => {}
        }
        self.enter(phase)?;
        loop {
            // Most of the time an answer has just read the clock.
            let now = self.answered_ns.take().unwrap_or_else(clock::wall_ns);
            if now >= self.next_sweep_ns.min(self.phase.abandon_ns) {
                self.sweep(now);
            }
            self.start_due(now);
            if self.is_finished(now) {
                break;
            }
            self.poll(now, self.next_wake_ns(now))?;
        }
        Ok(self.leave())
    }

    /// Waits for events, and advances their users.
    fn poll(&mut self, now: u64, until_ns: u64) -> Result<(), Failure> {
        let ready = self.state.epoll.wait(now, until_ns);
        let ready = ready.map_err(|error| Failure::Failed(format!("epoll: {error}")))?;
        for index in 0..ready {
            self.dispatch(self.state.epoll.ready(index));
        }
        Ok(())
    }

    fn enter(&mut self, phase: &Phase) -> Result<(), Failure> {
        // A user's own server may issue or accept no sessions; the number that it resumed is a finding.
        self.state.must_resume = self.state.is_lab && phase.work.resumes();
        self.state.only_connector = if let Work::Prime(number) = phase.work { Some(number) } else { None };
        for index in 0..self.users.len() {
            let random = self.random(index as u32, phase.work);
            // Connections from before count in the first chunk in which they carry a request.
            self.users[index].enter(random, phase.work == Work::Timed(0));
        }
        // This poll finds events of resting connections since the last phase.
        self.source = Source::Nothing;
        self.poll(0, 0)?;
        let least = self.plan.share_of(self.thread, phase.least);
        self.state.sign_in.enter();
        let whole = self.state.sign_in.whole();
        self.ends_with = None;
        self.plan.begin.wait_unless(self.plan.begin.come(), || self.plan.stop.load(Relaxed));
        self.began = Clocks::of_thread();
        self.phase = Timetable::of(phase, least, whole, clock::wall_ns(), self.plan.request_limit_ns);
        self.state.counts.began_ns = self.phase.begins_ns;
        (self.stopped_ns, self.under_way, self.started) = (None, 0, 0);
        self.next_sweep_ns = self.phase.begins_ns;
        self.source = self.source_of_phase();
        Ok(())
    }

    /// Makes the sign-in prepare for `leading` and the visits of the next phase: the largest number that each
    /// user may reach.
    fn prepare(&mut self, phase: &Phase, leading: &[Visit], next: Work) -> Result<Counts, Failure> {
        let least = self.plan.share_of(self.thread, phase.least);
        let hz = if self.most_hz == 0.0 { FIRST_HZ } else { self.most_hz };
        let likely = PREPARED_FOR_ONE * hz * phase.length_ns as f64 / 1e9;
        let each = least.max(likely as u64).div_ceil(u64::from(self.active)) + 1;
        let visits = [leading, &self.draws(self.active, each, next)].concat();
        let prepared = self.state.sign_in.prepare(&visits);
        prepared.map(|()| Counts::default()).map_err(|fault| Failure::Failed(fault.words))
    }

    /// Draws the first visits of some users in a phase.
    fn draws(&self, users: u32, each: u64, work: Work) -> Vec<Visit> {
        let of_user = |index| {
            let mut random = self.random(index, work);
            (0..each).map(move |_| self.state.sign_in.draw(index, 0, &mut random))
        };
        (0..users).flat_map(of_user).collect()
    }

    /// Returns the random numbers of a user in a phase.
    fn random(&self, index: u32, work: Work) -> UserRandom {
        let user_number = self.thread + index * self.plan.load.threads;
        UserRandom::new(self.plan.seed, user_number, work.number())
    }

    fn source_of_phase(&self) -> Source {
        let Timetable { work, begins_ns, stop_ns, least, .. } = self.phase;
        let mut random = self.plan.random(self.thread, work);
        match work {
            Work::Open => {
                // Users that open a connection for each request hold none.
                let next = if self.state.keeps { 0 } else { self.active };
                Source::Once { next, end: self.users.len() as u32, at_once: OPENING_AT_ONCE }
            }
            Work::Prime(_) | Work::SignIn => Source::Once { next: 0, end: self.active, at_once: u32::MAX },
            Work::Lead(_) => Source::Once { next: 0, end: self.active.min(LEADING), at_once: u32::MAX },
            Work::PrepareWindow(_) | Work::PrepareChunk(_) => Source::Nothing,
            Work::WarmUp(_) | Work::Timed(_) if self.plan.is_open_loop() => {
                let rate_hz = self.plan.rate_hz() / f64::from(self.plan.load.threads);
                Source::open(Arrivals::new(random, rate_hz, begins_ns, stop_ns, least), self.active)
            }
            Work::WarmUp(_) | Work::Timed(_) => {
                Source::closed(self.active, begins_ns, self.response_ns, self.plan.think_ns, &mut random)
            }
        }
    }

    /// Starts requests that are due: of users that have thought, arrivals, and connections to open.
    fn start_due(&mut self, now: u64) {
        let is_ended = self.plan.stop.load(Relaxed);
        if self.stopped_ns.is_none() && (is_ended || self.is_over(now)) {
            self.stop(now);
        }
        let dropped = self.source.arrive(now, is_ended || now >= self.phase.give_up_ns);
        if let Some((dropped, words)) = dropped {
            self.state.counts.ended += dropped;
            self.state.counts.faults.note_many(Fault::new(failure::BACKLOG, words), dropped);
        }
        while let Some(start) = self.source.next(now, self.under_way) {
            self.start(start, now);
        }
    }

    #[inline]
    fn start(&mut self, Start { user: index, intended_ns }: Start, now: u64) {
        let user = &mut self.users[index as usize];
        (user.intended_ns, user.began_ns) = (intended_ns, now);
        self.under_way += 1;
        let step = match self.phase.work {
            Work::Open => user.open(index, &mut self.state),
            _ => {
                self.started += 1;
                user.start(index, &mut self.state)
            }
        };
        self.settle(index, step, true);
    }

    #[inline]
    fn dispatch(&mut self, ready: Ready) {
        let (index, generation) = ready.about();
        let Some(user) = self.users.get_mut(index as usize).filter(|user| user.concerns(generation)) else {
            return;
        };
        let was_busy = user.busy();
        let step = user.go_on(ready, &mut self.state);
        self.settle(index, step, was_busy);
    }

    /// Records a user's progress, and what it does next.
    #[inline]
    fn settle(&mut self, index: u32, step: Step, was_busy: bool) {
        match step {
            Step::Waiting => {}
            Step::Answered => self.answered(index),
            Step::Opened => {
                self.under_way -= 1;
                self.state.counts.ended += 1;
                self.state.counts.faults.success();
            }
            Step::Lost => {
                // A user opens another connection with its next request. A user that only holds its
                // connection has no next request.
                self.under_way -= u32::from(was_busy);
                if index >= self.active {
                    let words = "the server closed a connection that must stay open";
                    self.fault(Fault::new(failure::CLOSED_EARLY, words));
                }
            }
            Step::Failed(fault) => self.failed(index, fault, was_busy),
        }
    }

    #[inline]
    fn answered(&mut self, index: u32) {
        let now = clock::wall_ns();
        self.answered_ns = Some(now);
        self.under_way -= 1;
        self.state.counts.answered(now);
        if let Work::Timed(_) = self.phase.work {
            self.latencies.note_ns(now.saturating_sub(self.users[index as usize].intended_ns));
        }
        if self.stopped_ns.is_none() && self.is_over(now) {
            self.stop(now);
        }
        if self.stopped_ns.is_some() {
            self.state.counts.end_steady(now);
        }
        if self.source.answered(index, now) {
            self.start(Start { user: index, intended_ns: now }, now);
        }
    }

    fn failed(&mut self, index: u32, fault: Fault, was_busy: bool) {
        self.fault(fault);
        if was_busy {
            self.under_way -= 1;
            self.state.counts.ended += 1;
            self.source.failed(index, clock::wall_ns());
        }
    }

    fn fault(&mut self, fault: Fault) {
        let faults = &mut self.state.counts.faults;
        faults.note(fault);
        if faults.piled_up() {
            self.plan.stop.store(true, Relaxed);
        }
    }

    /// Returns true if no more requests may start: this loop has reached its time and number. If each loop
    /// has its own core, all others must have reached theirs as well, so that all loops ask during the
    /// counted work.
    #[inline]
    fn is_over(&mut self, now: u64) -> bool {
        if !self.phase.is_over(now, self.started) {
            return false;
        }
        let all = self.come_to_end();
        self.plan.load.cores.is_empty() || self.plan.end.have_come(all) || self.phase.gives_up(now)
    }

    /// Returns the number of arrivals at the phase's end once all loops are there. Each loop arrives once,
    /// and waits for none.
    fn come_to_end(&mut self) -> usize {
        *self.ends_with.get_or_insert_with(|| self.plan.end.come())
    }

    /// Stops starting requests.
    fn stop(&mut self, now: u64) {
        self.stopped_ns = Some(now);
        self.source.stop();
        if let Source::Open { .. } = self.source {
            // The rate of an open loop is that of its requests, which the load sets.
            self.state.counts.steady_as_asked(self.started, now);
        }
    }

    /// Times out operations that have taken too long.
    fn sweep(&mut self, now: u64) {
        let limit_ns = self.plan.request_limit_ns;
        // The sweep is frequent enough to keep a limit to within an eighth.
        self.next_sweep_ns = now + (limit_ns / 8).clamp(1_000_000, 250_000_000);
        for index in 0..self.users.len() {
            let user = &mut self.users[index];
            let taken_ns = now.saturating_sub(user.began_ns);
            if user.busy() && (taken_ns >= limit_ns || now >= self.phase.abandon_ns) {
                let timeout = user.time_out(taken_ns);
                self.failed(index as u32, timeout, true);
            }
        }
    }

    fn is_finished(&self, now: u64) -> bool {
        self.plan.stop.load(Relaxed)
            || now >= self.phase.abandon_ns
            || (self.under_way == 0 && self.source.is_over())
    }

    fn next_wake_ns(&self, now: u64) -> u64 {
        let stop_ns = match self.stopped_ns {
            Some(_) => u64::MAX,
            None if now < self.phase.stop_ns => self.phase.stop_ns,
            None => self.phase.give_up_ns,
        };
        self.next_sweep_ns.min(now + LONGEST_WAIT_NS).min(stop_ns).min(self.source.next_ns())
    }

    fn leave(&mut self) -> Counts {
        // The CPU time is read first, because the rest of this function is not part of asking.
        self.state.counts.cpu_ns = self.began.since().0;
        // All arrivals may have been answered before the end of the phase.
        let stopped_ns = self.stopped_ns.unwrap_or(self.phase.stop_ns);
        if self.stopped_ns.is_none() {
            self.stop(stopped_ns);
        }
        self.state.counts.end_steady(stopped_ns);
        if let Work::Lead(_) = self.phase.work {
            // The shortest time so far counts: a longer one means a delayed load client or server. A server
            // that answers sequentially takes proportionally longer for all users.
            let wall_ns = self.state.counts.wall_ns();
            let took_ns = wall_ns * u64::from(self.active) / u64::from(self.active.clamp(1, LEADING));
            self.response_ns = if self.response_ns == 0 { took_ns } else { took_ns.min(self.response_ns) };
        }
        self.come_to_end();
        if !self.plan.load.cores.is_empty() {
            self.state.counts.account();
        }
        let counts = &self.state.counts;
        if let Work::WarmUp(_) | Work::Timed(_) = self.phase.work
            && counts.ended > 0
        {
            self.most_hz = self.most_hz.max(counts.ended as f64 * 1e9 / counts.wall_ns().max(1) as f64);
        }
        self.users.iter_mut().filter(|user| user.busy()).for_each(User::close);
        self.state.counts.latencies = self.latencies.take();
        std::mem::take(&mut self.state.counts)
    }
}
