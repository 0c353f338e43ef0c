//! When a loop's phase ends, what has taken too long in it, and how long to wait until something is due.

use std::cmp::Reverse;
use std::sync::atomic::Ordering::Relaxed;

use super::event_loop::EventLoop;
use super::fault::{self, Fault};
use super::record::Steady;
use super::source::Source;

/// However long there is nothing to do, another loop may have said to stop.
const LONGEST_WAIT_NS: u64 = 50_000_000;

impl EventLoop {
    /// So long and so many, or too long.
    #[inline]
    pub(super) fn is_time_to_stop(&self, now: u64) -> bool {
        let enough = now >= self.phase.stop_ns && self.started >= self.phase.least;
        !self.stopped && (enough || now >= self.phase.give_up_ns)
    }

    /// From now on nothing new is started.
    pub(super) fn stop(&mut self, now: u64) {
        self.stopped = true;
        self.stopped_ns = now;
        self.timers.clear();
        if let Source::Open { .. } = self.source {
            // At what rate they were asked, which is the load's to say.
            let wall_ns = now.saturating_sub(self.phase.begins_ns);
            self.state.tally.steady = Steady { requests: self.started, wall_ns };
        }
    }

    /// Ends the part that a rate is taken from, if that was not done before. It goes from one answer to another:
    /// from the first, for until then the load was on its way, to the first after nothing new was started. To a
    /// moment of the clock part of an answer would be time for nothing, and to the last answer before it a server
    /// that was held up just then would seem the faster for it.
    #[inline]
    pub(super) fn end_steady(&mut self, now: u64) {
        let tally = &mut self.state.tally;
        if tally.steady.wall_ns == 0 {
            let (first, from_ns) = match tally.ended {
                0 | 1 => (0, self.phase.begins_ns),
                _ => (1, self.first_answer_ns),
            };
            tally.steady = Steady { requests: tally.ended - first, wall_ns: now.saturating_sub(from_ns) };
        }
    }

    /// Ends what has taken too long.
    pub(super) fn sweep(&mut self, now: u64) {
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

    pub(super) fn finished(&self, now: u64) -> bool {
        if self.plan.stop.load(Relaxed) || now >= self.phase.abandon_ns {
            return true;
        }
        self.under_way == 0
            && match &self.source {
                Source::Opening { next } => self.stopped || *next >= self.users.len() as u32,
                Source::Once => true,
                Source::Closed => self.stopped,
                Source::Open { arrivals, .. } => arrivals.are_over(),
            }
    }

    pub(super) fn next_wake_ns(&self, now: u64) -> u64 {
        let mut wake_ns = self.next_sweep_ns.min(now + LONGEST_WAIT_NS);
        if let Some(Reverse((due_ns, _))) = self.timers.peek() {
            wake_ns = wake_ns.min(*due_ns);
        }
        if !self.stopped {
            let in_time = now < self.phase.stop_ns;
            wake_ns = wake_ns.min(if in_time { self.phase.stop_ns } else { self.phase.give_up_ns });
        }
        match &self.source {
            Source::Open { arrivals, free } if !free.is_empty() => wake_ns.min(arrivals.next_ns()),
            _ => wake_ns,
        }
    }
}
