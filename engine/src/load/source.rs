//! Where a loop's next request comes from, and how it is started.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use super::arrivals::{Arrivals, MOST_WAITING};
use super::draws::Sequence;
use super::event_loop::EventLoop;
use super::fault::{self, Fault};
use super::phase::{Timetable, Work};

/// So many connections are made at once when many are to be held: fewer than any server lets queue.
const OPENING_AT_ONCE: u32 = 64;

/// So many requests bring a server's code and data back into its caches: users need not all ask.
const LED: u32 = 4;

/// What a loop draws for itself is no user's: users' numbers are below.
const LOOPS: u64 = 1 << 32;

/// Where the next thing to do comes from.
pub enum Source {
    /// Connections to be made and held.
    Opening { next: u32 },
    /// Each user asks once.
    Once,
    /// Each user asks again once it was answered.
    Closed,
    /// Arrivals, taken by whoever is free.
    Open { arrivals: Arrivals, free: VecDeque<u32> },
}

impl EventLoop {
    pub(super) fn begin(&mut self) {
        let begins_ns = self.phase.begins_ns;
        let mut draws =
            Sequence::of(self.plan.seed, [LOOPS + u64::from(self.thread), self.phase.work.number()]);
        match self.phase.work {
            Work::Open => self.source = Source::Opening { next: 0 },
            Work::Prime(_) => {
                self.source = Source::Once;
                (0..self.asking).for_each(|index| self.ask(index, begins_ns));
            }
            Work::Lead(_) => {
                self.source = Source::Once;
                (0..self.leading()).for_each(|index| self.ask(index, begins_ns));
            }
            Work::WarmUp(_) | Work::Timed(_) if self.plan.is_open_loop() => {
                let rate_hz = self.plan.load.rate_hz / f64::from(self.plan.load.threads);
                let Timetable { stop_ns, least, .. } = self.phase;
                let arrivals = Arrivals::new(draws, rate_hz, begins_ns, stop_ns, least);
                self.source = Source::Open { arrivals, free: (0..self.asking).collect() };
            }
            Work::WarmUp(_) | Work::Timed(_) => {
                self.source = Source::Closed;
                self.stagger(&mut draws);
            }
        }
    }

    /// How many users ask before a chunk's accounts are opened.
    pub(super) fn leading(&self) -> u32 {
        self.asking.min(LED)
    }

    /// Users start evenly over the time in which each of them comes round once: those of a load that has gone
    /// on for a while are at all points of their rounds, and not at the same.
    fn stagger(&mut self, draws: &mut Sequence) {
        let round_ns = (self.response_ns + self.plan.think_ns) as f64;
        let mut order: Vec<u32> = (0..self.asking).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, draws.under(last as u64 + 1) as usize);
        }
        for (place, index) in order.iter().enumerate() {
            let after_ns = round_ns * place as f64 / order.len() as f64;
            self.timers.push(Reverse((self.phase.begins_ns + after_ns as u64, *index)));
        }
    }

    /// Starts what has become due: users that have thought, arrivals, connections to be made.
    pub(super) fn start_due(&mut self, now: u64) {
        if self.is_time_to_stop(now) || (!self.stopped && self.plan.stop.load(Relaxed)) {
            self.stop(now);
        }
        while let Some(Reverse((due_ns, index))) = self.timers.peek().copied() {
            if due_ns > now {
                break;
            }
            self.timers.pop();
            self.ask(index, now);
        }
        match &mut self.source {
            Source::Open { .. } => self.start_arrivals(now),
            Source::Opening { .. } => self.start_opening(now),
            Source::Once | Source::Closed => {}
        }
    }

    fn start_arrivals(&mut self, now: u64) {
        loop {
            let Source::Open { arrivals, free } = &mut self.source else { return };
            if let Some(dropped) = arrivals.arrive(now) {
                let words = format!("more than {} arrivals wait", MOST_WAITING);
                self.state.tally.ended += dropped;
                self.state.tally.faults.note_many(Fault::new(fault::BACKLOG, words), dropped);
            }
            if now >= self.phase.give_up_ns || self.plan.stop.load(Relaxed) {
                let dropped = arrivals.abandon();
                if dropped > 0 {
                    let words = "the server fell so far behind that arrivals were never sent";
                    self.state.tally.ended += dropped;
                    self.state.tally.faults.note_many(Fault::new(fault::BACKLOG, words), dropped);
                }
            }
            if free.is_empty() {
                return;
            }
            let Some(intended_ns) = arrivals.take() else { return };
            let Some(index) = free.pop_front() else { return };
            self.ask_at(index, intended_ns, now);
        }
    }

    fn start_opening(&mut self, now: u64) {
        loop {
            let Source::Opening { next } = &mut self.source else { return };
            if self.stopped || self.under_way >= OPENING_AT_ONCE || *next >= self.users.len() as u32 {
                return;
            }
            let index = *next;
            *next += 1;
            // Users with a connection for each request have none to be held.
            if index < self.asking && !self.state.keeps {
                continue;
            }
            let user = &mut self.users[index as usize];
            user.began_ns = now;
            self.under_way += 1;
            let step = user.open(index, &mut self.state);
            self.settle(index, step, true);
        }
    }

    #[inline]
    pub(super) fn ask(&mut self, index: u32, now: u64) {
        if self.stopped {
            return;
        }
        self.ask_at(index, now, now);
    }

    #[inline]
    fn ask_at(&mut self, index: u32, intended_ns: u64, now: u64) {
        let user = &mut self.users[index as usize];
        (user.intended_ns, user.began_ns) = (intended_ns, now);
        self.under_way += 1;
        self.started += 1;
        let step = user.ask(index, &mut self.state);
        self.settle(index, step, true);
    }
}
