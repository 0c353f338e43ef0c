//! Team: several threads perform one task at once, each on its own primitive.
//!
//! Each thread opens the provider and prepares keys and contexts itself, as the threads of an application do;
//! they share the library. All threads begin a chunk at once. A thread's count ends with its last operation.
//! The thread then works uncounted until the last thread has finished counting, so that every counted
//! operation ran while all threads were at work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;

use crate::chunks::Chunks;
use crate::clock::{self, Clocks};
use crate::contract::{Chunk, Task};
use crate::failure::Failure;
use crate::proc::RunQueue;
use crate::provider::Prepared;
use crate::runner::Advance;

/// Limit of threads: more would test the scheduler instead of a library.
const MOST_THREADS: usize = 1024;
/// Time that a thread works after its count before it checks whether the others have finished: short compared
/// with a chunk, long compared with the check.
const TAIL_NS: f64 = 20_000.0;
/// Number of spins of a thread that waits at the beginning of a chunk before it yields its core.
const SPINS: u32 = 1000;

/// Account of one thread's part of a chunk.
#[derive(Serialize, Debug, Default, Clone)]
pub struct Account {
    pub operations: u64,
    pub cpu_ns: u64,
    pub wall_ns: u64,
    /// Time in which it would have run but others had its core.
    pub run_queue_wait_ns: u64,
}

/// Accounts of a chunk: those of its threads, and the CPU time of the process outside of them.
#[derive(Serialize, Debug, Default)]
pub struct Accounts {
    pub threads: Vec<Account>,
    pub left_over_ns: u64,
}

/// Threads that are prepared and warm.
pub struct Team {
    orders: Vec<Sender<Advance>>,
    answers: Receiver<Result<Answer, Failure>>,
    /// CPU time of one operation of the first thread while it is alone.
    pub operation_ns: f64,
    /// Memory that the first operation of the process used.
    pub memory_bytes: Option<u64>,
}

/// Answer of a thread to a chunk.
struct Answer {
    account: Account,
    /// All CPU time that the thread used for the chunk, counted or not.
    cpu_ns: u64,
}

impl Team {
    /// Starts the threads of a task, each with the primitive that `prepare` makes in it. They are prepared
    /// one after the other, before any thread's clock is read.
    pub fn of(
        task: &Task,
        threads: usize,
        prepare: impl Fn(&Task) -> Prepared + Copy + Send + 'static,
    ) -> Result<Team, Failure> {
        if !(1..=MOST_THREADS).contains(&threads) {
            return Err(Failure::Failed(format!(
                "`threads` is {threads}; it must be from 1 to {MOST_THREADS}"
            )));
        }
        if !task.cores.is_empty() && task.cores.len() != threads {
            let cores = task.cores.len();
            return Err(Failure::Failed(format!(
                "`cores` must name {threads} cores, one for each thread; it names {cores}"
            )));
        }
        let meetings = Arc::new((Meeting::of(threads), Meeting::of(threads)));
        let (said, answers) = channel();
        let mut team = Team { orders: Vec::new(), answers, operation_ns: 0.0, memory_bytes: None };
        for number in 0..threads {
            let (order, orders) = channel();
            let (is_ready, ready) = channel();
            let (task, core) = (task.clone(), task.cores.get(number).copied());
            let (said, meetings) = (said.clone(), meetings.clone());
            let worker = move || {
                let warm = caught(|| {
                    keep_on(core)?;
                    Chunks::warm(prepare(&task)?, task.lead)
                });
                match warm {
                    Ok((chunks, memory_bytes)) => {
                        let _ = is_ready.send(Ok((chunks.operation_ns(), memory_bytes)));
                        work(chunks, &orders, &said, &meetings);
                    }
                    Err(failure) => drop(is_ready.send(Err(failure))),
                }
            };
            let started = thread::Builder::new().name(format!("thread {number}")).spawn(worker);
            started.map_err(|error| Failure::Failed(format!("a thread cannot be started: {error}")))?;
            let (operation_ns, memory_bytes) = ready.recv().map_err(|_| gone())??;
            if number == 0 {
                (team.operation_ns, team.memory_bytes) = (operation_ns, memory_bytes);
            }
            team.orders.push(order);
        }
        Ok(team)
    }

    /// Performs one chunk on all threads at once, on each for at least this time and number of operations.
    pub fn advance(&mut self, asked: Advance) -> Result<Chunk<Accounts>, Failure> {
        let before_ns = clock::process_cpu_ns();
        for order in &self.orders {
            order.send(asked).map_err(|_| gone())?;
        }
        let said = self.orders.iter().map(|_| self.answers.recv().map_err(|_| gone())?);
        // All must answer before a failure is reported.
        let answers: Vec<Result<Answer, Failure>> = said.collect();
        let process_ns = clock::process_cpu_ns() - before_ns;
        let answers = answers.into_iter().collect::<Result<Vec<Answer>, Failure>>()?;
        let theirs_ns: u64 = answers.iter().map(|answer| answer.cpu_ns).sum();
        let threads: Vec<Account> = answers.into_iter().map(|answer| answer.account).collect();
        let sum = |of: fn(&Account) -> u64| threads.iter().map(of).sum::<u64>();
        Ok(Chunk {
            operations: sum(|one| one.operations),
            cpu_ns: sum(|one| one.cpu_ns),
            wall_ns: sum(|one| one.wall_ns) / threads.len() as u64,
            observed: Accounts { left_over_ns: process_ns.saturating_sub(theirs_ns), threads },
        })
    }
}

/// Runs a thread: a chunk for each order.
fn work(
    mut chunks: Chunks,
    orders: &Receiver<Advance>,
    said: &Sender<Result<Answer, Failure>>,
    (begin, end): &(Meeting, Meeting),
) {
    let queue = RunQueue::of_thread();
    while let Ok(asked) = orders.recv() {
        let whole = Clocks::of_thread();
        let led = caught(|| chunks.lead_in(asked));
        begin.wait(begin.come());
        let before_ns = queue.wait_ns();
        // A thread that fails still comes to both meetings, because the others would wait for it for ever.
        let counted = led.and_then(|()| caught(|| chunks.counted(asked, &Clocks::of_thread())));
        let waited_ns = queue.wait_ns().saturating_sub(before_ns);
        let all = end.come();
        let mut result = counted;
        while result.is_ok() && !end.have_come(all) {
            result = result.and_then(|chunk| caught(|| chunks.go_on(TAIL_NS)).map(|()| chunk));
        }
        let (cpu_ns, _) = whole.since();
        let answer = result.map(|Chunk { operations, cpu_ns: own_ns, wall_ns, .. }| Answer {
            account: Account { operations, cpu_ns: own_ns, wall_ns, run_queue_wait_ns: waited_ns },
            cpu_ns,
        });
        if said.send(answer).is_err() {
            return;
        }
    }
}

/// Meeting point at which threads wait until all have come, once a chunk.
pub struct Meeting {
    threads: usize,
    come: AtomicUsize,
}

impl Meeting {
    pub fn of(threads: usize) -> Meeting {
        Meeting { threads, come: AtomicUsize::new(0) }
    }

    /// Comes to the next meeting. Returns the total of arrivals once all threads are there. No thread comes
    /// to the meeting after this one before all have left it, because each chunk is ordered after the last
    /// was answered.
    pub fn come(&self) -> usize {
        (self.come.fetch_add(1, Ordering::AcqRel) / self.threads + 1) * self.threads
    }

    pub fn have_come(&self, all: usize) -> bool {
        self.come.load(Ordering::Acquire) >= all
    }

    /// Waits without sleeping, because sleeping threads would wake one after the other.
    fn wait(&self, all: usize) {
        self.wait_unless(all, || false);
    }

    /// Waits until all have come, or `is_over` reports that one of them will not.
    pub fn wait_unless(&self, all: usize, is_over: impl Fn() -> bool) {
        let mut spins = 0;
        while !self.have_come(all) && !is_over() {
            spins += 1;
            if spins % SPINS == 0 { thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

/// Pins this thread to a core, if one is given.
pub fn keep_on(core: Option<usize>) -> Result<(), Failure> {
    let Some(core) = core else { return Ok(()) };
    let mut set = CpuSet::new();
    if core >= CpuSet::MAX_CPU {
        return Err(Failure::Failed(format!("there is no core {core}")));
    }
    set.set(core);
    let kept = sched_setaffinity(None, &set);
    kept.map_err(|error| Failure::Failed(format!("a thread cannot be pinned to core {core}: {error}")))
}

/// Turns a panic of a thread into a failure, which the others learn of.
fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let panicked = |_| Err(Failure::Failed("a thread of this engine panicked".to_owned()));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(panicked)
}

fn gone() -> Failure {
    Failure::Failed("a thread of this engine has ended".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Proof;
    use crate::provider::Primitive;

    fn task(fields: &str) -> Task {
        let text = format!(r#"{{"mode": "measure", "provider": {{"kind": "spin"}}{fields}}}"#);
        serde_json::from_str(&text).expect("a task")
    }

    /// A primitive that uses about 20 µs of its thread's CPU time, and fails after this number of operations.
    struct Work(u32);

    impl Primitive for Work {
        fn perform(&mut self) -> Result<(), Failure> {
            self.0 = self.0.checked_sub(1).ok_or_else(|| Failure::Failed("a wrong answer".to_owned()))?;
            let clocks = Clocks::of_thread();
            while clocks.since().0 < 20_000 {}
            Ok(())
        }

        fn prove(&mut self) -> Result<Proof, Failure> {
            Ok(Proof::default())
        }
    }

    fn sound(_: &Task) -> Result<Box<dyn Primitive>, Failure> {
        Ok(Box::new(Work(u32::MAX)))
    }

    #[test]
    fn accounts_of_a_chunk_are_closed() {
        for threads in [1, 3] {
            let mut team = Team::of(&task(""), threads, sound).expect("threads");
            for (seconds, operations) in [(0.002, 1), (0.0, 7)] {
                let chunk = team.advance(Advance { seconds, operations }).expect("a chunk");
                let accounts = &chunk.observed.threads;
                assert_eq!(threads, accounts.len());
                let sum = |of: fn(&Account) -> u64| accounts.iter().map(of).sum::<u64>();
                assert_eq!(chunk.operations, sum(|one| one.operations));
                assert_eq!(chunk.cpu_ns, sum(|one| one.cpu_ns));
                assert_eq!(chunk.wall_ns, sum(|one| one.wall_ns) / threads as u64);
                for one in accounts {
                    assert!(one.operations >= operations, "each does as many as asked: {one:?}");
                    assert!(one.wall_ns as f64 >= seconds * 1e9, "each works as long as asked: {one:?}");
                    assert!(one.cpu_ns <= one.wall_ns, "a thread has one core at most: {one:?}");
                }
            }
        }
    }

    #[test]
    fn a_thread_that_fails_ends_the_chunk_of_all() {
        fn failing(_: &Task) -> Result<Box<dyn Primitive>, Failure> {
            static MADE: AtomicUsize = AtomicUsize::new(0);
            // The second thread fails after its warm-up.
            let most = if MADE.fetch_add(1, Ordering::Relaxed) == 1 { 20_000 } else { u32::MAX };
            Ok(Box::new(Work(most)))
        }
        let mut team = Team::of(&task(""), 2, failing).expect("threads");
        let asked = Advance { seconds: 0.0, operations: 25_000 };
        assert_eq!(Some(Failure::Failed("a wrong answer".to_owned())), team.advance(asked).err());
    }

    #[test]
    fn a_thread_that_panics_is_a_failure() {
        struct Panicking;
        impl Primitive for Panicking {
            fn perform(&mut self) -> Result<(), Failure> {
                panic!("as the test wants")
            }
            fn prove(&mut self) -> Result<Proof, Failure> {
                Ok(Proof::default())
            }
        }
        let failure = Team::of(&task(""), 2, |_| Ok(Box::new(Panicking))).err();
        assert_eq!(Some(Failure::Failed("a thread of this engine panicked".to_owned())), failure);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (fields, threads, words) in [
            ("", 0, "`threads` is 0; it must be from 1 to 1024"),
            (r#", "cores": [0]"#, 2, "`cores` must name 2 cores, one for each thread; it names 1"),
            (r#", "cores": [99999]"#, 1, "there is no core 99999"),
        ] {
            let failure = Team::of(&task(fields), threads, sound).err();
            assert_eq!(Some(Failure::Failed(words.to_owned())), failure);
        }
    }
}
