//! Source of a loop's next request: the user that starts it, and the time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::arrivals::{Arrivals, MOST_WAITING};
use crate::random::Sequence;

/// Connections that are opened at once if many are to be held, fewer than any server lets queue.
pub const OPENING_AT_ONCE: u32 = 64;

/// Pause of a user after a failed request, so that a dead server is not flooded.
const PAUSE_NS: u64 = 1_000_000;

pub enum Source {
    Nothing,
    /// Each user opens its connection, or asks, once; at most `at_once` of them at a time.
    Once {
        next: u32,
        end: u32,
        at_once: u32,
    },
    /// Each user asks again after its answer and its time to think.
    Closed {
        due: BinaryHeap<Reverse<(u64, u32)>>,
        think_ns: u64,
    },
    /// Arrivals, each served by the user that has been free for longest.
    Open {
        arrivals: Arrivals,
        free: VecDeque<u32>,
    },
}

/// A user that is due.
#[derive(Debug, PartialEq, Eq)]
pub struct Start {
    pub user: u32,
    /// Intended start, which may be before now.
    pub intended_ns: u64,
}

impl Source {
    /// Makes users that start evenly over the time of one round. After a while the users of a real load are
    /// at all points of their rounds, not at the same one.
    pub fn closed(
        users: u32,
        begins_ns: u64,
        response_ns: u64,
        think_ns: u64,
        random: &mut Sequence,
    ) -> Source {
        let round_ns = (response_ns + think_ns) as f64;
        let mut order: Vec<u32> = (0..users).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, random.under(last as u64 + 1) as usize);
        }
        let start = |(place, user): (usize, u32)| {
            let after_ns = round_ns * place as f64 / f64::from(users);
            Reverse((begins_ns + after_ns as u64, user))
        };
        Source::Closed { due: order.into_iter().enumerate().map(start).collect(), think_ns }
    }

    pub fn open(arrivals: Arrivals, users: u32) -> Source {
        Source::Open { arrivals, free: (0..users).collect() }
    }

    /// Returns the next user to start now, if one is due with this number of requests in progress.
    pub fn next(&mut self, now: u64, under_way: u32) -> Option<Start> {
        match self {
            Source::Nothing => None,
            Source::Once { next, end, at_once } => {
                if next == end || under_way >= *at_once {
                    return None;
                }
                *next += 1;
                Some(Start { user: *next - 1, intended_ns: now })
            }
            Source::Closed { due, .. } => {
                let Reverse((_, user)) = *due.peek().filter(|Reverse((due_ns, _))| *due_ns <= now)?;
                due.pop();
                Some(Start { user, intended_ns: now })
            }
            Source::Open { arrivals, free } => {
                let user = *free.front()?;
                let intended_ns = arrivals.take()?;
                free.pop_front();
                Some(Start { user, intended_ns })
            }
        }
    }

    /// Admits arrivals up to now. Returns the number that were dropped, and the reason. If the phase gives
    /// up, all are dropped.
    pub fn arrive(&mut self, now: u64, gives_up: bool) -> Option<(u64, String)> {
        let Source::Open { arrivals, .. } = self else { return None };
        let dropped = arrivals.arrive(now);
        if gives_up {
            let dropped = dropped.unwrap_or(0) + arrivals.abandon();
            let words = "the server was too slow: some arrivals were never sent";
            return (dropped > 0).then(|| (dropped, words.to_owned()));
        }
        dropped.map(|dropped| (dropped, format!("more than {MOST_WAITING} arrivals wait")))
    }

    /// Records an answer. Returns true if the user asks again at once: it waits for its own answer only, not
    /// until those of others have been read.
    #[inline]
    pub fn answered(&mut self, user: u32, now: u64) -> bool {
        match self {
            Source::Closed { think_ns: 0, .. } => return true,
            Source::Closed { due, think_ns } => due.push(Reverse((now + *think_ns, user))),
            Source::Open { free, .. } => free.push_back(user),
            Source::Nothing | Source::Once { .. } => {}
        }
        false
    }

    /// Records that a user's request failed.
    pub fn failed(&mut self, user: u32, now: u64) {
        match self {
            Source::Closed { due, think_ns } => due.push(Reverse((now + PAUSE_NS.max(*think_ns), user))),
            Source::Open { free, .. } => free.push_back(user),
            Source::Nothing | Source::Once { .. } => {}
        }
    }

    /// Stops new requests; earlier arrivals are still served until the phase gives up.
    pub fn stop(&mut self) {
        if !matches!(self, Source::Open { .. }) {
            *self = Source::Nothing;
        }
    }

    /// Returns true if no more requests will be due once none is in progress.
    pub fn is_over(&self) -> bool {
        match self {
            Source::Nothing => true,
            Source::Once { next, end, .. } => next == end,
            Source::Closed { .. } => false,
            Source::Open { arrivals, .. } => arrivals.are_over(),
        }
    }

    /// Returns the time of the next due user; `u64::MAX` if it depends on requests in progress.
    pub fn next_ns(&self) -> u64 {
        match self {
            Source::Closed { due, .. } => due.peek().map_or(u64::MAX, |Reverse((due_ns, _))| *due_ns),
            Source::Open { arrivals, free } if !free.is_empty() => arrivals.next_ns(),
            _ => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn starts(source: &mut Source, now: u64) -> Vec<u32> {
        std::iter::from_fn(|| source.next(now, 0)).map(|start| start.user).collect()
    }

    /// In a chunk users start spread over a round, each once, and each chunk begins with another user.
    #[test]
    fn users_do_not_start_in_step() {
        let mut orders = HashSet::new();
        for chunk in 0..4 {
            let mut random = Sequence::of(7, [0, chunk]);
            let mut source = Source::closed(8, 1000, 6_000_000_000, 2_000_000_000, &mut random);
            let order: Vec<u32> = (0..8)
                .map(|place| {
                    assert_eq!(1000 + place * 1_000_000_000, source.next_ns());
                    let due_ns = source.next_ns();
                    let started = starts(&mut source, due_ns);
                    assert_eq!(1, started.len());
                    started[0]
                })
                .collect();
            assert_eq!((0..8).collect::<HashSet<_>>(), order.iter().copied().collect());
            orders.insert(order);
        }
        assert!(orders.len() > 1, "{orders:?}");
    }

    /// A user of a closed loop asks again at once or after its time to think, and a failed one after a pause.
    #[test]
    fn users_think_and_pause() {
        for (think_ns, at_once) in [(0, true), (5_000_000, false)] {
            let mut source = Source::closed(1, 0, 0, think_ns, &mut Sequence::of(7, [0, 0]));
            assert_eq!(vec![0], starts(&mut source, 0));
            assert_eq!(at_once, source.answered(0, 10));
            assert_eq!(if at_once { u64::MAX } else { 10 + think_ns }, source.next_ns());
            source.stop();
            source.failed(0, 20);
            assert_eq!((u64::MAX, true), (source.next_ns(), source.is_over()));
        }
        let mut source = Source::closed(1, 0, 0, 0, &mut Sequence::of(7, [0, 0]));
        starts(&mut source, 0);
        source.failed(0, 20);
        assert_eq!(20 + PAUSE_NS, source.next_ns());
    }

    /// Connections are opened a few at a time.
    #[test]
    fn connections_are_not_opened_all_at_once() {
        let mut source = Source::Once { next: 3, end: 5, at_once: OPENING_AT_ONCE };
        assert_eq!(None, source.next(0, OPENING_AT_ONCE));
        assert_eq!((vec![3, 4], true), (starts(&mut source, 0), source.is_over()));
    }
}
