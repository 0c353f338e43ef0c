//! Work that takes a lock for a known part of its steps. Only one thread at a time can do that part, so that
//! the cost of other threads is known. With N threads and a share s of the steps, an operation takes N · s
//! times as long, if that is more than once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::work::{Chain, START, Work};
use crate::contract::{Proof, Task};
use crate::failure::Failure;
use crate::provider::{Prepared, Primitive};

/// Locks that the threads of this process share.
static SPINNING: Tickets = Tickets { next: AtomicU64::new(0), served: AtomicU64::new(0) };
static SLEEPING: Mutex<()> = Mutex::new(());

/// Method of waiting for the lock.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Waiting {
    /// Busy on its core, which uses CPU time.
    Spinning,
    /// Asleep, which uses no CPU time.
    Sleeping,
}

/// Operation whose first `free` steps are done by all threads at once, and the other `locked` by one of them.
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
            Failure::Failed(format!("`locked` must be at most `iterations`, not {locked} of {steps}"))
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

/// A lock that threads get in the order of their arrival: none waits longer than its turn, so that each
/// thread's wait is known.
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
            // On its own core the thread continues at once; if two threads share a core, the other may have
            // the lock.
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
