//! Work that holds a lock for a known part of its steps. While one thread holds it no other does that part, so that what
//! other threads cost is known: with N threads and a share s of the steps, N · s times as long, where that is more than once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::work::{Chain, START, Work};
use crate::contract::{Proof, Task};
use crate::failure::Failure;
use crate::provider::{Prepared, Primitive};

/// What threads of this process share.
static SPINNING: Tickets = Tickets { next: AtomicU64::new(0), served: AtomicU64::new(0) };
static SLEEPING: Mutex<()> = Mutex::new(());

/// How a thread waits until it has the lock.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Waiting {
    /// At work on its core, which is CPU time of its own.
    Spinning,
    /// Asleep, which is no CPU time.
    Sleeping,
}

/// The first `free` steps of an operation are done by all threads at once, the other `locked` by one of them.
pub struct Held {
    work: Chain,
    free: u64,
    locked: u64,
    waiting: Waiting,
}

impl Held {
    pub fn of(task: &Task, locked: u64) -> Prepared {
        let steps = task.number("iterations", 0)?;
        let rows = [("spinning", Waiting::Spinning), ("sleeping", Waiting::Sleeping)];
        let waiting = task.one_of("waiting", &rows)?;
        let free = steps.checked_sub(locked).ok_or_else(|| {
            Failure::Failed(format!("`locked` is at most `iterations`: {locked} of {steps}"))
        })?;
        Ok(Box::new(Held { work: Chain::starting_at(START), free, locked, waiting }))
    }

    fn operate(&self, work: &mut Chain) {
        work.steps(self.free);
        match self.waiting {
            Waiting::Spinning => SPINNING.hold(|| work.steps(self.locked)),
            Waiting::Sleeping => {
                let _held = SLEEPING.lock().unwrap_or_else(PoisonError::into_inner);
                work.steps(self.locked);
            }
        }
    }
}

impl Primitive for Held {
    fn perform(&mut self) -> Result<(), Failure> {
        let mut work = Chain::starting_at(self.work.answer());
        self.operate(&mut work);
        self.work = work;
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let from = |start| {
            let mut work = Chain::starting_at(start);
            self.operate(&mut work);
            work
        };
        let mut right = from(START);
        let answer = right.answer();
        let mut proof = Proof { answer: Some(format!("{answer:016x}")), ..Proof::default() };
        right.steps(1);
        proof.refuse("one step more", right.answer() != answer)?;
        proof.refuse("a start from elsewhere", from(START + 1).answer() != answer)?;
        Ok(proof)
    }
}

/// A lock that threads get in the order in which they came for it: none waits longer than its turn, and what each of them
/// waits is known.
struct Tickets {
    next: AtomicU64,
    served: AtomicU64,
}

impl Tickets {
    fn hold(&self, work: impl FnOnce()) {
        let own = self.next.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0;
        while self.served.load(Ordering::Acquire) != own {
            spins += 1;
            // On a core of its own it goes on at once; where two threads have one, the other may be the one that holds it.
            if spins % 1000 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        work();
        self.served.store(own + 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_holds_a_lock() {
        static LOCK: Tickets = Tickets { next: AtomicU64::new(0), served: AtomicU64::new(0) };
        static INSIDE: AtomicU64 = AtomicU64::new(0);
        let times = || {
            for _ in 0..200 {
                LOCK.hold(|| {
                    assert_eq!(0, INSIDE.fetch_add(1, Ordering::AcqRel));
                    INSIDE.fetch_sub(1, Ordering::AcqRel);
                });
            }
        };
        std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(times))));
        assert_eq!(600, LOCK.served.load(Ordering::Acquire));
    }

    #[test]
    fn steps_under_a_lock_are_those_of_a_chain() {
        for waiting in [Waiting::Spinning, Waiting::Sleeping] {
            let mut held = Held { work: Chain::starting_at(START), free: 3, locked: 4, waiting };
            held.batch(3).expect("a batch");
            let mut chain = Chain::starting_at(START);
            chain.steps(21);
            assert_eq!(chain.answer(), held.work.answer());
        }
    }
}
