//! The threads of a load: each with a loop of its own, all through the same phases.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::counts::Counts;
use super::event_loop::EventLoop;
use super::phase::{Phase, Plan};
use crate::clock;
use crate::failure::Failure;
use crate::team::keep_on;

pub struct Workers {
    plan: Arc<Plan>,
    commands: Vec<Sender<Phase>>,
    reports: Receiver<Report>,
}

pub type Report = Result<Counts, Failure>;

/// Beyond a phase's own times, which the loops keep to: this is for one that does not.
const HUNG_NS: u64 = 1_000_000_000;

impl Workers {
    pub fn start(plan: &Arc<Plan>) -> Result<Workers, Failure> {
        let (report, reports) = channel();
        let mut commands = Vec::new();
        for thread in 0..plan.load.threads {
            let (command, phases) = channel::<Phase>();
            commands.push(command);
            let plan = Arc::clone(plan);
            let body = move |report: &Sender<Report>| perform(plan, thread, &phases, report);
            spawn(format!("load {thread}"), report.clone(), body)?;
        }
        drop(report);
        let workers = Workers { plan: Arc::clone(plan), commands, reports };
        // Each loop says first whether it could be made.
        workers.gather(u64::MAX)?.ok_or_else(|| Failure::Failed("a loop could not be made".to_owned()))?;
        Ok(workers)
    }

    /// Lets all loops perform a phase.
    pub fn run(&self, phase: Phase) -> Result<Counts, Failure> {
        for command in &self.commands {
            // A loop that is gone does not report either, which is where it is noticed.
            let _ = command.send(phase);
        }
        let limit_ns = self.plan.request_limit_ns;
        let hung_ns = clock::wall_ns() + phase.longest_ns + 3 * limit_ns + HUNG_NS;
        self.gather(hung_ns)?.ok_or_else(|| {
            let doing = phase.work.name();
            Failure::TimedOut(format!("the client itself did not come to an end while {doing}"))
        })
    }

    /// A report of each loop, added up; None if one of them did not come in time.
    fn gather(&self, until_ns: u64) -> Result<Option<Counts>, Failure> {
        let mut total: Option<Counts> = None;
        for _ in &self.commands {
            let left = Duration::from_nanos(until_ns.saturating_sub(clock::wall_ns()));
            let counts = match self.reports.recv_timeout(left) {
                Ok(report) => report?,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Failed("the threads of this client have ended".to_owned()));
                }
            };
            match &mut total {
                Some(total) => total.merge(counts),
                None => total = Some(counts),
            }
        }
        Ok(total)
    }
}

/// Starts a thread whose panic is a report like any other: a loop that says nothing more would be waited for.
pub fn spawn(
    name: String,
    report: Sender<Report>,
    body: impl FnOnce(&Sender<Report>) + Send + 'static,
) -> Result<(), Failure> {
    let thread = std::thread::Builder::new().name(name.clone());
    let guarded = move || {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(&report))) {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
            let reason = format!("the client's thread `{name}` panicked: {words}");
            let _ = report.send(Err(Failure::Failed(reason)));
        }
    };
    match thread.spawn(guarded) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Failed(format!("a thread cannot be started: {error}"))),
    }
}

/// One loop's thread: made, then through the phases it is told, until there are no more.
fn perform(plan: Arc<Plan>, thread: u32, phases: &Receiver<Phase>, report: &Sender<Report>) {
    let core = plan.load.cores.get(thread as usize).copied();
    let made = keep_on(core).and_then(|()| EventLoop::new(Arc::clone(&plan), thread));
    let mut made = match made {
        Ok(made) => made,
        Err(failure) => {
            let _ = report.send(Err(failure));
            return;
        }
    };
    let _ = report.send(Ok(Counts::default()));
    while let Ok(phase) = phases.recv() {
        let counts = made.run(&phase);
        if counts.is_err() {
            // The others do not wait for this one.
            plan.stop.store(true, Relaxed);
        }
        if report.send(counts).is_err() {
            return;
        }
    }
}
