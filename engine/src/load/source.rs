//! Where a loop's next request comes from, and how it is started.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use super::arrivals::{Arrivals, MOST_WAITING};
use super::event_loop::EventLoop;
use super::fault::{self, Fault};
use super::phase::Work;

/// So many connections are made at once when many are to be held: fewer than any server lets queue.
const OPENING_AT_ONCE: u32 = 64;

/// Where the next thing to do comes from.
pub enum Source {
    /// Connections to be made and held.
    Opening { next: u32 },
    /// Each user asks once.
    Once,
    /// Each user asks again once it was answered, so many times in all.
    Closed { left: u64 },
    /// Arrivals, taken by whoever is free.
    Open { arrivals: Arrivals, free: VecDeque<u32> },
}

impl EventLoop {
    pub(super) fn begin(&mut self) {
        let begins_ns = self.phase.begins_ns;
        let quota = self.phase.quota.map(|quota| self.plan.share_of(self.thread, quota));
        match self.phase.work {
            Work::Open => self.source = Source::Opening { next: 0 },
            Work::WarmUp | Work::Timed if self.plan.is_open_loop() => {
                let arrivals =
                    Arrivals::new(&self.plan.load, self.thread, begins_ns, self.phase.stop_ns, quota);
                self.source = Source::Open { arrivals, free: (0..self.asking).collect() };
            }
            Work::Prime(_) | Work::WarmUp | Work::Timed => {
                self.source = match self.phase.work {
                    Work::Prime(_) => Source::Once,
                    _ => Source::Closed { left: quota.unwrap_or(u64::MAX) },
                };
                for index in 0..self.asking {
                    self.ask(index, begins_ns);
                }
            }
        }
    }

    /// Starts what has become due: users that have thought, arrivals, connections to be made.
    pub(super) fn start_due(&mut self, now: u64) {
        if !self.stopped && (now >= self.phase.stop_ns || self.plan.stop.load(Relaxed)) {
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
            Source::Once | Source::Closed { .. } => {}
        }
    }

    fn start_arrivals(&mut self, now: u64) {
        loop {
            let Source::Open { arrivals, free } = &mut self.source else { return };
            if let Some(dropped) = arrivals.arrive(now) {
                let words = format!("more than {} arrivals wait", MOST_WAITING);
                self.tools.tally.ended += dropped;
                self.tools.tally.faults.note_many(Fault::new(fault::BACKLOG, words), dropped);
            }
            if now >= self.phase.give_up_ns || self.plan.stop.load(Relaxed) {
                let dropped = arrivals.abandon();
                if dropped > 0 && self.phase.work == Work::Timed {
                    let words = "the server fell so far behind that arrivals were never sent";
                    self.tools.tally.ended += dropped;
                    self.tools.tally.faults.note_many(Fault::new(fault::BACKLOG, words), dropped);
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
            if index < self.asking && !self.tools.keeps {
                continue;
            }
            let user = &mut self.users[index as usize];
            user.began_ns = now;
            self.under_way += 1;
            let step = user.open(index, &mut self.tools);
            self.settle(index, step, true);
        }
    }

    /// Those that were answered in this turn ask again, after all that came was read: a server that is woken
    /// by the first would answer one at a time, and every answer would have to wake this client.
    #[inline]
    pub(super) fn ask_again(&mut self) {
        for at in 0..self.answered.len() {
            self.ask(self.answered[at], self.answered_ns);
        }
        self.answered.clear();
    }

    fn ask(&mut self, index: u32, now: u64) {
        if self.stopped {
            return;
        }
        let mut last = false;
        if let Source::Closed { left } = &mut self.source {
            let Some(rest) = left.checked_sub(1) else { return };
            (*left, last) = (rest, rest == 0);
        }
        if last {
            self.stop(now);
        }
        self.ask_at(index, now, now);
    }

    #[inline]
    fn ask_at(&mut self, index: u32, intended_ns: u64, now: u64) {
        let user = &mut self.users[index as usize];
        (user.intended_ns, user.began_ns) = (intended_ns, now);
        self.under_way += 1;
        let step = user.ask(index, &mut self.tools);
        self.settle(index, step, true);
    }
}
